"""Where each cell of a finished sweep stands: its figures, and which constraints exclude it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from targetdp._core import check
from targetdp.tradeoff._results import WORST
from targetdp.tradeoff._study import EVERYBODY, must_agree
from targetdp.tradeoff._sweep import Grid
from targetdp.tradeoff._sweep_folder import SUMMARY, read_run
from targetdp.tradeoff._technology import ATTACKS, Cell

PROTECTIONS = ("singling_out", "attribute_inference", "distinguishing")
"""The paper's three."""

_SETTINGS = dict.fromkeys(ATTACKS, WORST) | {"distinguishing": "exact", "crowd": "typical"}
"""Which of a metric's lines counts, where it is not the one about everybody."""

_METRIC_NAMES = {
    "singling_out": "singling-out protection",
    "attribute_inference": "attribute inference protection",
    "distinguishing": "distinguishing protection",
    "informed_inference": "protection from an attacker who knows whose row is whose",
    "extra_exclusion_errors": "exclusion errors beyond those of the status quo",
}


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95% interval.

    Args:
        mean: None where undefined.
        low: The low end; None where one simulation knows no interval.
        high: The high end.

    Example:
        >>> Estimate(0.81, low=0.79, high=0.83).at_worst
        0.79
    """

    mean: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def at_worst(self) -> float | None:
        """The interval's low end."""
        return self.mean if self.low is None else self.low

    @property
    def at_best(self) -> float | None:
        """The interval's high end."""
        return self.mean if self.high is None else self.high


@dataclass(frozen=True)
class Constraint:
    """A metric that must be at least, or at most, so much.

    Whoever asks for protection of at least 0.8 should get it: a constraint is held against the *safe end* of
    the interval, the low end where at least so much is asked, the high end where at most so much is allowed.

    Args:
        metric: A figure of the sweep, such as ``"singling_out"`` or ``"extra_exclusion_errors"``.
        at_least: The smallest value that will do.
        at_most: The largest value that will do. Give one of the two.

    Raises:
        ValueError: Both limits are given, or none, or a protection is outside 0 to 1.

    Example:
        >>> limit = Constraint("singling_out", at_least=0.8)
        >>> limit.holds(Estimate(0.81, low=0.79, high=0.83))
        False
        >>> limit.words
        'singling-out protection of at least 0.8'
    """

    metric: str
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError(f"{self.metric} needs one limit: give at_least or at_most")
        limit = check.number(self.metric, self.at_most if self.at_least is None else self.at_least)
        if self.metric in PROTECTIONS:
            check.number(self.metric, limit, at_least=0, at_most=1, remedy="protection is from 0 to 1")

    @property
    def words(self) -> str:
        """For people."""
        limit = f"most {shown(self.at_most)}" if self.at_least is None else f"least {shown(self.at_least)}"
        return f"{in_words(self.metric)} of at {limit}"

    def holds(self, estimate: Estimate) -> bool:
        """Whether the safe end of the interval satisfies it; what is undefined does not."""
        if self.at_least is not None:
            return estimate.at_worst is not None and estimate.at_worst >= self.at_least
        return estimate.at_best is not None and self.at_most is not None and estimate.at_best <= self.at_most


@dataclass(frozen=True)
class CellResult:
    """A cell, its figures, and how it stands to what is asked.

    Args:
        cell: The release.
        figures: An estimate of each metric.
        excluded_by: What excludes it, in words; empty if nothing does.
        fails: The metrics that exclude it, in the same order.
        on_front: Whether it is on the Pareto front.

    Example:
        >>> from targetdp.tradeoff import Cell
        >>> CellResult(Cell("mine", "gaussian"), {}, ("it has no guarantee",), ("no guarantee",), False).name
        'mine'
    """

    cell: Cell
    figures: Mapping[str, Estimate]
    excluded_by: tuple[str, ...]
    fails: tuple[str, ...]
    on_front: bool

    @property
    def name(self) -> str:
        """The cell's name."""
        return self.cell.name


def read_figures(folder: Path) -> dict[str, dict[str, Estimate]]:
    """By cell and metric: figures about everybody, attacks by their worst setting, exact derivations.

    Args:
        folder: Of a finished sweep.

    Returns:
        For each cell's name, an `Estimate` for each metric.

    Raises:
        ValueError: The sweep has not ended, or was changed by hand: its file and `run.json` do not tell the
            same about where the figures come from.

    Example:
        >>> import tempfile
        >>> from targetdp.tradeoff import Grid, find_sweep, run, Sweep
        >>> grid = Grid(B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), mechanisms=("gaussian",), group_sizes=())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     finished = run(Sweep(find_sweep("togo").study, grid, simulations=1), Path(folder) / "sweep")
        ...     figures = read_figures(finished.folder)
        >>> figures["status quo"]["singling_out"].mean
        0.0
    """
    run = read_run(folder)
    try:
        table = pq.read_table(folder / SUMMARY, memory_map=False)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(
            f"{folder / SUMMARY} cannot be read: the sweep has not ended; run it again to finish it"
        ) from error
    must_agree(run, table.schema.metadata or {}, folder)
    _must_be_its_grid(run, folder)
    figures: dict[str, dict[str, Estimate]] = {}
    for row in table.to_pylist():
        if row["setting"] == _SETTINGS.get(row["metric"], EVERYBODY):
            estimate = Estimate(row["mean"], row["low"], row["high"])
            figures.setdefault(row["cell"], {})[row["metric"]] = estimate
    return figures


def _must_be_its_grid(run: Mapping[str, Any], folder: Path) -> None:
    """What a release file is made of must be what was swept: the grid is part of the fingerprint."""
    made_of = run["made_of"]
    if not {"grid", "release", "scales", "unit", "public_record"} <= set(made_of):
        raise ValueError(
            f"{folder}: run.json was made by another version of targetdp: run the sweep again in a new folder"
        )
    cells = [asdict(cell) for cell in Grid(**made_of["grid"]).cells(run["people"], run["rows"])]
    public_record = made_of["public_record"]
    stated = {name: run.get(name) for name in public_record}
    if run["cells"] != cells or run["release"] != made_of["release"] or stated != public_record:
        raise ValueError(
            f"{folder}: the cells, release settings or names of run.json are not those of its sweep: it was "
            "changed by hand; run the sweep again in a new folder"
        )


def in_words(metric: str) -> str:
    """A metric's name for people.

    Args:
        metric: As results call it.

    Returns:
        Its name in a sentence.

    Example:
        >>> in_words("exclusion_errors")
        'exclusion errors'
    """
    return _METRIC_NAMES.get(metric, metric.replace("_", " "))


def shown(value: float | None) -> str:
    """A number for people: whole where it is large.

    Args:
        value: The number; None where it is undefined.

    Returns:
        Its text.

    Example:
        >>> shown(12345.6), shown(0.68)
        ('12,346', '0.68')
    """
    if value is None:
        return "undefined"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

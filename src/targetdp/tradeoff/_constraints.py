"""Where each cell of a finished sweep stands: its figures, and which constraints exclude it."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from targetdp._core import check
from targetdp.tradeoff._metrics import ATTACKED, INFERENCE, in_words, metric_of, shown_limit
from targetdp.tradeoff._results import WORST
from targetdp.tradeoff._study import EVERYBODY, must_agree
from targetdp.tradeoff._sweep import Grid
from targetdp.tradeoff._sweep_folder import SUMMARY, read_run
from targetdp.tradeoff._technology import Cell

_SETTINGS = dict.fromkeys(ATTACKED, WORST) | {"distinguishing": "exact", "crowd": "typical"}
"""Which of a metric's lines counts, where it is not the one about everybody."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95% interval.

    Args:
        mean: None where undefined.
        low: The low end; None where one simulation knows no interval.
        high: The high end.
        strongest: For a figure that is the worst of several, which of them it comes from.
        noise: Half of an interval of noise alone; None where one simulation knows none.
        anyway: For guesses at hidden values, how often they are right without the release.
        right: How often with it.

    Example:
        >>> Estimate(0.81, low=0.79, high=0.83).at_worst
        0.79
    """

    mean: float | None = None
    low: float | None = None
    high: float | None = None
    strongest: str | None = None
    noise: float | None = None
    anyway: float | None = None
    right: float | None = None

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
        ValueError: Both limits are given, or none; a protection or a rate is outside 0 to 1, or a best guess
            outside 0.5 (a coin) to 1 or asked to be at least so often right.

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
        known = metric_of(self.metric)
        if known.between is not None:
            low, high = known.between
            remedy = f"{known.words} is from {low:g} to {high:g}"
            check.number(self.metric, limit, at_least=low, at_most=high, remedy=remedy)
        if known.kind in {"chance", "points"} and self.at_most is None:
            raise ValueError(f"{self.metric}: {known.words} should be small: give at_most")

    @property
    def limit(self) -> float:
        """The number."""
        return float(self.at_most if self.at_least is None else self.at_least)  # type: ignore[arg-type]

    @property
    def words(self) -> str:
        """For people."""
        end = "most" if self.at_least is None else "least"
        is_guess = self.metric.startswith("best_guess")
        return (
            f"{in_words(self.metric)} {'right in' if is_guess else 'of'} at {end} "
            f"{shown_limit(self.limit, self.metric)}{' of cases' if is_guess else ''}"
        )

    def holds(self, estimate: Estimate) -> bool:
        """Whether the safe end of the interval satisfies it; what is undefined does not."""
        if self.at_least is not None:
            return estimate.at_worst is not None and estimate.at_worst >= self.at_least
        return estimate.at_best is not None and self.at_most is not None and estimate.at_best <= self.at_most

    def missed_by(self, estimate: Estimate) -> float:
        """How far the safe end of the interval is from satisfying it; 0 or less if it does."""
        if self.at_least is not None:
            return math.inf if estimate.at_worst is None else self.at_least - estimate.at_worst
        return math.inf if estimate.at_best is None else estimate.at_best - self.limit


@dataclass(frozen=True)
class DefaultLimit:
    """A limit that is asked for where nobody asks for another.

    Args:
        constraint: The limit.
        reason: Why this number, in a sentence.

    Example:
        >>> [one.constraint.words for one in DEFAULT_LIMITS]
        ['singling-out protection of at least 0.8', 'inference protection of at least 0.7']
    """

    constraint: Constraint
    reason: str


DEFAULT_LIMITS = (
    DefaultLimit(
        Constraint("singling_out", at_least=0.8),
        "No rule sets this number: at 0.8, at least 4 of 5 people cannot be picked out as the only one in a "
        "box around a released row.",
    ),
    DefaultLimit(
        Constraint(INFERENCE, at_least=0.7),
        "No rule sets this number: at 0.7, guesses at a hidden value fail at least 7 times for people in the "
        "table where they fail 10 times for people outside it, by the strongest attack that was run, an "
        "insider's or a stranger's.",
    ),
)
"""What is asked for where nobody asks for another."""


def default_limits(folder: Path) -> tuple[DefaultLimit, ...]:
    """Those of `DEFAULT_LIMITS` that a sweep can be held against.

    Args:
        folder: Of a finished sweep.

    Returns:
        The defaults whose metric it measured: a table of one column has nothing to be guessed from.

    Raises:
        ValueError: The sweep has not ended, or was changed by hand.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     default_limits(Path(folder) / "sweep")
        Traceback (most recent call last):
        ...
        ValueError: ...sweep is no folder of a sweep (run.json cannot be read): check the name
    """
    measured = {metric for estimates in read_figures(folder).values() for metric in estimates}
    return tuple(one for one in DEFAULT_LIMITS if one.constraint.metric in measured)


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
        >>> CellResult(Cell("mine", "gaussian"), {}, ("it is no release",), ("no release",), False).name
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
            parts = (
                row.get(name) for name in ("mean", "low", "high", "strongest", "noise", "anyway", "right")
            )
            figures.setdefault(row["cell"], {})[row["metric"]] = Estimate(*parts)
    return figures


def _must_be_its_grid(run: Mapping[str, Any], folder: Path) -> None:
    """What a request is made of must be what was swept: the grid is part of the fingerprint."""
    made_of = run["made_of"]
    if not {"grid", "scales", "unit", "public_record"} <= set(made_of):
        raise ValueError(
            f"{folder}: run.json was made by another version of targetdp: run the sweep again in a new folder"
        )
    cells = [asdict(cell) for cell in Grid(**made_of["grid"]).cells(run["people"], run["rows"])]
    public_record = made_of["public_record"]
    stated = {name: run.get(name) for name in public_record}
    if run["cells"] != cells or stated != public_record:
        raise ValueError(
            f"{folder}: the cells or names of run.json are not those of its sweep: it was changed by hand; "
            "run the sweep again in a new folder"
        )

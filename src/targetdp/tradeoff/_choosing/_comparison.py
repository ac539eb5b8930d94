"""Everything that a decision page says of a finished sweep, worked out; pages only choose words and draw."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from targetdp.programs import objective_of
from targetdp.tradeoff._choosing._exposure import Exposure
from targetdp.tradeoff._choosing._groups import GroupFigures, groups_of
from targetdp.tradeoff._choosing._options import Option, options
from targetdp.tradeoff._choosing._recommend import Recommendation, recommend
from targetdp.tradeoff._constraints import (
    Constraint,
    DefaultLimit,
    Estimate,
    default_limits,
    read_figures,
)
from targetdp.tradeoff._run import CROWD
from targetdp.tradeoff._sweep_folder import SUMMARY
from targetdp.tradeoff._technology import STATUS_QUO, Cell


@dataclass(frozen=True)
class SettingFigures:
    """A setting of a sweep with its figures.

    Args:
        cell: The setting.
        figures: An estimate of each metric.
        exposure: What attackers reach.
        release: The name of the setting that is asked for in its place: its own, or that of one which is
            equal in distribution; None if no request can ask for it.
        on_front: Whether, among settings of its kind of release, no other is as good for the program and
            exposes as few people.

    Example:
        >>> SettingFigures(Cell("mine", "gaussian"), {}, Exposure(), None, on_front=False).choosable
        False
    """

    cell: Cell
    figures: Mapping[str, Estimate]
    exposure: Exposure
    release: str | None
    on_front: bool

    @property
    def choosable(self) -> bool:
        """Whether a request can ask for it, and for none that is equal in its place."""
        return self.release == self.cell.name


@dataclass(frozen=True)
class Comparison:
    """What a sweep lets people decide: today, every setting, the options, and what is recommended.

    Args:
        recommendation: What is recommended, with the sweep's record.
        defaults: The limits that hold because nobody asked for others.
        settings: Every setting, in the order of the sweep.
        options: At most three of them, from the least protection to the most.
        groups: Figures of groups.
        crowds: By B, how many people look alike there: what ``typical``, ``alone`` and ``looked_at`` mean is
            in the sweep's files.

    Example:
        >>> import tempfile
        >>> from targetdp.tradeoff import Grid, Sweep, find_sweep, run
        >>> grid = Grid(B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), mechanisms=("gaussian",), group_sizes=())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     finished = run(Sweep(find_sweep("togo").study, grid, simulations=1), Path(folder) / "sweep")
        ...     comparison = compare(finished.folder, [Constraint("singling_out", at_least=0.1)])
        >>> comparison.options[0].cell
        'gaussian B=2 epsilon=3.5'
    """

    recommendation: Recommendation
    defaults: tuple[DefaultLimit, ...]
    settings: tuple[SettingFigures, ...]
    options: tuple[Option, ...]
    groups: GroupFigures
    crowds: Mapping[float, Mapping[str, float]]

    @property
    def run(self) -> Mapping[str, Any]:
        """The sweep's record."""
        return self.recommendation.run

    @property
    def today(self) -> SettingFigures:
        """The program as it is, without privacy."""
        return next(one for one in self.settings if one.cell.name == STATUS_QUO)

    @property
    def population(self) -> float:
        """How many people the program decides about."""
        found = self.today.figures.get("population", Estimate()).mean
        return float(self.run["people"]) if found is None else found


def compare(folder: Path, constraints: Iterable[Constraint] = ()) -> Comparison:
    """Work out what a finished sweep lets people decide.

    Args:
        folder: Of a finished sweep.
        constraints: What must hold; where none is given the defaults do.

    Returns:
        Every setting, the options among them, and the recommendation.

    Raises:
        ValueError: As `recommend`.

    Example:
        >>> compare(Path("nowhere"))
        Traceback (most recent call last):
        ...
        ValueError: nowhere is no folder of a sweep (run.json cannot be read): check the name
    """
    asked = tuple(constraints)
    defaults = () if asked else default_limits(folder)
    recommendation = recommend(folder, asked or [one.constraint for one in defaults])
    run, figures = recommendation.run, read_figures(folder)
    releases = {one.cell.experiment: one.name for one in recommendation.results if one.cell.why_not is None}
    cells = [Cell(**record) for record in run["cells"]]
    exposures = {cell.name: Exposure.of(figures[cell.name]) for cell in cells}
    front = _fronts(run["objective"], cells, figures, exposures)
    settings = tuple(
        SettingFigures(
            cell, figures[cell.name], exposures[cell.name], releases.get(cell.experiment), cell.name in front
        )
        for cell in cells
    )
    picked = options(
        run["objective"], recommendation.results, recommendation.chosen, figures[STATUS_QUO], run["chance"]
    )
    groups = groups_of(folder, objective_of(run))
    return Comparison(recommendation, defaults, settings, picked, groups, _crowds(folder))


def _fronts(
    objective: Mapping[str, str],
    cells: Iterable[Cell],
    figures: Mapping[str, Mapping[str, Estimate]],
    exposures: Mapping[str, Exposure],
) -> set[str]:
    """Names of the settings that are on the front of their kind of release."""
    by_form: dict[str, list[tuple[float, float, str]]] = {}
    for cell in cells:
        value, exposed = figures[cell.name][objective["metric"]].mean, exposures[cell.name].exposed
        if value is not None and exposed is not None:
            cost = value if objective["best"] == "smallest" else -value
            by_form.setdefault(cell.technology.form, []).append((exposed, cost, cell.name))
    found: set[str] = set()
    for points in by_form.values():
        lowest = None
        for _, cost, name in sorted(points):
            if lowest is None or cost < lowest:
                lowest = cost
                found.add(name)
    return found


def _crowds(folder: Path) -> dict[float, dict[str, float]]:
    table = pq.read_table(folder / SUMMARY, columns=["B", "metric", "setting", "mean"], memory_map=False)
    crowds: dict[float, dict[str, float]] = {}
    for row in table.to_pylist():
        if row["metric"] == CROWD:
            crowds.setdefault(row["B"], {})[row["setting"]] = row["mean"]
    return crowds

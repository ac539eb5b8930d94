"""Who bears it: a sweep's figures of every group, today and at each setting."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from targetdp.programs import Objective
from targetdp.tradeoff._constraints import Estimate
from targetdp.tradeoff._metrics import FEW_WANTED
from targetdp.tradeoff._sweep_folder import SUMMARY
from targetdp.tradeoff._technology import STATUS_QUO

_Figures = Mapping[str, Mapping[str, Mapping[str, Estimate]]]


@dataclass(frozen=True)
class Group:
    """One group of people.

    Args:
        column: The column that divides people.
        name: The group's name in it.
        people: How many people it stands for.

    Example:
        >>> Group("region", "Lomé", 2_188_000.0).setting
        'region=Lomé'
    """

    column: str
    name: str
    people: float

    @property
    def setting(self) -> str:
        """As results name it."""
        return f"{self.column}={self.name}"


@dataclass(frozen=True)
class GroupFigures:
    """What a sweep says of groups.

    Args:
        each: The groups, in the order of the results.
        figures: Estimates by cell, metric and group.
        changes: The same against today.
        too_few: Those with too few people whom the program is for to be the worst-hit one.

    Example:
        >>> GroupFigures((), {}, {}).figure("status quo", "exclusion_rate", Group("sex", "female", 10.0)).mean
    """

    each: tuple[Group, ...]
    figures: _Figures
    changes: _Figures
    too_few: tuple[Group, ...] = ()

    def figure(self, cell: str, metric: str, group: Group) -> Estimate:
        """A figure of a group; undefined where it was not measured."""
        return self.figures.get(cell, {}).get(metric, {}).get(group.setting, Estimate())

    def change(self, cell: str, metric: str, group: Group) -> Estimate:
        """A figure of a group against today's."""
        return self.changes.get(cell, {}).get(metric, {}).get(group.setting, Estimate())


def groups_of(folder: Path, objective: Objective) -> GroupFigures:
    """Read the figures of groups from a sweep's summary."""
    table = pq.read_table(
        folder / SUMMARY, columns=["cell", "metric", "setting", "mean", "low", "high", "change"],
        memory_map=False,
    )  # fmt: skip
    rate = () if objective.rate is None else (objective.rate.metric, f"extra_{objective.rate.metric}")
    wanted = {*(metric for metric, _ in objective.by_group), objective.metric, *rate}
    figures: dict[str, dict[str, dict[str, Estimate]]] = {}
    changes: dict[str, dict[str, dict[str, Estimate]]] = {}
    groups: list[Group] = []
    few: set[str] = set()
    for row in table.to_pylist():
        column, split, name = row["setting"].partition("=")
        if not split:
            continue
        if row["metric"] == "population" and row["cell"] == STATUS_QUO:
            groups.append(Group(column, name, row["mean"] or 0.0))
        if row["metric"] == FEW_WANTED:
            few.add(row["setting"])
        if row["metric"] in wanted:
            estimate = Estimate(row["mean"], row["low"], row["high"])
            figures.setdefault(row["cell"], {}).setdefault(row["metric"], {})[row["setting"]] = estimate
            changes.setdefault(row["cell"], {}).setdefault(row["metric"], {})[row["setting"]] = _change(row)
    too_few = tuple(group for group in groups if group.setting in few)
    return GroupFigures(tuple(groups), figures, changes, too_few)


def _change(row: Mapping[str, Any]) -> Estimate:
    """The change against today; the interval is that of the figure, moved by the same amount."""
    if row["change"] is None or row["mean"] is None:
        return Estimate()
    before = row["mean"] - row["change"]
    low, high = (None if row[end] is None else row[end] - before for end in ("low", "high"))
    return Estimate(row["change"], low, high)

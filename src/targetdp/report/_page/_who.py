"""Who bears the cost: what a setting changes for each group."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from targetdp.attacks import in_a_sentence
from targetdp.report._page._answer import Subject
from targetdp.tradeoff import CROWD, STATUS_QUO, SUMMARY

_MOST = 10_000
"""Groups times settings that a page carries at most (about half a megabyte): it must fit into an e-mail."""

Values = tuple[float | None, float | None, float | None]


@dataclass(frozen=True)
class Group:
    """A group of people: the column that divides them, its name, and how many it stands for."""

    column: str
    name: str
    population: float


@dataclass(frozen=True)
class ByGroup:
    """What a sweep says of groups: changes for every cell, and how many people look alike at each B."""

    subject: Subject
    groups: tuple[Group, ...]
    changes: Mapping[str, Mapping[str, Mapping[str, Values]]]
    too_many: bool
    crowds: Mapping[float, Mapping[str, float]]
    people: int

    def crowd(self, B: float) -> str:
        """What B means on the table, in a sentence."""
        if not {"typical", "alone", "looked_at"} <= set(self.crowds.get(B, {})):
            return "How many people look alike at this B was not counted in this sweep."
        known = self.crowds[B]
        looked_at = round(known["looked_at"])
        return in_a_sentence(B, known["typical"], known["alone"], looked_at, self.people)

    def of(self, cell: str) -> list[list[list[float | None]]]:
        """For each group and figure of the subject: mean change, low and high end."""
        if self.too_many:
            return []
        known = self.changes.get(cell, {})
        return [
            [
                _rounded(known.get(metric, {}).get(f"{g.column}={g.name}", (None, None, None)))
                for metric, _ in self.subject.by_group
            ]
            for g in self.groups
        ]

    def record(self) -> dict[str, Any]:
        """The groups and what the figures are called."""
        return {
            "headings": [heading for _, heading in self.subject.by_group],
            "of": [[g.column, g.name, g.population] for g in self.groups],
            "too_many": self.too_many,
        }


def by_group(folder: Path, subject: Subject, people: int) -> ByGroup:
    """Read the changes by group from a sweep's summary."""
    table = pq.read_table(
        folder / SUMMARY, columns=["cell", "B", "metric", "setting", "mean", "low", "high", "change"],
        memory_map=False,
    )  # fmt: skip
    wanted = {metric for metric, _ in subject.by_group}
    changes: dict[str, dict[str, dict[str, Values]]] = {}
    groups: list[Group] = []
    crowds: dict[float, dict[str, float]] = {}
    for row in table.to_pylist():
        if row["metric"] == CROWD:
            crowds.setdefault(row["B"], {})[row["setting"]] = row["mean"]
        column, split, name = row["setting"].partition("=")
        if not split:
            continue
        if row["metric"] == "population" and row["cell"] == STATUS_QUO:
            groups.append(Group(column, name, row["mean"] or 0.0))
        if row["metric"] in wanted:
            changes.setdefault(row["cell"], {}).setdefault(row["metric"], {})[row["setting"]] = _change(row)
    return ByGroup(subject, tuple(groups), changes, len(groups) * len(changes) > _MOST, crowds, people)


def _change(row: Mapping[str, Any]) -> Values:
    """The change against today; the interval is that of the figure, moved by the same amount."""
    if row["change"] is None or row["mean"] is None:
        return (None, None, None)
    before = row["mean"] - row["change"]
    low, high = (None if row[end] is None else row[end] - before for end in ("low", "high"))
    return row["change"], low, high


def _rounded(values: Values) -> list[float | None]:
    return [None if value is None else float(f"{value:.5g}") for value in values]

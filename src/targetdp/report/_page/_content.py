"""Everything that a page shows, as plain data: worked out here, drawn elsewhere.

Sentences are made once, for every setting, so that what a reader sees after moving a slider was written and
rounded by the same code as what stands at the top.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from targetdp._core import Progress, Silent, up
from targetdp.attacks import in_a_sentence
from targetdp.programs import MARK as FOR_THE_HOLDER
from targetdp.report._page import _words as answer
from targetdp.report._page._promise import AtDistance, at_distances, profiles
from targetdp.report._page._words import PROTECTIONS, Subject, label, subject_of
from targetdp.theorem1 import accuracy_ceiling
from targetdp.tradeoff import (
    CROWD,
    STATUS_QUO,
    SUMMARY,
    Cell,
    Constraint,
    Estimate,
    Recommendation,
    can_be_made,
    format_guarantee,
    promise_of,
    promised_epsilon,
    read_figures,
    recommend,
    release_text,
)

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


# The content.

Data = dict[str, Any]

USUAL = {"singling_out": 0.8, "attribute_inference": 0.7}
"""Protection that a page asks for unless told otherwise."""


@dataclass(frozen=True)
class Content:
    """What a page is made of. ``data`` is plain, and goes into the page for its controls and charts."""

    run: Mapping[str, Any]
    subject: Subject
    found: Recommendation
    population: float
    data: Data

    @property
    def marked(self) -> bool:
        """Whether the page is for the data holder only."""
        return self.found.for_the_data_holder_only

    @property
    def mark(self) -> str | None:
        """What a page of confidential rows says on every section."""
        return FOR_THE_HOLDER if self.marked else None

    @property
    def chosen(self) -> Data | None:
        """The recommended setting."""
        at = self.data["chosen"]
        return None if at is None else dict(self.data["cells"][at])


def usual_limits(folder: Path) -> tuple[Constraint, ...]:
    """What is asked for if nobody says: a decent protection from each attack that the sweep has run."""
    known = {metric for figures in read_figures(folder).values() for metric in figures}
    return tuple(Constraint(name, at_least=value) for name, value in USUAL.items() if name in known)


def content(folder: Path, constraints: Iterable[Constraint], *, progress: Progress | None = None) -> Content:
    """Read a finished sweep, recommend a setting, and work out all that its page says."""
    found = recommend(folder, constraints)
    run, figures = found.run, read_figures(folder)
    subject = subject_of(run)
    today = figures[STATUS_QUO]
    population = today["population"].mean or float(run["people"])
    groups = by_group(folder, subject, run["people"])
    aim = run["objective"]["metric"]
    wanted = (subject.metric, aim, "accuracy", *PROTECTIONS, *(one.metric for one in found.constraints))
    choosable = {one.name for one in found.standings if _choosable(one.cell)}
    numbers = {cell["name"]: number for number, cell in enumerate(run["cells"])}
    releases = _releases(run["cells"], choosable)
    watch = progress or Silent()
    watch.phase("settings", len(run["cells"]))
    curves: dict[str, tuple[AtDistance, ...]] = {}
    cells = []
    for number, cell in enumerate(run["cells"]):
        known = _shared_curve(curves, cell, len(run["features"]))
        figure = figures[cell["name"]]
        cells.append(
            {
                "i": number,
                "name": cell["name"],
                "label": label(cell),
                "mechanism": cell["mechanism"],
                "B": cell["B"],
                "epsilon": cell["epsilon"],
                "group_size": cell["group_size"],
                "choosable": cell["name"] in choosable,
                "release": releases.get(Cell(**cell).experiment),
                "figures": _figures(figure, wanted),
            }
        )
        if cell["name"] in choosable:
            cells[-1] |= _told(run, cell, figure, today, subject, population, known, groups)
            cells[-1]["toml"] = release_text(run, cell)
            cells[-1]["groups"] = groups.of(cell["name"])
        watch.advance(1)
    chosen = None if found.chosen is None else numbers[found.chosen.name]
    data = {
        "program": run["program"], "kind": run["kind"], "unit": subject.unit, "metric": subject.metric,
        "objective": aim, "better": subject.better, "axis": subject.axis, "source": run["source"],
        "protections": [name for name in PROTECTIONS if any(name in f for f in figures.values())],
        "delta": next((cell["delta"] for cell in run["cells"] if cell["delta"] is not None), None),
        "groups": groups.record(), "features": list(run["features"]),
        "asked": [_limit(one) for one in found.constraints], "chosen": chosen, "cells": cells,
        "why_none": None if found.chosen is not None else found.reason,
    }  # fmt: skip
    return Content(run, subject, found, population, data)


def _choosable(cell: Mapping[str, Any]) -> bool:
    """What may be handed over: a release with a guarantee that `targetdp privatize` can make."""
    return cell["epsilon"] is not None and can_be_made(cell)


def _releases(cells: Sequence[Mapping[str, Any]], choosable: set[str]) -> dict[str, int]:
    """By experiment, the number of the cell that can be chosen: of those equal in distribution it is one."""
    return {Cell(**cell).experiment: i for i, cell in enumerate(cells) if cell["name"] in choosable}


def _figures(figures: Mapping[str, Estimate], wanted: Iterable[str]) -> dict[str, list[float | None]]:
    return {
        name: [_finite(end) for end in (figures[name].mean, figures[name].low, figures[name].high)]
        for name in dict.fromkeys(wanted) if name in figures
    }  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None


def _shared_curve(
    known: dict[str, tuple[AtDistance, ...]], cell: Mapping[str, Any], dimensions: int
) -> tuple[AtDistance, ...]:
    """Cells equal in distribution have one curve."""
    made = Cell(**cell)
    if not _choosable(cell):
        return ()
    if made.experiment not in known:
        known[made.experiment] = at_distances(made, dimensions)
    return known[made.experiment]


def _told(
    run: Mapping[str, Any], cell: Mapping[str, Any], figure: Mapping[str, Estimate],
    today: Mapping[str, Estimate], subject: Subject, population: float, curve: Sequence[AtDistance],
    groups: ByGroup,
) -> Data:  # fmt: skip
    """What a page says of a setting that can be chosen."""
    promise = promise_of(cell)
    assert promise is not None  # noqa: S101 (choosable settings have one)
    guesses = {at.distance: at.guess for at in curve}
    about = Cell(**cell).technology.about_attacks
    told = profiles(run["features"], run["made_of"].get("scales"), promise.B)
    return {
        "promise": {"B": promise.B, "epsilon": promise.epsilon, "delta": promise.delta},
        "promise_told": format_guarantee(promise),
        "promised_epsilon": promised_epsilon(cell),
        "ceiling": accuracy_ceiling(promise),
        "cost": answer.cost(subject, figure, today, population),
        "exchange": [*answer.exchange(figure, today), *([about] if about else [])],
        "derived": answer.derived(guesses[promise.B], guesses.get(2.0), promise.B),
        "curve": [[at.distance, _up(at.epsilon), _up(at.guess)] for at in curve],
        "crowd": groups.crowd(promise.B),
        "profiles": None if told is None else [[t.one, t.other, t.alone] for t in told],
    }


def _up(value: float | None) -> float | None:
    """Five digits are enough for a curve; never less than was computed."""
    return None if value is None else float(up(value, 5))


def _limit(constraint: Constraint) -> Data:
    return {"metric": constraint.metric, "at_least": constraint.at_least, "at_most": constraint.at_most}

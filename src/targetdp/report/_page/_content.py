"""Everything that a page shows, as plain data: worked out here, drawn elsewhere.

Sentences are made once, for every setting, so that what a reader sees after moving a slider was written and
rounded by the same code as what stands at the top.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from targetdp._core import Progress, Silent, up
from targetdp.attacks import in_a_sentence
from targetdp.programs import MARK as FOR_THE_HOLDER
from targetdp.report._page._promise import at_distances, profiles
from targetdp.report._page._words import PROTECTIONS, Subject, cost, derived, exchange, label, subject_of
from targetdp.theorem1 import accuracy_ceiling
from targetdp.tradeoff import (
    CROWD,
    STATUS_QUO,
    SUMMARY,
    Cell,
    Constraint,
    Recommendation,
    format_guarantee,
    read_figures,
    recommend,
    release_text,
)

_MOST = 10_000
"""Groups times settings that a page carries at most (about half a megabyte): it must fit into an e-mail."""

Values = tuple[float | None, float | None, float | None]


@dataclass(frozen=True)
class ByGroup:
    """What a sweep says of groups: changes for every cell, and how many people look alike at each B.

    ``groups`` are the column that divides people, the group's name, and how many people it stands for.
    """

    subject: Subject
    groups: tuple[tuple[str, str, float], ...]
    changes: Mapping[str, Mapping[str, Mapping[str, Values]]]
    crowds: Mapping[float, Mapping[str, float]]
    people: int

    @property
    def too_many(self) -> bool:
        """Whether a page cannot carry them all."""
        return len(self.groups) * len(self.changes) > _MOST

    def crowd(self, B: float) -> str:
        """What B means on the table, in a sentence."""
        known = self.crowds.get(B, {})
        if not {"typical", "alone", "looked_at"} <= set(known):
            return "How many people look alike at this B was not counted in this sweep."
        return in_a_sentence(B, known["typical"], known["alone"], round(known["looked_at"]), self.people)

    def of(self, cell: str) -> list[list[list[float | None]]]:
        """For each group and figure of the subject: mean change, low and high end."""
        if self.too_many:
            return []
        known = self.changes.get(cell, {})
        return [
            [
                _rounded(known.get(metric, {}).get(f"{column}={name}", (None, None, None)))
                for metric, _ in self.subject.by_group
            ]
            for column, name, _ in self.groups
        ]

    def record(self) -> dict[str, Any]:
        """The groups and what the figures are called."""
        headings = [heading for _, heading in self.subject.by_group]
        return {"headings": headings, "of": list(map(list, self.groups)), "too_many": self.too_many}


def by_group(folder: Path, subject: Subject, people: int) -> ByGroup:
    """Read the changes by group from a sweep's summary."""
    table = pq.read_table(
        folder / SUMMARY, columns=["cell", "B", "metric", "setting", "mean", "low", "high", "change"],
        memory_map=False,
    )  # fmt: skip
    wanted = {metric for metric, _ in subject.by_group}
    changes: dict[str, dict[str, dict[str, Values]]] = {}
    groups: list[tuple[str, str, float]] = []
    crowds: dict[float, dict[str, float]] = {}
    for row in table.to_pylist():
        if row["metric"] == CROWD:
            crowds.setdefault(row["B"], {})[row["setting"]] = row["mean"]
        column, split, name = row["setting"].partition("=")
        if not split:
            continue
        if row["metric"] == "population" and row["cell"] == STATUS_QUO:
            groups.append((column, name, row["mean"] or 0.0))
        if row["metric"] in wanted:
            changes.setdefault(row["cell"], {}).setdefault(row["metric"], {})[row["setting"]] = _change(row)
    return ByGroup(subject, tuple(groups), changes, crowds, people)


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
    recommendation: Recommendation
    population: float
    data: Data

    @property
    def marked(self) -> bool:
        """Whether the page is for the data holder only."""
        return self.recommendation.for_the_data_holder_only

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
    recommendation = recommend(folder, constraints)
    run, figures = recommendation.run, read_figures(folder)
    subject, today = subject_of(run), figures[STATUS_QUO]
    population = today["population"].mean or float(run["people"])
    groups = by_group(folder, subject, run["people"])
    aim, asked = run["objective"]["metric"], recommendation.constraints
    metrics = (subject.metric, aim, "accuracy", *PROTECTIONS, *(one.metric for one in asked))
    cells = [Cell(**record) for record in run["cells"]]
    numbers = {cell.name: number for number, cell in enumerate(cells)}
    # What may be handed over: a release with a guarantee that `targetdp privatize` can make.
    choosable = {
        one.cell.experiment: one.name for one in recommendation.results
        if one.cell.epsilon is not None and one.cell.why_not is None
    }  # fmt: skip
    watch = progress or Silent()
    watch.phase("settings", len(cells))
    settings = []
    for number, cell in enumerate(cells):
        estimates, release = figures[cell.name], choosable.get(cell.experiment)
        setting = {
            "i": number, "name": cell.name, "label": label(cell), "mechanism": cell.mechanism, "B": cell.B,
            "epsilon": cell.epsilon, "group_size": cell.group_size, "choosable": cell.name == release,
            "release": None if release is None else numbers[release],
            "figures": {
                name: [_finite(getattr(estimates[name], end)) for end in ("mean", "low", "high")]
                for name in dict.fromkeys(metrics) if name in estimates
            },
        }  # fmt: skip
        if setting["choosable"]:
            setting |= _promise(run, cell) | {
                "cost": cost(subject, estimates, today, population),
                "exchange": [*exchange(estimates, today), *filter(None, [cell.technology.about_attacks])],
                "crowd": groups.crowd(cell.calibrated_to.B),
                "groups": groups.of(cell.name),
            }
        settings.append(setting)
        watch.advance(1)
    chosen = recommendation.chosen
    data = {
        "program": run["program"], "kind": run["kind"], "unit": subject.unit, "metric": subject.metric,
        "objective": aim, "better": subject.better, "axis": subject.axis, "source": run["source"],
        "protections": [name for name in PROTECTIONS if any(name in f for f in figures.values())],
        "delta": next((cell.delta for cell in cells if cell.delta is not None), None),
        "groups": groups.record(), "features": list(run["features"]),
        "asked": [asdict(one) for one in asked], "cells": settings,
        "chosen": None if chosen is None else numbers[chosen.name],
        "why_none": None if chosen is not None else recommendation.reason,
    }  # fmt: skip
    return Content(run, subject, recommendation, population, data)


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None


def _promise(run: Mapping[str, Any], cell: Cell) -> Data:
    """What a page says of the promise of a setting that can be chosen."""
    promise = cell.promise
    assert promise is not None  # noqa: S101 (choosable settings have one)
    curve = at_distances(cell, len(run["features"]))
    guesses = {at.distance: at.guess for at in curve}
    traits = profiles(run["features"], run["made_of"].get("scales"), promise.B)
    return {
        "promise": asdict(promise),
        "promise_told": format_guarantee(promise),
        "promised_epsilon": promise.epsilon,
        "ceiling": accuracy_ceiling(promise),
        "derived": derived(guesses[promise.B], guesses.get(2.0), promise.B),
        "curve": [[at.distance, _up(at.epsilon), _up(at.guess)] for at in curve],
        "profiles": None if traits is None else [[t.one, t.other, t.alone] for t in traits],
        "toml": release_text(run, cell),
    }


def _up(value: float | None) -> float | None:
    """Five digits are enough for a curve; never less than was computed."""
    return None if value is None else float(up(value, 5))

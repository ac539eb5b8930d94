"""Everything that a page shows, as plain data: worked out here, drawn elsewhere.

Sentences are made once, for every setting, so that what a reader sees after moving a slider was written and
rounded by the same code as what stands at the top.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from targetdp._core import Progress, Silent, percent_up, up
from targetdp.attacks import in_a_sentence
from targetdp.programs import MARK as FOR_THE_HOLDER
from targetdp.release import format_guarantee
from targetdp.report._page._promise import agreement, at_distances, profiles
from targetdp.report._page._words import (
    PROTECTIONS,
    Subject,
    columns_of,
    cost,
    derived,
    exchange,
    label,
    points_up,
    quick_look,
    subject_of,
    whole,
    with_interval,
    worst_hit,
)
from targetdp.tradeoff import (
    CROWD,
    STATUS_QUO,
    SUMMARY,
    Cell,
    Constraint,
    DefaultLimit,
    Estimate,
    Recommendation,
    default_limits,
    in_words,
    read_figures,
    recommend,
    request_text,
)

_MOST = 10_000
"""Groups times settings that a page carries at most (about half a megabyte): it must fit into an e-mail."""

Data = dict[str, Any]


@dataclass(frozen=True)
class ByGroup:
    """What a sweep says of groups: figures of every cell, and how many people look alike at each B.

    ``groups`` are the column that divides people, the group's name, and how many people it stands for;
    ``figures`` and ``changes`` (against today) are by cell, metric and group.
    """

    subject: Subject
    groups: tuple[tuple[str, str, float], ...]
    figures: Mapping[str, Mapping[str, Mapping[str, Estimate]]]
    changes: Mapping[str, Mapping[str, Mapping[str, Estimate]]]
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

    def of(self, cell: str) -> list[Data]:
        """For each group: what is drawn (mean change, low and high end), and the texts of its row."""
        if self.too_many:
            return []
        first, *_ = self.subject.by_group
        return [
            {
                "drawn": _rounded(self._change(cell, first[0], f"{column}={name}")),
                "told": self._told(cell, f"{column}={name}"),
            }
            for column, name, _ in self.groups
        ]

    def _told(self, cell: str, group: str) -> list[str]:
        """The rate today and then, and its change, where the program has one; then every change."""
        told = [
            with_interval(self._change(cell, metric, group), partial(self.subject.changed, metric))
            for metric, _ in self.subject.by_group
        ]
        if self.subject.objective.rate is None:
            return told
        rate = self.subject.objective.rate.metric
        today, then = (
            with_interval(self.figures.get(name, {}).get(rate, {}).get(group, Estimate()), percent_up)
            for name in (STATUS_QUO, cell)
        )
        return [today, then, with_interval(self._change(cell, f"extra_{rate}", group), points_up), *told]

    def _change(self, cell: str, metric: str, group: str) -> Estimate:
        return self.changes.get(cell, {}).get(metric, {}).get(group, Estimate())

    def record(self) -> dict[str, Any]:
        """The groups, and what the columns of their table are called."""
        rate = self.subject.objective.rate
        rates = [] if rate is None else [f"{rate.words}, today", f"{rate.words}, then", "change, in points"]
        changes = [f"{heading}, against today" for _, heading in self.subject.by_group]
        groups = [[column, name, whole(many)] for column, name, many in self.groups]
        return {
            "headings": [*rates, *changes], "changes": len(changes), "of": groups, "too_many": self.too_many,
        }  # fmt: skip


def by_group(folder: Path, subject: Subject, people: int) -> ByGroup:
    """Read the figures of groups from a sweep's summary."""
    table = pq.read_table(
        folder / SUMMARY, columns=["cell", "B", "metric", "setting", "mean", "low", "high", "change"],
        memory_map=False,
    )  # fmt: skip
    rate = () if subject.objective.rate is None else (subject.objective.rate.metric,)
    wanted = {*(metric for metric, _ in subject.by_group), *rate, *(f"extra_{name}" for name in rate)}
    figures: dict[str, dict[str, dict[str, Estimate]]] = {}
    changes: dict[str, dict[str, dict[str, Estimate]]] = {}
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
            estimate = Estimate(row["mean"], row["low"], row["high"])
            figures.setdefault(row["cell"], {}).setdefault(row["metric"], {})[row["setting"]] = estimate
            changes.setdefault(row["cell"], {}).setdefault(row["metric"], {})[row["setting"]] = _change(row)
    return ByGroup(subject, tuple(groups), figures, changes, crowds, people)


def _change(row: Mapping[str, Any]) -> Estimate:
    """The change against today; the interval is that of the figure, moved by the same amount."""
    if row["change"] is None or row["mean"] is None:
        return Estimate()
    before = row["mean"] - row["change"]
    low, high = (None if row[end] is None else row[end] - before for end in ("low", "high"))
    return Estimate(row["change"], low, high)


def _rounded(values: Estimate) -> list[float | None]:
    return [
        None if value is None else float(f"{value:.5g}") for value in (values.mean, values.low, values.high)
    ]


# The content.


@dataclass(frozen=True)
class Content:
    """What a page is made of. ``data`` is plain, and goes into the page for its controls and charts."""

    run: Mapping[str, Any]
    subject: Subject
    recommendation: Recommendation
    population: float
    data: Data
    defaults: tuple[DefaultLimit, ...] = ()

    @property
    def marked(self) -> bool:
        """Whether the page is for the data holder only."""
        return self.recommendation.for_the_data_holder_only

    @property
    def mark(self) -> str | None:
        """What a page of confidential rows says on every section."""
        return FOR_THE_HOLDER if self.marked else None

    @property
    def first_look(self) -> str | None:
        """What a page of a quick look says at its top."""
        return quick_look(reasons) if (reasons := self.recommendation.first_look) else None

    @property
    def chosen(self) -> Data | None:
        """The recommended setting."""
        at = self.data["chosen"]
        return None if at is None else dict(self.data["cells"][at])


def content(
    folder: Path, constraints: Iterable[Constraint] = (), *, progress: Progress | None = None
) -> Content:
    """Read a finished sweep, recommend a setting, and work out all that its page says.

    Where no constraint is given the defaults hold, and the page calls them so.
    """
    asked = tuple(constraints)
    defaults = () if asked else default_limits(folder)
    recommendation = recommend(folder, asked or [one.constraint for one in defaults])
    run, figures = recommendation.run, read_figures(folder)
    subject, today = subject_of(run), figures[STATUS_QUO]
    population = today["population"].mean or float(run["people"])
    groups = by_group(folder, subject, run["people"])
    aim, asked = run["objective"]["metric"], recommendation.constraints
    measured = {metric for estimates in figures.values() for metric in estimates}
    columns = [column for column in columns_of(subject) if column.metric in measured]
    metrics = {aim, *(column.metric for column in columns), *(one.metric for one in asked)}
    cells = [Cell(**record) for record in run["cells"]]
    numbers = {cell.name: number for number, cell in enumerate(cells)}
    # What may be asked for.
    choosable = {
        one.cell.experiment: one.name for one in recommendation.results if one.cell.why_not is None
    }  # fmt: skip
    watch = progress or Silent()
    watch.phase("settings", len(cells))
    settings = []
    for number, cell in enumerate(cells):
        estimates, release = figures[cell.name], choosable.get(cell.experiment)
        setting = {
            "i": number, "name": cell.name, "label": label(cell), "mechanism": cell.mechanism, "B": cell.B,
            "epsilon": cell.epsilon, "group_size": cell.group_size, "choosable": cell.name == release,
            "condition": cell.technology.condition,
            "release": None if release is None else numbers[release],
            "figures": {
                name: [_finite(end) for end in (value.mean, value.low, value.high, value.noise)]
                for name, value in estimates.items() if name in metrics
            },
            "told": {
                column.metric: with_interval(estimates.get(column.metric, Estimate()), column.told)
                for column in columns
            },
        }  # fmt: skip
        if setting["choosable"]:
            setting |= _promise(run, cell) | {
                "cost": cost(subject, estimates, today, population),
                "exchange": [*exchange(estimates, today), *filter(None, [cell.technology.about_attacks])],
                "crowd": groups.crowd(cell.calibrated_to.B),
                "groups": groups.of(cell.name),
                "worst_hit": worst_hit(subject, estimates),
            }
        settings.append(setting)
        watch.advance(1)
    chosen = recommendation.chosen
    data = {
        "program": run["program"], "kind": run["kind"], "unit": subject.unit, "metric": subject.metric,
        "objective": aim, "better": subject.better, "axis": subject.axis, "source": run["source"],
        "protections": [name for name in PROTECTIONS if name in measured],
        "columns": [[column.metric, column.heading] for column in columns],
        "controls": [column.control for column in columns if column.limit is not None],
        "delta": next((cell.delta for cell in cells if cell.delta is not None), None),
        "groups": groups.record(), "features": list(run["features"]),
        "asked": [asdict(one) | {"words": one.words, "name": in_words(one.metric)} for one in asked],
        "first_look": list(recommendation.first_look), "cells": settings,
        "chosen": None if chosen is None else numbers[chosen.name],
        "why_none": None if chosen is not None else recommendation.reason,
    }  # fmt: skip
    return Content(run, subject, recommendation, population, data, defaults)


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
        "agreement": agreement(promise),
        "derived": derived(guesses[promise.B], guesses.get(2.0), promise.B),
        "curve": [[at.distance, _up(at.epsilon), _thousandths_up(at.guess)] for at in curve],
        "profiles": None if traits is None else [t.told for t in traits],
        "toml": request_text(run, cell),
    }


def _up(value: float | None) -> float | None:
    """Five digits are enough for a curve; never less than was computed."""
    return None if value is None else float(up(value, 5))


def _thousandths_up(guess: float) -> float:
    """A best guess as sentences and tables have it: rounded up, so that 0.7712 is drawn and told as 77.2%."""
    return math.ceil(guess * 1000 - 1e-9) / 1000

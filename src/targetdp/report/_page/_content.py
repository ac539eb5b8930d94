"""Everything that a page shows, as plain data and words: worked out in `targetdp.tradeoff`, told here.

Sentences are made once, for every setting, so that what a reader sees after choosing was written and rounded
by the same code as what stands at the top.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from targetdp._core import Progress, Silent, percent_up, up
from targetdp.attacks import in_a_sentence
from targetdp.programs import MARK as FOR_THE_HOLDER
from targetdp.release import format_guarantee
from targetdp.report._page._first_screen import (
    Said,
    advised_in_words,
    best_in_words,
    what_a_stranger_gets,
    what_an_insider_gets,
    what_is_guessed,
    what_it_costs,
    who_is_hit,
)
from targetdp.report._page._limits import limits_of
from targetdp.report._page._svg import dots
from targetdp.report._page._words import (
    Subject,
    columns_of,
    cost,
    derived,
    exchange,
    group_name,
    label,
    points_up,
    quick_look,
    subject_of,
    with_interval,
    worst_hit,
)
from targetdp.tradeoff import (
    STATUS_QUO,
    Cell,
    Comparison,
    Constraint,
    Estimate,
    Group,
    SettingFigures,
    agreement,
    at_distances,
    compare,
    in_words,
    profiles,
    request_text,
)

_MOST = 10_000
"""Groups times settings that a page carries at most (about half a megabyte): it must fit into an e-mail."""

Data = dict[str, Any]


@dataclass(frozen=True)
class Content:
    """What a page is made of. ``data`` is plain, and goes into the page for its script."""

    comparison: Comparison
    subject: Subject
    data: Data

    @property
    def run(self) -> Mapping[str, Any]:
        """The sweep's record."""
        return self.comparison.run

    @property
    def marked(self) -> bool:
        """Whether the page is for the data holder only."""
        return self.comparison.recommendation.for_the_data_holder_only

    @property
    def mark(self) -> str | None:
        """What a page of confidential rows says on every section."""
        return FOR_THE_HOLDER if self.marked else None

    @property
    def first_look(self) -> str | None:
        """What a page of a quick look says at its top."""
        reasons = self.comparison.recommendation.first_look
        return quick_look(reasons) if reasons else None

    @property
    def shown(self) -> Data | None:
        """The setting that the page begins with: the recommended one, or the safest option."""
        at = self.data["begin"]
        return None if at is None else next(one for one in self.data["settings"] if one["i"] == at)

    def setting(self, cell: str) -> SettingFigures:
        """A setting by its cell's name."""
        return next(one for one in self.comparison.settings if one.cell.name == cell)


def content(
    folder: Path, constraints: Iterable[Constraint] = (), *, progress: Progress | None = None
) -> Content:
    """Read a finished sweep, recommend a setting, and work out all that its page says.

    Where no constraint is given the defaults hold, and the page calls them so.
    """
    comparison = compare(folder, constraints)
    run, recommendation = comparison.run, comparison.recommendation
    subject, today = subject_of(run), comparison.today.figures
    asked = recommendation.constraints
    limits = limits_of(subject, comparison)
    metrics = {run["objective"]["metric"], *(one.metric for one in limits), *(one.metric for one in asked)}
    offered = [one for one in comparison.settings if one.choosable]
    with_groups = len(comparison.groups.each) * len(offered) <= _MOST
    watch = progress or Silent()
    watch.phase("settings", len(offered))
    too_few = [group_name(one.setting) for one in comparison.groups.too_few]
    settings = []
    for one in offered:
        cell, figures = one.cell, one.figures
        settings.append(
            {
                "i": comparison.settings.index(one), "name": cell.name, "label": label(cell),
                "goes_out": cell.technology.goes_out, "steps": cell.technology.steps(cell),
                "order": one.exposure.order,
                "figures": {
                    name: [_finite(end) for end in (value.mean, value.low, value.high, value.noise)]
                    for name, value in figures.items() if name in metrics
                },
                "grid": [[large, list(small)] for large, small in grid_of(comparison, subject, one)],
                "dots": [one.exposure.best_guess, one.exposure.best_guess_at_2],
                "cost": cost(subject, figures, today, comparison.population),
                "exchange": [*exchange(figures, today), *filter(None, [cell.technology.about_attacks])],
                "crowd": _crowd(comparison, cell.calibrated_to.B),
                "groups": [_group(comparison, subject, cell.name, each) for each in comparison.groups.each]
                if with_groups else [],
                "worst_hit": worst_hit(subject, figures, too_few),
            } | _promise(run, cell)
        )  # fmt: skip
        watch.advance(1)
    numbers = {one.cell.name: i for i, one in enumerate(comparison.settings)}
    chosen = None if recommendation.chosen is None else numbers[recommendation.chosen.name]
    named = [[option.name, numbers[option.cell]] for option in comparison.options]
    names = [group_name(one.setting) for one in comparison.groups.each]
    data = {
        "best": best_in_words(subject), "advised": advised_in_words(recommendation),
        "objective": run["objective"]["metric"], "better": subject.better,
        "limits": [one.record() for one in limits],
        "asked": [asdict(one) | {"words": one.words, "name": in_words(one.metric)} for one in asked],
        "groups": {"of": names if with_groups else [], "too_many": not with_groups},
        "features": list(run["features"]), "settings": settings, "options": named, "chosen": chosen,
        "begin": chosen if chosen is not None else named[-1][1] if named else None,
    }  # fmt: skip
    return Content(comparison, subject, data)


def grid_of(comparison: Comparison, subject: Subject, one: SettingFigures) -> tuple[Said, ...]:
    """The rows of the first screen for a setting."""
    alone = None if one.cell.B is None else comparison.crowds.get(one.cell.B, {}).get("alone")
    return (
        what_it_costs(subject, one.figures, is_today=one.cell.name == STATUS_QUO),
        what_a_stranger_gets(one),
        what_an_insider_gets(one.exposure),
        what_is_guessed(one.exposure, one.cell, alone),
        who_is_hit(comparison, subject, one),
    )


def dots_of(one: SettingFigures) -> str:
    """The best guess as dots."""
    near, far = one.exposure.best_guess, one.exposure.best_guess_at_2
    return "" if near is None or far is None else dots(near, far)


def _group(comparison: Comparison, subject: Subject, cell: str, group: Group) -> Data:
    """Of a group: the rates that are drawn, today's and the setting's, and the texts of its row."""
    groups, rate = comparison.groups, subject.objective.rate
    told = [
        with_interval(groups.change(cell, metric, group), partial(subject.changed, metric))
        for metric, _ in subject.by_group
    ]
    if rate is None:
        return {"drawn": [None, None], "told": told}
    before, then = (groups.figure(name, rate.metric, group) for name in (STATUS_QUO, cell))
    change = groups.change(cell, f"extra_{rate.metric}", group)
    return {
        "drawn": [_rounded(before.mean), _rounded(then.mean)],
        "told": [
            with_interval(before, percent_up), with_interval(then, percent_up),
            with_interval(change, points_up), *told,
        ],
    }  # fmt: skip


def group_headings(subject: Subject) -> Sequence[str]:
    """What the columns of the table of groups are called."""
    rate = subject.objective.rate
    rates = [] if rate is None else [f"{rate.words}, today", "then", "change, in points"]
    return [*rates, *(f"{heading}, against today" for _, heading in subject.by_group)]


def table_of(content: Content) -> tuple[list[str], list[tuple[SettingFigures, list[str]]]]:
    """All settings with all figures: headings, and a row of texts for each."""
    measured = {metric for one in content.comparison.settings for metric in one.figures}
    columns = [column for column in columns_of(content.subject) if column.metric in measured]
    rows = [
        (one, [with_interval(one.figures.get(each.metric, Estimate()), each.told) for each in columns])
        for one in content.comparison.settings
    ]
    return [column.heading for column in columns], rows


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None


def _crowd(comparison: Comparison, B: float) -> str:
    """What B means on the table, in a sentence."""
    known = comparison.crowds.get(B, {})
    if not {"typical", "alone", "looked_at"} <= set(known):
        return "How many people look alike at this B was not counted in this sweep."
    people = comparison.run["people"]
    return in_a_sentence(B, known["typical"], known["alone"], round(known["looked_at"]), people)


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

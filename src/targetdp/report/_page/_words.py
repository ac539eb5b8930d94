"""What a page says in plain words: numbers, names, and what a setting costs the program and gives people."""

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from targetdp._core import exact, percent_up, up
from targetdp.programs import Objective, objective_of
from targetdp.tradeoff import CLASSIC, INSIDER, STRANGER, Cell, Estimate, shown, technologies

# Numbers for people: thousands separated, no more digits than mean something, rounded to the safe side.

MONEY = {"$", "€", "£", "¥", "₦"}
"""Signs that stand before an amount; other currencies stand behind it."""


def whole(value: float) -> str:
    """All digits before the point."""
    return f"{value:,.0f}".replace("-0", "0") if abs(value) < 0.5 else f"{value:,.0f}"


def money(value: float, unit: str) -> str:
    """An amount in its currency, with a proper minus sign."""
    sign, amount = ("−" if value < 0 else ""), shown(abs(value))
    return f"{sign}{unit}{amount}" if unit in MONEY else f"{sign}{amount} {unit}"


def signed(value: float) -> str:
    """A change of a count, with its sign."""
    text = shown(abs(value))
    return f"+{text}" if value > 0 else f"−{text}" if value < 0 and text != "0" else text


def of_1000(share: float) -> str:
    """Protection as people of 1,000, rounded down: the same three digits as in a table."""
    return f"{_thousandths(share):,} of 1,000"


def _thousandths(share: float) -> int:
    return math.floor(share * 1000 + 1e-9)


def points_up(rise: float) -> str:
    """The rise of a share in percentage points with one digit, rounded up."""
    points = math.ceil(rise * 1000 - 1e-9) / 10
    return f"{'+' if points > 0 else '−' if points < 0 else ''}{abs(points):.1f}"


def with_interval(value: Estimate, told: Callable[[float], str]) -> str:
    """A figure and its interval as text: "0.835 (0.831 to 0.839)"."""
    ends = (value.mean, value.low, value.high)
    mean, low, high = (None if x is None or not math.isfinite(x) else told(x).replace("-", "−") for x in ends)
    if mean is None:
        return "–"
    return mean if low is None or high is None or value.low == value.high else f"{mean} ({low} to {high})"


# What stands in tables and has limits: figures of a setting beside the program's own.

AT_MOST = "People are at most so well protected: a cleverer attacker may do better."

PROTECTIONS = {
    "singling_out": "Not singled out",
    "inference": "Hidden values not guessed, even by an insider",
    "distinguishing": "Not told apart",
}
"""Headings of the three protections."""

PAPERS_OWN = {"attribute_inference": "Hidden values not guessed, as in the paper (a stranger)"}
"""What stands beside the worst attack of its kind."""


@dataclass(frozen=True)
class ShownFigure:
    """A figure of every setting that the table of all settings shows: its heading and how it is told."""

    metric: str
    heading: str
    told: Callable[[float], str]


def columns_of(subject: "Subject") -> tuple[ShownFigure, ...]:
    """Every figure that the table shows, in its order; a sweep may lack some."""
    headings = {
        "accuracy": "Accuracy", "singling_out": PROTECTIONS["singling_out"],
        "inference": PROTECTIONS["inference"], **PAPERS_OWN, "distinguishing": PROTECTIONS["distinguishing"],
        "best_guess": "Best guess, at B", "best_guess_at_2": "Best guess, at distance 2",
    }  # fmt: skip
    figures = [
        ShownFigure(subject.metric, subject.axis, subject.in_words),
        *(ShownFigure(name, heading, partial(shown, metric=name)) for name, heading in headings.items()),
    ]
    if (rate := subject.objective.rate) is not None:
        figures += [
            ShownFigure("worst_group_rate", f"Worst-hit group: {rate.words}", percent_up),
            ShownFigure("worst_group_rise", "Largest rise in a group, in points", points_up),
        ]
    return tuple(figures)


def label(cell: Cell) -> str:
    """A setting's name on the page, with the ε that its release promises."""
    kind, promise = cell.technology.label, cell.promise
    if cell.group_size is not None:
        return f"{kind}, groups of {cell.group_size}"
    if cell.B is None:
        return kind
    classic = " (classic differential privacy)" if cell.B == CLASSIC else ""
    assert promise is not None  # noqa: S101 (whatever has a B has one)
    return f"{kind}, B = {exact(promise.B)}, ε = {up(promise.epsilon, 6)}{classic}"


# Words of the page, explained once.

_GLOSSARY = {
    "Stranger": STRANGER,
    "Insider": INSIDER,
    "Guess at a hidden value": "It counts as right within 5% of the value, as that is scaled and clipped.",
    "Best guess": "An attacker knows everybody else's rows, and that a person's row is one of two, equally "
    "likely: the largest chance, with any method, of being right about which. A coin is right half of "
    "the time.",
    "B": "How similar two rows must be for the guarantee to cover the difference between them. Rows are "
    "scaled so that no two are farther apart than 2: B = 2 covers any two (classic differential privacy), "
    "B = 0.25 only rows that are much alike.",
    "ε (epsilon)": "How hard rows within B are to tell apart: the smaller, the harder. It belongs to its B.",
    "δ (delta)": "A small addition to what ε allows: the smaller, the better. It is not the chance that "
    "something goes wrong; the best guess has both ε and δ in it.",
    "Protection": "From 0 (none) to 1 (safe), for one kind of attack: against the one of this kind that did "
    f"best. Attacks show what attackers achieve at the least. {AT_MOST}",
    "Distance from the cut": "How far a person's row is from the nearest row that would be decided "
    "otherwise.",
    "95% interval": "If the noise were drawn again, and for figures of the program other people sampled in "
    "the same way, many times, 95 of 100 such intervals would hold the true figure. Those of attacks "
    "know the noise only. Limits are held against the unfavorable end.",
}


def glossary() -> dict[str, str]:
    """Words of the page, explained once, and what the technologies are."""
    return _GLOSSARY | {
        one.label[:1].upper() + one.label[1:]: one.explanation
        for one in technologies().values() if one.explanation
    }  # fmt: skip


def quick_look(reasons: Sequence[str]) -> str:
    """What a page or a figure of a quick look says at its top, with the reasons why it is one."""
    return f"Quick look, nothing to decide by: {'; '.join(reasons)}."


# What a page is about: how a program's figure is called, in which units, and which way is better.


@dataclass(frozen=True)
class Subject:
    """The figure that a program is for, as a page speaks of it.

    ``metric`` is what is plotted and limited; today's figure is told in that of the ``objective``.
    ``by_group`` are the figures of "who bears it", each with its heading. ``unit`` is the currency where
    there is money, and ``counted`` is what figures count.
    """

    objective: Objective
    metric: str
    axis: str
    unit: str
    by_group: tuple[tuple[str, str], ...]
    title: str = ""
    counted: str = "people"

    @property
    def better(self) -> Literal["smallest", "largest"]:
        """Which values of the figure are better."""
        return self.objective.best

    def in_words(self, value: float) -> str:
        """A value of the figure, for people."""
        return self.amount(value) if self.objective.people is None else shown(value)

    def amount(self, value: float) -> str:
        """An amount in the program's unit, or a plain number where it has none."""
        return shown(value) if self.unit == self.counted else money(value, self.unit)

    def is_money(self, metric: str) -> bool:
        """Whether a figure, or a change of it, is a sum of money."""
        return metric.removeprefix("extra_") in {one.removeprefix("extra_") for one in self.objective.money}

    def changed_amount(self, value: float) -> str:
        """The change of the program's own figure."""
        return self.changed(self.objective.metric, value)

    def changed(self, metric: str, value: float) -> str:
        """The change of a figure of a group with its sign: money where it is about money, else people."""
        text = self.amount(value) if self.is_money(metric) else shown(value if abs(value) > 1e-6 else 0.0)
        return f"+{text}" if value > 0 and any(digit in "123456789" for digit in text) else text


def subject_of(run: Mapping[str, Any]) -> Subject:
    """The subject of a sweep's page."""
    counted, objective = run.get("counted") or "people", objective_of(run)
    unit = run.get("currency") or str(run["made_of"].get("unit", counted))
    name = objective.metric.replace("_", " ")
    return Subject(
        objective=objective, metric=objective.drawn or objective.metric,
        axis=objective.axis or (f"{name} ({unit})" if objective.is_money else name),
        unit=unit, by_group=objective.by_group or ((objective.metric, name),),
        title=run.get("title") or run.get("program", ""), counted=counted,
    )  # fmt: skip


# The answer: what a setting costs the program, and what people get in exchange.

Figures = Mapping[str, Estimate]


def cost(subject: Subject, chosen: Figures, today: Figures, population: float) -> str:
    """What the setting costs the program, with its interval, beside today's figure."""
    objective = subject.objective
    if objective.people is not None:
        return _people_more(subject, *objective.people, chosen, today, population)
    value, before = chosen[subject.metric], today[subject.metric].mean
    if value.mean is None:
        return f"What it would make of {subject.axis} is undefined."
    start = objective.subject or subject.axis.capitalize()
    today_is = "undefined" if before is None else subject.in_words(before)
    share = _share_of(objective.metric, value.mean, before) if objective.is_money else ""
    would_be = f"{subject.in_words(value.mean)}{_interval(subject, value)}"
    return f"{start} would be {would_be}; today it is {today_is}.{share}"


def _people_more(
    subject: Subject, whom: str, verb: str, chosen: Figures, today: Figures, population: float
) -> str:
    """How many more people something would happen to: more poor people would be missed."""
    more, before = chosen[subject.metric], today[subject.objective.metric].mean
    if more.mean is None or before is None:
        return f"How many more {whom} would be {verb} is undefined."
    mean = more.mean
    interval = "" if more.low is None or more.high is None else (
        f" (95% interval: {_ends(more.low, more.high)})"
    )  # fmt: skip
    direction = "more" if mean >= 0 else "fewer"
    shares = ""
    if subject.objective.rate is not None:
        rates = [figures.get(subject.objective.rate.metric, Estimate()).mean for figures in (chosen, today)]
        if None not in rates:
            then, now = (percent_up(rate) for rate in rates if rate is not None)
            shares = f": {then} {subject.objective.rate.words}, and {now} today"
    return (
        f"About {shown(abs(mean))} {direction} {whom} would be {verb}{interval}{shares}. Today "
        f"{shown(before)} are {verb}; the program decides about {whole(population)} people."
    )


def _ends(low: float, high: float) -> str:
    """Both ends of an interval; which of them are more and which fewer, where that is not plain."""
    if low >= 0:
        return f"{shown(low)} to {shown(high)}"
    return " to ".join(f"{shown(abs(end))} {'more' if end >= 0 else 'fewer'}" for end in (low, high))


def _interval(subject: Subject, value: Estimate) -> str:
    if value.low is None or value.high is None:
        return ""
    return f" (95% interval: {subject.in_words(value.low)} to {subject.in_words(value.high)})"


def _share_of(metric: str, value: float, before: float | None) -> str:
    if before is None:
        return ""
    if before <= 0:
        return f" Today's {metric} is not positive, so that a share of it says nothing."
    if value < 0:
        return " That is a loss."
    return f" That is {math.floor(100 * value / before + 1e-9):,}% of today's."


def exchange(chosen: Figures, today: Figures) -> list[str]:
    """What people get, one sentence for each protection that was measured; rounded to the safe side."""
    sentences = []
    if (score := _score(chosen, "singling_out")) is not None:
        sentences.append(
            f"{of_1000(score)} people were not singled out by the attacks we ran"
            f"{_beside('singling_out', chosen, today, of_1000)}."
        )
    if (score := _score(chosen, "inference")) is not None:
        stranger, strongest = _score(chosen, "attribute_inference"), chosen["inference"].strongest or ""
        whose = "a stranger" if strongest.startswith("attribute_inference") else "an insider"
        right, anyway = chosen["inference"].right, chosen["inference"].anyway
        base = "without the release" if whose == "an insider" else "for people outside it"
        counted = "" if right is None or anyway is None else (
            f" {math.ceil(right * 1000 - 1e-9):,} of 1,000 were right, and {_thousandths(anyway):,} {base}."
        )  # fmt: skip
        sentences.append(
            f"Guesses at a hidden value by {whose}, the best that we ran, failed {_often(score)} for people "
            f"in the table as for people outside it{_beside('inference', chosen, today, _often)}.{counted}"
            + ("" if stranger is None else f" As in the paper (a stranger): {_often(stranger)}.")
        )
    return [*sentences, AT_MOST] if sentences else []


def worst_hit(subject: Subject, figures: Figures, too_few: Sequence[str] = ()) -> str:
    """Of which group most are missed, and where that share rises the most; empty if that is not known.

    ``too_few`` are the groups of which too few people are known to tell.
    """
    rate, worst, rise = (
        subject.objective.rate,
        figures.get("worst_group_rate"),
        figures.get("worst_group_rise"),
    )
    if rate is None or worst is None or rise is None or worst.mean is None or rise.mean is None:
        return ""
    hardest, most = (group_name(one.strongest) for one in (worst, rise))
    said = f"Most in {hardest}: {percent_up(worst.mean)} {rate.words}."
    left_out = f" Too few people to tell, and under no limit: {', '.join(too_few)}." if too_few else ""
    if rise.mean <= 0:
        return f"{said} In no group does that share rise.{left_out}"
    return (
        f"{said} The share rises the most in {most}: by {points_up(rise.mean).lstrip('+')} points.{left_out}"
    )


def group_name(setting: str | None) -> str:
    """A group with its column, as it stands in a sentence, of whatever script its name is."""
    name = (setting or "a group").replace("=", ": ", 1)
    is_plain = all(unicodedata.bidirectional(c) not in {"R", "AL", "AN"} for c in name)
    return name if is_plain else f"\u2068{name}\u2069"  # what is written to the left must not turn numbers


def derived(guess_at_B: float | None, guess_at_2: float | None, B: float | None) -> str:
    """What no attacker can beat, from the noise alone."""
    if guess_at_B is None or B is None:
        return "This setting guarantees nothing: no limit can be derived on what an attacker may learn."
    sentence = (
        "An attacker who knows everybody else's rows, and that a person's row is one of two at distance B = "
        f"{exact(B)}, can tell which of them it is at most {_times(guess_at_B)} times in 100; a coin is "
        "right 50 times."
    )
    if B < 2 and guess_at_2 is not None:
        sentence += f" If the two are as different as can be, it is {_times(guess_at_2)} times in 100."
    return sentence


def _times(guess: float) -> str:
    """Times in 100, rounded up: what an attacker can do at most."""
    return percent_up(guess).removesuffix("%").removesuffix(".0")


def _score(figures: Figures, metric: str) -> float | None:
    return figures[metric].mean if metric in figures else None


def _beside(metric: str, chosen: Figures, today: Figures, told: Callable[[float], str]) -> str:
    """The interval's low end, and today's figure."""
    low, before = chosen[metric].low, _score(today, metric)
    at_least = "" if low is None else f"; at least {told(max(0.0, low))} by the 95% interval"
    return f"{at_least} (today: {'not known' if before is None else told(before)})"


def _often(score: float) -> str:
    if score >= 1:
        return "at least as often"
    return f"{_thousandths(score) / 10:g}% as often"

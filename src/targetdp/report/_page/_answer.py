"""The answer in plain words: what a setting costs the program, and what people get in exchange."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from targetdp._core import exact, up
from targetdp.report._page._words import money, of_100, people, whole
from targetdp.tradeoff import Estimate

# What a page is about: how a program's figure is called, in which units, and which way is better.


@dataclass(frozen=True)
class Subject:
    """The figure that a program is for, as a page speaks of it.

    ``metric`` is what is plotted and limited, ``absolute`` what today's figure is told in. ``by_group`` are
    the figures of "who bears it", each with its heading; the first is drawn.
    """

    kind: str
    metric: str
    absolute: str
    better: Literal["smallest", "largest"]
    axis: str
    limit: str
    unit: str
    by_group: tuple[tuple[str, str], ...]

    def told(self, value: float) -> str:
        """A value of the figure, for people."""
        return people(value) if self.kind == "aid" else self.amount(value)

    def amount(self, value: float) -> str:
        """An amount in the program's unit, or a plain number where it has none."""
        return f"{value:.4g}" if self.unit == "people" else money(value, self.unit)


def subject_of(run: Mapping[str, Any]) -> Subject:
    """The subject of a sweep's page."""
    unit = str(run["made_of"].get("unit", "people"))
    if run["kind"] == "aid":
        return Subject(
            kind="aid", metric="extra_exclusion_errors", absolute="exclusion_errors", better="smallest",
            axis="more poor people missed than today", limit="At most so many more poor people missed",
            unit=unit,
            by_group=(
                ("extra_exclusion_errors", "more poor people missed"),
                ("eligible", "people who get aid"),
            ),
        )  # fmt: skip
    metric, best = run["objective"]["metric"], run["objective"]["best"]
    lending = run["kind"] == "lending"
    return Subject(
        kind=run["kind"], metric=metric, absolute=metric, better=best,
        axis=f"{metric.replace('_', ' ')}" + (f" ({unit})" if lending else ""),
        limit=f"{metric.replace('_', ' ').capitalize()} of at least" if best == "largest"
        else f"{metric.replace('_', ' ').capitalize()} of at most",
        unit=unit,
        by_group=(("extra_profit", "change of profit"), ("approvals", "loans")) if lending
        else ((metric, metric.replace("_", " ")),),
    )  # fmt: skip


Figures = Mapping[str, Estimate]


def cost(subject: Subject, chosen: Figures, today: Figures, population: float) -> str:
    """What the setting costs the program, with its interval, beside today's figure."""
    if subject.kind == "aid":
        return _people_missed(chosen, today, population)
    value, before = chosen[subject.metric], today[subject.metric].mean
    if value.mean is None:
        return f"What it would make of {subject.axis} is undefined."
    said = f"{_sentence_start(subject)} would be {subject.told(value.mean)}{_interval(subject, value)}; "
    said += "today it is undefined." if before is None else f"today it is {subject.told(before)}."
    if subject.kind == "lending" and before is not None:
        said += _share_of(value.mean, before)
    return said


def _people_missed(chosen: Figures, today: Figures, population: float) -> str:
    more, missed = chosen["extra_exclusion_errors"], today["exclusion_errors"].mean
    if more.mean is None or missed is None:
        return "How many more poor people would be missed is undefined."
    mean = more.mean
    interval = "" if more.low is None or more.high is None else (
        f" (95% interval: {_signed(more.low)} to {_signed(more.high)})"
    )  # fmt: skip
    direction = "more" if mean >= 0 else "fewer"
    return (
        f"About {people(abs(mean))} {direction} poor people would be missed{interval} out of "
        f"{whole(population)} people; today {people(missed)} are missed."
    )


def _signed(value: float) -> str:
    return people(value) if value >= 0 else f"{people(-value)} fewer"


def _sentence_start(subject: Subject) -> str:
    return "The lender's profit" if subject.kind == "lending" else subject.axis.capitalize()


def _interval(subject: Subject, value: Estimate) -> str:
    if value.low is None or value.high is None:
        return ""
    return f" (95% interval: {subject.told(value.low)} to {subject.told(value.high)})"


def _share_of(profit: float, before: float) -> str:
    if before <= 0:
        return " Today's profit is not positive, so that a share of it says nothing."
    if profit < 0:
        return " That is a loss."
    return f" That is {100 * profit / before:.0f}% of today's."


def exchange(chosen: Figures, today: Figures) -> list[str]:
    """What people get, one sentence for each protection that was measured; rounded to the safe side."""
    said = []
    if (found := _score(chosen, "singling_out")) is not None:
        said.append(
            f"{of_100(found)} people were not singled out by the attacks we ran"
            f"{_low(chosen, 'singling_out', of_100)} (today: {_today(today, 'singling_out', of_100)})."
        )
    if (found := _score(chosen, "attribute_inference")) is not None:
        said.append(
            f"Guesses at a hidden value failed {_often(found)} for people in the table as for people "
            f"outside it{_low(chosen, 'attribute_inference', _often)} "
            f"(today: {_today(today, 'attribute_inference', _often)})."
        )
    return said


def derived(guess_at_B: float | None, guess_at_2: float | None, B: float | None) -> str:
    """What no attacker can beat, from the noise alone."""
    if guess_at_B is None or B is None:
        return "This setting guarantees nothing: no limit can be derived on what an attacker may learn."
    said = (
        "An attacker who knows everybody else's rows, and that a person's row is one of two at distance B = "
        f"{exact(B)}, can tell which of them it is at most {_times(guess_at_B)} times in 100; a coin is "
        "right 50 times."
    )
    if B < 2 and guess_at_2 is not None:
        said += f" If the two are as different as can be, it is {_times(guess_at_2)} times in 100."
    return said


def _times(guess: float) -> str:
    """Times in 100, rounded up: what an attacker can do at most."""
    return up(100 * guess, 3) if guess < 0.999 else "100"


def _today(figures: Figures, metric: str, told: Callable[[float], str]) -> str:
    score = _score(figures, metric)
    return "not known" if score is None else told(score)


def _score(figures: Figures, metric: str) -> float | None:
    return figures[metric].mean if metric in figures else None


def _low(figures: Figures, metric: str, told: Callable[[float], str]) -> str:
    low = figures[metric].low
    return "" if low is None else f"; at least {told(max(0.0, low))} by the 95% interval"


def _often(score: float) -> str:
    if score >= 1:
        return "at least as often"
    return f"{math.floor(1000 * score + 1e-9) / 10:g}% as often"

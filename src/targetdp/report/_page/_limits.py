"""Limits as sentences with a number to fill in."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from targetdp._core import exact
from targetdp.report._page._words import Subject
from targetdp.tradeoff import CellResult, Comparison, Constraint, in_words

Step = Literal["protect", "afford", "bear"]


@dataclass(frozen=True)
class LimitSentence:
    """A sentence about a figure, with a number in its middle.

    ``hundred`` says that people write a share as a number of 100, ``whole`` that people are counted;
    ``step`` in which step it is asked for. A ``hint`` is for whoever fills it in.
    """

    metric: str
    step: Step
    before: str
    after: str
    name: str
    at_most: bool = False
    hundred: bool = True
    whole: bool = False
    low: float | None = 0.0
    high: float | None = 1.0
    hint: str = ""

    def words(self, value: float) -> str:
        """The sentence with a number: all its digits, as somebody typed it."""
        return f"{self.before} {self._number(value)} {self.after}"

    def beside(self, value: float, asked: float) -> str:
        """A value that misses the limit, with four digits that do not hide it, and the limit."""
        if not self.hundred:
            return f"{value:,.10g}, and {self._number(asked)} is the limit"
        round_off = math.ceil if self.at_most else math.floor
        of_100 = round_off(1000 * value - (1e-9 if self.at_most else -1e-9)) / 10
        return f"{of_100:g} of 100, and {self._number(asked)} is the limit"

    def _number(self, value: float) -> str:
        return f"{100 * value:.14g}" if self.hundred else exact(value)

    def record(self) -> dict[str, Any]:
        """What the page's script needs to know."""
        return asdict(self) | {"sentence": f"{self.before} {{}} {self.after}"}


def limits_of(subject: Subject, comparison: Comparison) -> tuple[LimitSentence, ...]:
    """Every limit that a page lets people set: of figures that the sweep has."""
    measured = {metric for one in comparison.settings for metric in one.figures}
    return tuple(one for one in _limits(subject) if one.metric in measured)


def asked_in_words(subject: Subject, comparison: Comparison) -> list[str]:
    """What was asked for, as the page's script tells it: what is fixed first, and of two the stricter."""
    found: dict[str, tuple[Constraint, str]] = {}
    own = {(one.metric, one.at_most): one for one in limits_of(subject, comparison)}
    fixed = []
    for limit in comparison.recommendation.constraints:
        sentence = own.get((limit.metric, limit.at_most is not None))
        if sentence is None:
            fixed.append(limit.words)
            continue
        before = found.get(limit.metric)
        if before is None or (limit.limit < before[0].limit) == sentence.at_most:
            found[limit.metric] = (limit, sentence.words(limit.limit))
    return [*fixed, *(words for _, words in found.values())]


def near_in_words(subject: Subject, comparison: Comparison) -> str:
    """The near miss that would serve the program best, without B and ε; empty if there is none."""
    for near in comparison.recommendation.near[:1]:
        own = next((one for one in _limits(subject) if one.metric == near.limit.metric), None)
        if own is None:
            return near.words
        gain = f", with {near.gain}" if near.gain else ""
        return f"{near.cell.technology.label}{gain}; {own.name}: {own.beside(near.reached, near.limit.limit)}"
    return ""


def missed_in_words(subject: Subject, one: CellResult) -> str:
    """Which limits a setting misses, by the names that the page has for them; empty if it misses none."""
    names = {limit.metric: limit.name for limit in _limits(subject)}
    return ", ".join(names.get(metric, in_words(metric)) for metric in one.fails)


def _limits(subject: Subject) -> Iterable[LimitSentence]:
    yield LimitSentence(
        "singling_out", "protect", "At least", "of 100 people cannot be singled out by a stranger, who gets "
        "the table without ids.", "not singled out",
    )  # fmt: skip
    yield LimitSentence(
        "inference", "protect", "Where guesses at a hidden value fail 100 times for people outside the "
        "release, they fail at least", "times for people in it, even an insider's.",
        "hidden values not guessed",
    )  # fmt: skip
    yield LimitSentence(
        "best_guess", "protect", "Which of two people who are alike a row belongs to, nobody can tell more "
        "than", "of 100 times.", "best guess", at_most=True, low=0.5,
        hint="(A coin is right 50 times; leave it empty for no limit.)",
    )  # fmt: skip
    objective = subject.objective
    if objective.people is not None:
        whom, verb = objective.people
        yield LimitSentence(
            subject.metric, "afford", "At most", f"more {whom} are {verb} than today.",
            f"more {whom} {verb}", at_most=True, hundred=False, whole=True, low=None, high=None,
        )  # fmt: skip
    else:
        at_most = subject.better == "smallest"
        name = objective.subject or subject.axis[:1].upper() + subject.axis[1:]
        after = f"{subject.unit}." if objective.is_money else "."
        yield LimitSentence(
            subject.metric, "afford", f"{name} is at {'most' if at_most else 'least'}", after,
            subject.axis, at_most=at_most, hundred=False, low=None, high=None,
        )  # fmt: skip
    if objective.rate is not None:
        yield LimitSentence(
            "worst_group_rate", "bear", "In no group more than", f"of 100 {objective.rate.words}.",
            "the worst-hit group", at_most=True,
        )  # fmt: skip
        yield LimitSentence(
            "worst_group_rise", "bear", "In no group that share rises by more than", "points of 100.",
            "the largest rise in a group", at_most=True,
        )  # fmt: skip

"""Limits as sentences with a number to fill in."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from targetdp.report._page._words import Subject
from targetdp.tradeoff import CellResult, Comparison, in_words

Step = Literal["protect", "afford", "bear"]


@dataclass(frozen=True)
class LimitSentence:
    """A sentence about a figure, with a number in its middle.

    ``hundred`` says that people write a share as a number of 100, ``whole`` that people are counted;
    ``step`` in which step it is asked for.
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

    def record(self) -> dict[str, Any]:
        """What the page's script needs to know."""
        return asdict(self) | {"sentence": f"{self.before} {{}} {self.after}"}


def limits_of(subject: Subject, comparison: Comparison) -> tuple[LimitSentence, ...]:
    """Every limit that a page lets people set: of figures that the sweep has."""
    measured = {metric for one in comparison.settings for metric in one.figures}
    return tuple(one for one in _limits(subject) if one.metric in measured)


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
        "than", "of 100 times. (A coin is right 50 times; leave it empty for no limit.)", "best guess",
        at_most=True, low=0.5,
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

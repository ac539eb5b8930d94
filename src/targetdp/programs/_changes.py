"""Who bears the cost: what changes for each group when a release takes the place of the original table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from targetdp._core import Floats, check
from targetdp.programs._base import Contribution, Result, ones, plain
from targetdp.programs._people import People

CONFIDENCE = 0.95
"""Of an interval, unless the caller says otherwise."""


@dataclass(frozen=True)
class Change:
    """A count of people, or a sum of money, before and after.

    Args:
        before: Today's, with the original rows.
        after: With a release in their place; the mean of its simulations.
        interval: Of the difference.

    Example:
        >>> Change(10.0, 12.0, (0.5, 3.5)).difference
        2.0
    """

    before: float
    after: float
    interval: tuple[float, float]

    @property
    def difference(self) -> float:
        """How many more."""
        return self.after - self.before

    def record(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "before": self.before,
            "after": self.after,
            "difference": self.difference,
            "interval": list(self.interval),
        }


@dataclass(frozen=True)
class Changes:
    """What a release changes, as `changes` finds it.

    Args:
        everybody: Each change by the name of what is counted, for everybody.
        groups: The same by group column and group.
        confidence: Of the intervals.

    Example:
        >>> change = Change(10.0, 12.0, (0.5, 3.5))
        >>> Changes({"exclusion_errors": change}, {}, 0.95).record()["everybody"]["exclusion_errors"]["after"]
        12.0
    """

    everybody: Mapping[str, Change]
    groups: Mapping[str, Mapping[str, Mapping[str, Change]]]
    confidence: float

    def record(self) -> dict[str, Any]:
        """Plain data."""
        record: dict[str, Any] = plain(
            {"confidence": self.confidence, "everybody": self.everybody, "groups": self.groups}
        )
        return record


def changes(status_quo: Result, simulations: Sequence[Result], *, confidence: float = CONFIDENCE) -> Changes:
    """What a release changes, person by person, averaged over its simulations.

    Intervals say how the change would vary with another sample of people of this size and, given two
    simulations or more, with other noise. They are normal, from each person's own change; the part that is
    due to noise is Student's, since two or three simulations hardly tell how large it is. Under a quota, one
    more in means one out: a person counts less what her place would have done for those next to the cut
    (the influence of a quantile). All are widened by one person who changes (after Agresti and Min 2005), so
    that no change among few people is not taken for none; where nobody of a group could change a figure (no
    one there is poor), by one of everybody who could. Within each group column they hold together: its
    groups share the doubt, so that whoever points at the group that is hit the hardest is still right.

    Args:
        status_quo: The program's result on the original rows.
        simulations: Its results on simulated releases of one setting; at least one.
        confidence: Of the intervals, between 0 and 1.

    Returns:
        What changes for everybody and for each group, by the names of the result's ``parts``.

    Raises:
        ValueError: There is no simulation, or one is of another program.

    Does not guarantee: anything about people whom the table does not represent. With a single simulation the
    interval is about that one release.

    Example:
        >>> from targetdp.programs import Aid
        >>> program = Aid(np.arange(100.0), quota=0.2)
        >>> today, private = program.judge(np.arange(100.0)), program.judge(np.roll(np.arange(100.0), 5))
        >>> changes(today, [private]).everybody["exclusion_errors"].difference
        5.0
    """
    confidence = check.number("confidence", confidence, above=0, below=1)
    if not simulations:
        raise ValueError("simulations has 0 entries: give at least one result of the release")
    people = status_quo.people
    if not all(result.people.same_as(people) for result in simulations):
        raise ValueError(
            "simulations are of another program than status_quo: evaluate both with one and the same program"
        )
    doubts = _doubts(people, 1 - confidence)
    by_group: list[dict[str, Change]] = [{} for _ in range(people.groups.count)]
    for name in status_quo.parts:
        for place, change in enumerate(_of_groups(name, status_quo, simulations, doubts)):
            by_group[place][name] = change
    return Changes(by_group[0], people.groups.nested(by_group), confidence)


def _of_groups(name: str, before: Result, after: Sequence[Result], doubts: Floats) -> list[Change]:
    people, part = before.people, before.parts[name]
    sums, weight = people.groups.sums, people.weights * people.each
    moved = weight * (np.mean([result.parts[name].values for result in after], axis=0) - part.values)
    difference = sums(moved)
    old, new = weight * before.decisions, weight * np.mean([result.decisions for result in after], axis=0)
    at_old, at_new = _next_in(part, before), np.mean([_next_in(part, result) for result in after], axis=0)
    # Person i counts moved_i, if she is in the group, − at_new·new_i + at_old·old_i, in it or not.
    total = difference - at_new * new.sum() + at_old * old.sum()
    squares = (
        sums(moved * moved) - 2 * at_new * sums(moved * new) + 2 * at_old * sums(moved * old)
        + at_new**2 * float(new @ new) - 2 * at_new * at_old * float(new @ old) + at_old**2 * float(old @ old)
    )  # fmt: skip
    variance = np.maximum(squares - total * total / people.count, 0.0) + _one_person(part, people, at_new)
    square = ndtri(doubts) ** 2 * variance
    if len(after) > 1:
        totals = np.array([sums(weight * result.parts[name].values) for result in after])
        student = stdtrit(len(after) - 1, doubts)
        square = square + student**2 * totals.var(axis=0, ddof=1) / len(after)
    start, far = sums(weight * part.values), np.sqrt(square)
    return [
        Change(float(a), float(a + d), (float(d - r), float(d + r)))
        for a, d, r in zip(start, difference, far, strict=True)
    ]


def _next_in(part: Contribution, result: Result) -> Floats:
    """What one more place would do, in each group: the mean effect on people next to the cut."""
    groups = result.people.groups
    if result.near is None or not len(result.near):
        return np.zeros(groups.count)
    effect = np.zeros(result.people.count)
    weights = result.people.weights[result.near]
    effect[result.near] = part.effect[result.near] * weights / weights.sum()
    return groups.sums(effect)


def _one_person(part: Contribution, people: People, next_in: Floats) -> Floats:
    """The mean square of what it does to a group to choose one person and let go the next at the cut.

    That person is someone of the group who could change anything, or, if it does more, anyone outside. In a
    group where nobody could, another sample of people may have someone: it is as one of everybody who could.
    """
    sums, weight = people.groups.sums, people.weights * people.each
    could = part.effect != 0
    square = sums((weight * part.effect) ** 2) - 2 * next_in * sums(weight * weight * part.effect)
    square = np.maximum(square + next_in**2 * sums(weight * weight * could), 0.0)
    outside = np.where(people.counts < people.count, (next_in * people.each) ** 2, 0.0)
    able = sums(ones(could))
    of_all = sums((weight * part.effect) ** 2)[0] / max(able[0], 1.0)
    return np.where(able > 0, np.maximum(square / np.maximum(able, 1.0), outside), of_all)


def _doubts(people: People, doubt: float) -> Floats:
    """The doubt on either side of an interval, for everybody and each group."""
    shared = [1, *(len(labels) for labels in people.groups.labels for _ in labels)]
    return np.array([doubt / 2 / many for many in shared])

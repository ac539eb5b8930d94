"""Who bears the cost: what changes for each group when a release takes the place of the original table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from targetdp._core import check
from targetdp.programs._resampling import Resamples, half_widths, one_person
from targetdp.programs._result import Result, plain

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
        >>> Changes({"exclusion_errors": change}, {}, 0.95).everybody["exclusion_errors"].after
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


def changes(
    status_quo: Result, simulations: Sequence[Result], *, confidence: float = CONFIDENCE, seed: int = 0
) -> Changes:
    """What a release changes, person by person, averaged over its simulations.

    Intervals say how the change would vary with another sample of people of this size, drawn as the survey
    drew them (`Resamples`), and, given two simulations or more, with other noise. The part that is due to
    noise is Student's, since two or three simulations hardly tell how large it is. All are widened by one
    person who changes (after Agresti and Min 2005), so that no change among few people is not taken for none;
    where nobody of a group could change a figure (no one there is poor), by one of everybody who could.
    Within each group column they hold together: its groups share the doubt, so that whoever points at the
    group that is hit the hardest is still right.

    Args:
        status_quo: The program's result on the original rows.
        simulations: Its results on simulated releases of one setting; at least one.
        confidence: Of the intervals, between 0 and 1.
        seed: Of the resamples.

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
    resamples = Resamples.of(people, seed)
    today, sums = resamples.sums(status_quo), [resamples.sums(result) for result in simulations]
    widened, weight = one_person(status_quo, simulations), people.weights * people.each
    by_group: list[dict[str, Change]] = [{} for _ in range(people.groups.count)]
    for name, part in status_quo.parts.items():
        start = people.groups.sums(weight * part.values)
        ends = np.array([people.groups.sums(weight * one.parts[name].values) for one in simulations])
        moved = np.mean([one[name] for one in sums], axis=0) - today[name]
        reach = half_widths(resamples, moved, 1 - confidence, noise=ends, one_person=widened[name])
        for place, (a, b, r) in enumerate(zip(start, ends.mean(axis=0), reach, strict=True)):
            by_group[place][name] = Change(float(a), float(b), (float(b - a - r), float(b - a + r)))
    return Changes(by_group[0], people.groups.nested(by_group), confidence)

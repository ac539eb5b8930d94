"""Other samples of people: how a program's figures would vary with them (a paired bootstrap).

A table has some people of many, and one of them may stand for a thousand. Another sample would give other
figures. The bootstrap imitates that: in each *resample* every person counts a random number of times, and
every figure is computed again. A release and the status quo meet the same resamples, so that what they share
(who is poor, who stands for how many) cancels in their difference.

People are drawn as the survey drew them: whole *clusters* (villages, households) within *strata* (regions).
Of the m clusters of a stratum m − 1 are drawn with replacement, and each counts m/(m − 1) times as often as
it is drawn (Rao and Wu 1988): with that the variance of a sum is unbiased however few clusters there are.

Under a quota one more in means one out. Decisions are not made again in every resample: a figure is moved by
what it would take to meet the quota there, with the people next to the cut as the next in line (the influence
of a quantile), as `changes` does it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri, stdtrit

from targetdp._core import Floats, Integers, check
from targetdp.programs._people import People
from targetdp.programs._result import Contribution, Result, ones

RESAMPLES = 200
"""How many: the width of an interval is then known to 5%."""


MOST_CLUSTERS = 20_000
"""People of a larger table are drawn in random groups, as many: it takes less room, and tells the same."""


@dataclass(frozen=True, eq=False)
class DrawnUnits:
    """One way to draw people: everybody's unit, how often each unit counts, and what it knows of variances.

    Args:
        units: The number of everybody's unit, a cluster or a person.
        times: How often each unit (columns) counts in each resample (rows).
        degrees: How many units there are beyond the strata: degrees of freedom of a variance.
    """

    units: Integers = field(repr=False)
    times: Floats = field(repr=False)
    degrees: int


@dataclass(frozen=True, eq=False)
class Resamples:
    """How often everybody counts in each resample. Everybody together weighs the same in all of them.

    Where a survey drew clusters, people are also drawn alone, in as many resamples more: within a group that
    lives in one cluster clusters say nothing of how people vary. The wider interval counts.

    Args:
        people: Whom they are of.
        ways: By clusters, if there are any, and alone; `Resamples.of` draws them.

    Example:
        >>> from targetdp.programs import Aid
        >>> program = Aid([1.0, 2.0, 3.0, 4.0], quota=0.25)
        >>> resamples = Resamples.of(program.people, seed=0, count=100)
        >>> resamples.sums(program.judge([2.0, 1.0, 3.0, 4.0]))["exclusion_errors"].shape
        (100, 1)
    """

    people: People = field(repr=False)
    ways: tuple[DrawnUnits, ...] = field(repr=False)

    @classmethod
    def of(cls, people: People, seed: int, count: int = RESAMPLES) -> "Resamples":
        """Draw resamples of people, the same for the same people and seed.

        Args:
            people: Whom to draw, with their clusters and strata.
            seed: Of the draws.
            count: How many resamples, 2 or more.

        Returns:
            The resamples.
        """
        count = check.integer("count", count, at_least=2)
        rng = np.random.default_rng(check.integer("seed", seed, at_least=0))
        strata = np.zeros(people.count, dtype=np.int64) if people.strata is None else people.strata
        clusters = () if people.clusters is None else (people.clusters,)
        alone = _random_groups(strata, rng) if people.count > MOST_CLUSTERS else np.arange(people.count)
        return cls(people, tuple(_drawn(people, units, strata, count, rng) for units in (*clusters, alone)))

    def sums(self, result: Result) -> dict[str, Floats]:
        """For every part of a result its sum in each resample (rows), for everybody and each group (columns).

        Args:
            result: What a program did with these people.

        Returns:
            In people of the population, or in money.

        Raises:
            ValueError: The result is of other people.
        """
        people = self.people
        if not result.people.same_as(people):
            raise ValueError("the result is of other people than the resamples: use one program for both")
        chosen = people.each * people.weights * result.decisions
        more_in = self._sums(result.decisions.astype(np.float64))[:, 0] - chosen.sum()
        return {
            name: self._sums(part.values) - np.outer(more_in, _next_in(part, result))
            for name, part in result.parts.items()
        }

    def wanted(self, result: Result) -> Floats:
        """How many people a program is for in each resample, among everybody and in each group."""
        return self._sums(np.ones(self.people.count) if result.wanted is None else ones(result.wanted))

    def population(self) -> Floats:
        """How many people everybody and each group stand for in each resample."""
        return self._sums(np.ones(self.people.count))

    def _sums(self, values: Floats) -> Floats:
        """Sums over everybody and each group, first by unit, then by resample."""
        people, columns = self.people, len(self.people.groups.codes)
        codes = people.groups.codes.ravel()
        parts = np.tile(people.each * people.weights * values, columns)
        return np.concatenate(
            [
                way.times
                @ csr_array(
                    (parts, (np.tile(way.units, columns), codes)),
                    shape=(way.times.shape[1], people.groups.count),
                )
                for way in self.ways
            ]
        )

    def variances(self, resampled: Floats, tail: Floats) -> Floats:
        """The square of an interval's half-width that is due to sampling, for everybody and each group.

        Args:
            resampled: A figure in each resample (rows).
            tail: The error rate on either side, for each column.

        Returns:
            Infinite where the figure is undefined in many resamples: there nothing is known of it.
        """
        ways = zip(self.ways, np.split(resampled, len(self.ways)), strict=True)
        squares = [stdtrit(way.degrees, tail) ** 2 * _variance(values) for way, values in ways]
        return np.asarray(np.max(squares, axis=0))


def _variance(values: Floats) -> Floats:
    """By column; what is undefined now and then (a share of nobody) is left out, what often is has none."""
    known = np.isfinite(values)
    many = known.sum(axis=0)
    means = np.where(known, values, 0.0).sum(axis=0) / np.maximum(many, 1)
    squares = np.where(known, (values - means) ** 2, 0.0).sum(axis=0) / np.maximum(many - 1, 1)
    return np.where(many > 0.9 * len(values), squares, np.inf)


def _drawn(
    people: People, units: Integers, strata: Integers, count: int, rng: np.random.Generator
) -> DrawnUnits:
    _, first, units = np.unique(units, return_index=True, return_inverse=True)
    stratum, sizes = _united(strata[first])
    times = _unit_counts(stratum, sizes, count, rng)
    weights = np.bincount(units, weights=people.weights)
    scaled = times * (weights.sum() / (times @ weights))[:, None]
    return DrawnUnits(units, scaled, len(stratum) - len(sizes))


def _random_groups(strata: Integers, rng: np.random.Generator) -> Integers:
    """People in random groups of one stratum each, about `MOST_CLUSTERS` of them."""
    size = -(-len(strata) // MOST_CLUSTERS)
    order = np.lexsort((rng.random(len(strata)), strata))
    begins = np.flatnonzero(np.diff(strata[order], prepend=-1))
    place = np.arange(len(strata)) - np.repeat(begins, np.diff(begins, append=len(strata)))
    groups = np.empty(len(strata), dtype=np.int64)
    groups[order] = np.cumsum(place % size == 0)
    return groups


def _united(strata: Integers) -> tuple[Integers, Integers]:
    """For each cluster the number of its stratum, and how many clusters each stratum has.

    A stratum with a single cluster cannot tell how clusters vary: it is united with the next one.
    """
    _, stratum, sizes = np.unique(strata, return_inverse=True, return_counts=True)
    united, place, members = np.empty(len(sizes), dtype=np.int64), 0, 0
    for number, size in enumerate(sizes):
        united[number], members = place, members + size
        if members > 1:
            place, members = place + 1, 0
    if members and place:  # the last one is alone
        united[united == place] = place - 1
    stratum = united[stratum]
    return stratum, np.bincount(stratum)


def _unit_counts(stratum: Integers, sizes: Integers, count: int, rng: np.random.Generator) -> Floats:
    """How much each unit counts in each resample."""
    if len(stratum) < 2:
        raise ValueError("people has 1 cluster: how figures vary with the sample needs two or more")
    times = np.empty((count, len(stratum)))
    rows = np.arange(count)[:, None]
    for number, m in enumerate(sizes):
        drawn = rng.integers(m, size=(count, m - 1)) + m * rows
        counts = np.bincount(drawn.ravel(), minlength=count * m).reshape(count, m)
        times[:, stratum == number] = counts * (m / (m - 1))
    return times


# How wide an interval is.


def _next_in(part: Contribution, result: Result) -> Floats:
    """What one more place would do, in each group: the mean effect on people next to the cut."""
    groups = result.people.groups
    if result.near is None or not len(result.near):
        return np.zeros(groups.count)
    effect = np.zeros(result.people.count)
    weights = result.people.weights[result.near]
    effect[result.near] = part.effect[result.near] * weights / weights.sum()
    return groups.sums(effect)


def one_person(before: Result, after: Sequence[Result]) -> dict[str, Floats]:
    """The mean square of what it does to a group to choose one person and let go the next at the cut.

    That person is someone of the group who could change anything, or, if it does more, anyone outside. In a
    group where nobody could, another sample of people may have someone: it is as one of everybody who could.

    Args:
        before: The status quo.
        after: Results in whose order people come next at the cut.

    Returns:
        For each part of the result the square, for everybody and each group.

    Example:
        >>> from targetdp.programs import Lending, loans_at_rates
        >>> program = Lending([1, 0], loans_at_rates([100.0, 100.0], revenue=0.2, interest=0.02))
        >>> result = program.judge([0.9, 0.4])
        >>> one_person(result, [result])["wrong_refusals"]
        array([1.])
    """
    people, squares = before.people, {}
    sums, weight = people.groups.sums, people.weights * people.each
    for name, part in before.parts.items():
        at_cut = np.mean([_next_in(part, result) for result in after], axis=0)
        could = part.effect != 0
        square = sums((weight * part.effect) ** 2) - 2 * at_cut * sums(weight * weight * part.effect)
        square = np.maximum(square + at_cut**2 * sums(weight * weight * could), 0.0)
        outside = np.where(people.counts < people.count, (at_cut * people.each) ** 2, 0.0)
        able = sums(ones(could))
        of_all = sums((weight * part.effect) ** 2)[0] / max(able[0], 1.0)
        squares[name] = np.where(able > 0, np.maximum(square / np.maximum(able, 1.0), outside), of_all)
    return squares


def half_widths(
    resamples: Resamples, resampled: Floats, error_rate: float, *, noise: Floats,
    one_person: Floats | float = 0.0,
) -> Floats:  # fmt: skip
    """Half of the width of an interval of sampling and noise together, for everybody and each group.

    The groups of one column share the error rate, so that whoever points at the one that is hit the hardest
    is still right.

    Args:
        resamples: Of the same people.
        resampled: The figure in each resample (rows).
        error_rate: How often the interval may miss.
        noise: The figure in each simulation (rows); a single one says nothing of noise.
        one_person: The square by which it is widened, so that no change among few people is not taken for
            none (after Agresti and Min 2005).

    Returns:
        Infinite where too little is known of the figure.

    Example:
        >>> from targetdp.programs import Aid
        >>> people = Aid([1.0, 2.0, 3.0, 4.0], quota=0.25).people
        >>> values = np.linspace(0.0, 1.0, 200)[:, None]
        >>> reach = half_widths(Resamples.of(people, seed=0), values, 0.05, noise=np.zeros((1, 1)))
        >>> float(reach[0].round(2))
        0.93
    """
    shared = [1, *(len(labels) for labels in resamples.people.groups.labels for _ in labels)]
    tail = error_rate / 2 / np.array(shared)
    square = resamples.variances(resampled, tail) + ndtri(tail) ** 2 * one_person
    if len(noise) > 1:
        square = square + stdtrit(len(noise) - 1, tail) ** 2 * noise.var(axis=0, ddof=1) / len(noise)
    return np.sqrt(np.where(np.isnan(square), np.inf, square))

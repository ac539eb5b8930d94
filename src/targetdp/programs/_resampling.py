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

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri, stdtrit

from targetdp._core import Floats, Integers, check
from targetdp.programs._base import Part, Result
from targetdp.programs._people import Groups, People

RESAMPLES = 200
"""How many: the width of an interval is then known to 5%."""


@dataclass(frozen=True, eq=False)
class Resamples:
    """How often each person counts in each resample, times her weight: a row for each resample.

    Everybody together weighs the same in all of them.
    """

    people: People = field(repr=False)
    weights: Floats = field(repr=False)

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
        clusters = np.arange(people.count) if people.clusters is None else people.clusters
        strata = np.zeros(people.count, dtype=np.int64) if people.strata is None else people.strata
        times = _cluster_counts(*_strata_of_clusters(clusters, strata), count, rng)
        drawn = times[:, np.unique(clusters, return_inverse=True)[1]] * people.weights
        drawn *= people.weights.sum() / drawn.sum(axis=1, keepdims=True)
        return cls(people, drawn)

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
        members = _members(people.groups)
        more_in = self.weights @ result.decisions - people.weights @ result.decisions
        found = {}
        for name, part in result.parts.items():
            sums = np.asarray((members.T @ (self.weights * part.values).T).T)
            found[name] = (sums - np.outer(more_in, next_in(part, result))) * people.each
        return found


def _strata_of_clusters(clusters: Integers, strata: Integers) -> tuple[Integers, Integers]:
    """For each cluster the number of its stratum, and how many clusters each stratum has.

    A stratum with a single cluster cannot tell how clusters vary: it is united with the next one.
    """
    _, first = np.unique(clusters, return_index=True)
    _, stratum = np.unique(strata[first], return_inverse=True)
    sizes = np.bincount(stratum)
    united, place, members = np.empty(len(sizes), dtype=np.int64), 0, 0
    for number, size in enumerate(sizes):
        united[number], members = place, members + size
        if members > 1:
            place, members = place + 1, 0
    if members and place:  # the last one is alone
        united[united == place] = place - 1
    stratum = united[stratum]
    return stratum, np.bincount(stratum)


def _cluster_counts(stratum: Integers, sizes: Integers, count: int, rng: np.random.Generator) -> Floats:
    """How much each cluster counts in each resample."""
    if len(stratum) < 2:
        raise ValueError("people has 1 cluster: how figures vary with the sample needs two or more")
    times = np.empty((count, len(stratum)))
    for number, m in enumerate(sizes):
        chances = np.full(m, 1 / m)
        times[:, stratum == number] = rng.multinomial(m - 1, chances, size=count) * (m / (m - 1))
    return times


def _members(groups: Groups) -> csr_array:
    """A matrix with a row for each person and a column for everybody and each group: 1 where she belongs."""
    columns, people = groups.codes.shape
    rows = np.tile(np.arange(people), columns)
    return csr_array((np.ones(rows.size), (rows, groups.codes.ravel())), shape=(people, groups.count))

"""Ways to match released rows to people, and the share of people whom each of them finds.

A matcher puts people in order for each row, by distance or by likelihood. Two more ways know that everybody
has exactly one released row. *Optimal assignment* finds the one matching of all rows that is likeliest as a
whole. *Soft matching* asks for each row by itself: Sinkhorn's rounds give every person, as well as every row,
a total chance of one, so that a person whom many rows resemble counts less for each of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from targetdp._core import Floats, Integers, Progress, check
from targetdp.attacks._match._pairs import group_numbers, log_sums, over_pairs
from targetdp.attacks._protection import Interval, Protection, Setting, share_interval, worst
from targetdp.attacks._search._tree import count_within, squared_distances
from targetdp.mechanisms import NoiseDensity

MatchShares = Mapping[int, Floats]
"""For each rank everybody's chance to be found within it."""

_ROUNDS = 2
"""Sinkhorn's: further ones changed the share found by less than half a point on the tables we tried."""
SOFT_PASSES = 2 * _ROUNDS + 1
"""How often soft matching looks at all pairs."""
_TIED = 1e-9
"""Log-likelihoods closer than this are equal: sums of the same numbers may be rounded differently."""


@dataclass(frozen=True)
class Matcher:
    """One way to match rows to people.

    ``work`` counts the rows that it reports to progress, if that is known. In a one-to-one matching people
    are found or missed in couples: ``people_per_match`` is 2 there, and intervals count each couple once.
    """

    name: str
    work: int | None
    run: Callable[[], MatchShares]
    people_per_match: int = 1

    @classmethod
    def by_distance(
        cls, name: str, queries: Floats, points: Floats, ranks: Sequence[int], progress: Progress
    ) -> "Matcher":
        """Put people (points) in order by their distance from each row."""
        return cls(name, len(queries), partial(nearest_shares, queries, points, ranks, progress))

    def setting(self, shares: Floats, error_rate: float) -> Setting:
        """Protection from being the first of the list."""
        low, high = self._interval(shares, error_rate)
        return Setting(1 - float(shares.mean()), (1 - high, 1 - low))

    def describe(self, shares: MatchShares, candidates: int, error_rate: float) -> dict[str, Any]:
        """For each rank the share of people found, its interval, and what guessing would find."""
        return {
            f"rank_{rank}": {
                "share": float(each.mean()),
                "interval": self._interval(each, error_rate),
                "chance": min(1.0, rank / candidates),
            }
            for rank, each in shares.items()
        }

    def _interval(self, shares: Floats, error_rate: float) -> Interval:
        people = max(1, len(shares) // self.people_per_match)
        return share_interval(float(shares.mean()) * people, people, error_rate)


def protection_from(
    matchers: Sequence[Matcher], people: int, confidence: float, progress: Progress, **detail: Any
) -> Protection:
    """Run every matcher: 1 − the share of people whom the best of them finds at once."""
    error_rate = (1 - confidence) / len(matchers)
    settings, shares = {}, {}
    for matcher in matchers:
        progress.phase(matcher.name, matcher.work)
        chances = matcher.run()
        settings[matcher.name] = matcher.setting(chances[1], error_rate)
        shares[matcher.name] = matcher.describe(chances, people, error_rate)
    return worst(settings, "upper", confidence=confidence, people=people, shares=shares, **detail)


def check_ranks(ranks: Any) -> tuple[int, ...]:
    """Ranks that somebody asks for, 1 always among them."""
    given = check.several("ranks", ranks, "give ranks such as (1, 10)")
    return tuple(sorted({1, *(check.integer("ranks", rank, at_least=1, at_most=10**9) for rank in given)}))


# How far down a list of candidates the right one is: a list sorted by distance, ties in random order.


@dataclass(frozen=True)
class Ranks:
    """For each person how many candidates come ``before`` the right one, and how many are ``tied`` with it.

    The right one is among the tied. Where more come before it than anybody asks for, counting stopped.
    """

    before: Integers
    tied: Integers

    def share_within(self, rank: int) -> Floats:
        """For each person the chance that the right one is among the first so many."""
        return np.clip((rank - self.before) / self.tied, 0.0, 1.0)

    def shares(self, ranks: Sequence[int]) -> MatchShares:
        """These chances for several ranks."""
        return {rank: self.share_within(rank) for rank in ranks}


def nearest_shares(queries: Floats, points: Floats, ranks: Sequence[int], progress: Progress) -> MatchShares:
    """Everybody's chances by distance, where point i is the right one for query i; ranks are ascending."""
    queries, points = np.ascontiguousarray(queries), np.ascontiguousarray(points)
    squared = squared_distances(points, queries)
    before, tied = count_within(points, queries, squared, limit=ranks[-1] - 1, progress=progress)
    # Where counting stopped, the right one may not have been met.
    return Ranks(before, np.maximum(tied, 1)).shares(ranks)


def plateau_ranks(x: Floats, z: Floats, plateau: tuple[Floats, Floats]) -> Ranks:
    """Ranks in one column: people between the same two distances, on one step, are equally likely."""
    ordered = np.sort(x)

    def nearer_than(distances: Floats) -> Integers:
        begin = np.searchsorted(ordered, z - distances, "right")
        end = np.searchsorted(ordered, z + distances, "left")
        return np.asarray(np.maximum(end - begin, 0))

    inner, outer = plateau
    before = nearer_than(inner)
    return Ranks(before, np.maximum(nearer_than(outer) - before, 1))


# Everybody has exactly one released row.


def assign(
    X: Floats, X_priv: Floats, density: NoiseDensity | None, rng: np.random.Generator, progress: Progress
) -> Floats:
    """For each released row the chance that the likeliest matching of all rows gives it its own person.

    Without a known density the sum of squared distances is the least. Rows that are equal may change places
    without changing the likelihood: the chance is the mean over all such changes. Among other matchings that
    are equally likely, one is met by chance (rows are shuffled first).
    """
    people, rows = (X, X_priv) if density is None else (density.whitened(X), density.whitened(X_priv))
    order = rng.permutation(len(people))
    costs = np.empty((len(rows), len(people)))

    def fill(queries: slice, points: slice, squared: Floats) -> None:
        costs[queries, points] = squared if density is None else -density.log_density(squared)

    over_pairs(rows, people[order], fill, progress)
    chosen = order[linear_sum_assignment(costs)[1]]
    return _own_person(group_numbers(people), group_numbers(rows), chosen)


def _own_person(people: Integers, rows: Integers, chosen: Integers) -> Floats:
    """The chance that row i got person i, over all orders of equal people and of equal rows."""
    key = rows * (int(people.max()) + 1)  # one number for a group of rows with a group of people
    pairs, counts = np.unique(key + people[chosen], return_counts=True)
    own = key + people
    place = np.minimum(np.searchsorted(pairs, own), len(pairs) - 1)
    given = np.where(pairs[place] == own, counts[place], 0)
    return np.asarray(given / np.bincount(rows)[rows] / np.bincount(people)[people])


def soft_shares(
    X: Floats, X_priv: Floats, density: NoiseDensity, ranks: Sequence[int], progress: Progress
) -> MatchShares:
    """Everybody's chances by the rank of likelihood times the person's weight."""
    people, rows = density.whitened(X), density.whitened(X_priv)
    weights = np.zeros(len(X))
    for _ in range(_ROUNDS):
        per_row = log_sums(rows, people, density, weights, progress)
        weights = -log_sums(people, rows, density, -per_row, progress)
    own = density.log_density(squared_distances(rows, people)) + weights
    before, tied = np.zeros(len(X), dtype=np.int64), np.zeros(len(X), dtype=np.int64)

    def count(queries: slice, points: slice, squared: Floats) -> None:
        ahead = density.log_density(squared) + weights[points]
        ahead -= own[queries, None]
        likelier = (ahead > _TIED).sum(axis=1)
        before[queries] += likelier
        tied[queries] += (ahead >= -_TIED).sum(axis=1) - likelier

    over_pairs(rows, people, count, progress)
    return Ranks(before, tied).shares(ranks)

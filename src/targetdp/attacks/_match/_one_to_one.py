"""Matching that knows that everybody has exactly one released row.

Two ways. *Optimal assignment* finds the one matching of all rows that is likeliest as a whole. *Soft
matching* asks for each row by itself: Sinkhorn's rounds give every person, as well as every row, a total
chance of one, so that a person whom many rows resemble counts less for each of them.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from targetdp._core import Floats, Integers, Progress
from targetdp.attacks._match._pairs import LogSums, Ranks, over_pairs
from targetdp.attacks._match._units import group_numbers
from targetdp.attacks._search._tree import squared_distances
from targetdp.mechanisms import NoiseDensity

_ROUNDS = 2
"""Sinkhorn's: further ones changed the share found by less than half a point on the tables we tried."""
SOFT_PASSES = 2 * _ROUNDS + 1
"""How often soft matching looks at all pairs."""
_TIED = 1e-9
"""Log-likelihoods closer than this are equal: sums of the same numbers may be rounded differently."""


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


def soft_ranks(X: Floats, X_priv: Floats, density: NoiseDensity, progress: Progress) -> Ranks:
    """For each released row the rank of its person by likelihood times the person's weight."""
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
    return Ranks(before, tied)


def log_sums(
    queries: Floats, points: Floats, density: NoiseDensity, weights: Floats | None, progress: Progress
) -> Floats:
    """For each query log Σ density × weight over all points; rows are whitened, weights are logarithms."""
    sums = LogSums(len(queries))

    def add(rows: slice, columns: slice, squared: Floats) -> None:
        values = density.log_density(squared)
        if weights is not None:
            values += weights[columns]
        sums.add(rows, values)

    over_pairs(queries, points, add, progress)
    return sums.logs

"""All pairs of rows from two tables, a block at a time: never more than a block of them is in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from targetdp._core import Floats, Integers, Progress, check, in_threads, kernel
from targetdp.attacks._protection import Interval, Setting, share_interval
from targetdp.attacks._search._tree import count_within, squared_distances

_QUERIES, _POINTS = 64, 2048
"""Of a block: a megabyte of distances, which stays in the processor's cache."""

Reduce = Callable[[slice, slice, Floats], None]
"""Takes which queries and which points a block is about, and their squared distances (it may overwrite)."""


def over_pairs(queries: Floats, points: Floats, reduce: Reduce, progress: Progress) -> None:
    """Hand the squared distances between all queries and points to ``reduce``, block by block.

    Blocks of the same queries come one after the other, in the order of the points; those of others may
    come at the same time from another thread. Squares are summed in the order of the columns.
    """
    columns = np.ascontiguousarray(points.T)
    n = len(points)

    def work(begin: int, end: int) -> None:
        memory = np.empty((end - begin) * min(_POINTS, n))
        for first in range(0, n, _POINTS):
            last = min(first + _POINTS, n)
            block = memory[: (end - begin) * (last - first)].reshape(end - begin, last - first)
            _squares(queries[begin:end], columns, first, block)
            reduce(slice(begin, end), slice(first, last), block)

    in_threads(work, len(queries), _QUERIES, progress)


class LogSums:
    """For each query log Σ exp(value) over all points, kept from overflow by a running maximum."""

    def __init__(self, queries: int) -> None:
        self._largest = np.full(queries, -np.inf)
        self._sums = np.zeros(queries)

    def add(self, rows: slice, values: Floats) -> None:
        """Take a block of values."""
        largest = np.maximum(self._largest[rows], values.max(axis=1))
        more = np.empty(len(values))
        _exponential_sums(values, largest, more)
        self._sums[rows] *= np.exp(self._largest[rows] - largest)
        self._sums[rows] += more
        self._largest[rows] = largest

    @property
    def logs(self) -> Floats:
        """The sums' logarithms."""
        return np.asarray(self._largest + np.log(self._sums))


@kernel
def _squares(queries: Floats, columns: Floats, first: int, squared: Floats) -> None:
    d, width = queries.shape[1], squared.shape[1]
    for i in range(len(queries)):
        row = squared[i]
        row[:] = 0.0
        for j in range(0, d - d % 2, 2):  # two columns at once: half as many trips to memory
            x, y = queries[i, j], queries[i, j + 1]
            left, right = columns[j, first : first + width], columns[j + 1, first : first + width]
            for t in range(width):
                across, along = left[t] - x, right[t] - y
                row[t] = (row[t] + across * across) + along * along
        if d % 2:
            x, left = queries[i, d - 1], columns[d - 1, first : first + width]
            for t in range(width):
                across = left[t] - x
                row[t] += across * across


@kernel
def _exponential_sums(values: Floats, largest: Floats, sums: Floats) -> None:
    """Σ exp(value − largest) of each row, to about 1e-15 of itself.

    Half of the library's time, because several values are done at once: exp(x) = 2ᵏ·exp(r) with
    |r| ≤ ln(2)/2, a Taylor series for exp(r), and 2ᵏ put together from bits. Adding 1.5·2⁵² rounds to a whole
    number and leaves it in a float's lowest bits. What is below exp(−700) does not count.
    """
    width = values.shape[1]
    parts, powers = np.empty(width), np.empty(width)
    bits = powers.view(np.int64)
    for i in range(len(values)):
        row, top = values[i], largest[i]
        for t in range(width):
            x = row[t] - top
            x = x if x > -700.0 else -700.0
            shifted = x * 1.4426950408889634 + 6755399441055744.0
            powers[t] = shifted
            k = shifted - 6755399441055744.0
            r = (x - k * 0.693145751953125) - k * 1.42860682030941723212e-6
            series = r / 39916800 + 1 / 3628800
            series = series * r + 1 / 362880
            series = series * r + 1 / 40320
            series = series * r + 1 / 5040
            series = series * r + 1 / 720
            series = series * r + 1 / 120
            series = series * r + 1 / 24
            series = series * r + 1 / 6
            series = series * r + 1 / 2
            series = series * r + 1.0
            parts[t] = series * r + 1.0
        for t in range(width):
            bits[t] = (bits[t] << 52) + (1023 << 52)
        a, b, c, d = 0.0, 0.0, 0.0, 0.0  # four sums at once: each addition waits for the one before it
        whole = width - width % 4
        for t in range(0, whole, 4):
            a += parts[t] * powers[t]
            b += parts[t + 1] * powers[t + 1]
            c += parts[t + 2] * powers[t + 2]
            d += parts[t + 3] * powers[t + 3]
        for t in range(whole, width):
            a += parts[t] * powers[t]
        sums[i] = (a + b) + (c + d)


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


def nearest_ranks(queries: Floats, points: Floats, most: int, progress: Progress) -> Ranks:
    """Ranks by distance, where point i is the right one for query i; counted to ``most``."""
    squared = squared_distances(points, queries)
    before, tied = count_within(points, queries, squared, limit=most - 1, progress=progress)
    return Ranks(before, np.maximum(tied, 1))  # where counting stopped, the right one may not have been met


def check_ranks(ranks: Any) -> tuple[int, ...]:
    """Ranks that somebody asks for, 1 always among them."""
    given = check.several("ranks", ranks, "give ranks such as (1, 10)")
    return tuple(sorted({1, *(check.integer("ranks", rank, at_least=1, at_most=10**9) for rank in given)}))


def setting_of(shares: Floats, error_rate: float, people_per_match: int = 1) -> Setting:
    """Protection from being the first of the list.

    In a one-to-one matching people are found or missed in couples: each couple counts once for the interval.
    """
    low, high = _interval(shares, error_rate, people_per_match)
    return Setting(1 - float(shares.mean()), (1 - high, 1 - low))


def _interval(shares: Floats, error_rate: float, people_per_match: int) -> Interval:
    people = max(1, len(shares) // people_per_match)
    return share_interval(float(shares.mean()) * people, people, error_rate)


def describe_shares(
    shares: Mapping[int, Floats], candidates: int, error_rate: float, people_per_match: int = 1
) -> dict[str, Any]:
    """For each rank the share of people found, its interval, and what guessing would find."""
    return {
        f"rank_{rank}": {
            "share": float(each.mean()),
            "interval": _interval(each, error_rate, people_per_match),
            "chance": min(1.0, rank / candidates),
        }
        for rank, each in shares.items()
    }

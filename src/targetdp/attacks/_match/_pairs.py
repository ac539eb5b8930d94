"""Two tables, row by row and pair by pair: in comparable units, with rows in common, and all their distances.

All pairs are gone through a block at a time: never more than a block of them is in memory.
"""

from collections.abc import Callable

import numpy as np

from targetdp._core import Floats, Integers, Progress, in_threads, kernel
from targetdp.mechanisms import NoiseDensity

# Tables in units in which their columns can be compared, and rows that two tables share.

SMALLEST, LARGEST = 1e-140, 1e140
"""Squares of larger or smaller values leave the range of floats."""


def check_squares(*tables: Floats) -> None:
    """Refuse values whose squares overflow, or underflow altogether."""
    largest = max(float(np.abs(table).max()) for table in tables)
    if largest > LARGEST or 0 < largest < SMALLEST:
        raise ValueError(
            f"the largest value is {largest:g}, outside {SMALLEST:g} to {LARGEST:g}: distances would leave "
            "the range of floats; rescale all tables alike"
        )


def units_of(released: Floats) -> Floats:
    """Deviations of the released columns, 1 for those without any: no column counts for its unit alone."""
    constant = released.min(axis=0) == released.max(axis=0)
    return np.where(constant, 1.0, released.std(axis=0))


def released_directions(released: Floats) -> Floats | None:
    """The directions in which released rows lie (d×r), where those are fewer than columns; else None.

    What a truncated mechanism leaves out of a row tells nothing of whose it is, and must not count.
    """
    if len(released) <= released.shape[1]:
        return None
    _, lengths, directions = np.linalg.svd(released, full_matrices=False)
    seen = lengths > 1e-9 * lengths[0]
    return None if seen.all() or not seen.any() else np.ascontiguousarray(directions[seen].T)


def group_numbers(rows: Floats) -> Integers:
    """A number for each row, the same for equal rows."""
    order = np.lexsort(rows.T)
    new = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    group = np.zeros(len(rows), dtype=np.int64)
    group[order[1:]] = np.cumsum(new)
    return group


def rows_in_common(one: Floats, two: Floats) -> tuple[Integers, Integers, Integers]:
    """Places of rows of one table and of another that may be equal, and a number for each of those rows.

    Numbers are for the places of the first table, then for those of the second; equal rows have equal ones.
    """
    mine, theirs = np.arange(len(one)), np.arange(len(two))
    for j in range(one.shape[1]):  # noise leaves next to nothing of this after one column
        mine = mine[np.isin(one[mine, j], two[theirs, j])]
        theirs = theirs[np.isin(two[theirs, j], one[mine, j])]
    rows = np.concatenate([one[mine], two[theirs]])
    return mine, theirs, group_numbers(rows) if len(rows) else np.empty(0, dtype=np.int64)


def same_people(table: Floats, name: str, other: Floats, other_name: str) -> int:
    """How many rows both have; row i must be about the same person in both."""
    if len(table) != len(other):
        raise ValueError(
            f"{other_name} has {len(other)} rows, {name} has {len(table)}: row i must be about the same "
            "person in both; join them by id first"
        )
    return len(table)


def shared_note(table: Floats, holdout: Floats) -> list[str]:
    """What to say if people of the holdout have the very rows of people in the release."""
    mine, _, group = rows_in_common(table, holdout)
    shared = int(np.isin(group[len(mine) :], group[: len(mine)]).sum())
    if not shared:
        return []
    return [
        f"{shared} of {len(holdout)} people in the holdout have exactly the row of somebody in the release: "
        "if they are the same people, protection is overstated."
    ]


# All pairs of rows from two tables.

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


def log_sums(
    queries: Floats, points: Floats, density: NoiseDensity, weights: Floats | None, progress: Progress
) -> Floats:
    """For each query log Σ density × weight over all points; rows are whitened, weights are logarithms.

    Sums are kept from overflow by a running maximum.
    """
    largest, sums = np.full(len(queries), -np.inf), np.zeros(len(queries))

    def add(rows: slice, columns: slice, squared: Floats) -> None:
        values = density.log_density(squared)
        if weights is not None:
            values += weights[columns]
        top, more = np.maximum(largest[rows], values.max(axis=1)), np.empty(len(values))
        _exponential_sums(values, top, more)
        sums[rows] *= np.exp(largest[rows] - top)
        sums[rows] += more
        largest[rows] = top

    over_pairs(queries, points, add, progress)
    return np.asarray(largest + np.log(sums))


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
            for k_factorial in (362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0):
                series = series * r + 1 / k_factorial
            parts[t] = series * r + 1.0
        for t in range(width):
            bits[t] = (bits[t] << 52) + (1023 << 52)
            parts[t] *= powers[t]
        sums[i] = sum_by_fours(parts)


@kernel
def sum_by_fours(terms: Floats) -> float:
    """Four sums at once: each addition waits for the one before it."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = len(terms) - len(terms) % 4
    for t in range(0, whole, 4):
        a += terms[t]
        b += terms[t + 1]
        c += terms[t + 2]
        d += terms[t + 3]
    for t in range(whole, len(terms)):
        a += terms[t]
    return (a + b) + (c + d)

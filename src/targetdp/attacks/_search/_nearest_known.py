"""For each person the released row that is nearest on the columns which an adversary knows.

The distance is L1 on scaled columns: |person/scale - released/scale|, in float64, summed over the known
columns one after the other in ascending order. Of several nearest rows the first one in the release is taken.

Guarantees: the same rows as by comparing every person with every released row in float64. Memory grows with
the tables, not with their product.
Edges: how quick it is depends on the tables. On one column it is a sort. On more, whole blocks of rows are
skipped (`_block_search`), nearly all of them where noise is much or little, about half at worst in between.
Many rows at exactly the same distance above 0 are slow, since all of them must be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from targetdp._core import Floats, Integers, Progress, in_threads, kernel
from targetdp.attacks._search._block_search import (
    Smalls,
    arrange,
    marks,
    nearest_rows,
    nearest_rows_leaving_out,
    widest_signs,
)

_MARKS = 2
"""Sums with signs that tell blocks apart, beside the distance from the middle."""

_WIDE = 64
"""With more columns than this a sum in 16 bits leaves too few steps for each."""

_STRAIGHT = 4.0
"""Values keep their distances up to so many deviations from the middle, judged by the middle half."""

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class ValueGrid:
    """How values become small whole numbers: (value - middle) / quantum, rounded and drawn in to ±most.

    Beyond ``bend`` from the middle of a column a logarithm goes on with the same slope, so that a few huge
    values do not leave all others in one step. As the slope is nowhere above 1/quantum, and rounding moves
    either of two values by a half at most, values that differ by x differ by at most x/quantum + 1 on the
    grid. With ``most`` at a 2d-th of ``limit``, no sum over columns leaves the range of its numbers.
    """

    middle: Floats
    bend: Floats
    quantum: float
    most: int
    limit: int
    kind: type[np.signedinteger[Any]]

    def small(self, table: Floats) -> Smalls:
        """The table on the grid."""
        steps = _bent(table, self.middle, self.bend)
        with np.errstate(over="ignore"):  # what is too far is drawn in, which brings values nearer only
            steps *= 1 / self.quantum
        np.rint(steps, out=steps)
        np.clip(steps, -self.most, self.most, out=steps)
        return steps.astype(self.kind)


def grid_for(rows: Floats) -> ValueGrid:
    """A grid on which the rows can be told apart."""
    kind: type[np.signedinteger[Any]] = np.int16 if rows.shape[1] <= _WIDE else np.int32
    limit = int(np.iinfo(kind).max)
    most = limit // (2 * rows.shape[1])
    some = rows[:: -(-len(rows) // 1000)]
    lower, middle, upper = np.quantile(some, [0.25, 0.5, 0.75], axis=0)
    bend = _STRAIGHT * (upper - lower) / 1.35  # the middle half of a normal column is 1.35 deviations wide
    # Where half of a column is one value, its range is all there is; of a constant, anything will do.
    narrow = bend <= _TINY
    bend[narrow] = np.ptp(rows[:, narrow], axis=0)
    bend[bend <= _TINY] = 1.0
    quantum = float(np.abs(_bent(rows, middle, bend)).max()) / most
    return ValueGrid(middle, bend, quantum if quantum > _TINY else 1.0, most, limit, kind)


def _bent(table: Floats, middle: Floats, bend: Floats) -> Floats:
    steps = table - middle
    far = np.nonzero(np.abs(steps) > bend)
    x, b = steps[far], bend[far[1]]
    steps[far] = np.copysign(b * (1 + np.log(np.abs(x)) - np.log(b)), x)
    return np.asarray(steps)


@dataclass(frozen=True)
class PreparedTables:
    """People and released rows on one scale, ready for searches on any of their columns (`prepare`).

    Args:
        people: Scaled rows of those who are looked for.
        released: Scaled released rows.
        first_guess: For each person a row that may be near, such as their own, or -1: it saves time and
            changes nothing.
        grid: How values become small whole numbers.
        small_people: People on the grid.
        small_released: Released columns on the grid.
        products: The released columns' sums of products on the grid.

    Example:
        >>> tables = prepare(np.array([[0.0, 0.0]]), np.array([[1.0, 0.9], [0.1, 0.0]]), np.full(2, 0.5))
        >>> tables.released.tolist()
        [[2.0, 1.8], [0.2, 0.0]]
    """

    people: Floats
    released: Floats
    first_guess: Integers
    grid: ValueGrid
    small_people: Smalls
    small_released: Smalls
    products: Floats


def prepare(
    people: Floats, released: Floats, scale: Floats, first_guess: Integers | None = None
) -> PreparedTables:
    """Scale both tables and put them on one grid, for `nearest` and `nearest_leaving_one_out`.

    Args:
        people: Original rows of those who are looked for.
        released: Released rows.
        scale: What each column is divided by.
        first_guess: For each person a row that may be near, or -1; it saves time and changes nothing.

    Returns:
        Both tables, ready for searches.

    Example:
        >>> tables = prepare(np.array([[0.0, 0.0]]), np.array([[1.0, 0.9], [0.1, 0.0]]), np.ones(2))
        >>> tables.people.shape, tables.released.shape
        ((1, 2), (2, 2))
    """
    with np.errstate(over="ignore"):
        people, released = people / scale, released / scale
    farthest = max(np.abs(people).max(), np.abs(released).max())
    if not farthest < 1e150:
        raise ValueError(
            f"values are up to {farthest:g} column scales away from 0: distances are beyond floats; "
            "rescale the columns in all tables"
        )
    grid = grid_for(released)
    small = np.ascontiguousarray(grid.small(released).T)
    columns = small.astype(np.float64)
    if first_guess is None:
        first_guess = np.full(len(people), -1)
    return PreparedTables(people, released, first_guess, grid, grid.small(people), small, columns @ columns.T)


def nearest(tables: PreparedTables, known: Sequence[int], progress: Progress) -> Integers:
    """For each person the nearest released row on some known columns.

    Args:
        tables: Both tables, prepared.
        known: Positions of the known columns, ascending.
        progress: Is told how far the search is.

    Returns:
        For each person the place of the row; the first of several that are equally near.

    Example:
        >>> from targetdp._core import Silent
        >>> tables = prepare(np.array([[0.0, 0.0]]), np.array([[1.0, 0.9], [0.1, 0.0]]), np.ones(2))
        >>> nearest(tables, [0, 1], Silent()).tolist()
        [1]
    """
    columns = np.asarray(known)
    places = np.empty(len(tables.people), dtype=np.int64)
    if len(columns) == 1:
        _nearest_on_one(tables.people[:, columns[0]], tables.released[:, columns[0]], places)
        progress.advance(len(places))
        return places
    grid = tables.grid
    signs = widest_signs(tables.products[np.ix_(columns, columns)], _MARKS, grid.kind)
    blocks = arrange(tables.small_released[columns], signs, grid.limit, leaving_out=False)
    small = np.ascontiguousarray(tables.small_people[:, columns])
    mark = marks(small.T, signs)

    def work(begin: int, end: int) -> None:
        nearest_rows(
            tables.people, tables.released, columns, small, mark, blocks,
            tables.first_guess, grid.quantum, grid.limit, begin, end, places,
        )  # fmt: skip

    in_threads(work, len(places), _piece(len(places)), progress)
    return places


def nearest_leaving_one_out(tables: PreparedTables, progress: Progress) -> Integers:
    """For each column and each person the nearest released row on all the other columns.

    One pass serves all columns; there must be at least two of them.

    Args:
        tables: Both tables, prepared.
        progress: Is told how far the search is.

    Returns:
        A row for each column that is left out, with the place of the nearest row for each person.

    Example:
        >>> from targetdp._core import Silent
        >>> tables = prepare(np.array([[0.0, 0.9]]), np.array([[1.0, 0.9], [0.1, 0.0]]), np.ones(2))
        >>> nearest_leaving_one_out(tables, Silent()).tolist()
        [[0], [1]]
    """
    d = tables.people.shape[1]
    grid = tables.grid
    places = np.empty((d, len(tables.people)), dtype=np.int64)
    signs = widest_signs(tables.products, 1, grid.kind)  # more marks cost d times more here than they save
    blocks = arrange(tables.small_released, signs, grid.limit, leaving_out=True)

    def work(begin: int, end: int) -> None:
        nearest_rows_leaving_out(
            tables.people, tables.released, tables.small_people, blocks,
            tables.first_guess, grid.quantum, grid.limit, begin, end, places,
        )  # fmt: skip

    in_threads(work, len(tables.people), _piece(len(tables.people)), progress, weight=d)
    return places


def _piece(rows: int) -> int:
    """Rows for one thread at a time: enough to be worth it, and enough pieces to share out evenly."""
    return min(4096, max(256, -(-rows // 8)))


def _nearest_on_one(people: Floats, released: Floats, places: Integers) -> None:
    values, first = np.unique(released, return_index=True)
    _nearest_values(np.ascontiguousarray(people), values, first, np.searchsorted(values, people), places)


@kernel
def _nearest_values(
    people: Floats, values: Floats, first: Integers, above: Integers, places: Integers
) -> None:
    """The nearest of several distinct ascending values; ``first`` is the first row of each.

    ``above`` has for each person the place of the first value that is not below. Different values can be
    equally near after rounding: neighbors on both sides are tried until one is farther.
    """
    for p in range(len(people)):
        x, best, at = people[p], np.inf, len(first)
        for step, start in ((-1, above[p] - 1), (1, above[p])):
            i = start
            while 0 <= i < len(values):
                apart = abs(x - values[i])
                if apart > best:
                    break
                if apart < best or first[i] < at:
                    best, at = apart, first[i]
                i += step
        places[p] = at

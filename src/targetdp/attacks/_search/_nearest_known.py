"""For each person the released row that is nearest on the columns which an adversary knows.

The distance is L1 on scaled columns: |person/scale - released/scale|, in float64, summed over the known
columns one after the other in ascending order. Of several nearest rows the first one in the release is taken.

Guarantees: the same rows as by comparing every person with every released row in float64. Memory grows with
the tables, not with their product.
Edges: how quick it is depends on the tables. On one column it is a sort. On more, whole blocks of rows are
skipped (`row_blocks`), nearly all of them where noise is much or little, about half at worst in between. Many
rows at exactly the same distance above 0 are slow, since all of them must be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from targetdp._core import Floats, Integers, Progress, in_threads, kernel
from targetdp.attacks._search._block_search import nearest_rows, nearest_rows_leaving_out
from targetdp.attacks._search._row_blocks import Grid, Smalls, arrange, grid_for, marks, widest_signs

_MARKS = 2
"""Sums with signs that tell blocks apart, beside the distance from the middle."""


@dataclass(frozen=True)
class PreparedTables:
    """People and released rows on one scale, ready for searches on any of their columns (`prepare`).

    Attributes:
        people: Scaled rows of those who are looked for.
        released: Scaled released rows.
        first_guess: For each person a row that may be near, such as their own, or -1: it saves time and
            changes nothing.
        grid: How values become small whole numbers.
        small_people: People on the grid.
        small_released: Released columns on the grid.
        products: The released columns' sums of products on the grid.
    """

    people: Floats
    released: Floats
    first_guess: Integers
    grid: Grid
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
            tables.people, tables.released, columns, small, mark,
            blocks.values, blocks.order, blocks.low, blocks.high,
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
            tables.people, tables.released, tables.small_people, signs,
            blocks.values, blocks.order, blocks.low, blocks.high,
            tables.first_guess, grid.quantum, grid.limit, begin, end, places,
        )  # fmt: skip

    in_threads(work, len(tables.people), _piece(len(tables.people)), progress, weight=d)
    return places


def _piece(rows: int) -> int:
    """Rows for one thread at a time: enough to be worth it, and enough pieces to share out evenly."""
    return min(4096, max(256, -(-rows // 8)))


def _nearest_on_one(people: Floats, released: Floats, places: Integers) -> None:
    values, first = np.unique(released, return_index=True)
    _nearest_values(np.ascontiguousarray(people), values, first, places)


@kernel
def _nearest_values(people: Floats, values: Floats, first: Integers, places: Integers) -> None:
    """The nearest of several distinct ascending values, by bisection; ``first`` is the first row of each.

    Different values can be equally near after rounding: neighbors on both sides are tried until one is
    farther.
    """
    for p in range(len(people)):
        x = people[p]
        left, right = 0, len(values)
        while left < right:
            middle = (left + right) // 2
            if values[middle] < x:
                left = middle + 1
            else:
                right = middle
        best, at = np.inf, len(first)
        for step, start in ((-1, left - 1), (1, left)):
            i = start
            while 0 <= i < len(values):
                apart = abs(x - values[i])
                if apart > best:
                    break
                if apart < best or first[i] < at:
                    best, at = apart, first[i]
                i += step
        places[p] = at

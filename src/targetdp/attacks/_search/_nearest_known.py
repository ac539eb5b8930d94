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
class Searched:
    """People and released rows on one scale, ready for searches on any of their columns.

    ``first_guess`` is for each person a row that may be near, such as their own, or -1: it saves time and
    changes nothing. ``products`` are the released columns' sums of products on the ``grid``.
    """

    people: Floats
    released: Floats
    first_guess: Integers
    grid: Grid
    small_people: Smalls
    small_released: Smalls
    products: Floats


def prepare(people: Floats, released: Floats, scale: Floats, first_guess: Integers | None = None) -> Searched:
    """Scale both tables and put them on one grid."""
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
    return Searched(people, released, first_guess, grid, grid.small(people), small, columns @ columns.T)


def nearest(sides: Searched, known: Sequence[int], progress: Progress) -> Integers:
    """For each person the nearest released row on some known columns, given in ascending order."""
    columns = np.asarray(known)
    found = np.empty(len(sides.people), dtype=np.int64)
    if len(columns) == 1:
        _nearest_on_one(sides.people[:, columns[0]], sides.released[:, columns[0]], found)
        progress.advance(len(found))
        return found
    grid = sides.grid
    signs = widest_signs(sides.products[np.ix_(columns, columns)], _MARKS, grid.kind)
    blocks = arrange(sides.small_released[columns], signs, grid.limit, leaving_out=False)
    small = np.ascontiguousarray(sides.small_people[:, columns])
    mark = marks(small.T, signs)

    def work(begin: int, end: int) -> None:
        nearest_rows(
            sides.people, sides.released, columns, small, mark,
            blocks.values, blocks.order, blocks.low, blocks.high,
            sides.first_guess, grid.quantum, grid.limit, begin, end, found,
        )  # fmt: skip

    in_threads(work, len(found), _piece(len(found)), progress)
    return found


def nearest_leaving_one_out(sides: Searched, progress: Progress) -> Integers:
    """For each column and each person (d×people) the nearest released row on all the other columns.

    One pass for all columns. Needs at least two of them.
    """
    d = sides.people.shape[1]
    grid = sides.grid
    found = np.empty((d, len(sides.people)), dtype=np.int64)
    signs = widest_signs(sides.products, 1, grid.kind)  # more marks cost d times more here than they save
    blocks = arrange(sides.small_released, signs, grid.limit, leaving_out=True)

    def work(begin: int, end: int) -> None:
        nearest_rows_leaving_out(
            sides.people, sides.released, sides.small_people, signs,
            blocks.values, blocks.order, blocks.low, blocks.high,
            sides.first_guess, grid.quantum, grid.limit, begin, end, found,
        )  # fmt: skip

    in_threads(work, len(sides.people), _piece(len(sides.people)), progress, weight=d)
    return found


def _piece(rows: int) -> int:
    """Rows for one thread at a time: enough to be worth it, and enough pieces to share out evenly."""
    return min(4096, max(256, -(-rows // 8)))


def _nearest_on_one(people: Floats, released: Floats, found: Integers) -> None:
    values, first = np.unique(released, return_index=True)
    _nearest_values(np.ascontiguousarray(people), values, first, found)


@kernel
def _nearest_values(people: Floats, values: Floats, first: Integers, found: Integers) -> None:
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
        found[p] = at

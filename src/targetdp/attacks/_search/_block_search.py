"""Rows in blocks of near neighbors, in small whole numbers: most blocks are skipped, the rest read quickly.

Rows come as whole numbers of a ``quantum`` (`ValueGrid`), so that a processor compares sixteen of them at
once and nothing is rounded after that. What lets blocks be skipped are *marks*: functions of a row that
change by no more than the row moves in L1. Two kinds are used: the distance from the middle (one row's L1
norm), and sums of the columns with signs, along which the rows spread most. Blocks are made by halving at
medians of the marks; a row whose marks are far outside a block's range is at least that far from all of its
rows. Boxes around the columns themselves would skip next to nothing: with noise on every column they all
overlap.

A row that is as near as ``best`` in float64, or nearer, is within best/quantum + columns + 1 on the grid: a
column's rounding adds at most 1, and the last 1 is far more than float64's own rounding. So a block whose
marks are farther away, or a row whose sum on the grid is greater, cannot be the nearest, nor tie with it.
All others are compared in float64, with the sum taken column by column in ascending order.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, kernel
from targetdp.attacks._search._tree import select

Smalls: TypeAlias = NDArray[Any]
"""Whole numbers of 16 bits, or of 32 for wide tables."""

BLOCK = 128
"""Rows in a block: eight registers of sixteen numbers."""

_LANES = 64
"""Arrays over blocks have a multiple of this length: the processor's loops then have no ragged end."""


class Blocks(NamedTuple):
    """Rows (as d×n small numbers) in blocks: ``values`` is blocks × columns × rows in a block.

    Place i of block b holds row ``order[b·BLOCK + i]``; the last row fills up the last block. ``signs`` has a
    line for each mark that is a sum with signs. ``low`` and ``high`` are the ranges of the marks in each
    block, marks × (columns + 1) × blocks: of the marks with a column left out, and last with none left out.
    """

    values: Smalls
    order: Integers
    signs: Smalls
    low: Smalls
    high: Smalls


def arrange(small: Smalls, signs: Smalls, limit: int, *, leaving_out: bool) -> Blocks:
    """Put rows in blocks by their marks; ranges with a column left out only if they are wanted."""
    columns, n = small.shape
    whole = marks(small, signs)
    order = np.arange(n)
    _halve(whole, order)
    count = -(-n // BLOCK)
    order = np.append(order, np.repeat(order[-1:], count * BLOCK - n))
    values = np.ascontiguousarray(small[:, order].reshape(columns, count, BLOCK).transpose(1, 0, 2))
    low = np.full((len(whole), columns + 1, -(-count // _LANES) * _LANES), limit // 2, dtype=small.dtype)
    high = low.copy()
    for f, part in enumerate(parts(small, signs)):
        for column in range(0 if leaving_out else columns, columns + 1):
            mark = whole[f] if column == columns else whole[f] - part[column]
            in_blocks = mark[order].reshape(count, BLOCK)
            low[f, column, :count], high[f, column, :count] = in_blocks.min(axis=1), in_blocks.max(axis=1)
    return Blocks(values, order, signs, low, high)


def widest_signs(products: Floats, number: int, kind: type[np.signedinteger[Any]]) -> Smalls:
    """Signs of the columns in the directions of greatest spread; ``products`` are sums over rows."""
    directions = np.linalg.eigh(products)[1][:, ::-1][:, :number]
    return np.where(directions.T >= 0, 1, -1).astype(kind)


def parts(small: Smalls, signs: Smalls) -> list[Smalls]:
    """For each mark what each column adds to it (columns × rows)."""
    return [np.abs(small), *(small * sign[:, None] for sign in signs)]


def marks(small: Smalls, signs: Smalls) -> Smalls:
    """Marks × rows."""
    return np.stack([part.sum(axis=0, dtype=small.dtype) for part in parts(small, signs)])


@kernel
def _halve(mark: Smalls, order: Integers) -> None:
    """Reorder rows: halve at the median of the mark that varies most, and each half again, down to a block.

    Halves are whole blocks. Variation is judged by a few hundred rows of each part.
    """
    begins, ends = np.empty(64, np.int64), np.empty(64, np.int64)
    begins[0], ends[0] = 0, len(order)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        begin, end = begins[waiting], ends[waiting]
        if end - begin <= BLOCK:
            continue
        by, widest = 0, -1.0
        for f in range(len(mark)):
            total, squares, count = 0.0, 0.0, 0
            for i in range(begin, end, max(1, (end - begin) // 256)):
                x = float(mark[f, order[i]])
                total += x
                squares += x * x
                count += 1
            spread = squares - total * total / count
            if spread > widest:
                by, widest = f, spread
        middle = begin + (end - begin + BLOCK - 1) // BLOCK // 2 * BLOCK
        select(mark[by], order, begin, end - 1, middle)
        begins[waiting], ends[waiting] = begin, middle
        begins[waiting + 1], ends[waiting + 1] = middle, end
        waiting += 2


# Search kernels: the nearest row in blocks, first in small whole numbers, then exactly.


@kernel
def nearest_rows(
    people: Floats, released: Floats, known: Integers, small: Smalls, mark: Smalls, blocks: Blocks,
    first_guess: Integers, quantum: float, limit: int, begin: int, end: int, places: Integers,
) -> None:  # fmt: skip
    """For people ``begin`` to ``end`` the nearest released row on the known columns, ties to the first row.

    ``small`` (people × known columns) and ``mark`` (marks × people) are theirs on the grid. ``first_guess``
    is a row that may be near, or -1.
    """
    values, order, low, high = blocks.values, blocks.order, blocks.low, blocks.high
    count = len(values)
    sums, bound = np.empty(BLOCK, values.dtype), np.empty(low.shape[2], values.dtype)
    waiting = np.empty(count + 1, np.int64)
    for p in range(begin, end):
        row = small[p]
        _gaps(low, high, len(known), mark, p, bound)
        at = _likely(values, order, row, bound[:count], sums)
        best = _distance(people, p, released, at, known)
        guess = first_guess[p]
        if guess >= 0:
            apart = _distance(people, p, released, guess, known)
            if apart < best:  # of a tie the first row is found below
                best, at = apart, guess
        reach = _reach(best, quantum, len(known), limit)
        listed = 0
        for b in range(count):  # without a branch that the processor could guess wrongly
            waiting[listed] = b
            listed += bound[b] <= reach
        for b in waiting[:listed]:
            if bound[b] > reach:  # the reach has become shorter since
                continue
            _sums(values, b, row, sums)
            if _lowest(sums) > reach:
                continue
            for i in range(BLOCK):
                candidate = order[b * BLOCK + i]
                if sums[i] > reach or (best == 0.0 and candidate >= at):
                    continue
                apart = _distance(people, p, released, candidate, known)
                if apart < best or (apart == best and candidate < at):
                    best, at = apart, candidate
                    reach = _reach(best, quantum, len(known), limit)
        places[p] = at


@kernel
def nearest_rows_leaving_out(
    people: Floats, released: Floats, small: Smalls, blocks: Blocks, first_guess: Integers, quantum: float,
    limit: int, begin: int, end: int, places: Integers,
) -> None:  # fmt: skip
    """For people ``begin`` to ``end`` and each column the nearest released row on all the other columns.

    One pass serves all columns: a row matters if its sum less one term is within that column's reach, that
    is, if the whole sum is within the greatest of (term + reach). Near blocks come first, since a reach that
    is short early saves most.
    """
    values, order, low, high = blocks.values, blocks.order, blocks.low, blocks.high
    count, columns = len(values), people.shape[1]
    cap = limit - limit // columns  # of a reach: with one term added it is still within the limit
    sums, room = np.empty(BLOCK, values.dtype), np.empty(BLOCK, values.dtype)
    gap, bound = np.empty(low.shape[2], values.dtype), np.empty(low.shape[2], values.dtype)
    seen = np.full(count, -1)
    best, at, terms = np.empty(columns), np.empty(columns, np.int64), np.empty(columns)
    reach = np.empty(columns, values.dtype)
    mark = np.empty((len(low), columns + 1), values.dtype)
    for p in range(begin, end):
        row = small[p]
        _marks_leaving_out(row, blocks.signs, mark)
        _gaps(low, high, columns, mark, columns, bound)
        best[:] = np.inf
        at[:] = len(released)
        candidate = _likely(values, order, row, bound[:count], sums)
        _compare(people, p, released, candidate, quantum, cap, terms, best, at, reach)
        if first_guess[p] >= 0:
            _compare(people, p, released, first_guess[p], quantum, cap, terms, best, at, reach)
        for part in (2, 1):  # blocks within half of the reach, then all others
            bound[:] = limit
            for column in range(columns):
                _gaps(low, high, column, mark, column, gap)
                _least_excess(gap, reach[column] // part, bound)
            for b in range(count):
                if bound[b] > 0 or seen[b] == p:
                    continue
                seen[b] = p
                _sums_less_room(values, b, row, reach, sums, room)
                if _lowest(sums) > 0:
                    continue
                for i in range(BLOCK):
                    if sums[i] <= 0:
                        candidate = order[b * BLOCK + i]
                        _compare(people, p, released, candidate, quantum, cap, terms, best, at, reach)
        for j in range(columns):
            places[j, p] = at[j]


@kernel
def _marks_leaving_out(row: Smalls, signs: Smalls, mark: Smalls) -> None:
    """A row's marks without each column, and last with all of them."""
    columns = len(row)
    for f in range(len(mark)):
        total = 0
        for k in range(columns):
            mark[f, k] = abs(row[k]) if f == 0 else signs[f - 1, k] * row[k]
            total += mark[f, k]
        for k in range(columns):
            mark[f, k] = total - mark[f, k]
        mark[f, columns] = total


@kernel
def _gaps(low: Smalls, high: Smalls, left_out: int, mark: Smalls, place: int, gap: Smalls) -> None:
    """How far a row's marks are outside each block's ranges: no row of the block is nearer than that.

    Whole arrays are handed over, not slices: numba counts references to those, at a price.
    """
    kind = gap.dtype.type  # numba computes in 64 bits unless told otherwise
    for b in range(len(gap)):
        gap[b] = 0
    for f in range(len(low)):
        lowest, highest, x = low[f, left_out], high[f, left_out], mark[f, place]
        for b in range(len(gap)):
            gap[b] = max(gap[b], kind(lowest[b] - x), kind(x - highest[b]))


@kernel
def _least_excess(gap: Smalls, reach: int, out: Smalls) -> None:
    kind = out.dtype.type
    for b in range(len(out)):
        out[b] = min(out[b], kind(gap[b] - reach))


@kernel
def _likely(values: Smalls, order: Integers, row: Smalls, bound: Smalls, sums: Smalls) -> int:
    """A row that is probably near: the nearest on the grid in the block with the lowest bound."""
    block = _place(bound, _lowest(bound))
    _sums(values, block, row, sums)
    return int(order[block * BLOCK + _place(sums, _lowest(sums))])


@kernel
def _sums(values: Smalls, block: int, row: Smalls, sums: Smalls) -> None:
    """L1 distances on the grid from a row to all rows of a block; columns are taken by fours.

    |c - x| is written as max - min: the compiler then sees that 16 bits are enough.
    """
    column = len(row) % 4
    for i in range(BLOCK):
        sums[i] = 0
    for k in range(column):
        x, c = row[k], values[block, k]
        for i in range(BLOCK):
            sums[i] += max(c[i], x) - min(c[i], x)
    while column < len(row):
        x0, x1, x2, x3 = row[column], row[column + 1], row[column + 2], row[column + 3]
        c0, c1 = values[block, column], values[block, column + 1]
        c2, c3 = values[block, column + 2], values[block, column + 3]
        for i in range(BLOCK):
            sums[i] += (
                (max(c0[i], x0) - min(c0[i], x0)) + (max(c1[i], x1) - min(c1[i], x1))
                + (max(c2[i], x2) - min(c2[i], x2)) + (max(c3[i], x3) - min(c3[i], x3))
            )  # fmt: skip
        column += 4


@kernel
def _sums_less_room(
    values: Smalls, block: int, row: Smalls, reach: Smalls, sums: Smalls, room: Smalls
) -> None:
    """For all rows of a block: the sum of terms less the greatest of (term + its column's reach)."""
    kind = sums.dtype.type
    for i in range(BLOCK):
        sums[i] = 0
        room[i] = 0
    column = len(row) % 2
    for k in range(column):
        x, c, r = row[k], values[block, k], reach[k]
        for i in range(BLOCK):
            term = kind(max(c[i], x) - min(c[i], x))
            sums[i] = term
            room[i] = kind(term + r)
    while column < len(row):
        x0, x1, r0, r1 = row[column], row[column + 1], reach[column], reach[column + 1]
        c0, c1 = values[block, column], values[block, column + 1]
        for i in range(BLOCK):
            term0 = kind(max(c0[i], x0) - min(c0[i], x0))
            term1 = kind(max(c1[i], x1) - min(c1[i], x1))
            sums[i] += term0 + term1
            room[i] = max(room[i], kind(term0 + r0), kind(term1 + r1))
        column += 2
    for i in range(BLOCK):
        sums[i] -= room[i]


@kernel
def _compare(
    people: Floats, p: int, released: Floats, candidate: int, quantum: float, cap: int,
    terms: Floats, best: Floats, at: Integers, reach: Smalls,
) -> None:  # fmt: skip
    """Compare a row exactly, each column left out in turn."""
    columns = len(terms)
    total = 0.0
    for k in range(columns):
        terms[k] = abs(people[p, k] - released[candidate, k])
        total += terms[k]
    rounding = columns * 2.0**-50
    for j in range(columns):
        # The difference is close to the sum without the column, but not that sum as defined.
        if total - terms[j] > best[j] + total * rounding or (best[j] == 0.0 and candidate >= at[j]):
            continue
        apart = 0.0
        for k in range(j):
            apart += terms[k]
        for k in range(j + 1, columns):
            apart += terms[k]
        if apart < best[j] or (apart == best[j] and candidate < at[j]):
            best[j], at[j] = apart, candidate
            reach[j] = _reach(apart, quantum, columns, cap)


@kernel
def _distance(people: Floats, p: int, released: Floats, candidate: int, known: Integers) -> float:
    total = 0.0
    for k in known:
        total += abs(people[p, k] - released[candidate, k])
    return total


@kernel
def _reach(best: float, quantum: float, columns: int, limit: int) -> int:
    """How far on the grid a row may be that is not farther than ``best``."""
    steps = best / quantum + columns + 1
    return limit if steps >= limit else int(steps)


@kernel
def _lowest(values: Smalls) -> int:
    lowest = values[0]
    for i in range(len(values)):
        value = values[i]
        if value < lowest:  # noqa: PLR1730 (min() would widen to 64 bits)
            lowest = value
    return int(lowest)


@kernel
def _place(values: Smalls, value: int) -> int:
    place = 0
    while values[place] != value:
        place += 1
    return place

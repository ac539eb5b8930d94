"""Rows in blocks of near neighbors, in small whole numbers: most blocks are skipped, the rest read quickly.

Values become whole numbers of a ``quantum``, so that a processor compares sixteen of them at once and nothing
is rounded after that. What lets blocks be skipped are *marks*: functions of a row that change by no more than
the row moves in L1. Two kinds are used: the distance from the middle (one row's L1 norm), and sums of the
columns with signs, along which the rows spread most. Blocks are made by halving at medians of the marks; a
row whose marks are far outside a block's range is at least that far from all of its rows. Boxes around the
columns themselves would skip next to nothing: with noise on every column they all overlap.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, kernel
from targetdp.attacks._search._tree import select

Smalls: TypeAlias = NDArray[Any]
"""Whole numbers of 16 bits, or of 32 for wide tables."""

BLOCK = 128
"""Rows in a block: eight registers of sixteen numbers."""

_WIDE = 64
"""With more columns than this a sum in 16 bits leaves too few steps for each."""

_STRAIGHT = 4.0
"""Values keep their distances up to so many deviations from the middle, judged by the middle half."""

_TINY = float(np.finfo(np.float64).tiny)

_LANES = 64
"""Arrays over blocks have a multiple of this length: the processor's loops then have no ragged end."""


@dataclass(frozen=True)
class Grid:
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


def grid_for(rows: Floats) -> Grid:
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
    return Grid(middle, bend, quantum if quantum > _TINY else 1.0, most, limit, kind)


def _bent(table: Floats, middle: Floats, bend: Floats) -> Floats:
    steps = table - middle
    far = np.nonzero(np.abs(steps) > bend)
    x, b = steps[far], bend[far[1]]
    steps[far] = np.copysign(b * (1 + np.log(np.abs(x)) - np.log(b)), x)
    return np.asarray(steps)


@dataclass(frozen=True)
class Blocks:
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
    values = np.empty((count, columns, BLOCK), dtype=small.dtype)
    _lay_out(small, order, values)
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


@kernel
def _lay_out(small: Smalls, order: Integers, values: Smalls) -> None:
    for b in range(values.shape[0]):
        for column in range(values.shape[1]):
            for i in range(BLOCK):
                values[b, column, i] = small[column, order[b * BLOCK + i]]

"""Private centers and scales of columns, from quantiles on a grid that is fixed for all tables.

A column's center is its median, and its scale the distance from it that 97.5% of people are within: long tails
and many zeros do not move them. Both are drawn by the exponential mechanism over the cells of one public grid,
which grows by a factor of 2^(1/4) from 10⁻⁹ to 10¹²; nobody has to declare bounds.

A person's row changes each count of `Cells` by at most one. So the utility of a cell, which is minus how many
people too many or too few lie beyond it, changes by at most one, too, and drawing cells with chances
proportional to e^(ε·u/2) is ε-differentially private (McSherry and Talwar 2007).
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import accumulate

import numpy as np

from targetdp._core import Floats, Integers, check
from targetdp.guarantee import Guarantee
from targetdp.noise import WordStream

_PER_DOUBLING, _LOWEST, _HIGHEST = 4, -30, 40
_POSITIVE = _PER_DOUBLING * (_HIGHEST - _LOWEST)
WITHIN = 0.975
"""The share of people whose distance from the center is at most the scale."""
_FEW = 0.025
"""A cell is no scale unless that share of people lies around it, within a factor of `_AROUND` cells."""
_AROUND = 3 * _PER_DOUBLING
_FOR_CENTERS = 0.05
"""Of ε: a center may be off by a part of the scale, and scales must not."""
_PRECISION, _BITS = 90, 256
TAIL = 2.0**-100
"""Bounds what rounding of chances may do: each of a few thousand is off by less than 2⁻²⁵⁶ of the largest."""


def cells_of(values: Floats) -> Integers:
    """The cell of each value: 0 for zero, 1 to `_POSITIVE` for sizes, and the same below zero for negatives."""
    with np.errstate(divide="ignore"):
        place = np.floor(_PER_DOUBLING * (np.log2(np.abs(values)) - _LOWEST))
    inside = np.clip(np.nan_to_num(place, neginf=-1.0), 0, _POSITIVE - 1).astype(np.int64) + 1
    return np.asarray(np.where(values == 0, 0, np.where(values > 0, inside, -inside)))


def count_cells(values: Floats) -> Integers:
    """How many rows of each column are in each cell, from the most negative to the largest."""
    n, d = values.shape
    cells = cells_of(values) + _POSITIVE
    width = 2 * _POSITIVE + 1
    flat = (cells + width * np.arange(d)).ravel()
    return np.bincount(flat, minlength=d * width).reshape(d, width)


def middle_of(cell: int) -> float:
    """The value that stands for a cell: 0, or its geometric middle."""
    if cell == 0:
        return 0.0
    return math.copysign(2.0 ** ((abs(cell) - 0.5) / _PER_DOUBLING + _LOWEST), cell)


@dataclass(frozen=True)
class PrivateScales:
    """How private scales will be drawn: everything about it that depends on public numbers only.

    Args:
        rows: How many people they are estimated from.
        columns: How many columns.
        epsilon: ε that is spent on them, from 0.0001 to 100.
    """

    rows: int
    columns: int
    epsilon: float

    def __post_init__(self) -> None:
        check.integer("rows", self.rows, at_least=1, at_most=2**31)
        check.integer("columns", self.columns, at_least=1)
        check.number("epsilon", self.epsilon, at_least=1e-4, at_most=100)

    @property
    def spent(self) -> Guarantee:
        """What they will have cost: classic differential privacy."""
        return Guarantee(B=2, epsilon=self.epsilon, delta=TAIL)

    def draw_centers(self, counts: Integers, words: WordStream) -> Floats:
        """A center for each column, from `count_cells` of its values."""
        epsilon = Decimal(self.epsilon) * Decimal(_FOR_CENTERS) / self.columns
        half = self.rows // 2
        found = []
        for column in counts:
            upto = np.cumsum(column)
            short = np.maximum(half - upto, (upto - column) - half)
            cell = _draw([max(0, int(one)) for one in short], epsilon, words)
            found.append(middle_of(cell - _POSITIVE))
        return np.array(found)

    def draw_scales(self, counts: Integers, words: WordStream) -> list[float | None]:
        """A scale for each column, from `count_cells` of its distances from the centers; None where too few
        people differ from it.
        """
        epsilon = Decimal(self.epsilon) * (1 - Decimal(_FOR_CENTERS)) / self.columns
        wanted, enough = math.ceil(WITHIN * self.rows), math.ceil(_FEW * self.rows)
        found: list[float | None] = []
        for whole in counts:
            column = whole[_POSITIVE:]
            upto = np.cumsum(column)
            short = np.maximum(wanted - upto, (upto - column) - wanted)
            padded = np.concatenate(
                [np.zeros(_AROUND, dtype=np.int64), column[1:], np.zeros(_AROUND, dtype=np.int64)]
            )
            around = np.convolve(padded, np.ones(2 * _AROUND + 1, dtype=np.int64), mode="valid")
            short[1:] = np.maximum(short[1:], enough - around)
            cell = _draw([max(0, int(one)) for one in short], epsilon, words)
            found.append(None if cell == 0 else 2.0 ** (cell / _PER_DOUBLING + _LOWEST))
        return found


def _draw(short: list[int], epsilon: Decimal, words: WordStream) -> int:
    """A place, with chances proportional to e^(−ε·short/2) up to 2⁻²⁵⁶ of the largest."""
    context = Context(prec=_PRECISION)
    least = min(short)
    chances: dict[int, int] = {}
    for one in set(short):
        power = context.exp(context.multiply(epsilon, Decimal(least - one) / 2))
        chances[one] = int(context.multiply(power, Decimal(2**_BITS))) + 1
    sums = list(accumulate(chances[one] for one in short))
    return bisect_right(sums, _below(sums[-1], words))


def _below(bound: int, words: WordStream) -> int:
    """A whole number from 0 to below a bound, each exactly as likely."""
    bits = bound.bit_length()
    drawn = np.empty(-(-bits // 64), dtype=np.uint64)
    while True:
        words.fill(drawn)
        number = int.from_bytes(drawn.tobytes(), "little") >> (64 * len(drawn) - bits)
        if number < bound:
            return number

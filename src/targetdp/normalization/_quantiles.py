"""Private centers and scales of columns, from quantiles on a grid that is the same for all tables.

A column's center is its median, and its scale the distance from it that 97.5% of people are within: long
tails and many zeros do not move them. Both are drawn among the cells of a public grid, which cuts every
doubling from 10⁻⁹ to 10¹² into equal parts, so nobody has to declare bounds.

How many people there are is public. A row that is replaced by another one changes by at most one how many
people are in any set of cells. So the `short` of a cell, the people whom it is short of being the quantile,
changes by at most one, too, and drawing cells with chances proportional to e^(−ε·short/2) is ε-differentially
private (the exponential mechanism of McSherry and Talwar 2007). Everything after the draws, refusals with it,
is made of what was drawn alone.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from targetdp._core import Floats, Integers, check, up
from targetdp.guarantee import Guarantee
from targetdp.noise import WordStream

WITHIN = 0.975
"""The share of people whose distance from the center is at most the scale."""
_FEW = 0.0375
"""A cell is no scale unless this share of people lies around it, up to a factor of 16 away. 5% have a scale,
2.5% none, and of a share in between it is refused the more often the less it is.
"""
_AROUND = 16
_REFUSALS = 8
"""Places that stand for having no scale: as many as there are cells that would do for a scale, about."""
_FOR_CENTERS = Fraction(2, 25)
"""Of ε: a center may be off by a part of the scale, and scales must not."""
_LOWEST, _HIGHEST = -30, 40
"""The grid has cells from 2⁻³⁰ to 2⁴⁰; what is beyond belongs to the first or last one."""
_SCALE_DIGITS = 3
"""Eight cells for each doubling: wider ones would cost accuracy by where a column's unit happens to be."""
_FEWEST_DIGITS, _MOST_DIGITS, _MOST_COUNTS = 2, 9, 2**20
"""Centers have as many cells as there is room for: those of many columns have fewer."""
_MISSED = 0.01
"""How often the noise may drown the center, or the scale, of a column."""
_FRACTION_DIGITS = 52
_PRECISION, _BITS, _POWER_BITS = 160, 384, 448
_ROWS = 2**31
TAIL = 2.0**-100
"""Bounds what rounding of chances may do, by far.

Each is off by at most 2, and the largest is 2³⁸⁴. So a draw among so many cells has another law by at most
2·cells/2³⁸⁴ (total variation), and all draws together, which have fewer than 2²⁵ cells, by 2⁻³⁵⁸. Between two
tables that makes δ at most 1 + e^ε times as much, which is below 2¹⁴⁵ times, since ε is at most 100.
"""


class UntoldScalesError(ValueError):
    """Private scales were drawn and paid for, and some columns have none that could be used.

    Example:
        >>> from targetdp import private_scales
        >>> try:
        ...     private_scales(np.zeros((10_000, 1)), epsilon=1)
        ... except UntoldScalesError as error:
        ...     print(str(error)[:45])
        private scales were drawn, and cannot be used
    """


@dataclass(frozen=True)
class _Grid:
    """Zero, and cells of floats whose exponent and first binary digits are the same."""

    digits: int

    @property
    def cells(self) -> int:
        """How many there are above zero."""
        return (_HIGHEST - _LOWEST) << self.digits

    @property
    def _first(self) -> int:  # what the first cell's floats begin with
        return (1023 + _LOWEST) << self.digits

    def cells_of(self, sizes: Floats) -> Integers:
        """The cell of each value from 0 to infinity: 0 for zero, then from 1 on."""
        bits = sizes.view(np.int64)
        place = np.clip((bits >> (_FRACTION_DIGITS - self.digits)) - (self._first - 1), 1, self.cells)
        place[bits == 0] = 0
        return np.asarray(place)

    def ends(self, cell: int) -> tuple[float, float]:
        """Where a cell above zero begins and ends."""
        begins = np.array([cell - 1, cell]) + self._first
        low, high = (begins << (_FRACTION_DIGITS - self.digits)).view(np.float64).tolist()
        return low, high

    def width_at(self, value: float) -> float:
        """How wide the cell of a value is; 0 for zero."""
        cell = int(self.cells_of(np.abs([value]))[0])
        return float(np.diff(self.ends(cell))[0]) if cell else 0.0


def _center_grid(columns: int) -> _Grid:
    """The finest grid on which so many columns can be counted."""
    digits = _MOST_DIGITS
    while digits > _FEWEST_DIGITS and columns * (2 * _Grid(digits).cells + 1) > _MOST_COUNTS:
        digits -= 1
    return _Grid(digits)


_SCALE_GRID = _Grid(_SCALE_DIGITS)


def _scale_of(cell: int) -> float:
    """The scale that a cell stands for."""
    return math.sqrt(math.prod(_SCALE_GRID.ends(cell)))


def count_values(columns: Floats) -> Integers:
    """How many values of each column are in each cell, from the most negative one to the largest.

    Args:
        columns: d columns of n finite values: all whose scales are estimated together.

    Returns:
        A row of counts for each column. Those of several batches of rows can be added up.

    Example:
        >>> counts = count_values(np.array([[0.0, 0.0, 3.0]]))
        >>> counts[counts > 0]
        array([2, 1])
    """
    grid = _center_grid(len(columns))
    counts = np.empty((len(columns), 2 * grid.cells + 1), dtype=np.int64)
    for place, column in enumerate(columns):
        cells = grid.cells_of(np.abs(column))
        np.negative(cells, out=cells, where=column < 0)
        counts[place] = np.bincount(cells + grid.cells, minlength=counts.shape[1])
    return counts


def count_distances(columns: Floats, centers: Floats) -> Integers:
    """How many values of each column are how far from its center, cell by cell, from 0 on.

    Args:
        columns: d columns of n finite values.
        centers: The center of each column.

    Returns:
        A row of counts for each column. Those of several batches of rows can be added up.

    Example:
        >>> counts = count_distances(np.array([[0.0, 0.0, 3.0]]), np.zeros(1))
        >>> counts[counts > 0]
        array([2, 1])
    """
    counts = np.empty((len(columns), _SCALE_GRID.cells + 1), dtype=np.int64)
    with np.errstate(over="ignore"):  # what is too far for a float is in the last cell
        for place, (column, center) in enumerate(zip(columns, centers, strict=True)):
            cells = _SCALE_GRID.cells_of(np.abs(column - center))
            counts[place] = np.bincount(cells, minlength=counts.shape[1])
    return counts


@dataclass(frozen=True)
class PrivateScales:
    """How private scales will be drawn: everything about it that depends on public numbers only.

    Args:
        rows: How many people they are estimated from.
        columns: How many columns.
        epsilon: ε that is spent on them, from 0.0001 to 100.

    Raises:
        ValueError: There are too few people for so many columns and this ε: noise would drown the scales.

    Guarantees: `draw_centers` and `draw_scales`, each called once, are together (2, ε, `TAIL`)-TDP, which is
    classic differential privacy, between tables with as many rows.

    Example:
        >>> PrivateScales(100_000, 10, 0.1).spent.epsilon
        0.1
    """

    rows: int
    columns: int
    epsilon: float

    def __post_init__(self) -> None:
        check.integer("rows", self.rows, at_least=1, at_most=_ROWS)
        check.dimensions(self.columns, "columns")
        check.number("epsilon", self.epsilon, at_least=1e-4, at_most=100)
        needed = self._rows_for_one * self.columns / self.epsilon
        if self.rows < needed:
            fewer = math.floor(self.rows * self.epsilon / self._rows_for_one)
            raise ValueError(
                f"epsilon = {self.epsilon:g} for the private scales of {self.columns:,} columns needs at "
                f"least {math.ceil(needed):,} rows, and there are {self.rows:,}: noise would drown the "
                f"scales; use a larger epsilon (about {up(self.epsilon * needed / self.rows, 2)}), "
                + (f"fewer columns (at most {fewer:,}) " if fewer else "")
                + "or public scales"
            )

    @property
    def _rows_for_one(self) -> float:
        """The rows that one column needs at ε = 1.

        A cell that is short of more than s people is drawn with a chance of at most cells·e^(−ε·s/2). Of a
        scale, s is the share of people that it may miss; of a center, half of them: beyond lies nobody.
        """
        centers, scales = 2 * _center_grid(self.columns).cells + 1, _SCALE_GRID.cells + 1
        return max(
            2 * math.log(centers / _MISSED) / (float(_FOR_CENTERS) * 0.5),
            2 * math.log(scales / _MISSED) / (float(1 - _FOR_CENTERS) * (1 - WITHIN)),
        )

    @property
    def spent(self) -> Guarantee:
        """What they will have cost: classic differential privacy."""
        return Guarantee(B=2, epsilon=self.epsilon, delta=TAIL)

    def draw_centers(self, counts: Integers, words: WordStream) -> Floats:
        """Draw a center for each column. One call is one release.

        Args:
            counts: The total of `count_values` over all rows.
            words: Where random bits come from.

        Returns:
            The middle of the cell that was drawn for each column.
        """
        return np.array([self.center_of(law.draw(words)) for law in self.center_laws(counts)])

    def draw_scales(
        self, centers: Floats, counts: Integers, words: WordStream, names: Sequence[str] | None = None
    ) -> Floats:
        """Draw a scale for each column. One call is one release.

        Args:
            centers: What `draw_centers` has drawn.
            counts: The total of `count_distances` from them over all rows.
            words: Where random bits come from.
            names: What messages call the columns; by default their places in X.

        Returns:
            The geometric middle of the cell that was drawn for each column.

        Raises:
            UntoldScalesError: By what was drawn, a column has no scale that could be used. It is paid for.
        """
        cells = [self.cell_of(law.draw(words)) for law in self.scale_laws(centers, counts)]
        why_not = map(self._why_not, centers.tolist(), cells)
        wrong = {place: why for place, why in enumerate(why_not) if why is not None}
        if wrong:
            raise UntoldScalesError(_in_words(wrong, names))
        return np.array([_scale_of(cell) for cell in cells])

    def center_laws(self, counts: Integers) -> Iterator["Law"]:
        """The chances of each column's center, cell by cell."""
        epsilon = Fraction(self.epsilon) * _FOR_CENTERS / self.columns
        return (Law.of(short_of(column, self.rows // 2), epsilon) for column in counts)

    def scale_laws(self, centers: Floats, counts: Integers) -> Iterator["Law"]:
        """The chances of each column's scale: some places for none, then cell by cell."""
        epsilon = Fraction(self.epsilon) * (1 - _FOR_CENTERS) / self.columns
        for center, column in zip(centers.tolist(), counts, strict=True):
            short = short_of_scale(column, self.rows, self._too_close(center))
            yield Law.of(np.concatenate([np.repeat(short[0], _REFUSALS - 1), short]), epsilon)

    def cell_of(self, place: int) -> int:
        """The cell that a place of `scale_laws` stands for: 0 for no scale."""
        return max(0, place + 1 - _REFUSALS)

    def _too_close(self, center: float) -> int:
        """The last cell of distances that are no more than the center may be off by, in its own cell."""
        width = _center_grid(self.columns).width_at(center)
        cell = int(_SCALE_GRID.cells_of(np.array([width]))[0])
        return cell if not cell or _scale_of(cell) <= width else cell - 1

    def center_of(self, place: int) -> float:
        """The center that a place of `center_laws` stands for."""
        grid = _center_grid(self.columns)
        cell = place - grid.cells
        return math.copysign(sum(grid.ends(abs(cell))) / 2, cell) if cell else 0.0

    def _why_not(self, center: float, cell: int) -> str | None:
        """Why a cell that was drawn is no scale."""
        if cell == 0:
            close = self._too_close(center)
            by = f" by more than {_SCALE_GRID.ends(close)[1]:.2g}" if close else ""
            return f"fewer than about 5% of people differ from {center:.4g}{by}"
        if cell in {1, _SCALE_GRID.cells}:
            return f"values are mostly below {2.0**_LOWEST:.0e} or above {2.0**_HIGHEST:.0e} in size"
        if cell <= self._too_close(center):
            return f"nearly all people are within {_scale_of(cell):.2g} of {center:.4g}, too close to tell"
        return None


def short_of(counts: Integers, rank: int) -> Integers:
    """By how many people each cell misses the person of a rank: 0 for the cell that has her."""
    upto = np.cumsum(counts)
    return np.asarray(np.maximum(np.maximum(rank - upto, upto - counts - rank), 0))


def short_of_scale(counts: Integers, rows: int, too_close: int) -> Integers:
    """The same for the quantile that is a scale, or how many too few people a cell has around it.

    The first cell is for having no scale: it is short of those who are too many away from the center.
    """
    away = counts.copy()
    away[: too_close + 1] = 0  # whoever is at the center is around no scale
    short = short_of(counts, math.ceil(WITHIN * rows))
    few = math.ceil(_FEW * rows)
    reach = int(math.log2(_AROUND)) << _SCALE_DIGITS
    upto = np.cumsum(np.pad(away[1:], (reach + 1, reach)))
    around = upto[2 * reach + 1 :] - upto[: -2 * reach - 1]
    short[1:] = np.maximum(short[1:], few - around)
    short[0] = max(0, int(away.sum()) - few)
    return short


def chances(gaps: Sequence[int], epsilon: Fraction) -> list[int]:
    """Whole numbers in proportion to e^(−ε·gap/2), each at most 2 off, and 2³⁸⁴ for a gap of 0."""
    powers, found = _powers(epsilon), []
    for gap in gaps:
        chance = 1 << _POWER_BITS
        for place, power in enumerate(powers):
            if gap >> place & 1:
                chance = chance * power >> _POWER_BITS
        found.append((chance >> (_POWER_BITS - _BITS)) + bool(gap))
    return found


@lru_cache(maxsize=8)
def _powers(epsilon: Fraction) -> list[int]:
    """e^(−ε·gap/2) for the gaps 1, 2, 4, 8, …, in whole numbers of 2⁻⁴⁴⁸, rounded down."""
    context = Context(prec=_PRECISION, rounding=ROUND_FLOOR, Emin=-999_999, Emax=999_999, traps=[])
    found = []
    for place in range(_ROWS.bit_length()):
        power = -epsilon * 2**place / 2
        exponent = context.divide(Decimal(power.numerator), Decimal(power.denominator))
        found.append(int(context.multiply(context.exp(exponent), Decimal(1 << _POWER_BITS))))
    return found


@dataclass(frozen=True)
class Law:
    """Places with chances proportional to e^(−ε·short/2), where short is how many people each is short of.

    Those that are short of as many are a group, whose places are equally likely.
    """

    order: Integers = field(repr=False)
    sizes: Integers = field(repr=False)
    weights: list[int] = field(repr=False)

    @classmethod
    def of(cls, short: Integers, epsilon: Fraction) -> "Law":
        """The law for one column."""
        values, sizes = np.unique(short, return_counts=True)
        weights = chances((values - values[0]).tolist(), epsilon)
        return cls(np.argsort(short, kind="stable"), sizes, weights)

    @cached_property
    def ends(self) -> list[int]:
        """Where each group ends, among as many whole numbers as all weights together."""
        return list(accumulate(w * n for w, n in zip(self.weights, self.sizes.tolist(), strict=True)))

    def draw(self, words: WordStream) -> int:
        """A place."""
        number = _below(self.ends[-1], words)
        group = bisect_right(self.ends, number)
        # How far the number is from the group's end says which of its places it is.
        back = (self.ends[group] - 1 - number) // self.weights[group]
        return int(self.order[int(self.sizes[: group + 1].sum()) - 1 - back])


def _below(bound: int, words: WordStream) -> int:
    """A whole number from 0 to below a bound, each exactly as likely."""
    bits = bound.bit_length()
    drawn = np.empty(-(-bits // 64), dtype=np.uint64)
    while True:
        words.fill(drawn)
        number = int.from_bytes(drawn.tobytes(), "little") >> (64 * len(drawn) - bits)
        if number < bound:
            return number


def _in_words(wrong: dict[int, str], names: Sequence[str] | None) -> str:
    which = (f"column {place} of X" if names is None else f"column {names[place]!r}" for place in wrong)
    listed = [f"{name}: {why}" for name, why in zip(which, wrong.values(), strict=True)]
    more = f"; and {len(listed) - 8:,} more columns" if len(listed) > 8 else ""
    return (
        f"private scales were drawn, and cannot be used ({'; '.join(listed[:8])}{more}): leave these columns "
        "out, or declare public scales; what was drawn is paid for"
    )

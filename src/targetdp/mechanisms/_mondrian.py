"""Mondrian k-anonymity (LeFevre, DeWitt and Ramakrishnan 2006): the paper's non-private baseline.

The table is cut in two at a median, and each part again, until no part can be cut without leaving
fewer than `group_size` rows on a side. Each row is then replaced by what its class has in common.
Every column is a quasi-identifier.

A column's median cut is tried in two ways: rows equal to the median go down, or go up. That is
enough: where *any* threshold on that column leaves `group_size` rows on both sides, one of these
two does, since moving a threshold towards the median only adds to the smaller side.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from targetdp._core import Floats, Integers, check, kernel
from targetdp.mechanisms._base import Mechanism
from targetdp.noise import WordStream
from targetdp.normalization import Normalized, clip_rows

Value = Literal["midpoint", "mean"]
"""What stands for a class in each column: the middle of its interval, or the mean of its rows."""


@dataclass(frozen=True)
class Mondrian(Mechanism):
    """k-anonymity by median cuts: at least `group_size` rows of the release look alike.

    Args:
        group_size: How many rows a class has at least, 2 or more.
        value: What stands for a class in each column: ``"midpoint"`` of its interval, or ``"mean"`` of its
            rows.

    Raises:
        ValueError: One of them is outside its range; when privatizing, also for a table of too few rows.

    Guarantees: every row of the release is identical to at least `group_size` - 1 others, on every
    input: ties, constant columns and duplicate rows included. No threshold on one column could cut
    a class further. Reordering the rows of the table reorders the classes with them.
    Does not guarantee: any differential privacy, targeted or not (`guarantee` is None): a class
    tells what its rows have in common, and from a class's means who knows all of its rows but one
    can compute the last. Means stay in the unit ball, up to rounding; midpoints may leave it.
    Edges: a table with fewer rows than `group_size` is refused; from `group_size` to
    2·`group_size` - 1 rows there is one class. Rows are clipped to the unit ball first, as for
    every mechanism, so that mechanisms are compared on the same rows.

    Example:
        >>> Mondrian(group_size=2).classes([[0.1], [0.9], [0.2], [0.8]])
        array([0, 1, 0, 1])
    """

    group_size: int
    value: Value = "midpoint"

    def __post_init__(self) -> None:
        size = check.integer(
            "group_size", self.group_size, at_least=2, remedy="a class of one row hides nothing"
        )
        object.__setattr__(self, "group_size", size)
        check.choice("value", self.value, get_args(Value))

    @property
    def guarantee(self) -> None:
        """None: k-anonymity gives no differential privacy guarantee, whatever its `group_size`."""
        return None

    def _conditions(self, X: Normalized) -> tuple[str, ...]:  # noqa: ARG002 (of none)
        return (
            f"No guarantee holds: {self.group_size} or more rows look alike, and their values are a "
            "statistic of these people.",
        )

    def classes(self, X: Any) -> Integers:
        """Give the class number of every row, for an audit: 0, 1, … in the order of the cuts.

        Rows of one class are those that `privatize` makes identical. (Two classes may still get
        the same values, which only makes a group larger.)

        Args:
            X: n rows of d columns.

        Returns:
            A class number for each row.
        """
        rows, starts = self._cut(clip_rows(check.table(X)))
        numbers = np.empty(len(rows), dtype=np.int64)
        numbers[rows] = np.repeat(np.arange(len(starts)), _sizes(starts, len(rows)))
        return numbers

    def _privatize(self, rows: Floats, words: WordStream, *, fresh: bool) -> Floats:  # noqa: ARG002
        """Replace each row by its class's value in each column; nothing is drawn."""
        return _class_values(rows, *self._cut(rows), self.value == "mean")

    def _cut(self, table: Floats) -> tuple[Integers, Integers]:
        """Row numbers, class by class, and where each class starts; checked before they are used."""
        if len(table) < self.group_size:
            raise ValueError(
                f"group_size = {self.group_size} is more than the {len(table)} rows of X: "
                "it must be 2 to the number of rows; lower it, or release more rows together"
            )
        rows, starts = _cut(table, self.group_size)
        _self_check(rows, starts, len(table), self.group_size)
        return rows, starts


def _self_check(rows: Integers, starts: Integers, count: int, group_size: int) -> None:
    """Refuse to go on if a row is not in exactly one class or a class is too small.

    It stays on: k-anonymity is all that this mechanism promises, published code has broken it on
    ties, and checking costs a hundredth of the work.
    """
    once = len(rows) == count and bool((np.bincount(rows, minlength=count) == 1).all())
    if not once or starts[0] != 0 or _sizes(starts, count).min() < group_size:
        raise RuntimeError(
            f"Mondrian's self-check failed: some class has fewer than group_size = {group_size} "
            "rows or a row is not in exactly one class; nothing was released, report this as a bug"
        )


def _sizes(starts: Integers, count: int) -> Integers:
    return np.diff(starts, append=count)


@kernel
def _cut(table: Floats, group_size: int) -> tuple[Integers, Integers]:
    """Cut until no part can be cut: row numbers, class by class, and where each class starts.

    Parts are ranges of one permutation of the row numbers, cut in place; those that wait are on a
    stack. The lower side is cut first, so classes are numbered by the cuts, not by row order.
    """
    n = len(table)
    rows = np.arange(n)
    # Parts that wait, and classes, are disjoint and have group_size rows or more each.
    firsts, lasts = np.empty(n // group_size, np.int64), np.empty(n // group_size, np.int64)
    starts = np.empty(n // group_size, np.int64)
    values = np.empty(n)
    low, high = np.empty(table.shape[1]), np.empty(table.shape[1])
    _intervals(table, rows, low, high)
    widths = high - low
    firsts[0], lasts[0] = 0, n
    parts, classes = 1, 0
    while parts > 0:
        parts -= 1
        first, last = firsts[parts], lasts[parts]
        part = rows[first:last]
        below = 0
        if len(part) >= 2 * group_size:
            _intervals(table, part, low, high)
            # Range in the part / range in the table; -1 for a column without range, where no cut is. That is
            # decided by comparing, since the quotient of a tiny range may round to 0.
            spread = np.where(high > low, (high - low) / widths, -1.0)
            below = _cut_part(table, part, spread, group_size, values)
        if below == 0:
            starts[classes] = first
            classes += 1
        else:
            firsts[parts], lasts[parts] = first + below, last
            firsts[parts + 1], lasts[parts + 1] = first, first + below
            parts += 2
    return rows, starts[:classes].copy()


@kernel
def _intervals(table: Floats, part: Integers, low: Floats, high: Floats) -> None:
    """Find the least and the greatest value of each column among some rows."""
    low[:] = np.inf
    high[:] = -np.inf
    for row in part:
        for column in range(len(low)):
            x = table[row, column]
            low[column] = x if x < low[column] else low[column]
            high[column] = x if x > high[column] else high[column]


@kernel
def _cut_part(table: Floats, part: Integers, spread: Floats, group_size: int, values: Floats) -> int:
    """Cut a part at the first column that allows it; the number of rows below, 0 if none does.

    Columns are tried by descending spread, the leftmost first among equals.
    """
    for column in np.argsort(-spread, kind="mergesort"):  # a stable sort
        if spread[column] < 0:
            return 0
        below, threshold = _median_cut(table, part, column, group_size, values)
        if below > 0:
            _move(table, part, column, threshold)
            return below
    return 0


@kernel
def _median_cut(
    table: Floats, part: Integers, column: int, group_size: int, values: Floats
) -> tuple[int, float]:
    """Choose where to cut a column: how many rows go down (0: no cut is allowed), up to what value.

    The median is the lower one of two: a value of the column, so nothing is rounded. If ties
    cannot go down with it, the threshold is the next value below, and they go up.
    """
    n = len(part)
    for i in range(n):
        values[i] = table[part[i], column]
    median = _select(values[:n], (n - 1) // 2)
    less, equal = 0, 0
    next_below = -np.inf
    for x in values[:n]:
        less += x < median
        equal += x == median
        next_below = x if next_below < x < median else next_below
    if n - less - equal >= group_size:  # the lower side has half of the rows or more
        return less + equal, median
    if less >= group_size:  # so has the upper side here
        return less, next_below
    return 0, median


@kernel
def _select(values: Floats, rank: int) -> float:
    """Find the value that a sort would put at `rank` (Hoare's quickselect); reorders `values`.

    Scans stop at values equal to the pivot, so ties are shared out evenly. Pivots are medians of
    three at scattered positions, so that sorted, organ-pipe and other regular orders are not slow;
    the result does not depend on them.
    """
    left, right, scatter = 0, len(values) - 1, 1
    while left < right:
        width = right - left + 1
        scatter = (scatter * 1103515245 + 12345) & 0x7FFFFFFF
        a = values[left + (scatter * width >> 31)]
        scatter = (scatter * 1103515245 + 12345) & 0x7FFFFFFF
        b = values[left + (scatter * width >> 31)]
        scatter = (scatter * 1103515245 + 12345) & 0x7FFFFFFF
        c = values[left + (scatter * width >> 31)]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = left, right
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            right = j
        elif rank >= i:
            left = i
        else:
            return float(pivot)
    return float(values[rank])


@kernel
def _move(table: Floats, part: Integers, column: int, threshold: float) -> None:
    """Put the rows up to the threshold first. Both sides keep their order, which memory likes.

    Without a branch: each row is written to both places, and only one of the two moves on.
    """
    upper = np.empty_like(part)
    below, above = 0, 0
    for row in part:
        goes_down = table[row, column] <= threshold
        part[below] = row
        upper[above] = row
        below += goes_down
        above += not goes_down
    for i in range(above):
        part[below + i] = upper[i]


@kernel
def _class_values(table: Floats, rows: Integers, starts: Integers, by_mean: bool) -> Floats:
    """Give every row its class's values: column means, or midpoints of column intervals."""
    released = np.empty_like(table)
    columns = table.shape[1]
    low, high = np.empty(columns), np.empty(columns)
    for number in range(len(starts)):
        last = starts[number + 1] if number + 1 < len(starts) else len(rows)
        part = rows[starts[number] : last]
        _intervals(table, part, low, high)
        # Not half of the sum, which could overflow.
        middle = table[part].sum(axis=0) / len(part) if by_mean else low / 2 + high / 2
        # Rounding can leave the interval: half of the least denormal is 0, and a mean of equal numbers can be
        # off by a unit in the last place. Adding 0 drops the sign of a zero, which would depend on the order
        # of the rows.
        middle = np.minimum(np.maximum(middle, low), high) + 0.0
        for row in part:
            released[row] = middle
    return released

"""Scores that move no two rows apart, with a rounding that is known.

A public function with |f(x) − f(x′)| ≤ ‖x − x′‖. Linear: weights of norm at most 1. Additive: a sum of
functions of one column each, whose largest slopes L_j have Σ L_j² ≤ 1; by Cauchy and Schwarz
|f(x) − f(x′)| ≤ Σ L_j·|x_j − x′_j| ≤ ‖x − x′‖.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from targetdp._core import Floats, check, row_product
from targetdp.mechanisms._weights import score_rounding, unit_map, weights_matrix

_MOST_KNOTS = 1024
_NEAR_ZERO = 2.0**-40
"""How far from 0 the score of a column's 0 may be: what a shift in floats leaves."""


@dataclass(frozen=True)
class RowScore(ABC):
    """A score of one row, which moves by no more than the row does.

    Example:
        >>> score: RowScore = LinearScore((0.5, 0.75))
        >>> score.of_rows(np.array([[0.5, 0.5]]))
        array([0.625])
    """

    @property
    @abstractmethod
    def columns(self) -> int:
        """How many columns a row has."""

    @abstractmethod
    def of_rows(self, rows: Floats) -> Floats:
        """The score of each row of the unit ball; a row's own does not depend on any other row."""

    @property
    def rounding(self) -> float:
        """How much farther than their rows two scores can be apart, since all is computed in floats.

        With u = 2⁻⁵³, clipping moves a row by at most (d/2 + 3)·u, and the score with it. A sum of d terms
        whose absolute values add up to 1 is off by d·u. A term f_j itself is off by at most 5u·L_j·2 for the
        slope, the distance from its knot and their product, and u·|f_j|: together 10u·√d + u. So two rows
        have (3d + 20√d + 8)·u at most, which is below (8d + 64)·u = `score_rounding`, with 16u to spare for a
        distance that is itself rounded.
        """
        return score_rounding(self.columns, 1)

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """The score as plain data; `score_of` reads it back."""


@dataclass(frozen=True)
class LinearScore(RowScore):
    """A weighted sum of the columns.

    Args:
        weights: One number for each column, of norm at most 1; `LinearScore.of` takes any.

    Raises:
        ValueError: They are not usable, or their norm is above 1.

    Example:
        >>> LinearScore.of([3.0, 4.0], B=0.25).of_rows(np.array([[1.0, 0.0]])).round(6)
        array([0.6])
    """

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        given = weights_matrix([self.weights])
        check.dimensions(given.shape[1], "columns")
        if not _is_short(given[0].tolist()):
            raise ValueError("weights have a norm above 1: rows would move apart; make it by LinearScore.of")
        object.__setattr__(self, "weights", tuple(given[0].tolist()))

    @classmethod
    def of(cls, weights: Any, *, B: float) -> "LinearScore":
        """The score of weights of any length: they are divided by their norm.

        Args:
            weights: One number for each column, not all 0.
            B: The distance that is hidden.

        Returns:
            The score.
        """
        given = unit_map(weights, B)
        if len(given) != 1:
            raise ValueError(f"weights make {len(given)} scores: a decision takes one")
        return cls(tuple(given[0].tolist()))

    @property
    def columns(self) -> int:
        """See `RowScore.columns`."""
        return len(self.weights)

    def of_rows(self, rows: Floats) -> Floats:
        """See `RowScore.of_rows`."""
        return row_product(check.table(rows, "rows", columns=self.columns), np.array([self.weights]).T)[:, 0]

    def record(self) -> dict[str, Any]:
        """See `RowScore.record`."""
        return {"weights": list(self.weights)}


@dataclass(frozen=True)
class AdditiveScore(RowScore):
    """A sum of piecewise linear functions, one of each column; constant beyond its first and last knot.

    Args:
        knots: For each column its knots, rising, from −1 to 1. A column with one knot does not count.
        values: For each column its function's values there. At 0 it is 0, so that scores are from −1 to 1;
            `AdditiveScore.of` takes any values.

    Raises:
        ValueError: They do not fit each other, a function is not 0 at 0, or the slopes are too large.

    Guarantees: two scores are at most as far apart as their rows: Σ L_j² ≤ 1, with slopes L_j that are
    computed as fractions and rounded up.

    Example:
        >>> score = AdditiveScore(((-1.0, 0.0, 0.5), (0.0,)), ((0.0, 0.0, 0.5), (0.0,)))
        >>> score.of_rows(np.array([[-0.5, 0.1], [0.25, 0.2], [0.9, 0.3]]))
        array([0.  , 0.25, 0.5 ])
    """

    knots: tuple[tuple[float, ...], ...]
    values: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        knots, values = _functions(self.knots, self.values)
        for j, (at, heights) in enumerate(zip(knots, values, strict=True)):
            if abs(_at(0.0, at, heights)) > _NEAR_ZERO:
                raise ValueError(f"values[{j}] are not 0 at 0: subtract that, or make it by AdditiveScore.of")
        object.__setattr__(self, "knots", knots)
        object.__setattr__(self, "values", values)
        if not _is_short(self.slopes):
            raise ValueError(
                "the slopes are too large: the squares of each column's largest must add up to at most 1; "
                "make it by AdditiveScore.of, which divides by their norm"
            )

    @classmethod
    def of(cls, knots: Any, values: Any) -> "AdditiveScore":
        """The score of any values: shifted to 0 at 0, and divided by the norm of the slopes.

        Args:
            knots: For each column its knots, rising, from −1 to 1.
            values: For each column its function's values there.

        Returns:
            The score. It orders people as the values given do.
        """
        at, given = _functions(knots, values)
        heights = [np.array(column) - _at(0.0, x, column) for x, column in zip(at, given, strict=True)]
        largest = max(float(np.abs(column).max()) for column in heights)
        if largest == 0:
            raise ValueError("values are the same at all knots: a score must depend on some column")
        heights = [column / largest for column in heights]
        for _ in range(2):  # the first division leaves a norm near 1, so that its own error is known
            slopes = [_steepest(x, tuple(column.tolist())) for x, column in zip(at, heights, strict=True)]
            length = math.hypot(*slopes) * (1 + 2.0**-40)
            heights = [column / length for column in heights]
        return cls(at, tuple(tuple(column.tolist()) for column in heights))

    @property
    def slopes(self) -> tuple[float, ...]:
        """The largest slope of each column's function, rounded up."""
        return tuple(_steepest(x, heights) for x, heights in zip(self.knots, self.values, strict=True))

    @property
    def columns(self) -> int:
        """See `RowScore.columns`."""
        return len(self.knots)

    def of_rows(self, rows: Floats) -> Floats:
        """See `RowScore.of_rows`; sums are taken in the order of the columns."""
        rows = check.table(rows, "rows", columns=self.columns)
        total = np.zeros(len(rows))
        for j, (at, heights) in enumerate(zip(self.knots, self.values, strict=True)):
            total += _interpolated(rows[:, j], np.array(at), np.array(heights))
        return total

    def record(self) -> dict[str, Any]:
        """See `RowScore.record`."""
        return {"knots": [list(at) for at in self.knots], "values": [list(column) for column in self.values]}


def score_of(record: Mapping[str, Any]) -> RowScore:
    """Read the score that `RowScore.record` wrote.

    Args:
        record: Plain data: ``weights``, or ``knots`` and ``values``.

    Returns:
        The score.

    Raises:
        ValueError: Something is missing, unknown or out of range.

    Example:
        >>> score_of({"weights": [0.5, 0.75]})
        LinearScore(weights=(0.5, 0.75))
    """
    match dict(record):
        case {"weights": weights, **rest} if not rest:
            return LinearScore(weights)
        case {"knots": knots, "values": values, **rest} if not rest:
            return AdditiveScore(knots, values)
    raise ValueError(f"a score with {sorted(map(str, record))}: it has weights, or knots and values")


# Functions of one column.


def _numbers(name: str, columns: Any) -> tuple[tuple[float, ...], ...]:
    """Several numbers for each column."""
    if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray) or not len(columns):
        raise TypeError(f"{name} = {columns!r} must be a list of numbers for each column")
    check.dimensions(len(columns), "columns")
    found = []
    for j, column in enumerate(columns):
        if isinstance(column, str) or not isinstance(column, Sequence | np.ndarray):
            raise TypeError(f"{name}[{j}] = {column!r} must be a list of numbers")
        if not 1 <= len(column) <= _MOST_KNOTS:
            raise ValueError(f"{name}[{j}] has {len(column)} numbers: give 1 to {_MOST_KNOTS}")
        found.append(tuple(check.number(f"{name}[{j}]", value) for value in column))
    return tuple(found)


def _functions(
    knots: Any, values: Any
) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]:
    """Knots that rise, and a value for each."""
    at, heights = _numbers("knots", knots), _numbers("values", values)
    if [len(column) for column in at] != [len(column) for column in heights]:
        raise ValueError("knots and values do not fit each other: give a value for each knot")
    for j, column in enumerate(at):
        if any(b <= a for a, b in pairwise(column)) or column[0] < -1 or column[-1] > 1:
            raise ValueError(f"knots[{j}] = {column} must rise, from −1 at least to 1 at most")
        _steepest(column, heights[j])  # whether it has a slope that floats can hold
    return at, heights


def _steepest(knots: tuple[float, ...], values: tuple[float, ...]) -> float:
    """The largest slope, as a fraction, rounded up to a float."""
    rises = zip(pairwise(knots), pairwise(values), strict=True)
    exact = max(
        (abs(Fraction(d) - Fraction(c)) / (Fraction(b) - Fraction(a)) for (a, b), (c, d) in rises),
        default=Fraction(0),
    )
    if exact > 2**1000:
        raise ValueError("values change by more than 2¹⁰⁰⁰ times the distance of knots: spread the knots")
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


def _is_short(slopes: Sequence[float]) -> bool:
    """Whether the squares add up to at most 1: floats are fractions, so that this is exact."""
    return sum((Fraction(slope) ** 2 for slope in slopes), Fraction(0)) <= 1


def _at(x: float, knots: tuple[float, ...], values: tuple[float, ...]) -> float:
    return float(_interpolated(np.array([x]), np.array(knots), np.array(values))[0])


def _interpolated(x: Floats, knots: Floats, values: Floats) -> Floats:
    """The piecewise linear function at x. numpy's own is not bound to one formula, and so to no error."""
    if len(knots) == 1:
        return np.full(len(x), values[0])
    x = np.clip(x, knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    slopes = np.diff(values) / np.diff(knots)
    return np.asarray(values[left] + slopes[left] * (x - knots[left]))

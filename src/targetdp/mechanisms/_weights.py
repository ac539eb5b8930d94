"""Weights of scores: a public linear map that moves no two rows apart, floating point included."""

import math
from typing import Any

import numpy as np

from targetdp._core import Floats, check
from targetdp.noise import row_growth

MOST_SCORES = 64
"""Each score is paid for with noise on all of them: somebody who wants more should release the columns."""


_NORM_ERROR = 2.0**-30
"""Relative error allowed for in a norm; a decomposition in floats is far closer than that."""


def weights_matrix(weights: Any, name: str = "weights") -> Floats:
    """Weights as a matrix, or a clear error: they come from somebody else.

    Args:
        weights: One row of numbers, or a row for each score.
        name: What messages call them.

    Returns:
        A matrix with a row for each score.

    Raises:
        ValueError: There are too many scores, or one that depends on no column.

    Example:
        >>> weights_matrix([1.0, 2.0])
        array([[1., 2.]])
    """
    one_row = np.atleast_2d(np.asarray(weights, dtype=np.float64)) if _is_numbers(weights) else weights
    given = check.table(one_row, name)
    scores, columns = given.shape
    if scores > min(MOST_SCORES, columns):
        raise ValueError(
            f"{name} has {scores:,} rows for {columns:,} columns: give at most {min(MOST_SCORES, columns)} "
            "scores, since each is paid for with noise on all; release the columns instead"
        )
    empty = np.flatnonzero(~given.any(axis=1))
    if len(empty):
        raise ValueError(f"{name}[{empty[0]}] is zero: a score must depend on some column")
    return given


def _is_numbers(weights: Any) -> bool:
    """Whether it is one row, or several, of plain numbers."""
    try:
        given = np.asarray(weights)
    except ValueError:  # rows of different lengths
        return False
    return given.dtype.kind in "fiu" and given.ndim > 0


def norm_bound(weights: Floats) -> float:
    """Bound the largest factor by which a linear map moves two rows apart.

    Args:
        weights: A row for each score.

    Returns:
        An upper bound on the largest singular value.

    Example:
        >>> round(norm_bound(np.array([[3.0, 4.0]])), 9)
        5.0
    """
    largest = float(np.abs(weights).max())
    if largest == 0:
        return 0.0
    if len(weights) == 1:
        return largest * math.sqrt(math.fsum((w / largest) ** 2 for w in weights[0])) * (1 + 2.0**-45)
    return largest * float(np.linalg.norm(weights / largest, 2)) * (1 + _NORM_ERROR)


def score_rounding(columns: int, scores: int) -> float:
    """How much farther apart two rows' scores can be because rows are clipped and sums taken in floats.

    Clipping is off by the second term of `row_growth`; a sum of d products by less than that in each score.

    Args:
        columns: How many columns a row has.
        scores: How many scores are made of it.

    Returns:
        A distance.

    Example:
        >>> score_rounding(10, 1) < 1e-13
        True
    """
    return row_growth(columns, 0.0) * (1 + math.sqrt(scores))


def unit_map(weights: Any, B: float) -> Floats:
    """Weights divided by their norm, and shrunk by what rounding may add at distance B.

    So rows within B have scores within B, in floats too. The direction stays, and with it people's order.

    Args:
        weights: One row of numbers, or a row for each score.
        B: The distance that is hidden.

    Returns:
        A matrix of norm at most 1 with a row for each score.

    Raises:
        ValueError: The weights are not usable, or B is too small for so many columns.

    Example:
        >>> unit_map([3.0, 4.0], B=0.25).round(6)
        array([[0.6, 0.8]])
    """
    given = weights_matrix(weights)
    scores, columns = given.shape
    room = 1 - score_rounding(columns, scores) / check.distance(B, "B")
    if room < 0.5:
        raise ValueError(f"B = {B!r} is too small for {columns:,} columns in floating point: use a larger B")
    given = given / np.abs(given).max()
    # Twice: the first division leaves a norm near 1, so that its own error is known.
    for _ in range(2):
        given = given / norm_bound(given)
    return np.asarray(given * (room * (1 - _NORM_ERROR)))

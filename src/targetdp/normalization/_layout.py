"""Between columns (as tables are stored) and rows (as people are): scaled, clipped, in one pass each way."""

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, kernel, row_product
from targetdp.normalization._ball import normalize
from targetdp.normalization._scales import ColumnScales

_TILE = 32
"""Rows handled together: their part of every column and of the result stay in the processor's cache."""


def rows_in_ball(columns: Floats, scales: ColumnScales) -> tuple[Floats, int]:
    """`normalize` for finite values that come column by column.

    Rows whose lengths leave the safe range of floats, some 10^±140, go through `normalize` itself.

    Args:
        columns: d columns of n values.
        scales: Center and scale of each column.

    Returns:
        n rows of d columns in the unit ball, and how many of them were clipped.

    Example:
        >>> from targetdp.normalization import declared_scales
        >>> rows_in_ball(np.array([[3.0], [4.0]]), declared_scales([0, 0], [1, 1]))
        (array([[0.6, 0.8]]), 1)
    """
    rows = np.empty(columns.shape[::-1])
    odd = np.zeros(columns.shape[1], dtype=np.bool_)
    clipped = _fill_rows(columns, scales.center, scales.scale, rows, odd)
    if odd.any():
        rows[odd] = normalize(np.ascontiguousarray(columns[:, odd].T), scales).X
    return rows, clipped


def scores_in_ball(columns: Floats, scales: ColumnScales, weights: Floats) -> tuple[Floats, int]:
    """Weighted sums of `rows_in_ball`, without ever holding these rows.

    The same numbers, to the last bit, as `row_product` makes of them: sums are taken in the order of columns.

    Args:
        columns: d columns of n values.
        scales: Center and scale of each column.
        weights: A row of d weights for each score.

    Returns:
        A score for each row and each row of weights, and how many rows were clipped.

    Example:
        >>> from targetdp.normalization import declared_scales
        >>> scores_in_ball(np.array([[3.0], [4.0]]), declared_scales([0, 0], [1, 1]), np.array([[1.0, 0.0]]))
        (array([[0.6]]), 1)
    """
    scores = np.empty((columns.shape[1], len(weights)))
    odd = np.zeros(columns.shape[1], dtype=np.bool_)
    clipped = _fill_scores(columns, scales.center, scales.scale, weights, scores, odd)
    if odd.any():
        rows = normalize(np.ascontiguousarray(columns[:, odd].T), scales).X
        scores[odd] = row_product(rows, weights.T)
    return scores, clipped


def count_clipped(columns: Floats, scales: ColumnScales) -> int:
    """Count the rows that `rows_in_ball` would clip.

    Args:
        columns: d columns of n finite values.
        scales: Center and scale of each column.

    Returns:
        How many rows are longer than 1.

    Example:
        >>> from targetdp.normalization import declared_scales
        >>> count_clipped(np.array([[3.0, 0.1], [4.0, 0.1]]), declared_scales([0, 0], [1, 1]))
        1
    """
    return int(_count(columns, scales.center, scales.scale))


@kernel
def _count(columns: Floats, center: Floats, scale: Floats) -> int:
    d, n = columns.shape
    lengths, clipped = np.empty(_TILE), 0
    for start in range(0, n, _TILE):
        size = min(_TILE, n - start)
        lengths[:] = 0.0
        for j in range(d):
            column, middle, width = columns[j, start : start + size], center[j], scale[j]
            for i in range(size):
                x = (column[i] - middle) / width
                lengths[i] += x * x
        for i in range(size):
            clipped += lengths[i] > 1.0
    return clipped


@kernel
def _fill_rows(columns: Floats, center: Floats, scale: Floats, rows: Floats, odd: NDArray[np.bool_]) -> int:
    """Scale and clip rows; mark the rows whose length leaves the safe range of floats."""
    d, n = columns.shape
    values, lengths = np.empty((d, _TILE)), np.empty(_TILE)
    clipped = 0
    for start in range(0, n, _TILE):
        size = min(_TILE, n - start)
        clipped += _scaled(columns, center, scale, start, size, values, lengths, odd)
        for i in range(size):
            for j in range(d):
                rows[start + i, j] = values[j, i] / lengths[i]
    return clipped


@kernel
def _fill_scores(
    columns: Floats, center: Floats, scale: Floats, weights: Floats, scores: Floats, odd: NDArray[np.bool_]
) -> int:
    """As `_fill_rows`, but keep only each row's weighted sums."""
    d, n = columns.shape
    values, lengths, totals = np.empty((d, _TILE)), np.empty(_TILE), np.empty(_TILE)
    clipped = 0
    for start in range(0, n, _TILE):
        size = min(_TILE, n - start)
        clipped += _scaled(columns, center, scale, start, size, values, lengths, odd)
        for q in range(weights.shape[0]):
            totals[:] = 0.0
            for j in range(d):
                value, weight = values[j], weights[q, j]
                for i in range(size):
                    totals[i] += value[i] / lengths[i] * weight
            for i in range(size):
                scores[start + i, q] = totals[i]
    return clipped


@kernel
def _scaled(
    columns: Floats,
    center: Floats,
    scale: Floats,
    start: int,
    size: int,
    values: Floats,
    lengths: Floats,
    odd: NDArray[np.bool_],
) -> int:
    """A tile of scaled values, column by column, and what to divide each row by; how many are clipped.

    The loops run along a column, side by side in the processor: nothing is added up across rows.
    """
    lengths[:] = 0.0
    for j in range(len(columns)):
        column, value, middle, width = columns[j, start : start + size], values[j], center[j], scale[j]
        for i in range(size):
            x = (column[i] - middle) / width
            value[i] = x
            lengths[i] += x * x
    clipped = 0
    for i in range(size):
        square = lengths[i]
        if not 1e-280 < square < 1e280:
            odd[start + i] = True
        clipped += square > 1.0
        lengths[i] = np.sqrt(square) if square > 1.0 else 1.0
    return clipped

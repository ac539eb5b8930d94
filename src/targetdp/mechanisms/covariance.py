"""Steps 4 and 5 of Algorithm 1: the leading directions of the rows, learned privately."""

import math

import numpy as np

from targetdp.noise import add_gaussian
from targetdp.typing import Floats
from targetdp.words import WordStream

_FIXED_POINT = 2**20
"""Rows are rounded to this fraction before XᵀX, so that its sums are exact whatever their order."""

_BATCH = 2**13 - 1
_MOST_ROWS = 2**22


def covariance_sensitivity(B: float) -> float:
    """The largest ‖xxᵀ − zzᵀ‖_F over rows x, z of the unit ball at distance at most B.

    Lemma 7 bounds it by 2B. The maximum is 2B − B² up to B = 2/3 (x on the sphere, z straight below it), then
    √2·B·√(1 − B²/4) (both on the sphere), and √2 from B = √2 on (orthogonal rows).
    """
    if B <= 2 / 3:
        return 2 * B - B * B
    if math.sqrt(2) >= B:
        return math.sqrt(2) * B * math.sqrt(1 - B * B / 4)
    return math.sqrt(2)


def fixed_point_growth(d: int) -> float:
    """How much further xxᵀ − zzᵀ can be when both rows are rounded to fixed point.

    Each row moves by at most ρ = √d·2⁻²¹, and x ↦ xxᵀ has slope at most 2(1 + ρ) there. Sums of up to 2²²
    are rounded once, to a multiple of 2⁻³⁰, in each of d² entries of either table.
    """
    rho = math.sqrt(d) / (2 * _FIXED_POINT)
    return 4 * rho * (1 + rho) + d * 2.0**-30


def leading_directions(rows: Floats, rank: int, sigma: float, grid: float, words: WordStream) -> Floats:
    """V_rᵀ: the right singular vectors of C_priv = XᵀX + G with the largest singular values, as rows.

    G is symmetric: its entries on and below the diagonal are drawn, the others mirrored (Step 4).
    """
    gram = _exact_gram(rows)
    i, j = np.tril_indices(rows.shape[1])
    noisy = np.empty_like(gram)
    noisy[i, j] = add_gaussian(gram[i, j][None, :], sigma, grid, words, bound=float(len(rows)))[0]
    noisy[j, i] = noisy[i, j]
    values, vectors = np.linalg.eigh(noisy)
    order = np.argsort(-np.abs(values), kind="stable")[:rank]
    return np.ascontiguousarray(vectors[:, order].T)


def _exact_gram(rows: Floats) -> Floats:
    """XᵀX of rows in fixed point, summed without rounding.

    A batch of 2¹³ rows of whole numbers up to 2²⁰ sums to at most 2⁵³, where floating point is exact in
    any order of addition; the batches are added as integers.
    """
    n, d = rows.shape
    if n > _MOST_ROWS:
        raise ValueError(f"X has {n} rows: a rank below the number of columns allows at most {_MOST_ROWS}")
    total = np.zeros((d, d), dtype=np.int64)
    for start in range(0, n, _BATCH):
        whole = np.rint(rows[start : start + _BATCH] * _FIXED_POINT)
        total += (whole.T @ whole).astype(np.int64)
    return total / float(_FIXED_POINT**2)

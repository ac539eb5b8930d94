"""Steps 1, 4 and 5 of Algorithm 1: the random projection, and the leading directions of the rows."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from targetdp._core import Floats
from targetdp.noise import PublicWords, WordStream, add_gaussian

_TRITS = (np.arange(243)[:, None] // 3 ** np.arange(5) % 3 - 1).astype(np.float32)
"""A uniform byte below 3⁵ = 243 is five uniform ternary digits."""

_CHUNK = 1 << 17
"""Entries of R held at once: memory does not grow with k."""


@dataclass(frozen=True)
class Projection:
    """The left singular vectors U (``directions``, d×q) and singular values S (``lengths``) of R."""

    directions: Floats
    lengths: Floats
    k: int

    @property
    def columns(self) -> int:
        """d: how many columns R takes."""
        return int(self.directions.shape[0])

    @property
    def rank(self) -> int:
        """q: how many directions R keeps."""
        return len(self.lengths)

    @property
    def largest(self) -> float:
        """σ_max(R), rounded up."""
        return float(self.lengths.max()) * (1 + 1e-12)

    def forward(self) -> Floats:
        """k⁻¹·U·S: rows times this are Step 2's projection, in the coordinates of R's row space."""
        return self.directions * (self.lengths / self.k)

    def inverse(self) -> Floats:
        """S⁻¹·Uᵀ, with directions that R lost left out: R's pseudo-inverse in the same coordinates."""
        kept = self.lengths > 1e-9 * max(1.0, float(self.lengths.max()))
        return np.asarray(
            np.where(kept, 1 / np.where(kept, self.lengths, 1.0), 0.0)[:, None] * self.directions.T
        )


@lru_cache(maxsize=64)
def public_projection(dimensions: int, k: int, seed: int) -> Projection:
    """The R that anyone can draw again from a seed."""
    return draw_projection(dimensions, k, PublicWords(seed))


def draw_projection(d: int, k: int, words: WordStream) -> Projection:
    """Sample R ∈ {−1, 0, 1}^{d×k} uniformly and decompose RRᵀ, which is an exact matrix of whole numbers."""
    gram = np.zeros((d, d))
    width = max(1, min(k, _CHUNK // d))
    for start in range(0, k, width):
        block = ternary(d * min(width, k - start), words).reshape(d, -1)
        gram += block @ block.T  # exact in float32: whole numbers up to 2¹⁷
    values, vectors = np.linalg.eigh(gram)
    values[values < d * 2.0**-46 * values.max()] = 0.0  # a direction that R lost, up to rounding
    q = min(d, k)
    return Projection(np.ascontiguousarray(vectors[:, d - q :]), np.sqrt(np.maximum(values[d - q :], 0.0)), k)


def ternary(count: int, words: WordStream) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """So many independent uniform draws from {−1, 0, 1}."""
    parts: list[np.ndarray[tuple[int], np.dtype[np.float32]]] = []
    missing = count
    while missing > 0:
        # 5 digits a byte, 243 of 256 bytes kept: 4.75 a byte; a little more, so that one round mostly does.
        buffer = np.empty(math.ceil(missing / 4.6 / 8) + 8, dtype=np.uint64)
        words.fill(buffer)
        draws = buffer.view(np.uint8)
        digits = np.take(_TRITS, draws[draws < 243], axis=0).ravel()[:missing]
        parts.append(digits)
        missing -= len(digits)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


# Steps 4 and 5 of Algorithm 1: the leading directions of the rows, learned privately.

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

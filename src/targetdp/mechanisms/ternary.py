"""Step 1 of Algorithm 1: a random matrix with entries −1, 0, 1, kept only as what Step 6 needs of it."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from targetdp.typing import Floats
from targetdp.words import PublicWords, WordStream

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

"""The parts of Algorithm 1: the random projection R, the noise at full rank, and the leading directions."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from targetdp._core import Floats, check, row_product
from targetdp.accounting import GaussianLoss, ImperfectLoss, PrivacyLoss
from targetdp.mechanisms._law import NoiseDensity, NoiseLaw
from targetdp.noise import (
    PublicWords,
    WordSource,
    WordStream,
    add_gaussian,
    gaussian_imperfection,
    normals_must_fit,
    row_growth,
)

MAX_PROJECTION_COLUMNS = 2_000
"""Decomposing a wider d×d matrix takes minutes, for noise that is always larger."""

# Step 1: the random projection.

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


# Steps 2, 3 and 6 at full rank, row by row: what a release of the private projection adds.

_MANY_TIMES = 50
_OTHER_R = (
    "The projection that was used is the public one of a release. A simulation draws another, and with k so "
    "near the number of columns an attack on it is weaker than on a release: attack a release instead."
)


@dataclass(frozen=True)
class ProjectedDensity(NoiseDensity):
    """Normal noise whose deviation depends on the direction: rows times ``whitening`` have 1 in all."""

    whitening: Floats
    note: str = ""
    nearer_is_likelier = False
    normal_mixture = True

    def whitened(self, rows: Floats) -> Floats:
        """See `NoiseDensity.whitened`: row by row, so that equal rows stay equal."""
        return row_product(rows, self.whitening)

    def log_density(self, squared: Floats) -> Floats:
        """−r²/2."""
        squared *= -0.5
        return squared


@dataclass(frozen=True)
class ProjectionLaw(NoiseLaw):
    """Steps 2, 3 and 6 of Algorithm 1 at full rank: N(0, deviation²) on rows projected by the public R.

    R is drawn from ``seed``, so anyone can draw it again.
    """

    family = "projection"
    deviation: float
    k: int
    seed: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check.integer("dimensions", self.dimensions, at_least=1, at_most=MAX_PROJECTION_COLUMNS)
        check.integer("k", self.k, at_least=1, at_most=10**8)
        check.integer("seed", self.seed, at_least=0)
        self._fine_enough(check.number("deviation", self.deviation, above=0))
        # σ_max(R)/k is at most √(d/k): entries of R are −1, 0 or 1.
        normals_must_fit(self.deviation, 0, self.grid, math.sqrt(self.dimensions / self.k))

    @property
    def projection(self) -> Projection:
        """R's singular vectors and values, drawn from the seed."""
        return public_projection(self.dimensions, self.k, self.seed)

    def loss_at(self, distance: float) -> PrivacyLoss:
        """Normal noise against what R makes of the distance."""
        projection = self.projection
        mu = projected_distance(projection, distance, self.grid) / self.deviation
        return ImperfectLoss(GaussianLoss(mu), gaussian_imperfection(projection.rank, mu))

    @property
    def deviation_per_column(self) -> float:
        """The root mean square of k²σ²(RRᵀ)⁺ over columns."""
        back = self.k * self.deviation * self.projection.inverse()
        return math.sqrt(float(np.sum(back * back)) / self.dimensions)

    @property
    def covariance(self) -> Floats:
        """k²σ²(RRᵀ)⁺."""
        back = self.k * self.deviation * self.projection.inverse()
        return np.asarray(back.T @ back)

    @property
    def steps(self) -> float:
        """0: the inverse of R comes after the noise."""
        return 0.0

    @property
    def density(self) -> ProjectedDensity:
        """The normal density, once R is undone."""
        return ProjectedDensity(self.projection.forward() / self.deviation)

    @property
    def density_of_a_simulation(self) -> ProjectedDensity:
        """A simulation draws another R, which nobody knows: for k far above the columns it differs little."""
        return replace(self.density, note=_OTHER_R if self.k < _MANY_TIMES * self.dimensions else "")

    def kept_directions(self) -> Floats:
        """The matrix of projecting by R and back: with few dimensions it keeps some directions only."""
        return np.asarray((self.projection.forward() @ self.projection.inverse() * self.k).T)

    @property
    def reaches_all_directions(self) -> bool:
        """Whether R keeps all directions: it has at least as many dimensions as there are columns."""
        return self.k >= self.dimensions

    def add_to(self, rows: Floats, words: WordSource) -> Floats:
        """See `NoiseLaw.add_to`."""
        projection = self.projection
        noisy = add_gaussian(
            row_product(rows, projection.forward()), self.deviation, self.grid, words,
            bound=projection.largest / self.k,
        )  # fmt: skip
        return row_product(noisy, self.k * projection.inverse())


def projected_distance(projection: Projection, distance: float, grid: float) -> float:
    """Bound on how far one projected row moves when the row moves by ``distance``."""
    stretch = projection.largest / projection.k
    grown = row_growth(projection.rank, grid) * max(1.0, stretch)
    # Clipping is off by the second term of row_growth, a product of d terms in q columns by √q of it.
    rounded = row_growth(projection.columns, 0.0) * (1 + math.sqrt(projection.rank)) * stretch
    return distance * stretch + grown + rounded


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

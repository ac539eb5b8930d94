"""The noise of Algorithm 1 at full rank, row by row: what a release of the private projection adds."""

import math
from dataclasses import dataclass, replace

import numpy as np

from targetdp._core import Floats, check, row_product
from targetdp.accounting import GaussianLoss, ImperfectLoss, PrivacyLoss
from targetdp.mechanisms._law import NoiseDensity, NoiseLaw
from targetdp.mechanisms._projection_steps import Projection, public_projection
from targetdp.noise import WordSource, add_gaussian, gaussian_imperfection, normals_must_fit, row_growth

MAX_PROJECTION_COLUMNS = 2_000
"""Decomposing a wider d×d matrix takes minutes, for noise that is always larger."""


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

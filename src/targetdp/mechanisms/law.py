"""The law of the noise that a mechanism adds: numbers that can be printed, and checked by anyone.

A mechanism is a claim (B, ε, δ) and the calibration that turns it into noise; its *law* is that noise
alone. What was promised is derived from the law again, without believing the claim: so a certificate
carries a law, and whoever reads it can do the derivation.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from targetdp import check
from targetdp.accounting import (
    GaussianLoss,
    ImperfectLoss,
    PrivacyLoss,
    SphericalLaplaceLoss,
    StaircaseLoss,
)
from targetdp.mechanisms.product import row_product
from targetdp.mechanisms.ternary import Projection, public_projection
from targetdp.noise import (
    add_gaussian,
    add_spherical_laplace,
    add_staircase,
    gaussian_imperfection,
    grid_for,
    normals_must_fit,
    row_growth,
    spherical_laplace_imperfection,
    staircase_imperfection,
    staircase_must_fit,
)
from targetdp.typing import Floats
from targetdp.words import WordSource

MAX_PROJECTION_COLUMNS = 2_000
"""Decomposing a wider d×d matrix takes minutes, for noise that is always larger."""


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """Noise that is drawn for each row on its own, so that rows may be privatized in any batches."""

    family: ClassVar[str]

    dimensions: int
    grid: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimensions", check.dimensions(self.dimensions))
        grid = check.number("grid", self.grid, above=0)
        if math.frexp(grid)[0] != 0.5:
            raise ValueError(f"grid = {grid!r} is not a power of two: another grid would tell of the data")

    def privacy_loss(self, distance: float) -> PrivacyLoss:
        """The exact loss between two tables whose one different row moves by ``distance``."""
        return self.moved(check.distance(distance))

    @abstractmethod
    def moved(self, distance: float) -> PrivacyLoss:
        """As `privacy_loss`, for a distance that may exceed 2 by the rounding of whatever came before."""

    @property
    @abstractmethod
    def deviation_per_column(self) -> float:
        """Deviation of the noise per column (root mean square over columns)."""

    @abstractmethod
    def add_to(self, rows: Floats, words: WordSource) -> Floats:
        """Privatize rows of the unit ball."""

    def record(self) -> dict[str, Any]:
        """The law as plain data; `law_of` reads it back."""
        return {"family": self.family} | asdict(self)

    def _fine_enough(self, deviation: float) -> None:
        """The constants of `docs/noise.md` hold for a grid of 2⁻²⁰ of the deviation, or finer."""
        if self.grid > grid_for(deviation):
            raise ValueError(
                f"grid = {self.grid!r} is too coarse for noise of deviation {deviation!r}: "
                f"at most {grid_for(deviation)!r}"
            )


@dataclass(frozen=True)
class GaussianLaw(NoiseLaw):
    """N(0, deviation²) on every value."""

    family = "gaussian"
    deviation: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._fine_enough(check.number("deviation", self.deviation, above=0))
        normals_must_fit(self.deviation, 0, self.grid)

    def moved(self, distance: float) -> PrivacyLoss:
        """Normal noise against the distance, grown by the grid."""
        shift = (distance + row_growth(self.dimensions, self.grid)) / self.deviation
        return ImperfectLoss(GaussianLoss(shift), gaussian_imperfection(self.dimensions, shift))

    @property
    def deviation_per_column(self) -> float:
        """σ."""
        return self.deviation

    def add_to(self, rows: Floats, words: WordSource) -> Floats:
        """See `NoiseLaw.add_to`."""
        return add_gaussian(rows, self.deviation, self.grid, words)


@dataclass(frozen=True)
class SphericalLaplaceLaw(NoiseLaw):
    """Density ∝ exp(−‖z‖/scale) on every row."""

    family = "spherical-laplace"
    scale: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check.number("scale", self.scale, above=0)
        self._fine_enough(self.deviation_per_column)
        normals_must_fit(self.scale, self.dimensions + 1, self.grid)

    def moved(self, distance: float) -> PrivacyLoss:
        """Spherical Laplace noise against the distance, grown by the grid."""
        shift = (distance + row_growth(self.dimensions, self.grid)) / self.scale
        return ImperfectLoss(
            SphericalLaplaceLoss(shift, self.dimensions),
            spherical_laplace_imperfection(self.dimensions, shift),
        )

    @property
    def deviation_per_column(self) -> float:
        """b·√(d + 1)."""
        return self.scale * math.sqrt(self.dimensions + 1)

    def add_to(self, rows: Floats, words: WordSource) -> Floats:
        """See `NoiseLaw.add_to`."""
        return add_spherical_laplace(rows, self.scale, self.grid, words)


@dataclass(frozen=True)
class StaircaseLaw(NoiseLaw):
    """Steps that fall by e^−``level`` each ``period``, whose ``inner`` part is higher; in grid steps."""

    family = "staircase"
    period: int
    inner: int
    level: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check.integer("dimensions", self.dimensions, at_least=1, at_most=1)
        check.integer("period", self.period, at_least=2, at_most=2**50)
        check.integer("inner", self.inner, at_least=1, at_most=self.period - 1)
        check.number("level", self.level, at_least=1e-5, at_most=100)
        self._fine_enough(self.deviation_per_column)
        staircase_must_fit(self.period, self.level, self.grid)

    def moved(self, distance: float) -> PrivacyLoss:
        """Staircase noise against the distance, grown by the grid."""
        shift = (distance + row_growth(1, self.grid)) / (self.period * self.grid)
        return ImperfectLoss(
            StaircaseLoss(shift, self.level, self.inner / self.period),
            staircase_imperfection(self.level, shift),
        )

    @property
    def deviation_per_column(self) -> float:
        """The root of the variance."""
        return self.period * self.grid * math.sqrt(staircase_variance(self.inner / self.period, self.level))

    def add_to(self, rows: Floats, words: WordSource) -> Floats:
        """See `NoiseLaw.add_to`."""
        check.table(rows, "rows", columns=1)
        return add_staircase(rows, self.period, self.inner, self.level, self.grid, words)


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
        """R, as what is needed of it."""
        return public_projection(self.dimensions, self.k, self.seed)

    def moved(self, distance: float) -> PrivacyLoss:
        """Normal noise against what R makes of the distance."""
        projection = self.projection
        mu = projected_distance(projection, distance, self.grid) / self.deviation
        return ImperfectLoss(GaussianLoss(mu), gaussian_imperfection(projection.rank, mu))

    @property
    def deviation_per_column(self) -> float:
        """The root mean square of k²σ²(RRᵀ)⁺ over columns."""
        back = self.k * self.deviation * self.projection.inverse()
        return math.sqrt(float(np.sum(back * back)) / self.dimensions)

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


def staircase_variance(gamma: float, level: float) -> float:
    """Variance of staircase noise of period 1: a geometric number of periods plus a uniform part of one."""
    b = math.exp(-level)
    mean, square = b / (1 - b), b * (1 + b) / (1 - b) ** 2
    inner = gamma / (gamma + (1 - gamma) * b)

    def second_moment(start: float, width: float) -> float:
        first, second = start + width / 2, start**2 + start * width + width**2 / 3
        return square + 2 * mean * first + second

    return inner * second_moment(0, gamma) + (1 - inner) * second_moment(gamma, 1 - gamma)

"""Spherical Laplace noise: the least noise known to us for a (B, ε, δ) guarantee on whole rows."""

import math
from dataclasses import dataclass, replace

import numpy as np

from targetdp._core import Floats, check
from targetdp.accounting import ImperfectLoss, PrivacyLoss, SphericalLaplaceLoss, largest_shift
from targetdp.guarantee import Guarantee
from targetdp.mechanisms._base import SMALLEST_DELTA, NoiseMechanism, claim, ideal_budget, named
from targetdp.mechanisms._law import NoiseDensity, NoiseLaw
from targetdp.noise import (
    WordSource,
    add_spherical_laplace,
    grid_for,
    largest_laplace_shift,
    normals_must_fit,
    row_growth,
    spherical_laplace_imperfection,
)


@dataclass(frozen=True)
class LaplaceDensity(NoiseDensity):
    """Spherical Laplace noise."""

    scale: float
    normal_mixture = True

    def variance_shape(self, dimensions: int) -> float:
        """(d + 1)/2: see `targetdp.noise.add_spherical_laplace`."""
        return (dimensions + 1) / 2

    def log_density(self, squared: Floats) -> Floats:
        """−r/b."""
        np.sqrt(squared, out=squared)
        squared *= -1 / self.scale
        return squared


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

    @property
    def covariance(self) -> Floats:
        """b²·(d + 1)·I."""
        return np.asarray(np.eye(self.dimensions) * self.deviation_per_column**2)

    @property
    def density(self) -> LaplaceDensity:
        """∝ exp(−‖z‖/b)."""
        return LaplaceDensity(self.scale)

    def add_to(self, rows: Floats, words: WordSource) -> Floats:
        """See `NoiseLaw.add_to`."""
        return add_spherical_laplace(rows, self.scale, self.grid, words)


@dataclass(frozen=True, init=False)
class SphericalLaplace(NoiseMechanism):
    """X + Z, each row of Z with density ∝ exp(−‖z‖/b): geo-indistinguishability in d dimensions.

    With δ = 0 the scale is b = B/ε, and rows at *any* distance r are hidden up to ε·r/B. With δ > 0 the
    scale is the smallest whose exact privacy curve meets (ε, δ) at distance B.

    Guarantees: (B, ε, δ)-TDP for any number of columns up to 16,384, floating point included. A "pure"
    one states δ = 2⁻⁹⁰, the chance of a draw in the sampler's far tail.
    Does not guarantee: that its noise is bounded.
    """

    claimed: Guarantee

    def __init__(self, *, B: float, epsilon: float, delta: float = 0.0) -> None:
        object.__setattr__(self, "claimed", claim(B, epsilon, delta, pure=True))

    @property
    def guarantee(self) -> Guarantee:
        """The claim; where it is pure, with the sampler's tail as its δ."""
        return replace(self.claimed, delta=max(self.claimed.delta, spherical_laplace_imperfection(1).tail))

    def with_delta(self, delta: float) -> "SphericalLaplace":
        """The same mechanism with another δ."""
        return SphericalLaplace(B=self.claimed.B, epsilon=self.claimed.epsilon, delta=delta)

    def law(self, dimensions: int) -> SphericalLaplaceLaw:
        """Density ∝ exp(−‖z‖/b) at the smallest b."""
        d, B = check.dimensions(dimensions), self.claimed.B
        budget = ideal_budget(self.claimed.epsilon, self.claimed.delta, spherical_laplace_imperfection(d))
        shift = min(largest_shift(*budget, d), largest_laplace_shift(d))
        grid = grid_for(B / shift * math.sqrt(d + 1))
        return SphericalLaplaceLaw(d, grid, (B + row_growth(d, grid)) / shift)


@named("spherical-laplace")
def _for(g: Guarantee) -> SphericalLaplace:
    return SphericalLaplace(B=g.B, epsilon=g.epsilon, delta=g.delta if g.delta >= SMALLEST_DELTA else 0.0)

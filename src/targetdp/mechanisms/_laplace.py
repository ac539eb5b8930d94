"""Spherical Laplace noise: the least noise known to us for a (B, ε, δ) guarantee on whole rows."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import kve

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

_FEW = 40
"""Dimensions above which the noise is taken for normal along a direction."""


@dataclass(frozen=True)
class LaplaceDensity(NoiseDensity):
    """The density of spherical Laplace noise.

    Args:
        scale: The noise's scale b.

    Example:
        >>> LaplaceDensity(0.5).log_density(np.array([1.0]))
        array([-2.])
    """

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
class LaplaceMarginal(NoiseDensity):
    """Spherical Laplace noise along one direction; ``order`` is half the number of dimensions.

    ∫ exp(−√(t² + ‖r‖²)/b) dr over the other d − 1 directions is ∝ |t|^{d/2} K_{d/2}(|t|/b): heavier tails
    than a normal distribution has.
    """

    scale: float
    order: float

    def log_density(self, squared: Floats) -> Floats:
        """ν·ln t + ln K_ν(t), t = r/b."""
        t = np.maximum(np.sqrt(squared) / self.scale, 1e-6)
        return np.asarray(self.order * np.log(t) + np.log(kve(self.order, t)) - t)


@dataclass(frozen=True)
class SphericalLaplaceLaw(NoiseLaw):
    """Noise with density ∝ exp(−‖z‖/scale) on every row.

    Args:
        dimensions: How many columns a row has.
        grid: The step of the grid that values lie on, a power of two.
        scale: The noise's scale b.

    Raises:
        ValueError: The grid is too coarse or too fine for this noise.

    Example:
        >>> SphericalLaplaceLaw(3, grid_for(1.0), 0.5).deviation_per_column
        1.0
    """

    family = "spherical-laplace"
    scale: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check.number("scale", self.scale, above=0)
        self._fine_enough(self.deviation_per_column)
        normals_must_fit(self.scale, self.dimensions + 1, self.grid)

    def loss_at(self, distance: float) -> PrivacyLoss:
        """The loss of the noise against the distance, grown by rounding to the grid."""
        shift = (distance + row_growth(self.dimensions, self.grid)) / self.scale
        return ImperfectLoss(
            SphericalLaplaceLoss(shift, self.dimensions),
            spherical_laplace_imperfection(self.dimensions, shift),
        )

    @property
    def deviation_per_column(self) -> float:
        """The deviation b·√(d + 1)."""
        return self.scale * math.sqrt(self.dimensions + 1)

    @property
    def density(self) -> LaplaceDensity:
        """The density ∝ exp(−‖z‖/b)."""
        return LaplaceDensity(self.scale)

    def density_along(self, deviation: float) -> NoiseDensity | None:
        """See `NoiseLaw.density_along`; in many dimensions the noise is nearly normal."""
        if self.dimensions == 1:
            return self.density
        scale = deviation / math.sqrt(self.dimensions + 1)
        return LaplaceMarginal(scale, self.dimensions / 2) if self.dimensions <= _FEW else None

    def add_to(self, rows: Floats, words: WordSource) -> Floats:
        """See `NoiseLaw.add_to`."""
        return add_spherical_laplace(rows, self.scale, self.grid, words)


@dataclass(frozen=True, init=False)
class SphericalLaplace(NoiseMechanism):
    """X + Z, each row of Z with density ∝ exp(−‖z‖/b): geo-indistinguishability in d dimensions.

    With δ = 0 the scale is b = B/ε, and rows at *any* distance r are hidden up to ε·r/B. With δ > 0 the
    scale is the smallest whose exact privacy curve meets (ε, δ) at distance B.

    Args:
        B: The distance that is hidden, in (0, 2].
        epsilon: ε, from 0.0001 to 100.
        delta: δ, below 1; with 0 the mechanism is pure.

    Raises:
        ValueError: One of them is outside its range.

    Guarantees: (B, ε, δ)-TDP for any number of columns up to 16,384, floating point included. A "pure"
    one states δ = 2⁻⁹⁰, the probability of a draw in the sampler's far tail.
    Does not guarantee: that its noise is bounded.

    Example:
        >>> mechanism = SphericalLaplace(B=0.25, epsilon=1)
        >>> round(mechanism.law(3).scale, 3)
        0.25
    """

    claimed: Guarantee

    def __init__(self, *, B: float, epsilon: float, delta: float = 0.0) -> None:
        object.__setattr__(self, "claimed", claim(B, epsilon, delta, pure=True))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that was claimed; for a pure one, δ is the probability of the sampler's tail."""
        return replace(self.claimed, delta=max(self.claimed.delta, spherical_laplace_imperfection(1).tail))

    def with_delta(self, delta: float) -> "SphericalLaplace":
        """The same mechanism with another δ."""
        return SphericalLaplace(B=self.claimed.B, epsilon=self.claimed.epsilon, delta=delta)

    def law(self, dimensions: int) -> SphericalLaplaceLaw:
        """Spherical Laplace noise of the smallest scale that keeps the claim."""
        d, B = check.dimensions(dimensions), self.claimed.B
        budget = ideal_budget(self.claimed.epsilon, self.claimed.delta, spherical_laplace_imperfection(d))
        shift = min(largest_shift(*budget, d), largest_laplace_shift(d))
        grid = grid_for(B / shift * math.sqrt(d + 1))
        return SphericalLaplaceLaw(d, grid, (B + row_growth(d, grid)) / shift)


@named("spherical-laplace")
def _for(g: Guarantee) -> SphericalLaplace:
    return SphericalLaplace(B=g.B, epsilon=g.epsilon, delta=g.delta if g.delta >= SMALLEST_DELTA else 0.0)

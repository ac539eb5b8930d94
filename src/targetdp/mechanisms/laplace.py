"""Spherical Laplace noise: the least noise known to us for a (B, ε, δ) guarantee on whole rows."""

import math
from dataclasses import dataclass, replace

import numpy as np

from targetdp import check
from targetdp.accounting.laplace import largest_shift
from targetdp.guarantee import Guarantee
from targetdp.mechanisms.base import NoiseMechanism, claim
from targetdp.mechanisms.budget import ideal_budget
from targetdp.mechanisms.law import SphericalLaplaceLaw
from targetdp.noise import (
    grid_for,
    largest_laplace_shift,
    row_growth,
    spherical_laplace_imperfection,
)
from targetdp.typing import Floats


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

    def noise_covariance(self, dimensions: int) -> Floats:
        """b²·(d + 1)·I."""
        return np.eye(check.dimensions(dimensions)) * self.noise_sd(dimensions) ** 2

"""Gaussian noise straight on the rows, at the smallest scale that the guarantee allows."""

from dataclasses import dataclass

import numpy as np

from targetdp import check
from targetdp.accounting.gaussian import largest_mu
from targetdp.guarantee import Guarantee
from targetdp.mechanisms.base import NoiseMechanism, claim
from targetdp.mechanisms.budget import ideal_budget
from targetdp.mechanisms.law import GaussianLaw
from targetdp.noise import (
    LARGEST_GAUSSIAN_SHIFT,
    gaussian_imperfection,
    grid_for,
    row_growth,
)
from targetdp.typing import Floats


@dataclass(frozen=True, init=False)
class GaussianNoise(NoiseMechanism):
    """X + N(0, σ²·I) with σ from the analytic Gaussian mechanism (Balle and Wang 2018).

    Guarantees: (B, ε, δ)-TDP for any number of columns up to 16,384, floating point included.
    Does not guarantee: a pure (δ = 0) promise; `SphericalLaplace` does.
    """

    claimed: Guarantee

    def __init__(self, *, B: float, epsilon: float, delta: float) -> None:
        object.__setattr__(self, "claimed", claim(B, epsilon, delta, pure=False))

    @property
    def guarantee(self) -> Guarantee:
        """The claim itself."""
        return self.claimed

    def with_delta(self, delta: float) -> "GaussianNoise":
        """The same mechanism with another δ."""
        return GaussianNoise(B=self.claimed.B, epsilon=self.claimed.epsilon, delta=delta)

    def law(self, dimensions: int) -> GaussianLaw:
        """N(0, σ²) at the smallest σ."""
        d = check.dimensions(dimensions)
        budget = ideal_budget(self.claimed.epsilon, self.claimed.delta, gaussian_imperfection(d))
        mu = min(largest_mu(*budget), LARGEST_GAUSSIAN_SHIFT)
        grid = grid_for(self.claimed.B / mu)
        return GaussianLaw(d, grid, (self.claimed.B + row_growth(d, grid)) / mu)

    def noise_covariance(self, dimensions: int) -> Floats:
        """σ²·I."""
        return np.eye(check.dimensions(dimensions)) * self.noise_sd(dimensions) ** 2

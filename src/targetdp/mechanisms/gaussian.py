"""Gaussian noise straight on the rows, at the smallest scale that the guarantee allows."""

from dataclasses import dataclass

import numpy as np

from targetdp import check
from targetdp.accounting import GaussianLoss, ImperfectLoss, PrivacyLoss
from targetdp.accounting.gaussian import largest_mu
from targetdp.guarantee import Guarantee
from targetdp.mechanisms.base import NoiseMechanism, claim
from targetdp.mechanisms.budget import ideal_budget
from targetdp.noise import (
    LARGEST_GAUSSIAN_SHIFT,
    add_gaussian,
    gaussian_imperfection,
    grid_for,
    row_growth,
)
from targetdp.typing import Floats
from targetdp.words import WordStream


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

    def privacy_loss(self, *, distance: float, dimensions: int) -> PrivacyLoss:
        """Normal noise against the distance, grown by the grid."""
        dimensions = check.dimensions(dimensions)
        deviation, grid = self._deviation_and_grid(dimensions)
        shift = (check.distance(distance) + row_growth(dimensions, grid)) / deviation
        return ImperfectLoss(GaussianLoss(shift), gaussian_imperfection(dimensions, shift))

    def noise_covariance(self, dimensions: int) -> Floats:
        """σ²·I."""
        return np.eye(check.dimensions(dimensions)) * self.noise_sd(dimensions) ** 2

    def noise_sd(self, dimensions: int) -> float:
        """σ."""
        return self._deviation_and_grid(check.dimensions(dimensions))[0]

    def _deviation_and_grid(self, dimensions: int) -> tuple[float, float]:
        imperfection = gaussian_imperfection(dimensions)
        budget = ideal_budget(self.claimed.epsilon, self.claimed.delta, imperfection)
        mu = min(largest_mu(*budget), LARGEST_GAUSSIAN_SHIFT)
        grid = grid_for(self.claimed.B / mu)
        return (self.claimed.B + row_growth(dimensions, grid)) / mu, grid

    def _privatize(self, rows: Floats, words: WordStream, *, fresh: bool) -> Floats:  # noqa: ARG002
        deviation, grid = self._deviation_and_grid(rows.shape[1])
        return add_gaussian(rows, deviation, grid, words)

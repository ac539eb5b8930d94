"""The staircase mechanism for a single column (Geng and Viswanath 2014)."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from targetdp import check
from targetdp.accounting import PrivacyLoss
from targetdp.guarantee import Guarantee
from targetdp.mechanisms.base import NoiseMechanism, claim
from targetdp.mechanisms.budget import ideal_budget
from targetdp.mechanisms.law import StaircaseLaw, staircase_variance
from targetdp.noise import grid_for, row_growth, staircase_imperfection
from targetdp.typing import Floats

_LARGEST_EPSILON = 30.0
"""Beyond it the steps are so narrow beside the period that the grid would not resolve both."""


@dataclass(frozen=True, init=False)
class Staircase(NoiseMechanism):
    """x + Z with a staircase-shaped density: the least variance of any pure mechanism in one dimension.

    Guarantees: (B, ε, 2⁻⁹⁰)-TDP for tables of one column.
    Does not guarantee: less than the full ε for rows closer than B (the Laplace mechanism does), nor
    anything for more than one column, which are refused.
    """

    claimed: Guarantee

    def __init__(self, *, B: float, epsilon: float) -> None:
        check.number("epsilon", epsilon, above=0, at_most=_LARGEST_EPSILON, remedy="use SphericalLaplace")
        object.__setattr__(self, "claimed", claim(B, epsilon, 0.0, pure=True))

    @property
    def guarantee(self) -> Guarantee:
        """The claim, with the sampler's tail as its δ."""
        return replace(self.claimed, delta=staircase_imperfection(1.0).tail)

    def law(self, dimensions: int = 1) -> StaircaseLaw:
        """Period and inner part in whole grid steps."""
        self._dimensions(dimensions)
        level, _ = ideal_budget(
            self.claimed.epsilon, 0.0, staircase_imperfection(self.claimed.epsilon / 2, shift=3.0)
        )
        gamma = best_step(level)
        grid = grid_for(self.claimed.B * math.sqrt(staircase_variance(gamma, level)))
        period = math.ceil((self.claimed.B + row_growth(1, grid)) / grid) + 1
        return StaircaseLaw(1, grid, period, min(max(1, round(gamma * period)), period - 1), level)

    def privacy_loss(self, *, distance: float, dimensions: int = 1) -> PrivacyLoss:
        """The exact loss; there is only one column."""
        return self.law(dimensions).privacy_loss(distance)

    def noise_covariance(self, dimensions: int = 1) -> Floats:
        """The variance, as a matrix of one entry."""
        return np.array([[self.noise_sd(dimensions) ** 2]])

    def _dimensions(self, dimensions: int | None) -> int:
        if not (dimensions is None or (type(dimensions) is int and dimensions == 1)):
            raise ValueError(
                f"dimensions = {dimensions}: the staircase mechanism takes exactly 1 column; "
                "use SphericalLaplace for more"
            )
        return 1


@lru_cache(maxsize=256)
def best_step(level: float) -> float:
    """The step γ with the least variance. Any γ in (0, 1) is private; this one is only the quietest."""
    best = minimize_scalar(
        lambda log_gamma: staircase_variance(math.exp(log_gamma), level),
        bounds=(-level - 3.0, math.log(0.999)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return math.exp(float(best.x))

"""The staircase mechanism for a single column (Geng and Viswanath 2014)."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from targetdp._core import Floats, check
from targetdp.accounting import ImperfectLoss, PrivacyLoss, StaircaseLoss
from targetdp.guarantee import Guarantee
from targetdp.mechanisms._base import NoiseMechanism, claim, ideal_budget, named
from targetdp.mechanisms._law import NoiseDensity, NoiseLaw
from targetdp.noise import (
    WordSource,
    add_staircase,
    grid_for,
    row_growth,
    staircase_imperfection,
    staircase_must_fit,
)

_LARGEST_EPSILON = 30.0
"""Beyond it the steps are so narrow beside the period that the grid would not resolve both."""


@dataclass(frozen=True)
class StaircaseDensity(NoiseDensity):
    """The density of staircase noise: it falls by e^−``level`` at ``inner`` and each ``period`` after it.

    Args:
        period: The distance between two steps.
        inner: The distance of the first step.
        level: By how much the log-density falls at a step.

    Example:
        >>> StaircaseDensity(1.0, 0.5, 2.0).log_density(np.array([0.0, 1.0]))
        array([-0., -2.])
    """

    period: float
    inner: float
    level: float
    nearer_is_likelier = False

    def steps(self, distances: Floats) -> Floats:
        """How many steps down the density is at a distance."""
        return np.asarray(np.maximum(0.0, np.floor((distances - self.inner) / self.period) + 1))

    def edges(self, steps: Floats) -> tuple[Floats, Floats]:
        """The distances between which the density is a number of steps down.

        Args:
            steps: How many steps down.

        Returns:
            Where each step begins and ends.
        """
        outer = self.inner + self.period * steps
        return np.where(steps > 0, outer - self.period, 0.0), outer

    def plateau(self, distances: Floats) -> tuple[Floats, Floats]:
        """The edges of the step that each distance lies on."""
        return self.edges(self.steps(distances))

    def share_within(self, distances: Floats) -> Floats:
        """The probability that the noise is no longer than each distance."""
        fall, steps = math.exp(-self.level), self.steps(distances)
        begun, _ = self.edges(steps)
        full = np.where(steps > 0, self.inner + self.period * (fall - fall**steps) / (1 - fall), 0.0)
        whole = self.inner + self.period * fall / (1 - fall)
        return np.asarray((full + fall**steps * (distances - begun)) / whole)

    def log_density(self, squared: Floats) -> Floats:
        """−level for each step."""
        return -self.level * self.steps(np.sqrt(squared))


@dataclass(frozen=True)
class StaircaseLaw(NoiseLaw):
    """Steps that fall by e^−``level`` each ``period``, whose ``inner`` part is higher; in grid steps.

    Args:
        dimensions: 1.
        grid: The step of the grid that values lie on, a power of two.
        period: The noise's period, in grid steps.
        inner: The part of a period where the density is higher, in grid steps.
        level: By how much the log-density falls from one period to the next.

    Raises:
        ValueError: One of them is outside its range, or the grid is too coarse or too fine.

    Example:
        >>> law = Staircase(B=0.25, epsilon=1).law()
        >>> 0.25 < law.period * law.grid < 0.2501
        True
    """

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

    def loss_at(self, distance: float) -> PrivacyLoss:
        """The loss of the noise against the distance, grown by rounding to the grid."""
        shift = (distance + row_growth(1, self.grid)) / (self.period * self.grid)
        return ImperfectLoss(
            StaircaseLoss(shift, self.level, self.inner / self.period),
            staircase_imperfection(self.level, shift),
        )

    @property
    def deviation_per_column(self) -> float:
        """The noise's standard deviation."""
        return self.period * self.grid * math.sqrt(staircase_variance(self.inner / self.period, self.level))

    @property
    def density(self) -> StaircaseDensity:
        """The density, which falls in steps from the middle."""
        return StaircaseDensity(self.period * self.grid, self.inner * self.grid, self.level)

    def density_along(self, deviation: float) -> StaircaseDensity:  # noqa: ARG002 (there is one direction)
        """See `NoiseLaw.density_along`."""
        return self.density

    def add_to(self, rows: Floats, words: WordSource) -> Floats:
        """See `NoiseLaw.add_to`."""
        check.table(rows, "rows", columns=1)
        return add_staircase(rows, self.period, self.inner, self.level, self.grid, words)


@dataclass(frozen=True, init=False)
class Staircase(NoiseMechanism):
    """x + Z with a staircase-shaped density: the least variance of any pure mechanism in one dimension.

    Args:
        B: The distance that is hidden, in (0, 2].
        epsilon: ε, from 0.0001 to 30.

    Raises:
        ValueError: One of them is outside its range.

    Guarantees: (B, ε, 2⁻⁹⁰)-TDP for tables of one column.
    Does not guarantee: less than the full ε for rows closer than B (the Laplace mechanism does), nor
    anything for more than one column, which are refused.

    Example:
        >>> Staircase(B=0.25, epsilon=1).privatize([[0.5], [0.1]]).shape
        (2, 1)
    """

    claimed: Guarantee

    def __init__(self, *, B: float, epsilon: float) -> None:
        check.number("epsilon", epsilon, above=0, at_most=_LARGEST_EPSILON, remedy="use SphericalLaplace")
        object.__setattr__(self, "claimed", claim(B, epsilon, 0.0, pure=True))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that was claimed, with the probability of the sampler's tail as its δ."""
        return replace(self.claimed, delta=staircase_imperfection(1.0).tail)

    def law(self, dimensions: int = 1) -> StaircaseLaw:
        """The noise, with period and inner part in whole grid steps."""
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


def staircase_variance(gamma: float, level: float) -> float:
    """Variance of staircase noise of period 1: a geometric number of periods plus a uniform part of one."""
    b = math.exp(-level)
    mean, square = b / (1 - b), b * (1 + b) / (1 - b) ** 2
    inner = gamma / (gamma + (1 - gamma) * b)

    def second_moment(start: float, width: float) -> float:
        first, second = start + width / 2, start**2 + start * width + width**2 / 3
        return square + 2 * mean * first + second

    return inner * second_moment(0, gamma) + (1 - inner) * second_moment(gamma, 1 - gamma)


@named("staircase")
def _for(g: Guarantee) -> Staircase:
    return Staircase(B=g.B, epsilon=g.epsilon)

"""Gaussian noise straight on the rows, at the smallest scale that the guarantee allows."""

from dataclasses import dataclass

from targetdp._core import Floats, check
from targetdp.accounting import GaussianLoss, ImperfectLoss, PrivacyLoss, largest_mu
from targetdp.guarantee import Guarantee
from targetdp.mechanisms._base import NoiseMechanism, claim, ideal_budget, named
from targetdp.mechanisms._law import NoiseLaw, NormalDensity
from targetdp.noise import (
    LARGEST_GAUSSIAN_SHIFT,
    WordSource,
    add_gaussian,
    gaussian_imperfection,
    grid_for,
    normals_must_fit,
    row_growth,
)


@dataclass(frozen=True)
class GaussianLaw(NoiseLaw):
    """Independent normal noise on every value.

    Args:
        dimensions: How many columns a row has.
        grid: The step of the grid that values lie on, a power of two.
        deviation: The noise's standard deviation.

    Raises:
        ValueError: The grid is too coarse or too fine for this noise.

    Example:
        >>> GaussianLaw(10, grid_for(0.5), 0.5).deviation_per_column
        0.5
    """

    family = "gaussian"
    deviation: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._fine_enough(check.number("deviation", self.deviation, above=0))
        normals_must_fit(self.deviation, 0, self.grid)

    def loss_at(self, distance: float) -> PrivacyLoss:
        """The loss of the noise against the distance, grown by rounding to the grid."""
        shift = (distance + row_growth(self.dimensions, self.grid)) / self.deviation
        return ImperfectLoss(GaussianLoss(shift), gaussian_imperfection(self.dimensions, shift))

    @property
    def deviation_per_column(self) -> float:
        """The deviation σ."""
        return self.deviation

    @property
    def density(self) -> NormalDensity:
        """The normal density, ∝ exp(−‖z‖²/(2σ²))."""
        return NormalDensity(self.deviation)

    def add_to(self, rows: Floats, words: WordSource) -> Floats:
        """See `NoiseLaw.add_to`."""
        return add_gaussian(rows, self.deviation, self.grid, words)


@dataclass(frozen=True, init=False)
class GaussianNoise(NoiseMechanism):
    """X + N(0, σ²·I) with σ from the analytic Gaussian mechanism (Balle and Wang 2018).

    Args:
        B: The distance that is hidden, in (0, 2].
        epsilon: ε, from 0.0001 to 100.
        delta: δ, above 0 and below 1.

    Raises:
        ValueError: One of them is outside its range.

    Guarantees: (B, ε, δ)-TDP for any number of columns up to 16,384, floating point included.
    Does not guarantee: a pure (δ = 0) promise; `SphericalLaplace` does.

    Example:
        >>> mechanism = GaussianNoise(B=0.25, epsilon=1, delta=1e-5)
        >>> round(mechanism.noise_sd(10), 2)
        0.93
    """

    claimed: Guarantee

    def __init__(self, *, B: float, epsilon: float, delta: float) -> None:
        object.__setattr__(self, "claimed", claim(B, epsilon, delta, pure=False))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that was claimed: the noise is calibrated to it."""
        return self.claimed

    def with_delta(self, delta: float) -> "GaussianNoise":
        """The same mechanism with another δ."""
        return GaussianNoise(B=self.claimed.B, epsilon=self.claimed.epsilon, delta=delta)

    def law(self, dimensions: int) -> GaussianLaw:
        """Normal noise of the smallest deviation that keeps the claim."""
        d = check.dimensions(dimensions)
        budget = ideal_budget(self.claimed.epsilon, self.claimed.delta, gaussian_imperfection(d))
        mu = min(largest_mu(*budget), LARGEST_GAUSSIAN_SHIFT)
        grid = grid_for(self.claimed.B / mu)
        return GaussianLaw(d, grid, (self.claimed.B + row_growth(d, grid)) / mu)


@named("gaussian")
def _for(g: Guarantee) -> GaussianNoise:
    return GaussianNoise(B=g.B, epsilon=g.epsilon, delta=g.delta)

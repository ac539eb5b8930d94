"""The Gaussian mechanism: exact curve and smallest noise (Balle and Wang 2018, Theorems 8 and 9)."""

import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scipy.special import log_ndtr

from targetdp._core import check
from targetdp.accounting._loss import PrivacyLoss, last_true

_FLOAT_ERROR, _LOG_ERROR = 1e-12, 2.0**-49
"""Relative error allowed for in each normal probability: a constant, and a part of its logarithm."""


@dataclass(frozen=True)
class GaussianLoss(PrivacyLoss):
    """Normal noise against a shift of ``mu`` of its deviations.

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ).

    Args:
        mu: The shift in deviations, 0 or more.

    Example:
        >>> round(GaussianLoss(1.0).delta(1.0), 4)
        0.1269
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check.number("mu", self.mu, at_least=0))

    def delta(self, epsilon: float) -> float:
        """See `PrivacyLoss.delta`."""
        if self.mu <= 0:
            return 0.0
        tilt = epsilon / self.mu
        log_p = float(log_ndtr(self.mu / 2 - tilt))
        log_q = epsilon + float(log_ndtr(-self.mu / 2 - tilt))
        p = math.exp(log_p)
        error = _FLOAT_ERROR + _LOG_ERROR * (epsilon + abs(log_p) + abs(log_q - epsilon))
        # δ is never zero: where it leaves the range of floats, the smallest of them stands for it.
        return min(1.0, max(sys.float_info.min, p * (max(0.0, -math.expm1(min(0.0, log_q - log_p))) + error)))

    def reach(self) -> float:
        """See `PrivacyLoss.reach`."""
        return self.mu * (self.mu / 2 + 10)

    def expected(self) -> float:
        """See `PrivacyLoss.expected`: μ²/2, in either direction."""
        return self.mu * self.mu / 2 * (1 + _FLOAT_ERROR) + (sys.float_info.min if self.mu > 0 else 0.0)

    def gaussian(self) -> float:
        """See `PrivacyLoss.gaussian`."""
        return self.mu

    def renyi(self, order: float) -> float:
        """See `PrivacyLoss.renyi`: αμ²/2."""
        return check.number("order", order, above=1) * self.mu * self.mu / 2 * (1 + _FLOAT_ERROR)

    def distribution(self, interval: float) -> Any:
        """See `PrivacyLoss.distribution`."""
        from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415 (slow to import)

        return privacy_loss_distribution.from_gaussian_mechanism(
            standard_deviation=1 / self.mu, value_discretization_interval=interval
        )


@lru_cache(maxsize=1024)
def largest_mu(epsilon: float, delta: float) -> float:
    """The largest shift, in deviations, that normal noise hides up to (ε, δ).

    Args:
        epsilon: ε, 0 or more.
        delta: δ, above 0 and below 1.

    Returns:
        The shift μ; the noise's deviation is the distance that it must hide, divided by μ.

    Example:
        >>> round(largest_mu(1.0, 1e-5), 3)
        0.268
    """
    high = 1.0
    while GaussianLoss(high).delta(epsilon) <= delta:
        high *= 2
    return last_true(lambda mu: GaussianLoss(mu).delta(epsilon) <= delta, 0.0, high)

"""A release of which only a stated (ε, δ) is known."""

import math
import sys
from dataclasses import dataclass
from typing import Any

from targetdp import check
from targetdp.accounting.loss import NEGLIGIBLE, PrivacyLoss
from targetdp.guarantee import Guarantee


@dataclass(frozen=True)
class StatedLoss(PrivacyLoss):
    """The worst mechanism that a stated (ε, δ) admits: randomized response that fails with probability δ.

    δ(e) = δ + (1 − δ)·(e^ε − e^e)₊/(1 + e^ε) (Kairouz, Oh and Viswanath 2015).
    """

    stated_epsilon: float
    stated_delta: float

    def __post_init__(self) -> None:
        epsilon = check.number("stated_epsilon", self.stated_epsilon, at_least=0)
        delta = check.number("stated_delta", self.stated_delta, at_least=0, at_most=1)
        object.__setattr__(self, "stated_epsilon", epsilon)
        object.__setattr__(self, "stated_delta", delta)

    @classmethod
    def of(cls, guarantee: Guarantee, *, distance: float) -> "StatedLoss":
        """What a stated guarantee leaves at a distance, by the switch lemma (Lemma 4)."""
        there = guarantee.at_distance(distance)
        return cls(there.epsilon, there.delta)

    def delta(self, epsilon: float) -> float:
        """See `PrivacyLoss.delta`."""
        gap = max(0.0, -math.expm1(epsilon - self.stated_epsilon)) if epsilon < self.stated_epsilon else 0.0
        advantage = gap / (1 + math.exp(-self.stated_epsilon))
        return min(1.0, self.stated_delta + (1 - self.stated_delta) * advantage)

    def reach(self) -> float:
        """See `PrivacyLoss.reach`."""
        return self.stated_epsilon

    def largest(self) -> float:
        """See `PrivacyLoss.largest`."""
        return self.stated_epsilon if self.stated_delta == 0 else math.inf

    def expected(self) -> float:
        """See `PrivacyLoss.expected`: ε·tanh(ε/2), the mean of randomized response; infinite with a real δ.

        No (ε, 0) mechanism has more: each is randomized response, post-processed, which only lowers it.
        """
        if self.stated_delta > NEGLIGIBLE:
            return math.inf
        mean = self.stated_epsilon * math.tanh(self.stated_epsilon / 2)
        return mean * (1 + 2.0**-50) + (sys.float_info.min if self.stated_epsilon > 0 else 0.0)

    def distribution(self, interval: float) -> Any:
        """See `PrivacyLoss.distribution`."""
        from dp_accounting.pld import common, privacy_loss_distribution  # noqa: PLC0415

        return privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(self.stated_epsilon, self.stated_delta),
            value_discretization_interval=interval,
        )

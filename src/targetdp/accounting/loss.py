"""What every privacy loss can do."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from targetdp import check

NEGLIGIBLE = 2.0**-64
"""Probability of an event that a mean loss may leave out: more than any sampler here needs (2⁻⁸³)."""


class PrivacyLoss(ABC):
    """The privacy loss of one release between two tables that differ in one row.

    Guarantees: ``delta(ε)`` is never below the true sup over events of P(E) − e^ε·Q(E), in both
    directions; ``epsilon(δ)`` is never below the smallest ε with that δ.
    """

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """The smallest δ, up to a safe rounding, with which ε ≥ 0 holds."""

    @abstractmethod
    def reach(self) -> float:
        """A loss that is exceeded with negligible probability (to choose a resolution by)."""

    def largest(self) -> float:
        """A loss that is *never* exceeded; infinite if there is none."""
        return math.inf

    @abstractmethod
    def expected(self) -> float:
        """The mean of the loss in nats (a Kullback-Leibler divergence), the worse of both directions.

        Never below the truth, up to an event of probability `NEGLIGIBLE`: what happens beyond a sampler's
        tail might give a row away entirely, which no finite mean could cover. Infinite where an event that
        is likelier than that might, or where the loss has no mean.
        """

    @abstractmethod
    def distribution(self, interval: float) -> Any:
        """A pessimistic dp-accounting PrivacyLossDistribution with that resolution."""

    def epsilon(self, delta: float) -> float:
        """The smallest ε, up to a safe rounding, that holds with this δ; infinite if none does."""
        delta = check.number("delta", delta, at_least=0, below=1)
        if self.delta(0.0) <= delta:
            return 0.0
        high = max(1e-6, self.reach())
        while self.delta(high) > delta:
            high *= 2
            if high > 1e9:
                return math.inf
        return last_true(lambda epsilon: self.delta(epsilon) <= delta, high, 0.0)


def last_true(holds: Callable[[float], bool], true_end: float, false_end: float) -> float:
    """Bisect between a point where a monotone condition holds and one where it does not.

    Returns a point where it *does* hold, within 10⁻¹³ (relative) of the border.
    """
    for _ in range(200):
        if abs(true_end - false_end) <= 1e-13 * abs(true_end):
            break
        middle = 0.5 * (true_end + false_end)
        if holds(middle):
            true_end = middle
        else:
            false_end = middle
    return true_end

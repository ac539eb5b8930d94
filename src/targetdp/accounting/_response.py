"""The privacy curve of randomized response, the worst of all losses that are bounded; and of a stated (ε, δ).

Warner (1965): the true answer is given with a probability, and otherwise a wrong one. Whatever has a loss of
at most ε is randomized response of ε, post-processed (Kairouz, Oh and Viswanath 2015).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from targetdp._core import check
from targetdp.accounting._loss import NEGLIGIBLE, Imperfection, PrivacyLoss
from targetdp.guarantee import Guarantee

_UP = 1 + 2.0**-46
"""More than a handful of roundings can take away."""

_TINY = 1e-100
"""A smaller ε has squares that leave floating point: it stands for its own divergences."""

MOST_ANSWERS = 2**16


@dataclass(frozen=True)
class ResponseLoss(PrivacyLoss):
    """One of several answers: the true one with probability p, each wrong one with e^−``level``·p.

    Between two people with different true answers the loss is ``level`` for the one's answer, −``level`` for
    the other's, and 0 for all the rest, which two answers do not have.

    Args:
        level: ε, 0 or more.
        answers: How many answers there are.

    Raises:
        ValueError: One of them is outside its range.

    Guarantees: nothing that it says is below the truth, floating point included.

    Example:
        >>> loss = ResponseLoss(4.0)
        >>> round(loss.best_guess(), 4), loss.delta(4.0), loss.epsilon(0.0)
        (0.982, 0.0, 4.0)
        >>> round(ResponseLoss(4.0, answers=4).best_guess(), 4)
        0.9653
    """

    level: float
    answers: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", check.number("level", self.level, at_least=0))
        object.__setattr__(
            self, "answers", check.integer("answers", self.answers, at_least=2, at_most=MOST_ANSWERS)
        )

    @property
    def _right(self) -> float:
        """p, the probability of the true answer."""
        return 1 / (1 + (self.answers - 1) * math.exp(-self.level))

    def delta(self, epsilon: float) -> float:
        """See `PrivacyLoss.delta`: p − e^ε·q, since only one answer has a loss above 0."""
        if epsilon >= self.level:
            return 0.0
        gap = -math.expm1(epsilon - self.level) * self._right
        return min(1.0, math.nextafter(gap * _UP, 2.0))

    def reach(self) -> float:
        """See `PrivacyLoss.reach`."""
        return self.level

    def largest(self) -> float:
        """See `PrivacyLoss.largest`."""
        return self.level

    def expected(self) -> float:
        """See `PrivacyLoss.expected`: ε·(p − q). For two answers that is ε·tanh(ε/2)."""
        return min(self.level, math.nextafter(self.level * self.delta(0.0), math.inf)) if self.level else 0.0

    def epsilon(self, delta: float) -> float:
        """See `PrivacyLoss.epsilon`; exactly ``level`` for a δ of 0."""
        found = super().epsilon(delta)
        return min(self.level, found)

    def renyi(self, order: float) -> float:
        """See `PrivacyLoss.renyi`; with a = (α − 1)·ε it is ln(1 + p·(e^a − 1)·(1 − e^(−a−ε)))/(α − 1).

        The sum over answers is p·e^a + q·e^−a + (1 − p − q): 1 added to p·(e^a − 1) − q·(1 − e^−a), and q is
        e^−ε·p. All factors are positive, so that nothing cancels for a small ε.
        """
        order, level = check.number("order", order, above=1), self.level
        if level < _TINY:
            return level
        a = (order - 1) * level
        if not math.isfinite(a):
            return level
        growth = a + math.log(-math.expm1(-a)) if a > 1 else math.log(math.expm1(a))
        added = math.log(self._right) + growth + math.log(-math.expm1(-a - level))
        return min(level, float(np.logaddexp(0.0, added)) / (order - 1) * (1 + 2.0**-30))

    def distribution(self, interval: float) -> Any:
        """See `PrivacyLoss.distribution`: two or three losses, each rounded up."""
        from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415

        right = min(1.0, self._right * _UP)
        between = min(1 - right, (self.answers - 2) * math.exp(-self.level) * self._right)
        masses: dict[int, float] = {}
        for loss, mass in ((self.level, right), (0.0, between), (-self.level, 1 - right - between)):
            place = math.ceil(loss / interval)
            masses[place] = masses.get(place, 0.0) + mass
        return privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability(
            masses, 0.0, interval
        )


@dataclass(frozen=True)
class StatedLoss(PrivacyLoss):
    """The worst mechanism that a stated (ε, δ) admits: randomized response that fails with probability δ.

    δ(e) = δ + (1 − δ)·(e^ε − e^e)₊/(1 + e^ε) (Kairouz, Oh and Viswanath 2015).

    Args:
        stated_epsilon: ε, 0 or more.
        stated_delta: δ, from 0 to 1.

    Example:
        >>> StatedLoss(1.0, 1e-5).epsilon(1e-5) <= 1.0 + 1e-9
        True
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
        """What a stated guarantee leaves at a distance, by the switch lemma (Lemma 4).

        Args:
            guarantee: What was promised.
            distance: How far apart two rows are.

        Returns:
            The loss of the worst mechanism with that promise.
        """
        there = guarantee.at_distance(distance)
        return cls(there.epsilon, there.delta)

    def delta(self, epsilon: float) -> float:
        """See `PrivacyLoss.delta`."""
        kept = ResponseLoss(self.stated_epsilon).delta(epsilon)
        if kept == 0:
            return self.stated_delta
        return min(1.0, math.nextafter(self.stated_delta + (1 - self.stated_delta) * kept, 2.0))

    def split(self) -> tuple[PrivacyLoss, Imperfection]:
        """See `PrivacyLoss.split`: randomized response, but for an event of probability δ."""
        if self.stated_delta == 1:
            return self, Imperfection(0.0, 1.0)
        return ResponseLoss(self.stated_epsilon), Imperfection(
            -math.log1p(-self.stated_delta), self.stated_delta
        )

    def reach(self) -> float:
        """See `PrivacyLoss.reach`."""
        return self.stated_epsilon

    def largest(self) -> float:
        """See `PrivacyLoss.largest`."""
        return self.stated_epsilon if self.stated_delta == 0 else math.inf

    def expected(self) -> float:
        """See `PrivacyLoss.expected`: that of randomized response; infinite with a real δ."""
        if self.stated_delta > NEGLIGIBLE:
            return math.inf
        return ResponseLoss(self.stated_epsilon).expected()

    def distribution(self, interval: float) -> Any:
        """See `PrivacyLoss.distribution`."""
        from dp_accounting.pld import common, privacy_loss_distribution  # noqa: PLC0415

        return privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(self.stated_epsilon, self.stated_delta),
            value_discretization_interval=interval,
        )

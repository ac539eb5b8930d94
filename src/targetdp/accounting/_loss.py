"""Privacy losses: what each of them can say, and what an imperfect sampler adds."""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_expit, logsumexp, ndtri_exp

from targetdp._core import Floats, check

# What every privacy loss can do.

_CELLS = 128
"""Into how many the range of a loss is cut, at least, for a Rényi divergence."""
_NODES, _WEIGHTS = (
    (np.polynomial.legendre.leggauss(12)[0] + 1) / 2,
    np.polynomial.legendre.leggauss(12)[1] / 2,
)
"""On a cell of length 1."""
_FLOAT_ERROR = 2.0**-30
_NEAR = (4e-14, 1e-11, 1e-8)
"""How far from where a curve seems to pass a δ it is tried whether it has."""
_TINY, _STEEP = 1e-290, 2.0**14
"""A smaller loss has no cells of some width, and α times a larger one too many: it stands for itself."""

NEGLIGIBLE = 2.0**-64
"""Probability of an event that a mean loss may leave out: more than any sampler here needs (2⁻⁸³)."""


class PrivacyLoss(ABC):
    """The privacy loss of one release between two tables that differ in one row.

    Guarantees: ``delta(ε)`` is never below the true sup over events of P(E) − e^ε·Q(E), in both
    directions; ``epsilon(δ)`` is never below the smallest ε with that δ.

    Example:
        >>> from targetdp.accounting import GaussianLoss
        >>> loss: PrivacyLoss = GaussianLoss(0.5)
        >>> loss.delta(loss.epsilon(1e-5)) <= 1e-5
        True
    """

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """The smallest δ, up to a safe rounding, with which ε holds.

        Args:
            epsilon: ε, 0 or more.

        Returns:
            δ, from 0 to 1.
        """

    def deltas(self, epsilons: Floats) -> Floats:
        """`delta` of several ε."""
        return np.array([self.delta(float(epsilon)) for epsilon in epsilons])

    @abstractmethod
    def reach(self) -> float:
        """A loss that is exceeded with negligible probability; a composition chooses its resolution by it."""

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

    def split(self) -> tuple["PrivacyLoss", "Imperfection"]:
        """The loss of ideal noise, and how far the noise as drawn is from it."""
        return self, Imperfection(0.0, 0.0)

    def gaussian(self) -> float:
        """The μ of normal noise that tells at least as much, whatever event is looked at; or infinity.

        A loss of at most ε is no more than that of randomized response, whose trade-off curve lies above
        that of normal noise with μ = 2Φ⁻¹(e^ε/(1 + e^ε)) (Dong, Roth and Su 2022): both go through the point
        where the two kinds of error are equal, and there are straight lines on the upper one.
        """
        largest = self.largest()
        if largest < 2.0**-10:  # it bends downwards; near 1/2 the inverse of Φ has too few digits
            return largest * math.sqrt(math.pi / 2) * (1 + 2.0**-40)
        return (
            math.inf if math.isinf(largest) else -2 * float(ndtri_exp(log_expit(-largest))) * (1 + 2.0**-40)
        )

    def renyi(self, order: float) -> float:
        """The Rényi divergence of an order above 1, the worse of both directions, never below the truth.

        E_Q[(P/Q)^α] = 1 + α(α − 1)·∫₀^∞ (e^{(α−1)t} + e^{−αt})·δ(t) dt: a power is a sum of hockey sticks.
        δ is convex in e^t, so that chords between its values on a grid are an upper bound; and what is
        integrated is smooth in each cell, and positive.
        """
        order, largest = check.number("order", order, above=1), self.largest()
        if largest < _TINY or order * largest > _STEEP:
            return largest
        cells = max(_CELLS, math.ceil(order * largest / 4))
        ends = np.linspace(0.0, largest, cells + 1)
        heights = np.append(self.deltas(ends[:-1]), 0.0)
        width = largest / cells
        t = ends[:-1, None] + width * _NODES
        along = np.expm1(width * _NODES) / math.expm1(width)
        chords = heights[:-1, None] * (1 - along) + heights[1:, None] * along
        with np.errstate(divide="ignore"):  # no height, no area
            areas = np.log(chords * _WEIGHTS) + np.logaddexp((order - 1) * t, -order * t)
        total = math.log(width * order * (order - 1)) + float(logsumexp(areas))
        return min(largest, float(np.logaddexp(0.0, total)) / (order - 1) * (1 + _FLOAT_ERROR))

    def best_guess(self) -> float:
        """How often the best guess of any attacker is right, which of the two rows it was, at even odds.

        (1 + δ(0))/2: whoever guesses by any event E is right with probability (P(E) + 1 − Q(E))/2, and
        δ(0) is the largest P(E) − Q(E).

        Returns:
            A probability from 1/2 (a coin) to 1, never below the truth.
        """
        advantage = self.delta(0.0)
        return min(1.0, math.nextafter((1 + advantage) / 2, 2.0)) if advantage > 0 else 0.5

    @abstractmethod
    def distribution(self, interval: float) -> Any:
        """The loss as a dp-accounting PrivacyLossDistribution, rounded to the safe side.

        Args:
            interval: The resolution: losses are rounded up to multiples of it.

        Returns:
            A PrivacyLossDistribution.
        """

    def epsilon(self, delta: float) -> float:
        """The smallest ε, up to a safe rounding, that holds with a δ.

        Args:
            delta: δ, from 0 to below 1.

        Returns:
            ε; infinite if none holds.
        """
        delta = check.number("delta", delta, at_least=0, below=1)
        if self.delta(0.0) <= delta:
            return 0.0
        high = max(1e-6, self.reach())
        while self.delta(high) > delta:
            high *= 2
            if high > 1e9:
                return math.inf
        return last_true(lambda epsilon: self.delta(epsilon) <= delta, *self._near(delta, high))

    def _near(self, delta: float, high: float) -> tuple[float, float]:
        """Where a δ holds and where it does not, close together: a curve is smooth, and halving it is slow.

        Of what is found only points are kept that were tried: whatever the search does, they are right.
        """
        holds, fails, least = high, 0.0, math.log(sys.float_info.min)

        def excess(epsilon: float) -> float:
            value = self.delta(epsilon)
            return (math.log(value) if value > 0 else least) - math.log(delta)

        if delta > 0 and math.isfinite(high):
            root = float(brentq(excess, fails, holds, xtol=1e-300, rtol=1e-15, maxiter=60, disp=False))
            for width in _NEAR:
                above, below = root * (1 + width), root * (1 - width)
                if holds > above > fails and self.delta(above) <= delta:
                    holds = above
                if fails < below < holds and self.delta(below) > delta:
                    fails = below
                if holds <= above and fails >= below:
                    break
        return holds, fails


def last_true(holds: Callable[[float], bool], true_end: float, false_end: float) -> float:
    """Bisect between a point where a monotone condition holds and one where it does not.

    Args:
        holds: The condition.
        true_end: A point where it holds.
        false_end: A point where it does not.

    Returns:
        A point where it *does* hold, within 10⁻¹³ (relative) of the border.
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


@dataclass(frozen=True)
class Imperfection:
    """How far the noise of one row, as drawn, is from ideal noise, for two neighboring rows.

    Outside an event of probability ``tail`` (under either row's noise, as drawn), every outcome has its
    ideal probability up to a factor e^±``log_error``, under *both* rows' noise: also where an outcome that
    is likely for one row lies far out in the other's tail. So it depends on how far apart the rows are.
    A bound on the total variation would not do: it would have to be multiplied by e^ε before it could be
    added to δ, and would promise nothing at large ε.

    Args:
        log_error: η, 0 or more.
        tail: τ, a probability.

    Example:
        >>> Imperfection(1e-10, 1e-27) + Imperfection(1e-10, 0.0)
        Imperfection(log_error=2e-10, tail=1e-27)
    """

    log_error: float
    tail: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "log_error", check.number("log_error", self.log_error, at_least=0))
        object.__setattr__(self, "tail", check.number("tail", self.tail, at_least=0, at_most=1))

    def __add__(self, other: "Imperfection") -> "Imperfection":
        return Imperfection(self.log_error + other.log_error, self.tail + other.tail)


@dataclass(frozen=True)
class ImperfectLoss(PrivacyLoss):
    """The loss of a mechanism whose noise is drawn with an imperfection.

    P′(E) ≤ e^{ε + 2η}·Q′(E) + e^η·δ(ε) + τ: write P′ ≤ e^η·P and Q ≤ e^η·Q′ on the good event.

    Args:
        ideal: The loss if noise were drawn exactly.
        imperfection: How far the drawn noise is from that.

    Example:
        >>> from targetdp.accounting import StatedLoss
        >>> ImperfectLoss(StatedLoss(1.0, 0.0), Imperfection(0.0, 1e-9)).delta(1.0)
        1e-09
    """

    ideal: PrivacyLoss
    imperfection: Imperfection

    def __post_init__(self) -> None:
        check.instance("ideal", self.ideal, PrivacyLoss)
        check.instance("imperfection", self.imperfection, Imperfection)

    def split(self) -> tuple[PrivacyLoss, Imperfection]:
        """See `PrivacyLoss.split`."""
        return self.ideal, self.imperfection

    def delta(self, epsilon: float) -> float:
        """See `PrivacyLoss.delta`."""
        eta, tail = self.imperfection.log_error, self.imperfection.tail
        # Where no ideal ε ≥ 0 is left, step over δ(0) by the worst that 2η can add.
        over = math.expm1(min(1.0, 2 * eta)) if epsilon < 2 * eta else 0.0
        ideal = self.ideal.delta(max(0.0, epsilon - 2 * eta))
        # In logarithms, since e^η may leave the range of floats; their rounding is paid for.
        grown = math.exp(min(0.0, eta + math.log(ideal))) * (1 + 2.0**-40) if ideal > 0 else 0.0
        return min(1.0, grown + over + tail)

    def reach(self) -> float:
        """See `PrivacyLoss.reach`."""
        return self.ideal.reach() + 2 * self.imperfection.log_error

    def expected(self) -> float:
        """See `PrivacyLoss.expected`: e^η·E + 2(e^η − 1) + 3η + τ, with E the ideal mean.

        On the good event A, L′ ≤ L + 2η and P′ is P up to e^±η, so the drawn mean over A is at most
        E_P[L; A] + (e^η − 1)·E_P|L| + 2η. There E_P|L| ≤ E + 2, because P·ln(Q/P) ≤ Q − P where L < 0;
        and what A leaves out of E is P·ln(P/Q) over its complement, at least P(Aᶜ) − Q(Aᶜ) ≥ −(τ + η).

        Does not guarantee: anything about the event of probability τ itself, where an outcome may be
        possible for one row only. It is infinite where τ is more than `NEGLIGIBLE`.
        """
        eta, tail = self.imperfection.log_error, self.imperfection.tail
        if tail > NEGLIGIBLE or eta > 1:
            return math.inf
        mean = self.ideal.expected() * math.exp(eta) + 2 * math.expm1(eta) + 3 * eta + tail
        return mean * (1 + 2.0**-40)

    def distribution(self, interval: float) -> Any:  # noqa: ARG002
        """Not defined: `compose` composes the ideal losses and adds up the imperfections."""
        raise TypeError("an imperfect loss has no distribution of its own: compose it with `compose`")

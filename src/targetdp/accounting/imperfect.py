"""What a real sampler adds to the curve of an ideal one."""

import math
from dataclasses import dataclass
from typing import Any

from targetdp import check
from targetdp.accounting.loss import NEGLIGIBLE, PrivacyLoss


@dataclass(frozen=True)
class Imperfection:
    """How far the noise of one row, as drawn, is from ideal noise, for two neighboring rows.

    Outside an event of probability ``tail`` (under either row's noise, as drawn), every outcome has its
    ideal probability up to a factor e^±``log_error``, under *both* rows' noise: also where an outcome that
    is likely for one row lies far out in the other's tail. So it depends on how far apart the rows are.
    A bound on the total variation would not do: it would have to be multiplied by e^ε before it could be
    added to δ, and would promise nothing at large ε.
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
    """

    ideal: PrivacyLoss
    imperfection: Imperfection

    def __post_init__(self) -> None:
        check.instance("ideal", self.ideal, PrivacyLoss)
        check.instance("imperfection", self.imperfection, Imperfection)

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

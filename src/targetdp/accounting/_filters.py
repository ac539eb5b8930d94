"""Privacy filters: a limit that holds although each release is chosen after looking at those before it.

Exact composition (`compose`) is for releases whose losses were all fixed beforehand. Where the next one may
depend on what the last one showed, it accepts too much: of two ways to spend the rest, an adversary takes
whichever suits what it has seen. A filter adds up one number for each release, against a budget that was
fixed before the first:

- **pure**: Σε, for losses that are bounded;
- **gaussian**: Σμ² (Koskela, Tobaben and Honkela 2022; Smith and Thakurta 2022), exact for normal noise;
- **renyi**: Rényi divergences of one order (Feldman and Zrnic 2021), for all.

Each is sound by itself. Accepting whatever *any* of them accepts is not: that is choosing after looking.

Why a sum is enough, for all three: let V be the worst that is left to be told when the sum still may grow by
b. By induction over releases, V is the curve of one release that uses b at once: for pure ones because a
loss is at most its ε, for normal ones because normal losses of μ₁ and μ₂ make one of √(μ₁² + μ₂²), for
Rényi divergences because E[e^{(α−1)(L₁+L₂)}] is at most e^{(α−1)·ρ₁}·e^{(α−1)·ρ₂} where ρ₂ bounds the
second whatever the first has shown.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from targetdp._core import check
from targetdp.accounting._gaussian import GaussianLoss, largest_mu
from targetdp.accounting._loss import Imperfection, PrivacyLoss, last_true

FilterKind = Literal["pure", "gaussian", "renyi"]
"""What a filter adds up: ε, μ² or Rényi divergences."""

_CONVERTED = 0.75
"""Of ε, what the default order leaves for Rényi divergences; the rest is for δ."""
_LOG_ERROR, _TAIL = 2.0**-14, 2.0**-4
"""Parts of ε (of 1, if it is more) and of δ that are set aside for samplers that are not ideal."""
_ROUNDING = 1 - 2.0**-40
"""What sums of thousands of floats may be off by."""
_LOWEST_ORDER, _HIGHEST_ORDER = 1.25, 1e6


class FilterCost(NamedTuple):
    """What a release takes of a filter's budget, or that budget: each of these adds up by itself.

    Args:
        amount: ε, μ² or a Rényi divergence.
        log_error: See `Imperfection`.
        tail: See `Imperfection`.

    Example:
        >>> PrivacyFilter("pure", 8.0, 1e-6).cost(GaussianLoss(0.5)).amount  # it has no bound
        inf
    """

    amount: float
    log_error: float
    tail: float


@dataclass(frozen=True)
class PrivacyFilter:
    """A limit of (ε, δ) on releases that may each be chosen after looking at all before it.

    Args:
        kind: What is added up. It is fixed with the limit.
        epsilon: ε of everything together.
        delta: δ of everything together.
        order: Of Rényi divergences; by default one that leaves three quarters of ε for them.

    Guarantees: whoever releases only while the costs add up to at most `budget`, each at the distance that is
    limited, is within (ε, δ), however each release was chosen. Samplers' imperfections are included: with
    P′ ≤ e^η·P and Q ≤ e^η·Q′ along every path, up to events of probability τ,
    P′(S) ≤ e^{ε + 2η}·Q′(S) + e^η·δ + τ.
    Does not guarantee: anything smaller. What was spent so far is not a guarantee by itself, unless it is a
    sum of pure ε.

    Example:
        >>> budget = PrivacyFilter("gaussian", 4.0, 1e-5)
        >>> budget.cost(GaussianLoss(0.5)).amount <= budget.budget.amount
        True
    """

    kind: FilterKind
    epsilon: float
    delta: float
    order: float | None = None

    def __post_init__(self) -> None:
        check.choice("kind", self.kind, ("pure", "gaussian", "renyi"))
        object.__setattr__(self, "epsilon", check.number("epsilon", self.epsilon, at_least=0))
        object.__setattr__(self, "delta", check.number("delta", self.delta, above=0, below=1))
        if self.kind != "renyi":
            if self.order is not None:
                raise ValueError(f"order = {self.order!r} belongs to Rényi divergences: leave it out")
            return
        order = default_order(self.epsilon, self.delta) if self.order is None else self.order
        object.__setattr__(self, "order", check.number("order", order, above=1, at_most=_HIGHEST_ORDER))

    @property
    def budget(self) -> FilterCost:
        """How much may be spent; an amount of 0 if ε is too small for this δ."""
        if self.kind == "pure":
            # P ≤ e^{ε + κ}·Q is P ≤ e^ε·Q + κ: a hair more than ε costs a hair of δ. So three times ε/3 fits.
            return FilterCost(self.epsilon + self.delta / 2, math.inf, self.delta / 2)
        log_error, tail = min(1.0, self.epsilon) * _LOG_ERROR, self.delta * _TAIL
        epsilon, delta = self.epsilon - 2 * log_error, (self.delta - tail) * math.exp(-log_error)
        if self.order is None:
            amount = largest_mu(epsilon, delta) ** 2
        else:
            amount = max(0.0, _divergence(epsilon, delta, self.order))
        return FilterCost(amount * _ROUNDING, log_error, tail)

    def cost(self, *losses: PrivacyLoss) -> FilterCost:
        """What one release takes, which may be of several parts; an infinite amount where this filter cannot.

        Args:
            losses: Its losses at the distance that is limited.
        """
        amount, imperfection = 0.0, Imperfection(0.0, 0.0)
        for loss in losses:
            ideal, own = loss.split()
            amount += _amount(ideal, self.kind, self.order)
            imperfection += own
        if self.kind == "pure":
            return FilterCost(amount + 2 * imperfection.log_error, 0.0, imperfection.tail)
        return FilterCost(amount, imperfection.log_error, imperfection.tail)

    def widened(self, times: int) -> "PrivacyFilter":
        """The filter that holds at so many times the distance because this one holds here.

        A row that moves k times as far moves normal noise by k·μ, and pure noise by at most k·ε. So normal
        and pure releases that this filter lets through, that one does, too.
        """
        if self.kind == "pure":
            return PrivacyFilter("pure", times * self.epsilon, self.delta)
        # Room for what is set aside for imperfections.
        room, delta = 1 + 4 * _LOG_ERROR, self.delta * (1 - 2 * _TAIL)
        if self.kind == "gaussian":
            mu = math.sqrt(self.budget.amount) * times
            return PrivacyFilter("gaussian", room * GaussianLoss(mu).epsilon(delta), self.delta)
        rate = self.budget.amount / (self.order or math.inf) * times**2
        # The order that makes ε smallest for normal noise. Randomized response of ε has a divergence of
        # (ln cosh((α−½)ε) − ln cosh(ε/2))/(α − 1); ln cosh √x is concave, so that k·ε at an order of at least
        # ½ + (α−½)/k takes no more of that budget than ε takes of this one. Below it might.
        order = 1 + math.sqrt(-math.log(delta) / max(rate, 1e-9))
        order = max(order, 0.5 + ((self.order or 0.0) - 0.5) / times, _LOWEST_ORDER)
        order = min(order, _HIGHEST_ORDER)
        epsilon = rate * order - _divergence(0.0, delta, order)
        return PrivacyFilter("renyi", room * max(self.epsilon, epsilon), self.delta, order)


@lru_cache(maxsize=1024)
def _amount(loss: PrivacyLoss, kind: FilterKind, order: float | None) -> float:
    if order is not None:
        return loss.renyi(order)
    return loss.largest() if kind == "pure" else loss.gaussian() ** 2


def _divergence(epsilon: float, delta: float, order: float) -> float:
    """The divergence of an order that makes (ε, δ) (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    return epsilon - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)


@lru_cache(maxsize=256)
def default_order(epsilon: float, delta: float) -> float:
    """The smallest order at which three quarters of ε are left for Rényi divergences.

    Few large releases that are pure want a higher one, many small ones and normal noise a lower one.
    """

    def leaves_enough(order: float) -> bool:
        return _divergence(epsilon, delta, order) >= _CONVERTED * epsilon

    return max(_LOWEST_ORDER, last_true(leaves_enough, _HIGHEST_ORDER, 1 + 2.0**-20))

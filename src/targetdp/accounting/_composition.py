"""Several releases about the same row, composed tightly through privacy loss distributions."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from targetdp._core import check
from targetdp.accounting._gaussian import GaussianLoss
from targetdp.accounting._loss import Imperfection, ImperfectLoss, PrivacyLoss
from targetdp.accounting._response import StatedLoss

_POINTS = 8_000
"""Resolution: how many steps the largest total loss is cut into (on each side of zero)."""

_FINEST = 1e-7
"""No finer resolution than this, so that losses that reach nowhere still have one."""

_CONVOLUTION_ERROR = 1e-12
"""Added to δ for each convolution: rounding of the Fourier transform and tails that are cut."""

_LARGEST_STATED_EPSILON = 500.0
"""Beyond it e^ε leaves floating point; such a release is counted as promising nothing."""


@dataclass(frozen=True)
class ComposedLoss(PrivacyLoss):
    """The loss of several releases together.

    A later mechanism may depend on earlier outputs, as long as its *loss* was fixed beforehand. Choosing the
    next B, ε or δ after seeing an earlier release is not covered: keep a budget that was set in advance.
    """

    pld: Any
    parts: tuple[PrivacyLoss, ...]

    def delta(self, epsilon: float) -> float:
        """See `PrivacyLoss.delta`."""
        if epsilon >= self.largest():
            return 0.0
        delta = float(self.pld.get_delta_for_epsilon(epsilon))
        found = max(0.0, delta) + _CONVOLUTION_ERROR * len(self.parts) if math.isfinite(delta) else 1.0
        return min(1.0, found, self._stated_at(epsilon))

    def _stated_at(self, epsilon: float) -> float:
        """δ by Lemma 2, which has no error of a convolution: what parts state adds up, ε and δ each."""
        stated = [
            (loss.stated_epsilon, loss.stated_delta)
            if isinstance(loss, StatedLoss)
            else (loss.largest(), 0.0)
            for loss in self.parts
        ]
        if math.fsum(level for level, _ in stated) * (1 - 2.0**-40) > epsilon:  # far from it, as mostly
            return 1.0
        if sum((Fraction(level) for level, _ in stated), Fraction(0)) > Fraction(epsilon):
            return 1.0
        exact = sum((Fraction(delta) for _, delta in stated), Fraction(0))
        near = float(exact)
        return near if Fraction(near) >= exact else math.nextafter(near, 2.0)

    def reach(self) -> float:
        """See `PrivacyLoss.reach`."""
        return sum(loss.reach() for loss in self.parts)

    def largest(self) -> float:
        """See `PrivacyLoss.largest`: the largest losses add up, rounded up."""
        return math.nextafter(math.fsum(loss.largest() for loss in self.parts), math.inf)

    def expected(self) -> float:
        """See `PrivacyLoss.expected`: means add up, rounded up."""
        return math.nextafter(math.fsum(loss.expected() for loss in self.parts), math.inf)

    def distribution(self, interval: float) -> Any:  # noqa: ARG002
        """Not defined: a composition is fixed at the resolution it was made with."""
        raise TypeError("a composed loss cannot be composed again: compose all losses in one call")


def compose(*losses: PrivacyLoss) -> PrivacyLoss:
    """Compose several releases about one row tightly, through their privacy losses.

    Gaussian losses are merged exactly (μ² adds); the rest are convolved, always rounding up.

    Args:
        losses: One for each release, taken at the distance that the row has *in that release's own normalized
            space*.

    Returns:
        The loss of all these releases together.

    Raises:
        TypeError: One of them is not a `PrivacyLoss`, or is itself composed of several that are not Gaussian.
        ValueError: None was given.

    Example:
        >>> compose(GaussianLoss(3.0), GaussianLoss(4.0))
        GaussianLoss(mu=5.0)
    """
    if not losses:
        raise ValueError("no losses were given: compose at least one")
    imperfection = Imperfection(0.0, 0.0)
    ideal: list[PrivacyLoss] = []
    for loss in losses:
        check.instance("losses", loss, PrivacyLoss)
        if isinstance(loss, ImperfectLoss):
            imperfection += loss.imperfection
            ideal.append(loss.ideal)
        else:
            ideal.append(loss)
    total = _compose_ideal(ideal)
    if imperfection == Imperfection(0.0, 0.0):
        return total
    return ImperfectLoss(total, imperfection)


def _compose_ideal(losses: list[PrivacyLoss]) -> PrivacyLoss:
    gaussians = [loss for loss in losses if isinstance(loss, GaussianLoss) and loss.mu > 0]
    rest = [loss for loss in losses if not isinstance(loss, GaussianLoss)]
    if gaussians:
        rest.append(GaussianLoss(math.hypot(*(loss.mu for loss in gaussians))))
    if not rest:
        return GaussianLoss(0.0)
    if len(rest) == 1:
        return rest[0]
    if any(_promises_nothing(loss) for loss in rest):
        return StatedLoss(_LARGEST_STATED_EPSILON, 1.0)
    interval = max(_FINEST, sum(loss.reach() for loss in rest) / _POINTS)
    drawn = {loss: loss.distribution(interval) for loss in set(rest)}  # equal releases are computed once
    whole = reduce(lambda a, b: a.compose(b), (drawn[loss] for loss in rest))
    return ComposedLoss(whole, tuple(rest))


def _promises_nothing(loss: PrivacyLoss) -> bool:
    return isinstance(loss, StatedLoss) and (
        loss.stated_delta >= 1 or loss.stated_epsilon > _LARGEST_STATED_EPSILON
    )

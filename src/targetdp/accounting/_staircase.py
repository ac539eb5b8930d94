"""The staircase mechanism's exact privacy curve (Geng and Viswanath 2014), one dimension."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from targetdp._core import Floats, check
from targetdp.accounting._loss import PrivacyLoss

_FLOAT_ERROR = 1e-12
_NEGLIGIBLE = 1e-18
"""Mass of the density's far tail that is counted as if it were distinguished in full."""

_MOST_PERIODS = 1e5
"""Beyond a shift of so many periods the largest loss stands for the mean one, which is then close to it."""


@dataclass(frozen=True)
class StaircaseLoss(PrivacyLoss):
    """Staircase noise with period 1 and step ``gamma``, calibrated to ``level``, against a shift.

    The density is constant on steps: level 0 on |z| < γ, level k ≥ 1 on k − 1 + γ ≤ |z| < k + γ, each
    level e^−level times the one before. So the loss takes whole multiples of ``level`` only, and
    δ(ε) is a finite sum over the pieces between the breakpoints of the density and its shifted copy.

    Args:
        shift: The distance between two values, in periods.
        level: By how much the log-density falls from one step to the next.
        gamma: The inner part of a period, between 0 and 1.

    Example:
        >>> StaircaseLoss(shift=0.5, level=1.0, gamma=0.4).largest()
        1.0
    """

    shift: float
    level: float
    gamma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", check.number("shift", self.shift, at_least=0))
        object.__setattr__(self, "level", check.number("level", self.level, above=0))
        object.__setattr__(self, "gamma", check.number("gamma", self.gamma, above=0, below=1))

    def losses(self) -> tuple[Floats, Floats]:
        """All values of the loss with their probabilities, which add up to 1 but for the far tail."""
        reach = math.ceil(self.shift) + math.ceil(-math.log(_NEGLIGIBLE) / self.level) + 2
        steps = np.concatenate([[self.gamma], np.arange(1, reach + 1) + self.gamma])
        own = np.concatenate([-steps[::-1], steps])
        breaks = np.unique(np.concatenate([own, own + self.shift]))
        breaks = breaks[(breaks >= own[0]) & (breaks <= own[-1])]
        middle, width = (breaks[1:] + breaks[:-1]) / 2, np.diff(breaks)
        here, there = self._steps_down(middle), self._steps_down(middle - self.shift)
        top = -math.expm1(-self.level) / (2 * (self.gamma + math.exp(-self.level) * (1 - self.gamma)))
        return (there - here) * self.level, top * np.exp(-self.level * here) * width

    def _steps_down(self, z: Floats) -> Floats:
        return np.asarray(np.maximum(0.0, np.floor(np.abs(z) - self.gamma) + 1))

    def delta(self, epsilon: float) -> float:
        """See `PrivacyLoss.delta`."""
        if epsilon >= self.largest():
            return 0.0
        values, masses = self.losses()
        gain = np.where(values > epsilon, -np.expm1(np.minimum(0.0, epsilon - values)), 0.0)
        # Each piece's width is a difference of rounded breakpoints, off by a few units of its place.
        rounding = 2.0**-48 * (1 + 1 / self.level)
        return min(1.0, float((gain * masses).sum()) * (1 + _FLOAT_ERROR) + 2 * _NEGLIGIBLE + rounding)

    def largest(self) -> float:
        """See `PrivacyLoss.largest`: a shift of so many periods crosses at most so many levels."""
        levels = math.ceil(self.shift)
        return self.level if levels == 1 else math.nextafter(levels * self.level, math.inf)

    def reach(self) -> float:
        """See `PrivacyLoss.reach`."""
        return math.ceil(self.shift) * self.level

    def expected(self) -> float:
        """See `PrivacyLoss.expected`: the sum over all pieces; the density is even, so directions agree."""
        if self.shift > _MOST_PERIODS:
            return self.largest()
        values, masses = self.losses()
        size = float((np.abs(values) * masses).sum())
        error = _FLOAT_ERROR * size + self.largest() * self._misplaced()
        return min(self.largest(), float((values * masses).sum()) + error)

    def _misplaced(self) -> float:
        """Bound on the mass that `losses` leaves out or puts at another loss: the far tail, and rounding.

        A breakpoint k periods out is off by a few units of k + shift, times the density there, which is
        e^{−level·k} of the highest. Summed over k.
        """
        fall = -math.expm1(-self.level)
        height = 1 / (2 * (self.gamma + math.exp(-self.level) * (1 - self.gamma)))
        return 2 * _NEGLIGIBLE + 2.0**-48 * height * (1 + self.shift + 1 / fall)

    def distribution(self, interval: float) -> Any:
        """See `PrivacyLoss.distribution`: the loss is discrete, so each value is rounded up."""
        from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415

        values, masses = self.losses()
        rounded: dict[int, float] = {}
        for value, mass in zip(np.ceil(values / interval - 1e-9), masses, strict=True):
            rounded[int(value)] = rounded.get(int(value), 0.0) + float(mass)
        missing = max(0.0, 1.0 - float(masses.sum())) + _NEGLIGIBLE
        return privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability(
            rounded, missing, interval
        )

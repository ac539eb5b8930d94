"""On which scale a target is learned: consumption is skewed, its logarithm hardly."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from targetdp.typing import Floats

_TWO_VALUES, _SKEWED = 2, 0.5


@dataclass(frozen=True)
class TargetScale:
    """A rising function of the target, so that whoever is poorest on one scale is so on the other.

    ``log`` is ln y. ``signed log`` is sign(y)·ln(1 + |y|/unit): like a logarithm far from 0, a straight line
    near it, and defined for debts and zeros too. ``as given`` is y.
    """

    name: Literal["as given", "log", "signed log"]
    unit: float = 1.0

    def of(self, y: Floats) -> Floats:
        """Targets on this scale."""
        if self.name == "log":
            return np.log(y)
        if self.name == "signed log":
            return np.asarray(np.sign(y) * np.log1p(np.abs(y) / self.unit))
        return y


AS_GIVEN = TargetScale("as given")


def scale_of(y: Floats) -> TargetScale:
    """The scale that suits a target. It looks at the target only, never at features.

    A logarithm, if the target is skewed (by more than ½) and its logarithm is so by less: ln y where all are
    above 0, the signed one (its unit is the median distance from 0) where some are not. A target of two
    values stays as it is.
    """
    size = np.abs(y[y != 0])
    if len(np.unique(y)) <= _TWO_VALUES or not len(size):
        return AS_GIVEN
    bent = TargetScale("log") if (y > 0).all() else TargetScale("signed log", float(np.median(size)))
    skew = abs(_skew(y))
    return bent if skew > _SKEWED and abs(_skew(bent.of(y))) < skew else AS_GIVEN


def _skew(values: Floats) -> float:
    """Skewness, in units in which nothing overflows."""
    far = values - values.mean()
    far = far / np.abs(far).max()
    return float(np.mean(far**3)) / math.sqrt(float(np.mean(far**2))) ** 3

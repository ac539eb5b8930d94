"""What rows were before their noise, as far as moments tell: its covariance is known, and taken off."""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from targetdp._core import Floats

_STEPS = 2_001
"""Of the grid on which a plausible value is averaged."""


@dataclass(frozen=True, eq=False)
class Signal:
    """Mean and covariance of rows of the unit ball, from rows with noise of covariance ``noise``.

    ``covariance`` is cov(Z) − Σ₁: right in the mean, but where noise is large it need not be a covariance at
    all. ``shrunk`` is one: pulled towards ``typical``·I by the share ``shrinkage`` (Ledoit and Wolf 2004,
    with the error that the noise brings), then made positive semidefinite. ``shares`` add up to 1 and say
    what each person counts.
    """

    center: Floats
    covariance: Floats = field(repr=False)
    shrunk: Floats = field(repr=False)
    noise: Floats = field(repr=False)
    typical: float
    shrinkage: float
    rows: Floats = field(repr=False)
    """Rows less their mean, noise included."""
    shares: Floats = field(repr=False)

    @property
    def crowding(self) -> float:
        """Σ shares²: 1/n, if all count alike."""
        return float(self.shares @ self.shares)


def signal_of(Z: Floats, noise: Floats, weights: Floats | None = None) -> Signal:
    """The signal in private rows ``Z``; ``weights`` say how many people each stands for.

    Rows were clipped to the unit ball before the noise, so that E‖x‖² ≤ 1. The trace of the covariance is
    therefore taken as plausible only between 0 and 1 − ‖mean‖²: see `plausible`.
    """
    n, d = Z.shape
    shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    crowding = float(shares @ shares)
    center = shares @ Z
    rows = Z - center
    spread = (rows.T * shares) @ rows
    covariance = spread / (1 - crowding) - noise
    lengths = np.einsum("ij,ij->i", rows, rows)
    error = math.sqrt(float(np.square(shares * (lengths - np.trace(spread))).sum()))
    # The mean's own error makes it look longer than it is.
    room = 1 - max(0.0, float(center @ center) - float(np.trace(spread)) * crowding)
    typical = plausible(float(np.trace(covariance)), error, max(room, 1e-6)) / d
    squared_error = float(
        np.square(shares)
        @ (lengths**2 - 2 * np.einsum("ij,ij->i", rows @ spread, rows) + np.sum(spread * spread))
    )
    apart = float(np.sum(np.square(covariance - typical * np.eye(d))))
    shrinkage = 1.0 if apart <= squared_error else max(0.0, squared_error) / apart
    pulled = shrinkage * typical * np.eye(d) + (1 - shrinkage) * covariance
    return Signal(
        center, covariance, _positive(pulled), noise, typical, shrinkage, rows, shares
    )  # fmt: skip


def plausible(
    value: float, error: float, most: float, usual: float | None = None, at: float | None = None
) -> float:
    """What to believe of a number that lies between 0 and ``most`` and was measured with a normal error.

    The mean of the truth, given the measurement, if before every number between the two was equally likely
    or, with ``usual``, such numbers were normal around it with a deviation of half of it. Where the error is
    small it is the measurement itself. Never exactly 0. ``at`` asks for a quantile in place of the mean.
    """
    least = most * 1e-9
    if error <= most / 1_000:
        return min(max(value, least), most)
    grid = np.linspace(0.0, most, _STEPS)
    far = np.square((grid - value) / error)
    if usual is not None:
        far = far + np.square((grid - usual) / (usual / 2))
    chances = np.exp((far.min() - far) / 2)
    if at is not None:
        reached = np.cumsum(chances)
        return max(float(np.interp(at * reached[-1], reached, grid)), least)
    return max(float(chances @ grid / chances.sum()), least)


def _positive(matrix: Floats) -> Floats:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


# On which scale a target is learned: consumption is skewed, its logarithm hardly.

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

"""What rows and scores were before their noise, as far as its known law tells."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from targetdp._core import Floats, check
from targetdp.mechanisms import NoiseDensity, NoiseLaw, NormalDensity
from targetdp.programs import ScoredProgram

# Moments of rows: the covariance of the noise is known, and taken off.

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


# Noise on one score, on a grid: what it makes of a distribution of scores, and the way back.

_FINEST, _PER_DEVIATION = 1e-3, 8
"""Steps of the grid: an eighth of the noise's deviation, or a thousandth of the ball's radius."""
_REACH = 14
"""Deviations of noise that the grid holds on either side; what is farther out counts as at its end."""
_INSIDE = 9
"""Points of each step at which the noise's density is taken."""
_NOBODY = 1e-7
"""People at a released score who are too few to look at."""
_ROUNDS = 60
"""Of expectation and maximization: 200 changed no decision rate by more than 0.0003."""
_BEFORE = 20.0
"""People whom the normal distribution that one starts from counts as."""


class Channel(Protocol):
    """What becomes of scores: noise is put on them, or answers are drawn from them."""

    @property
    def step(self) -> float:
        """How far apart possible scores are."""

    @property
    def values(self) -> Floats:
        """Possible scores, from −1 to 1."""

    def bell(self, mean: float, variance: float) -> Floats:
        """A normal distribution of scores, as far as they are in [−1, 1]."""

    def errors(
        self, program: ScoredProgram, low: Floats, high: Floats, believed: Callable[[], tuple[Floats, Floats]]
    ) -> tuple[float, float]:
        """Shares of people who are decided about wrongly: low ones taken for high ones, then the opposite.

        ``low`` and ``high`` are shares of people at each possible score, and ``believed`` what whoever
        decides takes these to be.
        """


@dataclass(frozen=True, eq=False)
class ScoreNoise:
    """Noise of a known law on a score in [−1, 1].

    ``values`` are possible scores, ``released`` possible released ones, on one grid of ``step``; ``kernel``
    has the probability of each number of steps that the noise makes.
    """

    deviation: float
    step: float
    values: Floats = field(repr=False)
    released: Floats = field(repr=False)
    kernel: Floats = field(repr=False)

    @classmethod
    def of(cls, law: NoiseLaw, finest: float = _FINEST) -> "ScoreNoise":
        """The noise of a law in one dimension, or that of a release of one score."""
        check.instance("law", law, NoiseLaw)
        law = law.added
        if law.dimensions != 1:
            raise ValueError(f"law has {law.dimensions} dimensions: noise on one score is needed")
        deviation = law.deviation_per_column
        step = max(finest, min(deviation, 1.0) / _PER_DEVIATION)
        return cls._on_grid(law.density, deviation, step)

    @classmethod
    def normal(cls, variance: float, step: float) -> "ScoreNoise":
        """Normal noise of a variance, on a grid of this step."""
        deviation = math.sqrt(variance)
        return cls._on_grid(NormalDensity(max(deviation, step * 1e-3)), deviation, step)

    @classmethod
    def along(cls, law: NoiseLaw | None, variance: float, step: float) -> "ScoreNoise":
        """What a law's noise on whole rows is along a direction of norm 1, in which it has this variance.

        Noise of no law that is known is taken for normal.
        """
        deviation = math.sqrt(variance)
        shape = None if law is None else law.density_along(deviation)
        return cls.normal(variance, step) if shape is None else cls._on_grid(shape, deviation, step)

    @classmethod
    def _on_grid(cls, shape: NoiseDensity, deviation: float, step: float) -> "ScoreNoise":
        steps, reach = math.ceil(1 / step), max(1, math.ceil(_REACH * deviation / step))
        return cls(
            deviation, step, _grid(steps, step), _grid(steps + reach, step), _masses(shape, step, reach)
        )

    @property
    def variance(self) -> float:
        """v₂."""
        return self.deviation**2

    def spread_out(self, chances: Floats) -> Floats:
        """The distribution of released scores, if ``chances`` are those of scores; also for any measure."""
        return np.convolve(chances, self.kernel)

    def errors(
        self, program: ScoredProgram, low: Floats, high: Floats, believed: Callable[[], tuple[Floats, Floats]]
    ) -> tuple[float, float]:
        """See `Channel.errors`: the program decides by scores with this noise."""

        def released() -> tuple[Floats, Floats]:
            below, above = believed()
            return self.spread_out(below), self.spread_out(above)

        return program.errors(self.spread_out(low), self.spread_out(high), released)

    def bell(self, mean: float, variance: float) -> Floats:
        """A normal distribution of scores, as far as they are in [−1, 1]."""
        far = -0.5 * np.square(self.values - mean) / max(variance, 1e-12)
        chances = np.exp(far - far.max())
        return np.asarray(chances / chances.sum())

    def distribution(
        self, scores: Floats, start: Floats, weights: Floats | None = None, rounds: int = _ROUNDS
    ) -> Floats:
        """The distribution of scores before the noise, from many released ones (maximum likelihood).

        ``start`` is what is believed before; it counts as 20 people. Expectation and maximization
        (Dempster, Laird and Rubin 1977): everybody is shared out among the scores that may be hers.
        """
        seen = np.bincount(self.places(scores), weights, minlength=len(self.released))
        counts = seen + _BEFORE * self.spread_out(start)
        chances = start
        for _ in range(rounds):
            # A released score that nothing leads to counts for nothing, so that no 0 is divided by.
            ratio = counts / np.maximum(self.spread_out(chances), 1e-300)
            chances = chances * np.convolve(ratio, self.kernel[::-1], mode="valid")
            chances = chances / chances.sum()
        return chances

    def distributions(self, counts: Floats, starts: Floats, rounds: int = _ROUNDS) -> Floats:
        """The same for many samples at once, a row for each: ``counts`` are people at each released score.

        Edges: it needs a matrix of both grids, so it is for steps of a hundredth or more.
        """
        steps = np.zeros((len(self.values), len(self.released)))
        for place, row in enumerate(steps):
            row[place : place + len(self.kernel)] = self.kernel
        weighed, chances = counts + _BEFORE * (starts @ steps), starts
        known = weighed.max(axis=0) > _NOBODY
        weighed, steps = weighed[:, known], np.ascontiguousarray(steps[:, known])
        # One thread: on a busy machine several wait for each other in every small product.
        with threadpool_limits(1, user_api="blas"):
            for _ in range(rounds):
                chances = chances * ((weighed / np.maximum(chances @ steps, 1e-300)) @ steps.T)
                chances = chances / chances.sum(axis=1, keepdims=True)
        return chances

    def expected(self, scores: Floats, chances: Floats, what: Floats) -> Floats:
        """The mean of ``what`` (a value for each possible score), given each released score."""
        likely = self.spread_out(chances)
        mean = np.interp(self.released, self.values, what)
        known = likely > 1e-250
        mean[known] = self.spread_out(chances * what)[known] / likely[known]
        return np.interp(scores, self.released, mean)

    def places(self, scores: Floats) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Where on the grid of released scores each one is; what is beyond it is at its end."""
        places = np.rint((scores - self.released[0]) / self.step)
        return np.asarray(np.clip(places, 0, len(self.released) - 1).astype(np.intp))


def _grid(steps: int, step: float) -> Floats:
    return np.arange(-steps, steps + 1, dtype=np.float64) * step


def _masses(shape: NoiseDensity, step: float, reach: int) -> Floats:
    """The noise's probability of each whole number of steps."""
    half = _INSIDE // 2
    points = np.arange(-reach * _INSIDE - half, reach * _INSIDE + half + 1) * (step / _INSIDE)
    heights = np.exp(shape.log_density(np.square(points)))
    masses = heights.reshape(-1, _INSIDE).sum(axis=1)
    return np.asarray(masses / masses.sum())

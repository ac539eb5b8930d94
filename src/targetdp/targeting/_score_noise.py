"""Noise on one score, on a grid: what it makes of a distribution of scores, and the way back."""

import math
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from targetdp._core import Floats, check
from targetdp.mechanisms import NoiseDensity, NoiseLaw, NormalDensity

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
        return cls._made(law.density, deviation, step)

    @classmethod
    def normal(cls, variance: float, step: float) -> "ScoreNoise":
        """Normal noise of a variance, on a grid of this step."""
        deviation = math.sqrt(variance)
        return cls._made(NormalDensity(max(deviation, step * 1e-3)), deviation, step)

    @classmethod
    def along(cls, law: NoiseLaw | None, variance: float, step: float) -> "ScoreNoise":
        """What a law's noise on whole rows is along a direction of norm 1, in which it has this variance.

        Noise of no law that is known is taken for normal.
        """
        deviation = math.sqrt(variance)
        shape = None if law is None else law.density_along(deviation)
        return cls.normal(variance, step) if shape is None else cls._made(shape, deviation, step)

    @classmethod
    def _made(cls, shape: NoiseDensity, deviation: float, step: float) -> "ScoreNoise":
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

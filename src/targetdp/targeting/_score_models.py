"""Two models of the scores of a private sample, and who would be decided about wrongly under each of them.

The *smooth* model has two normal distributions of one variance: one for people who are high (not poor;
repaying), one for the others. It needs few people, and it is wrong where the poor are not at one end: where
they are in the middle of a column, say, or a cluster of their own. The *counted* model starts from it, and
then takes the distribution of either kind from the scores themselves (maximum likelihood under the
known noise of the private rows). It follows any shape, and is less steady.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import ndtri

from targetdp._core import Floats
from targetdp.programs import ScoredProgram, Truths
from targetdp.targeting._denoise import Channel, ScoreNoise, plausible
from targetdp.targeting._learn import LearnedWeights

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")

_SURE = 1e-4
"""An AUC is taken to be at least so far from 1."""


@dataclass(frozen=True)
class ErrorShares:
    """Shares of all people: low ones who count as high (``let_in``), and high ones who count as low."""

    let_in: float
    left_out: float

    def towards(self, other: "ErrorShares", by: float) -> "ErrorShares":
        """So far on the way to another one: 0 is here, 1 is there."""
        return ErrorShares(
            self.let_in + by * (other.let_in - self.let_in),
            self.left_out + by * (other.left_out - self.left_out),
        )

    @property
    def accuracy(self) -> float:
        """The share of people who are decided about rightly."""
        return 1 - self.let_in - self.left_out


@dataclass(frozen=True, eq=False)
class BootstrapSample:
    """A sample in which each person is so many times; ``weights`` add up to 1, ``high`` says who is high.

    ``share`` is that of high people, ``variance`` that of scores among people of one kind, without the noise
    of the private rows, and ``apart`` how far the two kinds' means are from each other.
    """

    program: ScoredProgram
    learned: LearnedWeights
    weights: Floats = field(repr=False)
    high: Truths = field(repr=False)
    share: float
    variance: float
    apart: float

    @classmethod
    def of(
        cls,
        program: ScoredProgram,
        learned: LearnedWeights,
        counts: Floats | None = None,
        at: float | None = None,
    ) -> "BootstrapSample":
        """The sample itself, or one in which people are so many times; ``at``: see `plausible`."""
        weights = program.people.weights if counts is None else counts * program.people.weights
        weights = weights / weights.sum()
        high = program.high(None if counts is None else weights)
        share = float(weights[high].sum())
        if not (weights[high].any() and weights[~high].any()):  # all are alike: nothing can go wrong
            return cls(program, learned, weights, high, share, 1.0, 0.0)
        variance = _within(learned, weights, high, at)
        return cls(program, learned, weights, high, share, variance, _apart(learned, weights, high, variance))

    def smooth(self, released: Channel) -> ErrorShares:
        """Who is wrong if scores are two normal distributions, and released like this."""
        return self.errors(*self.bells(released), released)

    def seen(self, first: ScoreNoise) -> ErrorShares:
        """Who is wrong if the scores decide as they are, with the noise of the private rows."""
        low, high = self.shares_seen(first)
        bells = self.bells(first)
        released = first.spread_out(bells[0]), first.spread_out(bells[1])
        return ErrorShares(*self.program.errors(low, high, lambda: released))

    def shares_seen(self, first: ScoreNoise) -> tuple[Floats, Floats]:
        """Shares of people at each step of released scores: low ones and high ones."""
        places, steps = first.places(self.learned.scores), len(first.released)

        def shares(kind: Truths) -> Floats:
            return np.asarray(np.bincount(places[kind], self.weights[kind], steps), dtype=np.float64)

        return shares(~self.high), shares(self.high)

    def bells(self, grid: Channel) -> tuple[Floats, Floats]:
        """Shares of people at each step of scores before they are released, under the smooth model."""
        share, middle = self.share, self.learned.center
        return (
            (1 - share) * grid.bell(middle - share * self.apart, self.variance),
            share * grid.bell(middle + (1 - share) * self.apart, self.variance),
        )

    def errors(self, low: Floats, high: Floats, released: Channel) -> ErrorShares:
        """Who is wrong if so many low and high people have each score, and it is released like this.

        Whoever decides takes scores for two normal distributions, whatever the truth is.
        """
        return ErrorShares(*released.errors(self.program, low, high, lambda: self.bells(released)))


def counted(draws: Sequence[BootstrapSample], released: Channel, first: ScoreNoise) -> list[ErrorShares]:
    """Who is wrong in each of some samples, if scores are distributed as they show themselves.

    ``first`` is the noise that the sample's scores have, on the same grid as what is to come.
    """
    starts = np.array([draw.bells(released) for draw in draws])  # draw, low and high, step
    seen = np.array([draw.shares_seen(first) for draw in draws])
    # Survey weights make people count as fewer; whoever is drawn twice is two.
    people = draws[0].program.people
    many = people.weights.sum() ** 2 / np.square(people.weights).sum()
    kinds = starts.sum(axis=2, keepdims=True)
    steps = starts.shape[2]
    distributions = first.distributions(
        (many * seen).reshape(-1, seen.shape[2]), (starts / np.maximum(kinds, 1e-300)).reshape(-1, steps)
    ).reshape(starts.shape)
    return [
        draw.errors(low, high, released)
        for draw, (low, high) in zip(draws, kinds * distributions, strict=True)
    ]


def _within(learned: LearnedWeights, weights: Floats, high: Truths, at: float | None) -> float:
    """The variance of scores among people of one kind, without the noise of the private rows."""
    squares, error = 0.0, 0.0
    for kind in (high, ~high):
        ours, scores = weights[kind], learned.scores[kind]
        far = np.square(scores - _mean(scores, ours))
        squares += float((ours * far).sum())
        error += float(np.square(ours * (far - _mean(far, ours))).sum())
    return plausible(squares - learned.noise_variance, math.sqrt(error), 1.0, learned.usual, at)


def _apart(learned: LearnedWeights, weights: Floats, high: Truths, variance: float) -> float:
    """How far apart the two kinds are: by their means, or by √2·Φ⁻¹(AUC) deviations if that is less."""
    above, below = weights[high], weights[~high]
    up, down = learned.scores[high], learned.scores[~high]
    order = np.argsort(down)
    reached = np.concatenate([[0.0], np.cumsum(below[order])])
    # The share of low people below each high one; a tie counts half.
    under, at_most = (reached[np.searchsorted(down[order], up, side)] for side in _SIDES)
    area = _mean((under + at_most) / 2, above) / float(reached[-1])
    deviations = math.sqrt(2) * float(ndtri(min(max(area, 0.5), 1 - _SURE)))
    means = _mean(up, above) - _mean(down, below)
    return max(0.0, min(means, deviations * math.sqrt(variance + learned.noise_variance)))


def _mean(values: Floats, weights: Floats) -> float:
    return float((values * weights).sum() / weights.sum())

"""What more or less ε in the second round would buy: weights learned anew for each, and what to expect."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from targetdp.guarantee import Guarantee
from targetdp.mechanisms.base import LARGEST_EPSILON, SMALLEST_EPSILON
from targetdp.mechanisms.choice import least_noise
from targetdp.programs.cost import CONFIDENCE
from targetdp.programs.two_rounds.expectation import REDRAWN, Expectation, expect
from targetdp.programs.two_rounds.labelled import LabelledSample
from targetdp.programs.two_rounds.learning import Weights
from targetdp.programs.two_rounds.score_noise import ScoreNoise
from targetdp.typing import Floats

TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Multiples of ε that are offered."""

COARSE = 1e-2
"""Steps that are fine enough to count errors on."""


@dataclass(frozen=True, eq=False)
class Offer:
    """A second round with this guarantee: its mechanism, the weights for it, and what they would achieve.

    The guarantee is the one that was asked for, unless no sampler keeps that (a δ below 2⁻⁹⁰).
    """

    guarantee: Guarantee
    mechanism: str
    weights: Weights
    expectation: Expectation = field(repr=False)

    @property
    def w(self) -> Floats:
        """The direction."""
        return self.weights.w


def offer(
    sample: LabelledSample,
    second: Guarantee,
    rng: np.random.Generator,
    *,
    confidence: float = CONFIDENCE,
    redrawn: int = REDRAWN,
) -> Offer:
    """The least noise on one score for a guarantee, and the weights that know it."""
    choice = least_noise(second, 1)
    noise = ScoreNoise.of(choice.mechanism.law(1), COARSE)
    weights = sample.learn(noise.variance)
    found = expect(
        sample.program, weights, noise, rng, law=sample.law, confidence=confidence, redrawn=redrawn
    )
    kept = choice.mechanism.guarantee
    return Offer(second if kept.is_at_least(second) else kept, choice.name, weights, found)


def offers(
    sample: LabelledSample, second: Guarantee, rng: np.random.Generator, times: Sequence[float] = TIMES
) -> tuple[Offer, ...]:
    """The same with multiples of its ε, as far as there is noise for them; no intervals."""
    asked = (Guarantee(second.B, second.epsilon * by, second.delta) for by in times)
    return tuple(
        offer(sample, one, rng, redrawn=0) for one in asked
        if SMALLEST_EPSILON <= one.epsilon <= LARGEST_EPSILON
    )  # fmt: skip

"""Rows of a sample, then a score of everybody else: the noise on both, and what a program makes of them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from targetdp._core import Floats
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import NoiseMechanism, Scores, least_noise
from targetdp.programs import Folds, Program, ScoredProgram, Truths
from targetdp.targeting._learn import FEWEST, Weights, learn
from targetdp.targeting._reading import chances_of_scores
from targetdp.targeting._score_noise import ScoreNoise

# A program for some of its people: those of the sample, or those who are scored.


def part_of(program: Program, who: Truths, *, whole: bool = False) -> ScoredProgram:
    """The same program for the people of ``who``: its quota, threshold, groups and money.

    They stand for their share of the population or, with ``whole``, for all of it. A quota holds once among
    them, whatever the program's rule: they are decided about together.
    """
    places = np.flatnonzero(check_mask(who, program.people.count))
    if not len(places):
        raise ValueError("who holds nobody: a program needs people")
    people = program.people
    share = 1.0 if whole else float(people.weights[places].sum() / people.weights.sum())
    return check_scored(program).part(places, people.population * share)


def check_mask(who: Any, count: int) -> Truths:
    """True or false for each person."""
    mask = np.asarray(who)
    if mask.dtype != np.bool_ or mask.shape != (count,):
        raise ValueError(
            f"who has shape {mask.shape} and type {mask.dtype}: give true or false for each of the {count:,}"
        )
    return mask


FEWEST_TO_DECIDE = 2 * FEWEST
"""People below whom scores are not tried for a program: only a part of them can be learned from."""


@dataclass(frozen=True, eq=False)
class SampleAndScores:
    """The least noise on all columns of a sample, and on one score of everybody else.

    ``row_mechanism`` makes the sample's release, ``score_mechanism`` the score release; ``score_noise`` is
    the noise of the latter on a grid.
    """

    dimensions: int
    row_mechanism: NoiseMechanism
    score_mechanism: NoiseMechanism
    score_noise: ScoreNoise = field(repr=False)

    @classmethod
    def of(cls, sample: Guarantee, scores: Guarantee, dimensions: int) -> "SampleAndScores":
        """The least noise for the sample's guarantee, and for that of the scores."""
        quiet = least_noise(scores, 1).mechanism
        return cls(dimensions, least_noise(sample, dimensions).mechanism, quiet, ScoreNoise.of(quiet.law(1)))

    @property
    def noises(self) -> tuple[NoiseMechanism, NoiseMechanism]:
        """What is added to a row of so many columns: in the sample, and outside it, whatever the weights."""
        return self.row_mechanism, Scores(np.eye(1, self.dimensions), self.score_mechanism)

    def learn(self, Z: Floats, labelled: ScoredProgram) -> Weights:
        """Weights from private rows and the outcomes of the same people."""
        return learn(
            Z,
            labelled.outcomes,
            self.row_mechanism.noise_covariance(self.dimensions),
            self.score_noise.variance,
            task=labelled.task,
            weights=labelled.people.weights if labelled.people.weighted else None,
        )

    def release(self, X: Floats, learned: Weights, rng: np.random.Generator) -> Floats:
        """Everybody's private score, simulated."""
        return Scores(learned.w, self.score_mechanism).privatize(X, rng)[:, 0]

    def read(self, scores: Floats, learned: Weights, labelled: ScoredProgram) -> Floats:
        """Chances to be poor, or to repay, of people with these released scores."""
        return chances_of_scores(scores, self.score_noise, learned, labelled.line())

    def predict(
        self, program: Program, X: Floats, Z: Floats, folds: Folds, rng: np.random.Generator
    ) -> Floats:
        """Everybody's prediction as the program judges it, by weights that were learned without her part.

        Nearly everybody is outside the sample, so that is what is asked about: each part in turn is scored,
        and the others are the sample. ``Z`` are the private rows of all, of which those of a part that is
        scored are not looked at.
        """
        chances = np.empty(len(X))
        for _, scored in folds:
            sample = np.ones(len(X), dtype=bool)
            sample[scored] = False
            labelled = part_of(program, sample)
            learned = self.learn(Z[sample], labelled)
            chances[scored] = self.read(self.release(X[scored], learned, rng), learned, labelled)
        return check_scored(program).as_scores(chances)


def check_scored(program: Program) -> ScoredProgram:
    """The program, if it can decide by released scores."""
    if not isinstance(program, ScoredProgram):
        raise TypeError(f"program = {program!r} is neither aid nor lending: scores are made for these")
    return program

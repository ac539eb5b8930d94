"""Rows of a sample, then one private bit of everybody else: the question that is learned, and the answers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from targetdp._core import Floats
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import Decision, DecisionLaw, NoiseLaw, NoiseMechanism, least_noise
from targetdp.programs import Folds, Program, ScoredProgram
from targetdp.release import AskedDecision, SimulatedAnswers, simulate_answers
from targetdp.targeting._denoise import ScoreNoise
from targetdp.targeting._expect import COARSE
from targetdp.targeting._learn import LearnedWeights, decision_ridge, learn_for
from targetdp.targeting._sample_and_scores import check_scored, given_score, part_of
from targetdp.targeting._share import best_share_of

_CLASSIC = 2.0
_LONG = 500
"""Steps of the grid for a deviation of the rows' noise, at most."""
_FINE = 4_001
"""Scores from −1 to 1 between which a cut is found."""
_KNOTS = np.array([0.002, *np.linspace(0.02, 0.98, 33), 0.998])
"""Shares of people at whose cuts a request says what is expected."""
_WORTH = 0.002
"""Accuracy that another share of yes than the quota must bring to be asked for."""


class _Spread(NamedTuple):
    """How people's scores are spread before any noise: ``values`` rise, ``below`` is the share up to each.

    ``wanted`` is the chance of people there to be whom the program looks for.
    """

    values: Floats
    below: Floats
    wanted: Floats


@dataclass(frozen=True, eq=False)
class SampleAndDecisions:
    """The least noise on all columns of a sample, and one private bit of everybody else: see `of`.

    Args:
        dimensions: How many columns rows have.
        row_mechanism: Makes the sample's release.
        promise: What the bits keep; their δ is 0.

    Example:
        >>> both = SampleAndDecisions.of(Guarantee(2, 4.0, 1e-4), Guarantee(2, 4.0), dimensions=10)
        >>> both.decision([1.0] * 10).guarantee
        Guarantee(B=2.0, epsilon=4.0, delta=0.0)
    """

    dimensions: int
    row_mechanism: NoiseMechanism
    promise: Guarantee

    @classmethod
    def of(cls, sample: Guarantee, decisions: Guarantee, dimensions: int) -> "SampleAndDecisions":
        """The least noise for the sample's guarantee, and bits for that of the decisions, without its δ."""
        promise = Guarantee(decisions.B, decisions.epsilon)
        return cls(dimensions, least_noise(sample, dimensions).mechanism, promise)

    def decision(self, weights: Floats | Sequence[float]) -> Decision:
        """The mechanism of bits for a score; at B = 2 its law does not depend on the score."""
        score = None if self.promise.B == _CLASSIC else weights
        return Decision(B=self.promise.B, epsilon=self.promise.epsilon, score=score)

    @property
    def noises(self) -> tuple[NoiseMechanism, Decision]:
        """What stands between a row and its release: in the sample, and outside it, whatever the weights."""
        return self.row_mechanism, self.decision(np.eye(1, self.dimensions)[0])

    def learn(self, Z: Floats, labelled: ScoredProgram) -> LearnedWeights:
        """Weights from private rows and the outcomes of the same people."""
        covariance = self.row_mechanism.noise_covariance(self.dimensions)
        ridge = decision_ridge(Z, covariance, labelled.people.fit_weights)
        return learn_for(labelled, Z, covariance, ridge)

    def question(
        self,
        learned: LearnedWeights,
        labelled: ScoredProgram,
        columns: Sequence[str] | None = None,
        *,
        name: str = "decision",
    ) -> AskedDecision:
        """What to ask about everybody else: the score, and where the cut is.

        A program with so many places asks for a share of yes, with what is expected at which cut: scores are
        spread as the sample's, of which the known noise is taken off. A program with a threshold names the
        cut: the score at which people are just likely enough to be high.

        Args:
            learned: Weights from private rows.
            labelled: The program, for the sample's people.
            columns: Names of the columns; numbered unless given.
            name: Of the column of answers.

        Returns:
            The question, for columns as the sample's rows have them.

        Guarantees: post-processing of the sample's release and of labels.
        """
        named = [f"column {j}" for j in range(self.dimensions)] if columns is None else columns
        law = self.row_mechanism.law(self.dimensions)
        return private_question(learned, labelled, law, self.decision(learned.w).law(), named, name)

    def answers(
        self, asked: AskedDecision, learned: LearnedWeights, X: Floats, rng: np.random.Generator
    ) -> SimulatedAnswers:
        """Everybody's private bit, simulated."""
        promise = self.promise
        return simulate_answers(asked, X @ learned.w, B=promise.B, epsilon=promise.epsilon, rng=rng)

    def predict(
        self, program: Program, X: Floats, Z: Floats, folds: Folds, rng: np.random.Generator
    ) -> Floats:
        """Everybody's answer as the program judges it, to a question that was learned without her part.

        Each part in turn is decided about, and the others are the sample, as in `SampleAndScores.predict`.
        Where a program has so many places, it draws lots among those who are tied: among the yes if there
        are too many, among the no if too few.
        """
        yes = np.empty(len(X))
        for _, decided in folds:
            sample = np.ones(len(X), dtype=bool)
            sample[decided] = False
            labelled = part_of(program, sample)
            learned = self.learn(Z[sample], labelled)
            yes[decided] = self.answers(self.question(learned, labelled), learned, X[decided], rng).bits
        return check_scored(program).as_scores(yes)


def private_question(
    learned: LearnedWeights, labelled: ScoredProgram, row_law: NoiseLaw, law: DecisionLaw,
    columns: Sequence[str], name: str,
) -> AskedDecision:  # fmt: skip
    """What to ask about everybody else, by weights from private rows: see `SampleAndDecisions.question`.

    Args:
        learned: The weights.
        labelled: The program, for the sample's people.
        row_law: Of the noise on their rows.
        law: The chances of answers.
        columns: Names of the columns.
        name: Of the column of answers.

    Returns:
        The question.
    """
    weights = dict(zip(columns, learned.w.tolist(), strict=True))
    spread, share = _spread_of(learned, labelled, row_law), labelled.share_chosen
    side = labelled.chosen_are
    if share is None:
        return AskedDecision(name=name, weights=weights, yes=side, cut=_threshold(spread, labelled))
    best = _best_share(spread, law, share, side)
    cuts = np.unique(np.interp(_KNOTS, spread.below, spread.values).round(6))
    at = np.interp(cuts, spread.values, spread.below)
    at = at if side == "below" else 1 - at
    expected = tuple((float(cut), float(x)) for cut, x in zip(cuts, at, strict=True))
    return AskedDecision(name=name, weights=weights, yes=side, share=best, expected=expected)


def _spread_of(learned: LearnedWeights, labelled: ScoredProgram, row_law: NoiseLaw) -> _Spread:
    """Scores of the sample's people without the noise of their rows, on a fine grid."""
    deviation = math.sqrt(learned.noise_variance)
    # Noise that drowns everything leaves nothing to see on a fine grid, and would need a long one.
    step = max(COARSE, min(deviation / _LONG, 1 / 8))
    noise = ScoreNoise.along(row_law, learned.noise_variance, step)
    counts = labelled.people.fit_weights
    chances = noise.distribution(learned.scores, noise.bell(learned.center, learned.spread), counts)
    wanted = given_score(noise.values, chances, learned, labelled.line())
    fine = np.linspace(-1.0, 1.0, _FINE)
    # What is at a value of the grid is spread evenly over the step around it.
    ends = np.concatenate([noise.values - noise.step / 2, noise.values[-1:] + noise.step / 2])
    below = np.interp(fine, ends, np.concatenate([[0.0], np.cumsum(chances)]))
    return _Spread(fine, below, np.interp(fine, noise.values, wanted))


def _threshold(spread: _Spread, labelled: ScoredProgram) -> float:
    """The score from which on people are likely enough to be high; at an end if all are, or nobody is."""
    chosen = labelled.choose(spread.wanted, np.random.default_rng(0))
    if chosen.all() or not chosen.any():
        return float(spread.values[0] if chosen.all() else spread.values[-1])
    at = int(np.argmax(chosen))
    return float(spread.values[at])


def _best_share(spread: _Spread, law: DecisionLaw, places: float, side: str) -> float:
    """The share of yes to ask for: the places themselves, unless another one is worth it."""
    shares = np.diff(spread.below, prepend=0.0)
    values, wanted = spread.values, spread.wanted
    if side == "above":
        values, shares, wanted = -values[::-1], shares[::-1], wanted[::-1]
    best = best_share_of(values, shares / shares.sum(), wanted, law, places)
    return round(best.share, 3) if best.accuracy > best.at_quota + _WORTH else places

"""Rows of a sample, then a score of everybody else: what they say about a person, and how both are simulated.

What is read off a score or a row is the chance that she is poor, or repays. Chances are one scale for
everybody, however much noise is on what is known of her. Giving aid to those with the highest chance to be
poor reaches as many poor people as the places allow. A predicted consumption would not: more noise pulls it
to the mean, and so whoever has more noise out of the poorest.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from targetdp._core import Floats, check
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LEAST_NOISE, NoiseMechanism, Scores, least_noise
from targetdp.programs import Folds, Logistic, Program, Ridge, ScoredProgram, Task, Truths, values_of
from targetdp.targeting._denoise import ScoreNoise, TargetScale
from targetdp.targeting._learn import FEWEST, LearnedWeights, learn_for

_MOST_EXPLAINED = 0.98
"""Share of a target's variance that scores are believed to explain, at most."""
_LEAST_SHARED = 0.01
"""Share of the covariance, as it was fitted, that is believed at least: people keep their order."""
_NEWTON, _STEEPEST = 50, 500.0


def chances_of_scores(
    scores: Any, noise: ScoreNoise, learned: LearnedWeights, line: float | None = None
) -> Floats:
    """The chance of each person that her target is at or below ``line`` (aid), or that she repays (lending).

    ``line`` is on the target's own scale. The distribution of scores before the noise is learned from the
    released ones. Given a score before the noise, the target is normal around a straight line, or the
    log-odds of repaying are on one, with the covariance that the private sample showed.

    Args:
        scores: Released scores.
        noise: What is on them.
        learned: The weights that they were made with.
        line: The poverty line, for aid.

    Returns:
        One chance for each score.

    Raises:
        TypeError: ``line`` is missing where it is needed.

    Guarantees: post-processing of both releases.

    Example:
        >>> from targetdp.targeting import learn
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.uniform(-0.5, 0.5, (500, 2))
        >>> learned = learn(rows, rows[:, 0], np.zeros((2, 2)), score_variance=0.01)
        >>> noise = ScoreNoise.normal(0.01, step=0.01)
        >>> poor, rich = chances_of_scores([-0.4, 0.4], noise, learned, line=-0.2)
        >>> bool(poor > 0.5 > rich)
        True
    """
    seen = values_of("scores", scores)
    chances = noise.distribution(seen, noise.bell(learned.center, learned.spread))
    return noise.expected(seen, chances, given_score(noise.values, chances, learned, line))


def given_score(values: Floats, chances: Floats, learned: LearnedWeights, line: float | None) -> Floats:
    mean = float(chances @ values)
    if learned.task == "classification":
        return _repaying(values, chances, learned.target_mean, learned.believed)
    moments = (learned.believed, float(chances @ np.square(values - mean)), learned.target_variance)
    return _at_or_below(values - mean, learned, line, learned.target_mean, moments)


def _at_or_below(
    far: Floats, learned: LearnedWeights, line: float | None, mean: float, moments: tuple[float, float, float]
) -> Floats:
    """Chances that a target is at or below the line, it being normal around a straight line of predictions.

    ``far`` is how far predictions are from their mean, ``mean`` that of the target. The moments are their
    covariance, and the variance of either: first of predictions, then of the target.
    """
    bent = float(learned.scale.of(np.array([check.number("line", line)]))[0])
    covariance, spread, variance = moments
    slope = _slope(covariance, spread, variance)
    return np.asarray(ndtr((bent - mean - slope * far) / math.sqrt(variance - slope**2 * spread)))


def _slope(covariance: float, spread: float, variance: float) -> float:
    """Of the target on a score; never 0, so that people keep their order where nothing was learned."""
    most = math.sqrt(_MOST_EXPLAINED * variance / max(spread, 1e-12))
    return min(max(covariance / max(spread, 1e-12), _LEAST_SHARED * most), most)


def _repaying(values: Floats, chances: Floats, share: float, covariance: float) -> Floats:
    """Chances on a logistic curve with this share of people who repay and this covariance with scores.

    These are the equations of a logistic regression, solved by Newton's method.
    """
    mean = float(chances @ values)
    if covariance <= 0:
        return np.full(len(values), share)
    order = np.cumsum(chances)
    perfect = float(chances @ ((values - mean) * (order > 1 - share)))
    wanted = np.array([share, min(covariance, _MOST_EXPLAINED * perfect) + share * mean])
    both = np.stack([np.ones(len(values)), values])
    curve = np.array([math.log(share / (1 - share)), 0.0])
    for _ in range(_NEWTON):
        p = expit(curve @ both)
        hessian = (both * (chances * p * (1 - p))) @ both.T + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, wanted - both @ (chances * p))
        step *= min(1.0, 4.0 / max(float(np.abs(step @ both).max()), 1e-300))
        curve = curve + step
        if float(np.abs(step).max()) < 1e-9 or abs(curve[1]) > _STEEPEST:
            break
    return expit(curve @ both)


def chances_of_rows(
    Z: Floats, y: Floats, learned: LearnedWeights, folds: Folds, line: float | None = None,
    weights: Floats | None = None, unlabelled: Floats | None = None,
) -> Floats:  # fmt: skip
    """The same for people of the sample, from their private rows: each by a model fitted without her.

    Rows have labels, so nothing need be known about their noise: it is in the residuals. Repaying is a
    logistic regression; a target's chance to be at or below ``line`` is that of a normal one around its
    prediction. Behind them come people whose rows are ``unlabelled``: by a model of all who have a label, and
    how far to trust it is taken from those, too.
    """
    rest = np.empty((0, Z.shape[1])) if unlabelled is None else unlabelled
    ours, theirs = predict_rows(Z, y, rest, learned.scale, learned.task, folds, weights)
    predicted = np.concatenate([ours, theirs])
    if learned.task == "classification":
        return predicted
    target = learned.scale.of(y)
    shares = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    mean, middle = float(shares @ target), float(shares @ ours)
    far = ours - middle
    moments = (
        float((shares * far) @ target),
        float(shares @ far**2),
        float(shares @ np.square(target - mean)),
    )
    return _at_or_below(predicted - middle, learned, line, mean, moments)


def predict_rows(
    ours: Floats, y: Floats, theirs: Floats, scale: TargetScale, task: Task, folds: Folds,
    weights: Floats | None = None,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Predictions for people of the sample (``ours``, by cross-validation) and for all others (``theirs``).

    Aid: ridge regression (α = 1) of the target on its ``scale``; lending: logistic regression (C = 1). Rows
    may be private or not, and are taken as they are. Both groups' rows have noise of the same kind, which is
    then what such a model should be fitted to.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 (slow to import)
    from sklearn.linear_model import Ridge as AnyRidge  # noqa: PLC0415

    target = y if task == "classification" else scale.of(y)
    model = Logistic() if task == "classification" else Ridge()
    predicted = model.predict(ours, target, folds, weights)
    if not len(theirs):
        return predicted, np.empty(0)
    if task == "classification":
        fit = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-8).fit(ours, target, weights)
        return predicted, np.asarray(fit.predict_proba(theirs)[:, 1])
    return predicted, np.asarray(AnyRidge(alpha=1.0).fit(ours, target, weights).predict(theirs))


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


def check_scored(program: Program) -> ScoredProgram:
    """The program, if it can decide by released scores."""
    if not isinstance(program, ScoredProgram):
        raise TypeError(f"program = {program!r} is neither aid nor lending: scores are made for these")
    return program


# Both releases, simulated.

FEWEST_TO_DECIDE = 2 * FEWEST
"""People below whom scores are not tried for a program: only a part of them can be learned from."""


@dataclass(frozen=True, eq=False)
class SampleAndScores:
    """The least noise on all columns of a sample, and on one score of everybody else: see `of`.

    Args:
        dimensions: How many columns rows have.
        row_mechanism: Makes the sample's release.
        score_mechanism: Makes the score release.
        score_noise: The noise of the latter on a grid.

    Example:
        >>> from targetdp.guarantee import Guarantee
        >>> both = SampleAndScores.of(Guarantee(0.25, 4.0), Guarantee(0.25, 4.0), dimensions=10)
        >>> both.score_noise.deviation < both.row_mechanism.law(10).deviation_per_column
        True
    """

    dimensions: int
    row_mechanism: NoiseMechanism
    score_mechanism: NoiseMechanism
    score_noise: ScoreNoise = field(repr=False)

    @classmethod
    def of(
        cls, sample: Guarantee, scores: Guarantee, dimensions: int, *, mechanism: str = LEAST_NOISE
    ) -> "SampleAndScores":
        """The least noise for the sample's guarantee, and for that of the scores, or a named one's."""
        choice = least_noise(scores, 1)
        noise = choice.possible[choice.name if mechanism == LEAST_NOISE else mechanism]
        return cls(dimensions, least_noise(sample, dimensions).mechanism, noise, ScoreNoise.of(noise.law(1)))

    @property
    def noises(self) -> tuple[NoiseMechanism, NoiseMechanism]:
        """What is added to a row of so many columns: in the sample, and outside it, whatever the weights."""
        return self.row_mechanism, Scores(np.eye(1, self.dimensions), self.score_mechanism)

    def learn(self, Z: Floats, labelled: ScoredProgram) -> LearnedWeights:
        """Weights from private rows and the outcomes of the same people."""
        covariance = self.row_mechanism.noise_covariance(self.dimensions)
        return learn_for(labelled, Z, covariance, self.score_noise.variance)

    def release(self, X: Floats, learned: LearnedWeights, rng: np.random.Generator) -> Floats:
        """Everybody's private score, simulated."""
        return Scores(learned.w, self.score_mechanism).privatize(X, rng)[:, 0]

    def read(self, scores: Floats, learned: LearnedWeights, labelled: ScoredProgram) -> Floats:
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

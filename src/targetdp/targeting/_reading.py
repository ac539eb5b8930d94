"""What a private score, or a private row, says about a person: the chance that she is poor, or repays.

Chances are one scale for everybody, however much noise is on what is known of her. Giving aid to those with
the highest chance to be poor reaches as many poor people as the places allow. A predicted consumption would
not: more noise pulls it to the mean, and so whoever has more noise out of the poorest.
"""

import math
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from targetdp._core import Floats, check
from targetdp.programs import Folds, Logistic, Ridge, Task, values_of
from targetdp.targeting._learn import Weights
from targetdp.targeting._score_noise import ScoreNoise
from targetdp.targeting._signal import TargetScale

_MOST_EXPLAINED = 0.98
"""Share of a target's variance that scores are believed to explain, at most."""
_LEAST_SHARED = 0.01
"""Share of the covariance, as it was fitted, that is believed at least: people keep their order."""
_NEWTON, _STEEPEST = 50, 500.0


def chances_of_scores(scores: Any, noise: ScoreNoise, learned: Weights, line: float | None = None) -> Floats:
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

    Guarantees: post-processing of both releases.
    """
    seen = values_of("scores", scores)
    chances = noise.distribution(seen, noise.bell(learned.center, learned.spread))
    return noise.expected(seen, chances, _given_score(noise.values, chances, learned, line))


def _given_score(values: Floats, chances: Floats, learned: Weights, line: float | None) -> Floats:
    mean = float(chances @ values)
    spread = float(chances @ np.square(values - mean))
    if learned.task == "classification":
        return _repaying(values, chances, learned.target_mean, learned.believed)
    below = check.number("line", line)
    bent = float(learned.scale.of(np.array([below]))[0])
    slope = _slope(learned.believed, spread, learned.target_variance)
    rest = learned.target_variance - slope**2 * spread
    return ndtr((bent - learned.target_mean - slope * (values - mean)) / math.sqrt(rest))


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
    asked = np.array([share, min(covariance, _MOST_EXPLAINED * perfect) + share * mean])
    both = np.stack([np.ones(len(values)), values])
    curve = np.array([math.log(share / (1 - share)), 0.0])
    for _ in range(_NEWTON):
        p = expit(curve @ both)
        hessian = (both * (chances * p * (1 - p))) @ both.T + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, asked - both @ (chances * p))
        step *= min(1.0, 4.0 / max(float(np.abs(step @ both).max()), 1e-300))
        curve = curve + step
        if float(np.abs(step).max()) < 1e-9 or abs(curve[1]) > _STEEPEST:
            break
    return expit(curve @ both)


def chances_of_rows(
    Z: Floats,
    y: Floats,
    learned: Weights,
    folds: Folds,
    line: float | None = None,
    weights: Floats | None = None,
) -> Floats:
    """The same for people of the sample, from their private rows: each by a model fitted without her.

    Rows have labels, so nothing need be known about their noise: it is in the residuals. Repaying is a
    logistic regression; a target's chance to be at or below ``line`` is that of a normal one around its
    prediction.
    """
    if learned.task == "classification":
        return Logistic().predict(Z, y, folds, weights)
    predicted = Ridge().predict(Z, learned.scale.of(y), folds, weights)
    return _at_or_below(predicted, predicted, y, learned, line, weights)


def chances_of_unlabelled(
    rows: Floats,
    Z: Floats,
    y: Floats,
    learned: Weights,
    folds: Folds,
    line: float | None = None,
    weights: Floats | None = None,
) -> Floats:
    """The same for people whose private ``rows`` have no label: by a model of all who have one.

    How far to trust it is taken from those who have a label, each predicted without her.
    """
    ours, theirs = predict_rows(Z, y, rows, learned.scale, learned.task, folds, weights)
    if learned.task == "classification":
        return theirs
    return _at_or_below(theirs, ours, y, learned, line, weights)


def _at_or_below(
    predicted: Floats, ours: Floats, y: Floats, learned: Weights, line: float | None, weights: Floats | None
) -> Floats:
    """Chances that a target is at or below the line, where ``ours`` are predictions of those with label y."""
    target = learned.scale.of(y)
    shares = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    mean, middle = float(shares @ target), float(shares @ ours)
    far = ours - middle
    spread, variance = float(shares @ far**2), float(shares @ np.square(target - mean))
    slope = _slope(float((shares * far) @ target), spread, variance)
    rest = variance - slope**2 * spread
    bent = float(learned.scale.of(np.array([check.number("line", line)]))[0])
    return np.asarray(ndtr((bent - mean - slope * (predicted - middle)) / math.sqrt(rest)))


def predict_rows(
    ours: Floats,
    y: Floats,
    theirs: Floats,
    scale: TargetScale,
    task: Task,
    folds: Folds,
    weights: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Predictions for people of the sample (``ours``, by cross-validation) and for all others (``theirs``).

    Aid: ridge regression (α = 1) of the target on its ``scale``; lending: logistic regression (C = 1). Rows
    may be private or not, and are taken as they are. Both groups' rows have noise of the same kind, which is
    then what such a model should be fitted to.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 (slow to import)
    from sklearn.linear_model import Ridge as AnyRidge  # noqa: PLC0415

    if task == "classification":
        fit = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-8).fit(ours, y, weights)
        return Logistic().predict(ours, y, folds, weights), np.asarray(fit.predict_proba(theirs)[:, 1])
    target = scale.of(y)
    others = AnyRidge(alpha=1.0).fit(ours, target, weights).predict(theirs)
    return Ridge().predict(ours, target, folds, weights), np.asarray(others)

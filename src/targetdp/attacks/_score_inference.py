"""Attribute inference by somebody who knows whose released values are whose, and what people are like.

The paper's adversary looks for the released row that resembles a person. Ids are released, though: whoever
knows a person's id has that person's row, or score, without a search. This one also knows the law of the
noise, the weights of scores, and what people are like in general; and guesses a value by the best linear
prediction from the known columns and the released values, by the likeliest of a column's few values, or by
the likelier sign where the size follows from the row's length. It meets scores and whole rows alike, so that
the two can be compared.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from targetdp._core import Progress, Silent, check
from targetdp.attacks._attribute_inference import known_counts, searches
from targetdp.attacks._guess._failed_guesses import column_names
from targetdp.attacks._guess._informed_guesses import Attacked
from targetdp.attacks._guess._linear_guess import Shown
from targetdp.attacks._match._known_density import Noise
from targetdp.attacks._protection import CONFIDENCE, Protection
from targetdp.mechanisms import norm_bound, weights_matrix

_TOO_LONG = 1 + 1e-6
"""Norm of weights above which they are not those of a release; up to it, rounding."""


def score_inference(
    X: Any,
    scores: Any,
    weights: Any,
    noise: Noise | None,
    holdout: Any = None,
    *,
    known: Sequence[int] | None = None,
    draws: int = 1,
    tolerance: float = 0.05,
    people: int | None = None,
    columns: Sequence[str] | None = None,
    population: Any = None,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Protection:
    """Attribute inference protection of released scores, from an adversary who lacks nothing but the secret.

    Row i of ``scores`` (n×m, or n numbers) is ``weights``·x + noise for row i of ``X``, rows of the unit ball
    as the mechanism saw them. ``weights`` (m×d) are those that were used, of norm at most 1; ``noise`` is the
    law or mechanism of the noise on the scores (or of the whole: `LinearLaw`, `Scores`), None if there is
    none. ``population`` are rows from which the adversary knows what people are like in general (mean,
    covariance, the commonest value of each column): by default X itself, the very people who are attacked,
    which is as well informed as can be. ``people`` attacks a random sample of so many of X.

    For each number h of ``known`` columns and each column as the secret (drawn as in `attribute_inference`)
    p is the share of people for whom the guess fails, by the same rule. The score of a setting is p with the
    scores, for people in the release, relative to p of the control: guesses without any score, at people of
    the release and the holdout together. Without a holdout it is p itself. The worst column and h count.

    Guesses with the scores are the best linear prediction from the known columns and the scores; that
    prediction drawn outward, as is best for a relative tolerance (`Belief.guesses`); the likeliest of the
    column's common values, where it has several (each 1% of ``population`` and 5 people at least, the 16
    commonest); and, where all other columns are known and rows of length 1 are common in ``population`` (1%;
    clipping makes them), the likelier of the two values with which the row has length 1. Guesses without are
    the same four, and the value that is right for most people. With all other columns known the last two
    go by the noise's exact density. For people in the release all nine compete, so that the attack never does
    worse for having scores; of the five the control is the one that is best for people in the release.

    ``detail``: for each setting ``p_release`` and ``p_control``, whose ratio it is; ``p_without`` and
    ``p_holdout``, the control's share among people in the release and outside it; ``guess``, the strongest.

    Does not guarantee: that no cleverer guess exists (an upper bound on protection): people are not normally
    distributed, and clipped columns keep some ratios that are not used. See `attribute_inference` for
    intervals and edges.
    """
    rows = check.table(X)
    matrix = weights_matrix(weights)
    if matrix.shape[1] != rows.shape[1]:
        raise ValueError(f"weights are for {matrix.shape[1]} columns, X has {rows.shape[1]}: they must agree")
    if norm_bound(matrix) > _TOO_LONG:
        raise ValueError(
            f"weights have norm {norm_bound(matrix):.4g}, above 1: give those that made the scores, as the "
            "certificate has them (Scores(weights, noise).weights)"
        )
    one_each = len(matrix) == 1 and np.ndim(scores) == 1
    shown = Shown.of(matrix, noise, rows.shape[1])
    attacked = Attacked.of(
        rows, np.reshape(scores, (-1, 1)) if one_each else scores, "scores", shown, holdout, population,
        tolerance,
    )  # fmt: skip
    return _attack(attacked, known, draws, people, columns, confidence, rng, progress)


def row_inference(
    X: Any,
    X_priv: Any,
    noise: Noise | None,
    holdout: Any = None,
    *,
    known: Sequence[int] | None = None,
    draws: int = 1,
    tolerance: float = 0.05,
    people: int | None = None,
    columns: Sequence[str] | None = None,
    population: Any = None,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Protection:
    """Attribute inference protection of released rows, from the adversary of `score_inference`.

    Row i of ``X_priv`` is the private version of row i of ``X``, rows of the unit ball as the mechanism saw
    them, and the adversary knows that it is. Everything else is as in `score_inference`, so that a release of
    rows and one of scores are held against equally strong adversaries.

    Does not guarantee: that no cleverer guess exists (an upper bound on protection). Spherical Laplace noise
    is louder on some rows than on others, and known columns tell how loud; using that changed the mean
    share of failures by less than 0.003.
    """
    rows = check.table(X)
    shown = Shown.of(None, noise, rows.shape[1])
    attacked = Attacked.of(rows, X_priv, "X_priv", shown, holdout, population, tolerance)
    return _attack(attacked, known, draws, people, columns, confidence, rng, progress)


def _attack(
    attacked: Attacked, known: Any, draws: Any, people: Any, columns: Any, confidence: Any, rng: Any,
    progress: Progress | None,
) -> Protection:  # fmt: skip
    """Check what both attacks share, and run it."""
    n, d = attacked.rows.shape
    counts, names = known_counts(known, d), column_names(columns, d)
    draws = check.integer("draws", draws, at_least=1)
    confidence = check.number("confidence", confidence, above=0, below=1)
    chance = check.generator(rng) or np.random.default_rng()
    if people is not None:
        people = check.integer("people", people, at_least=1, at_most=n)
        sample = np.sort(chance.choice(n, people, replace=False))
        attacked = replace(attacked, rows=attacked.rows[sample], released=attacked.released[sample])
    plan = {h: searches(d, h, draws, chance) for h in counts}
    return attacked.protection(plan, names, draws, confidence, progress or Silent())

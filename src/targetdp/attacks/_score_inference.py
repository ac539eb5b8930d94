"""Attribute inference by somebody who knows whose released values are whose, and what people are like.

The paper's adversary looks for the released row that resembles a person. Ids are released, though: whoever
knows a person's id has that person's row, or score, without a search. This one also knows the law of the
noise, the weights of scores, and what people are like in general; and guesses a value by the best linear
prediction from the known columns and the released values, by the likeliest of a column's few values, or by
the likelier sign where the size follows from the row's length. It meets scores and whole rows alike, so that
the two can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from targetdp._core import Floats, Progress, check
from targetdp.attacks._declaration import INFERENCE, Answer, attack, failed_guesses
from targetdp.attacks._guess._informed_guesses import InformedAttack
from targetdp.attacks._guess._observation import Observation
from targetdp.attacks._match._known_noise import Noise
from targetdp.attacks._protection import CONFIDENCE, Protection
from targetdp.mechanisms import norm_bound, weights_matrix

_TOO_LONG = 1 + 1e-6
"""Norm of weights above which they are not those of a release; up to it, rounding."""


@dataclass(frozen=True)
class ReleasedValues:
    """What a release shows of people's rows.

    Args:
        values: Row i is the private version of row i of the original, or (with ``weights``) its scores.
        noise: The mechanism or law of the noise; None to take values as they are.
        weights: Those that made the scores, one row for each score, of norm at most 1; None for whole rows.

    Example:
        >>> ReleasedValues(np.array([[0.3], [0.5]]), weights=[[0.6, 0.8]]).observation(2).map
        array([[0.6, 0.8]])
    """

    values: Any = field(repr=False)
    noise: Noise | None = None
    weights: Any = None

    def observation(self, columns: int) -> Observation:
        """The values as a linear map of a row of so many columns, and noise."""
        return Observation.of(self._matrix(columns), self.noise, columns)

    def table(self, name: str) -> Floats:
        """The values as a table; one score for each person may come without columns."""
        single = self.weights is not None and np.ndim(self.values) == 1
        return check.table(np.reshape(self.values, (-1, 1)) if single else self.values, name)

    def _matrix(self, columns: int) -> Floats | None:
        if self.weights is None:
            return None
        matrix = weights_matrix(self.weights)
        if matrix.shape[1] != columns:
            raise ValueError(f"weights are for {matrix.shape[1]} columns, X has {columns}: they must agree")
        if norm_bound(matrix) > _TOO_LONG:
            raise ValueError(
                f"weights have norm {norm_bound(matrix):.4g}, above 1: give those that made the scores, as "
                "the certificate has them (Scores(weights, noise).weights)"
            )
        return matrix


_NOT_REACHED = (
    "Cleverer guesses, guesses from several tables together, and what is true of the whole population: that "
    "can be learned about people who are not in the table."
)


def _headline(p: Protection) -> str:
    return failed_guesses(p, "with what was released as without it")


@attack(
    answers=Answer(
        criteria=(INFERENCE,),
        adversary="Knows whose score is whose, the weights, the law of the noise, some columns of each "
        "person exactly, and what people are like in general.",
        reaches="Whether guesses at a missing value from the known columns and the score (linear, among "
        "a column's few values, or of the sign where the size follows from the others) are right more "
        "often than the same guesses without any score.",
        does_not_reach=_NOT_REACHED,
    ),
    headline=_headline,
    ids="used",
)
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

    For each number h of known columns and each column as the secret (drawn as in `attribute_inference`)
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

    Args:
        X: Rows of the unit ball, as the mechanism saw them.
        scores: Row i (or number i) is ``weights``·x + noise for row i of X.
        weights: Those that were used, one row for each score, of norm at most 1.
        noise: The law or mechanism of the noise on the scores (or of the whole: `LinearLaw`, `Scores`); None
            if there is none.
        holdout: People who are not in the release.
        known: Numbers of known columns; by default 1, ⌈d/2⌉ and d-1.
        draws: How often known columns are drawn.
        tolerance: Relative error up to which a guess is right.
        people: Attack a random sample of so many of X.
        columns: Names of the columns, for the settings.
        population: Rows from which the adversary knows what people are like in general (mean, covariance,
            the commonest values of each column): by default X itself, the very people who are attacked, which
            is as well informed as can be.
        confidence: Of the intervals.
        rng: Randomness of the attack; fresh unless given.
        progress: Is told how far the attack is.

    Returns:
        Protection, an upper bound. ``detail`` has for each setting ``p_release`` and ``p_control``, whose
        ratio it is; ``p_without`` and ``p_holdout``, the control's share among people in the release and
        outside it; ``guess``, the strongest.

    Raises:
        TypeError: ``noise`` is neither a mechanism nor a law.
        ValueError: Tables do not fit each other or lie outside the unit ball, or weights have a norm above 1.

    Does not guarantee: that no cleverer guess exists (an upper bound on protection): people are not normally
    distributed, and clipped columns keep some ratios that are not used. See `attribute_inference` for
    intervals and edges.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(1).uniform(-0.5, 0.5, size=(200, 3))
        >>> weights = np.array([[0.6, 0.8, 0.0]])
        >>> exact = X @ weights.T
        >>> result = score_inference(X[:150], exact[:150], weights, None, X[150:], known=[2])
        >>> result.score, result.detail["p_release"][result.strongest]  # without noise nothing is safe
        (0.0, 0.0)
    """
    rows = check.table(X)
    shown = ReleasedValues(scores, noise, weights)
    observation = shown.observation(rows.shape[1])
    informed = InformedAttack.of(
        rows, shown.table("scores"), "scores", observation, holdout, population, tolerance
    )
    return informed.run(known, draws, people, columns, confidence, rng, progress)


@attack(
    answers=Answer(
        criteria=(INFERENCE,),
        adversary="Knows whose row is whose, the law of the noise, some columns of each person exactly, "
        "and what people are like in general.",
        reaches="Whether guesses at a missing value from the known columns and the released row (linear, "
        "among a column's few values, or of the sign where the size follows from the others) are right "
        "more often than the same guesses without any row.",
        does_not_reach=_NOT_REACHED,
    ),
    headline=_headline,
    ids="used",
)
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

    The adversary knows which released row is whose. Everything else is as in `score_inference`, so that a
    release of rows and one of scores are held against equally strong adversaries.

    Args:
        X: Rows of the unit ball, as the mechanism saw them.
        X_priv: Row i is the private version of row i of X.
        noise: The mechanism that made the release, or its law; None if there is no noise.
        holdout: People who are not in the release.
        known: Numbers of known columns; by default 1, ⌈d/2⌉ and d-1.
        draws: How often known columns are drawn.
        tolerance: Relative error up to which a guess is right.
        people: Attack a random sample of so many of X.
        columns: Names of the columns, for the settings.
        population: Rows from which the adversary knows what people are like in general; by default X.
        confidence: Of the intervals.
        rng: Randomness of the attack; fresh unless given.
        progress: Is told how far the attack is.

    Returns:
        Protection, an upper bound, with the detail of `score_inference`.

    Raises:
        TypeError: ``noise`` is neither a mechanism nor a law.
        ValueError: Tables do not fit each other or lie outside the unit ball.

    Does not guarantee: that no cleverer guess exists (an upper bound on protection). Spherical Laplace noise
    is louder on some rows than on others, and known columns tell how loud; using that changed the mean
    share of failures by less than 0.003.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(1).uniform(-0.5, 0.5, size=(200, 3))
        >>> row_inference(X[:150], X[:150], None, X[150:]).score  # without noise nothing is safe
        0.0
    """
    rows = check.table(X)
    observation = Observation.of(None, noise, rows.shape[1])
    informed = InformedAttack.of(rows, X_priv, "X_priv", observation, holdout, population, tolerance)
    return informed.run(known, draws, people, columns, confidence, rng, progress)

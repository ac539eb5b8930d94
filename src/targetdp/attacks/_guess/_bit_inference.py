"""Attribute inference from a drawn answer, by somebody who knows whose it is and what was asked.

Answers are released beside ids: whoever knows a person's id has her yes or no. The certificate tells the
question, every cut that people were held against, and the law that answers were drawn by. So an insider who
knows all columns of her but one knows with which chance each value of the last one would have given this
answer, and that is all that the answer tells.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from targetdp._core import Progress, check
from targetdp.attacks._declaration import INFERENCE, Answer, attack, failed_guesses
from targetdp.attacks._guess._bit_guesses import BitAttack, BitQuestion
from targetdp.attacks._protection import CONFIDENCE, Protection
from targetdp.mechanisms import DecisionLaw


def _headline(p: Protection) -> str:
    return f"An insider knows whose answer it is. {failed_guesses(p, 'with the answer as without it')}"


@attack(
    answers=Answer(
        criteria=(INFERENCE,),
        adversary="Knows whose answer is whose, the question, the cut that each person was held against, "
        "the law that answers were drawn by, some columns of each person exactly (all but one, at most), and "
        "what people are like in general.",
        reaches="Whether guesses at a missing value from the known columns and the drawn answer (by Bayes' "
        "rule among values that people like her have) are right more often than the same guesses without "
        "any answer.",
        does_not_reach="What follows from answers to other questions or at another time, from an appeal, "
        "or from better knowledge of what people are like; and what is true of the whole population: that "
        "can be learned about people who are not in the table.",
    ),
    headline=_headline,
    ids="used",
)
def bit_inference(
    X: Any,
    bits: Any,
    questions: BitQuestion | Sequence[BitQuestion],
    law: DecisionLaw,
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
    """Attribute inference protection of drawn answers, from the adversary of `score_inference`.

    Known columns, tolerance, the control and the scale are those of `score_inference`, so that a release of
    decisions is held against as strong an adversary as one of rows or scores. The guesses differ, since an
    answer is no linear map of a row. Candidates for what is not known are what the known columns predict and
    the differences from it that people at large have. Each is weighed by the chance that its row, put through
    the question, would have been answered so. Guesses are the candidates' mean; the mean drawn outward; the
    middle of the stretch that is right for the largest weight of them; the likeliest of a column's common
    values; and the likelier of the two values with which a row has length 1, where such rows are common. All
    five compete with the same five without any answer and with the commonest value.

    Args:
        X: Rows as the question is about them: in the unit ball below B = 2, columns as they are at B = 2.
        bits: Row i (or number i) is the drawn answer for row i of X, true for a yes; a column for each
            decision.
        questions: What was asked, one for each decision.
        law: That answers were drawn by: `Decision(…).law()`.
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
        TypeError: ``bits`` are no booleans, or a question or the law is of another kind.
        ValueError: Tables do not fit each other, or there are not as many questions as decisions.

    Guarantees: with all columns but one known the weights are the chances by which answers were drawn: with
    the candidates' distribution as the prior, no use of the answer is left out.
    Does not guarantee: that no cleverer guess exists (an upper bound on protection): people who know more of
    others have a sharper prior. The guarantee bounds them all (`distinguishing`).
    Edges: of weighted sums 256 candidates are taken, of other functions 48.

    Example:
        >>> from targetdp.mechanisms import Decision
        >>> X = np.random.default_rng(1).choice([-0.5, 0.5], size=(400, 2))
        >>> true, law = X[:, 1] <= 0, Decision(B=2, epsilon=100).law()
        >>> bit_inference(X[:300], true[:300], BitQuestion([0.0, 1.0]), law, X[300:]).score
        0.0
        >>> coin = np.random.default_rng(2).random(300) < 0.5
        >>> nothing = Decision(B=2, epsilon=0.001).law()
        >>> bit_inference(X[:300], coin, BitQuestion([0.0, 1.0]), nothing, X[300:]).score > 0.95
        True
    """
    rows = check.table(X)
    check.instance("law", law, DecisionLaw)
    single = isinstance(questions, BitQuestion)
    asked = (questions,) if single else tuple(check.several("questions", questions, "give what was asked"))
    for place, one in enumerate(asked):
        check.instance(f"questions[{place}]", one, BitQuestion)
    given = np.asarray(bits)
    if given.dtype != np.bool_:
        raise TypeError(f"bits of type {given.dtype} must be booleans: True is yes")
    answers = given[:, None] if given.ndim == 1 else given
    if answers.shape != (len(rows), len(asked)) or len(asked) != law.programs:
        raise ValueError(
            f"bits has shape {given.shape}, and there are {len(rows):,} people, {len(asked)} questions and a "
            f"law of {law.programs} decisions: give a row for each person and a column for each decision"
        )
    for place, one in enumerate(asked):
        if one.cuts.ndim and len(one.cuts) != len(rows):
            raise ValueError(f"questions[{place}] has {len(one.cuts):,} cuts: X has {len(rows):,} people")
        if one.weights is not None and len(one.weights) != rows.shape[1]:
            raise ValueError(
                f"questions[{place}] has {len(one.weights)} weights: X has {rows.shape[1]} columns"
            )
    informed = BitAttack.against(rows, answers, asked, law, holdout, population, tolerance)
    return informed.run(known, draws, people, columns, confidence, rng, progress)

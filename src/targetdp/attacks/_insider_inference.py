"""Inference by an insider: one who knows whose row or score it is, the noise, and all columns but one.

Ids are released, so this is nobody exotic: a colleague, a neighbor, an official with another table. The
guesses are those of `row_inference` and `score_inference`, from one release or from several together.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from targetdp._core import Progress, check
from targetdp.attacks._attribute_inference import ONE_COLUMN
from targetdp.attacks._declaration import INFERENCE, Answer, Case, attack, failed_guesses
from targetdp.attacks._guess._informed_guesses import InformedAttack
from targetdp.attacks._guess._observation import JointObservation
from targetdp.attacks._match._together import AS_IT_IS, View, each_and_together, strongest_view
from targetdp.attacks._protection import CONFIDENCE, Protection
from targetdp.attacks._score_inference import ReleasedValues


def _headline(p: Protection) -> str:
    return f"An insider knows whose row or score it is. {failed_guesses(p, 'with it as without it')}"


def _on_tables(case: Case) -> Protection:
    def attacked(view: View, options: dict[str, Any]) -> Protection:
        columns = view.releases[0].rows.features
        case.require(len(columns) >= 2, ONE_COLUMN)
        rows, holdout, shown = view.rows, view.holdout, view.shown()
        # Without a certificate tables have units of their own: one factor for all changes no guess.
        if any(values.noise is None for values in shown):
            everybody = rows if holdout is None else np.concatenate([rows, holdout])
            unit = max(1.0, float(np.linalg.norm(everybody, axis=1).max()))
            rows, holdout = rows / unit, None if holdout is None else holdout / unit
            shown = tuple(replace(values, values=values.values / unit) for values in shown)
        return insider_inference(
            rows, shown, holdout, columns=columns, people=case.sample_size(len(rows)),
            **options,
        )  # fmt: skip

    return strongest_view(case, attacked, each_and_together(case))


@attack(
    place=7,
    answers=Answer(
        criteria=(INFERENCE,),
        adversary="Knows whose row or score it is, the weights of scores, the law of the noise, some columns "
        "of each person exactly (all but one, at most), and what people are like in general.",
        reaches="Whether guesses at a missing value from the known columns and what was released (linear, "
        "among a column's few values, or of the sign where the size follows from the others) are right more "
        "often than the same guesses without it.",
        does_not_reach="Cleverer guesses, tables that were not named, and what is true of the whole "
        "population: that can be learned about people who are not in the table.",
    ),
    headline=_headline,
    on_tables=_on_tables,
    ids="used",
)
def insider_inference(
    X: Any,
    shown: Sequence[ReleasedValues],
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
    """Attribute inference protection from an insider, who has one release of X or several of them.

    Of one release it is `row_inference` or `score_inference`. Several are seen together: rows and scores are
    linear in the row, with noises that are independent of each other, so that what one leaves open another
    may tell.

    Args:
        X: Rows of the unit ball, as the mechanisms saw them.
        shown: What each release shows of them, and its noise.
        holdout: People who are not in any release.
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
        TypeError: A noise is neither a mechanism nor a law.
        ValueError: Tables do not fit each other or lie outside the unit ball, or nothing is shown.

    Does not guarantee: that no cleverer guess exists (an upper bound on protection).

    Example:
        >>> from targetdp import SphericalLaplace
        >>> rng = np.random.default_rng(1)
        >>> X = rng.uniform(-0.5, 0.5, size=(600, 3))
        >>> noise = SphericalLaplace(B=0.05, epsilon=4)
        >>> one, two = (ReleasedValues(noise.privatize(X, rng), noise) for _ in range(2))
        >>> once, twice = (insider_inference(X, shown, known=[2], rng=rng) for shown in ([one], [one, two]))
        >>> twice.score < once.score
        True
    """
    rows = check.table(X)
    given = check.several("shown", shown, "give what each release shows, as ReleasedValues")
    if not given:
        raise ValueError("shown has 0 entries: give what at least one release shows")
    for place, values in enumerate(given):
        check.instance(f"shown[{place}]", values, ReleasedValues)
    observation = JointObservation.of_parts([values.observation(rows.shape[1]) for values in given])
    if any(values.noise is None for values in given):
        observation = replace(observation, note=" ".join(filter(None, (observation.note, AS_IT_IS))))
    tables = [values.table(f"shown[{place}]") for place, values in enumerate(given)]
    released = tables[0] if len(tables) == 1 else np.concatenate(tables, axis=1)
    informed = InformedAttack.of(rows, released, "shown", observation, holdout, population, tolerance)
    return informed.run(known, draws, people, columns, confidence, rng, progress)

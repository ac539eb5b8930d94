"""Decisions to ask for: the question that a sample suggests, and what its answers would achieve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np

from targetdp._core import check
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LARGEST_EPSILON, SMALLEST_EPSILON, Decision, DecisionLaw
from targetdp.programs import CONFIDENCE
from targetdp.release import AskedDecision
from targetdp.targeting._agreed._sample import CLASSIC, AgreedSample
from targetdp.targeting._agreed._tried import TriedDecision, try_decisions
from targetdp.targeting._denoise import ScoreNoise
from targetdp.targeting._drawn_answers import DrawnAnswers
from targetdp.targeting._expect import COARSE, REDRAWN, TIMES, Expectation, expect
from targetdp.targeting._fit._kinds import fit_scores, rounded, score_kinds
from targetdp.targeting._labelled import LabelledSample
from targetdp.targeting._learn import LearnedWeights, decision_ridge
from targetdp.targeting._sample_and_decisions import private_question

_FURTHER = (1.0, 2.0, 3.0)
"""By how much scores of rows that are not clipped may spread further than those of clipped ones."""


@dataclass(frozen=True, eq=False)
class DecisionPlan:
    """One bit of each person: what is asked, by which law answers are drawn, and what they would achieve.

    Args:
        guarantee: What is promised; its δ is 0.
        asked: The question.
        law: The chances of answers.
        expectation: What to expect of them.
        kind: The kind of score.
        tried: Figures of every kind of score that was tried, the best first.
        left_out: Kinds that could not be tried, and why.
        others: Figures by ε, from a quarter to four times the one that is asked for.
        file: The model's file, where the score is no list of numbers.
        weights: Those that were learned, where the sample is private.

    Example:
        >>> plan_decisions(sample, 2.0, 4.0, np.random.default_rng(0)).tried["linear"]  # doctest: +SKIP
        {'accuracy': 0.712}
    """

    guarantee: Guarantee
    asked: AskedDecision
    law: DecisionLaw
    expectation: Expectation = field(repr=False)
    kind: str
    tried: Mapping[str, Mapping[str, float]]
    left_out: Mapping[str, str]
    others: Mapping[float, Mapping[str, float]] = field(repr=False)
    file: bytes | None = field(default=None, repr=False)
    weights: LearnedWeights | None = field(default=None, repr=False)


def epsilons(epsilon: float) -> tuple[float, ...]:
    """Multiples of ε that are compared, as far as there are mechanisms for them."""
    each = (epsilon * by for by in TIMES)
    return tuple(one for one in each if SMALLEST_EPSILON <= one <= LARGEST_EPSILON)


@singledispatch
def plan_decisions(
    sample: Any,
    B: float,  # noqa: ARG001 (those of what is registered below)
    epsilon: float,  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    *,
    name: str = "decision",  # noqa: ARG001
    confidence: float = CONFIDENCE,  # noqa: ARG001
    redrawn: int = REDRAWN,  # noqa: ARG001
) -> DecisionPlan:
    """The best question to everybody that a sample suggests.

    From people who agreed: linear, additive or, at B = 2, boosted, whichever is best for the program's own
    figure. From private rows: linear, by weights that know the noise of the rows.

    Args:
        sample: From `read_agreed`, or from `read_labelled`.
        B: The distance that is hidden.
        epsilon: ε of each answer.
        rng: Draws the samples of the intervals.
        name: Of the column of answers.
        confidence: Of the intervals.
        redrawn: How many samples an interval is made from.

    Returns:
        The plan. At B = 2 its weights and cuts are for columns in the table's own units.

    Raises:
        TypeError: It is no sample.
        ValueError: Nothing can be learned, or the question cannot be asked at this distance.

    Guarantees: everybody whose decision is drawn has the promise. From private rows, this is post-processing
    of their release, and of labels. People who agreed have no promise: from the question, above all from a
    model, their labels can be guessed.

    Example:
        >>> sample = read_agreed(Path("agreed.parquet"), Path("labels.csv"), rule)  # doctest: +SKIP
        >>> plan_decisions(sample, 2.0, 4.0, np.random.default_rng(0)).kind  # doctest: +SKIP
        'boosted'
    """
    raise TypeError(f"{type(sample).__name__} is no sample: read one by read_agreed or read_labelled")


@plan_decisions.register
def _of_agreed(
    sample: AgreedSample,
    B: float,
    epsilon: float,
    rng: np.random.Generator,
    *,
    name: str = "decision",
    confidence: float = CONFIDENCE,
    redrawn: int = REDRAWN,
) -> DecisionPlan:
    promise = Guarantee(check.distance(B, "B"), epsilon)
    classic = promise.B == CLASSIC
    fits = fit_scores(sample.rows_for(promise.B), sample.program, classic=classic)

    def tried(level: float) -> tuple[TriedDecision, ...]:
        return try_decisions(fits, sample.program, sample.features, B=promise.B, epsilon=level, name=name)

    every = tried(epsilon)
    best = every[0]
    left_out = {
        kind: one.why_not() or "it can move farther than rows do: at B = 2 only"
        for kind, one in score_kinds().items() if kind not in {fit.kind for fit in fits}
    }  # fmt: skip
    return DecisionPlan(
        guarantee=promise, asked=best.asked, law=best.law,
        expectation=best.expect(rng, confidence=confidence, redrawn=redrawn), kind=best.kind,
        tried={one.kind: one.figures for one in every}, left_out=left_out,
        others={level: tried(level)[0].figures for level in epsilons(epsilon)},
        file=best.fitted.score.file(),
    )  # fmt: skip


@plan_decisions.register
def _of_private(
    sample: LabelledSample,
    B: float,
    epsilon: float,
    rng: np.random.Generator,
    *,
    name: str = "decision",
    confidence: float = CONFIDENCE,
    redrawn: int = REDRAWN,
) -> DecisionPlan:
    promise = Guarantee(check.distance(B, "B"), epsilon)
    proof, counts = sample.certificate, sample.program.people.fit_weights
    learned = sample.learn(decision_ridge(sample.rows, sample.noise_covariance, counts))
    score = None if promise.B == CLASSIC else learned.w

    def law_at(level: float) -> DecisionLaw:
        return Decision(B=promise.B, epsilon=level, score=score).law()

    def expected(level: float, times: int) -> Expectation:
        released = DrawnAnswers(law_at(level), grid, asked.yes, asked.share, asked.cut)
        return expect(
            sample.program, learned, released, rng, law=sample.law, confidence=confidence, redrawn=times
        )

    grid = ScoreNoise.normal(COARSE**2, COARSE)
    asked = private_question(learned, sample.program, sample.law, law_at(epsilon), proof.features, name)
    found = expected(epsilon, redrawn)
    others = {level: _values(expected(level, 0)) for level in epsilons(epsilon)}
    if promise.B == CLASSIC:
        asked = in_own_units(asked, {one: (at.center, at.scale) for one, at in proof.scales.values.items()})
    return DecisionPlan(
        guarantee=promise, asked=asked, law=law_at(epsilon), expectation=found, kind="linear",
        tried={"linear": _values(found)}, left_out={}, others=others, weights=learned,
    )  # fmt: skip


def _values(found: Expectation) -> dict[str, float]:
    return {name: one.value for name, one in found.figures.items()}


def in_own_units(asked: AskedDecision, scales: Mapping[str, tuple[float, float]]) -> AskedDecision:
    """A question about scaled columns as one about the same columns in the table's own units.

    Args:
        asked: A weighted sum of columns, less their center and divided by their scale.
        scales: Center and scale by column.

    Returns:
        The same question: whoever had a yes has one, where her row is not clipped. Weights and cuts are
        rounded.

    Example:
        >>> asked = AskedDecision(weights={"calls": 1.0}, cut=0.5)
        >>> in_own_units(asked, {"calls": (30.0, 20.0)}).cut
        2.0
    """
    weights = {name: value / scales[name][1] for name, value in (asked.weights or {}).items()}
    # Of a column that is far from 0 more digits are kept: what counts is what they do to a score.
    shown = {
        name: rounded(value, 1 / max(abs(scales[name][0]), scales[name][1])) or value
        for name, value in weights.items()
    }
    shift = sum(value * scales[name][0] for name, value in shown.items())
    if asked.expected is None:
        return asked.model_copy(
            update={"weights": shown, "cut": None if asked.cut is None else asked.cut + shift}
        )
    expected = tuple((at + shift, share) for at, share in _spread_further(asked.expected))
    return asked.model_copy(update={"weights": shown, "expected": expected})


def _spread_further(expected: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """What to expect of rows that are not clipped, from what clipped ones show.

    Scores spread further then, nobody knows how much: the mean is taken of several factors. With too narrow
    an expectation the cut of a release would move too little after each batch.
    """
    cuts, shares = np.array(expected).T
    middle = float(np.interp(0.5, np.sort(shares), cuts if shares[0] <= shares[-1] else cuts[::-1]))
    wider = np.concatenate([middle + (cuts - middle) * by for by in _FURTHER])
    at = np.unique(np.quantile(wider, np.linspace(0, 1, len(cuts))).round(6))
    each = [np.interp(middle + (at - middle) / by, cuts, shares) for by in _FURTHER]
    return [(float(cut), float(share)) for cut, share in zip(at, np.mean(each, axis=0).round(6), strict=True)]

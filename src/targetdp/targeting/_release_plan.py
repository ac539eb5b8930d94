"""Rows, a score or a decision: what each would do for a program at one promise, and which one to ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LEAST_NOISE, least_noise
from targetdp.programs import CONFIDENCE, ScoredProgram
from targetdp.targeting._agreed._sample import Sample
from targetdp.targeting._decision_plan import DecisionPlan, plan_decisions
from targetdp.targeting._denoise import ScoreNoise
from targetdp.targeting._expect import COARSE, REDRAWN, Expectation, Expected, ScorePlan, expect, plan_scores

FARTHEST = 2.0
"""No two rows of the unit ball are farther apart."""
NEARLY = 0.005
"""Accuracy by which one kind of release must be better than another to count as that."""


@dataclass(frozen=True)
class KindOfRelease:
    """What one kind of release would achieve and tell, at one promise.

    Args:
        name: ``"rows"``, ``"scores"`` or ``"decisions"``.
        figures: Metrics of the program.
        best_guess: How often any adversary can be right about which of two rows, B apart, somebody has.
        best_guess_at_2: The same for any two rows.

    Example:
        >>> KindOfRelease("rows", {"accuracy": 0.7}, best_guess=0.78, best_guess_at_2=0.8).figures["accuracy"]
        0.7
    """

    name: str
    figures: Mapping[str, float] = field(repr=False)
    best_guess: float
    best_guess_at_2: float


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """What to ask for.

    Args:
        release: ``"scores"`` or ``"decisions"``.
        kinds: What each kind of release would achieve and tell, rows of everybody among them, by name.
        decisions: The decision that could be asked for.
        scores: The score that could be asked for, or compared.
        why: Why this release, in a sentence.

    Example:
        >>> plan_release(sample, guarantee, rng).kinds["rows"].best_guess  # doctest: +SKIP
        0.78
    """

    release: Literal["scores", "decisions"]
    kinds: Mapping[str, KindOfRelease]
    decisions: DecisionPlan
    scores: ScorePlan
    why: str

    @property
    def expectation(self) -> Expectation:
        """What to expect of the release that is asked for."""
        return self.scores.expectation if self.release == "scores" else self.decisions.expectation


def plan_release(
    sample: Sample,
    guarantee: Guarantee,
    rng: np.random.Generator,
    *,
    release: Literal["best", "scores", "decisions"] = "best",
    mechanism: str = LEAST_NOISE,
    name: str = "decision",
    confidence: float = CONFIDENCE,
    redrawn: int = REDRAWN,
) -> ReleasePlan:
    """Which release of everybody serves a program best at a promise, by what a sample tells.

    Args:
        sample: Private rows, or rows of people who agreed, with labels.
        guarantee: The promise of what is released; a decision needs none of its δ.
        rng: Draws the samples of the intervals.
        release: Which kind to ask for; whichever is better unless given.
        mechanism: Of the noise on a score, by name.
        name: Of the column of answers.
        confidence: Of the intervals.
        redrawn: How many samples an interval is made from.

    Returns:
        The plan of the release to ask for, beside what the others would do.

    Raises:
        ValueError: Nothing can be learned, or what was asked for cannot be released at this promise.

    Guarantees: where the sample is private, post-processing of its release and of labels. People who agreed
    have no promise.

    Example:
        >>> sample = read_labelled(Path("private.parquet"), Path("labels.csv"), rule)  # doctest: +SKIP
        >>> plan = plan_release(sample, Guarantee(2.0, 4.0, 1e-5), np.random.default_rng(0))  # doctest: +SKIP
        >>> plan.release  # doctest: +SKIP
        'decisions'
    """
    decisions = plan_decisions(
        sample, guarantee.B, guarantee.epsilon, rng, name=name, confidence=confidence, redrawn=redrawn
    )
    weighed, missing = sample.weighed, sample.why_no_scores
    if release == "scores" and missing is not None:
        raise ValueError(f"scores cannot be asked for: {missing}")
    scores = plan_scores(weighed, guarantee, rng, mechanism=mechanism, confidence=confidence, redrawn=redrawn)
    each = (
        rows_of_everybody(weighed, guarantee, rng),
        score_of_everybody(scores),
        decision_of_everybody(decisions),
    )
    kinds = {one.name: one for one in each}
    if release != "best":
        return ReleasePlan(release, kinds, decisions, scores, "as was asked for")
    chosen, why = _better(kinds["scores"], kinds["decisions"], sample.program)
    if chosen == "scores" and missing is not None:
        chosen, why = "decisions", f"{why}, but cannot be asked for: {missing}"
    return ReleasePlan(chosen, kinds, decisions, scores, why)


def _better(
    score: KindOfRelease, decision: KindOfRelease, program: ScoredProgram
) -> tuple[Literal["scores", "decisions"], str]:
    """Which of the two to ask for, and why."""
    gap = decision.figures["accuracy"] - score.figures["accuracy"]
    points = f"{abs(100 * gap):.1f} points of accuracy"
    if abs(gap) <= NEARLY:
        return "decisions", (
            f"a decision and a score are within {points} of each other, and a decision answers one question "
            "only; a score would serve several quotas (--release scores)"
        )
    aim = program.objective.value_of
    if aim(decision.figures) >= aim(score.figures):
        return "decisions", f"a decision is better than a score, by {points}"
    return "scores", f"a score is better than a decision, by {points}, and it serves several quotas"


def rows_of_everybody(sample: Sample, guarantee: Guarantee, rng: np.random.Generator) -> KindOfRelease:
    """What a release of everybody's rows with the least noise would do.

    Args:
        sample: Rows that weights are learned from.
        guarantee: Of the rows.
        rng: Draws the samples that tell how far two models of scores are from each other by chance.

    Returns:
        Figures, and best guesses.

    Does not guarantee: anything about programs that look at rows in another way than by a weighted sum.
    """
    d = len(sample.noise_covariance)
    mechanism = least_noise(guarantee, d).mechanism
    covariance = mechanism.noise_covariance(d)
    learned = sample.learn(float(np.trace(covariance)) / d)
    variance = float(learned.w @ covariance @ learned.w)
    step = max(COARSE, min(float(np.sqrt(variance)), 1.0) / 8)
    noise = ScoreNoise.along(mechanism.law(d), variance, step)
    expected = expect(sample.program, learned, noise, rng, law=sample.law, redrawn=0)
    near, far = (
        mechanism.privacy_loss(distance=distance, dimensions=d).best_guess()
        for distance in (guarantee.B, FARTHEST)
    )
    return KindOfRelease("rows", _values(expected.figures), near, far)


def score_of_everybody(plan: ScorePlan) -> KindOfRelease:
    """The same of one score.

    Args:
        plan: Scores, with what to expect of them.

    Returns:
        Figures, and best guesses.
    """
    mechanism = least_noise(plan.guarantee, 1).possible[plan.mechanism]
    near, far = (
        mechanism.privacy_loss(distance=distance, dimensions=1).best_guess()
        for distance in (plan.guarantee.B, FARTHEST)
    )
    return KindOfRelease("scores", _values(plan.expectation.figures), near, far)


def decision_of_everybody(plan: DecisionPlan) -> KindOfRelease:
    """The same of one decision.

    Args:
        plan: The decision, with what to expect of it.

    Returns:
        Figures, and best guesses: those across the cut.
    """
    near, far = (plan.law.privacy_loss(distance).best_guess() for distance in (plan.guarantee.B, FARTHEST))
    return KindOfRelease("decisions", _values(plan.expectation.figures), near, far)


def _values(figures: Mapping[str, Expected]) -> dict[str, float]:
    return {name: one.value for name, one in figures.items()}

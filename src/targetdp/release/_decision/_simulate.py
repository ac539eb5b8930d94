"""A release of decisions as it would come out, for people whose scores are known: to try a question with."""

from dataclasses import dataclass, field

import numpy as np

from targetdp._core import Floats, check
from targetdp.mechanisms import STEPS, Decision, DecisionLaw
from targetdp.release._decision._asked import AskedDecision
from targetdp.release._decision._bits import APART, Bits, batches_of, cuts_of_people, decide
from targetdp.release._decision._question import Question


@dataclass(frozen=True, eq=False)
class SimulatedAnswers:
    """What a release of decisions might show, and what its certificate would say.

    Args:
        bits: Whether each person gets a yes.
        cuts: The cut that each was held against, in the units of the question.
        unit_cuts: The same on the scale of the law's own score, of which low is a yes; None at B = 2, where
            the law has none.
        law: That answers were drawn by.
    """

    bits: Bits = field(repr=False)
    cuts: Floats = field(repr=False)
    unit_cuts: Floats | None = field(repr=False)
    law: DecisionLaw


def simulate_decisions(
    asked: AskedDecision, scores: Floats, *, B: float, epsilon: float, rng: np.random.Generator
) -> Bits:
    """The answers that a release might give, by the rules and draws of a real one.

    Args:
        asked: The question: where the cut is, or which share of people should get a yes.
        scores: Everybody's, in the units of the question; below B = 2 of scaled and clipped rows. NaN is no
            answer, and so a drawn no.
        B: The distance that is hidden.
        epsilon: ε of each answer.
        rng: Says who is asked when, and draws the answers.

    Returns:
        Whether each person gets a yes.

    Raises:
        ValueError: The question cannot be asked at this distance, or there is nobody.

    Does not guarantee: any privacy. It is repeatable, and therefore no release.

    Example:
        >>> asked = AskedDecision(weights={"calls": 1.0}, share=0.5, expected=((0.0, 0.1), (1.0, 0.9)))
        >>> scores = np.linspace(0, 1, 10_000)
        >>> yes = simulate_decisions(asked, scores, B=2, epsilon=4, rng=np.random.default_rng(0))
        >>> bool(yes[:4_000].mean() > 0.97 and yes[6_000:].mean() < 0.03)
        True
    """
    return simulate_answers(asked, scores, B=B, epsilon=epsilon, rng=rng).bits


def simulate_answers(
    asked: AskedDecision, scores: Floats, *, B: float, epsilon: float, rng: np.random.Generator
) -> SimulatedAnswers:
    """As `simulate_decisions`, with the cut that each person was held against.

    Args:
        asked: The question: where the cut is, or which share of people should get a yes.
        scores: Everybody's, in the units of the question.
        B: The distance that is hidden.
        epsilon: ε of each answer.
        rng: Says who is asked when, and draws the answers.

    Returns:
        Answers, cuts, and the law of the answers.

    Raises:
        ValueError: The question cannot be asked at this distance, or there is nobody.

    Does not guarantee: any privacy. It is repeatable, and therefore no release.

    Example:
        >>> asked = AskedDecision(weights={"calls": 1.0}, cut=0.3)
        >>> rng = np.random.default_rng(0)
        >>> drawn = simulate_answers(asked, np.array([0.1, 0.9]), B=2, epsilon=50, rng=rng)
        >>> drawn.bits.tolist(), drawn.cuts.tolist()
        ([True, False], [0.3, 0.3])
    """
    given = np.asarray(scores, dtype=np.float64)
    people = check.integer("people", len(given), at_least=1)
    question = Question.of(asked, B)
    law = Decision(B=B, epsilon=epsilon, score=question.score).law()
    order, draws = rng.integers(0, 2**64, size=(2, people), dtype=np.uint64)
    steps = question.placed(given)
    if asked.cut is None:  # as ids move equal scores apart in a release
        steps = steps + rng.integers(APART, size=people)
    batches = batches_of(order, people)
    decided = decide(batches, steps[:, None], [question.rule(law)], law, draws)
    held_against = cuts_of_people(decided.cuts, batches)[:, 0]
    each, whose = np.unique(held_against, return_inverse=True)
    cuts = np.array([question.in_own_units(int(cut)) for cut in each])[whose]
    return SimulatedAnswers(
        decided.bits[:, 0], cuts, None if law.cells is None else held_against / STEPS, law
    )

"""People who agreed to be used as they are, then one private bit of everybody else: both simulated."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from targetdp._core import Floats, check
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import Decision
from targetdp.programs import Folds, Program, ScoredProgram
from targetdp.release import SimulatedAnswers, simulate_answers
from targetdp.targeting._agreed._sample import CLASSIC
from targetdp.targeting._agreed._tried import TriedDecision, try_decisions
from targetdp.targeting._fit._kinds import CrossFitted, fit_scores
from targetdp.targeting._sample_and_scores import check_scored, part_of

_KEPT = 24
"""Samples whose fits are kept: all parts of a cross-validation, for a few tables."""


@dataclass(frozen=True, eq=False)
class AgreedAndDecisions:
    """Rows of people who agreed, as they are, and one private bit of everybody else.

    People of the sample have no promise: whoever learns sees their rows, and from the question their labels
    can be guessed. What is promised is promised to everybody else.

    Args:
        promise: What the bits keep; their δ is 0.
        features: Names of the columns.

    Raises:
        ValueError: The promise has a δ: bits need none.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.uniform(-0.5, 0.5, (400, 2))
        >>> from targetdp.programs import Aid
        >>> agreed = AgreedAndDecisions(Guarantee(2, 4.0), ("calls", "texts"))
        >>> tried = agreed.learn(rows, Aid(np.exp(rows[:, 0]), quota=0.3))
        >>> agreed.answers(tried, rows, rng).bits.shape
        (400,)
    """

    promise: Guarantee
    features: tuple[str, ...]

    def __post_init__(self) -> None:
        check.instance("promise", self.promise, Guarantee)
        if self.promise.delta != 0:
            raise ValueError(f"promise has δ = {self.promise.delta!r}: bits need none; leave it out")
        object.__setattr__(self, "features", tuple(self.features))

    @property
    def decision(self) -> Decision:
        """The mechanism of bits, whatever the score."""
        score = None if self.promise.B == CLASSIC else np.eye(1, len(self.features))[0]
        return Decision(B=self.promise.B, epsilon=self.promise.epsilon, score=score)

    def learn(self, X: Floats, labelled: ScoredProgram) -> TriedDecision:
        """The best question that these people's rows and outcomes suggest: linear, additive or boosted."""
        fits = _fits(_Sample.of(X, labelled, classic=self.promise.B == CLASSIC))
        promise = self.promise
        return try_decisions(fits, labelled, self.features, B=promise.B, epsilon=promise.epsilon)[0]

    def answers(self, tried: TriedDecision, X: Floats, rng: np.random.Generator) -> SimulatedAnswers:
        """The private bits of people with these rows, simulated."""
        scores, promise = tried.fitted.score.of_rows(X), self.promise
        return simulate_answers(tried.asked, scores, B=promise.B, epsilon=promise.epsilon, rng=rng)

    def predict(self, program: Program, X: Floats, folds: Folds, rng: np.random.Generator) -> Floats:
        """Everybody's answer as the program judges it, to a question that was learned without her part."""
        yes = np.empty(len(X))
        for _, decided in folds:
            sample = np.ones(len(X), dtype=bool)
            sample[decided] = False
            tried = self.learn(X[sample], part_of(program, sample))
            yes[decided] = self.answers(tried, X[decided], rng).bits
        return check_scored(program).as_scores(yes)


# Fits do not depend on ε: over the cells and simulations of a sweep the same few samples come again.


@dataclass(frozen=True)
class _Sample:
    """People whose rows and outcomes scores are fitted to, and a hash by which they are known again."""

    digest: str
    classic: bool
    X: Floats = field(compare=False, repr=False)
    program: ScoredProgram = field(compare=False, repr=False)

    @classmethod
    def of(cls, X: Floats, program: ScoredProgram, *, classic: bool) -> "_Sample":
        state = hashlib.sha256(f"{program.kind} {program.task} {X.shape}".encode())
        weights = program.people.fit_weights
        arrays: Sequence[Floats] = (X, program.outcomes, *(() if weights is None else (weights,)))
        for array in arrays:
            state.update(np.ascontiguousarray(array).tobytes())
        return cls(state.hexdigest(), classic, X, program)


@lru_cache(maxsize=_KEPT)
def _fits(sample: _Sample) -> tuple[CrossFitted, ...]:
    return fit_scores(sample.X, sample.program, classic=sample.classic)

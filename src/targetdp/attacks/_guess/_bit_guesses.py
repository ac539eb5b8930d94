"""Guesses by an adversary who sees drawn answers: candidates for the secret, weighed by Bayes' rule.

A drawn answer is no linear map of a row, so that Gaussian algebra does not help. Instead the adversary makes
candidates for what is not known: what the known columns predict, and by how much people at large differ from
that. Each candidate's row has a score, the score and the cut tell with which chance its answer would have
been drawn, and that chance is its weight.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, check, kernel
from targetdp.attacks._guess._informed_guesses import (
    WITH_RELEASE,
    Belief,
    InformedAttack,
    KnownColumns,
)
from targetdp.attacks._guess._observation import EXACT, Observation
from targetdp.mechanisms import DecisionLaw

ScoreFunction: TypeAlias = Callable[[Floats], Floats]
"""From rows to a number for each."""

CANDIDATES, CANDIDATES_OF_FUNCTIONS = 256, 48
"""For what is not known of a person: where scores are a weighted sum, and where they are any function."""
_BLOCK = 1 << 16
"""Rows that a function gets at a time."""

STRETCH = "likeliest stretch"


@dataclass(frozen=True)
class BitQuestion:
    """What an answer was drawn about: a score, and the cut that it was held against.

    Args:
        score: Weights of the columns, or any function from rows (people by columns) to a number for each; NaN
            is a no.
        cuts: The cut, or that of each person.
        yes: Whether scores below the cut are a yes, or those above; the cut itself is a yes both times.

    Raises:
        TypeError: ``score`` is neither.
        ValueError: Cuts are no finite numbers.

    Example:
        >>> BitQuestion([0.6, 0.8], cuts=0.5).scores(np.array([[1.0, 0.0], [0.0, 1.0]]))
        array([0.6, 0.8])
    """

    score: Any = field(repr=False)
    cuts: Any = field(default=0.0, repr=False)
    yes: Literal["below", "above"] = "below"

    def __post_init__(self) -> None:
        check.choice("yes", self.yes, get_args(Literal["below", "above"]))
        if not callable(self.score):
            object.__setattr__(self, "score", check.vector("score", self.score, length=len(self.score)))
        cuts = np.asarray(self.cuts, dtype=np.float64)
        if cuts.ndim > 1 or not np.isfinite(cuts).all():
            raise ValueError("cuts must be a finite number, or one for each person")
        object.__setattr__(self, "cuts", cuts)

    @property
    def weights(self) -> Floats | None:
        """The weights, where the score is a weighted sum."""
        return None if callable(self.score) else np.asarray(self.score)

    @property
    def sign(self) -> float:
        """By which score and cut are multiplied so that a yes is below."""
        return 1.0 if self.yes == "below" else -1.0

    def scores(self, rows: Floats) -> Floats:
        """The score of each row."""
        if self.weights is not None:
            return np.asarray(rows @ self.weights)
        parts = [rows[begin : begin + _BLOCK] for begin in range(0, len(rows), _BLOCK)]
        return np.concatenate([np.asarray(self.score(part), dtype=np.float64) for part in parts])


def chances_of_answers(
    law: DecisionLaw, questions: Sequence[BitQuestion], bits: NDArray[np.bool_], cuts: Floats, scores: Floats
) -> Floats:
    """With which chance people's answers would have been drawn, if their scores were these.

    Args:
        law: That answers were drawn by.
        questions: One for each decision.
        bits: The answers: a row for each person, a column for each decision.
        cuts: The cuts that they were held against, as many.
        scores: For each decision, each person and each candidate (m×n×K).

    Returns:
        A chance for each person and candidate.
    """
    signs = np.array([one.sign for one in questions])
    under = (signs * cuts).T[:, :, None]
    signed = signs[:, None, None] * scores
    if law.cells is not None:
        yes = law.chance_of_yes(law.cells.of_scores(signed[0], under[0, :, 0]))
        return np.where(bits[:, :1], yes, 1 - yes)
    right = ((signed <= under) == bits.T[:, :, None]).all(axis=0)
    wrong = law.table[0] / 2**64  # of each wrong combination
    return np.where(right, 1 - (law.answers - 1) * wrong, wrong)


@dataclass(frozen=True)
class CandidateBelief(Belief):
    """A belief in candidates for what is not known of a person; the ``general`` one is a normal one.

    ``errors`` (K×m) are added to what the known columns predict, ``weights`` (n×K, or 1×K for all) are their
    chances. ``likelihood`` says how likely the answers are with each value of the one secret that is left;
    None without answers.
    """

    general: Belief
    errors: Floats = field(repr=False)
    weights: Floats = field(repr=False)
    tolerance: float
    likelihood: ScoreFunction | None = field(default=None, repr=False)

    @classmethod
    def after(
        cls, general: Belief, errors: Floats, weights: Floats, tolerance: float,
        likelihood: ScoreFunction | None = None,
    ) -> "CandidateBelief":  # fmt: skip
        """The belief with these weights."""
        middle = weights @ errors
        variances = np.maximum(0.0, weights @ np.square(errors) - np.square(middle))
        means = general.means + middle
        return cls(general.columns, means, variances, general, errors, weights, tolerance, likelihood)

    def guesses(self, column: int) -> tuple[Floats, Floats]:
        """As `Belief.guesses`, by the mean and variance that are left of each person's candidates."""
        place = self.columns.index(column)
        m, v = self.means[:, place], self.variances[:, place]
        reach = np.sqrt(np.square(m) + 4 * v)
        return m, np.asarray((m + np.where(m < 0, -reach, reach)) / 2)

    def likeliest(self, column: int, values: Floats, log_odds: Floats | float = 0.0) -> Floats:
        """As `Belief.likeliest`: by the answers' own chances where nothing is unknown but the secret."""
        if self.likelihood is None:
            return self.general.likeliest(column, values, log_odds)
        if len(self.columns) == 1:
            own = np.log(np.maximum(self.likelihood(values), 1e-300))
            return self.general.likeliest(column, values, log_odds + own)
        place = self.columns.index(column)
        m, v = self.means[:, place, None], np.maximum(self.variances[:, place, None], EXACT**2)
        likely = log_odds - np.square(values - m) / (2 * v)
        each = np.broadcast_to(values, likely.shape)
        return np.asarray(np.take_along_axis(each, likely.argmax(axis=1)[:, None], axis=1)[:, 0])

    def stretch(self, column: int) -> Floats:
        """The guess that is right for the largest weight of candidates, each of which allows for an error."""
        place = self.columns.index(column)
        order = np.argsort(self.errors[:, place], kind="stable")
        found = np.empty(len(self.means))
        weights = np.broadcast_to(self.weights, (len(found), len(order)))
        _densest(
            self.general.means[:, place], self.errors[order, place], order, weights, self.tolerance, found
        )
        return found


@kernel
def _densest(
    means: Floats, errors: Floats, order: Integers, weights: Floats, tolerance: float, found: Floats
) -> None:
    """For each person the middle of where most of the stretches around candidates overlap, by weight.

    Errors rise; ``order`` says where the weight of each stands. Both ends of a stretch rise with its
    candidate, so that one walk up the candidates is enough.
    """
    k = len(errors)
    for i in range(len(means)):
        held, first, best = 0.0, 0, -1.0
        for j in range(k):
            value = means[i] + errors[j]
            begin = value - tolerance * abs(value)
            while first < j:
                low = means[i] + errors[first]
                if low + tolerance * abs(low) >= begin:
                    break
                held -= weights[i, order[first]]
                first += 1
            held += weights[i, order[j]]
            if held > best + 1e-12:  # of equally good ones the first, whatever rounding says
                low = means[i] + errors[first]
                best = held
                found[i] = (begin + low + tolerance * abs(low)) / 2


@dataclass(frozen=True)
class BitAttack(InformedAttack):
    """People and their drawn answers: ``released`` has bits in its first columns, then the cuts.

    ``at_large`` are rows of people at large: their differences from what is predicted are candidates.
    """

    questions: tuple[BitQuestion, ...] = ()
    law: DecisionLaw | None = None
    at_large: Floats = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    with_release: ClassVar[tuple[str, ...]] = (*WITH_RELEASE, STRETCH)

    def _beliefs(self, known: KnownColumns) -> tuple[Belief, Belief, Belief]:
        errors = self._errors(known)
        even = np.full((1, len(errors)), 1 / len(errors))
        inside, outside = known.alone(self.rows), known.alone(self.outside)
        scores = self._scores(known, inside.means[:, None, :] + errors)
        weights = self._chances(scores)
        weights = weights / weights.sum(axis=1, keepdims=True)

        def likelihood(values: Floats) -> Floats:
            each = np.broadcast_to(values, (len(self.rows), values.shape[-1]))
            return self._chances(self._scores(known, each[:, :, None]))

        tolerance = self.rule.tolerance
        return (
            CandidateBelief.after(inside, errors, weights, tolerance, likelihood),
            CandidateBelief.after(inside, errors, even, tolerance),
            CandidateBelief.after(outside, errors, even, tolerance),
        )

    def _guesses(self, belief: Belief, rows: Floats, secret: int) -> list[Floats]:
        assert isinstance(belief, CandidateBelief)  # noqa: S101 (`_beliefs` makes no others)
        return [*super()._guesses(belief, rows, secret), belief.stretch(secret)]

    @property
    def _linear(self) -> bool:
        return all(one.weights is not None for one in self.questions)

    def _errors(self, known: KnownColumns) -> Floats:
        """By how much people at large differ from what the known columns predict of them."""
        most = CANDIDATES if self._linear else CANDIDATES_OF_FUNCTIONS
        errors = self.at_large[:, list(known.rest)] - known.alone(self.at_large).means
        if len(errors) <= most:
            return errors
        if len(known.rest) == 1:
            return np.quantile(errors, (np.arange(most) + 0.5) / most, axis=0)
        chosen = np.random.default_rng(0).choice(len(errors), most, replace=False)
        return errors[np.sort(chosen)]

    def _scores(self, known: KnownColumns, candidates: Floats) -> Floats:
        """The score of each person with each candidate (n×K×m), for each question."""
        given, rest = list(known.known), list(known.rest)
        if self._linear:
            weights = [one.scores(np.eye(self.rows.shape[1])) for one in self.questions]
            return np.stack([
                (self.rows[:, given] @ w[given])[:, None] + candidates @ w[rest] for w in weights
            ])  # fmt: skip
        n, k, d = len(self.rows), candidates.shape[1], self.rows.shape[1]
        found = np.empty((len(self.questions), n, k))
        size = max(1, _BLOCK // k)
        for begin in range(0, n, size):
            some = slice(begin, min(begin + size, n))
            rows = np.repeat(self.rows[some, None, :], k, axis=1)
            rows[:, :, rest] = candidates[some]
            for one, own in zip(self.questions, found, strict=True):
                own[some] = one.scores(rows.reshape(-1, d)).reshape(-1, k)
        return found

    def _chances(self, scores: Floats) -> Floats:
        assert self.law is not None  # noqa: S101 (`against` gives one)
        m = len(self.questions)
        bits, cuts = self.released[:, :m] == 1, self.released[:, m:]
        return chances_of_answers(self.law, self.questions, bits, cuts, scores)

    @classmethod
    def against(
        cls, X: Floats, bits: NDArray[np.bool_], questions: tuple[BitQuestion, ...], law: DecisionLaw,
        holdout: Any, population: Any, tolerance: Any,
    ) -> "BitAttack":  # fmt: skip
        """Everybody, checked."""
        d = X.shape[1]
        outside = np.empty((0, d)) if holdout is None else check.table(holdout, "holdout", columns=d)
        general = X if population is None else check.table(population, "population", columns=d)
        cuts = np.stack([np.broadcast_to(one.cuts, len(X)) for one in questions], axis=1)
        shown = np.concatenate([bits.astype(np.float64), cuts], axis=1)
        return cls._of_checked(
            X, shown, Observation.of(None, None, d), outside, general, tolerance, population is None,
            questions=questions, law=law, at_large=general,
        )  # fmt: skip

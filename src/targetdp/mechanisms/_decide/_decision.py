"""Decisions: one private bit for each person, right as often as any that keeps the promise can be.

A program takes one bit of each person: in, or out. At B = 2 that bit is randomized response on her side of
the cut, which may be any function of her one row: classic differential privacy. Below, a score tells how far
from the cut somebody is, and whoever is farther away gets an answer that is right more often:

    u = cut − score,  cell k = ⌊u/W⌋,  error q₀ = 1/(1 + e^ε) in the cells 0 and −1,  q_{k+1} = e^−ε·q_k.

Rows within B have scores within B, and so cells that differ by one at most. W is B and what rounding may add:
scores and cuts are whole numbers of steps of 2⁻⁵⁰, and a cell is a whole-number division (`docs/noise.md`,
section 6).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincc

from targetdp._core import Floats, Integers, Words, check
from targetdp.accounting import PrivacyLoss, ResponseLoss
from targetdp.guarantee import Guarantee
from targetdp.mechanisms._base import LARGEST_EPSILON, SMALLEST_EPSILON, claim
from targetdp.mechanisms._decide._cells import Cells
from targetdp.mechanisms._decide._score import LinearScore, RowScore, score_of
from targetdp.mechanisms._law import RowLaw
from targetdp.mechanisms._weights import weights_matrix
from targetdp.noise import ALL_WORDS, WordSource, error_table, respond, respond_by_cell, word_stream

Bits = NDArray[np.bool_]

MOST_PROGRAMS = 4
"""That are decided together: each further one doubles the answers."""


@dataclass(frozen=True)
class DecisionLaw(RowLaw):
    """With which chance each answer is given to whom: whole numbers of 2⁶⁴ words.

    Args:
        level: ε, from 0.0001 to 100.
        programs: How many decisions are taken together, 1 to 4.
        cells: Of a score; None where the true answer is any function of the one row, which has two cells.

    Raises:
        ValueError: One of them is outside its range, or several programs have cells.

    Guarantees: `privacy_loss` is never below the loss between two rows' answers as they are drawn, at any
    distance.

    Example:
        >>> law = Decision(B=2, epsilon=4).law()
        >>> law.agreement(0.0).round(4), law.privacy_loss(0.1).epsilon(0.0)
        (array([0.982]), 4.0)
    """

    family = "decision"
    level: float
    programs: int
    cells: Cells | None

    def __post_init__(self) -> None:
        level = check.number("level", self.level, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)
        object.__setattr__(self, "level", level)
        programs = check.integer("programs", self.programs, at_least=1, at_most=MOST_PROGRAMS)
        object.__setattr__(self, "programs", programs)
        if self.cells is None:
            return
        check.instance("cells", self.cells, Cells)
        if self.programs > 1:
            raise ValueError(f"programs = {self.programs} are decided together at B = 2 only, without cells")

    @property
    def decision(self) -> "DecisionLaw":
        """The law itself."""
        return self

    @property
    def answers(self) -> int:
        """How many answers there are: each program's yes or no."""
        return int(2**self.programs)

    @property
    def table(self) -> tuple[int, ...]:
        """For each cell of a side, how many of 2⁶⁴ words make each wrong answer."""
        return error_table(self.level, 1 if self.cells is None else self.cells.on_a_side, self.answers)

    @property
    def marginal_table(self) -> tuple[int, ...]:
        """For each cell of a side, how many of 2⁶⁴ words make one program's bit wrong.

        Half of all answers have another bit there than the true one, and each has as many words.
        """
        return tuple(words * self.answers // 2 for words in self.table)

    def loss_at(self, distance: float) -> PrivacyLoss:
        """Randomized response of ε for each cell that rows can be apart; at most what the rarest answer is.

        All chances are between that of the rarest answer and 1 less it.
        """
        apart = 1 if self.cells is None else self.cells.apart(distance)
        rarest = self.table[-1]
        most = math.log((ALL_WORDS - rarest) / rarest) * (1 + 2.0**-40)
        level = self.level if apart == 1 else math.nextafter(apart * self.level, math.inf)
        return ResponseLoss(min(level, most), self.answers)

    def loss_between(self, distance: float, dimensions: int) -> PrivacyLoss:  # noqa: ARG002
        """See `Mechanism.loss_between`: how many columns there are does not matter."""
        return self.privacy_loss(distance)

    def decide(self, cells: Integers, words: WordSource | Words) -> Bits:
        """Draw a bit for each person.

        Args:
            cells: Her cell, as `Cells` finds it; at B = 2 it is 0 for a yes and −1 for a no.
            words: Where random bits come from; each person takes one word.

        Returns:
            Whether it is a yes.
        """
        return respond_by_cell(cells, self.table, words)

    def decide_together(self, answers: Bits, words: WordSource | Words) -> Bits:
        """Draw the bits of all programs for each person, at once.

        Args:
            answers: A row for each person, with her true answer for each program.
            words: Where random bits come from; each person takes one word.

        Returns:
            As many answers: all true, or one of the other combinations, each with the same chance.
        """
        if answers.ndim != 2 or answers.shape[1] != self.programs:
            raise ValueError(f"answers of shape {answers.shape}: give a column for each of {self.programs}")
        places = np.arange(self.programs)
        truth = (answers.astype(np.int64) << places).sum(axis=1)
        drawn = respond(truth, self.table[0], self.answers, words)
        return np.asarray((drawn[:, None] >> places) & 1, dtype=np.bool_)

    def chance_of_error(self, cells: Integers) -> Floats:
        """With which chance one program's bit is wrong, for people in these cells."""
        table = np.array(self.marginal_table, dtype=np.float64) / ALL_WORDS
        return np.asarray(table[np.minimum(np.where(cells >= 0, cells, -1 - cells), len(table) - 1)])

    def agreement(self, distances: Any) -> Floats:
        """How often a bit is right, for people so far from the cut (in units of the score).

        Args:
            distances: 0 or more; at B = 2 they do not matter.

        Returns:
            A probability for each, which is e^ε/(1 + e^ε) next to the cut.
        """
        far = np.atleast_1d(np.asarray(distances, dtype=np.float64))
        if not (far >= 0).all():
            raise ValueError(f"distances = {distances!r} must be 0 or more")
        cells = np.zeros(len(far), np.int64) if self.cells is None else self.cells.at_distances(far)
        return 1 - self.chance_of_error(cells)

    def chance_of_yes(self, cells: Integers) -> Floats:
        """With which chance people in these cells get a yes; its mean is the share of yes to expect."""
        wrong = self.chance_of_error(cells)
        return np.asarray(np.where(cells >= 0, 1 - wrong, wrong))

    def unbiased_share(self, share: float) -> float:
        """The share of people whose true answer is yes, without bias, from the share of yes that was drawn.

        Args:
            share: Of yes among the bits of one program.

        Returns:
            The estimate, which may be below 0 or above 1.

        Raises:
            ValueError: Cells have several chances: then the share alone does not tell.
        """
        if len(self.table) > 1:
            raise ValueError("cells have several chances of error: the share of yes alone does not tell")
        wrong = float(self.chance_of_error(np.zeros(1, np.int64))[0])
        return (check.number("share", share, at_least=0, at_most=1) - wrong) / (1 - 2 * wrong)

    def p_value(self, cells: Integers, yes: Bits) -> float:
        """How surprising bits are of people whose cells are known: a fault that is found, or none.

        In each cell of a side (both sides have the same chance) wrong bits are Binomial(n, q). The smallest
        of the exact two-sided p-values counts, times how many there are.

        Args:
            cells: The true cells of these people.
            yes: The bits that were drawn for them, of one program.

        Returns:
            A p-value. If the law holds, it is below α with a probability of at most α.
        """
        if len(cells) == 0:
            return 1.0
        wrong = (cells >= 0) != yes
        chances = self.chance_of_error(cells)
        found = []
        for chance in np.unique(chances):
            here = chances == chance
            found.append(_two_sided(int(wrong[here].sum()), int(here.sum()), float(chance)))
        return min(1.0, len(found) * min(found))

    @classmethod
    def from_record(cls, fields: dict[str, Any]) -> Self:
        """See `RowLaw.from_record`."""
        cells = fields.get("cells")
        if isinstance(cells, Mapping):
            if set(cells) != {"score", "width"} or not isinstance(cells["score"], Mapping):
                raise ValueError(f"cells with {sorted(map(str, cells))}: they have a score and a width")
            fields["cells"] = Cells(score_of(cells["score"]), cells["width"])
        return cls(**fields)

    def record(self) -> dict[str, Any]:
        """See `RowLaw.record`."""
        cells = None if self.cells is None else self.cells.record()
        return {"family": self.family, "level": self.level, "programs": self.programs, "cells": cells}


def _two_sided(count: int, n: int, chance: float) -> float:
    """Twice the smaller tail of a binomial distribution; both tails hold the count itself."""
    few = float(betaincc(count + 1, n - count, chance)) if count < n else 1.0
    many = float(betainc(count, n - count + 1, chance)) if count > 0 else 1.0
    return 2 * min(few, many)


@dataclass(frozen=True, init=False)
class Decision:
    """One private bit for each person: on which side of a cut she is.

    Args:
        B: The distance that is hidden, in (0, 2].
        epsilon: ε, from 0.0001 to 100.
        score: Weights of the columns, or a `RowScore`; below B = 2 it is needed, at B = 2 any function of the
            one row will do.
        programs: How many decisions are taken together, 1 to 4; several at B = 2 without a score.

    Raises:
        ValueError: One of them is outside its range, or a score is missing.

    Guarantees: (B, ε, 0)-TDP for one call; at B = 2 classic ε-differential privacy, whatever function of the
    one row the answers are. A bit next to the cut is right with probability e^ε/(1 + e^ε), up to 2⁻⁶⁴, and
    no mechanism with that ε can do better at any B. On one side of the cut, at B = 2, nothing is told at all.
    Does not guarantee: anything if the answers or the cut depend on other people's rows; for a second call,
    which is a second release; or less than ε for rows closer than B: across the cut a best guess is right
    with e^ε/(1 + e^ε) however close two rows are.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> bits = Decision(B=2, epsilon=4).decide([True] * 900 + [False] * 100, rng=rng)
        >>> int(bits.sum())
        889
        >>> Decision(B=0.25, epsilon=4, score=[3.0, 4.0]).law().agreement([0.0, 0.26, 0.51]).round(6)
        array([0.982014, 0.999671, 0.999994])
    """

    claimed: Guarantee
    score: RowScore | None
    programs: int

    def __init__(self, *, B: float, epsilon: float, score: Any = None, programs: int = 1) -> None:
        claimed = claim(B, epsilon, 0.0, pure=True)
        if score is None and claimed.B < 2:
            raise ValueError(
                f"B = {claimed.B!r} needs a score that moves no more than rows do: give weights or an "
                "AdditiveScore, or B = 2, where any function of the one row will do"
            )
        if score is not None and not isinstance(score, RowScore):
            score = LinearScore.of(weights_matrix(score, "score"), B=claimed.B)
        object.__setattr__(self, "claimed", claimed)
        object.__setattr__(self, "score", score)
        object.__setattr__(self, "programs", programs)
        self.law()

    @property
    def guarantee(self) -> Guarantee:
        """What one call guarantees: δ is 0."""
        return self.claimed

    def law(self) -> DecisionLaw:
        """The chances of all answers."""
        cells = None if self.score is None else Cells.hiding(self.claimed.B, self.score)
        return DecisionLaw(self.claimed.epsilon, self.programs, cells)

    def privacy_loss(self, *, distance: float) -> PrivacyLoss:
        """The loss between two tables whose one different row moves by a distance.

        Args:
            distance: How far the row moves, in (0, 2].

        Returns:
            The loss, from which ε follows for every δ.
        """
        return self.law().privacy_loss(distance)

    def loss_between(self, distance: float, dimensions: int) -> PrivacyLoss:
        """See `Mechanism.loss_between`."""
        return self.law().loss_between(distance, dimensions)

    def decide(self, answers: Any, rng: np.random.Generator | None = None) -> Bits:
        """Draw bits for people whose true answers are known, at B = 2.

        Args:
            answers: A boolean for each person, or a row of booleans with one for each program.
            rng: None for a release; a generator for a simulation.

        Returns:
            As many booleans.

        Raises:
            TypeError: The answers are not booleans.
            ValueError: B is below 2, or the shape does not fit.
        """
        law = self.law()
        if self.claimed.B < 2:
            raise ValueError(
                f"B = {self.claimed.B!r}: answers alone do not tell cells; give rows to decide_rows"
            )
        try:
            given = np.asarray(answers)
        except ValueError as error:
            raise ValueError("answers have rows of different lengths: give each as many booleans") from error
        if given.dtype != np.bool_:
            raise TypeError(f"answers of type {given.dtype} must be booleans: True is yes")
        if given.ndim == 2:
            return law.decide_together(given, word_stream(rng))
        if given.ndim != 1 or law.programs > 1:
            raise ValueError(f"answers of shape {given.shape}: give a column for each of {law.programs}")
        return law.decide(given.astype(np.int64) - 1, word_stream(rng))

    def decide_rows(self, X: Any, *, cut: float, rng: np.random.Generator | None = None) -> Bits:
        """Draw a bit for each row: whether its score is at most the cut.

        Args:
            X: n rows of d columns; they are clipped to the unit ball here.
            cut: From −2 to 2; it must not depend on the rows.
            rng: None for a release; a generator for a simulation.

        Returns:
            A boolean for each row.

        Raises:
            ValueError: There is no score, X does not fit it, or the cut is outside its range.
        """
        law = self.law()
        if law.cells is None:
            raise ValueError("there is no score: give answers to decide, or make Decision with score=")
        return law.decide(law.cells.of_rows(X, cut), word_stream(rng))

"""Cells of a score: how far from a cut somebody is, in whole numbers, so that rounding is known.

Scores and cuts are whole numbers of steps of 2⁻⁵⁰, and a cell is a whole-number division: rows within B are
never two cells apart (`docs/noise.md`, section 6).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from targetdp._core import Floats, Integers, check
from targetdp.mechanisms._decide._score import RowScore
from targetdp.normalization import clip_rows

STEPS = 2**50
"""Of the grid, from 0 to 1: whole numbers below 2⁵³, so that floats hold them exactly."""

_FARTHEST_CUT = 2.0


@dataclass(frozen=True)
class Cells:
    """Which cell a row's score is in: how far from a cut, in whole widths, and on which side.

    Args:
        score: Moves by no more than a row does.
        width: Of a cell, in steps of 2⁻⁵⁰.

    Raises:
        ValueError: The width is outside its range.

    Example:
        >>> from targetdp.mechanisms import LinearScore
        >>> cells = Cells.hiding(0.25, LinearScore((1.0,)))
        >>> cells.of_rows([[-0.6], [-0.1], [0.1], [0.6]], cut=0.0)
        array([ 2,  0, -1, -3])
        >>> cells.apart(0.25), cells.apart(0.26), cells.apart(2.0)
        (1, 2, 8)
    """

    score: RowScore
    width: int

    def __post_init__(self) -> None:
        check.instance("score", self.score, RowScore)
        width = check.integer("width", self.width, at_least=1, at_most=4 * STEPS)
        object.__setattr__(self, "width", width)

    @classmethod
    def hiding(cls, B: float, score: RowScore) -> "Cells":
        """The narrowest cells of which rows within B are never two apart.

        Args:
            B: The distance that is hidden, in (0, 2].
            score: Moves by no more than a row does.

        Returns:
            The cells; at B = 2 there is one on each side.
        """
        check.instance("score", score, RowScore)
        return cls(score, _steps_apart(check.distance(B, "B"), score))

    def of_scores(self, scores: Floats, cut: float | Floats) -> Integers:
        """The cell of each score.

        Args:
            scores: As `RowScore.of_rows` makes them, of rows as `clip_rows` leaves them: one for each person,
                or several (people by scores).
            cut: From −2 to 2; or one for each person, that depends on nobody's row.

        Returns:
            Whole numbers: yes from 0 up, no from −1 down.
        """
        cuts = _on_grid(_checked_cut(cut, len(scores)), 2)
        return self.of_steps(steps_of(scores), cuts[:, None] if cuts.ndim and scores.ndim > 1 else cuts)

    def of_steps(self, scores: Integers, cut: int | Integers) -> Integers:
        """The same of scores and a cut in whole steps of the grid."""
        return np.asarray((cut - scores) // self.width)

    def of_rows(self, X: Any, cut: float | Floats) -> Integers:
        """The cell of each row, which is clipped to the unit ball here."""
        return self.of_scores(self.score.of_rows(clip_rows(check.table(X))), cut)

    def at_distances(self, distances: Floats) -> Integers:
        """The cell of a yes that is so far from the cut, in units of the score."""
        return np.asarray(np.floor(np.minimum(distances, 2.0) * STEPS).astype(np.int64) // self.width)

    def apart(self, distance: float) -> int:
        """How many cells apart two rows at a distance can be, at most."""
        return -(-min(_steps_apart(distance, self.score), 2 * STEPS) // self.width)

    @property
    def on_a_side(self) -> int:
        """How many cells there are on each side of a cut; whoever is farther away is in the last."""
        return -(-2 * STEPS // self.width)

    def record(self) -> dict[str, Any]:
        """The cells as plain data."""
        return {"score": self.score.record(), "width": self.width}


def steps_of(scores: Floats) -> Integers:
    """Scores in whole steps of 2⁻⁵⁰.

    Args:
        scores: From −1 to 1; what is beyond is at the end, and no number at all is the highest, a no.

    Returns:
        A whole number for each.

    Example:
        >>> steps_of(np.array([0.5, float("nan")])).tolist() == [2**49, 2**50]
        True
    """
    return _on_grid(scores, 1)


def _steps_apart(distance: float, score: RowScore) -> int:
    """How many steps apart two scores are at most: rounding to the grid is monotone and adds one at most."""
    return math.floor((Fraction(distance) + Fraction(score.rounding)) * STEPS) + 1


def _on_grid(values: float | Floats, farthest: int) -> Integers:
    """Whole steps. Times a power of two is exact; no number at all is the highest, which is a no."""
    inside = np.fmax(np.fmin(values, farthest), -farthest)
    return np.asarray(np.rint(inside * STEPS)).astype(np.int64)


def _checked_cut(cut: float | Floats, people: int) -> float | Floats:
    if isinstance(cut, np.ndarray) and cut.ndim:
        if cut.shape != (people,):
            raise ValueError(
                f"cut has shape {cut.shape}: give one number in [-2, 2], or one for each of {people:,} people"
            )
        found = check.vector("cut", cut, length=people)
        if np.abs(found).max(initial=0.0) > _FARTHEST_CUT:
            raise ValueError("a cut is outside [-2, 2]: scores are from −1 to 1")
        return found
    return check.number("cut", cut, at_least=-_FARTHEST_CUT, at_most=_FARTHEST_CUT)

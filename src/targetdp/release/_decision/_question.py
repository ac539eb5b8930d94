"""A decision as it is taken: the score of a row in whole steps, and the cut on the same scale.

Below B = 2 a score is of rows in the unit ball, and moves no more than they do. At B = 2 it may be any
function of the one row: of columns as they are, where a value that is missing, or a model without an answer,
is the fixed answer no.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from targetdp._core import Floats, Integers
from targetdp.mechanisms import STEPS, AdditiveScore, DecisionLaw, LinearScore, RowScore, steps_of
from targetdp.release._decision._asked import AskedDecision, Curve
from targetdp.release._decision._bits import Rule
from targetdp.release._decision._cuts import CutRule, ExpectedShares
from targetdp.release._policy import CLASSIC

_NO_ANSWER = 3 * STEPS
"""Above every cut: a no."""
_ROOM = 4
"""How many times as wide as the expected cuts the grid is: people may be spread otherwise than expected."""


@dataclass(frozen=True)
class Question:
    """What is asked about each person.

    Args:
        asked: The decision, in the words of the request.
        score: Of rows in the unit ball, below B = 2; None where it is of columns as they are.
    """

    asked: AskedDecision
    score: RowScore | None

    @classmethod
    def of(cls, asked: AskedDecision, B: float) -> "Question":
        """The question that a request means at a distance.

        Raises:
            ValueError: It cannot be asked below B = 2, or its numbers are too near each other.
        """
        made = cls(asked, None if B == CLASSIC else _unit_score(asked, B))
        if asked.cut is None or made.score is not None:
            made._place  # noqa: B018 (whether floats hold all cuts)
        made.expected  # noqa: B018 (whether cuts can be told apart on the grid)
        return made

    def fits(self, score: RowScore, B: float) -> bool:
        """Whether a score on record is the one that was asked for at a distance, up to its rounding."""
        own = _unit_score(self.asked, B)
        if isinstance(own, LinearScore) and isinstance(score, LinearScore):
            return _close(own.weights, score.weights)
        if isinstance(own, AdditiveScore) and isinstance(score, AdditiveScore):
            pairs = zip(own.values, score.values, strict=True)
            return own.knots == score.knots and all(_close(a, b) for a, b in pairs)
        return False

    def steps_of_columns(self, columns: Mapping[str, Floats]) -> Integers:
        """The score of each person from columns as they are, at B = 2; no model's."""
        return self.placed(self.asked.scores_of(columns))

    def placed(self, scores: Floats) -> Integers:
        """Scores in the units of the request, or of a model, in whole steps; whoever has none is a no."""
        asked, signed = self.asked, self.asked.sign * scores
        if asked.cut is not None and self.score is None:
            return np.where(signed <= asked.sign * asked.cut, 0, 1)
        middle, size = (float(part) for part in self._place)
        with np.errstate(all="ignore"):
            return np.where(np.isnan(scores), _NO_ANSWER, steps_of((signed - middle) / size))

    @cached_property
    def _place(self) -> tuple[Fraction, Fraction]:
        """What is subtracted from a score, whose yes is below, and what it is divided by."""
        if self.score is not None:
            return self._within_floats(*_as_normalized(self.asked, self.score))
        cuts = [self.asked.sign * cut for cut, _ in self.asked.expected or ()]
        # Of floats, since scores are placed in floats: exactly these numbers are then fractions.
        low, high = min(cuts), max(cuts)
        middle, size = (low + high) / 2, _ROOM * (high - low) / 2
        if not (math.isfinite(middle) and math.isfinite(size)):
            raise self._beyond_floats()
        return self._within_floats(Fraction(middle), Fraction(size))

    def _within_floats(self, middle: Fraction, size: Fraction) -> tuple[Fraction, Fraction]:
        """A place on which every cut that bits can make has a number: no release ends at its page."""
        if abs(middle) + 2 * abs(size) > Fraction(sys.float_info.max):
            raise self._beyond_floats()
        return middle, size

    def _beyond_floats(self) -> ValueError:
        what = "expected" if self.asked.cut is None else "the score"
        return ValueError(
            f"{self.asked.name}: {what} has cuts beyond what floats hold: divide the score by something"
        )

    @cached_property
    def expected(self) -> ExpectedShares | None:
        """What is expected, on the grid; None where the cut is known."""
        if self.asked.expected is None:
            return None
        pairs = sorted((self.asked.sign * cut, share) for cut, share in self.asked.expected)
        cuts = tuple(self._on_grid(cut) for cut, _ in pairs)
        if len({*cuts}) < len(cuts):
            lie = "" if self.score is None else ", within what scores of scaled rows can be"
            raise ValueError(
                f"{self.asked.name}: expected has cuts that cannot be told apart from each other: give them "
                f"farther apart{lie}"
            )
        return ExpectedShares(cuts, tuple(Fraction(share) for _, share in pairs))

    def rule(self, law: DecisionLaw) -> Rule:
        """How the cut of each batch follows from bits; or the cut, where it is known."""
        if self.expected is not None and self.asked.share is not None:
            width = None if law.cells is None else law.cells.width
            return CutRule(self.expected, Fraction(self.asked.share), law.marginal_table, width)
        if self.score is None or self.asked.cut is None:
            return 0
        return self._on_grid(self.asked.sign * self.asked.cut)

    def in_own_units(self, steps: int) -> float:
        """A cut on the grid in the units of the request."""
        if self.asked.cut is not None:
            return self.asked.cut
        middle, size = self._place
        return float((Fraction(steps, STEPS) * size + middle) * self.asked.sign)

    def _on_grid(self, cut: float) -> int:
        middle, size = self._place
        return max(-2 * STEPS, min(2 * STEPS, round((Fraction(cut) - middle) / size * STEPS)))


def _close(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return len(one) == len(other) and bool(np.allclose(one, other, rtol=1e-9, atol=1e-12))


def _unit_score(asked: AskedDecision, B: float) -> RowScore:
    """A score that moves no more than rows do, and whose yes is below the cut."""
    try:
        if asked.weights is not None:
            return LinearScore.of([asked.sign * weight for weight in asked.weights.values()], B=B)
        if asked.additive is not None:
            curves = asked.additive.values()
            signed = [[asked.sign * value for value in curve.values] for curve in curves]
            return AdditiveScore.of([curve.knots for curve in curves], signed)
    except ValueError as error:
        raise ValueError(f"{asked.name}: {error}") from error
    raise ValueError(
        f"{asked.name}: a model decides at B = 2 only, where any function of the one row is safe; ask for "
        f"B = 2, or give weights or additive for B = {B:g}"
    )


def _as_normalized(asked: AskedDecision, score: RowScore) -> tuple[Fraction, Fraction]:
    """What a score of the request is moved by, and divided by, where it moves no more than rows do."""
    zero, sign = Fraction(0), asked.sign
    if isinstance(score, LinearScore):
        given = [sign * weight for weight in (asked.weights or {}).values()]
        pairs = [(Fraction(a), Fraction(b)) for a, b in zip(given, score.weights, strict=True)]
        middle = zero
    elif isinstance(score, AdditiveScore):
        curves = list((asked.additive or {}).values())
        at_zero = [_at_zero(curve) for curve in curves]
        middle = sign * sum(at_zero, zero)
        pairs = [
            (sign * (Fraction(value) - at), Fraction(made))
            for curve, at, column in zip(curves, at_zero, score.values, strict=True)
            for value, made in zip(curve.values, column, strict=True)
        ]
    else:
        raise TypeError(f"{type(score).__name__} is no score of a request: please report this")
    before, after = max(pairs, key=lambda pair: abs(pair[0]))
    if after == 0:
        raise ValueError(f"{asked.name}: the score on record is not the one that was asked for")
    return middle, before / after


def _at_zero(curve: Curve) -> Fraction:
    """The value of a curve at 0, exactly."""
    knots, values = [Fraction(x) for x in curve.knots], [Fraction(y) for y in curve.values]
    if knots[0] >= 0:
        return values[0]
    if knots[-1] <= 0:
        return values[-1]
    at = next(place for place, knot in enumerate(knots) if knot > 0)
    rise = (values[at] - values[at - 1]) / (knots[at] - knots[at - 1])
    return values[at - 1] - rise * knots[at - 1]

"""What a release's noise means for two people at any distance: the exact ε there, and the best guess."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from targetdp._core import Floats
from targetdp.guarantee import Guarantee
from targetdp.theorem1 import agreement_by_distance
from targetdp.tradeoff._technology import Cell, Randomness

DISTANCES = (0.1, 0.5, 1.0, 2.0)
_BETWEEN = tuple(i / 20 for i in range(41))
_UP_TO_B = 10
"""Where the best guess is computed too, and in how many steps up to B. Between these the page draws the
higher end: the curve rises, so that it never shows less than an attacker can do."""


@dataclass(frozen=True)
class CurvePoint:
    """What the noise means for two people this far apart.

    ``epsilon`` is exact at the release's δ, None where no finite one holds or none was computed. ``guess`` is
    the largest probability with which anybody can tell which of the two a row belongs to; a coin has ½.
    """

    distance: float
    epsilon: float | None
    guess: float


def at_distances(cell: Cell, dimensions: int) -> tuple[CurvePoint, ...]:
    """The curve of a cell with noise, B among its distances; empty for a cell without a guarantee.

    Where people get different noises (a score's do), the worse counts at each distance.

    Args:
        cell: A cell of a sweep.
        dimensions: How many columns are released.

    Returns:
        Points from distance 0 to 2.

    Example:
        >>> curve = at_distances(Cell("mine", "gaussian", B=0.25, epsilon=1.0, delta=1e-5), 3)
        >>> curve[0].guess, curve[-1].distance
        (0.5, 2.0)
    """
    promise, noises = cell.guarantee, cell.noises(dimensions)
    if promise is None or not noises:
        return ()
    in_steps = cell.technology.fewest_numbers(dimensions) == 1
    return tuple(_curve(noises, dimensions, promise.delta, promise.B, in_steps=in_steps))


def _curve(
    noises: Iterable[Randomness], dimensions: int, delta: float, B: float, *, in_steps: bool
) -> Iterable[CurvePoint]:
    whole = {*DISTANCES, B, *(_up_to(B) if in_steps else ())}
    yield CurvePoint(0.0, 0.0, 0.5)  # the same row: nobody can tell
    for distance in sorted({*whole, *_BETWEEN, *_up_to(B)} - {0.0}):
        losses = [noise.loss_between(distance, dimensions) for noise in noises]
        epsilon = max(loss.epsilon(delta) for loss in losses) if distance in whole else None
        yield CurvePoint(
            distance,
            epsilon if epsilon is None or math.isfinite(epsilon) else None,
            max(loss.best_guess() for loss in losses),
        )


def _up_to(B: float) -> tuple[float, ...]:
    """Steps up to twice B; the staircase's curves jump there."""
    return tuple(min(2.0, B * i / _UP_TO_B) for i in range(1, 2 * _UP_TO_B + 1))


# What no algorithm can do, as a picture: agreement with today's decisions over the distance from the cut.

CELLS = 5
"""How far from the cut curves go, in units of B."""


def agreement(promise: Guarantee) -> list[tuple[float, float]]:
    """How often decisions can agree with today's, by distance from the cut (`agreement_by_distance`).

    No two rows are farther apart than 2, so that a large B has few cells.

    Args:
        promise: What a release promises.

    Returns:
        Distances in units of B, and the highest agreement from each of them on; the last ends the curve.

    Example:
        >>> print(*(at for at, _ in agreement(Guarantee(1.0, 1.0))))
        0.0 1.0 2.0
    """
    inside = [k for k in range(CELLS) if k * promise.B < 2]
    shares = agreement_by_distance(promise, [k * promise.B for k in inside])
    return [*zip(map(float, inside), shares, strict=True), (min(CELLS, 2 / promise.B), shares[-1])]


# Two invented people whose released rows lie B apart, in the columns' own units. Never a real row.
#
# The first is as far from the center as people usually are: one unit of scale above it in every column. A row
# like hers is longer than 1 and is shortened to length 1 before noise is added. The second differs from her
# in as few columns as will do, by so much that the two rows *after clipping* are exactly B apart: that is the
# distance of which the guarantee speaks.

_DIFFERING = 3
"""Columns in which the second person differs: a few are easier to read than all."""


@dataclass(frozen=True)
class Trait:
    """One column: both people's values, and a difference in this column *alone* that is always within B."""

    name: str
    one: float
    other: float
    alone: float

    @property
    def told(self) -> list[str]:
        """All three with the digits that matter beside B, which is cut and never rounded up."""
        digits = min(12, max(0, 2 - math.floor(math.log10(self.alone or 1.0))))
        cut = math.floor(self.alone * 10**digits + 1e-9) / 10**digits
        return [_plain(value, digits) for value in (self.one, self.other, cut)]


def _plain(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if digits else text
    return text.replace("-", "−" if any(c in "123456789" for c in text) else "")


def profiles(features: Sequence[str], scales: Mapping[str, Any] | None, B: float) -> tuple[Trait, ...] | None:
    """Two typical people whose rows are B apart after clipping; None where scales are not known or not told.

    Rows of the unit ball are never farther apart after clipping than before, so that a difference of B units
    of scale in one column alone is within B for any two people.

    Args:
        features: Names of the columns.
        scales: The record of a sweep's scales.
        B: How far apart their released rows are.

    Returns:
        A trait for each column, or None.

    Example:
        >>> (trait,) = profiles(["calls"], {"center": [40.0], "scale": [20.0]}, 0.3)
        >>> trait.told
        ['60', '54', '6']
    """
    if scales is None or "center" not in scales:
        return None
    one, other = _rows_apart(len(features), B)
    return tuple(
        Trait(name, middle + x * unit, middle + y * unit, B * unit)
        for name, middle, unit, x, y in zip(
            features, scales["center"], scales["scale"], one, other, strict=True
        )
    )


@cache
def _rows_apart(columns: int, B: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Two rows in units of scale, before clipping, that are B apart after it."""
    row = np.ones(columns)
    # Whoever is mirrored in m of d columns is 2√(m/d) away, so that so many are enough for B.
    m = max(1, min(_DIFFERING, columns - 1), math.ceil(columns * B * B / 4 - 1e-9))
    begin, end = 0.0, 2.0  # how far of the way to her mirror image, and back: the distance only grows
    moved = row.copy()
    for _ in range(60):
        middle = (begin + end) / 2
        moved[:m] = 1 - middle
        begin, end = (begin, middle) if math.dist(_clipped(row), _clipped(moved)) > B else (middle, end)
    moved[:m] = 1 - end
    return tuple(row.tolist()), tuple(moved.tolist())


def _clipped(row: Floats) -> Floats:
    return row / max(1.0, float(np.linalg.norm(row)))

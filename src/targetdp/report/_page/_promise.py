"""What a release's noise means for two people at any distance: the exact ε there, and the best guess."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from targetdp.guarantee import Guarantee
from targetdp.mechanisms import NoiseMechanism
from targetdp.theorem1 import accuracy_ceiling
from targetdp.tradeoff import Cell

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
    """
    promise, noises = cell.guarantee, cell.noises(dimensions)
    if promise is None or not noises:
        return ()
    in_steps = cell.technology.fewest_numbers(dimensions) == 1
    return tuple(_curve(noises, dimensions, promise.delta, promise.B, in_steps=in_steps))


def _curve(
    noises: Iterable[NoiseMechanism], dimensions: int, delta: float, B: float, *, in_steps: bool
) -> Iterable[CurvePoint]:
    whole = {*DISTANCES, B, *(_up_to(B) if in_steps else ())}
    yield CurvePoint(0.0, 0.0, 0.5)  # the same row: nobody can tell
    for distance in sorted({*whole, *_BETWEEN, *_up_to(B)} - {0.0}):
        losses = [noise.privacy_loss(distance=distance, dimensions=dimensions) for noise in noises]
        epsilon = max(loss.epsilon(delta) for loss in losses) if distance in whole else None
        yield CurvePoint(
            distance,
            epsilon if epsilon is None or math.isfinite(epsilon) else None,
            max(loss.best_guess() for loss in losses),
        )


def _up_to(B: float) -> tuple[float, ...]:
    """Steps up to twice B; the staircase's curves jump there."""
    return tuple(min(2.0, B * i / _UP_TO_B) for i in range(1, 2 * _UP_TO_B + 1))


# Theorem 1 as a picture: the highest worst-case agreement γ with today's decisions, over B and ε.

_MOST_STEPS = 40
"""The ceiling depends on B through ⌈2/B⌉ only: the curve has a corner at every B = 2/m."""

SMALLEST = 2 / _MOST_STEPS
"""Where curves begin, unless a sweep has a smaller B."""

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


def ceiling_curves(delta: float, smallest: float = SMALLEST) -> list[dict[str, Any]]:
    """The corners of one curve for each of a few ε, at one δ, from a small B to 2."""
    return [
        {
            "B": 2 / m,
            "epsilon": f"{epsilon:g}",
            "ceiling": accuracy_ceiling(Guarantee(2 / m, epsilon, delta)),
        }
        for epsilon in EPSILONS
        for m in (*_many_steps(smallest), *range(_MOST_STEPS, 0, -1))
    ]


def _many_steps(smallest: float) -> list[int]:
    """Below the usual range corners are too close to be seen: some do. Between two the upper one is drawn."""
    many = math.ceil(2 / smallest)
    if many <= _MOST_STEPS:
        return []
    share = (many / _MOST_STEPS) ** (1 / _MOST_STEPS)
    between = {round(_MOST_STEPS * share**i) for i in range(1, _MOST_STEPS)}
    return sorted({many, *between} - {_MOST_STEPS}, reverse=True)


# Two invented people who lie B apart, in the columns' own units. Never a real row.
#
# The first has the center of every column: an invented, average person, who sits in the middle of the unit
# ball. The second differs from her by exactly B, spread evenly over a few columns. Rows inside the ball are
# not clipped, so that their distance is the one that the guarantee speaks of.

_DIFFERING = 3
"""Columns in which the second person differs: a few are easier to read than all."""


@dataclass(frozen=True)
class Trait:
    """One column: both people's values, and how far apart in that column *alone* two people are at B."""

    name: str
    one: float
    other: float
    alone: float


def profiles(features: Sequence[str], scales: Mapping[str, Any] | None, B: float) -> tuple[Trait, ...] | None:
    """Two people B apart; None where the scales are not known, or must not be told, or B reaches too far.

    Both must lie in the unit ball: the first is its center, so B may be at most 1. For a larger B the two
    stand on opposite sides of the center.
    """
    if scales is None or "center" not in scales:
        return None
    center, scale = scales["center"], scales["scale"]
    differing = min(_DIFFERING, len(features))
    step = B / math.sqrt(differing)
    # Up to B = 1 one of them is the average person; beyond that, each is half the way from her.
    begin, end = (0.0, step) if B <= 1 else (-step / 2, step / 2)
    return tuple(
        Trait(
            name,
            middle + (begin if i < differing else 0.0) * unit,
            middle + (end if i < differing else 0.0) * unit,
            B * unit,
        )
        for i, (name, middle, unit) in enumerate(zip(features, center, scale, strict=True))
    )

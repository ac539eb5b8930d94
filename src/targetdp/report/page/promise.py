"""What a release's noise means for two people at any distance: the exact ε there, and the best guess."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from targetdp.mechanisms import NoiseMechanism
from targetdp.programs.file import TWO_ROUNDS
from targetdp.tradeoff.grid import Cell

DISTANCES = (0.1, 0.5, 1.0, 2.0)
_BETWEEN = tuple(i / 20 for i in range(41))
_UP_TO_B = 10
"""Where the best guess is computed too, and in how many steps up to B. Between these the page draws the
higher end: the curve rises, so that it never shows less than an attacker can do."""


@dataclass(frozen=True)
class AtDistance:
    """What the noise means for two people this far apart.

    ``epsilon`` is exact at the release's δ, None where no finite one holds or none was computed. ``guess`` is
    the largest probability with which anybody can tell which of the two a row belongs to; a coin has ½.
    """

    distance: float
    epsilon: float | None
    guess: float


def at_distances(cell: Cell, dimensions: int) -> tuple[AtDistance, ...]:
    """The curve of a cell with noise, B among its distances; empty for a cell without a guarantee.

    Of two rounds the worse counts at each distance: inside the sample, or outside it.
    """
    promise, noises = cell.guarantee, cell.noises(dimensions)
    if promise is None or not noises:
        return ()
    in_steps = dimensions == 1 or cell.mechanism == TWO_ROUNDS
    return tuple(_curve(noises, dimensions, promise.delta, promise.B, in_steps=in_steps))


def _curve(
    noises: Iterable[NoiseMechanism], dimensions: int, delta: float, B: float, *, in_steps: bool
) -> Iterable[AtDistance]:
    whole = {*DISTANCES, B, *(_up_to(B) if in_steps else ())}
    yield AtDistance(0.0, 0.0, 0.5)  # the same row: nobody can tell
    for distance in sorted({*whole, *_BETWEEN, *_up_to(B)} - {0.0}):
        losses = [noise.privacy_loss(distance=distance, dimensions=dimensions) for noise in noises]
        epsilon = max(loss.epsilon(delta) for loss in losses) if distance in whole else None
        yield AtDistance(
            distance,
            epsilon if epsilon is None or math.isfinite(epsilon) else None,
            min(1.0, (1 + max(loss.delta(0.0) for loss in losses)) / 2),
        )


def _up_to(B: float) -> tuple[float, ...]:
    """Steps up to twice B; the staircase's curves jump there."""
    return tuple(min(2.0, B * i / _UP_TO_B) for i in range(1, 2 * _UP_TO_B + 1))

"""Two invented people who lie B apart, in the columns' own units. Never a real row.

The first has the center of every column: an invented, average person, who sits in the middle of the unit
ball. The second differs from her by exactly B, spread evenly over a few columns. Rows inside the ball are not
clipped, so that their distance is the one that the guarantee speaks of.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

"""Theorem 1 as a picture: the highest worst-case agreement γ with today's decisions, over B and ε."""

import math
from typing import Any

from targetdp.conditions import accuracy_ceiling
from targetdp.guarantee import Guarantee

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

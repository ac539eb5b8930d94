"""Theorem 1 as a picture: the highest worst-case agreement γ with today's decisions, over B and ε."""

from typing import Any

from targetdp.conditions import accuracy_ceiling
from targetdp.guarantee import Guarantee

_MOST_STEPS = 40
"""The ceiling depends on B through ⌈2/B⌉ only: the curve has a corner at every B = 2/m."""

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


def ceiling_curves(delta: float) -> list[dict[str, Any]]:
    """The corners of one curve for each of a few ε, at one δ, from small B to large."""
    return [
        {
            "B": 2 / m,
            "epsilon": f"{epsilon:g}",
            "ceiling": accuracy_ceiling(Guarantee(2 / m, epsilon, delta)),
        }
        for epsilon in EPSILONS
        for m in range(_MOST_STEPS, 0, -1)
    ]

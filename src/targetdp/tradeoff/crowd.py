"""What each B of a grid means on the table: how many others look alike there.

It is a statistic of the original rows, like everything else of a sweep, and carries the sweep's mark.
"""

from collections.abc import Iterable

import numpy as np

from targetdp.attacks.neighborhood import neighborhood
from targetdp.tradeoff.figure import Figure
from targetdp.typing import Floats

CROWD = "crowd"
"""The metric; its settings are ``typical`` (the median number of others within B), ``alone`` (the share of
people who have nobody there) and ``looked_at`` (of how many people that was counted)."""

_LOOKED_AT = 5_000
"""People of a large table for whom others are counted, among everyone."""


def crowds(X: Floats, distances: Iterable[float]) -> dict[float, tuple[Figure, ...]]:
    """For each distance what it means; always the same for the same rows."""
    found: dict[float, tuple[Figure, ...]] = {}
    for B in distances:
        if B not in found:
            around = neighborhood(X, B, people=min(_LOOKED_AT, len(X)), rng=np.random.default_rng(0))
            found[B] = (
                Figure(CROWD, "typical", around.typical),
                Figure(CROWD, "alone", around.alone),
                Figure(CROWD, "looked_at", float(len(around.crowd))),
            )
    return found

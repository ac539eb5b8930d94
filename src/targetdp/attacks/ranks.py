"""How far down a list of candidates the right one is: a list sorted by distance, ties in random order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from targetdp import check
from targetdp.attacks.counting import count_within, squared_distances
from targetdp.attacks.intervals import share_interval
from targetdp.attacks.protection import Interval, Setting
from targetdp.progress import Progress
from targetdp.typing import Floats, Integers


@dataclass(frozen=True)
class Ranks:
    """For each person how many candidates come ``before`` the right one, and how many are ``tied`` with it.

    The right one is among the tied. Where more come before it than anybody asks for, counting stopped.
    """

    before: Integers
    tied: Integers

    def found(self, rank: int) -> Floats:
        """For each person the chance that the right one is among the first so many."""
        return np.clip((rank - self.before) / self.tied, 0.0, 1.0)


def nearest_ranks(queries: Floats, points: Floats, most: int, progress: Progress) -> Ranks:
    """Ranks by distance, where point i is the right one for query i; counted to ``most``."""
    squared = squared_distances(points, queries)
    before, tied = count_within(points, queries, squared, limit=most - 1, progress=progress)
    return Ranks(before, np.maximum(tied, 1))  # where counting stopped, the right one may not have been met


def checked_ranks(ranks: Any) -> tuple[int, ...]:
    """Ranks that somebody asks for, 1 always among them."""
    given = check.several("ranks", ranks, "give ranks such as (1, 10)")
    return tuple(sorted({1, *(check.integer("ranks", rank, at_least=1, at_most=10**9) for rank in given)}))


def setting_of(found: Floats, doubt: float, together: int = 1) -> Setting:
    """Protection from being the first of the list.

    Where people are found or missed ``together``, only so many of them count for the interval.
    """
    low, high = _interval(found, doubt, together)
    return Setting(1 - float(found.mean()), (1 - high, 1 - low))


def _interval(found: Floats, doubt: float, together: int) -> Interval:
    people = max(1, len(found) // together)
    return share_interval(float(found.mean()) * people, people, doubt)


def shares(found: Mapping[int, Floats], candidates: int, doubt: float, together: int = 1) -> dict[str, Any]:
    """For each rank the share of people found, its interval, and what guessing would find."""
    return {
        f"rank_{rank}": {
            "share": float(each.mean()),
            "interval": _interval(each, doubt, together),
            "chance": min(1.0, rank / candidates),
        }
        for rank, each in found.items()
    }

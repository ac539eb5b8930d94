"""Before a release: what a guarantee rules out, what noise it needs, and what it means at other distances.

Depends on the numbers asked for only, never on data, so planning costs no privacy.
"""

import math
from dataclasses import dataclass

from targetdp._core import check
from targetdp.guarantee import Guarantee
from targetdp.mechanisms._choice import Choice, least_noise
from targetdp.theorem1 import accuracy_ceiling, is_ruled_out, largest_B

PAPER_GRID = (0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0)
"""The values of B in the paper's parameter grid (Methods, Constructing TDP datasets)."""

DISTANCES = (0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0)

DROWNED = 1.0
"""Rows have length at most 1: noise that is typically longer than this is louder than any row."""


@dataclass(frozen=True)
class Ceiling:
    """Theorem 1 at one B: the highest worst-case agreement γ that any algorithm can reach."""

    B: float
    ceiling: float
    ruled_out: bool


@dataclass(frozen=True)
class Plan:
    """What a data holder and an official should know before anything is released.

    ``noise_length`` is the typical length of the noise on a whole row, where rows have length at most 1.
    ``epsilon_at`` maps distances to the true ε of the chosen mechanism at the plan's δ; ``guess_at`` to the
    probability that the best guess is right, which of two equally likely rows so far apart a person has.
    """

    accuracy: float
    guarantee: Guarantee
    dimensions: int
    largest_B: float
    ceilings: tuple[Ceiling, ...]
    choice: Choice
    noise_length: float
    epsilon_at: dict[float, float]
    guess_at: dict[float, float]
    warnings: tuple[str, ...]


def plan(
    *, accuracy: float, epsilon: float, delta: float, B: float | None = None, dimensions: int = 10
) -> Plan:
    """Work out a plan. Without B it takes the largest of the paper's grid that Theorem 1 leaves possible."""
    d = check.dimensions(dimensions)
    most = largest_B(accuracy=accuracy, epsilon=epsilon, delta=delta)
    ceilings = tuple(
        Ceiling(g.B, accuracy_ceiling(g), is_ruled_out(g, accuracy))
        for g in (Guarantee(b, epsilon, delta) for b in PAPER_GRID)
    )
    possible = [c.B for c in ceilings if not c.ruled_out]
    chosen = B if B is not None else max(possible, default=PAPER_GRID[0])
    guarantee = Guarantee(chosen, epsilon, delta)
    choice = least_noise(guarantee, d)
    mechanism = choice.mechanism
    stated_delta = mechanism.guarantee.delta
    length = choice.noise[choice.name] * math.sqrt(d)
    losses = {r: mechanism.privacy_loss(distance=r, dimensions=d) for r in DISTANCES}
    return Plan(
        accuracy=accuracy,
        guarantee=mechanism.guarantee,
        dimensions=d,
        largest_B=most,
        ceilings=ceilings,
        choice=choice,
        noise_length=length,
        epsilon_at={r: loss.epsilon(max(delta, stated_delta)) for r, loss in losses.items()},
        guess_at={r: (1 + loss.delta(0.0)) / 2 for r, loss in losses.items()},
        warnings=_warnings(guarantee, accuracy, length, d),
    )


def _warnings(guarantee: Guarantee, accuracy: float, length: float, d: int) -> tuple[str, ...]:
    found = []
    if is_ruled_out(guarantee, accuracy):
        found.append(
            f"Theorem 1 rules out agreement of {accuracy:g} at B = {guarantee.B:g}: "
            f"at most {accuracy_ceiling(guarantee):.4f} is possible for every table"
        )
    if length > DROWNED:
        found.append(
            f"the noise on a row of {d} columns has length {length:.2g}, and rows at most 1: it "
            "drowns any one person's signal; release fewer columns, or release a score (learn on a "
            "private sample, then release one score per person); a smaller B or a larger ε protects less"
        )
    return tuple(found)

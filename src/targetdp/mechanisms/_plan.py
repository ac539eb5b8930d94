"""Before a release: which mechanism needs the least noise, and what a guarantee rules out and means.

Depends on the numbers asked for only, never on data, so planning costs no privacy.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

from targetdp._core import check, percent_up, up
from targetdp.guarantee import Guarantee
from targetdp.mechanisms._base import NEVER_QUIETEST, NoiseMechanism, noise_mechanisms
from targetdp.theorem1 import accuracy_ceiling, agreement_by_distance, is_ruled_out, smallest_epsilon

LEAST_NOISE = "least-noise"
"""What stands for whichever of these needs the least noise."""


COMPARED_COLUMNS = 200
"""Drawing a wider R takes seconds, for a comparison whose winner is known."""

_AS_GOOD = 0.001
"""A best guess that is right less often by no more than this is not called better."""


@dataclass(frozen=True)
class Choice:
    """The quietest mechanism for a guarantee, and what the others would need.

    Args:
        name: The mechanism's name.
        requested: The guarantee that was asked for.
        mechanism: The mechanism itself.
        dimensions: How many columns the table has.
        noise: For every mechanism that can give the guarantee, its deviation per coordinate.
        refused: For the others, why they cannot.
        possible: The mechanisms of ``noise`` themselves.

    Example:
        >>> choice = least_noise(Guarantee(B=0.25, epsilon=1, delta=1e-5), dimensions=10)
        >>> choice.noise["gaussian"] > choice.noise[choice.name]
        True
        >>> choice.best_guess["gaussian"] < choice.best_guess[choice.name]  # more noise tells less
        True
    """

    name: str
    requested: Guarantee
    mechanism: NoiseMechanism
    dimensions: int
    noise: dict[str, float]
    refused: dict[str, str]
    possible: dict[str, NoiseMechanism] = field(repr=False)

    @cached_property
    def best_guess(self) -> dict[str, float]:
        """For each mechanism of ``noise``, how often the best guess of any attacker is right at distance B.

        Two rows that far apart are equally likely, and the attacker knows all else. One and the same
        (B, ε, δ) leaves mechanisms far apart: the least noise is the easiest to see through.
        """
        return {
            name: mechanism.privacy_loss(distance=self.requested.B, dimensions=self.dimensions).best_guess()
            for name, mechanism in self.possible.items()
        }

    @property
    def why(self) -> str:
        """The choice in one sentence: which mechanism, how much noise, and what the others would need."""
        least = self.noise[self.name]
        louder = ", ".join(
            f"{name} {sd / least:.2f}×" for name, sd in sorted(self.noise.items(), key=lambda item: item[1])
            if name != self.name
        )  # fmt: skip
        refused = "; ".join(f"{name}: {reason}" for name, reason in self.refused.items())
        given = self.mechanism.guarantee
        weaker = f". Asked was δ = {self.requested.delta:.3g}; the sampler's tail allows {given.delta:.3g}"
        return (
            f"{self.name} needs the least noise for {given} on {self.dimensions} "
            f"column{'s' if self.dimensions > 1 else ''}: a deviation of {least:.4g} per coordinate"
            + (f"; the others would need {louder}" if louder else "")
            + (f" (not possible here: {refused})" if refused else "")
            + f". {self._guesses()}"
            + ("" if given.is_at_least(self.requested) else weaker)
        )

    def _guesses(self) -> str:
        """How often the best guess is right: by the choice, then by mechanisms that leave it less."""
        own = self.best_guess[self.name]
        less = sorted(
            (name for name, guess in self.best_guess.items() if guess < own - _AS_GOOD),
            key=self.best_guess.__getitem__, reverse=True,
        )  # fmt: skip
        others = ", ".join(f"with {name} in {percent_up(self.best_guess[name])}" for name in less)
        return (
            f"At distance B the best guess of any attacker is right in {percent_up(own)} of cases"
            + f"; {others}" * bool(others)
        )


def least_noise(guarantee: Guarantee, dimensions: int) -> Choice:
    """Pick the registered mechanism with the smallest noise for a guarantee on so many columns.

    The choice depends on the guarantee and the number of columns only, never on data.

    Args:
        guarantee: What is to be promised.
        dimensions: How many columns the table has.

    Returns:
        The mechanism, and what the others would need.

    Raises:
        ValueError: No mechanism can give the guarantee.

    Edges: no sampler is exactly pure. Asked for a δ below 2⁻⁹⁰, it gives 2⁻⁹⁰, and `Choice.why` says so.

    Example:
        >>> least_noise(Guarantee(B=0.25, epsilon=1, delta=1e-5), dimensions=10).name
        'spherical-laplace'
    """
    check.instance("guarantee", guarantee, Guarantee)
    d = check.dimensions(dimensions)
    built: dict[str, NoiseMechanism] = {}
    noise: dict[str, float] = {}
    refused: dict[str, str] = {}
    for name, build in noise_mechanisms().items():
        if d > COMPARED_COLUMNS and name in NEVER_QUIETEST:
            refused[name] = f"not compared beyond {COMPARED_COLUMNS} columns: never quieter than gaussian"
            continue
        try:
            mechanism = build(guarantee)
            noise[name] = mechanism.noise_sd(d)
            built[name] = mechanism
        except ValueError as error:
            refused[name] = str(error)
    if not noise:
        raise ValueError(f"no mechanism can give {guarantee}: {refused}")
    best = min(noise, key=noise.__getitem__)
    return Choice(best, guarantee, built[best], d, noise, refused, built)


# What a guarantee rules out, what noise it needs, and what it means at other distances.

PAPER_GRID = (0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0)
"""The values of B in the paper's parameter grid (Methods, Constructing TDP datasets)."""

DISTANCES = (0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0)

_CELLS = 5
"""Distances from the cut that are told, in units of B: farther away agreement may be practically certain."""

DROWNED = 1.0
"""Rows have length at most 1: noise that is typically longer than this is louder than any row."""


@dataclass(frozen=True)
class Plan:
    """What a data holder and an official should know before anything is released.

    Args:
        guarantee: What the chosen mechanism promises.
        dimensions: How many columns are released.
        ceiling: The highest worst-case agreement γ that any algorithm with this guarantee can have.
        agreement_at: For each distance from the cut (0, B, 2·B and so on), how often a decision can agree
            with today's from there on (`targetdp.agreement_by_distance`).
        accuracy: The agreement γ that the program wants, if it was said.
        ruled_out: Whether no algorithm can have it.
        smallest_epsilon: The ε that it takes, at any B.
        choice: The mechanism with the least noise.
        noise_length: The typical length of the noise on a whole row, where rows have length at most 1.
        epsilon_at: For each distance, the true ε of the chosen mechanism at the plan's δ.
        guess_at: For each distance, the probability that the best guess is right, which of two equally likely
            rows so far apart a person has.
        warnings: What speaks against this plan.

    Example:
        >>> found = plan(B=0.25, epsilon=1, delta=1e-5)
        >>> found.guess_at[0.05] < found.guess_at[2.0]
        True
    """

    guarantee: Guarantee
    dimensions: int
    ceiling: float
    agreement_at: dict[float, float]
    accuracy: float | None
    ruled_out: bool | None
    smallest_epsilon: float | None
    choice: Choice
    noise_length: float
    epsilon_at: dict[float, float]
    guess_at: dict[float, float]
    warnings: tuple[str, ...]


def plan(
    *, B: float, epsilon: float, delta: float, accuracy: float | None = None, dimensions: int = 10
) -> Plan:
    """Work out what a guarantee rules out, what noise it needs, and what it means at other distances.

    Args:
        B: The distance that is hidden.
        epsilon: ε of the guarantee.
        delta: δ of the guarantee.
        accuracy: The agreement γ that the program wants, from 1/2 to below 1.
        dimensions: How many columns are released.

    Returns:
        The plan.

    Raises:
        ValueError: A number is outside its range, or no mechanism can give the guarantee.

    Example:
        >>> found = plan(B=0.25, epsilon=1, delta=1e-5, accuracy=0.9)
        >>> found.ruled_out, round(found.smallest_epsilon, 2)
        (True, 2.2)
    """
    d = check.dimensions(dimensions)
    guarantee = Guarantee(B, epsilon, delta)
    choice = least_noise(guarantee, d)
    mechanism = choice.mechanism
    promised = mechanism.guarantee
    length = choice.noise[choice.name] * math.sqrt(d)
    losses = {r: mechanism.privacy_loss(distance=r, dimensions=d) for r in DISTANCES}
    away = [k * promised.B for k in range(_CELLS) if k * promised.B < 2]
    return Plan(
        guarantee=promised,
        dimensions=d,
        ceiling=accuracy_ceiling(promised),
        agreement_at=dict(zip(away, agreement_by_distance(promised, away), strict=True)),
        accuracy=accuracy,
        ruled_out=None if accuracy is None else is_ruled_out(promised, accuracy),
        smallest_epsilon=None if accuracy is None else _needed(accuracy, promised),
        choice=choice,
        noise_length=length,
        epsilon_at={r: loss.epsilon(max(delta, promised.delta)) for r, loss in losses.items()},
        guess_at={r: loss.best_guess() for r, loss in losses.items()},
        warnings=_warnings(promised, accuracy, length, d),
    )


def _needed(accuracy: float, guarantee: Guarantee) -> float:
    return smallest_epsilon(accuracy=accuracy, delta=guarantee.delta)


def _warnings(guarantee: Guarantee, accuracy: float | None, length: float, d: int) -> tuple[str, ...]:
    warnings = []
    if accuracy is not None and is_ruled_out(guarantee, accuracy):
        warnings.append(
            f"no algorithm agrees with today's decisions with probability {accuracy:g} for everybody: "
            f"ε = {guarantee.epsilon:g} leaves at most {up(accuracy_ceiling(guarantee), 4)}, whatever B is; "
            f"ask for less agreement, or for ε = {up(_needed(accuracy, guarantee), 4)}"
        )
    if length > DROWNED:
        warnings.append(
            f"the noise on a row of {d} columns has length {length:.2g}, and rows at most 1: it "
            "drowns any one person's signal; release fewer columns, or release a score (learn on a "
            "private sample, then release one score per person); a smaller B or a larger ε protects less"
        )
    return tuple(warnings)

"""Which mechanism needs the least noise for a guarantee."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from targetdp import check
from targetdp.guarantee import Guarantee
from targetdp.mechanisms.base import SMALLEST_DELTA, NoiseMechanism
from targetdp.mechanisms.gaussian import GaussianNoise
from targetdp.mechanisms.laplace import SphericalLaplace
from targetdp.mechanisms.projection import Calibration, PrivateProjection
from targetdp.mechanisms.staircase import Staircase


def _gaussian(g: Guarantee) -> NoiseMechanism:
    return GaussianNoise(B=g.B, epsilon=g.epsilon, delta=g.delta)


def _laplace(g: Guarantee) -> NoiseMechanism:
    return SphericalLaplace(B=g.B, epsilon=g.epsilon, delta=g.delta if g.delta >= SMALLEST_DELTA else 0.0)


def _staircase(g: Guarantee) -> NoiseMechanism:
    return Staircase(B=g.B, epsilon=g.epsilon)


def _projection(calibration: Calibration) -> Callable[[Guarantee], NoiseMechanism]:
    def build(g: Guarantee) -> NoiseMechanism:
        """The paper's shares: a quarter of ε (below 1) and a third of δ for the covariance."""
        epsilon2 = min(0.9999, g.epsilon / 4)
        return PrivateProjection(
            B=g.B, epsilon1=_rest(g.epsilon, epsilon2), epsilon2=epsilon2,
            delta1=_rest(g.delta, g.delta / 3), delta2=g.delta / 3, calibration=calibration,
        )  # fmt: skip

    return build


def _rest(total: float, part: float) -> float:
    """What is left of a total, so that both together never round to more than it."""
    rest = total - part
    return rest if rest + part <= total else math.nextafter(rest, 0.0)


LEAST_NOISE = "least-noise"
"""What stands for whichever of these needs the least noise."""

REGISTER: dict[str, Callable[[Guarantee], NoiseMechanism]] = {
    "spherical-laplace": _laplace,
    "staircase": _staircase,
    "gaussian": _gaussian,
    "projection-exact": _projection("exact"),
    "projection": _projection("printed"),
}
"""Every noise mechanism by name: a new one is one line here."""


COMPARED_COLUMNS = 200
"""Drawing a wider R takes seconds, for a comparison whose winner is known."""

_NEVER_QUIETER = {"projection-exact", "projection"}
"""Their covariance is k²σ²(RRᵀ)⁺ with σ ≥ B·σ_max(R)/(k·μ): nowhere less noise than Gaussian's B/μ."""


@dataclass(frozen=True)
class Choice:
    """The quietest mechanism for a guarantee, and what the others would need.

    ``noise`` maps every mechanism that can give the guarantee to its deviation per coordinate;
    ``refused`` maps the others to their reasons.
    """

    name: str
    asked: Guarantee
    mechanism: NoiseMechanism
    dimensions: int
    noise: dict[str, float]
    refused: dict[str, str]

    @property
    def why(self) -> str:
        """One sentence for people."""
        least = self.noise[self.name]
        others = ", ".join(
            f"{name} {sd / least:.2f}×" for name, sd in sorted(self.noise.items(), key=lambda item: item[1])
            if name != self.name
        )  # fmt: skip
        refused = "; ".join(f"{name}: {reason}" for name, reason in self.refused.items())
        return (
            f"{self.name} needs the least noise for {self.mechanism.guarantee} on {self.dimensions} "
            f"column{'s' if self.dimensions > 1 else ''}: a deviation of {least:.4g} per coordinate"
            + (f"; the others would need {others}" if others else "")
            + (f" (not possible here: {refused})" if refused else "")
            + self._weaker()
        )

    def _weaker(self) -> str:
        given = self.mechanism.guarantee
        if given.is_at_least(self.asked):
            return ""
        return f". Asked was δ = {self.asked.delta:.3g}; the sampler's tail allows {given.delta:.3g}"


def least_noise(guarantee: Guarantee, dimensions: int) -> Choice:
    """Pick the registered mechanism with the smallest noise for a guarantee on so many columns.

    The choice depends on the guarantee and the number of columns only, never on data.
    Edges: no sampler is exactly pure. Asked for a δ below 2⁻⁹⁰, it gives 2⁻⁹⁰, and `Choice.why` says so.
    """
    check.instance("guarantee", guarantee, Guarantee)
    d = check.dimensions(dimensions)
    built: dict[str, NoiseMechanism] = {}
    noise: dict[str, float] = {}
    refused: dict[str, str] = {}
    for name, build in REGISTER.items():
        if d > COMPARED_COLUMNS and name in _NEVER_QUIETER:
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
    return Choice(best, guarantee, built[best], d, noise, refused)

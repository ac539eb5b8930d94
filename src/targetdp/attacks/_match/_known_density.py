"""Noise as an adversary knows it: its density and covariance, from a mechanism or from its law."""

import math
from typing import Any, TypeAlias

import numpy as np

from targetdp._core import Floats
from targetdp.mechanisms import NoiseDensity, NoiseLaw, NoiseMechanism, NormalDensity

Noise: TypeAlias = NoiseMechanism | NoiseLaw

_OUTSIDE = 1e-6
"""How much longer than 1 a row may be: rounding by whoever clipped it."""


def density_of(noise: Noise | None, dimensions: int, name: str = "noise") -> NoiseDensity | None:
    """The density of a mechanism's or a law's noise on so many columns; None if it is not known."""
    if noise is None:
        return None
    law = _law(noise, dimensions, name)
    if law is not None:
        return law.density_of_a_simulation if isinstance(noise, NoiseMechanism) else law.density
    return NormalDensity(
        math.sqrt(float(np.trace(covariance_of(noise, dimensions))) / dimensions),
        f"The {name}'s law is not known row by row: it was taken as normal noise of the same size.",
    )


def covariance_of(noise: Noise, dimensions: int, name: str = "noise") -> Floats:
    """Covariance of the noise on one row."""
    law = _law(noise, dimensions, name)
    if law is not None:
        return law.covariance
    assert isinstance(noise, NoiseMechanism)  # noqa: S101 (a law stands for itself)
    return noise.noise_covariance(dimensions)


def in_unit_ball(rows: Floats, name: str) -> None:
    """Refuse rows that a mechanism would have clipped: its noise is known on the scale of the ball only."""
    longest = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))
    if longest > 1 + _OUTSIDE:
        raise ValueError(
            f"{name} has a row of length {longest:.4g}, outside the unit ball: the noise is known on the "
            "scale of normalized rows; give normalize(...).X, as the mechanism saw it"
        )


def _law(noise: Any, dimensions: int, name: str) -> NoiseLaw | None:
    """The law; None for a mechanism that has no law of its own for each row (a truncated projection)."""
    if isinstance(noise, NoiseMechanism):
        try:
            return noise.law(dimensions)
        except ValueError:
            noise.noise_covariance(dimensions)  # what it cannot do at all is said here
            return None
    if not isinstance(noise, NoiseLaw):
        raise TypeError(
            f"{name} = {noise!r} is neither a noise mechanism nor a noise law: "
            "give the one that made the release"
        )
    if noise.dimensions != dimensions:
        raise ValueError(
            f"{name} is a law for {noise.dimensions} columns, the release has {dimensions}: give its own law"
        )
    return noise

"""How likely a released row is for a person, under noise that everybody knows.

An adversary knows the mechanism (Kerckhoffs), and so the density of z − x. Each law's density depends on a
distance only, once rows are *whitened*: for most laws as they are, for a projection after undoing what R
did to the noise. So a shape is a whitening and a function of the squared distance.

A release draws the public R of its law. A *simulation* of a private projection draws another one, which the
adversary here does not know; for k far above the number of columns the two differ little.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from targetdp.mechanisms.base import NoiseMechanism
from targetdp.mechanisms.law import GaussianLaw, NoiseLaw, ProjectionLaw, SphericalLaplaceLaw, StaircaseLaw
from targetdp.mechanisms.product import row_product
from targetdp.typing import Floats

Noise: TypeAlias = NoiseMechanism | NoiseLaw

_OUTSIDE = 1e-6
"""How much longer than 1 a row may be: rounding by whoever clipped it."""


class NoiseShape(ABC):
    """The density of known noise, as a function of distance."""

    nearer_is_likelier = True
    """Whether rows are ordered by likelihood exactly as they are by Euclidean distance."""
    note = ""
    """What the caller should be told about it."""

    def whitened(self, rows: Floats) -> Floats:
        """Rows between which the density depends on the distance only."""
        return rows

    @abstractmethod
    def log_density(self, squared: Floats) -> Floats:
        """Log-density at squared distances between whitened rows, up to a constant; may overwrite them."""


_MANY_TIMES = 50
_OTHER_R = (
    "The projection that was used is the public one of a release. A simulation draws another, and with k so "
    "near the number of columns an attack on it is weaker than on a release: attack a release instead."
)


@dataclass(frozen=True)
class NormalShape(NoiseShape):
    """Normal noise of one deviation in all directions."""

    deviation: float
    note: str = ""

    def log_density(self, squared: Floats) -> Floats:
        """−r²/(2σ²)."""
        squared *= -0.5 / self.deviation**2
        return squared


@dataclass(frozen=True)
class LaplaceShape(NoiseShape):
    """Spherical Laplace noise."""

    scale: float

    def log_density(self, squared: Floats) -> Floats:
        """−r/b."""
        np.sqrt(squared, out=squared)
        squared *= -1 / self.scale
        return squared


@dataclass(frozen=True)
class ProjectedShape(NoiseShape):
    """Normal noise whose deviation depends on the direction: rows times ``whitening`` have 1 in all."""

    whitening: Floats
    note: str = ""
    nearer_is_likelier = False

    def whitened(self, rows: Floats) -> Floats:
        """See `NoiseShape.whitened`: row by row, so that equal rows stay equal."""
        return row_product(rows, self.whitening)

    def log_density(self, squared: Floats) -> Floats:
        """−r²/2."""
        squared *= -0.5
        return squared


@dataclass(frozen=True)
class StaircaseShape(NoiseShape):
    """Staircase noise: density falls by e^−``level`` at ``inner``, and again each ``period`` after it."""

    period: float
    inner: float
    level: float
    nearer_is_likelier = False

    def steps(self, distances: Floats) -> Floats:
        """How many steps down the density is at a distance."""
        return np.asarray(np.maximum(0.0, np.floor((distances - self.inner) / self.period) + 1))

    def edges(self, steps: Floats) -> tuple[Floats, Floats]:
        """The distances between which the density is so many steps down."""
        outer = self.inner + self.period * steps
        return np.where(steps > 0, outer - self.period, 0.0), outer

    def share_within(self, distances: Floats) -> Floats:
        """The probability that the noise is no longer than each distance."""
        fall, steps = math.exp(-self.level), self.steps(distances)
        begun, _ = self.edges(steps)
        full = np.where(steps > 0, self.inner + self.period * (fall - fall**steps) / (1 - fall), 0.0)
        whole = self.inner + self.period * fall / (1 - fall)
        return np.asarray((full + fall**steps * (distances - begun)) / whole)

    def log_density(self, squared: Floats) -> Floats:
        """−level for each step."""
        return -self.level * self.steps(np.sqrt(squared))


def shape_of(noise: Noise | None, dimensions: int, name: str = "noise") -> NoiseShape | None:
    """The shape of a mechanism's or a law's noise on so many columns; None if it is not known."""
    if noise is None:
        return None
    law = _law(noise, dimensions, name)
    if isinstance(law, GaussianLaw):
        return NormalShape(law.deviation)
    if isinstance(law, SphericalLaplaceLaw):
        return LaplaceShape(law.scale)
    if isinstance(law, StaircaseLaw):
        return StaircaseShape(law.period * law.grid, law.inner * law.grid, law.level)
    if isinstance(law, ProjectionLaw):
        near = law.k < _MANY_TIMES * dimensions and isinstance(noise, NoiseMechanism)
        return ProjectedShape(law.projection.forward() / law.deviation, _OTHER_R if near else "")
    return NormalShape(
        math.sqrt(float(np.trace(covariance_of(noise, dimensions))) / dimensions),
        f"The {name}'s law is not known row by row: it was taken as normal noise of the same size.",
    )


def covariance_of(noise: Noise, dimensions: int, name: str = "noise") -> Floats:
    """Covariance of the noise on one row."""
    law = _law(noise, dimensions, name)
    if isinstance(law, ProjectionLaw):
        back = law.k * law.deviation * law.projection.inverse()
        return np.asarray(back.T @ back)
    if law is None and isinstance(noise, NoiseMechanism):
        return noise.noise_covariance(dimensions)
    assert law is not None  # noqa: S101 (a law stands for itself)
    return np.asarray(np.eye(dimensions) * law.deviation_per_column**2)


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

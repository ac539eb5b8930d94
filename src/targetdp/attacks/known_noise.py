"""Released rows in units of their noise: coordinates in which every direction has noise of variance one.

There the noise is normal with variance w in all directions, where w is 1 for normal noise and random for
spherical Laplace noise, which is a mixture of normal ones (w has a Gamma distribution); a few values of w
with their probabilities (Gauss's quadrature) stand for it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from targetdp.attacks.noise_shape import (
    LaplaceShape,
    Noise,
    NormalShape,
    StaircaseShape,
    covariance_of,
    shape_of,
)
from targetdp.typing import Floats

_NODES = 6
"""Of the quadrature: 24 of them changed no error by more than 0.0001 of the variance."""
_LOST = 1e-12
"""Share of the largest noise variance below which a direction carries nothing (a projection lost it)."""


@dataclass(frozen=True)
class KnownNoise:
    """Noise with a ``covariance``, as normal noise of variances ``scales`` × covariance with ``chances``."""

    covariance: Floats
    scales: Floats
    chances: Floats
    exact: bool
    """Whether this is the noise itself, and not only noise of the same covariance."""

    @classmethod
    def of(cls, noise: Noise, dimensions: int) -> "KnownNoise":
        """The noise of a mechanism or law on so many columns."""
        shape = shape_of(noise, dimensions, "mechanism")
        covariance = covariance_of(noise, dimensions, "mechanism")
        scales, chances = np.ones(1), np.ones(1)
        if isinstance(shape, LaplaceShape):
            scales, chances = _gamma((dimensions + 1) / 2)  # see `targetdp.noise.add_spherical_laplace`
        stands_in = isinstance(shape, StaircaseShape) or (isinstance(shape, NormalShape) and bool(shape.note))
        return cls(covariance, scales, chances, not stands_in)

    @property
    def variance(self) -> float:
        """Mean squared length of the noise on a row."""
        return float(np.trace(self.covariance))

    def units(self) -> tuple[Floats, Floats]:
        """Matrices to these coordinates (rows times the first) and back (times the second)."""
        lengths, directions = self._axes
        return directions / lengths, (directions * lengths).T

    @property
    def lengths(self) -> Floats:
        """The noise's deviations along these coordinates: times them, coordinates are in units of rows."""
        return self._axes[0]

    @cached_property
    def _axes(self) -> tuple[Floats, Floats]:
        """Deviations and directions of the noise, without those that it does not reach."""
        values, vectors = np.linalg.eigh(self.covariance)
        kept = values > _LOST * values.max()
        return np.sqrt(values[kept]), vectors[:, kept]


def _gamma(shape: float) -> tuple[Floats, Floats]:
    """A Gamma distribution of mean 1 as a few values with probabilities: it has the same first moments.

    Gauss's nodes are the eigenvalues of a matrix (Golub and Welsch 1969), here of generalized Laguerre
    polynomials; unlike the usual formulas it does not overflow for large shapes.
    """
    k = np.arange(_NODES)
    beside = np.sqrt(k[1:] * (k[1:] + shape - 1))
    nodes, vectors = np.linalg.eigh(np.diag(2 * k + shape) + np.diag(beside, 1) + np.diag(beside, -1))
    return nodes / shape, np.square(vectors[0])

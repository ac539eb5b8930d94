"""Noise as an adversary knows it, from a mechanism or from its law, and whether two tables differ by it."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from targetdp._core import Floats, check, row_product
from targetdp.mechanisms import LinearLaw, NoiseDensity, NoiseLaw, NoiseMechanism, Scores
from targetdp.normalization import clip_rows


@dataclass(frozen=True)
class AverageDensity(NoiseDensity):
    """Normal noise of any covariance: rows times ``whitening`` have variance 1 in all directions."""

    whitening: Floats
    note: str = ""
    nearer_is_likelier = False

    @property
    def normal_mixture(self) -> bool:  # type: ignore[override]
        """It is, unless it stands for noise of another density, as its note then says."""
        return not self.note

    def whitened(self, rows: Floats) -> Floats:
        """See `NoiseDensity.whitened`: row by row, so that equal rows stay equal."""
        return row_product(rows, self.whitening)

    def log_density(self, squared: Floats) -> Floats:
        """−r²/2."""
        squared *= -0.5
        return squared


@dataclass(frozen=True)
class AverageNoise:
    """The noise that is left on the average of several releases of one row, as an adversary takes it.

    It is normal where all the releases' noises are; otherwise normal noise of the same covariance stands for
    it, and the density's ``note`` says so.
    """

    covariance: Floats
    note: str = ""

    @property
    def density(self) -> NoiseDensity:
        """The density of the noise."""
        values, vectors = np.linalg.eigh(self.covariance)
        return AverageDensity(vectors / np.sqrt(values), self.note)


Noise: TypeAlias = NoiseMechanism | NoiseLaw

_OUTSIDE = 1e-6
"""How much longer than 1 a row may be: rounding by whoever clipped it."""


def density_of(
    noise: Noise | AverageNoise | None, dimensions: int, name: str = "noise"
) -> NoiseDensity | None:
    """The density of a mechanism's or a law's noise, as an adversary knows it who was told either of them.

    Args:
        noise: The mechanism or its law; None if it is not known.
        dimensions: Number of columns.
        name: What the argument is called in messages.

    Returns:
        The density of the noise on one row; None if the noise is not known.

    Raises:
        TypeError: ``noise`` is neither a mechanism nor a law.
        ValueError: It is for another number of columns.

    Example:
        >>> from targetdp import GaussianNoise
        >>> density_of(GaussianNoise(B=0.25, epsilon=1, delta=1e-5), 3).nearer_is_likelier
        True
    """
    if isinstance(noise, AverageNoise):
        return noise.density
    return None if noise is None else check_noise(noise, dimensions, name).known_density(dimensions)


def covariance_of(noise: Noise, dimensions: int, name: str = "noise") -> Floats:
    """Covariance of the noise on one row.

    Args:
        noise: The mechanism or its law.
        dimensions: Number of columns.
        name: What the argument is called in messages.

    Returns:
        A matrix with a row and a column for each column of the release.

    Raises:
        TypeError: ``noise`` is neither a mechanism nor a law.
        ValueError: It is for another number of columns.

    Example:
        >>> from targetdp import SphericalLaplace
        >>> covariance_of(SphericalLaplace(B=1, epsilon=1), 3).round(2).diagonal()
        array([4., 4., 4.])
    """
    return check_noise(noise, dimensions, name).noise_covariance(dimensions)


def check_noise(noise: Any, dimensions: int, name: str) -> Noise:
    """Refuse what is neither a mechanism nor a law, and a law for another number of columns."""
    if not isinstance(noise, NoiseMechanism | NoiseLaw):
        raise TypeError(
            f"{name} = {noise!r} is neither a noise mechanism nor a noise law: "
            "give the one that made the release"
        )
    if isinstance(noise, NoiseLaw) and noise.dimensions != dimensions:
        raise ValueError(
            f"{name} is a law for {noise.dimensions} columns, the release has {dimensions}: give its own law"
        )
    return noise


def check_in_unit_ball(rows: Floats, name: str) -> None:
    """Refuse rows that a mechanism would have clipped: its noise is known on the scale of the ball only."""
    longest = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))
    if longest > 1 + _OUTSIDE:
        raise ValueError(
            f"{name} has a row of length {longest:.4g}, outside the unit ball: the noise is known on the "
            "scale of normalized rows; give normalize(...).X, as the mechanism saw it"
        )


# Noise in units in which it has variance one in every direction.
#
# There the noise is normal with variance w in all directions, where w is 1 for normal noise and random for
# spherical Laplace noise, which is a mixture of normal ones (w has a Gamma distribution); a few values of w
# with their probabilities (Gauss's quadrature) stand for it.

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
    def of(cls, noise: Noise | AverageNoise, dimensions: int) -> "KnownNoise":
        """The noise of a mechanism or law on so many columns."""
        if isinstance(noise, AverageNoise):
            return cls(noise.covariance, np.ones(1), np.ones(1), not noise.note)
        noise = check_noise(noise, dimensions, "mechanism")
        density, covariance = noise.known_density(dimensions), noise.noise_covariance(dimensions)
        random_variance = density.variance_shape(dimensions)
        scales, chances = (np.ones(1), np.ones(1)) if random_variance is None else _gamma(random_variance)
        return cls(covariance, scales, chances, density.normal_mixture)

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


# Scores without their noise: what a release of scores is compared with.


def in_scores(X: Any, law: LinearLaw | Scores) -> Floats:
    """The exact scores of rows of the unit ball: those to which ``law`` adds its noise.

    Attacks that compare an original with its release take them in place of the rows: for example
    ``linkage(in_scores(X, law), scores, law.noise)`` and ``singling_out(in_scores(X, law), scores)``.

    Args:
        X: Rows of the unit ball.
        law: The law of the scores, or their mechanism.

    Returns:
        A row of scores for each row of X.

    Raises:
        TypeError: ``law`` makes no scores.
        ValueError: X has another number of columns, or lies outside the unit ball.

    Example:
        >>> from targetdp import SphericalLaplace
        >>> law = Scores([[3.0, 4.0]], SphericalLaplace(B=0.25, epsilon=4))
        >>> in_scores([[0.5, 0.5]], law).round(3)
        array([[0.7]])
    """
    rows = check.table(X)
    if not getattr(law, "makes_scores", False):
        raise TypeError(f"law = {law!r} makes no scores: give a LinearLaw, or Scores")
    weights = np.array(law.weights)
    if weights.shape[1] != rows.shape[1]:
        raise ValueError(f"law is for {weights.shape[1]} columns, X has {rows.shape[1]}: they must agree")
    check_in_unit_ball(rows, "X")
    return clip_rows(row_product(rows, weights.T))


# Whether two tables differ by the noise that a certificate has on record.

FEWEST_TO_JUDGE = 20
"""People from whom on the difference of the tables is held against the noise on record."""

STANDARD_ERRORS = 8.0
"""Standard errors that a true release stays within, but for about one in 10¹⁴."""


def check_differs_by_noise(original: Floats, released: Floats, law: NoiseLaw | None) -> None:
    """Refuse an original that differs from its release by something else than noise of the law on record.

    Other scales or other rows would show: the mean of the difference, and its size, are compared with the
    law's, at eight standard errors.
    """
    n = len(original)
    if law is None or n < FEWEST_TO_JUDGE or not law.reaches_all_directions:
        return
    noise = released - original
    off = np.abs(noise.mean(axis=0)) > STANDARD_ERRORS * noise.std(axis=0) / np.sqrt(n)
    if off.any() or not _has_size_of(noise, law):
        raise ValueError(
            f"original and release differ by {np.sqrt(np.square(noise).mean()):.4g} per released column "
            f"(root mean square), not by the noise of the certificate ({law.deviation_per_column:.4g}, mean "
            "0): the original must be the table that was released, with the scales that were used"
        )


def _has_size_of(noise: Floats, law: NoiseLaw) -> bool:
    root = math.sqrt(len(noise))
    shares = law.known_density(law.dimensions).share_within(np.linalg.norm(noise, axis=1))
    if shares is not None:
        # A few steps far out may carry most of the mean square, and may not have been drawn at all. So the
        # length is judged by the share of noise that is shorter, which is uniform from 0 to 1.
        return abs(float(shares.mean()) - 0.5) <= STANDARD_ERRORS / (math.sqrt(12) * root)
    squares = np.einsum("ij,ij->i", noise, noise) / law.dimensions
    expected = law.deviation_per_column**2
    # Squares of this noise vary by at most 2.5 times their mean (Laplace in one column); a few rows may have
    # small ones by chance, so that a half of the mean is always allowed for.
    allowed = STANDARD_ERRORS * min(max(float(squares.std()), 0.5 * expected), 2.5 * expected) / root
    return abs(float(squares.mean()) - expected) <= allowed

"""Released rows in units of their noise: coordinates in which every direction has noise of variance one.

There the noise is normal with variance w in all directions, where w is 1 for normal noise and random for
spherical Laplace noise, which is a mixture of normal ones (w has a Gamma distribution); a few values of w
with their probabilities (Gauss's quadrature) stand for it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from targetdp._core import Floats, Integers
from targetdp.attacks._match._known_density import Noise, check_noise

# Tables in units in which their columns can be compared, and rows that two tables share.

SMALLEST, LARGEST = 1e-140, 1e140
"""Squares of larger or smaller values leave the range of floats."""


def check_squares(*tables: Floats) -> None:
    """Refuse values whose squares overflow, or underflow altogether."""
    largest = max(float(np.abs(table).max()) for table in tables)
    if largest > LARGEST or 0 < largest < SMALLEST:
        raise ValueError(
            f"the largest value is {largest:g}, outside {SMALLEST:g} to {LARGEST:g}: distances would leave "
            "the range of floats; rescale all tables alike"
        )


def units_of(released: Floats) -> Floats:
    """Deviations of the released columns, 1 for those without any: no column counts for its unit alone."""
    constant = released.min(axis=0) == released.max(axis=0)
    return np.where(constant, 1.0, released.std(axis=0))


def released_directions(released: Floats) -> Floats | None:
    """The directions in which released rows lie (d×r), where those are fewer than columns; else None.

    What a truncated mechanism leaves out of a row tells nothing of whose it is, and must not count.
    """
    if len(released) <= released.shape[1]:
        return None
    _, lengths, directions = np.linalg.svd(released, full_matrices=False)
    seen = lengths > 1e-9 * lengths[0]
    return None if seen.all() or not seen.any() else np.ascontiguousarray(directions[seen].T)


def group_numbers(rows: Floats) -> Integers:
    """A number for each row, the same for equal rows."""
    order = np.lexsort(rows.T)
    new = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    group = np.zeros(len(rows), dtype=np.int64)
    group[order[1:]] = np.cumsum(new)
    return group


def rows_in_common(one: Floats, two: Floats) -> tuple[Integers, Integers, Integers]:
    """Places of rows of one table and of another that may be equal, and a number for each of those rows.

    Numbers are for the places of the first table, then for those of the second; equal rows have equal ones.
    """
    mine, theirs = np.arange(len(one)), np.arange(len(two))
    for j in range(one.shape[1]):  # noise leaves next to nothing of this after one column
        mine = mine[np.isin(one[mine, j], two[theirs, j])]
        theirs = theirs[np.isin(two[theirs, j], one[mine, j])]
    rows = np.concatenate([one[mine], two[theirs]])
    return mine, theirs, group_numbers(rows) if len(rows) else np.empty(0, dtype=np.int64)


def shared_note(table: Floats, holdout: Floats) -> list[str]:
    """What to say if people of the holdout have the very rows of people in the release."""
    mine, _, group = rows_in_common(table, holdout)
    shared = int(np.isin(group[len(mine) :], group[: len(mine)]).sum())
    if not shared:
        return []
    return [
        f"{shared} of {len(holdout)} people in the holdout have exactly the row of somebody in the release: "
        "if they are the same people, protection is overstated."
    ]


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

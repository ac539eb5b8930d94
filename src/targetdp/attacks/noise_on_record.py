"""Whether two tables differ by the noise that a certificate has on record."""

import math

import numpy as np

from targetdp.attacks.noise_shape import StaircaseShape, shape_of
from targetdp.mechanisms.law import NoiseLaw, ProjectionLaw
from targetdp.typing import Floats

FEWEST_TO_JUDGE = 20
"""People from whom on the difference of the tables is held against the noise on record."""

DOUBT = 8.0
"""Standard errors that a true release stays within, but for about one in 10¹⁴."""


def must_differ_by_noise(original: Floats, released: Floats, law: NoiseLaw | None) -> None:
    """Refuse an original that differs from its release by something else than noise of the law on record.

    Other scales or other rows would show: the mean of the difference, and its size, are compared with the
    law's, at eight standard errors.
    """
    n = len(original)
    if law is None or n < FEWEST_TO_JUDGE or (isinstance(law, ProjectionLaw) and law.k < law.dimensions):
        return
    noise = released - original
    off = np.abs(noise.mean(axis=0)) > DOUBT * noise.std(axis=0) / np.sqrt(n)
    if off.any() or not _has_its_size(noise, law):
        raise ValueError(
            f"original and release differ by {np.sqrt(np.square(noise).mean()):.4g} per released column "
            f"(root mean square), not by the noise of the certificate ({law.deviation_per_column:.4g}, mean "
            "0): the original must be the table that was released, with the scales that were used"
        )


def _has_its_size(noise: Floats, law: NoiseLaw) -> bool:
    root = math.sqrt(len(noise))
    shape = shape_of(law, law.dimensions)
    if isinstance(shape, StaircaseShape):
        # A few steps far out carry most of its mean square, and may not have been drawn at all. Its length
        # is judged by the share of noise that is shorter, which is uniform from 0 to 1.
        shares = shape.share_within(np.abs(noise[:, 0]))
        return abs(float(shares.mean()) - 0.5) <= DOUBT / (math.sqrt(12) * root)
    squares = np.einsum("ij,ij->i", noise, noise) / law.dimensions
    expected = law.deviation_per_column**2
    # Squares of this noise vary by at most 2.5 times their mean (Laplace in one column); a few rows may have
    # small ones by chance, so that a half of the mean is always allowed for.
    allowed = DOUBT * min(max(float(squares.std()), 0.5 * expected), 2.5 * expected) / root
    return abs(float(squares.mean()) - expected) <= allowed

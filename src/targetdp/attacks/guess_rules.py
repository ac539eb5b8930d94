"""When a guess of a number counts as right: our rule, and Anonymeter's for comparisons."""

import numpy as np
from numpy.typing import NDArray

from targetdp.typing import Floats


def near(guess: Floats, actual: Floats, tolerance: float, zero_tolerance: float) -> NDArray[np.bool_]:
    """|guess - actual| ≤ tolerance·|actual|; for an actual value of exactly 0, ≤ zero_tolerance."""
    return np.asarray(
        np.abs(guess - actual) <= np.where(actual == 0, zero_tolerance, tolerance * np.abs(actual))
    )


def near_by_anonymeter(guess: Floats, actual: Floats, tolerance: float) -> NDArray[np.bool_]:
    """|guess - actual| / (guess + 10⁻¹²) ≤ tolerance, as Anonymeter 1.0 and 1.1 have it.

    The guess is divided by with its sign: every negative guess counts as right, whatever the actual value.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.abs(guess - actual) / (guess + 1e-12) <= tolerance)


def zero_tolerances(table: Floats, tolerance: float) -> Floats:
    """For each column ``tolerance`` times the median size of its values that are not 0.

    Edges: 0 for a column of zeros: there a guess must be exact.
    """
    sizes = np.abs(table)
    return np.array([tolerance * float(np.median(size[size > 0])) if size.any() else 0.0 for size in sizes.T])

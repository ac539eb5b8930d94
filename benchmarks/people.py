"""Invented tables of any size, and the paper's parameters for them."""

import numpy as np

from targetdp._core import Floats
from targetdp.mechanisms import Calibration, PrivateProjection
from targetdp.normalization import clip_rows

B = 0.25
EPSILON1, EPSILON2 = 3.0, 0.9999
EPSILON = EPSILON1 + EPSILON2


def people(rows: int, columns: int) -> Floats:
    """Rows in the unit ball, correlated and skewed like phone use; the same at every run."""
    rng = np.random.default_rng([rows, columns])
    X = rng.standard_normal((rows, columns))
    X += rng.standard_normal((rows, 1))  # a habit of using the phone at all
    X[:, ::2] = np.exp(0.6 * X[:, ::2])
    X -= X.mean(axis=0)
    X /= 1.5 * np.sqrt(columns) * X.std(axis=0)
    return clip_rows(X)


def paper_delta(rows: int) -> float:
    """The paper's δ, 1/(n + 1)."""
    return 1 / (rows + 1)


def paper_projection(rows: int, k: int = 10_000, calibration: Calibration = "printed") -> PrivateProjection:
    """The paper's private projection: δ is split two to one."""
    delta = paper_delta(rows)
    return PrivateProjection(
        B=B, epsilon1=EPSILON1, epsilon2=EPSILON2, delta1=delta * 2 / 3, delta2=delta / 3,
        k=k, calibration=calibration,
    )  # fmt: skip

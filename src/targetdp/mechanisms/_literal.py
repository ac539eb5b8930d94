"""Algorithm 1 as printed, six steps with all of its n×k noise: the oracle that the fast version must match.

For simulations only: its arithmetic is plain floating point, without the grid of `targetdp.noise`.
"""

from typing import Any

import numpy as np

from targetdp._core import Floats, check
from targetdp.mechanisms._projection import PrivateProjection, printed_step3_sigma, printed_step4_sigma
from targetdp.normalization import clip_rows

_BATCH_VALUES = 1 << 23


def literal_private_projection(mechanism: PrivateProjection, X: Any, rng: np.random.Generator) -> Floats:
    """Run Algorithm 1 to the letter (printed noise), in batches of rows, then multiply by k.

    The factor k puts the result on the scale of X, as `PrivateProjection.privatize` does.

    Args:
        mechanism: With ``calibration="printed"``.
        X: n rows of d columns; they are clipped to the unit ball.
        rng: A generator: this is a simulation.

    Returns:
        As many noisy rows.

    Raises:
        TypeError: There is no generator.
        ValueError: The mechanism's calibration is another.

    Example:
        >>> mechanism = PrivateProjection(B=0.25, epsilon1=3, epsilon2=0.9, delta1=1e-5, delta2=1e-5, k=50)
        >>> literal_private_projection(mechanism, [[0.1, 0.2]], np.random.default_rng(0)).shape
        (1, 2)
    """
    if mechanism.calibration != "printed":
        raise ValueError("calibration = 'exact' is not the printed algorithm: use calibration='printed'")
    if check.generator(rng) is None:
        raise TypeError("rng = None: the literal algorithm is a simulation; pass np.random.default_rng(seed)")
    rows = clip_rows(check.table(X))
    (n, d), k = rows.shape, mechanism.k
    sigma3 = printed_step3_sigma(mechanism.B, d, k, mechanism.epsilon1, mechanism.delta1)
    sigma4 = printed_step4_sigma(mechanism.B, mechanism.epsilon2, mechanism.delta2)

    R = rng.integers(-1, 2, size=(d, k)).astype(np.float64)  # Step 1
    G = rng.normal(0.0, sigma4, size=(d, d))
    G = np.tril(G) + np.tril(G, -1).T
    C_priv = rows.T @ rows + G  # Step 4
    _, _, Vt = np.linalg.svd(C_priv)  # Step 5
    Vt = Vt[: min(d, mechanism.rank or d)]
    back = np.linalg.pinv(Vt @ R) @ Vt

    out = np.empty_like(rows)
    batch = max(1, _BATCH_VALUES // k)
    for start in range(0, n, batch):
        part = rows[start : start + batch]
        P = part @ R / k  # Step 2
        P_priv = P + rng.normal(0.0, sigma3, size=P.shape)  # Step 3
        out[start : start + batch] = k * (P_priv @ back)  # Step 6
    return out

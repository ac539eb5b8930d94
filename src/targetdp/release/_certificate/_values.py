"""Released values held against the noise that is stated: is there as much of it as the certificate says?

Every test is one-sided, and holds for *every* table in the unit ball. The noise z is symmetric, and its density
falls from its middle; so for any row x and any convex set C that is symmetric around 0, x + z is in C at most as
often as z itself (Anderson 1955). So among n released rows, those no longer than t are at most as many as a
binomial count of chance P(‖z‖ ≤ t), whatever the rows are; and so in any direction, around any point, that was
chosen without looking at the rows that are counted.
"""

from collections.abc import Iterator

import numpy as np
from scipy.stats import beta, binom

from targetdp._core import Floats
from targetdp.mechanisms import NoiseLaw
from targetdp.noise import PublicWords
from targetdp.release._certificate._contents import Check

LEVEL = 1e-9
"""How often an honest release may fail."""
ROWS = 200_000
"""So many rows are looked at: more tell no more."""
_DRAWN, _SURE = 200_000, 1e-12
"""Draws of the noise that its chances are estimated from, and how often an estimate may be too low."""
_LENGTHS, _ALONG = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98), (0.1, 0.25, 0.5, 0.75, 0.9)
"""Where counts are compared: quantiles of the noise's length, and of its size in a direction."""
_FEWEST, _SEED = 50, 19


def noise_check(values: Floats, law: NoiseLaw) -> Check:
    """Whether released rows have at least the noise of a law.

    Args:
        values: Rows as they were released; at most `ROWS`, chosen without looking at values.
        law: The noise as the certificate states it.

    Returns:
        A check that fails for an honest release with probability `LEVEL` at most, and holds ``None`` where
        even rows without any noise could not be told from these.
    """
    noise = law.added
    drawn = noise.add_to(np.zeros((_DRAWN, noise.dimensions)), PublicWords(_SEED))
    tests = len(_LENGTHS) + len(_ALONG) + 1
    if (
        len(values) < _FEWEST
        or _tail(len(values), len(values), _chance(drawn_lengths := _length(drawn), 1.0)) * tests >= LEVEL
    ):
        return Check("noise in the values", None, "values cannot tell: rows may be longer than the noise")
    worst = min(_surprises(values, drawn, drawn_lengths))
    good = worst * tests > LEVEL
    return Check(
        "noise in the values", good,
        "as much as is stated, or more" if good else "there is less noise than stated: do not use it",
    )  # fmt: skip


def _surprises(values: Floats, drawn: Floats, lengths: Floats) -> Iterator[float]:
    """How likely counts as high as these are, at most."""
    own = _length(values)
    for t in (*np.quantile(lengths, _LENGTHS), 1.0):
        yield _tail(int((own <= t).sum()), len(own), _chance(lengths, float(t)))
    # The direction in which there is least, found on every other row and tried on the rest.
    seen, tried = values[::2], values[1::2]
    direction = _quietest(seen, drawn)
    along, middle = np.abs(drawn @ direction), float(np.median(seen @ direction))
    size = np.abs(tried @ direction - middle)
    for t in np.quantile(along, _ALONG):
        yield _tail(int((size <= t).sum()), len(size), _chance(along, float(t)))


def _quietest(values: Floats, drawn: Floats) -> Floats:
    """The direction in which values vary least, measured by the noise that should be in them."""
    whiten = np.linalg.inv(np.linalg.cholesky(np.atleast_2d(np.cov(drawn.T))))
    variances, directions = np.linalg.eigh(whiten @ np.atleast_2d(np.cov(values.T)) @ whiten.T)
    return np.asarray(whiten.T @ directions[:, np.argmin(variances)])


def _length(rows: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _chance(sizes: Floats, t: float) -> float:
    """The chance that noise is no larger than t, rounded up (Clopper and Pearson)."""
    inside = int((sizes <= t).sum())
    return 1.0 if inside == len(sizes) else float(beta.isf(_SURE, inside + 1, len(sizes) - inside))


def _tail(count: int, n: int, chance: float) -> float:
    """The probability of so many or more."""
    return float(binom.sf(count - 1, n, chance))

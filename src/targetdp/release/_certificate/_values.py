"""Released values held against the noise that is stated: those of rows without noise look otherwise.

Every test is one-sided, and holds for *every* table in the unit ball. The noise z is symmetric, and its
density falls from its middle; so for any row x and any convex set C that is symmetric around 0, x + z is in C
at most as often as z itself (Anderson 1955). Hence among n released rows those no longer than t are at most
as many as a binomial count of chance P(‖z‖ ≤ t), whatever the rows are; and so in any direction, around any
point, that was chosen without looking at the rows that are counted. And no row makes noise longer by more
than its own length, which is 1 at most.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import betainc, betainccinv

from targetdp._core import Floats
from targetdp.mechanisms import DecisionLaw, NoiseLaw
from targetdp.noise import PublicWords

LEVEL = 1e-9
"""How often an honest release may fail."""
MOST_VALUES = 4_000_000
"""So many values are looked at, of at most `MOST_ROWS` rows: more tell no more."""
MOST_ROWS = 200_000
_SURE = 1e-12
"""How often a chance that is estimated from draws of the noise may be too low."""
_LENGTHS, _ALONG = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98), (0.1, 0.25, 0.5, 0.75, 0.9)
"""Where counts are compared: quantiles of the noise's length, and of its size in a direction."""
_TESTS = 2 * len(_LENGTHS) + len(_ALONG) + 1
_UNIT = 1.001
"""How long rows of the unit ball are at most, with room for their rounding to a grid."""
_SEED = 19


def rows_looked_at(columns: int) -> int:
    """How many rows of so many columns are looked at, at most."""
    return max(1, min(MOST_ROWS, MOST_VALUES // columns))


def has_the_noise(values: Floats, law: NoiseLaw) -> bool | None:
    """Whether released rows can have the noise of a law.

    Args:
        values: Rows as they were released, chosen without looking at them.
        law: The noise as the certificate states it.

    Returns:
        False if they have less, or are longer than this noise makes rows of the unit ball: an honest release
        is called so with probability `LEVEL` at most. None where even rows of length 1 without any noise
        could not be told from honest ones.

    Does not guarantee: that nothing is missing. A few rows without noise, a little less of it on all, noise
    that several rows share, or rows that were moved out of the unit ball before, may look as honest ones do.
    """
    noise = law.added
    # Otherwise whoever knows which rows a direction is found on could leave out another one of the rest.
    values = np.random.default_rng().permutation(values)
    drawn = noise.add_to(np.zeros((rows_looked_at(noise.dimensions), noise.dimensions)), PublicWords(_SEED))
    lengths = _length(drawn)
    if min(_surprises(values, drawn, lengths, noise.covariance)) * _TESTS <= LEVEL:
        return False
    n = len(values)
    return None if _tail(n, n, _chance(lengths <= _UNIT)) * _TESTS > LEVEL else True


def _surprises(values: Floats, drawn: Floats, lengths: Floats, covariance: Floats) -> Iterator[float]:
    """How likely counts as high as these are, at most."""
    own = _length(values)
    for t in (*np.quantile(lengths, _LENGTHS), _UNIT):
        yield _tail(int((own <= t).sum()), len(own), _chance(lengths <= t))
    # A row of the unit ball makes nothing longer by more than 1.
    for t in np.quantile(lengths, _LENGTHS):
        yield _tail(int((own >= t + _UNIT).sum()), len(own), _chance(lengths >= t))
    # The direction in which there is least, found on every other row and tried on the rest.
    seen, tried = values[::2], values[1::2]
    if len(seen) <= values.shape[1]:  # too few to tell directions apart
        return
    direction = _quietest(seen, covariance)
    along, middle = np.abs(drawn @ direction), float(np.median(seen @ direction))
    size = np.abs(tried @ direction - middle)
    for t in np.quantile(along, _ALONG):
        yield _tail(int((size <= t).sum()), len(size), _chance(along <= t))


def _quietest(values: Floats, covariance: Floats) -> Floats:
    """The direction in which values vary least, measured by the noise that should be in them.

    It knows nothing of the noise that was drawn to estimate chances, which would be too low otherwise.
    """
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    variances, directions = np.linalg.eigh(whiten @ np.atleast_2d(np.cov(values.T)) @ whiten.T)
    return np.asarray(whiten.T @ directions[:, np.argmin(variances)])


def _length(rows: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _chance(seen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
    """The chance of what was seen in some draws of the noise, rounded up (Clopper and Pearson)."""
    times = int(seen.sum())
    return 1.0 if times == len(seen) else float(betainccinv(times + 1, len(seen) - times, _SURE))


def _tail(count: int, n: int, chance: float) -> float:
    """The probability of so many or more."""
    return float(betainc(count, n - count + 1, chance)) if count > 0 else 1.0


def can_be_so_many(yes: int, people: int, law: DecisionLaw) -> bool | None:
    """Whether so many people can have got a yes, whatever the table is.

    Everybody's answer is a yes with a chance between that of the rarest answer and 1 less it, whatever was
    answered before. So the count lies between two binomial ones.

    Returns:
        False if there are too few or too many: an honest release is called so with probability `LEVEL` at
        most. None where neither all yes nor all no could be refuted.
    """
    least = float(law.chance_of_error(np.array([np.iinfo(np.int64).max]))[0]) * (1 - 1e-9)
    if _tail(people, people, 1 - least) * 2 > LEVEL:
        return None
    surprise = min(_tail(yes, people, 1 - least), _tail(people - yes, people, 1 - least))
    return surprise * 2 > LEVEL

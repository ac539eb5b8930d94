"""Confidence intervals for shares of people and for the ratio of two shares.

Exact (Clopper and Pearson 1934): they hold at every size and for shares of 0 and 1, and are a little wide.
A count may be a fraction, where each person's part is a mean over several tries: such a mean varies less
than one try would. That the interval still holds is checked in tests, exactly, for parts of two values.
"""

from typing import Any

import numpy as np
from scipy.special import betaincinv

from targetdp.attacks.protection import Interval
from targetdp.typing import Floats


def lowest_share(counts: Any, total: int, doubt: float) -> Floats:
    """A share that the true one is below with probability at most ``doubt``."""
    counts = np.asarray(counts, dtype=np.float64)
    some = np.maximum(counts, np.finfo(np.float64).tiny)
    return np.where(counts > 0, betaincinv(some, total - counts + 1, doubt), 0.0)


def highest_share(counts: Any, total: int, doubt: float) -> Floats:
    """A share that the true one is above with probability at most ``doubt``."""
    return 1 - lowest_share(total - np.asarray(counts, dtype=np.float64), total, doubt)


def share_interval(count: float, total: int, doubt: float) -> Interval:
    """An interval that misses the true share with probability at most ``doubt``."""
    return float(lowest_share(count, total, doubt / 2)), float(highest_share(count, total, doubt / 2))


def ratio_interval(count: float, total: int, base_count: float, base_total: int, doubt: float) -> Interval:
    """An interval for the ratio of two shares: it holds if each share's own does.

    Edges: where the base's interval begins at 0 the ratio has no upper end (infinite).
    """
    low, high = share_interval(count, total, doubt / 2)
    base_low, base_high = share_interval(base_count, base_total, doubt / 2)
    return low / base_high, high / base_low if base_low > 0 else float("inf")

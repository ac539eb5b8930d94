"""Statistical tests that can fail: each has a stated false-alarm rate and is shown to have power."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from targetdp._core import Floats

FALSE_ALARM = 1e-6
"""Of every single comparison below; seeds are fixed where the source of noise allows it."""

Cdf = Callable[..., Any]


def follows(sample: Floats, cdf: Cdf) -> bool:
    """Kolmogorov-Smirnov: whether a sample may come from a distribution."""
    return bool(stats.kstest(np.asarray(sample), cdf).pvalue > FALSE_ALARM)


def assert_scale(sample: Floats, cdf: Cdf) -> None:
    """Accept a sample's claimed scale, and reject it as 0.9 and 1.1 times that scale."""
    assert follows(sample, cdf)
    assert not follows(sample / 0.9, cdf)
    assert not follows(sample / 1.1, cdf)


def means_agree(a: Floats, b: Floats) -> bool:
    """Whether two samples of vectors have equal means and second moments.

    Compares E[z], E[z zᵀ] entry by entry and E‖z‖² as a whole, at a total false-alarm rate of
    FALSE_ALARM (Bonferroni).
    """
    first, second = _moments(a), _moments(b)
    error = np.sqrt(first.var(axis=0) / len(first) + second.var(axis=0) / len(second))
    gap = np.abs(first.mean(axis=0) - second.mean(axis=0))
    limit = stats.norm.isf(FALSE_ALARM / 2 / gap.size)
    return bool((gap <= limit * np.maximum(error, 1e-12)).all())


def same_distribution(a: Floats, b: Floats, rng: np.random.Generator, directions: int = 20) -> bool:
    """Two-sample Kolmogorov-Smirnov on coordinates and random directions, Bonferroni-corrected."""
    d = a.shape[1]
    along = np.vstack([np.eye(d), rng.standard_normal((directions, d))])
    # Where a distribution has an atom at zero, rounding errors around it are not a difference.
    worst = min(stats.ks_2samp(np.round(a @ v, 9), np.round(b @ v, 9)).pvalue for v in along)
    return bool(worst > FALSE_ALARM / len(along))


def _moments(z: Floats) -> Floats:
    i, j = np.tril_indices(z.shape[1])
    return np.concatenate([z, z[:, i] * z[:, j], (z * z).sum(axis=1, keepdims=True)], axis=1)

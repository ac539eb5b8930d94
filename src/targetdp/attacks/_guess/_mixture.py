"""What noisy rows say of the true ones, under a mixture of normal distributions: the step E of fitting it.

All rows are in units of the noise.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from targetdp._core import Floats, Silent, in_threads, kernel
from targetdp.attacks._match._known_noise import KnownNoise
from targetdp.attacks._match._pairs import sum_by_fours

_FLOOR = 1e-9
"""Variance of a component in any direction, at least: beside noise of 1 it is nothing."""
_PIECE = 256
"""Rows that a thread takes at a time."""
_STRETCHES, _MOST_NUMBERS = 16, 1 << 22
"""Sums are kept for so many stretches of rows, fewer if they would hold more numbers than that. How many does
not depend on the number of threads, so neither does the order of additions, nor what comes of them."""


@dataclass(frozen=True)
class Mixture:
    """Normal components with ``weights``, ``means`` (K×d) and ``covariances`` (K×d×d)."""

    weights: Floats
    means: Floats
    covariances: Floats


@dataclass(frozen=True)
class ExpectedRows:
    """What rows say under a prior: their mean log-likelihood (up to a constant) and the true rows' ``means``.

    Of each component how many rows are its (``weights``), and ``first`` and ``second`` moments of the true
    ones, summed, about its mean.
    """

    likelihood: float
    means: Floats
    weights: Floats
    first: Floats
    second: Floats


class _Turned(NamedTuple):
    """A mixture's components, each turned to directions in which it varies independently (``vectors``).

    By component, scale of the noise and direction (K×Q×d): ``gains`` is the share of a row's distance from
    the center that is not noise, ``halves`` 1/2 over the variance with the noise. ``starts`` (K×Q) is the
    log-likelihood at the center.
    """

    centers: Floats
    vectors: Floats
    halves: Floats
    gains: Floats
    starts: Floats


def expectation(prior: Mixture, rows: Floats, noise: KnownNoise) -> ExpectedRows:
    """Each component is turned to directions in which it varies independently; noise keeps them."""
    values, vectors = np.linalg.eigh(prior.covariances)
    values = np.maximum(values, _FLOOR)
    totals = values[:, None, :] + noise.scales[:, None]  # K×Q×d: by component, scale of the noise, direction
    gains = values[:, None, :] / totals
    starts = np.log(prior.weights[:, None] * noise.chances) - 0.5 * np.log(totals).sum(axis=2)
    turned = _Turned(prior.means, vectors, 0.5 / totals, gains, starts)
    (k, d), q = prior.means.shape, len(noise.scales)
    pieces, most = -(-len(rows) // _PIECE), min(_STRETCHES, max(1, _MOST_NUMBERS // (k * d * d)))
    length = -(-pieces // most) * _PIECE
    stretches = -(-len(rows) // length)
    likelihoods, means = np.zeros(stretches), np.empty_like(rows)
    weights, first = np.zeros((stretches, k, q)), np.zeros((stretches, k, d))
    second = np.zeros((stretches, k, d, d))

    def work(begin: int, end: int) -> None:
        at = begin // length
        for some in range(begin, end, _PIECE):
            here = slice(some, min(some + _PIECE, end))
            likelihoods[at] += _add_up(rows[here], turned, means[here], weights[at], first[at], second[at])

    if stretches == 1:  # threads cost more than they would save
        work(0, len(rows))
    else:
        in_threads(work, len(rows), length, Silent())
    by_scale = weights.sum(axis=0)
    left = np.einsum("kq,kqd,q->kd", by_scale, gains, noise.scales)  # what stays unknown of each true row
    squares = second.sum(axis=0) + np.einsum("kd,de->kde", left, np.eye(d))
    return ExpectedRows(
        likelihood=float(likelihoods.sum()) / len(rows),
        means=means,
        weights=by_scale.sum(axis=1),
        first=np.einsum("kj,kij->ki", first.sum(axis=0), vectors),
        second=vectors @ squares @ vectors.transpose(0, 2, 1),
    )


def _add_up(
    rows: Floats, turned: _Turned, means: Floats, weights: Floats, first: Floats, second: Floats
) -> float:
    """Moments of the true rows, in each component's own directions; the sum of the log-likelihoods."""
    n = len(rows)
    apart, chances = np.empty((*turned.centers.shape, n)), np.empty((*turned.starts.shape, n))
    columns = np.array(rows.T, order="C")  # a copy, also of a single column: the kernels write into it
    _log_densities(columns, turned, apart, chances)
    likelihood = _share_out(chances.reshape(-1, n))
    _moments(turned, apart, chances, columns, weights, first, second)
    means[:] = columns.T
    return likelihood


# In the kernels the innermost loop always goes over rows, so that the processor takes several at once.


@kernel
def _log_densities(columns: Floats, turned: _Turned, apart: Floats, logs: Floats) -> None:
    """How far rows are from each component's center in its own directions; how likely by each noise."""
    centers, vectors, halves, starts = turned.centers, turned.vectors, turned.halves, turned.starts
    (k, q), (d, n) = starts.shape, columns.shape
    for c in range(k):
        for j in range(d):
            for t in range(n):
                apart[c, j, t] = 0.0
            for i in range(d):
                center, along = centers[c, i], vectors[c, i, j]
                for t in range(n):
                    apart[c, j, t] += (columns[i, t] - center) * along
        for s in range(q):
            for t in range(n):
                logs[c, s, t] = starts[c, s]
            for j in range(d):
                half = halves[c, s, j]
                for t in range(n):
                    logs[c, s, t] -= half * (apart[c, j, t] * apart[c, j, t])


@kernel
def _share_out(logs: Floats) -> float:
    """Turn each column's log-likelihoods into chances that sum to one; what is hopeless gets none.

    Hands back the sum of the columns' log-likelihoods.
    """
    choices, n = logs.shape
    top, total = np.full(n, -np.inf), np.zeros(n)
    for c in range(choices):
        for t in range(n):
            top[t] = max(top[t], logs[c, t])
    for c in range(choices):
        for t in range(n):
            gap = logs[c, t] - top[t]
            logs[c, t] = np.exp(gap) if gap > -30.0 else 0.0
            total[t] += logs[c, t]
    for c in range(choices):
        for t in range(n):
            logs[c, t] /= total[t]
    return float(top.sum() + np.log(total).sum())


@kernel
def _moments(
    turned: _Turned, apart: Floats, chances: Floats, means: Floats, weights: Floats, first: Floats,
    second: Floats,
) -> None:  # fmt: skip
    """Sum up the moments of each component's share of the rows; ``means`` becomes the rows' own."""
    centers, vectors, gains = turned.centers, turned.vectors, turned.gains
    (k, q, n), d = chances.shape, centers.shape[1]
    terms = np.empty(n)
    means[:] = 0.0
    for c in range(k):
        for s in range(q):
            for t in range(n):
                terms[t] = chances[c, s, t]
            share = sum_by_fours(terms)
            weights[c, s] += share
            for i in range(d):
                for t in range(n):
                    means[i, t] += terms[t] * centers[c, i]
        for j in range(d):
            _weighted(chances, gains, c, j, -1, terms)
            for t in range(n):
                terms[t] *= apart[c, j, t]
            first[c, j] += sum_by_fours(terms)
            for i in range(d):
                along = vectors[c, i, j]
                for t in range(n):
                    means[i, t] += terms[t] * along
            for i in range(j + 1):
                _weighted(chances, gains, c, j, i, terms)
                for t in range(n):
                    terms[t] *= apart[c, i, t] * apart[c, j, t]
                share = sum_by_fours(terms)
                second[c, i, j] += share
                if i < j:
                    second[c, j, i] += share


@kernel
def _weighted(chances: Floats, gains: Floats, c: int, j: int, i: int, terms: Floats) -> None:
    """Σ over scales of chance × gain in direction j (× gain in direction i, unless that is −1), by row."""
    terms[:] = 0.0
    for s in range(chances.shape[1]):
        gain = gains[c, s, j] if i < 0 else gains[c, s, j] * gains[c, s, i]
        for t in range(len(terms)):
            terms[t] += chances[c, s, t] * gain

"""A prior for people's rows that is learned from their noisy versions: a mixture of normal distributions.

Fitted by expectation and maximization with the noise known (extreme deconvolution, Bovy, Hogg and Roweis
2011; here with noise that may itself be a mixture). All rows are in units of the noise.
"""

from dataclasses import dataclass

import numpy as np

from targetdp.attacks.expectation import Mixture, expectation
from targetdp.attacks.known_noise import KnownNoise
from targetdp.typing import Floats

COMPONENTS = (1, 2, 4, 8, 16)
MOST_ROWS = 6_000
"""That a prior is fitted to: what it gains with more is small beside what it costs."""
_ROWS_PER_COMPONENT = 20
_ITERATIONS, _ENOUGH = 60, 2e-4
_SHRINK = 0.1
"""Share of the rows' variance that every component's covariance is drawn towards, by d + 2 rows' weight."""
_MOST_WORK = 2e8
"""Products in a round of fitting: wider tables get fewer components, the widest the linear prior only."""


@dataclass(frozen=True)
class Posterior:
    """What noisy rows say of the true ones: their ``means``; ``spread`` is the mean of their covariances."""

    means: Floats
    spread: Floats


def linear_prior(rows: Floats) -> Mixture:
    """One normal component: the rows' mean, and their covariance less the noise's (1), nowhere negative.

    Where noise is large beside the number of rows, it would look like structure: so the covariance is first
    drawn towards equal variance in all directions, by as much as its own uncertainty says (Ledoit and Wolf
    2004).
    """
    n, d = rows.shape
    center = rows.mean(axis=0)
    apart = rows - center
    covariance = apart.T @ apart / n
    even = np.eye(d) * (np.trace(covariance) / d)
    distance = float(np.square(covariance - even).sum())
    uncertain = float(np.square(np.square(apart).sum(axis=1)).mean() - np.square(covariance).sum()) / n
    share = min(1.0, uncertain / distance) if distance > 0 else 1.0
    values, vectors = np.linalg.eigh(covariance + share * (even - covariance) - np.eye(d))
    covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return Mixture(np.ones(1), center[None, :], covariance[None])


def linear_estimate(rows: Floats, prior: Mixture) -> Floats:
    """The best linear estimate of the true rows, Σ(Σ + 1)⁻¹ of the way from the mean."""
    covariance = prior.covariances[0]
    gain = np.linalg.solve(covariance + np.eye(len(covariance)), covariance)
    return np.asarray(prior.means[0] + (rows - prior.means[0]) @ gain)


def fitted_prior(rows: Floats, noise: KnownNoise, rng: np.random.Generator) -> Mixture:
    """A mixture whose number of components has the highest likelihood on a quarter of the rows, held out."""
    chosen = rng.permutation(len(rows))[:MOST_ROWS]
    quarter = len(chosen) // 4
    train, held = rows[chosen[quarter:]], rows[chosen[:quarter]]
    best, highest = linear_prior(rows[chosen]), -np.inf
    work = len(train) * rows.shape[1] ** 2 * len(noise.scales)
    for count in COMPONENTS:
        if count * work > _MOST_WORK or count * _ROWS_PER_COMPONENT > len(train):
            break
        candidate = _improved(_start(train, count, rng), train, noise)
        likelihood = expectation(candidate, held, noise).likelihood
        if likelihood <= highest:
            break
        best, highest = candidate, likelihood
    return best if np.isinf(highest) else _improved(best, rows[chosen], noise)


def posterior(prior: Mixture, rows: Floats, noise: KnownNoise) -> Posterior:
    """Means and mean covariance of the true rows given the noisy ones."""
    said = expectation(prior, rows, noise)
    across = said.first.T @ prior.means
    square = said.second.sum(axis=0) + across + across.T + (prior.means.T * said.weights) @ prior.means
    return Posterior(said.means, (square - said.means.T @ said.means) / len(rows))


def _start(rows: Floats, count: int, rng: np.random.Generator) -> Mixture:
    """Components around people far from each other (k-means++), then a few rounds of k-means."""
    whole = linear_prior(rows)
    if count == 1:
        return whole
    points = linear_estimate(rows, whole)
    centers = points[rng.integers(len(points))][None, :]
    for _ in range(count - 1):
        away = _squared(points, centers).min(axis=1)
        total = float(away.sum())
        pick = rng.choice(len(points), p=away / total if total > 0 else None)
        centers = np.vstack([centers, points[pick]])
    for _ in range(5):
        mine = _squared(points, centers).argmin(axis=1)
        sizes = np.bincount(mine, minlength=count)
        sums = np.stack([np.bincount(mine, weights=column, minlength=count) for column in points.T], axis=1)
        centers = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centers)
    weights = (sizes + 1) / (sizes.sum() + count)
    apart = points - centers[mine]
    within = apart.T @ apart / len(points) + 0.2 * whole.covariances[0]
    return Mixture(weights, centers, np.repeat(within[None], count, axis=0))


def _squared(points: Floats, centers: Floats) -> Floats:
    squares = (
        (points * points).sum(axis=1)[:, None] - 2 * points @ centers.T + (centers * centers).sum(axis=1)
    )
    return np.asarray(np.maximum(squares, 0.0))


def _improved(prior: Mixture, rows: Floats, noise: KnownNoise) -> Mixture:
    """Expectation and maximization until the likelihood hardly grows."""
    d = rows.shape[1]
    target = np.eye(d) * (_SHRINK * float(np.trace(linear_prior(rows).covariances[0])) / d)
    before = -np.inf
    for _ in range(_ITERATIONS):
        said = expectation(prior, rows, noise)
        if said.likelihood - before < _ENOUGH:
            break
        before = said.likelihood
        weights = np.maximum(said.weights, 1e-3)
        shifts = said.first / weights[:, None]
        squares = said.second - np.einsum("k,ki,kj->kij", weights, shifts, shifts)
        covariances = (squares + (d + 2) * target) / (weights + d + 2)[:, None, None]
        prior = Mixture(weights / weights.sum(), prior.means + shifts, covariances)
    return prior

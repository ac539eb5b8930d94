"""A prior for people's rows that is learned from their noisy versions: a mixture of normal distributions.

Fitted by expectation and maximization with the noise known (extreme deconvolution, Bovy, Hogg and Roweis
2011; here with noise that may itself be a mixture). All rows are in units of the noise; ``lengths`` are the
noise's deviations along their columns, so that rows times lengths are in units of the true rows, which lie in
the unit ball.
"""

import numpy as np

from targetdp._core import Floats
from targetdp.attacks._guess._mixture import Mixture, expectation
from targetdp.attacks._match._known_noise import KnownNoise

COMPONENTS = (1, 2, 4, 8, 16)
MOST_ROWS = 6_000
"""That a prior is fitted to: what it gains with more is small beside what it costs."""
_ROWS_PER_COMPONENT = 20
_ITERATIONS, _ENOUGH = 60, 2e-4
_SHRINK = 0.1
"""Share of the rows' variance that every component's covariance is drawn towards, by d + 2 rows' weight."""
_ROUNDS, _SMALL = 30, 1e-9
"""Of fitting one normal distribution; the variance it starts from, at least, in units of the noise."""
_MOST_WORK = 2e8
"""Products in a round of fitting: wider tables get fewer components, the widest the linear prior only."""


def linear_prior(rows: Floats, lengths: Floats) -> Mixture:
    """One normal component: the rows' mean, and their covariance less the noise's (1), nowhere negative.

    Where noise is large beside the number of rows, it would look like structure: so the covariance is first
    drawn towards people who vary equally in all directions (of the true rows: noise may not), by as much as
    its own uncertainty says (Ledoit and Wolf 2004). If people then vary more than the unit ball allows, noise
    was taken for them in its loudest directions, and a more patient fit takes its place. The mean, too, is
    drawn towards the center of the ball by as much as the rows leave it open.
    """
    n, d = rows.shape
    mean = rows.mean(axis=0)
    apart = rows - mean
    covariance = apart.T @ apart / n
    alike = lengths**-2.0  # variances, in units of the noise, of people who vary by 1 in all directions
    variance = max(0.0, float(np.trace(covariance)) - d) / float(alike.sum())
    even = np.eye(d) + np.diag(variance * alike)
    distance = float(np.square(covariance - even).sum())
    uncertain = float(np.square(np.square(apart).sum(axis=1)).mean() - np.square(covariance).sum()) / n
    share = min(1.0, max(0.0, uncertain / distance)) if distance > 0 else 1.0
    values, vectors = np.linalg.eigh(covariance + share * (even - covariance) - np.eye(d))
    people = (vectors * np.maximum(values, 0.0)) @ vectors.T
    if float(np.diag(people) @ lengths**2) > 1:
        people = _covariance_by_rounds(covariance, min(variance, 1 / d) * alike, lengths, n)
    before = np.diag(_variance_of_mean(mean, people, lengths, n) * alike)
    center = mean @ np.linalg.solve(before + (people + np.eye(d)) / n, before)
    return Mixture(np.ones(1), center[None, :], people[None])


def _covariance_by_rounds(covariance: Floats, even: Floats, lengths: Floats, n: int) -> Floats:
    """People's covariance by a few rounds of expectation and maximization from equal variances.

    Each round moves a direction by as much as rows say of it: where noise is loud, it hardly moves.
    """
    d = len(even)
    people = np.diag(np.maximum(even, _SMALL))
    start = people * (d + 2)
    for _ in range(_ROUNDS):
        gain = np.linalg.solve(people + np.eye(d), people)
        people = (n * (gain + gain.T @ covariance @ gain) + start) / (n + d + 2)
        people = _as_in_the_ball((people + people.T) / 2, lengths)
    return people


def _variance_of_mean(mean: Floats, people: Floats, lengths: Floats, n: int) -> float:
    """Of the mean's values around zero in any direction, the likeliest, in units of the rows.

    By expectation and maximization from 1/d, the most that is possible in the unit ball.
    """
    most = variance = 1 / len(mean)
    squares, uncertainties = np.square(mean * lengths), lengths**2 * (1 + np.diag(people)) / n
    for _ in range(_ROUNDS):
        gains = variance / (variance + uncertainties)
        variance = min(most, float((gains * uncertainties + gains**2 * squares).mean()))
    return variance


def _as_in_the_ball(covariance: Floats, lengths: Floats) -> Floats:
    """A covariance whose largest variances are cut to one level, so that rows have 1 at most in all."""
    scale = np.outer(lengths, lengths)
    if float(np.trace(covariance * scale)) <= 1:
        return covariance
    values, vectors = np.linalg.eigh(covariance * scale)
    values = np.maximum(values, 0.0)
    d, below = len(values), np.concatenate([[0.0], np.cumsum(values)[:-1]])  # values are in rising order
    levels = (1 - below) / np.arange(d, 0, -1)  # if all from this one on are cut
    level = levels[np.argmax(values >= levels)]
    return np.asarray((vectors * np.minimum(values, level)) @ vectors.T / scale)


def linear_estimate(rows: Floats, prior: Mixture) -> Floats:
    """The best linear estimate of the true rows, Σ(Σ + 1)⁻¹ of the way from the mean."""
    covariance = prior.covariances[0]
    gain = np.linalg.solve(covariance + np.eye(len(covariance)), covariance)
    return np.asarray(prior.means[0] + (rows - prior.means[0]) @ gain)


def fitted_prior(rows: Floats, noise: KnownNoise, rng: np.random.Generator) -> Mixture:
    """A mixture: components are doubled as long as that raises the likelihood of a quarter of rows, held out.

    It is fitted to `MOST_ROWS` rows at most; `notes_on_fitting` says what was left out.
    """
    chosen = rng.permutation(len(rows))[:MOST_ROWS]
    quarter = len(chosen) // 4
    train, held = rows[chosen[quarter:]], rows[chosen[:quarter]]
    best, highest = linear_prior(rows[chosen], noise.lengths), -np.inf
    for count in _affordable(len(rows), noise):
        if count * _ROWS_PER_COMPONENT > len(train):
            break
        candidate = _improved(_start(train, count, noise, rng), train, noise)
        likelihood = expectation(candidate, held, noise).likelihood
        if likelihood <= highest:
            break
        best, highest = candidate, likelihood
    return best if np.isinf(highest) else _improved(best, rows[chosen], noise)


def notes_on_fitting(people: int, noise: KnownNoise) -> tuple[str, ...]:
    """What was left out to fit a prior in a reasonable time, in sentences."""
    notes = []
    if people > MOST_ROWS:
        notes.append(
            f"The mixture prior was fitted to {MOST_ROWS:,} of the {people:,} rows, drawn at random."
        )
    counts = _affordable(people, noise)
    if not counts:
        notes.append(
            "The table is too wide to fit a mixture in a reasonable time: its place is taken by the normal "
            "prior of the linear estimate."
        )
    elif len(counts) < len(COMPONENTS):
        notes.append(
            f"The table is so wide that mixtures of {counts[-1]} components at most were tried, instead of "
            f"{COMPONENTS[-1]}."
        )
    return tuple(notes)


def _affordable(people: int, noise: KnownNoise) -> tuple[int, ...]:
    """Numbers of components for which fitting does not take too long."""
    kept = min(people, MOST_ROWS)
    work = (kept - kept // 4) * len(noise.lengths) ** 2 * len(noise.scales)
    return tuple(count for count in COMPONENTS if count * work <= _MOST_WORK)


def posterior_spread(prior: Mixture, rows: Floats, noise: KnownNoise) -> Floats:
    """The mean of the true rows' covariances given the noisy ones."""
    expected = expectation(prior, rows, noise)
    across = expected.first.T @ prior.means
    square = (
        expected.second.sum(axis=0) + across + across.T + (prior.means.T * expected.weights) @ prior.means
    )
    return np.asarray((square - expected.means.T @ expected.means) / len(rows))


def _start(rows: Floats, count: int, noise: KnownNoise, rng: np.random.Generator) -> Mixture:
    """Components around people far from each other (k-means++), then a few rounds of k-means."""
    whole = linear_prior(rows, noise.lengths)
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
    lengths = noise.lengths
    variance = float(np.diag(linear_prior(rows, lengths).covariances[0]) @ lengths**2)
    target = np.diag(_SHRINK * variance / d / lengths**2)  # the same for all directions of the true rows
    before = -np.inf
    for _ in range(_ITERATIONS):
        expected = expectation(prior, rows, noise)
        if expected.likelihood - before < _ENOUGH:
            break
        before = expected.likelihood
        weights = np.maximum(expected.weights, 1e-3)
        shifts = expected.first / weights[:, None]
        squares = expected.second - np.einsum("k,ki,kj->kij", weights, shifts, shifts)
        covariances = (squares + (d + 2) * target) / (weights + d + 2)[:, None, None]
        covariances = np.stack([_as_in_the_ball(covariance, lengths) for covariance in covariances])
        prior = Mixture(weights / weights.sum(), prior.means + shifts, covariances)
    return prior

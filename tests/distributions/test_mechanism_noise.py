"""Every noise mechanism draws the noise it claims: in a simulation and in a release alike."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from support.statistics import assert_scale, follows
from targetdp import GaussianNoise, Partitioned, PrivateProjection, SphericalLaplace, Staircase
from targetdp._core import Floats
from targetdp.mechanisms import Calibration, NoiseMechanism
from targetdp.mechanisms._projection_law import draw_projection
from targetdp.noise._random_words import SimulatedWords

SEED = 11
ROWS = 30_000
CLAIM: dict[str, Any] = {"B": 0.25, "epsilon": 3.9999, "delta": 1 / 4202}
SPLIT: dict[str, Any] = {
    "B": 0.25,
    "epsilon1": 3.0,
    "epsilon2": 0.9999,
    "delta1": 2 / 12606,
    "delta2": 1 / 12606,
}


def noise_of(mechanism: NoiseMechanism, d: int, path: str, rows: int = ROWS) -> Floats:
    """The noise on rows that all are the same point inside the unit ball."""
    X = np.full((rows, d), 0.3 / np.sqrt(d))
    rng = np.random.default_rng(SEED) if path == "simulation" else None
    return np.asarray(mechanism.privatize(X, rng) - X)


def some_of(z: Floats) -> Floats:
    """Values of all columns and rows, far more than power needs: of 50 columns every seventh."""
    return z.ravel()[:: max(1, z.size // 200_000)]


paths = pytest.mark.parametrize("path", ["simulation", "release"])


@paths
@pytest.mark.parametrize("d", [1, 2, 10, 50])
def test_gaussian(d: int, path: str) -> None:
    mechanism = GaussianNoise(**CLAIM)
    z = noise_of(mechanism, d, path)
    assert_scale(some_of(z) / mechanism.noise_sd(d), stats.norm.cdf)
    assert_scale((z**2).sum(axis=1) ** 0.5 / mechanism.noise_sd(d), stats.chi(d).cdf)
    assert np.abs(np.corrcoef(z[:-1, 0], z[1:, 0])[0, 1]) < 6 / np.sqrt(ROWS)  # rows are independent


@paths
@pytest.mark.parametrize("delta", [0.0, 1 / 4202])
@pytest.mark.parametrize("d", [1, 2, 10, 50])
def test_spherical_laplace(d: int, delta: float, path: str) -> None:
    mechanism = SphericalLaplace(B=0.25, epsilon=3.9999, delta=delta)
    z = noise_of(mechanism, d, path)
    b = mechanism.noise_sd(d) / np.sqrt(d + 1)
    radius = np.linalg.norm(z, axis=1)
    assert_scale(radius / b, stats.gamma(d).cdf)
    direction = z / radius[:, None]
    if d == 1:
        assert abs(direction.mean()) < 6 / np.sqrt(ROWS)
    else:  # a coordinate of a uniform direction: (1 + c)/2 is Beta((d − 1)/2, (d − 1)/2)
        beta = stats.beta((d - 1) / 2, (d - 1) / 2)
        assert follows((1 + direction[:, 0]) / 2, beta.cdf)
        assert follows((1 + direction @ np.full(d, d**-0.5)) / 2, beta.cdf)
        assert abs(stats.spearmanr(radius, direction[:, 0])[0]) < 6 / np.sqrt(ROWS)


@paths
def test_staircase(path: str) -> None:
    mechanism = Staircase(B=0.25, epsilon=1.5)
    z = noise_of(mechanism, 1, path).ravel()
    law = mechanism.law()
    steps, inner, level, grid = law.period, law.inner, law.level, law.grid
    period, gamma = steps * grid, inner / steps

    def cdf(x: Floats) -> Floats:
        """Integrate the staircase density from its definition."""
        top = (1 - np.exp(-level)) / (2 * (gamma + np.exp(-level) * (1 - gamma)))
        t = np.abs(np.asarray(x))
        whole, part = np.floor(t), t - np.floor(t)
        below = (
            top * (gamma + (1 - gamma) * np.exp(-level)) * (1 - np.exp(-level * whole)) / (1 - np.exp(-level))
        )
        inside = np.minimum(part, gamma) + np.exp(-level) * np.maximum(part - gamma, 0)
        half = below + top * np.exp(-level * whole) * inside
        return np.asarray(0.5 + np.sign(x) * half)

    assert_scale(z / period, cdf)
    assert z.std() == pytest.approx(mechanism.noise_sd(1), rel=0.03)


@paths
@pytest.mark.parametrize(
    ("d", "k", "calibration"),
    [(1, 40, "printed"), (2, 1000, "exact"), (10, 10_000, "printed"), (10, 60, "exact")],
)
def test_projection_whitened_by_its_own_covariance(
    d: int, k: int, calibration: Calibration, path: str
) -> None:
    mechanism = PrivateProjection(**SPLIT, k=k, calibration=calibration)
    z = noise_of(mechanism, d, path)
    if path == "simulation":  # the simulation draws R first: draw it again from the same seed
        projection = draw_projection(d, k, SimulatedWords(np.random.default_rng(SEED)))
        sigma, _ = mechanism._step3_noise(projection)
        back = k * sigma * projection.inverse()
        covariance = back.T @ back
    else:
        covariance = mechanism.noise_covariance(d)
    white = np.linalg.solve(np.linalg.cholesky(covariance), z.T)
    assert_scale(white.ravel(), stats.norm.cdf)
    assert np.abs(np.cov(white) - np.eye(d)).max() < 8 / np.sqrt(ROWS)


@paths
def test_projection_with_fewer_dimensions_than_columns(path: str) -> None:
    d, k = 10, 4
    mechanism = PrivateProjection(**SPLIT, k=k)
    rng = np.random.default_rng(SEED) if path == "simulation" else None
    z = mechanism.privatize(np.zeros((ROWS, d)), rng)
    words = SimulatedWords(np.random.default_rng(SEED))
    projection = draw_projection(d, k, words) if rng else mechanism.public_projection(d)
    sigma, _ = mechanism._step3_noise(projection)
    inside = z @ projection.directions  # in the random subspace, whitened
    assert np.allclose(inside @ projection.directions.T, z, atol=1e-12 * np.abs(z).max())
    assert_scale((inside * projection.lengths / (k * sigma)).ravel(), stats.norm.cdf)


@paths
def test_partitioned_noise_is_the_mechanisms(path: str) -> None:
    mechanism = Partitioned(SphericalLaplace(**CLAIM), parts=6)
    z = noise_of(mechanism, 10, path)
    b = mechanism.noise_sd(10) / np.sqrt(11)
    assert_scale(np.linalg.norm(z, axis=1) / b, stats.gamma(10).cdf)

"""Moments of rows without their noise: right in the limit, plausible where noise is larger than signal."""

import numpy as np
import pytest

from support.targeting import covariance, crowd, noisy
from targetdp import Guarantee
from targetdp.targeting._denoise import plausible, signal_of


def test_without_noise_they_are_the_usual_moments() -> None:
    X = crowd(5_000).X
    found = signal_of(X, np.zeros((4, 4)))
    np.testing.assert_allclose(found.center, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.covariance, np.cov(X.T), atol=1e-12)
    assert found.shrinkage < 0.01
    assert found.crowding == pytest.approx(1 / 5_000)


def test_noise_is_taken_off() -> None:
    """Half a million rows: each entry is within 5 standard errors of about 0.0004, and 0.9 of Σ₁ is not."""
    mechanism, sigma = noisy(Guarantee(0.5, 4.0))
    Z = mechanism.privatize(crowd(500_000).X, np.random.default_rng(3))
    found = signal_of(Z, sigma)
    np.testing.assert_allclose(found.covariance, covariance(), atol=2e-3)
    np.testing.assert_allclose(found.shrunk, covariance(), atol=3e-3)
    assert np.abs(signal_of(Z, 0.9 * sigma).covariance - covariance()).max() > 3e-3


@pytest.mark.parametrize("people", [40, 2_000])
@pytest.mark.parametrize("B", [0.25, 2.0])
def test_what_is_used_is_a_plausible_covariance(B: float, people: int) -> None:
    """Noise far larger than the signal leaves cov(Z) − Σ₁ with negative eigenvalues: never the shrunk one."""
    mechanism, sigma = noisy(Guarantee(B, 1.0))
    found = signal_of(mechanism.privatize(crowd(people).X, np.random.default_rng(5)), sigma)
    values = np.linalg.eigvalsh(found.shrunk)
    assert values.min() >= -1e-12
    assert 0 < found.typical <= 1 / 4
    assert 0 <= found.shrinkage <= 1
    if B == 2.0:
        assert np.linalg.eigvalsh(found.covariance).min() < 0
        assert found.shrinkage > 0.9


def test_shrinking_brings_it_nearer_to_the_truth() -> None:
    mechanism, sigma = noisy(Guarantee(1.0, 4.0))
    X, rng = crowd(1_000).X, np.random.default_rng(7)
    drawn = [signal_of(mechanism.privatize(X, rng), sigma) for _ in range(20)]
    raw, shrunk = (
        np.mean([np.sum(np.square(m - covariance())) for m in found])
        for found in ([s.covariance for s in drawn], [s.shrunk for s in drawn])
    )
    assert shrunk < 0.5 * raw


def test_weights_count_people_as_often_as_they_say() -> None:
    X = crowd(60).X
    counts = np.asarray(np.arange(60) % 3 + 1, dtype=np.float64)
    found = signal_of(X, np.zeros((4, 4)), counts)
    repeated = np.repeat(X, counts.astype(int), axis=0)
    np.testing.assert_allclose(found.center, repeated.mean(axis=0), atol=1e-12)
    biased = found.covariance * (1 - found.crowding)
    np.testing.assert_allclose(biased, np.cov(repeated.T, bias=True), atol=1e-12)


def test_what_is_plausible() -> None:
    assert plausible(0.3, 1e-9, 1.0) == 0.3
    assert plausible(0.3, 0.01, 1.0) == pytest.approx(0.3, abs=1e-6)
    assert plausible(5.0, 1e-9, 1.0) == 1.0
    assert plausible(0.3, 100.0, 1.0) == pytest.approx(0.5, abs=1e-3)
    assert plausible(0.3, 100.0, 1.0, usual=0.2) == pytest.approx(0.2, abs=0.02)
    for far in (-50.0, -1e9):
        assert 0 < plausible(far, 0.1, 1.0) < 0.05
    assert plausible(-1.0, 0.0, 1.0) > 0
    low, middle, high = (plausible(0.3, 0.05, 1.0, at=at) for at in (0.025, 0.5, 0.975))
    assert middle == pytest.approx(0.3, abs=2e-3)
    assert (middle - low, high - middle) == pytest.approx((0.098, 0.098), abs=3e-3)

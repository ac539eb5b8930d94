"""Scores without noise, and the attacks that compare a release of scores with them."""

from typing import Any

import numpy as np
import pytest

from targetdp import GaussianNoise, SphericalLaplace, Staircase, linkage, membership, singling_out
from targetdp._core import Floats
from targetdp.attacks import in_scores
from targetdp.attacks._linkage import LIKELIEST, NEAREST
from targetdp.mechanisms import Scores
from targetdp.normalization import clip_rows

NOISES = (
    Staircase(B=0.25, epsilon=4),
    SphericalLaplace(B=0.25, epsilon=4),
    GaussianNoise(B=0.25, epsilon=4, delta=1e-6),
)
W = np.array([3.0, -2.0, 1.0, 0.5])


def rows(n: int = 120, seed: int = 0) -> Floats:
    return clip_rows(np.random.default_rng(seed).normal(0, 0.5, (n, 4)))


def test_they_are_the_weighted_sums_that_noise_is_added_to() -> None:
    X = rows()
    mechanism = Scores(np.vstack([W, W[::-1]]), SphericalLaplace(B=0.25, epsilon=4))
    exact = in_scores(X, mechanism)
    assert exact == pytest.approx(X @ np.array(mechanism.weights).T, abs=1e-15)
    assert np.array_equal(exact, in_scores(X, mechanism.law(4)))
    assert np.linalg.norm(exact, axis=1).max() <= 1
    quiet = Scores(W, Staircase(B=1e-6, epsilon=20))
    assert in_scores(X, quiet) == pytest.approx(quiet.privatize(X, np.random.default_rng(0)), abs=1e-5)


@pytest.mark.parametrize("noise", NOISES)
def test_linkage_by_scores_is_that_of_comparing_all_pairs(noise: Any) -> None:
    X, mechanism = rows(), Scores(W, noise)
    released, exact = mechanism.privatize(X, np.random.default_rng(1)), in_scores(X, mechanism)
    found = linkage(exact, released, noise.law(1), rng=np.random.default_rng(2))
    apart = np.abs(released - exact.T)  # row: a released score; column: a person
    nearest = np.mean(apart.argmin(axis=1) == np.arange(len(X)))
    assert found.settings[NEAREST].score == pytest.approx(1 - nearest)
    if isinstance(noise, Staircase):
        law = noise.law(1)
        steps = np.maximum(0, np.floor((apart - law.inner * law.grid) / (law.period * law.grid)) + 1)
        best = steps == steps.min(axis=1, keepdims=True)
        likeliest = np.mean(np.diag(best) / best.sum(axis=1))
        assert found.settings[LIKELIEST].score == pytest.approx(1 - likeliest)
    assert found.score < 1 - 2 / len(X)


@pytest.mark.parametrize("noise", NOISES)
def test_singling_out_by_scores_is_that_of_counting_in_every_box(noise: Any) -> None:
    X, mechanism = rows(), Scores(W, noise)
    released, exact = mechanism.privatize(X, np.random.default_rng(1)), in_scores(X, mechanism)
    found = singling_out(exact, released, (0.01, 0.1, 1.0))
    inside = np.abs(released - exact.T)[None] <= (np.array([0.01, 0.1, 1.0]) * released.std())[:, None, None]
    alone = (inside & (inside.sum(axis=2, keepdims=True) == 1)).any(axis=1)
    expected = 1 - alone.mean(axis=1)
    scores = [setting.score for name, setting in found.settings.items() if name != "net size 0"]
    assert scores == pytest.approx(expected)
    assert found.score < 1


def test_membership_by_scores() -> None:
    mechanism = Scores(W, Staircase(B=1e-3, epsilon=8))
    X, others = rows(), rows(60, seed=9)
    released = mechanism.privatize(X, np.random.default_rng(1))
    found = membership(
        in_scores(X, mechanism), released, in_scores(others, mechanism), mechanism.noise,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert found.score < 0.2


def test_refused_with_the_reason() -> None:
    mechanism = Scores(W, Staircase(B=0.25, epsilon=4))
    with pytest.raises(ValueError, match="law is for 4 columns, X has 3"):
        in_scores(rows()[:, :3], mechanism)
    with pytest.raises(ValueError, match="law is for 4 columns, X has 3"):
        in_scores(rows()[:, :3], mechanism.law(4))
    with pytest.raises(ValueError, match="outside the unit ball"):
        in_scores(9 * rows(), mechanism)
    with pytest.raises(TypeError, match="law = "):
        in_scores(rows(), Staircase(B=0.25, epsilon=4).law(1))  # type: ignore[arg-type]

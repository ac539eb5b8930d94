"""Scores: a map of norm at most 1 before the noise, whoever gave the weights."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from targetdp import GaussianNoise, Guarantee, SphericalLaplace, Staircase, least_noise
from targetdp._core import Floats, row_product
from targetdp.attacks import audit
from targetdp.mechanisms import (
    MOST_SCORES,
    LinearLaw,
    Scores,
    norm_bound,
    score_rounding,
    unit_map,
    weights_matrix,
)
from targetdp.normalization import clip_rows

PROMISE = Guarantee(0.25, 4.0, 1e-5)


def scores(weights: Any, promise: Guarantee = PROMISE) -> Scores:
    rows = np.atleast_2d(np.asarray(weights, dtype=float))
    return Scores(weights, least_noise(promise, len(rows)).mechanism)


def neighbors(rng: np.random.Generator, d: int, B: float) -> tuple[Floats, Floats]:
    """Two rows of the unit ball, clipped as every mechanism does, at distance B or a hair below it."""
    one = clip_rows(rng.normal(size=(1, d)) * rng.exponential())
    step = rng.normal(size=(1, d))
    other = clip_rows(one + step * (B / np.linalg.norm(step)))
    return one, other


# The map


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 5),
    st.sampled_from([1e-6, 0.05, 0.25, 2.0]), st.sampled_from([1e-300, 1e-3, 1.0, 1e200]),
)  # fmt: skip
def test_neighbors_stay_neighbors_in_floats(seed: int, d: int, q: int, B: float, size: float) -> None:
    rng = np.random.default_rng(seed)
    W = unit_map(rng.normal(size=(min(q, d), d)) * size, B)
    assert norm_bound(W) <= 1
    for _ in range(20):
        one, other = neighbors(rng, d, B)
        moved = np.linalg.norm(
            clip_rows(row_product(one, W.T)).astype(np.longdouble) - clip_rows(row_product(other, W.T))
        )
        assert moved <= B


@pytest.mark.parametrize("q", [1, 3])
def test_a_norm_is_bounded_from_above_and_closely(q: int) -> None:
    W = np.random.default_rng(5).normal(size=(q, 7))
    true = float(np.linalg.svd(W, compute_uv=False)[0])
    assert true <= norm_bound(W) <= true * (1 + 1e-8)


def test_only_directions_count() -> None:
    one, other = scores([3.0, 4.0]), scores([3e250, 4e250])
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-12)
    np.testing.assert_allclose(one.weights[0], [0.6, 0.8], rtol=1e-8)


def test_rounding_covers_clipping_and_sums() -> None:
    """Against exact sums: scores in floats are off by less than half of what is allowed for a pair."""
    rng = np.random.default_rng(1)
    d = 300
    W = unit_map(rng.normal(size=(1, d)), 1.0)
    rows = clip_rows(rng.normal(size=(200, d)))
    exact = np.array([math.fsum(a * b for a, b in zip(row, W[0], strict=True)) for row in rows.tolist()])
    assert np.abs(row_product(rows, W.T)[:, 0] - exact).max() < score_rounding(d, 1) / 2


# The guarantee


def test_the_noise_is_that_of_one_dimension() -> None:
    """√2·B/ε for Laplace noise, 0.255·B for the staircase, against 0.712·B for each of ten columns."""
    weights = np.ones(10)
    laplace = Scores(weights, SphericalLaplace(B=0.25, epsilon=4.0))
    assert laplace.noise_sd(10) == pytest.approx(math.sqrt(2) * 0.25 / 4, rel=1e-5)
    assert scores(weights).noise_sd(10) == pytest.approx(0.255 * 0.25, rel=1e-3)
    assert laplace.noise_covariance(10).shape == (1, 1)


@pytest.mark.parametrize(
    "noise",
    [
        GaussianNoise(B=0.25, epsilon=2.0, delta=1e-5),
        SphericalLaplace(B=0.25, epsilon=2.0, delta=1e-5),
        Staircase(B=0.25, epsilon=2.0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_the_claim_is_kept_with_the_rounding_of_the_map(noise: Any) -> None:
    made = Scores(np.arange(1.0, 9.0), noise)
    assert made.guarantee == noise.guarantee
    claim = made.guarantee
    assert made.law(8).privacy_loss(0.25).delta(claim.epsilon) <= claim.delta
    assert made.epsilon(distance=0.25, delta=claim.delta, dimensions=8) <= claim.epsilon
    # Beyond B the truth is known, too, and classic privacy costs more.
    assert made.epsilon(distance=2.0, delta=claim.delta, dimensions=8) > claim.epsilon


def test_at_the_largest_distance_nothing_is_refused() -> None:
    made = scores(np.ones((2, 3)) + np.eye(2, 3), Guarantee(2.0, 1.0, 1e-5))
    assert made.epsilon(distance=2.0, delta=1e-5, dimensions=3) <= 1.0


def test_weights_above_norm_1_have_no_law() -> None:
    noise = Staircase(B=0.25, epsilon=2.0).law(1)
    with pytest.raises(ValueError, match="norm above 1"):
        LinearLaw(2, noise.grid, ((0.8, 0.8),), noise)
    with pytest.raises(ValueError, match="they must agree"):
        LinearLaw(3, noise.grid, ((0.5, 0.5),), noise)
    with pytest.raises(ValueError, match="is not the noise's"):
        LinearLaw(2, noise.grid / 2, ((0.5, 0.5),), noise)
    with pytest.raises(TypeError, match="multiply the two maps"):
        Scores([1.0], scores([1.0]))


def test_an_audit_does_not_refute_it_and_refutes_a_twin_that_does_not_normalize() -> None:
    honest = scores([1.0, 2.0, 2.0], Guarantee(0.5, 1.0, 1e-5))
    assert audit(honest, dimensions=3, runs=40_000, rng=np.random.default_rng(3)).holds
    broken = Unscaled([1.0, 2.0, 2.0], honest.noise)
    assert not audit(broken, dimensions=3, runs=40_000, rng=np.random.default_rng(3)).holds


class Unscaled(Scores):
    """What somebody would build who believes the weights: a map of norm 3."""

    def _privatize(self, rows: Floats, words: Any, *, fresh: bool) -> Floats:
        del fresh
        return self.noise.law(1).add_to(row_product(rows, np.array([[1.0], [2.0], [2.0]])), words)


def test_scores_have_the_distribution_that_is_stated() -> None:
    """Deviation within 3% of 40,000 draws (5 standard errors), and 0.9 or 1.1 of it is outside."""
    made = scores([1.0, -1.0, 0.5])
    row = np.array([[0.3, -0.2, 0.1]])
    drawn = made.privatize(np.repeat(row, 40_000, axis=0), np.random.default_rng(11))[:, 0]
    center = float((row @ np.array(made.weights).T)[0, 0])
    assert drawn.mean() == pytest.approx(center, abs=5 * made.noise_sd(3) / 200)
    share = drawn.std() / made.noise_sd(3)
    assert 0.95 < share < 1.05


def test_the_order_of_rows_changes_nobodys_score() -> None:
    W = np.array(scores([1.0, 2.0, 3.0]).weights)
    rows = clip_rows(np.random.default_rng(2).normal(size=(50, 3)))
    order = np.random.default_rng(3).permutation(50)
    np.testing.assert_array_equal(row_product(rows, W.T)[order], row_product(rows[order], W.T))


def test_one_score_is_summed_as_one_of_several() -> None:
    rng = np.random.default_rng(8)
    rows, matrix = rng.normal(size=(400, 30)), rng.normal(size=(30, 3))
    together = row_product(rows, matrix)
    for j in range(3):
        np.testing.assert_array_equal(row_product(rows, matrix[:, [j]])[:, 0], together[:, j])


# Weights are somebody else's


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([0.0, 0.0], "is zero"),
        ([[1.0, 2.0], [0.0, 0.0]], r"weights\[1\] is zero"),
        ([1.0, float("nan")], "NaN or infinite"),
        ([1.0, float("inf")], "NaN or infinite"),
        ([[1.0], [2.0]], "at most 1 scores"),
        (np.ones((1000, 2000)), f"at most {MOST_SCORES} scores"),
        ([], "weights"),
        ([[1.0, 2.0], [1.0]], "weights"),
        ("1, 2", "weights"),
        ([None, 1.0], "weights"),
        ([True, False], "weights"),
    ],
)
def test_bad_weights_get_a_clear_error(weights: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        weights_matrix(weights)


def test_other_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="X has 3 columns, weights are for 2"):
        scores([1.0, 1.0]).privatize(np.zeros((4, 3)))


def test_a_tiny_B_leaves_no_room_for_floats() -> None:
    with pytest.raises(ValueError, match="too small for"):
        unit_map(np.ones(16_000), 1e-11)

"""Numbers of the paper, and numbers that follow from its formulas, each with its place."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from targetdp import (
    Guarantee,
    PrivateProjection,
    SphericalLaplace,
    Staircase,
    accuracy_ceiling,
    largest_B,
    least_noise,
)
from targetdp._core import Floats
from targetdp.mechanisms import delta_per_part, printed_step3_sigma, printed_step4_sigma
from targetdp.mechanisms._projection_law import covariance_sensitivity, draw_projection, ternary
from targetdp.noise import PublicWords
from targetdp.noise._random_words import SimulatedWords
from targetdp.normalization import clip_rows

DELTA = 1 / 4202
"""δ = 1/(n + 1) for the 4,201 people of the Togolese case study (Methods, Constructing TDP datasets)."""

PROMISE = Guarantee(B=0.25, epsilon=3.9999, delta=DELTA)
PRINTED = PrivateProjection(B=0.25, epsilon1=3, epsilon2=0.9999, delta1=2 / 3 * DELTA, delta2=DELTA / 3)


def test_example_1() -> None:
    """Methods, Example 1: γ = 0.99, δ = 10⁻⁴: B ≤ 0.4 for ε = 1 and B ≤ 1 for ε = 4, as printed."""
    for epsilon, B, ceiling in ((1, 0.4, 0.7311), (4, 1.0, 0.9821)):
        assert largest_B(accuracy=0.99, epsilon=epsilon, delta=1e-4, theorem="printed") == B
        assert largest_B(accuracy=0.99, epsilon=epsilon, delta=1e-4) is None
        assert ceiling - 1e-4 < accuracy_ceiling(Guarantee(B, epsilon, 1e-4)) <= ceiling


def test_algorithm_1_step_1_samples_the_three_values_equally() -> None:
    """Algorithm 1, Step 1: entries uniform over {−1, 0, 1}."""
    draws = ternary(300_000, SimulatedWords(np.random.default_rng(1)))
    counts = np.array([(draws == value).sum() for value in (-1, 0, 1)])
    assert counts.sum() == 300_000
    assert np.abs(counts / 300_000 - 1 / 3).max() < 6 * math.sqrt(2 / 9 / 300_000)  # six deviations


def test_algorithm_1_step_1_decomposition_is_of_the_matrix_that_was_drawn() -> None:
    for d, k in ((3, 50), (5, 2), (10, 100_000)):
        projection = draw_projection(d, k, PublicWords(7))
        words, width = PublicWords(7), max(1, min(k, (1 << 17) // d))
        blocks = [ternary(d * min(width, k - at), words).reshape(d, -1) for at in range(0, k, width)]
        R = np.concatenate(blocks, axis=1).astype(float)
        assert R.shape == (d, k)
        scaled = projection.directions * projection.lengths
        np.testing.assert_allclose(scaled @ scaled.T, R @ R.T, atol=1e-8 * k)
        np.testing.assert_allclose(projection.largest, np.linalg.norm(R, 2), rtol=1e-9)


def test_algorithm_1_printed_scales() -> None:
    """Algorithm 1, Steps 3 and 4, evaluated by hand for B = 0.25, d = 10, k = 10⁴."""
    delta1, delta2 = 2 / 3 * DELTA, DELTA / 3
    alpha = 0.25 / 100 * math.sqrt(10 * math.log(2 / 3 * (math.e - 1) + 1) - math.log(delta1 / 2) / 1e4)
    by_hand = alpha * math.sqrt(2 * (math.log(1 / delta1) + 3)) / 3
    assert printed_step3_sigma(0.25, 10, 10_000, 3, delta1) == pytest.approx(by_hand, rel=1e-12)
    by_hand = 2 * 0.25 * math.sqrt(2 * math.log(1.25 / delta2)) / 0.9999
    assert printed_step4_sigma(0.25, 0.9999, delta2) == pytest.approx(by_hand, rel=1e-12)


def test_theorem_2_label_and_what_is_really_spent() -> None:
    """Theorem 2 states ε₁ + ε₂ = 3.9999; the ε that full rank really spends at that δ is 0.51."""
    assert PRINTED.guarantee.epsilon == pytest.approx(3.9999)
    assert PRINTED.guarantee.delta == pytest.approx(DELTA)
    assert PRINTED.epsilon(distance=0.25, delta=DELTA, dimensions=10) == pytest.approx(0.51, abs=0.005)


def test_noise_per_coordinate_for_one_claim() -> None:
    """Deviation per coordinate in units of B, for (B, 3.9999, 1/4202) and ten columns."""
    assert PRINTED.noise_sd(10) / 0.25 == pytest.approx(5.47, abs=0.02)
    choice = least_noise(PROMISE, 10)
    assert choice.noise["gaussian"] / 0.25 == pytest.approx(0.909, abs=0.0006)
    assert choice.noise["spherical-laplace"] / 0.25 == pytest.approx(0.712, abs=0.0006)
    assert SphericalLaplace(B=0.25, epsilon=3.9999).noise_sd(10) / 0.25 == pytest.approx(0.829, abs=0.0006)
    assert Staircase(B=0.25, epsilon=3.9999).noise_sd(1) / 0.25 == pytest.approx(0.255, abs=0.0006)


@pytest.mark.parametrize(
    ("d", "sd"), [(1, 0.354), (2, 0.432), (5, 0.589), (10, 0.712), (15, 0.769), (50, 0.863), (100, 0.886)]
)
def test_spherical_laplace_over_dimensions(d: int, sd: float) -> None:
    mechanism = SphericalLaplace(B=1, epsilon=3.9999, delta=DELTA)
    assert mechanism.noise_sd(d) == pytest.approx(sd, abs=0.0006)
    assert mechanism.noise_sd(d) < least_noise(Guarantee(1, 3.9999, DELTA), d).noise["gaussian"]


@pytest.mark.parametrize("B", [0.05, 0.25, 0.5, 2 / 3, 0.75, 1.0, 1.3, math.sqrt(2), 1.7, 2.0])
def test_lemma_7_covariance_sensitivity_is_the_exact_maximum(B: float) -> None:
    """Lemma 7 bounds ‖xxᵀ − zzᵀ‖_F by 2B; the exact maximum by a search over pairs in the ball."""
    rng = np.random.default_rng(3)

    def pair(p: Floats) -> float:
        x, z = clip_rows(p.reshape(2, 2))
        gap = float(np.linalg.norm(x - z))
        if gap > B:  # pull z towards x: stays in the ball, which is convex
            z = x + (z - x) * (B / gap)
        return -float(np.linalg.norm(np.outer(x, x) - np.outer(z, z)))

    found = max(-minimize(pair, rng.standard_normal(4) * 2, method="Nelder-Mead").fun for _ in range(20))
    assert found == pytest.approx(covariance_sensitivity(B), rel=2e-3)
    assert found <= covariance_sensitivity(B) * (1 + 1e-9)
    assert covariance_sensitivity(B) <= 2 * B


def test_lemma_5_sensitivity_is_loose_by_about_the_root_of_d() -> None:
    """Lemma 5 bounds ‖k⁻¹(X − X′)R‖ by (B/k)·‖R‖_F; the exact bound is (B/k)·σ_max(R)."""
    projection = PRINTED.public_projection(10)
    frobenius = math.sqrt(float((projection.lengths**2).sum()))
    assert frobenius / projection.largest == pytest.approx(math.sqrt(10), rel=0.05)


def test_proposition_1_bounds_the_chance_of_a_large_projection() -> None:
    """Proposition 1: (B/k)·‖R‖_F stays below α except with probability δ/2; checked at a large δ."""
    d, k, delta = 3, 4, 0.5
    alpha = math.sqrt(d * math.log(2 / 3 * (math.e - 1) + 1) / k - math.log(delta / 2) / k**2)
    rng = np.random.default_rng(5)
    R = rng.integers(-1, 2, size=(20_000, d, k))
    exceeds = (np.sqrt((R**2).sum(axis=(1, 2))) / k >= alpha).mean()
    assert exceeds <= delta / 2


def test_partition_delta() -> None:
    """Methods: six parts of at most ⌈20,788/6⌉ people each, δ = 1/(⌈n/6⌉ + 1)."""
    assert delta_per_part(20_788, 6) == 1 / 3466

"""The Gaussian curve against 50 digits, against brute force, and against the paper's printed noise."""

import math
import random

import mpmath  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from targetdp.accounting import GaussianLoss, largest_mu

steady = settings(derandomize=True, deadline=None, max_examples=200)

DIGITS = 50
PAPER = (3.9999, 1 / 4202)


def first_term(mu: float, epsilon: float) -> mpmath.mpf:
    """Φ(μ/2 − ε/μ), to 50 digits."""
    with mpmath.workdps(DIGITS):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.erfc((e / m - m / 2) / mpmath.sqrt(2)) / 2


def true_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), to 50 digits before the subtraction."""
    with mpmath.workdps(DIGITS):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return first_term(mu, epsilon) - mpmath.exp(e) * mpmath.erfc((e / m + m / 2) / mpmath.sqrt(2)) / 2


def random_points(count: int, largest: float) -> list[tuple[float, float]]:
    """Pairs (μ, ε) on all scales: half by ε, half by how many deviations out the threshold lies."""
    rng = random.Random(20240501)
    points = []
    for i in range(count):
        mu = math.exp(rng.uniform(math.log(1e-4), math.log(largest)))
        if i % 2:
            points.append((mu, math.exp(rng.uniform(math.log(1e-4), math.log(500)))))
        else:
            points.append((mu, max(0.0, mu * (mu / 2 + rng.uniform(-6, 30)))))
    return points


# The curve


def test_curve_is_never_below_the_truth_and_hardly_above() -> None:
    checked = 0
    for mu, epsilon in random_points(3000, largest=100):
        truth, delta = true_delta(mu, epsilon), GaussianLoss(mu).delta(epsilon)
        if truth < 1e-290:  # floats end
            continue
        checked += 1
        assert truth <= delta, (mu, epsilon)
        # Margin, on purpose: 10⁻¹² of the first of the two probabilities, and 2⁻⁴⁹ times their logarithms.
        margin = 2e-12 + 2.0**-48 * (epsilon + (mu / 2 + epsilon / mu) ** 2)
        assert delta <= truth + margin * first_term(mu, epsilon), (mu, epsilon)
        if truth > 1e-20 and mu > 0.01:
            assert delta <= truth * (1 + 1e-8), (mu, epsilon)
    assert checked > 1500


@pytest.mark.parametrize("mu", [0.01, 0.1, 0.5, 1.0, 1.1, 2.5, 7.0, 30.0])
def test_curve_is_the_largest_excess_of_one_density_over_the_other(mu: float) -> None:
    z = np.linspace(-12.0, 12.0 + mu, 1_200_001)
    p = np.exp(-((z - mu) ** 2) / 2) / math.sqrt(2 * math.pi)
    q = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    for deviations in (-2.0, 0.0, 1.5, 3.5):
        epsilon = max(0.0, mu * (mu / 2 + deviations))
        # The summand has a kink, so the sum is off by its slope times step²: far below 10⁻⁷ here.
        brute = float(np.maximum(0.0, p - math.exp(epsilon) * q).sum() * (z[1] - z[0]))
        assert GaussianLoss(mu).delta(epsilon) == pytest.approx(brute, rel=1e-6, abs=1e-13)


def test_curve_falls_in_epsilon_and_rises_in_the_shift() -> None:
    for mu in (0.01, 0.3, 1.0, 5.0, 40.0):
        epsilons = [mu * (mu / 2 + deviations) for deviations in np.linspace(-mu / 2, 9, 200)]
        deltas = [GaussianLoss(mu).delta(epsilon) for epsilon in epsilons]
        assert deltas == sorted(deltas, reverse=True)
    for epsilon in (0.0, 0.05, 1.0, 4.0, 20.0):
        deltas = [GaussianLoss(mu).delta(epsilon) for mu in np.geomspace(1e-3, 50, 300)]
        assert deltas == sorted(deltas)


def test_no_shift_costs_nothing() -> None:
    assert GaussianLoss(0.0).delta(0.0) == 0.0
    assert GaussianLoss(0.0).epsilon(0.0) == 0.0


def test_delta_is_a_probability_at_the_ends() -> None:
    assert GaussianLoss(1e6).delta(0.0) == 1.0
    assert 0 < GaussianLoss(1e-9).delta(0.0) < 1e-9
    assert GaussianLoss(1.0).delta(500.0) == pytest.approx(0.0, abs=1e-300)


def test_curve_is_never_below_the_truth_at_enormous_shifts() -> None:
    for mu, epsilon in random_points(3000, largest=1e4):
        if mu > 100:
            truth = true_delta(mu, epsilon)
            assert truth < 1e-290 or truth <= GaussianLoss(mu).delta(epsilon), (mu, epsilon)


# The inverse


@steady
@given(mu=st.floats(1e-3, 30), log_delta=st.floats(-45, -0.8))
def test_epsilon_is_enough_and_hardly_more(mu: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    epsilon = GaussianLoss(mu).epsilon(delta)
    assert true_delta(mu, epsilon) <= delta
    if epsilon > 0:
        assert true_delta(mu, epsilon * (1 - 1e-7)) > delta


@pytest.mark.parametrize("mu", [0.01, 1.0, 10.0])
def test_no_epsilon_is_enough_for_delta_zero(mu: float) -> None:
    assert GaussianLoss(mu).epsilon(0.0) == math.inf


# The smallest noise


def test_smallest_noise_for_the_papers_claim() -> None:
    assert 1 / largest_mu(*PAPER) == pytest.approx(0.909427, abs=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.01, 1e-6), (0.1, 1e-10), (1.0, 1e-5), (1.0, 0.3), PAPER, (20.0, 1e-10), (80.0, 0.01)],
)
def test_smallest_noise_against_a_root_found_at_50_digits(epsilon: float, delta: float) -> None:
    with mpmath.workdps(DIGITS):
        low, high = mpmath.mpf("1e-6"), mpmath.mpf(100)
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if true_delta(middle, epsilon) <= delta else (low, middle)
        assert largest_mu(epsilon, delta) <= low
        assert largest_mu(epsilon, delta) == pytest.approx(float(low), rel=1e-9)


@steady
@given(epsilon=st.floats(1e-3, 100), log_delta=st.floats(-46, -0.7))
def test_smallest_noise_is_enough_and_no_more(epsilon: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    mu = largest_mu(epsilon, delta)
    assert true_delta(mu, epsilon) <= delta
    assert true_delta(mu * (1 + 1e-8), epsilon) > delta


def test_larger_budgets_need_less_noise() -> None:
    by_epsilon = [largest_mu(epsilon, 1e-6) for epsilon in np.geomspace(1e-3, 100, 100)]
    assert by_epsilon == sorted(by_epsilon)
    by_delta = [largest_mu(1.0, delta) for delta in np.geomspace(1e-18, 0.9, 100)]
    assert by_delta == sorted(by_delta)


# The paper's noise is never less than the analytic one, so what it prints is covered


@steady
@given(epsilon=st.floats(1e-3, 100), log_delta=st.floats(-46, math.log(0.4999)))
def test_lemma_6_is_covered(epsilon: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    sigma = math.sqrt(2 * (math.log(1 / (2 * delta)) + epsilon)) / epsilon
    assert true_delta(1 / sigma, epsilon) <= delta
    assert 1 / largest_mu(epsilon, delta) <= sigma


@steady
@given(epsilon=st.floats(1e-3, 0.99999), log_delta=st.floats(-46, math.log(0.4999)))
def test_lemma_7_is_covered(epsilon: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert true_delta(1 / sigma, epsilon) <= delta
    assert 1 / largest_mu(epsilon, delta) <= sigma

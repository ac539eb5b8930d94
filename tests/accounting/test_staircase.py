"""The staircase curve against brute-force integrals of the density as Geng and Viswanath define it."""

import math

import mpmath  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest

from targetdp._core import Floats, Integers
from targetdp.accounting import StaircaseLoss, compose
from targetdp.mechanisms._staircase import best_step, staircase_variance

CELLS = 200
"""Steps and shifts are multiples of 1/200 here, so sums over cells are exact integrals."""

SHIFTS = [0.1, 0.25, 0.5, 0.77, 0.995, 1.0, 1.005, 1.3, 1.5, 2.0, 2.4, 3.0, 3.7]


def steps_down(cells: Integers, gamma_cells: int) -> Integers:
    """How often e^−ε multiplies the density in a cell [i, i + 1)/200: f(x) = e^−ε·f(x − 1) for x ≥ 1,
    f = a on [0, γ) and e^−ε·a on [γ, 1), mirrored at 0.
    """
    positive = np.where(cells >= 0, cells, -cells - 1)
    periods, inside = np.divmod(positive, CELLS)
    return np.asarray(periods + (inside >= gamma_cells))


def densities(shift: float, level: float, gamma: float) -> tuple[Floats, Floats]:
    """The probabilities of all cells under the noise and under the shifted noise."""
    far = CELLS * (math.ceil(45 / level) + 6)
    cells = np.arange(-far, far)
    gamma_cells, shift_cells = round(gamma * CELLS), round(shift * CELLS)
    here = np.exp(-level * steps_down(cells, gamma_cells))
    there = np.exp(-level * steps_down(cells - shift_cells, gamma_cells))
    return here / here.sum(), there / here.sum()


def brute_delta(shift: float, level: float, gamma: float, epsilon: float) -> float:
    p, q = densities(shift, level, gamma)
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize(
    ("level", "gamma"), [(0.3, 0.45), (1.0, 0.38), (1.0, 0.905), (4.0, 0.125), (9.0, 0.005)]
)
def test_curve_against_brute_force(shift: float, level: float, gamma: float) -> None:
    loss = StaircaseLoss(shift, level, gamma)
    for multiple in (0.0, 0.001, 0.5, 0.999, 1.001, 1.7, 1.999, 2.001, 2.5, 2.999, 3.001, 3.5, 3.999, 4.001):
        epsilon = multiple * level
        truth, delta = brute_delta(shift, level, gamma, epsilon), loss.delta(epsilon)
        # Above the truth by 10⁻¹² at most: breakpoints that coincide but for rounding leave slivers.
        assert truth - 1e-14 <= delta <= truth * (1 + 1e-9) + 1e-12, epsilon


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("multiple", [1, 2, 3, 4])
def test_curve_at_whole_multiples_of_the_level(shift: float, multiple: int) -> None:
    loss, epsilon = StaircaseLoss(shift, 1.5, 0.3), 1.5 * multiple
    for nearby in (math.nextafter(epsilon, 0), epsilon, math.nextafter(epsilon, math.inf)):
        assert loss.delta(nearby) == pytest.approx(brute_delta(shift, 1.5, 0.3, nearby), rel=1e-9, abs=1e-14)
        assert loss.delta(nearby) >= brute_delta(shift, 1.5, 0.3, nearby) - 1e-14


@pytest.mark.parametrize("shift", [0.1234567, 1 / 3, 1.41421356, 2.71828, 3.6999])
@pytest.mark.parametrize("gamma", [0.0712345, 1 / math.pi, 0.87654])
def test_curve_against_a_dense_sum_for_odd_shifts(shift: float, gamma: float) -> None:
    level = 0.9
    z = np.arange(-60.0, 60.0, 1e-4) + 0.5e-4

    def density(x: Floats) -> Floats:
        periods, inside = np.divmod(np.abs(x), 1.0)
        return np.asarray(np.exp(-level * (periods + (inside >= gamma))))

    p, q = density(z), density(z - shift)
    for epsilon in (0.0, 0.5, 0.95, 1.7, 2.6, 3.5):
        brute = float(np.maximum(0.0, p - math.exp(epsilon) * q).sum() / p.sum())
        # Each of the breakpoints can misplace one cell of 10⁻⁴.
        assert StaircaseLoss(shift, level, gamma).delta(epsilon) == pytest.approx(brute, rel=2e-3, abs=2e-6)


def total_variation(shift: float, level: float, gamma: float) -> mpmath.mpf:
    """δ(0) of a shift below γ and 1 − γ, exactly: all drops of the density on one side add up to its top."""
    with mpmath.workdps(40):
        e = mpmath.exp(-mpmath.mpf(level))
        return mpmath.mpf(shift) * (1 - e) / (2 * (gamma + e * (1 - mpmath.mpf(gamma))))


@pytest.mark.parametrize("shift", [0.001, 0.02, 0.1])
@pytest.mark.parametrize(("level", "gamma"), [(0.05, 0.45), (1.0, 1 / math.pi), (4.0, 0.12), (30.0, 0.3)])
def test_short_shifts_are_never_below_the_exact_total_variation(
    shift: float, level: float, gamma: float
) -> None:
    truth, delta = total_variation(shift, level, gamma), StaircaseLoss(shift, level, gamma).delta(0.0)
    assert truth <= delta <= truth * (1 + 1e-10) + 2.0**-47 * (1 + 1 / level)


@pytest.mark.parametrize("shift", [1e-6, 1e-9, 1e-12])
def test_tiny_shifts_are_never_below_the_exact_total_variation(shift: float) -> None:
    assert total_variation(shift, 0.05, 0.45) <= StaircaseLoss(shift, 0.05, 0.45).delta(0.0)


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("level", [0.05, 0.3, 1.0, 4.0, 30.0])
def test_all_mass_is_accounted_for(shift: float, level: float) -> None:
    values, masses = StaircaseLoss(shift, level, 0.3).losses()
    assert masses.min() >= 0
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    # The other row's probabilities are e^−L times as large, and sum up to one, too.
    assert (masses * np.exp(-values)).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("level", [0.01, 0.05, 1.0, 4.0, 30.0])
def test_shifts_of_at_most_one_period_are_hidden_purely(level: float) -> None:
    for shift in (1e-9, 0.3, 0.999999, 1.0):
        loss = StaircaseLoss(shift, level, best_step(level))
        assert loss.delta(level) == 0.0
        assert loss.epsilon(0.0) <= level * (1 + 1e-12)
        assert loss.delta(level * 0.999) > 0.0


def test_longer_shifts_are_not_hidden_at_the_level() -> None:
    assert StaircaseLoss(1.0001, 1.0, 0.4).delta(1.0) > 0.0
    assert StaircaseLoss(1.0001, 1.0, 0.4).epsilon(1e-9) > 1.9


def test_even_a_short_shift_costs_the_full_level() -> None:
    assert StaircaseLoss(0.01, 2.0, 0.3).epsilon(1e-9) == pytest.approx(2.0, rel=1e-6)


def test_curve_falls_in_epsilon() -> None:
    for shift in SHIFTS:
        deltas = [StaircaseLoss(shift, 1.0, 0.4).delta(epsilon) for epsilon in np.linspace(0, 5, 200)]
        assert deltas == sorted(deltas, reverse=True)


@pytest.mark.parametrize("shift", [0.5, 1.0, 2.3])
@pytest.mark.parametrize("interval", [0.003, 0.0707, 0.25])
def test_distribution_is_pessimistic_and_within_one_interval(shift: float, interval: float) -> None:
    loss = StaircaseLoss(shift, 1.1, 0.4)
    distribution = loss.distribution(interval)
    for epsilon in np.linspace(0, 4, 20):
        delta = float(distribution.get_delta_for_epsilon(float(epsilon)))
        truth = brute_delta(shift, 1.1, 0.4, float(epsilon))
        assert delta >= truth - 1e-9 * interval - 1e-14
        assert delta <= brute_delta(shift, 1.1, 0.4, float(epsilon) - interval) + 1e-12


def test_two_staircases_together_are_never_below_the_truth() -> None:
    p1, q1 = densities(1.0, 1.0, 0.4)
    p2, q2 = densities(2.3, 0.7, 0.3)
    first, second = StaircaseLoss(1.0, 1.0, 0.4), StaircaseLoss(2.3, 0.7, 0.3)
    loss1, which1 = np.unique(np.rint(np.log(p1 / q1)).astype(int), return_inverse=True)
    loss2, which2 = np.unique(np.rint(np.log(p2 / q2) / 0.7).astype(int), return_inverse=True)
    values = np.add.outer(loss1 * 1.0, loss2 * 0.7)
    masses = np.multiply.outer(np.bincount(which1, p1), np.bincount(which2, p2))
    both, coarseness = compose(first, second), 2 * (first.reach() + second.reach()) / 8000
    for epsilon in np.linspace(0, 3.5, 30):
        gain = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - values)))
        looser = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - coarseness - values)))
        assert float((gain * masses).sum()) - 1e-13 <= both.delta(float(epsilon))
        assert both.delta(float(epsilon)) <= float((looser * masses).sum()) + 1e-11


@pytest.mark.parametrize("level", [0.05, 0.5, 1.0, 3.9999, 12.0])
def test_variance_by_brute_force_and_least_at_the_best_step(level: float) -> None:
    gamma = round(best_step(level) * CELLS) / CELLS or 1 / CELLS
    p, _ = densities(0.0, level, gamma)
    left = (np.arange(len(p)) - len(p) // 2) / CELLS
    brute = float((p * (left**2 + left / CELLS + 1 / (3 * CELLS**2))).sum())
    assert staircase_variance(gamma, level) == pytest.approx(brute, rel=1e-9)
    least = staircase_variance(best_step(level), level)
    assert all(least <= staircase_variance(g, level) * (1 + 1e-9) for g in np.linspace(0.001, 0.999, 500))


def test_deviation_for_the_papers_epsilon() -> None:
    """At δ = 0 in one dimension: 0.255 per unit of B, against 0.354 of the Laplace mechanism."""
    assert math.sqrt(staircase_variance(best_step(3.9999), 3.9999)) == pytest.approx(0.255, abs=5e-4)

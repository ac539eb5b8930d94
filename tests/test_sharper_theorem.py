"""The sharper theorem: proven ceilings against linear programs over all response curves, and 50 digits."""

import itertools
import math
import random
from typing import Any

import mpmath  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from targetdp.guarantee import Guarantee
from targetdp.theorem1 import (
    accuracy_ceiling,
    agreement_by_distance,
    is_ruled_out,
    largest_B,
    smallest_epsilon,
)

steady = settings(derandomize=True, deadline=None, max_examples=200)

JUST_BELOW_ONE = math.nextafter(1.0, 0.0)
OTHER_B = (0.001, 0.05, 0.25, 1.0, 1.9, 2.0)

accuracies = st.floats(min_value=0.5, max_value=JUST_BELOW_ONE)
distances = st.floats(min_value=1e-4, max_value=2.0)
epsilons = st.floats(min_value=1e-3, max_value=60.0)
deltas = st.one_of(st.just(0.0), st.just(1.0), st.floats(min_value=0.0, max_value=1.0))
guarantees = st.builds(Guarantee, distances, epsilons, deltas)


def true_ceiling(epsilon: float, delta: float) -> Any:
    """(e^ε + δ)/(1 + e^ε) in many digits."""
    growth = mpmath.exp(mpmath.mpf(epsilon))
    return (growth + mpmath.mpf(delta)) / (1 + growth)


def true_errors(epsilon: float, delta: float, many: int) -> list[Any]:
    """q₀ = (1 − δ)/(1 + e^ε), q_{k+1} = max(0, e^{−ε}(q_k − δ)), step by step, in many digits."""
    growth, slack = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
    errors = [(1 - slack) / (1 + growth)]
    while len(errors) < many:
        errors.append(max(mpmath.mpf(0), (errors[-1] - slack) / growth))
    return errors


# All response curves: a linear program. A person has one of finitely many rows; an algorithm is a probability
# of a yes for each of them. What the guarantee says of its two answers are linear inequalities.


def private(rows: np.ndarray[Any, Any], g: Guarantee) -> tuple[list[list[float]], list[float]]:
    """p_i ≤ e^ε·p_j + δ and 1 − p_i ≤ e^ε·(1 − p_j) + δ for all rows i, j within B."""
    growth, left, right = math.exp(g.epsilon), [], []
    apart = np.linalg.norm(rows[:, None, :] - rows[None, :, :], axis=2)
    for i, j in itertools.permutations(range(len(rows)), 2):
        if apart[i, j] <= g.B * (1 + 1e-12):
            row = [0.0] * (len(rows) + 1)  # the last variable is γ
            row[i], row[j] = 1.0, -growth
            left.append(row)
            right.append(g.delta)
            left.append([-value for value in row])
            right.append(growth - 1 + g.delta)
    return left, right


def most(rows: np.ndarray[Any, Any], yes: np.ndarray[Any, Any], g: Guarantee) -> float:
    """The highest γ of any algorithm with the guarantee, on these rows."""
    left, right = private(rows, g)
    for i, decided in enumerate(yes):
        row = [0.0] * (len(rows) + 1)
        row[i], row[-1] = (-1.0, 1.0) if decided else (1.0, 1.0)  # γ ≤ p_i, or γ ≤ 1 − p_i
        left.append(row)
        right.append(0.0 if decided else 1.0)
    aim = [0.0] * len(rows) + [-1.0]
    found = linprog(aim, A_ub=left, b_ub=right, bounds=[(0, 1)] * len(aim))
    assert found.success
    assert found.fun is not None
    return float(-found.fun)


@pytest.mark.parametrize("B", [0.1, 0.25, 0.7, 1.0, 2.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.0, 0.0), (1.0, 0.05), (4.0, 1 / 4202)])
def test_of_all_response_curves_the_best_is_at_the_ceiling(B: float, epsilon: float, delta: float) -> None:
    """One column, rows every 1/30 in [−1, 1], yes from 0 up: the printed theorem allows far more."""
    g = Guarantee(B, epsilon, delta)
    rows = np.linspace(-1, 1, 61)[:, None]
    found = most(rows, rows[:, 0] >= 0, g)
    assert found == pytest.approx(accuracy_ceiling(g), abs=1e-7)
    assert (found < accuracy_ceiling(g, theorem="printed") - 1e-3) == (B < 2)


def test_the_shape_of_the_cut_does_not_matter() -> None:
    """Rows of a disc, decided by anything: several cuts, an island, every other row."""
    side = np.linspace(-1, 1, 11)
    rows = np.array([point for point in itertools.product(side, side) if math.hypot(*point) <= 1])
    lengths = np.linalg.norm(rows, axis=1)
    for yes in (rows.sum(axis=1) > 0.1, lengths < 0.5, np.arange(len(rows)) % 2 == 0):
        for B in (0.21, 0.6):
            g = Guarantee(B, 1.0, 0.02)
            assert most(rows, yes, g) == pytest.approx(accuracy_ceiling(g), abs=1e-7)


def test_where_no_decision_differs_there_is_no_ceiling() -> None:
    rows = np.linspace(-1, 1, 21)[:, None]
    assert most(rows, np.full(21, fill_value=True), Guarantee(0.25, 1.0)) == pytest.approx(1.0)


@pytest.mark.parametrize("delta", [0.0, 0.001, 0.05])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_away_from_the_cut_no_curve_at_the_ceiling_does_better(epsilon: float, delta: float) -> None:
    """Each row by itself, with γ at the ceiling for everybody; and all rows together."""
    g = Guarantee(0.25, epsilon, delta)
    rows = np.linspace(-1, 1, 81)[:, None]  # every 0.025: ten to a cell
    yes = rows[:, 0] >= -1e-9
    left, right = private(rows, g)
    ceiling = accuracy_ceiling(g) - 1e-9
    bounds = [(ceiling, 1.0) if decided else (0.0, 1.0 - ceiling) for decided in yes] + [(0, 0)]
    # From a row on the no side the nearest yes is at 0; from one on the yes side the nearest no is a step on.
    away = np.where(yes, rows[:, 0] + 0.025, -rows[:, 0])
    steps = np.ceil(away / 0.25 - 1e-9)
    bound = 1 - np.array([float(q) for q in true_errors(epsilon, delta, 8)])[steps.astype(int) - 1]
    for weights in [*np.eye(len(rows))[::7], np.ones(len(rows)), np.random.default_rng(1).random(len(rows))]:
        aim = [*(-weights * np.where(yes, 1, -1)), 0.0]
        found = linprog(aim, A_ub=left, b_ub=right, bounds=bounds)
        assert found.success
        assert found.fun is not None
        agreement = -found.fun + weights[~yes].sum()
        assert agreement == pytest.approx((weights * bound).sum(), abs=1e-6 * weights.sum())
    told = agreement_by_distance(g, np.abs(rows[:, 0]).tolist())
    assert (np.array(told) >= bound - 1e-12).all()
    assert told[-1] > told[40] == accuracy_ceiling(g)


def test_who_gives_some_up_next_to_the_cut_can_have_more_farther_away() -> None:
    """So the curve is no bound for all algorithms: one that tosses a coin at the cut is better at B/2."""
    g = Guarantee(0.25, 1.0)
    rows = np.linspace(-1, 1, 81)[:, None]
    left, right = private(rows, g)
    far = np.abs(rows[:, 0]) >= 0.15
    bounds = [(0.0, 1.0)] * len(rows) + [(0.0, 0.0)]
    at_least = (accuracy_ceiling(g) + agreement_by_distance(g, [0.25])[0]) / 2 - 0.02
    for i in np.flatnonzero(far):
        bounds[i] = (at_least, 1.0) if rows[i, 0] > 0 else (0.0, 1.0 - at_least)
    assert linprog([0.0] * 82, A_ub=left, b_ub=right, bounds=bounds).success
    assert at_least > agreement_by_distance(g, [0.2])[0]


# One bit for each person reaches both, on rows of any kind


@steady
@given(epsilons, deltas)
def test_the_decision_alone_reaches_the_ceiling(epsilon: float, delta: float) -> None:
    """Wrong with probability (1 − δ)/(1 + e^ε), whatever the two rows are: (ε, δ) with nothing to spare."""
    with mpmath.workdps(60):
        wrong = true_errors(epsilon, delta, 1)[0]
        growth, slack = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
        assert abs((1 - wrong) - (growth * wrong + slack)) < 1e-30
        assert wrong <= growth * (1 - wrong) + slack
        assert abs((1 - wrong) - true_ceiling(epsilon, delta)) < 1e-50


@steady
@given(epsilons, deltas)
def test_cells_side_by_side_are_one_step_apart(epsilon: float, delta: float) -> None:
    """The bit of the proof, both answers, both directions, across the cut and away from it."""
    with mpmath.workdps(500):  # the last error may be e^{−12·60}
        errors = true_errors(epsilon, delta, 12)
        growth, slack = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
        yes = [*reversed(errors), *(1 - q for q in errors)]
        for one, other in itertools.pairwise(yes):
            for p, q in ((one, other), (other, one), (1 - one, 1 - other), (1 - other, 1 - one)):
                assert p <= growth * q + slack + mpmath.mpf(10) ** -400


def test_the_distance_from_any_cut_changes_no_faster_than_the_row_moves() -> None:
    """With its side as sign, for any number of cuts: rows within B are at most one cell apart."""
    rng = np.random.default_rng(1)
    for many in (1, 2, 7):
        cuts = np.sort(rng.uniform(-1, 1, many))
        rows = rng.uniform(-1, 1, 1000)
        yes = np.searchsorted(cuts, rows) % 2 == 1
        signed = np.where(yes, 1, -1) * np.abs(rows[:, None] - cuts).min(axis=1)
        moved, apart = np.abs(signed[:, None] - signed), np.abs(rows[:, None] - rows)
        assert (moved - apart).max() < 1e-15
        cells = np.floor(signed / 0.1)
        assert np.abs(cells[:, None] - cells)[apart <= 0.1].max() == 1


# Figures


@pytest.mark.parametrize("B", OTHER_B)
def test_example_1_is_ruled_out_at_every_distance(B: float) -> None:
    """Example 1 asks for γ = 0.99 at ε = 1, δ = 10⁻⁴: no B will do, since it takes ε ≥ 4.595."""
    assert is_ruled_out(Guarantee(B, 1.0, 1e-4), 0.99)
    assert is_ruled_out(Guarantee(B, 4.0, 1e-4), 0.99)
    assert is_ruled_out(Guarantee(B, 4.595, 1e-4), 0.99)
    assert not is_ruled_out(Guarantee(B, 4.5951, 1e-4), 0.99)


def test_example_1_both_ways() -> None:
    for epsilon, printed in ((1.0, 0.4), (4.0, 1.0)):
        assert largest_B(accuracy=0.99, epsilon=epsilon, delta=1e-4, theorem="printed") == printed
        assert largest_B(accuracy=0.99, epsilon=epsilon, delta=1e-4) is None
    assert largest_B(accuracy=0.99, epsilon=4.6, delta=1e-4) == 2.0
    assert smallest_epsilon(accuracy=0.99) == pytest.approx(math.log(99))
    assert smallest_epsilon(accuracy=0.99, delta=1e-4) == pytest.approx(math.log(0.9899 / 0.01))


def test_by_hand() -> None:
    """e^ε = 3: 3/4; with δ = 1/10 (3 + 1/10)/4. Errors 1/4, 1/12, 1/36; 9/40, 1/24, 0 with δ = 1/10."""
    assert accuracy_ceiling(Guarantee(0.25, math.log(3))) == pytest.approx(0.75, rel=1e-15)
    assert accuracy_ceiling(Guarantee(0.25, math.log(3), 0.1)) == pytest.approx(0.775, rel=1e-15)
    given = (0.0, 0.2499, 0.25, 0.49, 0.5)
    told = agreement_by_distance(Guarantee(0.25, math.log(3)), given)
    assert told == pytest.approx((3 / 4, 3 / 4, 11 / 12, 11 / 12, 35 / 36), rel=1e-15)
    told = agreement_by_distance(Guarantee(0.25, math.log(3), 0.1), given)
    assert told == pytest.approx((31 / 40, 31 / 40, 23 / 24, 23 / 24, 1.0), rel=1e-15)


def test_usual_choices() -> None:
    """B = 0.25, ε = 4: 98.2% next to the cut, 99.97% a quarter away; δ = 1/4202 ends in certainty at 3·B."""
    next_to_it, a_quarter, _ = agreement_by_distance(Guarantee(0.25, 4.0), (0, 0.25, 0.5))
    assert (round(next_to_it, 3), round(a_quarter, 4)) == (0.982, 0.9997)
    *before, at_three = agreement_by_distance(Guarantee(0.25, 4.0, 1 / 4202), (0, 0.25, 0.5, 0.75))
    assert max(before) < 1.0 == at_three


# Never below the truth


@steady
@given(epsilons, deltas, st.sampled_from(OTHER_B))
def test_a_ceiling_is_rounded_up_and_hardly(epsilon: float, delta: float, B: float) -> None:
    with mpmath.workdps(60):
        for theorem, s in (("sharper", 1), ("printed", math.ceil(2 / B))):
            growth, slack = mpmath.exp(s * mpmath.mpf(epsilon)), mpmath.mpf(delta)
            slack *= mpmath.expm1(s * mpmath.mpf(epsilon)) / mpmath.expm1(mpmath.mpf(epsilon))
            truth = min(mpmath.mpf(1), (growth + slack) / (growth + 1))
            told = accuracy_ceiling(Guarantee(B, epsilon, delta), theorem=theorem)  # type: ignore[arg-type]
            assert truth <= told <= min(mpmath.mpf(1), truth + 4e-15)


@steady
@given(epsilons, deltas, st.sampled_from(OTHER_B))
def test_agreement_is_rounded_up_and_hardly(epsilon: float, delta: float, B: float) -> None:
    many = min(9, math.floor(2 / B) + 1)
    told = agreement_by_distance(Guarantee(B, epsilon, delta), [k * B for k in range(many)])
    with mpmath.workdps(60):
        for share, q in zip(told, true_errors(epsilon, delta, many), strict=True):
            assert 1 - q <= share <= min(mpmath.mpf(1), 1 - q + 4e-15)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-12, 1e-6, 36.0, 37.0, 699.0, 701.0, 745.0, 1e5, 1e300])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-6, 0.5, 1.0])
def test_extremes_are_finite_and_on_the_safe_side(epsilon: float, delta: float) -> None:
    with mpmath.workdps(400):
        truth = true_ceiling(epsilon, delta) if epsilon < 1e6 else mpmath.mpf(1)
    for B in (1e-12, 0.25, 2.0):
        g = Guarantee(B, epsilon, delta)
        assert truth <= accuracy_ceiling(g) <= 1
        told = agreement_by_distance(g, (0.0, B, 2.0))
        assert truth <= told[0] <= told[1] <= told[2] <= 1


# The functions agree


@steady
@given(guarantees, accuracies)
def test_all_say_the_same(g: Guarantee, gamma: float) -> None:
    ceiling = accuracy_ceiling(g)
    assert is_ruled_out(g, gamma) == (gamma > ceiling)
    for B in OTHER_B:
        assert accuracy_ceiling(Guarantee(B, g.epsilon, g.delta)) == ceiling
        assert ceiling <= accuracy_ceiling(Guarantee(B, g.epsilon, g.delta), theorem="printed")
    found = largest_B(accuracy=gamma, epsilon=g.epsilon, delta=g.delta)
    assert found == (None if gamma > ceiling else 2.0)
    assert agreement_by_distance(g, [0.0]) == (ceiling,)
    assert ceiling == 1 or not is_ruled_out(g, ceiling)
    classic = Guarantee(2.0, g.epsilon, g.delta)
    assert accuracy_ceiling(classic, theorem="printed") == ceiling, "at B = 2 the two are the same"


@steady
@given(accuracies, st.floats(min_value=0.0, max_value=1.0))
def test_the_smallest_epsilon_is_enough_and_less_is_not(gamma: float, delta: float) -> None:
    epsilon = smallest_epsilon(accuracy=gamma, delta=delta)
    if epsilon > 1e-9:
        assert not is_ruled_out(Guarantee(0.25, epsilon * (1 + 1e-12), delta), gamma)
    if epsilon > 1e-6 and gamma < 0.999:
        assert is_ruled_out(Guarantee(0.25, epsilon * (1 - 1e-7), delta), gamma)
    if epsilon == 0:
        assert not is_ruled_out(Guarantee(0.25, 1e-300, delta), gamma)


@steady
@given(guarantees, guarantees, distances, distances)
def test_less_privacy_and_more_distance_never_lower_it(
    g: Guarantee, other: Guarantee, r: float, s: float
) -> None:
    """Monotone in ε, δ, 1/B and the distance, up to rounding."""
    near, far = sorted((r, s))
    share = agreement_by_distance(g, [near])[0] - 2e-15
    assert share <= agreement_by_distance(g, [far])[0]
    assert share <= agreement_by_distance(Guarantee(min(g.B, other.B), g.epsilon, g.delta), [near])[0]
    more = Guarantee(g.B, max(g.epsilon, other.epsilon), max(g.delta, other.delta))
    assert share <= agreement_by_distance(more, [near])[0]


def test_a_whole_number_of_B_away_is_in_the_farther_cell() -> None:
    """0.3/0.1 is just below 3 in floats; the lower bound would be below the truth for somebody."""
    rng = random.Random(1)
    for _ in range(2000):
        B, k = rng.uniform(1e-3, 0.5), rng.randint(0, 4)
        g = Guarantee(B, 1.0)
        (told,) = agreement_by_distance(g, [k * B])
        assert told == pytest.approx(float(1 - true_errors(1.0, 0.0, 5)[k]), abs=1e-14)
    one, other = agreement_by_distance(Guarantee(0.1, 1.0), (0.3, 0.2999))
    assert one > other


# Errors


def test_other_theorems_and_distances_are_refused() -> None:
    g = Guarantee(0.25, 1.0)
    for call in (
        lambda: accuracy_ceiling(g, theorem="best"),  # type: ignore[arg-type]
        lambda: is_ruled_out(g, 0.9, theorem="best"),  # type: ignore[arg-type]
        lambda: largest_B(accuracy=0.9, epsilon=1, theorem="best"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match="theorem = 'best' is not one of printed, sharper"):
            call()
    for wrong in (-0.1, 2.1, math.nan):
        with pytest.raises(ValueError, match=r"^distances = .*\[0, 2\]"):
            agreement_by_distance(g, [wrong])
    with pytest.raises(TypeError, match=r"distances = 0\.5 is not a list"):
        agreement_by_distance(g, 0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^accuracy = 1.0 .*\[0.5, 1\).*Theorem 1"):
        smallest_epsilon(accuracy=1)

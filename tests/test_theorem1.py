"""Theorem 1 as printed, against its inequality in 50-digit arithmetic, and Example 1's numbers."""

import math
import random
from typing import Any

import mpmath  # type: ignore[import-untyped, unused-ignore]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from targetdp import theorem1
from targetdp.guarantee import Guarantee, steps

steady = settings(derandomize=True, deadline=None, max_examples=200)

JUST_BELOW_ONE = math.nextafter(1.0, 0.0)

accuracies = st.floats(min_value=0.5, max_value=JUST_BELOW_ONE)
distances = st.floats(min_value=1e-4, max_value=2.0)
epsilons = st.floats(min_value=1e-3, max_value=50.0)
deltas = st.one_of(st.just(0.0), st.just(1.0), st.floats(min_value=0.0, max_value=1.0))
guarantees = st.builds(Guarantee, distances, epsilons, deltas)
whole = st.integers(min_value=1, max_value=60)


def accuracy_ceiling(guarantee: Guarantee) -> float:
    return theorem1.accuracy_ceiling(guarantee, theorem="printed")


def is_ruled_out(guarantee: Guarantee, accuracy: float) -> bool:
    return theorem1.is_ruled_out(guarantee, accuracy, theorem="printed")


def largest_B(*, accuracy: float, epsilon: float, delta: float = 0.0) -> float:
    found = theorem1.largest_B(accuracy=accuracy, epsilon=epsilon, delta=delta, theorem="printed")
    assert found is not None, "a small enough B is always left"
    return found


def needed(accuracy: float, epsilon: float, delta: float, digits: int = 50) -> Any:
    """ln(Q)/ε of Theorem 1, Q = (δ + γ(e^ε − 1)) / (δ + (1 − γ)(e^ε − 1)), in many digits."""
    with mpmath.workdps(digits):
        gamma, growth = mpmath.mpf(accuracy), mpmath.expm1(mpmath.mpf(epsilon))
        q = (delta + gamma * growth) / (delta + (1 - gamma) * growth)
        return mpmath.log(q) / mpmath.mpf(epsilon)


def near_whole(x: Any) -> bool:
    return bool(abs(x - mpmath.nint(x)) < 1e-12)


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def parameters(rng: random.Random) -> tuple[float, float, float]:
    """Random γ, ε, δ."""
    delta = 0.0 if rng.random() < 0.25 else log_uniform(rng, 1e-12, 1.0)
    return rng.uniform(0.5, 0.9999), log_uniform(rng, 1e-2, 20.0), delta


# Example 1 of the paper: Methods, "Necessary conditions for accurate targeting".


@pytest.mark.parametrize(("epsilon", "B"), [(1.0, 0.4), (4.0, 1.0)])
def test_example_1(epsilon: float, B: float) -> None:
    """Example 1: γ = 0.99, δ = 10⁻⁴: only B ≤ 0.4 at ε = 1, and only B ≤ 1 at ε = 4."""
    assert largest_B(accuracy=0.99, epsilon=epsilon, delta=1e-4) == B
    assert not is_ruled_out(Guarantee(B, epsilon, 1e-4), 0.99)
    wider = 2.0 / (round(2.0 / B) - 1)
    assert is_ruled_out(Guarantee(wider, epsilon, 1e-4), 0.99)
    assert accuracy_ceiling(Guarantee(wider, epsilon, 1e-4)) < 0.99
    assert accuracy_ceiling(Guarantee(B, epsilon, 1e-4)) >= 0.99


def test_example_1_rules_out_classic_privacy() -> None:
    assert is_ruled_out(Guarantee(2.0, 1.0, 1e-4), 0.99)
    assert is_ruled_out(Guarantee(2.0, 4.0, 1e-4), 0.99)
    assert not is_ruled_out(Guarantee(2.0, 5.0, 1e-4), 0.99)


def test_for_common_choices_the_ceiling_says_nothing() -> None:
    """At B = 0.25, ε = 4 it is 1/(1 + e⁻³²), which is 1 to 13 digits."""
    ceiling = accuracy_ceiling(Guarantee(0.25, 4.0))
    assert 1 - 1.3e-14 < ceiling < 1
    assert ceiling == pytest.approx(1.0, abs=1e-13)
    assert accuracy_ceiling(Guarantee(0.25, 4.0, 1 / 4202)) == 1.0


def test_ceiling_by_hand() -> None:
    """e^ε = 3, one step: 3/4; with δ = 1/10: (1 + 0.1·(2/3)/2)/(4/3) = 31/40; two steps: 9/10."""
    assert accuracy_ceiling(Guarantee(2.0, math.log(3))) == pytest.approx(0.75, rel=1e-15)
    assert accuracy_ceiling(Guarantee(2.0, math.log(3), 0.1)) == pytest.approx(0.775, rel=1e-15)
    assert accuracy_ceiling(Guarantee(1.0, math.log(3))) == pytest.approx(0.9, rel=1e-15)


# Theorem 1 in high precision


def test_is_ruled_out_is_the_inequality_of_theorem_1() -> None:
    """⌈2/B⌉ ≥ ⌈ln(Q)/ε⌉ or ruled out; half of the cases have ⌈2/B⌉ within one of the right side."""
    rng = random.Random(1)
    skipped = out = cases = 0
    for case in range(4000):
        gamma, epsilon, delta = parameters(rng)
        right = needed(gamma, epsilon, delta)
        B = log_uniform(rng, 1e-3, 2.0)
        if case % 2:
            s = max(1, int(mpmath.ceil(right)) + rng.choice([-1, 0, 1]))
            B = 2.0 / (s - rng.uniform(0.0, 0.999 if s > 1 else 0.0))
        with mpmath.workdps(50):
            left = 2 / mpmath.mpf(B)
            if near_whole(right) or (near_whole(left) and left != mpmath.nint(left)):
                skipped += 1
                continue
            possible = bool(mpmath.ceil(left) >= mpmath.ceil(right))
        cases += 1
        out += not possible
        assert is_ruled_out(Guarantee(B, epsilon, delta), gamma) is not possible
    assert skipped <= 10
    assert 500 < out < cases - 500, "the cases are too one-sided to test anything"


def test_largest_distance_is_the_simplified_inequality_of_theorem_1() -> None:
    rng = random.Random(2)
    skipped = 0
    several = 0
    for _ in range(2000):
        gamma, epsilon, delta = parameters(rng)
        right = needed(gamma, epsilon, delta)
        if near_whole(right):
            skipped += 1
            continue
        m = max(1, int(mpmath.ceil(right)))
        several += m > 1
        assert largest_B(accuracy=gamma, epsilon=epsilon, delta=delta) == 2.0 / m
    assert skipped <= 5
    assert several > 500, "too few of the cases need more than one step"


def test_accuracy_ceiling_solves_the_inequality_of_the_proof() -> None:
    """γ = e^{sε}(1 − γ) + δ(e^{sε} − 1)/(e^ε − 1), from the proof of Theorem 1; at most 1."""
    rng = random.Random(3)
    below = 0
    for _ in range(1000):
        _, epsilon, delta = parameters(rng)
        s = rng.randint(1, 60)
        with mpmath.workdps(50):
            growth, slack = mpmath.exp(s * mpmath.mpf(epsilon)), mpmath.mpf(delta)
            slack *= mpmath.expm1(s * mpmath.mpf(epsilon)) / mpmath.expm1(mpmath.mpf(epsilon))
            expected = min(mpmath.mpf(1), (growth + slack) / (growth + 1))
        ceiling = accuracy_ceiling(Guarantee(2.0 / s, epsilon, delta))
        assert abs(ceiling - expected) < 2e-15
        below += expected < 1
    assert below > 200, "too few of the cases try the formula"


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("gamma", [0.6, 0.75, 0.9, 0.99, 0.999])
def test_without_delta_only_the_odds_count(gamma: float, epsilon: float) -> None:
    """δ = 0: Q = γ/(1 − γ), and for ε < ln(γ/(1 − γ)) classic privacy (B = 2) is ruled out."""
    log_odds = math.log(gamma / (1 - gamma))
    assert largest_B(accuracy=gamma, epsilon=epsilon) == 2.0 / math.ceil(log_odds / epsilon)
    assert is_ruled_out(Guarantee(2.0, epsilon), gamma) == (epsilon < log_odds)
    for m in (1, 2, 5):
        logistic = 1 / (1 + math.exp(-m * epsilon))
        assert accuracy_ceiling(Guarantee(2.0 / m, epsilon)) == pytest.approx(logistic, rel=1e-15)


# The three functions agree


@steady
@given(accuracies, epsilons, deltas)
def test_the_three_agree(gamma: float, epsilon: float, delta: float) -> None:
    largest = largest_B(accuracy=gamma, epsilon=epsilon, delta=delta)
    for m in range(1, 61):
        guarantee = Guarantee(2.0 / m, epsilon, delta)
        assert is_ruled_out(guarantee, gamma) == (largest < guarantee.B)
        assert is_ruled_out(guarantee, gamma) == (gamma > accuracy_ceiling(guarantee))


@steady
@given(whole, epsilons, deltas)
def test_they_agree_on_the_boundary(m: int, epsilon: float, delta: float) -> None:
    """γ exactly at a ceiling, and one float above it."""
    ceiling = accuracy_ceiling(Guarantee(2.0 / m, epsilon, delta))
    for gamma in (ceiling, math.nextafter(ceiling, 1.0)):
        if gamma < 1:
            largest = largest_B(accuracy=gamma, epsilon=epsilon, delta=delta)
            for other in range(1, 61):
                guarantee = Guarantee(2.0 / other, epsilon, delta)
                assert is_ruled_out(guarantee, gamma) == (largest < guarantee.B)


@steady
@given(distances, epsilons, deltas)
def test_the_ceiling_itself_is_never_ruled_out(B: float, epsilon: float, delta: float) -> None:
    guarantee = Guarantee(B, epsilon, delta)
    ceiling = accuracy_ceiling(guarantee)
    assert 0.5 <= ceiling <= 1
    if ceiling < 1:
        assert not is_ruled_out(guarantee, ceiling)
        above = ceiling + 4 * math.ulp(ceiling)  # both sides of the comparison round
        assert above >= 1 or is_ruled_out(guarantee, above)
    else:
        assert not is_ruled_out(guarantee, JUST_BELOW_ONE)
    assert not is_ruled_out(guarantee, 0.5)


@steady
@given(distances, epsilons, deltas)
def test_any_distance_counts_by_its_steps(B: float, epsilon: float, delta: float) -> None:
    """Theorem 1 sees B only through ⌈2/B⌉."""
    as_whole = Guarantee(2.0 / steps(2.0, B), epsilon, delta)
    assert accuracy_ceiling(Guarantee(B, epsilon, delta)) == accuracy_ceiling(as_whole)


@pytest.mark.parametrize(("B", "s"), [(1.9, 2), (1.0, 2), (0.99, 3), (0.7, 3), (0.3, 7)])
def test_distances_between_whole_steps(B: float, s: int) -> None:
    assert accuracy_ceiling(Guarantee(B, 0.5)) == pytest.approx(1 / (1 + math.exp(-0.5 * s)))


@steady
@given(guarantees, guarantees)
def test_less_privacy_never_lowers_the_ceiling(g: Guarantee, other: Guarantee) -> None:
    """Monotone in 1/B, ε and δ, up to rounding."""
    ceiling = accuracy_ceiling(g) - 1e-15
    assert ceiling <= accuracy_ceiling(Guarantee(min(g.B, other.B), g.epsilon, g.delta))
    assert ceiling <= accuracy_ceiling(Guarantee(g.B, max(g.epsilon, other.epsilon), g.delta))
    assert ceiling <= accuracy_ceiling(Guarantee(g.B, g.epsilon, max(g.delta, other.delta)))


@steady
@given(accuracies, accuracies, epsilons, deltas)
def test_more_accuracy_needs_a_smaller_distance(
    gamma: float, gamma2: float, epsilon: float, delta: float
) -> None:
    low, high = sorted((gamma, gamma2))
    assert largest_B(accuracy=high, epsilon=epsilon, delta=delta) <= largest_B(
        accuracy=low, epsilon=epsilon, delta=delta
    )


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 1.0, 1e5])
def test_a_coin_is_never_ruled_out(epsilon: float) -> None:
    assert largest_B(accuracy=0.5, epsilon=epsilon) == 2.0
    assert not is_ruled_out(Guarantee(2.0, epsilon), 0.5)


# Extremes


@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-6, 1.0])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-30, 1e-12, 700.0, 710.0, 1e5, 1e300])
def test_extreme_epsilons_give_finite_ceilings(epsilon: float, delta: float) -> None:
    for B in (2.0, 0.25, 1e-6):
        assert 0.5 <= accuracy_ceiling(Guarantee(B, epsilon, delta)) <= 1


@pytest.mark.parametrize("epsilon", [1e-300, 1e-100, 1e-30, 1e-20, 1e-12])
@pytest.mark.parametrize("gamma", [0.51, 0.9, 0.99, JUST_BELOW_ONE])
@pytest.mark.parametrize("delta", [0.0, 1e-250, 3e-7])
def test_a_tiny_epsilon_neither_overflows_nor_takes_forever(
    gamma: float, epsilon: float, delta: float
) -> None:
    """ln(Q)/ε is then so large that its rounding error alone is more steps than anyone can walk."""
    m = float(mpmath.ceil(needed(gamma, epsilon, delta, digits=700)))
    # One bit is all that is left of 1 − γ for the largest γ, so the ceiling has no digits to give.
    rel = 1e-9 if gamma < 0.999 else 0.05
    largest = largest_B(accuracy=gamma, epsilon=epsilon, delta=delta)
    assert largest == pytest.approx(2.0 / m, rel=rel, abs=0)
    if m < 2**50:  # 2/m still tells m from its neighbors
        assert not is_ruled_out(Guarantee(largest, epsilon, delta), gamma)


@pytest.mark.parametrize("epsilon", [700.0, 1e5, 1e300])
def test_a_huge_epsilon_rules_out_nothing(epsilon: float) -> None:
    for delta in (0.0, 1e-300, 0.5):
        assert largest_B(accuracy=JUST_BELOW_ONE, epsilon=epsilon, delta=delta) == 2.0
        assert not is_ruled_out(Guarantee(2.0, epsilon, delta), JUST_BELOW_ONE)


# Errors


@pytest.mark.parametrize("accuracy", [math.nextafter(0.5, 0.0), 0.0, -1.0, 1.0, 1, 2.0, math.nan, math.inf])
def test_accuracy_outside_its_range_is_refused(accuracy: Any) -> None:
    for call in (
        lambda: is_ruled_out(Guarantee(1.0, 1.0), accuracy),
        lambda: largest_B(accuracy=accuracy, epsilon=1.0),
    ):
        with pytest.raises(ValueError, match=r"^accuracy = .*\[0.5, 1\).*Theorem 1"):
            call()


@pytest.mark.parametrize("accuracy", ["0.9", None, True, [0.9], 0.9 + 0j])
def test_accuracy_of_another_kind_is_refused(accuracy: Any) -> None:
    for call in (
        lambda: is_ruled_out(Guarantee(1.0, 1.0), accuracy),
        lambda: largest_B(accuracy=accuracy, epsilon=1.0),
    ):
        with pytest.raises(TypeError, match=r"^accuracy = .*\[0.5, 1\).*Theorem 1"):
            call()


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (0.0, 0.0, r"^epsilon = 0.0 .*\[1e-300, inf\)"),
        (-1.0, 0.0, r"^epsilon = -1.0 .*\[1e-300, inf\)"),
        (math.nan, 0.0, r"^epsilon = nan .*\[1e-300, inf\)"),
        (1.0, -1e-9, r"^delta = -1e-09 .*\[0, 1\]"),
        (1.0, 1.5, r"^delta = 1.5 .*\[0, 1\]"),
    ],
)
def test_other_arguments_are_checked(epsilon: float, delta: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        largest_B(accuracy=0.9, epsilon=epsilon, delta=delta)


def test_arguments_of_the_largest_distance_are_named() -> None:
    with pytest.raises(TypeError, match="positional"):
        theorem1.largest_B(0.99, 1.0)  # type: ignore[call-arg]

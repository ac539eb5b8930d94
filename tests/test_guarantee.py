"""The guarantee as a value: construction, Lemmas 2 and 3 (composition), Lemma 4 (switch lemma)."""

import dataclasses
import math
import random
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from targetdp.guarantee import Guarantee, log_expm1, parallel, sequential, steps

steady = settings(derandomize=True, deadline=None, max_examples=300)

distances = st.floats(min_value=1e-6, max_value=2.0)
epsilons = st.floats(min_value=1e-6, max_value=50.0)
deltas = st.one_of(st.just(0.0), st.just(1.0), st.floats(min_value=0.0, max_value=1.0))
guarantees = st.builds(Guarantee, distances, epsilons, deltas)

RANGES = {"B": "(0, 2]", "epsilon": "(0, inf)", "delta": "[0, 1]"}
GOOD = {"B": 0.5, "epsilon": 1.0, "delta": 1e-5}

OUTSIDE: list[tuple[str, Any]] = [
    *((name, value) for name in RANGES for value in (math.nan, math.inf, -math.inf, -1, -1e-300)),
    ("B", 0),
    ("B", 0.0),
    ("B", -0.0),
    ("B", math.nextafter(2.0, 3.0)),
    ("B", 3),
    ("epsilon", 0),
    ("epsilon", 0.0),
    ("delta", math.nextafter(1.0, 2.0)),
    ("delta", 2),
    ("B", np.float64("nan")),
    ("epsilon", np.float32("inf")),
]

NOT_NUMBERS: list[Any] = [
    None,
    True,
    False,
    np.True_,
    "0.5",
    b"0.5",
    np.str_("0.5"),
    [0.5],
    (0.5,),
    {},
    0.5 + 0j,
    np.complex128(0.5 + 3j),
    np.array([0.5]),
    np.array([[0.5]]),
    np.array([0.1, 0.2]),
    np.array([]),
    object(),
]


def nearly(guarantee: Guarantee, other: Guarantee) -> bool:
    return guarantee.B == other.B and (guarantee.epsilon, guarantee.delta) == pytest.approx(
        (other.epsilon, other.delta), rel=1e-12, abs=0
    )


# Construction


@pytest.mark.parametrize(("name", "value"), OUTSIDE)
def test_value_outside_its_range_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match="is outside") as caught:
        Guarantee(**{**GOOD, name: value})
    message = str(caught.value)
    assert message.startswith(f"{name} = {float(value)!r} ")
    assert RANGES[name] in message


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_what_is_not_one_number_is_refused(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match="number") as caught:
        Guarantee(**{**GOOD, name: value})
    message = str(caught.value)
    assert message.startswith(f"{name} = ")
    assert RANGES[name] in message


def test_too_large_an_integer_is_refused_by_name() -> None:
    with pytest.raises((TypeError, ValueError), match=r"^epsilon = 1000"):
        Guarantee(1.0, 10**400)


def test_message_about_the_distance_says_why() -> None:
    with pytest.raises(ValueError, match="unit ball"):
        Guarantee(2.5, 1.0)


@pytest.mark.parametrize(
    ("B", "epsilon", "delta"),
    [
        (2, 1, 0),
        (2.0, 1e-300, 0.0),
        (5e-324, 1e300, 5e-324),
        (np.float64(2.0), np.float32(1.0), np.int64(0)),
        (Fraction(2), Fraction(1), Fraction(0)),
        (1e-9, 5e-324, 1.0),
    ],
)
def test_ends_and_kinds_of_numbers_are_accepted(B: Any, epsilon: Any, delta: Any) -> None:
    guarantee = Guarantee(B, epsilon, delta)
    assert dataclasses.astuple(guarantee) == (float(B), float(epsilon), float(delta))
    assert all(type(value) is float for value in dataclasses.astuple(guarantee))


def test_it_is_a_value() -> None:
    guarantee = Guarantee(0.5, 1.0)
    assert guarantee == Guarantee(0.5, 1, 0)
    assert guarantee != Guarantee(0.5, 1, 1e-9)
    assert len({guarantee, Guarantee(0.5, 1), Guarantee(0.25, 1)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.B = 1.0  # type: ignore[misc]


def test_delta_is_zero_unless_given() -> None:
    assert Guarantee(1.0, 1.0).delta == 0.0


@pytest.mark.parametrize(
    ("guarantee", "text"),
    [
        (Guarantee(0.25, 4, 1 / 4202), "(B=0.25, ε=4, δ=0.000238)-TDP"),
        (Guarantee(2, 0.1), "(B=2, ε=0.1, δ=0)-TDP"),
        (Guarantee(0.4, 3.9999, 1e-9), "(B=0.4, ε=3.9999, δ=1e-09)-TDP"),
    ],
)
def test_str(guarantee: Guarantee, text: str) -> None:
    assert str(guarantee) == text


def test_vacuous_is_delta_of_one_and_nothing_less() -> None:
    assert Guarantee(1, 1, 1).is_vacuous
    assert not Guarantee(1, 1, math.nextafter(1.0, 0.0)).is_vacuous
    assert not Guarantee(1, 1, 0).is_vacuous


# Comparison


def test_is_at_least_by_hand() -> None:
    guarantee = Guarantee(0.5, 1.0, 1e-5)
    assert guarantee.is_at_least(guarantee)
    assert guarantee.is_at_least(Guarantee(0.25, 1.0, 1e-5))
    assert guarantee.is_at_least(Guarantee(0.5, 2.0, 1e-5))
    assert guarantee.is_at_least(Guarantee(0.5, 1.0, 1e-4))
    assert not guarantee.is_at_least(Guarantee(1.0, 1.0, 1e-5))
    assert not guarantee.is_at_least(Guarantee(0.5, 0.5, 1e-5))
    assert not guarantee.is_at_least(Guarantee(0.5, 1.0, 1e-6))


def test_is_at_least_leaves_some_pairs_undecided() -> None:
    near, far = Guarantee(0.25, 0.5), Guarantee(0.5, 1.0)
    assert not near.is_at_least(far)
    assert not far.is_at_least(near)


@steady
@given(guarantees, guarantees, guarantees)
def test_is_at_least_is_a_partial_order(a: Guarantee, b: Guarantee, c: Guarantee) -> None:
    assert a.is_at_least(a)
    if a.is_at_least(b) and b.is_at_least(a):
        assert a == b
    if a.is_at_least(b) and b.is_at_least(c):
        assert a.is_at_least(c)


# Lemmas 2 and 3: composition


def test_sequential_by_hand() -> None:
    """Lemma 2: (min B, Σε, Σδ)."""
    total = sequential(
        Guarantee(0.5, 1.0, 0.25), Guarantee(0.25, 2.0, 0.125), Guarantee(2, 0.5), Guarantee(1, 4)
    )
    assert total == Guarantee(0.25, 7.5, 0.375)


def test_parallel_by_hand() -> None:
    """Lemma 3: (min B, max ε, max δ)."""
    total = parallel(Guarantee(0.5, 1.0, 0.25), Guarantee(0.25, 2.0, 0.125), Guarantee(2, 0.5))
    assert total == Guarantee(0.25, 2.0, 0.25)


def test_algorithm_1_is_the_sum_of_its_two_stages() -> None:
    """Theorem 2 of the paper composes (B, ε₁, δ₁) and (B, ε₂, δ₂) by Lemma 2."""
    total = sequential(Guarantee(0.25, 3.0, 2 / 12606), Guarantee(0.25, 0.9999, 1 / 12606))
    assert nearly(total, Guarantee(0.25, 3.9999, 1 / 4202))


def test_many_small_parts_add_up_without_drift() -> None:
    total = sequential(*[Guarantee(1.0, 0.1, 1e-7)] * 1000)
    assert total.epsilon == pytest.approx(100.0, rel=1e-15)
    assert total.delta == pytest.approx(1e-4, rel=1e-15)


@pytest.mark.parametrize("compose", [sequential, parallel])
def test_nothing_cannot_be_composed(compose: Any) -> None:
    with pytest.raises(ValueError, match="at least one"):
        compose()


@pytest.mark.parametrize("compose", [sequential, parallel])
def test_one_alone_stays_what_it_is(compose: Any) -> None:
    assert compose(Guarantee(0.3, 1.1, 1e-6)) == Guarantee(0.3, 1.1, 1e-6)


def test_delta_is_capped_at_one() -> None:
    total = sequential(Guarantee(1, 1, 0.75), Guarantee(1, 1, 0.5))
    assert total == Guarantee(1, 2, 1.0)
    assert total.is_vacuous


@steady
@given(guarantees, guarantees, guarantees)
def test_composition_does_not_depend_on_order_or_grouping(a: Guarantee, b: Guarantee, c: Guarantee) -> None:
    assert sequential(a, b, c) == sequential(c, a, b) == sequential(b, c, a)
    assert parallel(a, b, c) == parallel(c, a, b) == parallel(b, c, a)
    assert parallel(parallel(a, b), c) == parallel(a, parallel(b, c)) == parallel(a, b, c)
    assert nearly(sequential(sequential(a, b), c), sequential(a, b, c))
    assert nearly(sequential(a, sequential(b, c)), sequential(a, b, c))


@steady
@given(guarantees, guarantees, guarantees)
def test_composition_is_monotone(a: Guarantee, b: Guarantee, worse: Guarantee) -> None:
    """One release more, or a weaker release in place of a stronger, never gives more privacy."""
    for compose in (sequential, parallel):
        assert a.is_at_least(compose(a, b))
        assert compose(a, b).is_at_least(compose(a, b, worse))
        weaker = parallel(b, worse)
        assert compose(a, b).is_at_least(compose(a, weaker))


@steady
@given(st.lists(guarantees, min_size=1, max_size=6))
def test_disjoint_rows_never_cost_more_than_the_same_rows(parts: list[Guarantee]) -> None:
    assert parallel(*parts).is_at_least(sequential(*parts))
    assert sequential(*parts).delta <= 1


# Lemma 4: the number of steps


def test_steps_of_2_over_m_is_m_and_of_j_steps_is_j() -> None:
    """⌈2/B⌉ = m for B = 2/m, where 2/B itself is often not whole in floating point."""
    wrong = [(m, j) for m in range(1, 2001) for j in range(1, m + 1) if steps(j * (2.0 / m), 2.0 / m) != j]
    assert not wrong
    assert [steps(2.0, 2.0 / m) for m in range(1, 2001)] == list(range(1, 2001))
    assert any(math.ceil(2.0 / (2.0 / m)) != m for m in range(1, 2001)), "the plain ceiling would do"


def test_at_distance_takes_that_many_steps() -> None:
    for m in range(1, 2001):
        guarantee = Guarantee(2.0 / m, 0.5)
        assert guarantee.classic().epsilon == 0.5 * m
        for j in {1, 2, m // 3, m // 2, m - 1, m} & set(range(1, m + 1)):
            r = min(2.0, j * guarantee.B)  # m·(2/m) may round to a little more than 2
            assert guarantee.at_distance(r) == Guarantee(r, 0.5 * j)


@steady
@given(distances, distances)
def test_steps_is_the_ceiling_up_to_the_stated_growth(r: float, B: float) -> None:
    """In exact arithmetic: s steps of B·(1 + 2⁻⁵⁰) reach r, and s − 1 steps of B do not."""
    s = steps(r, B)
    assert s * Fraction(B) * (1 + Fraction(1, 2**50)) >= Fraction(r)
    assert (s - 1) * Fraction(B) < Fraction(r)


@pytest.mark.parametrize("B", [1.9, 1.999, 1.5, 0.7, 0.1, 1 / 3, 2 / 7])
def test_steps_close_to_a_whole_number_keeps_the_stated_growth(B: float) -> None:
    for j in (1, 2, 3, 5, 8):
        r = (j * B) * (1 - 2.0**-49)
        for _ in range(40):
            s = steps(r, B)
            assert s * Fraction(B) * (1 + Fraction(1, 2**50)) >= Fraction(r)
            assert s in {j, j + 1}
            r = math.nextafter(r, math.inf)
        assert steps(r, B) == j + 1


# Lemma 4: what remains


@pytest.mark.parametrize(
    ("B", "delta"), [(2.0, 0.1), (1.0, 0.3), (2 / 3, 0.7), (0.7, 0.7), (0.5, 1.0), (0.1, 1.0)]
)
def test_classic_by_hand(B: float, delta: float) -> None:
    """With e^ε = 2: δ·(2^s − 1) = 0.1, 0.3, 0.7, then 1.5, which is capped."""
    classic = Guarantee(B, math.log(2), 0.1).classic()
    assert classic.B == 2.0
    assert classic.epsilon == pytest.approx(math.ceil(2 / B) * math.log(2))
    assert classic.delta == pytest.approx(delta, rel=1e-14)
    assert classic.is_vacuous == (delta == 1.0)


def test_pure_stays_pure() -> None:
    assert Guarantee(0.25, 4.0).classic() == Guarantee(2.0, 32.0, 0.0)


def test_a_shorter_distance_keeps_epsilon_and_delta() -> None:
    """Definition 2 speaks of all rows within B; Lemma 4 gives nothing better for s = 1."""
    assert Guarantee(0.5, 1.0, 1e-5).at_distance(0.1) == Guarantee(0.1, 1.0, 1e-5)
    assert Guarantee(0.5, 1.0, 1e-5).at_distance(0.5) == Guarantee(0.5, 1.0, 1e-5)


def lemma_4(guarantee: Guarantee, r: float) -> tuple[Any, Any]:
    """(sε, min(1, δ·(e^{sε} − 1)/(e^ε − 1))) with 50 digits and an exact ceiling."""
    s = math.ceil(Fraction(r) / Fraction(guarantee.B))
    with mpmath.workdps(50):
        epsilon, delta = mpmath.mpf(guarantee.epsilon), mpmath.mpf(guarantee.delta)
        grown = delta * mpmath.expm1(s * epsilon) / mpmath.expm1(epsilon)
        return s * epsilon, min(mpmath.mpf(1), grown)


def chained(guarantee: Guarantee, s: int) -> Any:
    """The δ of the lemma's proof, step by step: δ ← e^ε·δ + δ₀."""
    with mpmath.workdps(50):
        total = mpmath.mpf(0)
        for _ in range(s):
            total = mpmath.exp(guarantee.epsilon) * total + mpmath.mpf(guarantee.delta)
        return min(mpmath.mpf(1), total)


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def test_at_distance_is_lemma_4() -> None:
    rng = random.Random(4)
    uncapped = 0
    for _ in range(3000):
        guarantee = Guarantee(
            log_uniform(rng, 1e-3, 2.0), log_uniform(rng, 1e-9, 20.0), log_uniform(rng, 1e-300, 1.0)
        )
        r = rng.uniform(1e-3, 2.0)
        epsilon, delta = lemma_4(guarantee, r)
        remains = guarantee.at_distance(r)
        assert remains == Guarantee(r, remains.epsilon, remains.delta)
        assert abs(remains.epsilon - epsilon) <= 1e-9 * epsilon
        assert abs(remains.delta - delta) <= 1e-9 * delta
        uncapped += delta < 1 and remains.epsilon > guarantee.epsilon
    assert uncapped > 500, "too few of the cases try the formula"


def test_at_distance_is_the_chain_of_its_proof() -> None:
    rng = random.Random(5)
    for _ in range(200):
        m = rng.randint(1, 40)
        guarantee = Guarantee(2.0 / m, log_uniform(rng, 1e-4, 2.0), log_uniform(rng, 1e-20, 1e-2))
        expected = chained(guarantee, m)
        assert abs(guarantee.classic().delta - expected) <= 1e-9 * expected


@pytest.mark.parametrize(
    ("B", "epsilon"), [(2e-3, 1000.0), (2e-6, 1.0), (0.25, 125_000.0), (0.5, 200.0), (1.0, 400.0)]
)
def test_no_overflow(B: float, epsilon: float) -> None:
    """e^{sε} is past the largest float from sε = 710 on."""
    pure = Guarantee(B, epsilon).classic()
    assert pure.delta == 0.0
    assert pure.epsilon == pytest.approx(epsilon * 2 / B)
    assert 700 < pure.epsilon <= 1e6 * (1 + 1e-12)
    lost = Guarantee(B, epsilon, 1e-10).classic()
    assert lost.delta == 1.0
    assert lost.is_vacuous


def test_a_tiny_delta_survives_a_large_epsilon() -> None:
    """δ·e^{(s−1)ε} = 10⁻³⁰⁰·e^{600} is far from both overflow and 1, though e^{sε} overflows."""
    classic = Guarantee(1.0, 600.0, 1e-300).classic()
    assert classic.epsilon == 1200.0
    assert classic.delta == pytest.approx(1e-300 * math.exp(600.0), rel=1e-12)
    assert not classic.is_vacuous


def test_for_a_tiny_epsilon_delta_grows_by_the_number_of_steps() -> None:
    """(e^{sε} − 1)/(e^ε − 1) → s as ε → 0."""
    for epsilon in (1e-300, 1e-30, 1e-15):
        assert Guarantee(0.25, epsilon, 1e-6).classic().delta == pytest.approx(8e-6, rel=1e-9)


@steady
@given(guarantees)
def test_classic_settles(guarantee: Guarantee) -> None:
    classic = guarantee.classic()
    assert classic.B == 2.0
    assert classic.classic() == classic
    assert classic.epsilon >= guarantee.epsilon
    assert classic.delta >= guarantee.delta * (1 - 1e-12)


@steady
@given(guarantees, distances, distances)
def test_what_remains_gets_weaker_with_the_distance(g: Guarantee, a: float, b: float) -> None:
    near, far = g.at_distance(min(a, b)), g.at_distance(max(a, b))
    assert near.epsilon <= far.epsilon
    assert near.delta <= far.delta * (1 + 1e-12)


@steady
@given(guarantees, guarantees, distances)
def test_a_stronger_guarantee_remains_stronger(g: Guarantee, other: Guarantee, r: float) -> None:
    weaker = Guarantee(
        min(g.B, other.B), max(g.epsilon, other.epsilon), max(g.delta, other.delta)
    ).at_distance(r)
    remains = g.at_distance(r)
    assert remains.epsilon <= weaker.epsilon
    assert remains.delta <= weaker.delta * (1 + 1e-9)


@pytest.mark.parametrize("r", [0, -1.0, 2.1, math.nan, math.inf, "1", None, True])
def test_a_distance_outside_the_ball_is_refused(r: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^distance = .*\(0, 2\]"):
        Guarantee(0.5, 1.0).at_distance(r)


@steady
@given(st.floats(min_value=1e-300, max_value=1e6))
def test_log_expm1(x: float) -> None:
    with mpmath.workdps(50):
        expected = mpmath.log(mpmath.expm1(mpmath.mpf(x)))
    assert abs(log_expm1(x) - expected) <= 1e-14 * max(1, abs(expected))

"""Private scales: how far one row moves a cell, the exact chances of neighboring tables, accuracy."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from targetdp import Guarantee, private_scales
from targetdp._core import Floats, Integers, check
from targetdp.attacks import Audit
from targetdp.attacks._audit import lower_bound
from targetdp.noise import PublicWords, word_stream
from targetdp.normalization import PrivateScales, UntoldScalesError, count_distances, count_values
from targetdp.normalization import _quantiles as quantiles
from targetdp.normalization._quantiles import Law, chances, short_of, short_of_scale

ROWS_FOR_ONE = 2 * math.log(561 / 0.01) / (0.92 * 0.025)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# The grid


def cell_of(value: float, digits: int) -> int:
    """The cell of a value, by logarithms and exact fractions, and not by bits."""
    size = abs(Fraction(value))
    if not size:
        return 0
    doubling = math.floor(math.log2(abs(value)))
    doubling += (size >= Fraction(2) ** (doubling + 1)) - (size < Fraction(2) ** doubling)
    part = math.floor((size / Fraction(2) ** doubling - 1) * 2**digits)
    place = ((doubling + 30) << digits) + part + 1
    return int(math.copysign(min(max(place, 1), 70 << digits), value))


EDGES = [
    0.0, -0.0, 1.0, -1.0, 1.25, math.nextafter(1.25, 0), math.nextafter(1.25, 2), 2.0, math.nextafter(2.0, 0),
    2.0**-30, math.nextafter(2.0**-30, 0), 2.0**40, math.nextafter(2.0**40, 0), 1e-9, 1e12, 1e300, -1e300,
    5e-324, -5e-324, 1.7976931348623157e308, 0.1, -3.0, 7.0, 1e-310,
]  # fmt: skip


@pytest.mark.parametrize("columns", [1, 10, 15, 200, 1000, 5000])
def test_each_value_is_counted_in_its_cell(columns: int) -> None:
    values = np.array(EDGES + (10.0 ** rng(1).uniform(-12, 14, 300) * rng(2).choice([-1, 1], 300)).tolist())
    block = np.zeros((columns, len(values)))
    block[0] = values
    digits = {1: 9, 10: 9, 15: 8, 200: 5, 1000: 2, 5000: 2}[columns]
    counts = count_values(block)
    assert counts.shape == (columns, 140 * 2**digits + 1)
    assert counts.size <= max(2**20, columns * 561)
    expected = Counter(cell_of(value, digits) + (70 << digits) for value in values.tolist())
    assert {place: int(counts[0, place]) for place in np.flatnonzero(counts[0])} == dict(expected)
    if columns > 1:
        assert counts[1:, 70 << digits].tolist() == [len(values)] * (columns - 1)


def test_distances_are_counted_in_their_cells_however_far() -> None:
    values = np.array(EDGES)
    for center in (0.0, 1.25, -3.0, 1e12):
        counts = count_distances(np.vstack([values, values]), np.array([center, 0.0]))
        with np.errstate(over="ignore"):
            apart = np.minimum(np.abs(values - center), 1e308)
        expected = Counter(cell_of(value, 3) for value in apart.tolist())
        assert {place: int(counts[0, place]) for place in np.flatnonzero(counts[0])} == dict(expected)
    endless = count_distances(np.array([[1.7e308, -1.7e308]]), np.array([-1.7e308]))
    assert (endless[0, 0], endless[0, -1], endless.shape) == (1, 1, (1, 561))


@pytest.mark.parametrize("cut", [0, 1, 333, 1000])
def test_counts_of_parts_add_up_in_any_order(cut: int) -> None:
    columns = rng(3).lognormal(size=(3, 1000)) * [[1], [-1], [1e9]]
    centers, shuffled = np.array([1.0, -1.0, 0.0]), columns[:, rng(4).permutation(1000)]
    for count in (count_values, lambda part: count_distances(part, centers)):
        assert (count(shuffled[:, :cut]) + count(shuffled[:, cut:])).tolist() == count(columns).tolist()


def test_a_center_and_a_scale_are_in_the_cell_that_they_stand_for() -> None:
    for columns in (1, 100, 3000):
        plan = PrivateScales(2**31, columns, 1.0)
        digits = int(math.log2((count_values(np.zeros((columns, 1))).shape[1] - 1) // 140))
        for cell in (-(70 << digits), -5, -1, 0, 1, 2, 77, 70 << digits):
            assert cell_of(plan.center_of(cell + (70 << digits)), digits) == cell
    for cell in range(1, 561):
        assert cell_of(quantiles._scale_of(cell), 3) == cell


# Sensitivity: one row is replaced by another

VALUES = (0.0, 1.0, -1.0, 3.0, 3.1, -40.0, 1e-9, 1e12, 1e300, 100.0)


def utilities(columns: Floats, centers: Floats) -> tuple[Integers, Integers]:
    n = columns.shape[1]
    of_centers = [short_of(counts, n // 2) for counts in count_values(columns)]
    plan = PrivateScales(10**6, len(columns), 1.0)
    of_scales = [
        short_of_scale(counts, n, plan._too_close(center))
        for center, counts in zip(centers.tolist(), count_distances(columns, centers), strict=True)
    ]
    return np.array(of_centers), np.array(of_scales)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 40, 41, 200])
def test_one_row_changes_what_any_cell_is_short_of_by_at_most_one(n: int) -> None:
    """The one claim that the guarantee rests on, by brute force; and it is reached."""
    generator, largest = rng(n), 0
    for trial in range(60 if n < 200 else 20):
        values = generator.choice(VALUES, size=(2, n))
        if trial % 2:
            values[0] = generator.lognormal(0, generator.choice([0.1, 1, 4]), n) * generator.choice(
                [1, -1], n
            )
        centers = generator.choice(VALUES, 2)
        before = utilities(values, centers)
        for _ in range(10):
            neighbor = values.copy()
            neighbor[:, generator.integers(n)] = generator.choice([*VALUES, *values[0, :3]], 2)
            for one, other in zip(before, utilities(neighbor, centers), strict=True):
                moved = int(np.abs(one - other).max())
                assert moved <= 1
                largest = max(largest, moved)
    assert largest == 1


def test_the_utilities_are_what_the_words_say() -> None:
    """Written down a second time, people by people."""
    generator = rng(5)
    for n in (7, 40, 160):
        cells = generator.integers(0, 561, n) * (generator.random(n) < 0.6)
        counts = np.bincount(cells, minlength=561)
        wanted, enough = math.ceil(0.975 * n), math.ceil(0.0375 * n)
        for cell, close in itertools.product(range(561), (0, 200)):
            short = short_of_scale(counts, n, close)
            upto, below = sum(cells <= cell), sum(cells < cell)
            expected = max(wanted - upto, below - wanted, 0)
            if cell:
                expected = max(expected, enough - sum((abs(cells - cell) <= 32) & (cells > close)))
            else:
                expected = max(0, sum(cells > close) - enough)
            assert short[cell] == expected
        for rank in (0, n // 2, n):
            plain = short_of(counts, rank)
            assert plain.min() == 0
            assert [
                max(rank - sum(cells <= c), sum(cells < c) - rank, 0) for c in range(561)
            ] == plain.tolist()


# Chances


@pytest.mark.parametrize("epsilon", [1e-5, 0.01, 1.0, 90.0])
def test_chances_are_in_the_proportion_of_the_exponentials(epsilon: float) -> None:
    """Against exponentials of twice as many digits."""
    gaps = sorted({0, 1, 2, 3, 7, 64, 1000, 99_999, 2**31 - 1, *rng(6).integers(0, 2**31, 20).tolist()})
    found = chances(gaps, Fraction(epsilon))
    context = Context(prec=300, Emin=-(10**15), Emax=10**15)
    assert found[0] == 2**384
    for gap, chance in zip(gaps, found, strict=True):
        ideal = (
            context.exp(context.multiply(Decimal(epsilon), context.divide(Decimal(-gap), Decimal(2))))
            if gap
            else Decimal(1)
        )
        assert abs(context.subtract(Decimal(chance), context.multiply(ideal, Decimal(2**384)))) <= 2
        assert chance >= 1
    assert found == sorted(found, reverse=True)


def test_chances_do_not_depend_on_somebody_s_decimal_context() -> None:
    expected = chances([1, 5], Fraction(1, 7))
    quantiles._powers.cache_clear()
    with localcontext(Context(prec=3, Emin=-2, Emax=2)):
        assert chances([1, 5], Fraction(1, 7)) == expected
    quantiles._powers.cache_clear()


def groups_of(law: Law) -> Integers:
    """Which group of equal chances each place is in."""
    groups = np.empty(len(law.order), dtype=np.int64)
    groups[law.order] = np.repeat(np.arange(len(law.sizes)), law.sizes)
    return groups


def law_of(law: Law) -> list[Fraction]:
    """The exact chance of each place."""
    found = [Fraction(law.weights[group], law.ends[-1]) for group in groups_of(law).tolist()]
    assert sum(found) == 1
    return found


def both_laws(one: Law, other: Law) -> list[tuple[Fraction, Fraction, int]]:
    """The exact chances that a place has under two laws, and how many places have these."""
    pairs = Counter(zip(groups_of(one).tolist(), groups_of(other).tolist(), strict=True))
    found = [
        (Fraction(one.weights[a], one.ends[-1]), Fraction(other.weights[b], other.ends[-1]), times)
        for (a, b), times in pairs.items()
    ]
    assert sum(p * times for p, _, times in found) == sum(q * times for _, q, times in found) == 1
    return found


def delta(pairs: list[tuple[Fraction, Fraction, int]], power: Fraction) -> Fraction:
    """The smallest δ that goes with e^ε = ``power``, from either table to the other."""
    there = sum((max(Fraction(0), p - power * q) * times for p, q, times in pairs), start=Fraction(0))
    back = sum((max(Fraction(0), q - power * p) * times for p, q, times in pairs), start=Fraction(0))
    return max(there, back)


def exp_of(epsilon: float) -> Fraction:
    """e^ε to 250 digits, rounded down a little: what is proved with it holds with e^ε."""
    context = Context(prec=250)
    return Fraction(context.exp(Decimal(epsilon))) * (1 - Fraction(1, 10**240))


NEIGHBORS: dict[str, Callable[[int], Floats]] = {
    "zeros": np.zeros,
    "spread": lambda n: rng(7).normal(3, 2, n),
    "half zeros": lambda n: np.where(np.arange(n) % 2, 0.0, np.arange(n) + 1.0),
    "two values": lambda n: np.where(np.arange(n) < n // 2, 1.0, 1e6),
    "few": lambda n: np.where(np.arange(n) < n // 40, 5.0, 0.0),
    "few and one more": lambda n: np.where(np.arange(n) < n // 40 + 1, 5.0, 0.0),
}


@pytest.mark.parametrize("table", NEIGHBORS)
@pytest.mark.parametrize("epsilon", [0.5, 20.0])
def test_neighboring_tables_have_chances_within_e_to_the_epsilon(table: str, epsilon: float) -> None:
    """The guarantee itself: the laws of centers, and of scales given any center, computed exactly.

    Centers have 8% of ε and scales the rest; δ of both is far below what is stated. It has power: of
    0.2·ε the laws would be no guarantee.
    """
    n = math.ceil(ROWS_FOR_ONE / epsilon)
    plan, worst = PrivateScales(n, 1, epsilon), 0.0
    values = NEIGHBORS[table](n)
    for replaced, by in itertools.product((0, n - 1), (0.0, -1e300, 4.0, 1e6)):
        neighbor = values.copy()
        neighbor[replaced] = by
        both = both_laws(*(next(plan.center_laws(count_values(one[None]))) for one in (values, neighbor)))
        assert delta(both, exp_of(0.08 * epsilon)) < Fraction(quantiles.TAIL) / 2**50
        for center in (0.0, 3.0, 1e6):
            counts = [count_distances(one[None], np.array([center])) for one in (values, neighbor)]
            both = both_laws(*(next(plan.scale_laws(np.array([center]), one)) for one in counts))
            assert delta(both, exp_of(0.92 * epsilon)) < Fraction(quantiles.TAIL) / 2**50
            likely = (abs(math.log(p / q)) for p, q, _ in both if min(p, q) > Fraction(1, 2**200))
            worst = max(worst, *likely)
    assert worst <= 0.92 * epsilon * (1 + 1e-12)
    if table in {"spread", "half zeros"}:
        assert worst > 0.2 * epsilon, "the test has no power"


def test_all_columns_together_have_epsilon() -> None:
    """Exactly, as fractions: each column's center and scale have their part."""
    for columns, epsilon in ((1, 0.1), (3, 7.7), (7, 1 / 3)):
        plan = PrivateScales(10**6, columns, epsilon)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Law, "of", lambda _, share: share)
            used: list[Any] = list(plan.center_laws(np.zeros((columns, 71_681), dtype=np.int64)))
            used += plan.scale_laws(np.zeros(columns), np.zeros((columns, 561), dtype=np.int64))
        assert len(used) == 2 * columns
        assert sum(used) == Fraction(epsilon)


# Drawing


class Counting:
    """Words that count up: the whole numbers below a bound, one after the other."""

    def __init__(self, bits: int) -> None:
        self.bits, self.next = bits, 0

    def fill(self, out: Any) -> None:
        number = self.next << (64 * len(out) - self.bits)
        out[:] = [number >> (64 * place) & (2**64 - 1) for place in range(len(out))]
        self.next += 1


def test_each_place_is_drawn_for_as_many_numbers_as_its_weight() -> None:
    law = Law(np.array([4, 0, 2, 1, 3]), np.array([1, 2, 2]), [7, 3, 1])
    words = Counting(law.ends[-1].bit_length())
    assert law.ends == [7, 13, 15]
    drawn = Counter(law.draw(words) for _ in range(15))
    assert drawn == {4: 7, 0: 3, 2: 3, 1: 1, 3: 1}
    assert words.next == 15


def test_numbers_at_or_above_the_bound_are_drawn_again() -> None:
    words = Counting(4)
    words.next = 14
    assert quantiles._below(15, words) == 14
    words.next = 15  # is refused; and 16 of 4 bits is 0 again
    words.bits = 4
    assert quantiles._below(15, words) == 0
    assert words.next == 17


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**64, 2**64 + 1, 3**250])
def test_numbers_below_a_bound_are_uniform(bound: int) -> None:
    """In 16 equal parts. False alarm: 10⁻⁶."""
    words = PublicWords(8)
    drawn = [quantiles._below(bound, words) for _ in range(2000)]
    assert all(0 <= number < bound for number in drawn)
    parts = min(bound, 16)
    found = Counter(number * parts // bound for number in drawn)
    ideal = [len([n for n in range(bound) if n * parts // bound == p]) / bound if bound < 99 else 1 / parts
             for p in range(parts)]  # fmt: skip
    if parts > 1:
        expected = [2000 * share for share in ideal]
        assert stats.chisquare([found[p] for p in range(parts)], expected).pvalue > 1e-6


def test_drawn_cells_follow_their_law() -> None:
    """False alarm: 10⁻⁶. Power: at 0.8 of ε the same draws do not fit."""
    counts = count_distances(rng(9).normal(size=(1, 2000)), np.zeros(1))
    words, runs = PublicWords(10), 4000
    law = Law.of(short_of_scale(counts[0], 2000, 0), Fraction(1, 5))
    drawn = Counter(law.draw(words) for _ in range(runs))

    def pvalue(epsilon: Fraction) -> float:
        ideal = law_of(Law.of(short_of_scale(counts[0], 2000, 0), epsilon))
        common = [place for place, chance in enumerate(ideal) if chance * runs > 20]
        rest = runs - sum(drawn[place] for place in common)
        left = float(runs * (1 - sum(ideal[place] for place in common)))
        found = [*(drawn[place] for place in common), rest]
        return float(stats.chisquare(found, [*(float(ideal[place] * runs) for place in common), left]).pvalue)

    assert pvalue(Fraction(1, 5)) > 1e-6
    assert pvalue(Fraction(4, 25)) < 1e-6


def audit(epsilon: float, runs: int, weaker: int = 1) -> Audit:
    """Half of the people in a cell and half in the next, but for one: does the center tell where she is?"""
    n, cell = 400, 35_840 + cell_of(1.0, 9)
    scores = []
    for more, seed in ((0, 20), (1, 21)):
        values = np.where(np.arange(n) < n // 2 - 1 + more, 1.0, 1 + 1 / 512)
        law = Law.of(short_of(count_values(values[None])[0], n // 2), Fraction(epsilon) * weaker)
        words = PublicWords(seed)
        scores.append([float(law.draw(words) == cell) for _ in range(runs)])
    return lower_bound(np.array(scores[1]), np.array(scores[0]), delta=2.0**-100, confidence=0.999)


def test_an_audit_does_not_refute_the_claim_and_would_find_a_wrong_one() -> None:
    """False alarm: at most 1 in 1,000 by the audit's own confidence."""
    assert not audit(2.0, 4000).refutes(2.0)
    assert audit(2.0, 4000, weaker=4).refutes(2.0), "the audit has no power"


# What is refused before anything is drawn


@pytest.mark.parametrize("columns", [1, 10, 500])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_too_few_people_are_refused_by_public_numbers(columns: int, epsilon: float) -> None:
    needed = ROWS_FOR_ONE * columns / epsilon
    assert 950 < ROWS_FOR_ONE < 951
    PrivateScales(math.ceil(needed), columns, epsilon)
    rows = math.ceil(needed) - 1
    with pytest.raises(ValueError, match=r"^epsilon = \S+ for the private scales of") as refused:
        PrivateScales(rows, columns, epsilon)
    told = str(refused.value)
    assert f"needs at least {math.ceil(needed):,} rows, and there are {rows:,}" in told
    assert told.endswith("or public scales")


def test_what_is_advised_is_enough() -> None:
    with pytest.raises(ValueError, match=r"epsilon \(about 0.64\), fewer columns \(at most 15\) or public"):
        PrivateScales(150_000, 100, 0.1)
    PrivateScales(150_000, 100, 0.64)
    PrivateScales(150_000, 15, 0.1)
    with pytest.raises(ValueError, match=r"needs at least 152,\d+ rows"):
        PrivateScales(150_000, 16, 0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, r"^epsilon = 0.0 is outside \[0.0001, 100\]"),
        ({"epsilon": 101}, r"^epsilon = 101.0 is outside \[0.0001, 100\]"),
        ({"epsilon": math.nan}, r"^epsilon = nan is outside"),
        ({"epsilon": "1"}, r"^epsilon = '1' is not a number"),
        ({"rng": 0}, r"^rng = 0 is not a numpy Generator: pass np.random.default_rng"),
        ({"rng": np.random.RandomState(0)}, r"^rng = RandomState.* cannot be seeded"),
        ({"X": np.zeros((2, check.MAX_COLUMNS + 1))}, r"number of columns = 16385 is outside 1 to 16384"),
        ({"X": np.full((1000, 1), np.nan)}, r"NaN or infinite"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"X": rng().normal(size=(2000, 2)), "epsilon": 1.0}
    with pytest.raises((TypeError, ValueError), match=message):
        private_scales(**good | change)


# What they are good for


def zero_inflated(share: float, values: Floats, seed: int) -> Floats:
    return np.where(rng(seed).random(len(values)) < share, values, 0.0)


def robust(columns: Floats) -> Floats:
    """The same scale without noise or grid."""
    apart = np.abs(columns - np.median(columns, axis=1)[:, None])
    return np.asarray(np.quantile(apart, 0.975, axis=1))


def test_long_tails_and_many_zeros_at_a_small_epsilon() -> None:
    """The bar: 100,000 rows, 10 columns, ε = 0.1 together; within 1.5 in 95% of 200 draws, each column."""
    n = 100_000
    columns = np.array([
        rng(1).lognormal(0, 1, n), rng(2).lognormal(3, 1.5, n), rng(3).lognormal(-5, 2, n),
        zero_inflated(0.05, rng(4).lognormal(2, 1, n), 5), zero_inflated(0.05, rng(6).normal(20, 3, n), 7),
        zero_inflated(0.1, rng(8).exponential(100, n), 9), zero_inflated(0.3, rng(10).lognormal(0, 1, n), 11),
        rng(12).uniform(0, 1, n), rng(13).uniform(-50, 150, n), rng(14).uniform(1000, 2000, n),
    ])  # fmt: skip
    plan, words, true = PrivateScales(n, 10, 0.1), word_stream(rng(15)), robust(columns)
    laws, good = list(plan.center_laws(count_values(columns))), np.zeros(10)
    for _ in range(200):
        centers = np.array([plan.center_of(law.draw(words)) for law in laws])
        laws_then = plan.scale_laws(centers, count_distances(columns, centers))
        cells = [plan.cell_of(law.draw(words)) for law in laws_then]
        drawn = np.array([quantiles._scale_of(cell) if cell else math.nan for cell in cells])
        good += (drawn < 1.5 * true) & (drawn > true / 1.5)
    assert (good >= 190).all(), good


def test_the_example_that_failed() -> None:
    """Zero-inflated counts up to 500, ε = 0.1: a scale was 0.019 times the true one, 5 times off often."""
    n = 100_000
    columns = np.array(
        [zero_inflated(0.1, np.minimum(rng(s).lognormal(2, 1, n), 500), 30 + s) for s in range(5)]
    )
    true = robust(columns)
    for seed in range(20):
        scales = private_scales(columns.T, epsilon=0.1, rng=rng(seed))
        assert (scales.center == 0).all()
        assert scales.scale / true == pytest.approx(1, rel=0.5), seed


@pytest.mark.parametrize("share", [0.0, 0.001, 0.015])
def test_columns_with_few_that_differ_are_refused_in_words(share: float) -> None:
    n = 40_000
    columns = np.array([zero_inflated(share, np.full(n, 7.0), 1), rng(2).normal(size=n)])
    for seed in range(5):
        with pytest.raises(UntoldScalesError) as refused:
            private_scales(columns.T, epsilon=1.0, rng=rng(seed))
        assert str(refused.value) == (
            "private scales were drawn, and cannot be used (column 0 of X: fewer than about 5% of people "
            "differ from 0): leave these columns out, or declare public scales; what was drawn is paid for"
        )


def test_of_many_columns_without_a_scale_the_first_are_named() -> None:
    plan, names = PrivateScales(2000, 20, 50.0), [f"f{j}" for j in range(20)]
    counts = count_distances(np.zeros((20, 2000)), np.zeros(20))
    with pytest.raises(UntoldScalesError, match=r"column 'f7': .*; and 12 more columns\)") as refused:
        plan.draw_scales(np.zeros(20), counts, PublicWords(1), names)
    assert "'f8'" not in str(refused.value)


@pytest.mark.parametrize("value", [5.0, -1e6, 3e-5, 1 / 3])
def test_a_constant_is_no_scale(value: float) -> None:
    with pytest.raises(UntoldScalesError, match=r"5% of people differ from .* by more than"):
        private_scales(np.full((5000, 1), value), epsilon=1.0, rng=rng())


def test_values_beyond_the_grid_are_refused() -> None:
    for unit in (1e-12, 1e15):
        X = rng(3).normal(size=(5000, 1)) * unit
        with pytest.raises(UntoldScalesError, match=r"values are mostly below 9e-10 or above 1e\+12 in size"):
            private_scales(X, epsilon=1.0, rng=rng())


def test_shifted_columns_have_their_own_scale_or_none() -> None:
    """A deviation that is a small part of the mean is never taken for the coarseness of the grid."""
    n, kept = 30_000, set()
    for deviation in (1.0, 1e2, 1e4, 1e5, 1e6):
        X = rng(4).normal(1e6, deviation, size=(n, 1))
        for seed in range(5):
            try:
                scales = private_scales(X, epsilon=1.0, rng=rng(seed))
            except UntoldScalesError:
                assert deviation < 1e4, "it is told"
                continue
            kept.add(deviation)
            assert scales.scale[0] == pytest.approx(2.24 * deviation, rel=0.5)
            assert abs(scales.center[0] - 1e6) < deviation
    assert {1e4, 1e5, 1e6} <= kept
    assert 1.0 not in kept


def test_negative_and_mixed_values() -> None:
    n = 30_000
    columns = np.array([-rng(5).lognormal(2, 1, n), rng(6).normal(0, 3, n), rng(7).normal(-40, 3, n)])
    scales = private_scales(columns.T, epsilon=1.0, rng=rng(8))
    assert scales.scale == pytest.approx(robust(columns), rel=0.4)
    assert np.abs(scales.center - np.median(columns, axis=1)).max() < 0.3 * scales.scale.min() + 2


def test_many_columns_are_drawn_with_a_coarser_grid() -> None:
    n, d = 20_000, 2_000
    columns = rng(9).lognormal(0, 1, size=(d, n // 10)).repeat(10, axis=1)
    plan, words = PrivateScales(n, d, 100.0), PublicWords(2)
    centers = plan.draw_centers(count_values(columns), words)
    scales = plan.draw_scales(centers, count_distances(columns, centers), words)
    assert np.mean(np.abs(np.log(scales / robust(columns))) < math.log(1.5)) > 0.95


# What is handed back


TABLE = rng(11).lognormal(size=(4000, 2))


@pytest.mark.parametrize("epsilon", [0.5, 1, 100])
def test_what_was_spent_is_classic_differential_privacy(epsilon: float) -> None:
    result = private_scales(TABLE, epsilon=epsilon)
    assert result.spent == Guarantee(2, epsilon, 2.0**-100)
    assert result.source == "private"
    (condition,) = result.conditions
    assert "paid for" in condition
    assert "bounds" not in condition
    assert not result.center.flags.writeable
    assert not result.scale.flags.writeable


def test_a_simulation_repeats_and_a_release_does_not() -> None:
    same = [private_scales(TABLE, epsilon=1, rng=rng(1)).center.tobytes() for _ in range(2)]
    assert same[0] == same[1]
    simulated = private_scales(TABLE, epsilon=1, rng=rng(2))
    assert (simulated.source, simulated.spent) == ("simulated", None)
    assert simulated.center.tobytes() != same[0]
    assert len({private_scales(TABLE, epsilon=1).center.tobytes() for _ in range(5)}) > 1


def test_every_layout_and_order_gives_the_same_scales() -> None:
    whole = rng(12).integers(0, 10, size=(4000, 2)).astype(np.float64)
    expected = private_scales(whole, epsilon=1, rng=rng(1))
    layouts = (whole.astype(np.int8), whole.astype(np.float32), np.asfortranarray(whole), whole.tolist())
    for X in (*layouts, whole[::-1], whole[rng(13).permutation(4000)]):
        found = private_scales(X, epsilon=1, rng=rng(1))
        assert np.array_equal(found.center, expected.center)
        assert np.array_equal(found.scale, expected.scale)

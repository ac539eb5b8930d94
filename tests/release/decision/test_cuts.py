"""Cuts are a public rule of bits that are out: nobody pays for them, and they come close to the quota."""

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from support.outside import VIETNAM, needs
from targetdp._core import Floats, Integers
from targetdp.mechanisms import STEPS, Decision
from targetdp.release._decision import _cuts
from targetdp.release._decision._cuts import CutRule, ExpectedShares, batch_ends

Bits = NDArray[np.bool_]
UNIT = STEPS
LINE = ExpectedShares((-UNIT, UNIT), (Fraction(0), Fraction(1)))


def rule_at(epsilon: float, expected: ExpectedShares = LINE, wanted: Fraction = Fraction(29, 100)) -> CutRule:
    return CutRule(expected, wanted, (math.ceil(2**64 / (1 + math.exp(epsilon))),), None)


# Batches


@given(people=st.integers(1, 5_000_000))
@settings(max_examples=50)
def test_batches_cover_everybody_once_and_grow_by_a_third(people: int) -> None:
    found = batch_ends(people)
    assert found[-1] == people
    for before, after in itertools.pairwise(found):
        assert before < after
        assert 3 * after // 4 == before
    assert found[0] < 2 * _cuts.FIRST_BATCH


# What is expected


def test_shares_and_cuts_are_each_others_inverse() -> None:
    steps = ExpectedShares((0, 10, 30), (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)))
    assert steps.share(-5) == 2**64 // 10
    assert steps.share(99) == 9 * 2**64 // 10
    assert steps.share(5) / 2**64 == 0.3
    assert (steps.cut(Fraction(0)), steps.cut(Fraction(1))) == (0, 30)
    for cut in range(31):
        assert steps.cut(Fraction(steps.share(cut), 2**64)) == cut


@pytest.mark.parametrize(
    ("cuts", "shares", "said"),
    [
        ((1,), (0.5,), "equally many"),
        ((1, 2, 3), (0, 1), "equally many"),
        ((2, 1), (0, 1), "grow"),
        ((1, 1), (0, 1), "grow"),
        ((1, 2), (1, 0), "must not fall"),
        ((1, 2), (0, 2), "from 0 to 1"),
        ((1, 2), (Fraction(1, 3), Fraction(1, 3)), "all the same"),
        (tuple(range(100)), tuple(Fraction(i, 100) for i in range(100)), "from 2 to"),
    ],
)
def test_what_is_expected_makes_sense(cuts: tuple[int, ...], shares: tuple[Fraction, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ExpectedShares(cuts, shares)


# The rule


def test_it_begins_where_the_official_expects_the_quota() -> None:
    assert rule_at(4).next([], [], []) == rule_at(4).first
    assert LINE.share(rule_at(4).first) / 2**64 == pytest.approx(0.29)


def test_as_many_yes_as_expected_leave_the_cut_where_it_is() -> None:
    rule = rule_at(2)
    people = 10**9
    expected = people * rule.bits(rule.first) >> 128
    assert rule.next([rule.first], [people], [expected]) == pytest.approx(rule.first, abs=UNIT * 1e-6)


@given(
    yes=st.lists(st.integers(0, 100), min_size=1, max_size=6),
    more=st.integers(0, 5),
    epsilon=st.floats(0.1, 8),
)
@settings(max_examples=60)
def test_more_yes_lower_the_cut_and_it_stays_in_the_ball(yes: list[int], more: int, epsilon: float) -> None:
    rule = rule_at(epsilon)
    cuts, people = [rule.first] * len(yes), [100] * len(yes)
    found = rule.next(cuts, people, yes)
    higher = [min(100, one + more) for one in yes]
    assert rule.next(cuts, people, higher) <= found
    assert -2 * UNIT <= found <= 2 * UNIT


def test_cells_away_from_the_cut_have_smaller_errors() -> None:
    """By a sum over all cells, person by person."""
    epsilon, width = 1.0, UNIT // 4
    errors = [math.ceil(2**64 / (1 + math.exp(epsilon)) * math.exp(-epsilon * k)) for k in range(12)]
    rule = CutRule(LINE, Fraction(1, 3), tuple(errors), width)
    scores = np.linspace(-1, 1, 200_001)
    for cut in (-UNIT // 2, 0, UNIT // 3):
        away = (cut / UNIT - scores) * UNIT / width
        wrong = (
            np.array(errors, dtype=float)[
                np.minimum(11, np.where(away >= 0, np.floor(away), -np.floor(away) - 1)).astype(int)
            ]
            / 2**64
        )
        told = np.where(away >= 0, 1 - wrong, wrong).mean()
        assert rule.bits(cut) / 2**128 == pytest.approx(told, abs=1e-4)


def exact_bits(rule: CutRule, cut: int) -> Fraction:
    """The share of bits that say yes, cell by cell, in fractions."""

    def share(at: int) -> Fraction:
        cuts, shares = rule.expected.cuts, rule.expected.shares
        above = bisect.bisect_right(cuts, at)
        if above in {0, len(cuts)}:
            return shares[min(above, len(cuts) - 1)]
        rise = (shares[above] - shares[above - 1]) / (cuts[above] - cuts[above - 1])
        return shares[above - 1] + rise * (at - cuts[above - 1])

    width = rule.width or 4 * UNIT
    chances = [Fraction(words, 2**64) for words in rule.errors]
    ends = [share(cut - place * width) for place in range(len(chances))] + [Fraction(0)]
    starts = [share(cut + place * width) for place in range(len(chances))] + [Fraction(1)]
    yes = sum((a - b) * (1 - q) for a, b, q in zip(ends, ends[1:], chances, strict=False))
    no = sum((b - a) * q for a, b, q in zip(starts, starts[1:], chances, strict=False))
    return Fraction(yes + no)


RULES = st.builds(
    lambda knots, shares, wanted, law: CutRule(
        ExpectedShares(tuple(sorted(knots)), tuple(sorted(shares))), wanted, *law
    ),
    st.lists(st.integers(-UNIT, UNIT), min_size=5, max_size=5, unique=True),
    st.lists(st.fractions(0, 1), min_size=5, max_size=5, unique=True),
    st.fractions(0, 1),
    st.sampled_from(
        [(law.table, law.cells and law.cells.width) for law in (
            Decision(B=2, epsilon=1).law(),
            Decision(B=0.25, epsilon=1, score=[1.0]).law(),
            Decision(B=0.05, epsilon=4, score=[1.0]).law(),
        )]
    ),
)  # fmt: skip


@given(rule=RULES, cut=st.integers(-2 * UNIT, 2 * UNIT))
def test_whole_numbers_are_the_fractions_rounded_down(rule: CutRule, cut: int) -> None:
    assert 0 <= exact_bits(rule, cut) - Fraction(rule.bits(cut), 2**128) < Fraction(1, 2**60)


@given(
    rule=RULES,
    asked=st.lists(st.tuples(st.integers(-UNIT, UNIT), st.integers(0, 500)), min_size=1, max_size=4),
)
@settings(max_examples=60)
def test_the_next_cut_is_the_one_that_explains_the_bits(rule: CutRule, asked: list[tuple[int, int]]) -> None:
    """The last step at which as many yes would be expected: by fractions, at that step and the next one."""
    cuts, yes = [cut for cut, _ in asked], [count for _, count in asked]
    moved = rule.next(cuts, [500] * len(asked), yes) - rule.first
    last, reach = cuts[-1] - rule.first, rule.expected.cuts[-1] - rule.expected.cuts[0]
    seen = sum(yes) + 16 * exact_bits(rule, rule.first)

    def too_few(by: int) -> Fraction:
        told = sum(500 * exact_bits(rule, cut - by) for cut in cuts) + 16 * exact_bits(rule, rule.first - by)
        return Fraction(seen - told)

    near = Fraction(1, 2**40)
    lowest, highest = max(last - reach, -2 * UNIT - rule.first), min(last + reach, 2 * UNIT - rule.first)
    assert lowest <= moved <= highest
    assert moved == lowest or too_few(moved) < near
    assert moved == highest or too_few(moved + 1) > -near


def test_many_small_cells_are_taken_together() -> None:
    """More than 64 on a side: a few count as one, and what is expected hardly changes."""
    law = Decision(B=0.005, epsilon=0.02, score=[1.0]).law()
    assert law.cells is not None
    assert len(law.table) > 5 * _cuts.MOST_CELLS
    rule = CutRule(LINE, Fraction(1, 3), law.table, law.cells.width)
    for cut in (-UNIT // 2, 0, UNIT // 3):
        assert rule.bits(cut) / 2**128 == pytest.approx(float(exact_bits(rule, cut)), abs=1e-3)


# What it costs: nothing. Enumerated on tiny tables.

Cut = Callable[[Sequence[int], Sequence[int]], int]


def law_of(scores: Sequence[int], cut_of: Cut, q: Fraction) -> dict[tuple[int, ...], Fraction]:
    """The exact probability of every vector of bits, one person after the other."""
    found: dict[tuple[int, ...], Fraction] = {}
    for bits in itertools.product((0, 1), repeat=len(scores)):
        chance = Fraction(1)
        for place, bit in enumerate(bits):
            truth = scores[place] <= cut_of(bits[:place], scores[:place])
            chance *= 1 - q if truth == bool(bit) else q
        found[bits] = chance
    assert sum(found.values()) == 1
    return found


def worst(cut_of: Cut, q: Fraction, people: int = 4) -> float:
    """The largest loss between two tables that differ in one row, over all tables of four scores."""
    values = (-UNIT // 2, -UNIT // 8, UNIT // 8, UNIT // 2)
    most = 0.0
    for table in itertools.product(values, repeat=people):
        laws: dict[tuple[int, ...], dict[tuple[int, ...], Fraction]] = {}
        for place in range(people):
            for other in values:
                changed = (*table[:place], other, *table[place + 1 :])
                laws[changed] = laws.get(changed) or law_of(changed, cut_of, q)
        own = law_of(table, cut_of, q)
        for law in laws.values():
            most = max(most, *(math.log(own[bits] / law[bits]) for bits in own))
    return most


def test_a_cut_from_bits_costs_nobody_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cuts, "_EXPECTED_OF", 1)
    q = Fraction(1, 4)  # ε = ln 3
    rule = CutRule(LINE, Fraction(1, 2), (1 << 62,), None)
    cuts: dict[tuple[int, ...], int] = {}

    def from_bits(bits: Sequence[int], _: Sequence[int]) -> int:
        key = tuple(bits)
        if key not in cuts:
            before = [from_bits(bits[:place], ()) for place in range(len(bits))]
            cuts[key] = rule.next(before, [1] * len(bits), list(bits))
        return cuts[key]

    assert worst(from_bits, q) == pytest.approx(math.log(3))
    assert len(set(cuts.values())) > 4, "it did move"


def test_a_cut_from_true_answers_would_cost_twice() -> None:
    """The broken twin: the test above would find it."""

    def from_rows(_: Sequence[int], rows: Sequence[int]) -> int:
        return UNIT // 4 if sum(one > 0 for one in rows) % 2 else -UNIT // 4

    assert worst(from_rows, Fraction(1, 4)) > 2 * math.log(3) - 1e-9


# How close it comes

QUOTA = 0.29


def play(whole: Integers, sample: Floats, epsilon: float, rng: np.random.Generator) -> tuple[Integers, Bits]:
    """The cut that each person was held against, and her bit."""
    shares = np.linspace(0, 1, 33)
    knots = dict(zip((np.quantile(sample, shares) * UNIT).astype(np.int64).tolist(), shares, strict=True))
    expected = ExpectedShares(
        tuple(knots), tuple(Fraction(round(one * 2**20), 2**20) for one in knots.values())
    )
    return played(whole, rule_at(epsilon, expected), epsilon, rng)


def played(whole: Integers, rule: CutRule, epsilon: float, rng: np.random.Generator) -> tuple[Integers, Bits]:
    """The same by a rule."""
    wrong = rng.random(len(whole)) < 1 / (1 + math.exp(epsilon))
    cuts: list[int] = []
    people: list[int] = []
    yes: list[int] = []
    # As in a release, where hashes say who is in which batch.
    ends = np.array(batch_ends(len(whole))[:-1]) / len(whole)
    turns = np.sort(rng.random(len(whole)))
    stops = [*np.searchsorted(turns, ends).tolist(), len(whole)]
    for start, stop in itertools.pairwise([0, *stops]):
        cuts.append(rule.next(cuts, people, yes))
        asked = slice(start, stop)
        yes.append(int(((whole[asked] <= cuts[-1]) ^ wrong[asked]).sum()))
        people.append(stop - start)
    held = np.repeat(cuts, people)
    return held, (whole <= held) ^ wrong


def accuracy(bits: Bits, poor: Bits) -> float:
    """How many are rightly in or out, when lots among the yes, or the no, have made it the quota."""
    people, yes, places = len(bits), int(bits.sum()), int(poor.sum())
    chance = np.where(bits, min(1.0, places / yes), max(0.0, (places - yes) / (people - yes)))
    return float(np.where(poor, chance, 1 - chance).mean())


@cache
def vietnam() -> tuple[Floats, Floats]:
    table = pq.read_table(VIETNAM)
    X = np.column_stack([np.asarray(table.column(name), dtype=float) for name in table.column_names[:10]])
    X = (X - X.mean(axis=0)) / X.std(axis=0) / 3
    X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    return X, np.asarray(table.column("y"), dtype=float)


@needs(VIETNAM)
@pytest.mark.parametrize(("epsilon", "bar"), [(4.0, 0.008), (2.0, 0.014), (1.0, 0.028)])
def test_the_share_of_yes_is_close_to_the_quota(epsilon: float, bar: float) -> None:
    """In 200 plays of 2,000 people; and accuracy is close to that of the cut that knows everybody's score."""
    X, y = vietnam()
    errors, losses = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(X))
        sample, rest = order[:2100], order[2100:4100]
        w = np.linalg.solve(
            X[sample].T @ X[sample] + np.eye(10), X[sample].T @ (y[sample] - y[sample].mean())
        )
        scores = X @ (w / np.linalg.norm(w))
        whole = (scores[rest] * UNIT).astype(np.int64)
        held, bits = play(whole, scores[sample], epsilon, rng)
        errors.append((whole <= held[-1]).mean() - QUOTA)
        places = round(QUOTA * len(rest))
        poor = y[rest] <= np.sort(y[rest])[places - 1]
        wrong = bits ^ (whole <= held)
        knowing = (whole <= np.sort(whole)[places - 1]) ^ wrong
        losses.append(accuracy(knowing, poor) - accuracy(bits, poor))
    assert np.sqrt(np.mean(np.square(errors))) <= bar
    assert np.mean(losses) <= 0.003
    assert np.std(losses) / np.sqrt(200) < 0.0006, "so many plays tell such a loss from none"


@pytest.mark.parametrize("shift", [-0.2, 0.0, 0.2])
def test_it_finds_the_quota_where_the_sample_was_of_other_people(shift: float) -> None:
    rng = np.random.default_rng(4)
    sample = rng.normal(0.0, 0.15, 500)
    for _ in range(5):
        whole = (rng.normal(shift, 0.3, 20_000).clip(-1, 1) * UNIT).astype(np.int64)
        held, _ = play(whole, sample, 4.0, rng)
        assert abs((whole <= held[-1]).mean() - QUOTA) < 0.02


def test_it_goes_far_beyond_what_was_expected() -> None:
    """Two pairs beside the quota, and everybody's score is elsewhere."""
    rng = np.random.default_rng(5)
    rule = rule_at(4, ExpectedShares((0, UNIT // 20), (Fraction(1, 5), Fraction(2, 5))))
    whole = (rng.normal(0.7, 0.1, 20_000).clip(-1, 1) * UNIT).astype(np.int64)
    held, _ = played(whole, rule, 4, rng)
    assert held[0] < UNIT // 20
    assert abs((whole <= held[-1]).mean() - QUOTA) < 0.04

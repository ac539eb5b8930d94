"""Cuts are a public rule of bits that are out: nobody pays for them, and they come close to the quota."""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.outside import VIETNAM, needs
from targetdp._core import Floats
from targetdp.mechanisms import STEPS
from targetdp.release._decision import _cuts
from targetdp.release._decision._cuts import CutRule, Expected, batches

UNIT = STEPS
LINE = Expected((-UNIT, UNIT), (Fraction(0), Fraction(1)))


def rule_at(epsilon: float, expected: Expected = LINE, wanted: Fraction = Fraction(29, 100)) -> CutRule:
    return CutRule(expected, wanted, (math.ceil(2**64 / (1 + math.exp(epsilon))),), None)


# Batches


@given(people=st.integers(1, 5_000_000))
@settings(max_examples=50)
def test_batches_cover_everybody_once_and_grow_by_a_third(people: int) -> None:
    found = batches(people)
    assert [one.start for one in found] == [0, *(one.stop for one in found[:-1])]
    assert found[-1].stop == people
    assert all(len(one) for one in found)
    for before, after in itertools.pairwise(found):
        assert 3 * after.stop // 4 == before.stop
    assert len(found[0]) < 2 * _cuts.FIRST_BATCH or len(found) == 1


# What is expected


def test_shares_and_cuts_are_each_others_inverse() -> None:
    steps = Expected((0, 10, 30), (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)))
    assert steps.share(-5) == Fraction(1, 10)
    assert steps.share(99) == Fraction(9, 10)
    assert steps.share(5) == Fraction(3, 10)
    assert (steps.cut(Fraction(0)), steps.cut(Fraction(1))) == (0, 30)
    for cut in range(31):
        assert steps.cut(steps.share(cut)) == cut


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
        Expected(cuts, shares)


# The rule


def test_it_begins_where_the_official_expects_the_quota() -> None:
    assert rule_at(4).next([], [], []) == rule_at(4).first
    assert LINE.share(rule_at(4).first) == pytest.approx(0.29)


def test_as_many_yes_as_expected_leave_the_cut_where_it_is() -> None:
    rule = rule_at(2)
    people = 10**9
    expected = round(people * rule.bits(rule.first))
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
        assert float(rule.bits(cut)) == pytest.approx(told, abs=1e-4)


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


def play(scores: Floats, sample: Floats, epsilon: float, rng: np.random.Generator) -> float:
    """The share of people below the last cut, less the quota."""
    shares = np.linspace(0, 1, 33)
    knots = dict(zip((np.quantile(sample, shares) * UNIT).astype(np.int64).tolist(), shares, strict=True))
    expected = Expected(tuple(knots), tuple(Fraction(round(one * 2**20), 2**20) for one in knots.values()))
    rule, whole = rule_at(epsilon, expected), (scores * UNIT).astype(np.int64)
    cuts: list[int] = []
    people: list[int] = []
    yes: list[int] = []
    for batch in batches(len(scores)):
        cuts.append(rule.next(cuts, people, yes))
        wrong = rng.random(len(batch)) < 1 / (1 + math.exp(epsilon))
        yes.append(int(((whole[batch.start : batch.stop] <= cuts[-1]) ^ wrong).sum()))
        people.append(len(batch))
    return float((whole <= cuts[-1]).mean() - 0.29)


@needs(VIETNAM)
@pytest.mark.parametrize(("epsilon", "bar"), [(4.0, 0.008), (2.0, 0.014), (1.0, 0.028)])
def test_the_share_of_yes_is_close_to_the_quota(epsilon: float, bar: float) -> None:
    table = pq.read_table(VIETNAM)
    X = np.column_stack([np.asarray(table.column(name), dtype=float) for name in table.column_names[:10]])
    y = np.asarray(table.column("y"), dtype=float)
    X = (X - X.mean(axis=0)) / X.std(axis=0) / 3
    X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    errors = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(X))
        sample, rest = order[:2100], order[2100:4100]
        w = np.linalg.solve(
            X[sample].T @ X[sample] + np.eye(10), X[sample].T @ (y[sample] - y[sample].mean())
        )
        scores = X @ (w / np.linalg.norm(w))
        errors.append(play(scores[rest], scores[sample], epsilon, rng))
    assert np.sqrt(np.mean(np.square(errors))) < bar


@pytest.mark.parametrize("shift", [-0.2, 0.0, 0.2])
def test_it_finds_the_quota_where_the_sample_was_of_other_people(shift: float) -> None:
    rng = np.random.default_rng(4)
    sample = rng.normal(0.0, 0.15, 500)
    errors = [play(rng.normal(shift, 0.3, 20_000).clip(-1, 1), sample, 4.0, rng) for _ in range(5)]
    assert np.abs(errors).max() < 0.02

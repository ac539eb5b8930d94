"""Bits of all people: each row enters one draw, cuts are found again from the bits, order is the ids' own."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from targetdp._core import Integers, Words
from targetdp.mechanisms import STEPS, Decision, DecisionLaw, steps_of
from targetdp.release._decision._bits import Turns, cuts_of, decide
from targetdp.release._decision._cuts import CutRule, ExpectedShares, batches

SEED = bytes(range(32))
LINE = ExpectedShares((-STEPS, STEPS), (Fraction(0), Fraction(1)))


def ids_of(people: int) -> pa.StringArray:
    return pa.array([f"{i:07d}" for i in range(people)])


def rule_of(law: DecisionLaw, wanted: Fraction = Fraction(3, 10)) -> CutRule:
    return CutRule(LINE, wanted, law.marginal_table, None if law.cells is None else law.cells.width)


def words_for(people: int, seed: int = 0) -> Words:
    return np.random.default_rng(seed).integers(0, 2**64, people, dtype=np.uint64)


def scores_for(people: int, seed: int = 1) -> Integers:
    return steps_of(np.random.default_rng(seed).uniform(-1, 1, people))


LAWS = {
    "classic": Decision(B=2, epsilon=2.0).law(),
    "near": Decision(B=0.25, epsilon=2.0, score=[1.0]).law(),
}


@pytest.mark.parametrize("kind", LAWS)
def test_cuts_are_found_again_from_the_bits_alone(kind: str) -> None:
    law, turns = LAWS[kind], Turns.of(ids_of(5000), SEED)
    done = decide(scores_for(5000), turns, rule_of(law), law, words_for(5000))
    assert cuts_of(done.bits, turns, rule_of(law)) == done.cuts
    assert len(done.cuts) == len(batches(5000))
    assert len(set(done.cuts)) > 5
    # Another bit of the first batch is another cut later on.
    other = done.bits.copy()
    other[turns.order[0]] ^= True
    assert cuts_of(other, turns, rule_of(law)) != done.cuts


@pytest.mark.parametrize("kind", LAWS)
def test_a_row_enters_its_own_bit_and_nothing_else(kind: str) -> None:
    """With the same words, another row of one person changes her bit or none; others follow her bit alone."""
    law, turns, scores = LAWS[kind], Turns.of(ids_of(600), SEED), scores_for(600)
    words = words_for(600)
    first = decide(scores, turns, rule_of(law), law, words)
    changed = 0
    for place in range(0, 600, 7):
        moved = scores.copy()
        moved[place] = -moved[place]
        then = decide(moved, turns, rule_of(law), law, words)
        if then.bits[place] == first.bits[place]:
            assert (then.bits == first.bits).all()
            assert then.cuts == first.cuts
        else:
            changed += 1
    assert changed > 5


def test_bits_are_right_as_often_as_the_law_says() -> None:
    """Within five standard errors; 1.3 times the errors would be found."""
    people, law = 40_000, LAWS["classic"]
    scores = scores_for(people)
    done = decide(scores, Turns.of(ids_of(people), SEED), 0, law, words_for(people))
    wrong = (done.bits != (scores <= 0)).mean()
    q = 1 / (1 + math.exp(2.0))
    assert abs(wrong - q) < 5 * math.sqrt(q * (1 - q) / people)
    assert set(done.cuts) == {0}


def test_the_order_has_nothing_to_do_with_rows_and_is_another_one_by_another_seed() -> None:
    one, other = Turns.of(ids_of(3000), SEED), Turns.of(ids_of(3000), bytes(32))
    assert sorted(one.order.tolist()) == list(range(3000))
    assert (one.order == Turns.of(ids_of(3000), SEED).order).all()
    assert (one.order != other.order).mean() > 0.99
    assert abs(np.corrcoef(one.order, np.arange(3000))[0, 1]) < 0.1
    assert one.moved.min() >= 0
    assert one.moved.max() < STEPS >> 30
    assert abs(np.corrcoef(one.moved[one.order], np.arange(3000))[0, 1]) < 0.1


def test_people_with_the_same_score_are_on_both_sides_of_a_cut_that_falls_on_them() -> None:
    """Half of all people have one score: a cut that could not part them would miss the quota by far."""
    people = 8000
    scores = np.where(np.arange(people) % 2 == 0, 0, scores_for(people))
    law = Decision(B=2, epsilon=6.0).law()
    near = STEPS >> 30
    expected = ExpectedShares(
        (-STEPS, 0, near, STEPS), (Fraction(0), Fraction(1, 4), Fraction(3, 4), Fraction(1))
    )
    rule = CutRule(expected, Fraction(1, 2), law.table, None)
    done = decide(scores, Turns.of(ids_of(people), SEED), rule, law, words_for(people))
    assert abs(done.bits.mean() - 0.5) < 0.03
    tied = done.bits[scores == 0]
    assert 0.3 < tied.mean() < 0.7

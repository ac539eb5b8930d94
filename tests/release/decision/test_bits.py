"""Bits of all people: each row enters one draw, cuts are found again from the bits, order is the ids' own."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from targetdp._core import Integers
from targetdp.mechanisms import STEPS, Decision, DecisionLaw, steps_of
from targetdp.noise import PublicWords
from targetdp.release._decision._bits import Decided, Turns, cuts_of, cuts_of_people, decide, turns_of
from targetdp.release._decision._cuts import CutRule, ExpectedShares, batch_ends

LINE = ExpectedShares((-STEPS, STEPS), (Fraction(0), Fraction(1)))


def ids_of(people: int) -> pa.StringArray:
    return pa.array([f"{i:07d}" for i in range(people)])


def rule_of(law: DecisionLaw, wanted: Fraction = Fraction(3, 10)) -> CutRule:
    return CutRule(LINE, wanted, law.marginal_table, None if law.cells is None else law.cells.width)


def scores_for(people: int, programs: int = 1, seed: int = 1) -> Integers:
    return steps_of(np.random.default_rng(seed).uniform(-1, 1, (people, programs)))


def batches_of(people: int, release: str = "one") -> Turns:
    return turns_of(ids_of(people), release, people)[0]


def decided(scores: Integers, rules: list[Any], law: DecisionLaw) -> Decided:
    """Bits by the same public words each time."""
    words = np.empty(len(scores), dtype=np.uint64)
    PublicWords(0).fill(words)
    return decide(batches_of(len(scores)), scores, rules, law, words)


LAWS = {
    "classic": Decision(B=2, epsilon=2.0).law(),
    "near": Decision(B=0.25, epsilon=2.0, score=[1.0]).law(),
    "together": Decision(B=2, epsilon=2.0, programs=3).law(),
}


@pytest.mark.parametrize("kind", LAWS)
def test_cuts_are_found_again_from_the_bits_alone(kind: str) -> None:
    law = LAWS[kind]
    rules = [rule_of(law, Fraction(3 + place, 10)) for place in range(law.programs)]
    done, batches = decided(scores_for(5000, law.programs), rules, law), batches_of(5000)
    assert cuts_of(batches, done.bits, rules) == done.cuts
    assert [len(cuts) for cuts in done.cuts] == [len(batch_ends(5000))] * law.programs
    assert all(len(set(cuts)) > 5 for cuts in done.cuts)
    # Another bit of the first batch is another cut later on, of that decision.
    for place in range(law.programs):
        other = done.bits.copy()
        other[int(batches.argmin()), place] ^= True
        changed = [one != two for one, two in zip(cuts_of(batches, other, rules), done.cuts, strict=True)]
        assert changed == [at == place for at in range(law.programs)]


def test_people_are_held_against_the_cut_of_their_batch() -> None:
    law, batches = LAWS["classic"], batches_of(300)
    done = decided(scores_for(300), [rule_of(law)], law)
    own = cuts_of_people(done.cuts, batches)
    for number, cut in enumerate(done.cuts[0]):
        assert (own[batches == number, 0] == cut).all()


def test_batches_are_as_large_as_they_should_be_but_for_chance() -> None:
    """Within six standard errors of each."""
    people = 100_000
    sizes = np.bincount(batches_of(people))
    wanted = np.diff([0, *batch_ends(people)])
    assert len(sizes) == len(wanted)
    assert (np.abs(sizes - wanted) < 6 * np.sqrt(wanted)).all()


@pytest.mark.parametrize("kind", LAWS)
def test_a_row_enters_its_own_bit_and_nothing_else(kind: str) -> None:
    """With the same words, another row of one person changes her bits or none; others follow these alone."""
    law = LAWS[kind]
    rules, scores = [rule_of(law)] * law.programs, scores_for(600, law.programs)
    first, batches = decided(scores, rules, law), batches_of(600)
    changed = 0
    for place in range(0, 600, 7):
        moved = scores.copy()
        moved[place] = -moved[place]
        then = decided(moved, rules, law)
        if (then.bits[place] == first.bits[place]).all():
            assert (then.bits == first.bits).all()
            assert then.cuts == first.cuts
        else:
            changed += 1
            before = batches < batches[place]
            assert (then.bits[before] == first.bits[before]).all()
    assert changed > 5


@pytest.mark.parametrize("programs", [1, 3])
def test_bits_are_right_as_often_as_the_law_says(programs: int) -> None:
    """Within five standard errors; 1.3 times the errors would be found."""
    people, law = 40_000, Decision(B=2, epsilon=2.0, programs=programs).law()
    scores = scores_for(people, programs)
    done = decided(scores, [0] * programs, law)
    answers = 2**programs
    q = (answers // 2) / (answers - 1 + math.exp(2.0))
    for bits, own in zip(done.bits.T, scores.T, strict=True):
        assert abs((bits != (own <= 0)).mean() - q) < 5 * math.sqrt(q * (1 - q) / people)
    assert set(done.cuts) == {(0,) * len(batch_ends(people))}


def test_turns_have_nothing_to_do_with_rows_and_are_others_in_another_release() -> None:
    (one, moved), (other, _) = turns_of(ids_of(3000), "one", 3000), turns_of(ids_of(3000), "other", 3000)
    assert (one == batches_of(3000)).all()
    assert (one != other).mean() > 0.7
    assert abs(np.corrcoef(one, np.arange(3000))[0, 1]) < 0.1
    assert moved.min() >= 0
    assert moved.max() < STEPS >> 30
    assert abs(np.corrcoef(one, moved)[0, 1]) < 0.1
    # An id's turn is its own, whoever else is there.
    assert (turns_of(ids_of(3000)[7:9], "one", 3000)[0] == one[7:9]).all()


def test_people_with_the_same_score_are_on_both_sides_of_a_cut_that_falls_on_them() -> None:
    """Half of all people have one score: a cut that could not part them would miss the quota by far."""
    people = 8000
    scores = np.where(np.arange(people) % 2 == 0, 0, scores_for(people)[:, 0])
    law = Decision(B=2, epsilon=6.0).law()
    near = STEPS >> 30
    expected = ExpectedShares(
        (-STEPS, 0, near, STEPS), (Fraction(0), Fraction(1, 4), Fraction(3, 4), Fraction(1))
    )
    rule = CutRule(expected, Fraction(1, 2), law.marginal_table, None)
    moved = turns_of(ids_of(people), "one", people)[1]
    done = decided((scores + moved)[:, None], [rule], law)
    assert abs(done.bits.mean() - 0.5) < 0.03
    assert 0.3 < done.bits[scores == 0].mean() < 0.7

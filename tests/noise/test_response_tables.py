"""Tables of randomized response in whole numbers, held against e^ε exactly; and one word for each person."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest

from targetdp._core import Integers, Words
from targetdp.noise import (
    ALL_WORDS,
    RowWords,
    SecretWords,
    error_table,
    exp_between,
    one_word_each,
    respond,
    respond_by_cell,
)

LEVELS = (1e-4, 0.001, 0.01, 0.05, 0.25, math.log(2), 1.0, 1.9, 4.0, 8.0, 20.0, 43.0, 44.5, 60.0, 100.0)


def exp_by_series(x: float) -> tuple[Fraction, Fraction]:
    """Bounds on e^x by its series, of which nothing is shared with `decimal`: e^x = (e^(x/2^k))^(2^k)."""
    halvings = max(0, math.ceil(math.log2(max(abs(x), 2.0**-3)))) + 4
    small = abs(Fraction(x)) / 2**halvings
    term, low = Fraction(1), Fraction(1)
    for n in range(1, 40):
        term = term * small / n
        low += term
    scale = 2**400
    low = Fraction(math.floor(low * scale), scale)
    high = Fraction(math.ceil((low + 2 * term + Fraction(2, scale)) * scale), scale)
    for _ in range(halvings):
        low, high = (
            Fraction(math.floor(low * low * scale), scale),
            Fraction(math.ceil(high * high * scale), scale),
        )
    return (low, high) if x >= 0 else (1 / high, 1 / low)


def chances_of_yes(table: tuple[int, ...]) -> list[int]:
    """Of all cells, from the farthest no to the farthest yes, in words."""
    return [*reversed(table), *(ALL_WORDS - words for words in table)]


def exceeds(table: tuple[int, ...], level: float) -> float:
    """By how much the loss of some neighboring cells is above ε; 0 if it is nowhere, by exact comparison."""
    low, _ = exp_by_series(level)
    worst = 0.0
    for here, there in pairwise(chances_of_yes(table)):
        for p, q in ((here, there), (ALL_WORDS - here, ALL_WORDS - there)):
            for a, b in ((p, q), (q, p)):
                if a * low.denominator > b * low.numerator:
                    worst = max(worst, math.log(a / b) - level, math.ulp(level))
    return worst


@pytest.mark.parametrize("x", [*LEVELS, *(-level for level in LEVELS)])
def test_the_bounds_on_e_hold_by_another_computation(x: float) -> None:
    (low, high), (series_low, series_high) = exp_between(x), exp_by_series(x)
    assert low <= series_high
    assert series_low <= high
    assert (high - low) / low < Fraction(1, 10**57)
    with mpmath.workdps(80):
        truth = mpmath.exp(mpmath.mpf(x))
        assert (
            mpmath.mpf(low.numerator) / low.denominator
            < truth
            < mpmath.mpf(high.numerator) / high.denominator
        )


@pytest.mark.parametrize("level", LEVELS)
def test_no_table_exceeds_its_level(level: float) -> None:
    assert exceeds(error_table(level, 10**9), level) == 0.0


@pytest.mark.parametrize("level", LEVELS)
def test_a_table_falls_from_the_best_possible_error(level: float) -> None:
    table = error_table(level, 2000)
    low, high = exp_by_series(level)
    assert ALL_WORDS / (1 + high) <= table[0] < ALL_WORDS / (1 + low) + 1 + Fraction(1, 10**30)
    assert all(a > b >= 1 for a, b in pairwise(table))
    assert 2 * table[0] < ALL_WORDS
    for k in range(1, min(len(table), 40)):  # as small as rounding up lets them be
        ideal = Fraction(table[k - 1]) / high
        assert ideal <= table[k] <= ideal + 1 + ideal * Fraction(1, 2**60)


def rounded_by_themselves(level: float, cells: int) -> tuple[int, ...]:
    _, high = exp_by_series(level)
    return tuple(math.ceil(ALL_WORDS / (1 + high) / high**k) for k in range(cells))


def falling_by_less(level: float, cells: int) -> tuple[int, ...]:
    """With e^−ε rounded down to a float."""
    fall, table = Fraction(math.nextafter(math.exp(-level), 0)), [error_table(level, 1)[0]]
    while len(table) < cells:
        table.append(math.ceil(fall * table[-1]))
    return tuple(table)


def rounded_down(level: float, cells: int) -> tuple[int, ...]:
    _, high = exp_by_series(level)
    return (math.floor(ALL_WORDS / (1 + high)), *error_table(level, cells)[1:])


def test_broken_tables_are_caught() -> None:
    assert exceeds(rounded_by_themselves(0.25, 180), 0.25) == pytest.approx(math.log(2) - 0.25)  # 0.44
    for level in (0.05, 0.25, 1.0, 4.0):
        assert exceeds(falling_by_less(level, 5), level) > 0
        assert exceeds(rounded_down(level, 3), level) > 0


@pytest.mark.parametrize("level", [0.01, 0.25, 1.0, 4.0])
def test_each_bound_on_e_is_used_on_its_safe_side(level: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With bounds a millionth apart a table keeps its ε all the same; the wrong one of them would show."""
    error_table.cache_clear()

    def coarse(x: float) -> tuple[Fraction, Fraction]:
        low, high = exp_by_series(x)
        return low * (1 - Fraction(1, 10**6)), high * (1 + Fraction(1, 10**6))

    monkeypatch.setattr("targetdp.noise._response.exp_between", coarse)
    assert exceeds(error_table(level, 50), level) == 0.0
    (wrong,) = error_table(level, 1, 4)
    low, _ = exp_by_series(level)
    assert (ALL_WORDS - 3 * wrong) * low.denominator <= wrong * low.numerator
    error_table.cache_clear()


def test_the_table_ends_where_it_falls_no_more() -> None:
    assert error_table(100.0, 50) == (1,)
    assert error_table(4.0, 1000) == error_table(4.0, 10**12)
    assert error_table(4.0, 1000)[-1] == 1
    assert len(error_table(4.0, 3)) == 3


@pytest.mark.parametrize("answers", [2, 4, 8, 16])
@pytest.mark.parametrize("level", LEVELS)
def test_several_answers_keep_their_level(level: float, answers: int) -> None:
    (wrong,) = error_table(level, 1, answers)
    right, (low, high) = ALL_WORDS - (answers - 1) * wrong, exp_by_series(level)
    assert right * low.denominator <= wrong * low.numerator
    assert right >= wrong
    assert wrong < ALL_WORDS / (answers - 1 + low) + 1 + Fraction(1, 10**30)
    assert wrong >= ALL_WORDS / (answers - 1 + high)


@pytest.mark.parametrize(
    "bad", [{"level": 9e-5}, {"level": 100.5}, {"cells": 0}, {"answers": 1}, {"cells": 2, "answers": 4}]
)
def test_no_table_outside_its_range(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        error_table(**{"level": 1.0, "cells": 1, "answers": 2} | bad)


# Draws


class Given:
    """Words that a test chose; counts what was taken."""

    def __init__(self, *words: int) -> None:
        self.words, self.taken = np.array(words, dtype=np.uint64), 0

    def fill(self, out: Words) -> None:
        out[:] = self.words[self.taken : self.taken + out.size]
        self.taken += out.size


@pytest.mark.parametrize("level", [1e-4, 0.25, 4.0, 100.0])
def test_a_bit_is_wrong_for_exactly_as_many_words_as_the_table_says(level: float) -> None:
    """It depends on one comparison, so that the words on both sides of it tell all."""
    table = error_table(level, 6)
    for k in range(8):
        wrong = table[min(k, len(table) - 1)]
        words = Given(0, wrong - 1, wrong, ALL_WORDS - 1)
        for side, yes in ((k, True), (-1 - k, False)):
            words.taken = 0
            bits = respond_by_cell(np.full(4, side), table, words)
            assert (bits == yes).tolist() == [False, False, True, True]


@pytest.mark.parametrize("level", [1e-4, 1.0, 4.0, 100.0])
@pytest.mark.parametrize("answers", [2, 4, 8, 16])
def test_every_wrong_answer_has_exactly_as_many_words(level: float, answers: int) -> None:
    (wrong,) = error_table(level, 1, answers)
    begins = [i * wrong for i in range(answers)]
    words = [*begins, *(begin - 1 for begin in begins[1:]), ALL_WORDS - 1]
    for truth in range(answers):
        found = respond(np.full(len(words), truth), wrong, answers, Given(*words)).tolist()
        first, last = found[: answers - 1], found[answers : 2 * answers - 1]
        assert first == last, "one answer from the first to the last word of a stretch"
        assert sorted([*first, truth]) == list(range(answers))
        assert found[answers - 1] == found[-1] == truth


def test_two_answers_are_the_first_cells() -> None:
    (wrong,) = error_table(1.0, 1)
    rng = np.random.default_rng(3)
    words = [int(word) for word in rng.integers(0, 2**64, size=1000, dtype=np.uint64)]
    truth = rng.integers(0, 2, size=1000)
    assert respond(truth, wrong, 2, Given(*words)).tolist() == (
        respond_by_cell(truth - 1, (wrong,), Given(*words)).tolist()
    )


def skips_sure_answers(cells: Integers, table: tuple[int, ...], words: Given) -> None:
    """A broken twin, which draws only where an answer might be wrong."""
    drawn = np.empty(int((np.abs(cells) < 3).sum()), dtype=np.uint64)
    words.fill(drawn)


def test_everybody_takes_one_word_whatever_her_cell() -> None:
    table, near, far = error_table(4.0, 50), np.zeros(10, np.int64), np.full(10, 40)
    taken = []
    for draw in (respond_by_cell, skips_sure_answers):
        for cells in (near, far, -1 - far):
            words = Given(*range(100))
            draw(cells, table, words)
            taken.append(words.taken)
    assert taken == [10, 10, 10, 10, 0, 0]
    words = Given(*range(100))
    respond(near, error_table(100.0, 1, 8)[0], 8, words)
    assert words.taken == 10


def test_words_of_ones_own_are_the_same_in_any_company() -> None:
    tags = np.random.default_rng(1).bytes(12 * 100_000)
    words = RowWords(bytes(32), tags)
    together = one_word_each(100_000, words)
    alone = [
        one_word_each(1, RowWords(bytes(32), tags[12 * i : 12 * i + 12]))[0] for i in (0, 70_000, 99_999)
    ]
    assert together[[0, 70_000, 99_999]].tolist() == alone
    assert len(set(together.tolist())) == 100_000
    with pytest.raises(ValueError, match="one tag for each row"):
        one_word_each(3, words)


@pytest.mark.parametrize(("level", "cell"), [(0.25, 0), (1.0, 1), (4.0, 0)])
def test_secret_words_make_as_many_errors_as_they_should(level: float, cell: int) -> None:
    people, table = 400_000, error_table(level, 5)
    chance = table[cell] / ALL_WORDS
    for side in (cell, -1 - cell):
        bits = respond_by_cell(np.full(people, side), table, SecretWords())
        wrong = int((bits != (side >= 0)).sum())
        assert abs(wrong - people * chance) < 6 * math.sqrt(people * chance * (1 - chance))

"""Known columns: every column is a secret once in a draw, and its known columns are a uniform subset."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from targetdp.attacks._guess._failed_guesses import Window, known_counts, one_draw, plan_searches

FALSE_ALARM = 1e-6
Draw = Callable[[int, int, np.random.Generator], Iterator[Window]]


@pytest.mark.parametrize(
    ("columns", "expected"), [(2, (1,)), (3, (1, 2)), (4, (1, 2, 3)), (10, (1, 5, 9)), (15, (1, 8, 14))]
)
def test_the_paper_knows_one_half_and_all_but_one(columns: int, expected: tuple[int, ...]) -> None:
    assert known_counts(None, columns) == expected


def test_asked_for_counts_are_kept_in_order() -> None:
    assert known_counts([7, 2], 10) == (7, 2)


@pytest.mark.parametrize(
    ("known", "columns", "words"),
    [
        (None, 1, "X has 1 column"),
        ([0], 5, r"known\[0\] = 0 is outside 1 to 4"),
        ([1, 5], 5, r"known\[1\] = 5 is outside 1 to 4"),
        ([2, 2], 5, "distinct"),
        ([], 5, "distinct"),
        ([1.0], 5, "not a whole number"),
        (3, 5, "not a list"),
        ("12", 5, "not a list"),
    ],
)
def test_bad_counts_are_refused(known: Any, columns: int, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        known_counts(known, columns)


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 7, 10, 15])
def test_a_draw_has_every_column_once_and_as_few_searches_as_can_be(columns: int) -> None:
    rng = np.random.default_rng(columns)
    for h in range(1, columns):
        windows = list(one_draw(columns, h, rng))
        assert len(windows) == -(-columns // (columns - h))
        assert sorted(secret for window in windows for secret in window.secrets) == list(range(columns))
        for window in windows:
            assert len(window.known) == h
            assert list(window.known) == sorted(set(window.known) - set(window.secrets))


def is_uniform(draw: Draw, columns: int, h: int, rng: np.random.Generator) -> bool:
    """Whether each secret's known columns are equally often each h-subset of the others."""
    seen: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(columns)]
    for _ in range(1500):
        for window in draw(columns, h, rng):
            for secret in window.secrets:
                seen[secret][window.known] += 1
    worst = 1.0
    for secret in range(columns):
        subsets = list(combinations([c for c in range(columns) if c != secret], h))
        worst = min(worst, chisquare([seen[secret][subset] for subset in subsets]).pvalue)
    return worst > FALSE_ALARM / columns


def without_shuffling(columns: int, h: int, rng: np.random.Generator) -> Iterator[Window]:
    """A broken draw: the circle is only turned, so that neighbors are always known together."""
    turn = int(rng.integers(columns))
    for begin in range(0, columns, columns - h):
        window = (np.arange(begin, begin + columns - h) + turn) % columns
        known = np.setdiff1d(np.arange(columns), window)
        yield Window(tuple(known.tolist()), tuple(window[: columns - begin].tolist()))


@pytest.mark.parametrize(("columns", "h"), [(4, 1), (4, 2), (5, 2), (5, 3), (5, 4), (6, 1)])
def test_known_columns_are_uniform(columns: int, h: int) -> None:
    assert is_uniform(one_draw, columns, h, np.random.default_rng([columns, h]))


@pytest.mark.parametrize(("columns", "h"), [(4, 2), (5, 2), (5, 3)])
def test_a_draw_that_is_not_uniform_is_noticed(columns: int, h: int) -> None:
    assert not is_uniform(without_shuffling, columns, h, np.random.default_rng(0))


def test_draws_with_the_same_known_columns_share_a_search() -> None:
    windows = plan_searches(4, 1, 50, np.random.default_rng(1))
    assert sorted(window.known for window in windows) == [(0,), (1,), (2,), (3,)]
    counts = Counter(secret for window in windows for secret in window.secrets)
    assert counts == {0: 50, 1: 50, 2: 50, 3: 50}


def test_with_all_columns_but_one_known_there_is_nothing_to_draw() -> None:
    windows = plan_searches(6, 5, 50, np.random.default_rng(1))
    assert sorted(window.secrets for window in windows) == [(j,) for j in range(6)]

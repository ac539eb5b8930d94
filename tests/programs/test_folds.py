"""The cross-validation plan: everyone is held out once, and it never changes."""

import pickle

import numpy as np
import pytest

from targetdp.programs.folds import Folds


@pytest.mark.parametrize(("people", "k"), [(2, 2), (7, 3), (4_201, 5), (10, 10)])
def test_everyone_is_held_out_exactly_once(people: int, k: int) -> None:
    folds = Folds(people, k)
    held_out = [test for _, test in folds]
    assert sorted(np.concatenate(held_out).tolist()) == list(range(people))
    assert max(map(len, held_out)) - min(map(len, held_out)) <= 1
    for train, test in folds:
        assert sorted([*train.tolist(), *test.tolist()]) == list(range(people))


def test_a_plan_depends_on_its_numbers_alone() -> None:
    assert Folds(50, seed=3) == Folds(50, seed=3)
    assert (Folds(50, seed=3).order == Folds(50, seed=3).order).all()
    assert (Folds(50, seed=3).order != Folds(50, seed=4).order).any()
    again = pickle.loads(pickle.dumps(Folds(50, seed=3)))  # noqa: S301 (our own bytes)
    assert (again.order == Folds(50, seed=3).order).all()


def test_nobody_can_change_a_plan() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Folds(10).order[0] = 1


@pytest.mark.parametrize(
    ("people", "k", "seed", "message"),
    [
        (1, 2, 0, "people = 1 is outside 2 to any"),
        (10, 1, 0, "folds = 1 is outside 2 to 10"),
        (10, 11, 0, "folds = 11 is outside 2 to 10: every fold needs a person"),
        (10, 5, -1, "seed = -1 is outside 0 to any"),
    ],
)
def test_bad_numbers(people: int, k: int, seed: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Folds(people, k, seed)

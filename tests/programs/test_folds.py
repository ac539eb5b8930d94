"""The cross-validation plan: everyone is held out once, and it never changes."""

import pickle

import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit

from targetdp.programs import Folds


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


def test_a_splitters_plan_is_taken_as_it_is() -> None:
    splitter = KFold(4, shuffle=True, random_state=3)
    plan = Folds.of(splitter.split(np.zeros(10)), seed=8)
    for (fitted, predicted), (train, test) in zip(plan, splitter.split(np.zeros(10)), strict=True):
        assert np.array_equal(np.sort(fitted), train)
        assert np.array_equal(predicted, test)
    assert (plan.people, plan.k, plan.seed) == (10, 4, 8)
    assert plan == Folds.of(splitter.split(np.zeros(10)), seed=8)
    assert plan != Folds(10, 4, 8)
    assert plan != Folds.of(KFold(4).split(np.zeros(10)), seed=8)
    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301 (our own bytes)


@pytest.mark.parametrize(
    "splits",
    [
        [],
        [([0, 1], [2, 3]), ([2, 3], [0])],  # somebody is predicted by nobody
        [([0, 1], [2, 3]), ([2, 3], [0, 1, 2])],  # somebody twice
        [([0, 1, 2], [2, 3]), ([2, 3], [0, 1])],  # somebody by a model that saw her
        list(ShuffleSplit(3, random_state=0).split(np.zeros(10))),
    ],
)
def test_plans_that_do_not_predict_everybody_once_are_refused(
    splits: list[tuple[list[int], list[int]]],
) -> None:
    with pytest.raises(ValueError, match="do not predict everybody once"):
        Folds.of(splits)

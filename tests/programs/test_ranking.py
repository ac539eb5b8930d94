"""Who is chosen, what happens to ties, and the measures of order against their slow twins."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from targetdp._core import Floats, Integers
from targetdp.programs import people_of
from targetdp.programs._measures import at_or_below, lowest, places, rank_agreement, settled
from targetdp.programs._people import People


def chosen(scores: list[float], quota: float, seed: int = 0, weights: list[float] | None = None) -> list[int]:
    people = people_of(len(scores), weights=weights)
    found = lowest(
        np.array(scores), np.argsort(scores), quota, people, np.random.default_rng(seed)
    )  # fmt: skip
    return np.flatnonzero(found.who).tolist()


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        (0.29, [3, 4, 5]),
        (0.05, []),
        (0.06, [5]),
        (0.96, list(range(10))),
        (0.94, [0, 1, 2, 3, 4, 5, 6, 8, 9]),
    ],
)
def test_exactly_the_rounded_quota_is_chosen(quota: float, expected: list[int]) -> None:
    assert chosen([9, 8, 7, 3, 2, 1, 12, 15, 14, 13], quota) == expected


def test_ties_at_the_cut_are_drawn_and_counted() -> None:
    scores, people = np.array([5.0, 1.0, 3.0, 3.0, 3.0, 9.0]), people_of(6)
    times = np.zeros(6)
    for seed in range(3_000):
        found = lowest(scores, np.argsort(scores), 0.5, people, np.random.default_rng(seed))
        assert found.ties == 3
        assert found.who.sum() == 3
        times += found.who
    assert times[[0, 1, 5]].tolist() == [0, 3_000, 0]
    assert times[[2, 3, 4]] == pytest.approx(2_000, abs=5 * np.sqrt(3_000 * 2 / 9))


def test_ties_away_from_the_cut_are_none() -> None:
    scores, people = np.array([1.0, 1.0, 2.0, 3.0, 3.0, 3.0]), people_of(6)
    found = lowest(scores, np.argsort(scores), 0.5, people, np.random.default_rng(0))
    assert (found.ties, found.who.tolist()) == (0, [True, True, True, False, False, False])


def test_the_same_seed_draws_the_same_people_whatever_the_sort_did() -> None:
    scores, people = np.zeros(40), people_of(40)
    one, other = (
        lowest(scores, order.astype(np.int64), 0.5, people, np.random.default_rng(1)).who
        for order in (np.arange(40), np.arange(40)[::-1])
    )
    assert (one == other).all()


def test_weights_fill_the_quota_by_weight() -> None:
    assert chosen([1, 2, 3, 4], 0.5, weights=[5, 1, 1, 3]) == [0]
    assert chosen([1, 2, 3, 4], 0.5, weights=[1, 1, 1, 7]) == [0, 1, 2]
    assert chosen([1, 2, 3, 4], 0.9, weights=[1, 1, 1, 7]) == [0, 1, 2, 3]
    assert chosen([1, 2, 3, 4], 0.6, weights=[1, 1, 1, 7]) == [0, 1, 2]
    assert chosen([1, 2, 3, 4], 0.04, weights=[1, 1, 1, 7]) == []


def test_equal_weights_are_none() -> None:
    scores = np.random.default_rng(3).standard_normal(101).tolist()
    for quota in (0.1, 0.29, 0.5, 0.9):
        assert chosen(scores, quota) == chosen(scores, quota, weights=[2.5] * 101)


def test_tied_people_with_weights_are_drawn_among_the_tied_only() -> None:
    sizes = set()
    for seed in range(50):
        who = chosen([1, 2, 2, 2, 3], 0.4, seed, weights=[1, 1, 2, 4, 8])
        assert 0 in who
        assert 4 not in who
        sizes.add(len(who))
    assert len(sizes) > 1


def test_all_who_are_tied_at_the_line_are_below_it() -> None:
    assert at_or_below(np.array([1.0, 2, 2, 2, 5]), 0.4, people_of(5)).tolist() == [True] * 4 + [False]
    assert not at_or_below(np.array([1.0, 2, 3]), 0.1, people_of(3)).any()


def test_what_differs_by_rounding_alone_is_equal() -> None:
    level = 1234.5678
    scores = np.array([level, np.nextafter(level, 0), np.nextafter(level, 1e9)])
    assert len(set(settled(scores).tolist())) == 1
    spread = np.concatenate([scores, [0.0, 3000.0]])
    assert len(set(settled(spread)[:3].tolist())) == 1


def test_what_differs_by_more_stays_apart() -> None:
    scores = np.array([0.0, 1.0, 1.0 + 1e-10, 1.0 - 1e-10])
    assert len(set(settled(scores).tolist())) == 4
    assert settled(scores) == pytest.approx(scores, abs=1e-12)


@pytest.mark.parametrize("scores", [np.zeros(3), np.array([0.0, 5e-324]), np.array([1e-300, 2e-300])])
def test_tiny_scores_are_left_alone(scores: Floats) -> None:
    assert (settled(scores) == scores).all()


def random_case(seed: int, levels: int) -> tuple[Floats, Floats, Integers, list[str]]:
    rng = np.random.default_rng(seed)
    n = 120
    scores = np.round(rng.standard_normal(n) * levels) / levels
    values: Floats = np.round(np.exp(scores + rng.standard_normal(n)), 1).astype(np.float64)
    groups = rng.choice(["a", "b", "c"], n, p=[0.6, 0.37, 0.03]).tolist()
    return scores, values, rng.integers(1, 4, n), groups


def agreement(scores: Floats, values: Floats, people: People) -> tuple[Floats, Floats]:
    return rank_agreement(
        scores, np.argsort(scores), values > np.median(values), places(values, people), people
    )


@pytest.mark.parametrize("levels", [1, 3, 1_000])
@pytest.mark.parametrize("seed", range(3))
def test_auc_and_spearman_by_group_are_the_libraries(seed: int, levels: int) -> None:
    scores, values, _, labels = random_case(seed, levels)
    people = people_of(len(scores), groups={"g": labels, "same": ["x"] * len(scores)})
    auc, spearman = agreement(scores, values, people)
    truth = values > np.median(values)
    everybody = [True] * len(scores)
    sides = [everybody, *([label == g for label in labels] for g in sorted(set(labels))), everybody]
    for place, inside in enumerate(sides):
        mine = np.array(inside)
        if len(set(truth[mine].tolist())) == 2:
            assert auc[place] == pytest.approx(roc_auc_score(truth[mine], scores[mine]), abs=1e-12)
        else:
            assert np.isnan(auc[place])
        if len(set(scores[mine])) > 1 and len(set(values[mine])) > 1:
            expected = spearmanr(scores[mine], values[mine]).statistic
            assert spearman[place] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("levels", [2, 1_000])
def test_a_weight_is_so_many_people(levels: int) -> None:
    scores, values, counts, labels = random_case(5, levels)
    many = np.repeat(np.arange(len(scores)), counts)
    line = np.median(values)
    weighted = people_of(len(scores), groups={"g": labels}, weights=counts)
    repeated = people_of(len(many), groups={"g": np.array(labels)[many].tolist()})
    one = rank_agreement(scores, np.argsort(scores), values > line, places(values, weighted), weighted)
    two = rank_agreement(
        scores[many], np.argsort(scores[many]), values[many] > line, places(values[many], repeated), repeated
    )
    for mine, theirs in zip(one, two, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-12, nan_ok=True)


def test_scores_that_say_nothing() -> None:
    values, people = np.arange(10.0), people_of(10)
    auc, spearman = agreement(np.zeros(10), values, people)
    assert auc.tolist() == [0.5]
    assert np.isnan(spearman).all()

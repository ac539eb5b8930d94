"""The net attack against its brute-force twin, and against releases whose scores are known."""

from typing import Any

import numpy as np
import pytest

from targetdp import GaussianNoise
from targetdp._core import Floats, Silent
from targetdp.attacks import NET_SIZES, singling_out, worst_of_means
from targetdp.attacks._singling_out import LEAF, alone_in_boxes, identical_and_unique, net_size_name


def brute_force(X: Floats, X_priv: Floats, sizes: tuple[float, ...]) -> dict[str, int]:
    """The paper's words: people who are the only ones in a box, for each net size."""
    deviation = np.where((X_priv == X_priv[0]).all(axis=0), 0.0, X_priv.std(axis=0))
    flat = deviation == 0
    counts = {}
    for c in (0.0, *sizes):
        people = set()
        for z in X_priv:
            inside = (X[:, flat] == z[flat]).all(axis=1)
            if c == 0:
                inside &= (z == X).all(axis=1)
            else:
                inside &= (np.abs(X - z) <= c * deviation).all(axis=1)
            if inside.sum() == 1:
                people.add(int(np.argmax(inside)))
        counts[net_size_name(c)] = len(people)
    return counts


def tables() -> dict[str, tuple[Floats, Floats]]:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((400, 4))
    skewed = np.exp(rng.standard_normal((300, 10)))
    rounded = np.round(rng.standard_normal((500, 3)))
    constant = np.column_stack([X[:, 0], np.full(400, 3.0), X[:, 1]])
    return {
        "no noise": (X, X.copy()),
        "a little noise": (X, X + 0.05 * rng.standard_normal(X.shape)),
        "much noise": (X, X + 3 * rng.standard_normal(X.shape)),
        "skewed": (skewed, skewed + 0.3 * rng.standard_normal(skewed.shape)),
        "ties": (rounded, np.round(rounded + rng.standard_normal(rounded.shape))),
        "duplicates": (np.repeat(X[:50], 3, axis=0), np.repeat(X[:50], 3, axis=0)),
        "a constant column": (constant, constant + np.array([0.1, 0, 0.1]) * rng.standard_normal((400, 3))),
        "a constant column that moved": (constant, constant + np.array([0.0, 1.0, 0.0])),
        "only constant columns": (np.ones((5, 2)), np.ones((5, 2))),
        "one column": (X[:, :1].copy(), X[:, :1] + 0.1),
        "one row": (X[:1], X[:1]),
        "one row, moved": (X[:1], X[:1] + 1),
        "more columns than rows": (X[:20].reshape(4, 20), X[:20].reshape(4, 20) + 0.3),
        "zeros": (np.zeros((30, 2)), 0.1 * rng.standard_normal((30, 2))),
        "other numbers of rows": (X, X[:33] + 0.2 * rng.standard_normal((33, 4))),
        "negative zero": (np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[-0.0, 1.0], [5.0, 3.0]])),
        "deep tree": (
            np.repeat(rng.standard_normal((LEAF * 5, 2)), 2, axis=0),
            rng.standard_normal((LEAF * 10, 2)),
        ),
    }


@pytest.mark.parametrize("name", tables())
def test_counts_are_those_of_the_brute_force_twin(name: str) -> None:
    X, X_priv = tables()[name]
    found = singling_out(X, X_priv)
    assert found.detail["singled_out"] == brute_force(X, X_priv, NET_SIZES)
    assert found.score == min(1 - count / len(X) for count in found.detail["singled_out"].values())


@pytest.mark.parametrize("d", [1, 2, 7, 15])
def test_boxes_name_the_one_point(d: int) -> None:
    rng = np.random.default_rng(d)
    points, queries = rng.standard_normal((1000, d)), 1.5 * rng.standard_normal((700, d))
    apart = np.abs(points[None] - queries[:, None]).max(axis=2)
    sizes = np.quantile(apart.min(axis=1), [0.1, 0.3, 0.5, 0.9])  # some boxes hold one, some more
    found = alone_in_boxes(points, queries, sizes, Silent())
    for k, size in enumerate(sizes):
        inside = apart <= size
        expected = np.where(inside.sum(axis=1) == 1, inside.argmax(axis=1), -1)
        assert np.array_equal(found[:, k], expected)
        assert (expected >= 0).sum() > 9
        assert (inside.sum(axis=1) > 1).any()


@pytest.mark.parametrize("magnitude", [1e-310, 1e-42, 1e-30, 1.0, 1e6, 3e7, 1e15, 3.3e38, 3.5e38, 1e300])
def test_boxes_are_exact_where_single_precision_is_not(magnitude: float) -> None:
    """Points at the very edge of a box, and one step beyond it, far from zero or next to it."""
    rng = np.random.default_rng(5)
    queries = magnitude * rng.uniform(-1, 1, size=(60, 3))
    size = magnitude * 0.01
    away = rng.choice([-1.0, 1.0], size=(60, 3)) * size
    edge = np.where(rng.random((60, 3)) < 0.5, queries + away, queries)
    points = np.concatenate([edge, np.nextafter(edge, edge + away), queries + 2 * away])
    sizes = np.array([size * 0.5, size, np.nextafter(size, 2 * size), size * 1.5])
    found = alone_in_boxes(points, queries, sizes, Silent())
    apart = np.abs(points[None] - queries[:, None]).max(axis=2)
    for column, c in zip(found.T, sizes, strict=True):
        inside = apart <= c
        alone = np.where(inside.sum(axis=1) == 1, inside.argmax(axis=1), -1)
        np.testing.assert_array_equal(column, alone)


def test_the_original_scores_its_share_of_rows_that_are_not_unique() -> None:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.standard_normal((60, 3)), np.repeat(rng.standard_normal((20, 3)), 2, axis=0)])
    found = singling_out(X, X)
    assert found.settings["net size 0"].score == pytest.approx(0.4)
    assert found.score <= 0.4


def test_a_release_without_noise_protects_nobody_and_pure_noise_nearly_everybody() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((2_000, 6))
    assert singling_out(X, X).score == 0
    far = singling_out(0.01 * X, rng.standard_normal(X.shape))  # the crowd is a point beside the noise
    assert far.score > 0.99
    assert far.bound == "upper"


def test_net_size_0_needs_identical_rows() -> None:
    X = np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 3.0], [4.0, 2.0]])
    released = np.array([[1.0, 2.0], [1.0, 3.0], [4.0, 3.0]])
    assert identical_and_unique(X, released).tolist() == [True, False, False, False]
    assert identical_and_unique(X, np.nextafter(released, 9)).sum() == 0


def test_the_interval_holds_the_score_and_shares_its_doubt() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 3))
    found = singling_out(X, X + 0.2 * rng.standard_normal(X.shape), confidence=0.9)
    low, high = found.interval
    assert low < found.score < high
    wider = singling_out(X, X + 0.2 * rng.standard_normal(X.shape), confidence=0.999)
    assert wider.interval[1] - wider.interval[0] > high - low


def test_over_simulations_it_is_the_worst_of_the_means() -> None:
    X = np.random.default_rng(4).standard_normal((300, 3)) / 10
    mechanism = GaussianNoise(B=0.1, epsilon=4, delta=1e-3)
    runs = [singling_out(X, mechanism.privatize(X, np.random.default_rng(seed))) for seed in range(5)]
    found = worst_of_means(runs)
    means = {name: np.mean([run.settings[name].score for run in runs]) for name in runs[0].settings}
    assert found.score == pytest.approx(min(means.values()))
    assert found.score >= np.mean([run.score for run in runs])
    assert found.strongest == min(means, key=lambda name: means[name])


def test_sizes_may_come_in_any_order_and_more_than_once() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 3))
    Z = X + 0.3 * rng.standard_normal(X.shape)
    assert singling_out(X, Z, (1.0, 0.5, 0.5, 0)).detail == singling_out(X, Z, (0.5, 1.0)).detail
    assert list(singling_out(X, Z, ()).settings) == ["net size 0"]
    assert net_size_name(0.123456) == "net size 0.123456"


@pytest.mark.parametrize("power", [-1040, -600, -530, 0, 500, 1018])
def test_units_do_not_matter_however_small_or_large(power: int) -> None:
    rng = np.random.default_rng(6)
    X = np.round(rng.standard_normal((200, 2)) * 16)  # whole numbers: exact even where floats become coarse
    Z = X + np.round(rng.standard_normal(X.shape) * 4)
    expected = singling_out(X, Z).detail
    scaled = singling_out(np.ldexp(X, power), np.ldexp(Z, power)).detail
    assert scaled == expected
    one, two = (np.column_stack([T[:, 0], np.ldexp(T[:, 1], power)]) for T in (X, Z))
    beside = singling_out(one, two)
    assert beside.detail == expected


def test_a_large_offset_does_not_swallow_differences() -> None:
    rng = np.random.default_rng(8)
    X = rng.integers(0, 50, (300, 3)).astype(np.float64)
    Z = X + rng.integers(-3, 4, X.shape)
    assert singling_out(X + 2.0**52, Z + 2.0**52).detail == singling_out(X, Z).detail


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"net_sizes": (-0.1,)}, r"net_sizes\[0\] = -0.1 is outside \[0, inf\)"),
        ({"net_sizes": 0.5}, r"net_sizes = 0.5 is not a list"),
        ({"net_sizes": (0.5, "1")}, r"net_sizes\[1\] = '1' is not a number"),
        ({"confidence": 1}, r"confidence = 1.0 is outside \(0, 1\)"),
        ({"X_priv": np.ones((3, 3))}, "X_priv has 3 columns: exactly 2 are needed"),
        ({"X": np.array([[np.nan, 1.0]])}, "X has 1 values that are NaN"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        singling_out(**({"X": np.eye(2), "X_priv": np.eye(2)} | arguments))

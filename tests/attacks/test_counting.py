"""Counting within a distance, through the tree, against all pairs."""

import numpy as np
import pytest

from targetdp._core import Floats, Silent
from targetdp.attacks._search._tree import LEAF, count_within, grow, squared_distances


def all_pairs(points: Floats, queries: Floats) -> Floats:
    return np.array([squared_distances(points, np.repeat(q[None], len(points), axis=0)) for q in queries])


@pytest.mark.parametrize("shape", [(1, 1), (300, 3), (1000, 10), (500, 1), (40, 60), (LEAF * 9 + 1, 2)])
@pytest.mark.parametrize("rounded", [False, True])
def test_counts_are_those_of_all_pairs(shape: tuple[int, int], rounded: bool) -> None:
    rng = np.random.default_rng(sum(shape))
    X, noise = rng.standard_normal(shape), rng.standard_normal(shape)
    if rounded:  # ties in abundance
        X, noise = np.round(X), np.round(noise)
    queries = X + noise
    radii = squared_distances(X, queries)
    pairs = all_pairs(X, queries)
    closer, equal = count_within(X, queries, radii, progress=Silent())
    assert np.array_equal(closer, (pairs < radii[:, None]).sum(axis=1))
    assert np.array_equal(equal, (pairs == radii[:, None]).sum(axis=1))
    assert (equal >= 1).all()  # each one's own row, met exactly
    most, ties = count_within(X, queries, radii, limit=10, progress=Silent())
    assert np.array_equal(np.minimum(most, 11), np.minimum(closer, 11))
    assert np.array_equal(ties[closer <= 10], equal[closer <= 10])


def test_a_radius_of_everything_and_of_nothing() -> None:
    X = np.random.default_rng(0).standard_normal((1000, 3))
    closer, equal = count_within(X, X, np.full(1000, 1e9), progress=Silent())
    assert (closer == 1000).all()
    assert (equal == 0).all()
    closer, equal = count_within(X, X, np.zeros(1000), progress=Silent())
    assert (closer == 0).all()
    assert (equal == 1).all()


@pytest.mark.parametrize("n", [1, 2, LEAF, LEAF + 1, 3_001])
@pytest.mark.parametrize("distinct", [1, 3, 10_000])
def test_a_tree_holds_every_row_once_in_boxes_that_fit(n: int, distinct: int) -> None:
    X = np.random.default_rng(n).integers(0, distinct, (n, 4)).astype(np.float64)
    tree = grow(X, LEAF)
    first = len(tree.begins) // 2
    assert sorted(tree.order) == list(range(n))
    assert tree.leaf_rows >= tree.sizes[first:].max()
    assert tree.sizes[first:].max() <= LEAF
    for node in range(len(tree.begins)):
        begin, size = tree.begins[node], tree.sizes[node]
        rows = X[tree.order[begin : begin + size]]
        assert np.array_equal(tree.low[node], rows.min(axis=0))
        assert np.array_equal(tree.high[node], rows.max(axis=0))
        if node >= first:
            values = tree.values[begin * 4 : (begin + size) * 4].reshape(4, size)
            assert np.array_equal(values, rows[:, tree.column_order[node - first]].T)

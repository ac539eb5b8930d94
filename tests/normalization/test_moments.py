"""Moments of batches, joined in any order, against numpy on the whole."""

import math
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from targetdp._core import Floats
from targetdp.normalization import ColumnMoments

VALUES = st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 2), min_size=1, max_size=30)


def agree(found: ColumnMoments, X: Floats) -> None:
    assert found.rows == X.shape[1]
    size = np.abs(X).max(axis=1)
    assert np.allclose(found.mean, X.mean(axis=1), rtol=1e-12, atol=1e-12 * size.max())
    assert np.allclose(found.deviation, X.std(axis=1), rtol=1e-9, atol=1e-8 * size.max())
    assert (found.lowest == X.min(axis=1)).all()
    assert (found.highest == X.max(axis=1)).all()
    assert (found.constant == (X.min(axis=1) == X.max(axis=1))).all()


@given(st.lists(VALUES, min_size=1, max_size=6), st.randoms())
def test_batches_in_any_order_make_the_whole(
    batches: list[list[tuple[float, float]]], random: object
) -> None:
    parts = [np.array(batch).T for batch in batches]
    whole = np.concatenate(parts, axis=1)
    random.shuffle(parts)  # type: ignore[attr-defined]
    agree(reduce(add, (ColumnMoments.of(part) for part in parts)), whole)


def test_a_small_deviation_on_a_large_mean_survives() -> None:
    rng = np.random.default_rng(5)
    X = 1e9 + rng.normal(size=(1, 100_000))
    found = reduce(add, (ColumnMoments.of(part) for part in np.array_split(X, 37, axis=1)))
    assert found.deviation[0] == pytest.approx(X.std(), rel=1e-6)
    naive = math.sqrt(max(0.0, float((X**2).mean() - X.mean() ** 2)))
    assert abs(naive - X.std()) > 0.01, "summing squares would have lost it"


def test_one_value_only_is_constant_and_two_are_not() -> None:
    one = ColumnMoments.of(np.array([[0.1] * 3, [0.1, 0.1, 0.2]]))
    assert one.constant.tolist() == [True, False]
    both = one + ColumnMoments.of(np.array([[np.nextafter(0.1, 1)], [0.1]]))
    assert both.constant.tolist() == [False, False]
    assert (ColumnMoments.of(np.array([[3.0]])).deviation == 0).all()


def test_values_that_overflow_are_not_silently_wrong() -> None:
    found = ColumnMoments.of(np.array([[1.7e308, 1.7e308, -1.7e308]]))
    assert not np.isfinite(found.squares[0])
    joined = found + ColumnMoments.of(np.array([[1.0]]))
    assert not np.isfinite(joined.squares[0])
    assert (joined.lowest[0], joined.highest[0], joined.rows) == (-1.7e308, 1.7e308, 4)

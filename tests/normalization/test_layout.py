"""Between columns and rows: the fast way into the unit ball against `normalize` itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from targetdp._core import Floats
from targetdp.normalization import declared_scales, normalize, rows_in_ball
from targetdp.table import columns_in_order

ANY = st.floats(allow_nan=False, allow_infinity=False)


def both(X: Floats, center: list[float], scale: list[float]) -> tuple[Floats, Floats, int]:
    scales = declared_scales(center, scale)
    rows, clipped = rows_in_ball(np.ascontiguousarray(X.T), scales)
    return rows, normalize(X, scales).X, clipped


@pytest.mark.parametrize("shape", [(1, 1), (31, 2), (32, 3), (33, 3), (1000, 7), (5, 400)])
@pytest.mark.parametrize("size", [1e-3, 0.5, 1.0, 100.0])
def test_rows_are_those_of_normalize(shape: tuple[int, int], size: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(3, size, shape)
    center, scale = rng.normal(3, 0.1, shape[1]), rng.uniform(0.5, 2, shape[1])
    rows, expected, clipped = both(X, list(center), list(scale))
    assert np.allclose(rows, expected, rtol=1e-12, atol=1e-15)
    assert (np.linalg.norm(rows, axis=1) <= 1 + 1e-12).all()
    scaled = np.linalg.norm((X - center) / scale, axis=1)
    assert clipped == (scaled > 1).sum()


HUGE = [1e-308, 5e-324, 1e-200, 1e-150, 1e-141, 1e-139, 1.0, 1e139, 1e141, 1e200, 1e300, 1.7e308, 0.0]


@pytest.mark.parametrize("one", HUGE)
@pytest.mark.parametrize("two", HUGE)
def test_huge_and_tiny_values_keep_their_direction(one: float, two: float) -> None:
    X = np.array([[one, two], [-one, two], [0.1, 0.2]])
    for scale in (1.0, 1e-300, 1e300):
        rows, expected, clipped = both(X, [0.0, 0.0], [scale, scale])
        assert np.isfinite(rows).all()
        assert np.allclose(rows, expected, rtol=1e-12, atol=0)
        assert (np.linalg.norm(rows, axis=1) <= 1 + 1e-12).all()
        with np.errstate(over="ignore"):
            assert clipped == (np.hypot(X[:, 0] / scale, X[:, 1] / scale) > 1).sum()


@given(st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=40), st.tuples(ANY, ANY, ANY))
def test_any_finite_values_end_in_the_ball_as_normalize_says(
    values: list[tuple[float, float, float]], center: tuple[float, float, float]
) -> None:
    rows, expected, _ = both(np.array(values), list(center), [1.0, 0.25, 8.0])
    assert np.isfinite(rows).all()
    assert (np.sqrt((rows * rows).sum(axis=1)) <= 1 + 1e-12).all()
    assert np.allclose(rows, expected, rtol=1e-9, atol=1e-300)


def test_a_row_of_length_one_is_not_clipped() -> None:
    rows, _, clipped = both(np.array([[0.6, 0.8], [1.0, 0.0], [1.0, 1e-7]]), [0.0, 0.0], [1.0, 1.0])
    assert clipped == 1
    assert rows[:2].tolist() == [[0.6, 0.8], [1.0, 0.0]]


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (31, 2), (100, 5)])
def test_columns_come_in_the_order_asked_for(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(2).normal(size=shape)
    order = np.random.default_rng(3).permutation(shape[0]).astype(np.int64)
    columns = columns_in_order(rows, order)
    assert columns.shape == shape[::-1]
    assert (columns == rows[order].T).all()

"""Mondrian: k holds on every input, and the fast cuts are those of a slow recursive twin."""

import dataclasses
import math
import statistics
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from targetdp._core import Floats, Integers, check
from targetdp.mechanisms import Mondrian
from targetdp.mechanisms import _mondrian as mondrian
from targetdp.mechanisms._mondrian import Value
from targetdp.normalization import clip_rows, declared_scales, normalize

fixed = settings(derandomize=True, deadline=None)

shapes = arrays.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=40).map(
    lambda shape: (shape[0] + 1, min(shape[1], 4))
)
# Sixteenths up to 1/4: few values, so nearly all are ties, and rows well inside the unit ball.
ties = arrays.arrays(np.int64, shapes, elements=st.integers(-4, 4)).map(lambda X: X / 16)
floats = arrays.arrays(np.float64, shapes, elements=st.floats(-0.25, 0.25))
outside_the_ball = arrays.arrays(np.float64, shapes, elements=st.floats(-1e6, 1e6))
tiny = arrays.arrays(np.int64, shapes, elements=st.integers(-3, 3)).map(lambda X: X * 5e-324)
tables = st.one_of(ties, floats, outside_the_ball, tiny)
sizes = st.integers(2, 7)


# ---------------------------------------------------------------- the slow twin


def slow_classes(table: Floats, group_size: int) -> list[list[int]]:
    """The same rule, literally: recursive, with full sorts, in Python's own numbers."""
    rows = table.tolist()
    columns = range(table.shape[1])

    def width(part: list[int], column: int) -> float:
        return float(max(rows[i][column] for i in part) - min(rows[i][column] for i in part))

    everything = list(range(len(rows)))
    whole = [width(everything, column) for column in columns]

    def cut(part: list[int]) -> list[list[int]]:
        spread = {c: width(part, c) / whole[c] for c in columns if width(part, c) > 0}
        for column in sorted(spread, key=lambda c: -spread[c]):
            median = statistics.median_low(rows[i][column] for i in part)
            ties_down = [i for i in part if rows[i][column] <= median]
            ties_up = [i for i in part if rows[i][column] < median]
            for down in (ties_down, ties_up):
                up = [i for i in part if i not in set(down)]
                if min(len(down), len(up)) >= group_size:
                    return cut(down) + cut(up)
        return [part]

    return cut(everything)


def members(classes: Integers) -> list[list[int]]:
    return [np.flatnonzero(classes == number).tolist() for number in range(classes.max() + 1)]


def allowed_thresholds(rows: Floats, group_size: int) -> list[tuple[int, float]]:
    """Every threshold on one column that leaves enough rows on both sides, by trying them all."""
    return [
        (column, float(threshold))
        for column in range(rows.shape[1])
        for threshold in np.unique(rows[:, column])
        if group_size <= np.sum(rows[:, column] <= threshold) <= len(rows) - group_size
    ]


def prepared(X: Any) -> Floats:
    return clip_rows(check.table(X))


@fixed
@given(tables, sizes)
def test_the_classes_are_those_of_the_slow_twin(X: Floats, group_size: int) -> None:
    group_size = min(group_size, len(X))
    classes = Mondrian(group_size).classes(X)
    assert members(classes) == slow_classes(prepared(X), group_size)


@pytest.mark.parametrize("group_size", [2, 3, 10])
@pytest.mark.parametrize("values", [2, 5, 50, 10**9])
def test_the_classes_are_those_of_the_slow_twin_on_a_larger_table(values: int, group_size: int) -> None:
    X = np.random.default_rng(values).integers(0, values, size=(700, 6)) / (8 * values)
    assert members(Mondrian(group_size).classes(X)) == slow_classes(X, group_size)


# ---------------------------------------------------------------- k holds, and no class is too big


@fixed
@given(tables, sizes)
def test_every_row_is_in_one_class_that_is_large_enough(X: Floats, group_size: int) -> None:
    group_size = min(group_size, len(X))
    classes = Mondrian(group_size).classes(X)
    assert classes.dtype == np.int64
    assert classes.shape == (len(X),)
    assert classes.min() == 0
    assert np.bincount(classes).min() >= group_size


@fixed
@given(tables, sizes, st.sampled_from(["midpoint", "mean"]))
def test_released_rows_are_alike_in_groups(X: Floats, group_size: int, value: Value) -> None:
    group_size = min(group_size, len(X))
    released = Mondrian(group_size, value).privatize(X)
    assert np.unique(released, axis=0, return_counts=True)[1].min() >= group_size


@fixed
@given(tables, sizes)
def test_no_threshold_on_one_column_could_cut_a_class(X: Floats, group_size: int) -> None:
    group_size = min(group_size, len(X))
    table = prepared(X)
    for rows in members(Mondrian(group_size).classes(X)):
        assert allowed_thresholds(table[rows], group_size) == []


def test_ties_do_not_leave_a_row_alone() -> None:
    """k-AnonML's Mondrian makes classes of 9 and 1 here."""
    X = np.array([[1.0]] * 9 + [[2.0]]) / 4
    assert Mondrian(2).classes(X).tolist() == [0] * 10


def test_ties_go_up_where_they_cannot_go_down() -> None:
    X = np.array([[1, 1, 2, 2, 2, 2, 3]]).T / 4
    assert Mondrian(2).classes(X).tolist() == [0, 0, 1, 1, 1, 1, 1]


def test_the_next_column_is_tried_where_the_widest_allows_no_cut() -> None:
    X = np.array([[0, 0], [0, 0], [0, 1], [0, 1], [0, 1], [0, 0], [8, 0.5]]) / 16
    assert Mondrian(3).classes(X).tolist() == [0, 0, 1, 1, 1, 0, 0]


def test_constant_columns_are_passed_over() -> None:
    X = np.full((8, 3), 0.125)
    X[:, 1] = np.arange(8) / 64
    assert Mondrian(2).classes(X).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("value", ["midpoint", "mean"])
@pytest.mark.parametrize("number", [0.0, 0.1, -0.3, 1 / 3, 5e-324])
def test_rows_that_are_all_the_same_come_back_unchanged(number: float, value: Value) -> None:
    X = np.full((11, 2), number)
    assert Mondrian(3, value).classes(X).max() == 0
    assert np.array_equal(Mondrian(3, value).privatize(X), X)


@pytest.mark.parametrize(("count", "classes"), [(5, 1), (6, 1), (9, 1), (10, 2), (19, 3), (20, 4)])
def test_few_rows(count: int, classes: int) -> None:
    X = np.random.default_rng(0).normal(size=(count, 3)) / 16
    assert Mondrian(5).classes(X).max() + 1 == classes


def test_rows_of_other_orders_get_the_same_classes() -> None:
    rng = np.random.default_rng(1)
    for X in (rng.normal(size=(300, 4)) / 64, rng.integers(0, 3, size=(300, 4)) / 64):
        order = rng.permutation(len(X))
        assert np.array_equal(Mondrian(4).classes(X[order]), Mondrian(4).classes(X)[order])
        released = Mondrian(4).privatize(X)
        assert np.array_equal(Mondrian(4).privatize(X[order]), released[order])


# ---------------------------------------------------------------- values


@fixed
@given(tables, sizes)
def test_values_are_midpoints_or_means_of_the_class(X: Floats, group_size: int) -> None:
    group_size = min(group_size, len(X))
    table = prepared(X)
    midpoints = Mondrian(group_size).privatize(X)
    means = Mondrian(group_size, "mean").privatize(X)
    assert midpoints.shape == means.shape == X.shape
    for rows in members(Mondrian(group_size).classes(X)):
        low, high = table[rows].min(axis=0), table[rows].max(axis=0)
        # Exact references, since a sum that cancels has no small relative error. Two steps of the
        # least denormal are allowed where a half has no bit left.
        halves = [float((Fraction(x) + Fraction(y)) / 2) for x, y in zip(low, high, strict=True)]
        np.testing.assert_allclose(midpoints[rows[0]], halves, rtol=1e-15, atol=1e-323)
        exact = [math.fsum(column) / len(rows) for column in table[rows].T]
        rounding = np.abs(table[rows]).sum(axis=0) * 2.0**-52 + 1e-323
        assert (np.abs(means[rows[0]] - exact) <= rounding).all()
        for released in (midpoints[rows], means[rows]):
            assert (released == released[0]).all()
            assert ((low <= released) & (released <= high)).all()


def test_values_of_a_known_table() -> None:
    X = np.array([[0, 8], [1, 8], [4, 8], [10, 8], [11, 8], [15, 8]]) / 32
    assert (32 * Mondrian(3).privatize(X)).tolist() == [[2, 8]] * 3 + [[12.5, 8]] * 3
    means = 32 * Mondrian(3, "mean").privatize(X)
    np.testing.assert_allclose(means, [[5 / 3, 8]] * 3 + [[12, 8]] * 3, rtol=1e-15)


def test_the_midpoint_of_huge_numbers_does_not_overflow() -> None:
    table = np.array([[1.5e308, -1.5e308], [1.7e308, -1.7e308]])
    released = mondrian._class_values(table, np.arange(2), np.array([0]), False)
    np.testing.assert_allclose(released, [[1.6e308, -1.6e308]] * 2, rtol=1e-15)


@pytest.mark.parametrize("value", ["midpoint", "mean"])
def test_released_zeros_have_no_sign(value: Value) -> None:
    released = Mondrian(2, value).privatize(np.array([[-0.0], [0.0], [-0.0], [-0.0]]))
    assert not np.signbit(released).any()


def test_rows_outside_the_unit_ball_are_clipped_first() -> None:
    X = np.random.default_rng(2).normal(size=(60, 3)) * 5
    clipped = prepared(X)
    assert np.array_equal(Mondrian(3).classes(X), Mondrian(3).classes(clipped))
    means = Mondrian(3, "mean").privatize(X)
    assert np.linalg.norm(means, axis=1).max() <= 1 + 1e-12


# ---------------------------------------------------------------- selection


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1001, 20_000])
def test_selection_on_regular_orders(count: int) -> None:
    up = np.arange(count, dtype=np.float64)
    mixed = np.random.default_rng(3).permutation(up)
    for values in (up, up[::-1], np.minimum(up, up[::-1]), up % 2, up % 7, 0 * up, mixed):
        for rank in {0, (count - 1) // 2, count - 1}:
            expected = np.sort(values)[rank]
            assert mondrian._select(values.copy(), rank) == expected


# ---------------------------------------------------------------- the interface


@pytest.mark.parametrize(
    "X",
    [
        np.arange(24, dtype=np.float32).reshape(12, 2) / 64,
        np.array([[0], [1], [1], [0], [-1], [-1]] * 2, dtype=np.int8),
        np.array([[0], [1], [1], [0]] * 3, dtype=np.uint16),
        np.asfortranarray(np.arange(24.0).reshape(12, 2) / 64),
        (np.arange(48.0).reshape(12, 4) / 64)[:, ::2],
        [[0.25, 0], [0.5, 0], [0.125, 0.25], [0, 0.5]],
    ],
    ids=["float32", "int8", "uint16", "Fortran", "strided", "lists"],
)
def test_any_table_of_numbers_will_do(X: Any) -> None:
    plain = np.array(X, dtype=np.float64, order="C")
    assert np.array_equal(Mondrian(2).classes(X), Mondrian(2).classes(plain))
    released = Mondrian(2).privatize(X)
    assert released.dtype == np.float64
    assert np.array_equal(released, Mondrian(2).privatize(plain))


def test_the_table_is_only_read() -> None:
    X = np.random.default_rng(4).normal(size=(50, 3)) / 16
    before = X.copy()
    released = Mondrian(2).privatize(X)
    assert np.array_equal(X, before)
    assert not np.shares_memory(X, released)
    X.setflags(write=False)
    assert np.array_equal(Mondrian(2).privatize(X), released)


def test_nothing_is_drawn() -> None:
    X = np.random.default_rng(5).normal(size=(50, 3))
    rng = np.random.default_rng(6)
    state = rng.bit_generator.state
    assert np.array_equal(Mondrian(2).privatize(X, rng), Mondrian(2).privatize(X))
    assert rng.bit_generator.state == state


def test_it_promises_no_differential_privacy() -> None:
    assert getattr(Mondrian(1000), "guarantee", "missing") is None


def test_it_is_a_value() -> None:
    assert Mondrian(np.int64(5)) == Mondrian(5, "midpoint")  # type: ignore[arg-type]
    assert type(Mondrian(np.int64(5)).group_size) is int  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Mondrian(5).group_size = 6  # type: ignore[misc]


@pytest.mark.parametrize("group_size", [1, 0, -3])
def test_a_group_size_below_two_is_refused(group_size: int) -> None:
    with pytest.raises(ValueError, match=f"group_size = {group_size} is outside 2 to any"):
        Mondrian(group_size)


@pytest.mark.parametrize("group_size", [2.0, True, "2", None])
def test_a_group_size_that_is_not_whole_is_refused(group_size: Any) -> None:
    with pytest.raises(TypeError, match=r"group_size = .* is not a whole number"):
        Mondrian(group_size)


@pytest.mark.parametrize("value", ["median", "", None, 1])
def test_another_value_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"value = .* is not one of mean, midpoint"):
        Mondrian(2, value)


@pytest.mark.parametrize("method", ["classes", "privatize"])
def test_too_few_rows_are_refused(method: str) -> None:
    with pytest.raises(ValueError, match=r"group_size = 5 is more than the 3 rows of X: .*lower"):
        getattr(Mondrian(5), method)(np.zeros((3, 2)))


@pytest.mark.parametrize("method", ["classes", "privatize"])
@pytest.mark.parametrize(
    ("X", "error"),
    [
        (np.zeros(6), ValueError),
        (np.zeros((0, 2)), ValueError),
        (np.zeros((6, 0)), ValueError),
        (np.array([[0.0], [np.nan], [0.1]]), ValueError),
        (np.array([[0.0], [np.inf], [0.1]]), ValueError),
        (np.array([["a"], ["b"]]), TypeError),
    ],
)
def test_what_is_not_a_table_of_numbers_is_refused(X: Any, error: type[Exception], method: str) -> None:
    with pytest.raises(error, match="X has"):
        getattr(Mondrian(2), method)(X)


def test_a_seed_is_refused() -> None:
    seed: Any = 7
    with pytest.raises(TypeError, match="rng = 7 is not a numpy Generator"):
        Mondrian(2).privatize(np.zeros((4, 2)), seed)


@pytest.mark.parametrize(
    ("rows", "starts"),
    [
        ([0, 1, 2, 3, 4, 5], [0, 5]),
        ([0, 1, 2, 3, 4, 5], [0, 1]),
        ([0, 1, 2, 3, 4, 5], [2, 4]),
        ([0, 1, 2, 3, 4, 5], [0, 4, 2]),
        ([0, 1, 2, 3, 4, 4], [0, 3]),
        ([0, 1, 2, 3, 4, 6], [0, 3]),
        ([0, 1, 2, 3, 4], [0, 3]),
    ],
)
def test_broken_cuts_are_caught_before_a_release(
    rows: list[int], starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mondrian, "_cut", lambda *_: (np.array(rows), np.array(starts)))
    for method in (Mondrian(2).privatize, Mondrian(2).classes):
        with pytest.raises(RuntimeError, match="self-check failed"):
            method(np.zeros((6, 2)))


def test_the_result_does_not_read_like_a_guarantee() -> None:
    """It had the conditions of a guarantee that there is none of."""
    table = normalize([[1.0], [2.0], [3.0]], declared_scales([2], [2]))
    private = Mondrian(group_size=2).privatize(table)
    assert private.guarantee is None
    (said,) = private.conditions
    assert said.startswith("No guarantee holds")

"""Every validator: what it accepts and returns, and that its refusals say what is wrong."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from targetdp._core import Floats, check

NOT_NUMBERS: list[Any] = [
    None,
    True,
    False,
    np.True_,
    "1",
    b"1",
    np.str_("1"),
    1j,
    np.complex128(1 + 2j),
    np.complex64(1),
    [1.0],
    (1.0,),
    {"a": 1},
    np.array([1.0]),
    np.array([1.0, 2.0]),
    np.array([]),
    object(),
    math.sqrt,
]


# number


@pytest.mark.parametrize(
    "value", [0.5, 1, np.float64(0.5), np.float32(0.5), np.int8(1), Fraction(1, 2), Decimal("0.5")]
)
def test_number_returns_a_plain_float(value: Any) -> None:
    x = check.number("rate", value, above=0, at_most=1)
    assert type(x) is float
    assert x == float(value)


@pytest.mark.parametrize(
    ("limits", "interval", "inside", "outside"),
    [
        ({"above": 0, "below": 1}, "(0, 1)", [5e-324, 0.5], [0.0, -0.0, 1.0, -1.0]),
        ({"at_least": 0, "at_most": 1}, "[0, 1]", [0.0, 1.0], [-5e-324, math.nextafter(1, 2)]),
        ({"above": 0, "at_most": 2}, "(0, 2]", [2.0], [0.0, math.nextafter(2, 3)]),
        ({"at_least": 0.5, "below": 1}, "[0.5, 1)", [0.5], [1.0, math.nextafter(0.5, 0)]),
        ({"above": 0}, "(0, inf)", [1e308], [0.0]),
        ({"below": 0}, "(-inf, 0)", [-1e308], [0.0]),
        ({}, "(-inf, inf)", [0.0, -1e308, 1e308], []),
    ],
)
def test_number_keeps_to_its_interval(
    limits: dict[str, Any], interval: str, inside: list[float], outside: list[float]
) -> None:
    for value in inside:
        assert check.number("rate", value, **limits) == value
    for value in [*outside, math.nan, math.inf, -math.inf]:
        with pytest.raises(ValueError, match="is outside") as caught:
            check.number("rate", value, **limits, remedy="try 0.7")
        assert str(caught.value) == f"rate = {value!r} is outside {interval}: try 0.7"


def test_number_without_a_remedy_ends_after_the_range() -> None:
    with pytest.raises(ValueError, match=r"^rate = 2\.0 is outside \(0, 1\)$"):
        check.number("rate", 2, above=0, below=1)


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_number_refuses_other_kinds(value: Any) -> None:
    with pytest.raises(TypeError, match="number") as caught:
        check.number("rate", value, above=0, at_most=2, remedy="try 0.7")
    message = str(caught.value)
    assert message.startswith(f"rate = {value!r} is not ")
    assert message.endswith("it must lie in (0, 2]: try 0.7")


def test_number_refuses_what_does_not_fit_a_float() -> None:
    with pytest.raises((TypeError, ValueError), match=r"^rate = 1000.*\(0, inf\)"):
        check.number("rate", 10**400, above=0)


# integer


@pytest.mark.parametrize("value", [1, 9, np.int64(3), np.uint8(3)])
def test_integer_returns_a_plain_int(value: Any) -> None:
    n = check.integer("size", value, at_least=1, at_most=9)
    assert type(n) is int
    assert n == value


def test_integer_may_have_no_upper_end() -> None:
    assert check.integer("size", 10**30, at_least=1) == 10**30
    with pytest.raises(ValueError, match=r"^size = 0 is outside 1 to any: try 5$"):
        check.integer("size", 0, at_least=1, remedy="try 5")


@pytest.mark.parametrize("value", [0, -1, 10, 10**30, np.int64(-3)])
def test_integer_keeps_to_its_interval(value: Any) -> None:
    with pytest.raises(ValueError, match="is outside") as caught:
        check.integer("size", value, at_least=1, at_most=9, remedy="try 5")
    assert str(caught.value) == f"size = {int(value)} is outside 1 to 9: try 5"


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 3.0, np.float64(3), Fraction(3), math.nan, math.inf])
def test_integer_refuses_other_kinds(value: Any) -> None:
    with pytest.raises(TypeError, match="whole number") as caught:
        check.integer("size", value, at_least=1, at_most=9, remedy="try 5")
    assert str(caught.value) == f"size = {value!r} is not a whole number: give 1 to 9: try 5"


# choice


@pytest.mark.parametrize("options", [["b", "a"], {"a", "b"}, {"a": 1, "b": 2}, ("a", "b")])
def test_choice(options: Any) -> None:
    assert check.choice("kind", "a", options) == "a"
    for value in ("c", "", "A", None, 1, ["a"], b"a"):
        with pytest.raises(ValueError, match="is not one of") as caught:
            check.choice("kind", value, options)
        assert str(caught.value) == f"kind = {value!r} is not one of a, b"


# distance and dimensions


@pytest.mark.parametrize("value", [5e-324, 0.25, 1, 2, 2.0, np.float32(0.5)])
def test_distance(value: Any) -> None:
    assert check.distance(value) == float(value)


@pytest.mark.parametrize("value", [0, -0.1, math.nextafter(2, 3), math.nan, math.inf])
def test_distance_keeps_to_the_ball(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^distance = .* is outside \(0, 2\]: .*unit ball"):
        check.distance(value)
    with pytest.raises(ValueError, match=r"^B = .* is outside \(0, 2\]: .*unit ball"):
        check.distance(value, "B")


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_distance_refuses_other_kinds(value: Any) -> None:
    with pytest.raises(TypeError, match=r"(?s)^distance = .*\(0, 2\]: .*unit ball"):
        check.distance(value)


def test_dimensions() -> None:
    assert check.dimensions(1) == 1
    assert check.dimensions(check.MAX_COLUMNS) == check.MAX_COLUMNS
    for value in (0, -1, check.MAX_COLUMNS + 1):
        with pytest.raises(ValueError, match=rf"^d = {value} is outside 1 to {check.MAX_COLUMNS}"):
            check.dimensions(value, "d")
    for other in (1.0, True, None, "1"):
        with pytest.raises(TypeError, match=rf"^dimensions = {other!r} .*{check.MAX_COLUMNS}"):
            check.dimensions(other)


# table


def assert_standard(array: np.ndarray[Any, Any], shape: tuple[int, int]) -> None:
    assert type(array) is np.ndarray
    assert array.dtype == np.float64
    assert array.dtype.isnative
    assert array.flags.c_contiguous
    assert array.shape == shape


@pytest.mark.parametrize(
    "dtype",
    ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">f8", ">i4", ">f4"],
)
def test_table_widens_numbers(dtype: str) -> None:
    X = np.arange(12).reshape(4, 3).astype(dtype)
    result = check.table(X)
    assert_standard(result, (4, 3))
    assert np.array_equal(result, np.arange(12.0).reshape(4, 3))


def test_table_widens_single_precision_exactly() -> None:
    X = np.random.default_rng(1).normal(size=(50, 3)).astype(np.float32)
    assert np.array_equal(check.table(X).astype(np.float32), X)


@pytest.mark.parametrize("X", [[[1, 2], [3, 4]], ((1.0, 2.0), (3.0, 4.0)), [np.array([1, 2]), (3, 4)]])
def test_table_accepts_nested_sequences(X: Any) -> None:
    assert check.table(X).tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (3, check.MAX_COLUMNS)])
def test_table_of_one_row_or_one_column(shape: tuple[int, int]) -> None:
    assert_standard(check.table(np.ones(shape)), shape)


LAYOUTS: dict[str, Callable[[Floats], Any]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "single": lambda X: X.astype(np.float32),
    "integers": lambda X: X.astype(np.int64),
}


@pytest.mark.parametrize("writeable", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_table_accepts_every_layout_and_changes_none(layout: str, writeable: bool) -> None:
    values = np.random.default_rng(2).integers(-9, 9, size=(6, 4)).astype(np.float64)
    X = LAYOUTS[layout](values)
    X.setflags(write=writeable)
    dtype, strides = X.dtype, X.strides
    result = check.table(X)
    assert_standard(result, (6, 4))
    assert np.array_equal(result, values)
    assert np.array_equal(X, values)
    assert (X.dtype, X.strides, X.flags.writeable) == (dtype, strides, writeable)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("layout", ["C", "Fortran", "strided", "reversed", "single"])
def test_table_reports_where_the_first_value_is_missing(bad: float, layout: str) -> None:
    """First means first by rows, whatever the layout in memory."""
    values = np.ones((6, 4))
    values[2, 3] = values[4, 0] = values[5, 1] = bad
    X = LAYOUTS[layout](values)
    where = r"3 values that are NaN or infinite \(first: row 2, column 3\)"
    with pytest.raises(ValueError, match=rf"^income has {where}: impute or drop"):
        check.table(X, "income")
    assert np.array_equal(X, values, equal_nan=True)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_table_refuses_emptiness(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least one row and one column") as caught:
        check.table(np.empty(shape), "income")
    assert str(caught.value).startswith(f"income has shape {shape}")


@pytest.mark.parametrize("X", [[], [1.0, 2.0], np.ones(3), np.ones((2, 2, 2)), 3.0, np.array(1)])
def test_table_refuses_other_than_two_dimensions(X: Any) -> None:
    with pytest.raises(ValueError, match="rows and columns") as caught:
        check.table(X, "income")
    message = str(caught.value)
    assert message.startswith(f"income has shape {np.shape(X)}")
    assert "income.reshape(-1, 1)" in message


@pytest.mark.parametrize(
    "X",
    [
        [["a", "b"]],
        [[b"a"]],
        [[1.0, "b"]],
        [[1.0, None]],
        [[object()]],
        np.ones((2, 2), dtype=object),
        [[1j]],
        np.ones((2, 2), dtype=np.complex64),
        [[True, False]],
        np.array([["2024-01-01"]], dtype="M8[D]"),
        np.array([[1]], dtype="m8[s]"),
        np.zeros((2, 2), dtype=[("a", "f8")]),
        None,
        "table",
        {"a": [1.0]},
    ],
)
def test_table_refuses_what_is_not_numbers(X: Any) -> None:
    with pytest.raises(TypeError, match="must hold numbers; encode or drop") as caught:
        check.table(X, "income")
    assert str(caught.value).startswith(f"income has dtype {np.asarray(X).dtype}")


def test_table_refuses_ragged_rows() -> None:
    with pytest.raises(ValueError, match="shape"):
        check.table([[1.0, 2.0], [3.0]])


def test_table_can_ask_for_a_number_of_columns() -> None:
    assert check.table(np.ones((2, 3)), columns=3).shape == (2, 3)
    for wrong in (1, 2, 4):
        with pytest.raises(ValueError, match=rf"^income has 3 columns: exactly {wrong} are needed"):
            check.table(np.ones((2, 3)), "income", columns=wrong)


def test_table_refuses_more_columns_than_the_noise_covers() -> None:
    too_wide = np.ones((1, check.MAX_COLUMNS + 1))
    with pytest.raises(ValueError, match=rf"^X's number of columns = .* 1 to {check.MAX_COLUMNS}"):
        check.table(too_wide)


def test_table_leaves_very_different_scales_as_they_are() -> None:
    X = np.random.default_rng(3).normal(size=(100, 4)) * [1e-6, 1.0, 1e6, 1e300]
    X[0] = [5e-324, -0.0, 1.7976931348623157e308, -1e-300]
    result = check.table(X)
    assert result.tobytes() == X.tobytes()


# vector


@pytest.mark.parametrize("values", [[1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3], dtype="f4")])
def test_vector_returns_its_own_frozen_copy(values: Any) -> None:
    result = check.vector("scales", values, length=3, above=0)
    assert result.dtype == np.float64
    assert result.tolist() == [1.0, 2.0, 3.0]
    assert not result.flags.writeable
    assert not np.shares_memory(result, np.asarray(values))


def test_vector_does_not_follow_the_callers_array() -> None:
    values = np.array([1.0, 2.0])
    result = check.vector("scales", values, length=2)
    values[0] = 9.0
    assert result.tolist() == [1.0, 2.0]
    assert values.flags.writeable


@pytest.mark.parametrize(
    "values",
    [[1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], 1.0, [], ["a", "b"], [True, False], [1j, 2], None],
)
def test_vector_refuses_another_shape_or_kind(values: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="one number for each of the 2 columns") as caught:
        check.vector("scales", values, length=2)
    message = str(caught.value)
    array = np.asarray(values)
    assert message.startswith(f"scales has shape {array.shape} and dtype {array.dtype}")


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "nan"), (math.inf, "inf"), (0.0, "0.0"), (-1.5, "-1.5")]
)
def test_vector_reports_the_first_wrong_value(value: float, text: str) -> None:
    with pytest.raises(ValueError, match="is not") as caught:
        check.vector("scales", [1.0, value, value], length=3, above=0)
    assert str(caught.value).startswith(f"scales[1] = {text} is not finite and above 0")


def test_vector_without_a_bound_asks_only_for_finite_values() -> None:
    assert check.vector("center", [-1e300, 0.0], length=2).tolist() == [-1e300, 0.0]
    with pytest.raises(ValueError, match=r"^center\[0\] = -inf is not finite"):
        check.vector("center", [-math.inf, 0.0], length=2)


# generator


def test_generator_passes_none_and_generators_on() -> None:
    rng = np.random.default_rng(1)
    assert check.generator(None) is None
    assert check.generator(rng) is rng


@pytest.mark.parametrize("rng", [0, 42, "seed", np.random.PCG64(1), np.random.RandomState(1)])
def test_generator_refuses_seeds(rng: Any) -> None:
    with pytest.raises(TypeError, match="cannot be seeded") as caught:
        check.generator(rng)
    message = str(caught.value)
    assert message.startswith(f"rng = {rng!r} is not a numpy Generator")
    assert "np.random.default_rng(seed)" in message


# Text


@pytest.mark.parametrize("bad", [None, 1, b"a", ["a"]])
def test_what_is_not_text_is_a_type_error(bad: object) -> None:
    with pytest.raises(TypeError, match=r"reason = .* is not text: give 1 to 20 characters"):
        check.text("reason", bad, longest=20)


@pytest.mark.parametrize("bad", ["", " ", " a", "a ", "a\nb", "a\x00", "x" * 21])
def test_text_that_looks_like_another_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"reason = .* is outside 1 to 20 printable characters"):
        check.text("reason", bad, longest=20)


def test_an_accent_has_one_spelling() -> None:
    assert check.text("name", "Lome\u0301", longest=20) == "Lom\u00e9"

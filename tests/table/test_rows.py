"""From a batch to ids and numbers: types that are taken, and counts of what is wrong."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from targetdp.table import Tally, check_columns, ids_of, numbers_of


def ids(values: Any, kind: pa.DataType | None = None) -> tuple[list[str], Tally]:
    tally = Tally()
    return ids_of(pa.array(values, kind), "name", tally, 100).to_pylist(), tally


def numbers(columns: dict[str, Any], constants: dict[str, float] | None = None) -> tuple[Any, Tally]:
    tally = Tally()
    batch = pa.record_batch(columns)
    return numbers_of(batch, list(columns), constants or {}, tally, 100), tally


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_ids_stay_text_to_the_last_character(kind: pa.DataType) -> None:
    odd = ["007", "NA", "null", "ünï", "名前", "🙂", " spaced ", "a\nb", "nul\x00", "1e5"]
    found, tally = ids(odd, kind)
    assert found == odd
    assert not tally.counts


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint16(), pa.uint64()])
def test_whole_numbers_become_their_digits(kind: pa.DataType) -> None:
    assert ids([0, 7, 127], kind)[0] == ["0", "7", "127"]
    assert ids([2**64 - 1], pa.uint64())[0] == ["18446744073709551615"]
    assert ids([-(2**63)], pa.int64())[0] == ["-9223372036854775808"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.int32()])
def test_dictionaries_of_ids_are_decoded(kind: pa.DataType) -> None:
    values = ["3", "1", "3"] if kind != pa.int32() else [3, 1, 3]
    column = pa.array(values, kind).dictionary_encode()
    assert ids_of(column, "name", Tally(), 0).to_pylist() == ["3", "1", "3"]


def test_slices_and_chunks_of_ids_are_read_where_they_begin() -> None:
    column = pa.array(["a", "b", "c", "d"]).slice(1, 2)
    assert ids_of(column, "name", Tally(), 0).to_pylist() == ["b", "c"]
    assert ids_of(pa.chunked_array([["a"], ["b"]]), "name", Tally(), 0).to_pylist() == ["a", "b"]


@pytest.mark.parametrize("kind", [pa.float64(), pa.bool_(), pa.binary(), pa.date32(), pa.timestamp("s")])
def test_other_types_are_no_ids(kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match=f"id column 'name' has type {kind}".replace("[", r"\[")):
        ids([None], kind)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", None, "b", "", None], pa.string()),
        (["a", None, "b", "", None], pa.large_string()),
        ([1, None, 2, 3, None], pa.int64()),
    ],
)
def test_missing_and_empty_ids_are_counted_with_their_rows(values: list[Any], kind: pa.DataType) -> None:
    _, tally = ids(values, kind)
    places = [i + 101 for i, value in enumerate(values) if value in {None, ""}]
    assert tally.counts == {("missing or empty id", "name"): len(places)}
    assert tally.first["missing or empty id", "name"] == places
    with pytest.raises(ValueError, match=r"column 'name' has \d missing or empty id .*every row needs an id"):
        tally.raise_if_any()


def test_every_number_type_becomes_a_double() -> None:
    columns = {
        "i8": pa.array([1, -2], pa.int8()), "u64": pa.array([1, 2**63], pa.uint64()),
        "f16": pa.array(np.array([0.5, 2], np.float16)), "f32": pa.array([0.1, 2], pa.float32()),
        "dec": pa.array([Decimal("1.25"), Decimal("-3.50")]),
    }  # fmt: skip
    block, tally = numbers(columns)
    expected = [[1, -2], [1, 2.0**63], [0.5, 2], [float(np.float32(0.1)), 2], [1.25, -3.5]]
    assert block.tolist() == expected
    assert block.dtype == np.float64
    assert not tally.counts


@pytest.mark.parametrize(
    "values", [pa.array(["1", "2"]), pa.array([True, False]), pa.nulls(2), pa.array([b"a", b"b"])]
)
def test_what_is_no_number_is_refused_with_name_type_and_remedy(values: pa.Array) -> None:
    with pytest.raises(ValueError, match=f"feature 'x' has type {values.type}: .*encode it first, or leave"):
        numbers({"x": values})


def test_missing_and_infinite_values_are_counted_apart() -> None:
    x = [np.nan, 1, np.inf, np.nan, 2, -np.inf, np.nan, np.nan]
    _, tally = numbers({"x": x, "y": [1, None, 3, 4, 5, 6, 7, 8], "z": range(8)})
    assert tally.counts == {("missing", "x"): 4, ("infinite", "x"): 2, ("missing", "y"): 1}
    assert tally.first["missing", "x"] == [101, 104, 107]
    with pytest.raises(ValueError, match=r".") as refused:
        tally.raise_if_any()
    for said in (
        "column 'x' has 4 missing values (first in row 101, 104, 107)",
        "column 'x' has 2 infinite values (first in row 103, 106)",
        "column 'y' has 1 missing value (first in row 102)",
        "--impute", "correct or drop these rows", "Nothing was published",
    ):  # fmt: skip
        assert said in str(refused.value)
    with pytest.raises(ValueError, match="missing") as quiet:
        tally.raise_if_any(rows_are_numbered=False)
    assert "first in row" not in str(quiet.value)


def test_constants_fill_missing_values_and_nothing_else() -> None:
    block, tally = numbers({"x": [np.nan, 1.0, None], "y": [np.nan, 1.0, np.inf]}, {"x": -7.0})
    assert block[0].tolist() == [-7.0, 1.0, -7.0]
    assert tally.counts == {("missing", "y"): 1, ("infinite", "y"): 1}


def test_values_whose_sum_overflows_are_not_taken_for_infinite() -> None:
    block, tally = numbers({"x": [1.7e308, 1.7e308, -1.0]})
    assert not tally.counts
    assert block.tolist() == [[1.7e308, 1.7e308, -1.0]]


def test_both_infinities_are_found_without_a_warning() -> None:
    _, tally = numbers({"x": [np.inf, -np.inf, 1.0]})
    assert tally.counts == {("infinite", "x"): 2}


def test_tallies_of_batches_in_any_order_are_one_tally() -> None:
    first, second = Tally(), Tally()
    first.add("missing", "x", [0, 1, 2, 3], 50)
    second.add("missing", "x", [9], 0)
    second.add("infinite", "x", [0], 0)
    first.merge(second)
    assert first.counts == {("missing", "x"): 5, ("infinite", "x"): 1}
    assert first.first["missing", "x"] == [10, 51, 52]
    Tally().raise_if_any()


def test_columns_that_are_not_there_are_named_beside_those_that_are() -> None:
    check_columns(["a", "b"], "input t", features=["b"])
    with pytest.raises(ValueError, match=r"features names 'c', 'd': no such column in input t; it has a, b$"):
        check_columns(["a", "b"], "input t", id=["a"], features=["c", "a", "d"])
    with pytest.raises(ValueError, match=r"it has c0, .*c11, …$"):
        check_columns([f"c{i}" for i in range(99)], "input t", keep=["x"])

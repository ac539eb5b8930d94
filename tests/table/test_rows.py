"""From a batch to ids and numbers: types that are taken, and counts of what is wrong."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from targetdp._core import Silent
from targetdp.table import Tally, check_columns, ids_of, numbers_of, read_people


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
    with pytest.raises(
        ValueError, match=r"  name  \d rows without an id, in row .*  give every row an id, or"
    ):
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


def test_what_is_true_or_false_is_one_or_zero() -> None:
    block, tally = numbers({"x": pa.array([True, False, None]), "y": [1, 2, 3]}, {"x": 0.5})
    assert block.tolist() == [[1.0, 0.0, 0.5], [1.0, 2.0, 3.0]]
    assert not tally.counts
    assert numbers({"x": pa.array([True, None])})[1].counts == {("missing", "x"): 1}


def test_dictionaries_of_numbers_are_decoded() -> None:
    block, tally = numbers({"x": pa.array([2.5, 1.0, 2.5]).dictionary_encode()})
    assert block.tolist() == [[2.5, 1.0, 2.5]]
    assert not tally.counts


def test_a_column_without_a_type_is_all_gaps() -> None:
    assert numbers({"x": pa.nulls(2)})[1].counts == {("missing", "x"): 2}
    assert numbers({"x": pa.nulls(2)}, {"x": 3.0})[0].tolist() == [[3.0, 3.0]]


NO_NUMBERS = {
    "text": pa.array(["a", "b"]),
    "numbers stored as text": pa.array(["1", "2.5"]),
    "date": pa.array([1, 2], pa.date32()),
    "date and time": pa.array([1, 2], pa.timestamp("ms")),
    "time": pa.array([1, 2], pa.time32("s")),
    "duration": pa.array([1, 2], pa.duration("s")),
    "list": pa.array([[1], [2, 3]]),
    "record": pa.array([{"a": 1}, {"a": 2}]),
    "binary": pa.array([b"a", b"b"]),
}


@pytest.mark.parametrize("named", NO_NUMBERS)
def test_what_is_no_number_is_noted_and_the_rest_is_read(named: str) -> None:
    block, tally = numbers({"x": NO_NUMBERS[named], "y": [np.nan, 1.0]})
    assert block[0].tolist() == [0.0, 0.0]
    assert tally.counts == {(named, "x"): 2, ("missing", "y"): 1}
    assert [(p.column, p.what) for p in tally.problems(rows_are_numbered=False)] == [
        ("x", named),
        ("y", "1 gap"),
    ]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_text_of_any_layout_is_text(kind: pa.DataType) -> None:
    assert numbers({"x": pa.array(["a", None]).cast(kind)})[1].counts == {("text", "x"): 2}


def test_text_that_is_mostly_numbers_says_how_many_cells_are_none() -> None:
    _, tally = numbers({"x": ["1", "2", "?", "", "NA", "3,5", " 4 "]})
    assert tally.counts == {("non-numeric", "x"): 2}
    assert tally.first == {("non-numeric", "x"): [103, 106]}
    (problem,) = tally.problems()
    assert problem.what == "2 cells that are no numbers, in row 103, 106"


def test_a_type_is_noted_even_where_there_are_no_rows() -> None:
    """Reading no rows refuses what reading them all would."""
    _, tally = numbers({"x": pa.array([], pa.string())})
    with pytest.raises(ValueError, match=r"1 column cannot be released as it is:\n  x  text  \[kinds\.x\]"):
        tally.raise_if_any()


def test_missing_and_infinite_values_are_counted_apart() -> None:
    x = [np.nan, 1, np.inf, np.nan, 2, -np.inf, np.nan, np.nan]
    _, tally = numbers({"x": x, "y": [1, None, 3, 4, 5, 6, 7, 8], "z": range(8)})
    assert tally.counts == {("missing", "x"): 4, ("infinite", "x"): 2, ("missing", "y"): 1}
    assert tally.first["missing", "x"] == [101, 104, 107]
    with pytest.raises(ValueError, match=r".") as refused:
        tally.raise_if_any()
    assert str(refused.value).splitlines() == [
        "2 of 3 columns cannot be released as they are:",
        "  x  2 infinite values, in row 103, 106  correct or drop these rows",
        "  x  4 gaps, first in row 101, 104, 107  [gaps] x = 0",
        "  y  1 gap, in row 102                   [gaps] y = 0",
        "Nothing was published",
    ]
    with pytest.raises(ValueError, match="4 gaps") as quiet:
        tally.raise_if_any(rows_are_numbered=False)
    assert "in row" not in str(quiet.value)


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


def test_columns_that_are_not_there_are_named_beside_those_that_are() -> None:
    check_columns(["a", "b"], "input t", features=["b"])
    with pytest.raises(ValueError, match=r"features names 'c', 'd': no such column in input t; it has a, b$"):
        check_columns(["a", "b"], "input t", id=["a"], features=["c", "a", "d"])
    with pytest.raises(ValueError, match=r"it has c0, .*c11, …$"):
        check_columns([f"c{i}" for i in range(99)], "input t", keep=["x"])


def test_all_arguments_are_named_at_once_each_column_once_with_what_it_may_mean() -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        check_columns(
            ["name", "calls", "Topups"],
            "input t",
            id=["nam"],
            features=["calls", "topup"],
            numbers=["topup", "x"],
        )
    assert str(refused.value) == (
        "id names 'nam' (did you mean 'name'?); features names 'topup' (did you mean 'Topups'?); numbers "
        "names 'x': no such column in input t; it has name, calls, Topups"
    )


def test_a_thousand_absent_columns_make_no_long_message() -> None:
    with pytest.raises(ValueError, match=r"'a11' and 988 more: no such column") as refused:
        check_columns([f"c{i}" for i in range(2000)], "input t", features=[f"a{i}" for i in range(1000)])
    assert len(str(refused.value)) < 1000


def people(folder: Path, text: str) -> Path:
    (folder / "people.csv").write_text(text, encoding="utf-8")
    return folder / "people.csv"


def test_people_are_read_with_all_that_is_wrong_in_one_message(tmp_path: Path) -> None:
    """What can be done is said in words of whoever reads, who has no policy.toml."""
    path = people(tmp_path, "name,calls,texts,topups,region\nann,1,2,,n\n,inf,unknown,4,s\nbob,3,4,5,n\n")
    with pytest.raises(ValueError, match=r".") as refused:
        read_people("sample", path, "name", ["calls", "texts", "topups", "region"], progress=Silent())
    assert str(refused.value).splitlines() == [
        f"sample {path}:",
        "5 of 5 columns cannot be used as they are:",
        "  name    1 row without an id, in row 2       give every row an id, or drop these rows",
        "  calls   1 infinite value, in row 2          correct or drop these rows",
        "  texts   1 cell that is no number, in row 2  correct these cells",
        "  topups  1 gap, in row 1                     fill the gaps in the table, or drop these rows",
        "  region  text                                convert it to numbers first",
    ]
    assert "unknown" not in str(refused.value)


def test_people_of_several_files_keep_their_rows_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.table._csv._CSV_BLOCK", 1 << 9)
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(3):
        cells = ["?" if i == 90 and part else f"{i}" for i in range(100)]
        text = "".join(f"p{part}-{i},{cell}\n" for i, cell in enumerate(cells))
        (folder / f"{part}.csv").write_text(f"name,calls\n{text}", encoding="utf-8")
    with pytest.raises(
        ValueError, match="calls  2 cells that are no numbers, in row 191, 291  correct these"
    ):
        read_people("table", folder, "name", ["calls"], progress=Silent())

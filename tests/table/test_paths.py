"""Which files a table is: names, patterns, folders; and the columns that folders give."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from targetdp.table import TableError, find_files, open_source
from targetdp.table._paths import folder_type


def touched(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"id\n{name}\n", encoding="utf-8")
    return folder


def names(folder: Path, table: str) -> list[str]:
    return [str(file.relative_to(folder)) for file in find_files(folder / table).files]


def test_patterns_find_what_a_folder_would(tmp_path: Path) -> None:
    touched(
        tmp_path, "a/1.csv", "a/2.csv", "b/1.csv", "a/_SUCCESS", "a/.hidden.csv", "a/_old.csv",
        "a/readme.txt", "a/_temporary/3.csv",
    )  # fmt: skip
    assert names(tmp_path, "a") == names(tmp_path, "a/*") == ["a/1.csv", "a/2.csv"]
    assert names(tmp_path, "*") == names(tmp_path, "**/*.csv") == ["a/1.csv", "a/2.csv", "b/1.csv"]
    assert names(tmp_path, "[ab]/1.csv") == names(tmp_path, "?/1.*") == ["a/1.csv", "b/1.csv"]


def test_a_table_of_several_names_is_called_by_the_first(tmp_path: Path) -> None:
    touched(tmp_path, *(f"{i}.csv" for i in range(5)))
    assert find_files([tmp_path / f"{i}.csv" for i in range(5)]).name.endswith("2.csv and 2 more")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "20", "-3", "0"], pa.int64()), (["1", None], pa.int64()), (["01"], pa.string()),
        (["1.0"], pa.string()), (["1", "x"], pa.string()), ([None], pa.string()), (["-0"], pa.string()),
        (["9" * 18], pa.int64()), (["9" * 19], pa.string()), (["١"], pa.string()), (["1\n"], pa.string()),
    ],
)  # fmt: skip
def test_whole_numbers_are_told_from_text(values: list[str | None], expected: pa.DataType) -> None:
    assert folder_type(values) == expected


def test_values_are_decoded_and_names_that_begin_with_a_line_count(tmp_path: Path) -> None:
    touched(tmp_path, "_a=x%2Fy%20%C3%A9=/1.csv", "_a=/1.csv", "_a=__HIVE_DEFAULT_PARTITION__/1.csv")
    assert sorted(map(str, find_files(tmp_path).folders["_a"])) == ["None", "None", "x/y é="]


def test_only_columns_of_folders_can_be_read(tmp_path: Path) -> None:
    """How many rows there are, the files say."""
    for suffix in ("csv", "parquet"):
        place = tmp_path / suffix / "r=1"
        place.mkdir(parents=True)
        if suffix == "csv":
            (place / "a.csv").write_text("id\na\nb\n", encoding="utf-8")
        else:
            pq.write_table(pa.table({"id": ["a", "b"]}), place / "a.parquet")
        (batch,) = open_source(tmp_path / suffix).batches(["r"], {"r": pa.float64()}, 10)
        assert batch.to_pydict() == {"r": [1.0, 1.0]}
    word = tmp_path / "word" / "r=x"
    word.mkdir(parents=True)
    pq.write_table(pa.table({"id": ["a"]}), word / "a.parquet")
    with pytest.raises(TableError, match="feature 'r' has cells that are no numbers"):
        list(open_source(word.parent).batches(["r"], {"r": pa.float64()}, 10))


def test_a_folder_of_a_name_that_is_a_pattern_is_a_folder(tmp_path: Path) -> None:
    touched(tmp_path, "a[1]/1.csv")
    assert names(tmp_path, "a[1]") == ["a[1]/1.csv"]


def test_parts_of_one_column_must_be_named_alike(tmp_path: Path) -> None:
    touched(tmp_path, "a=1/1.csv", "2.csv")
    with pytest.raises(TableError, match=r"name (no column|'a'), and those of .* name (no column|'a'):"):
        find_files(tmp_path)

"""Reading tables: formats, parts, types, batches, and whose fault it is when that fails."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from targetdp.table import TableError, format_of, open_source
from targetdp.table import _csv as source_module

TABLE = pa.table({"name": [f"{i:02d}" for i in range(10)], "x": np.arange(10.0), "k": range(10)})


def read(path: Path, columns: list[str], rows: int = 3, **types: pa.DataType) -> pa.Table:
    batches = list(open_source(path).batches(columns, types, rows))
    assert all(batch.num_rows <= rows for batch in batches)
    assert all(batch.schema.names == columns for batch in batches)
    return pa.Table.from_batches(batches)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.parquet", "parquet"), ("a.PQ", "parquet"), ("a.csv", "csv"), ("a.CSV.gz", "csv"), ("a.txt", None),
        ("parquet", None), ("a.csv.zip", None), ("a", None),
    ],
)  # fmt: skip
def test_a_suffix_tells_the_format(name: str, expected: str | None) -> None:
    assert format_of(Path(name)) == expected


def test_parquet_is_read_in_batches_with_columns_in_the_order_asked_for(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet", row_group_size=4)
    opened = open_source(tmp_path / "t.parquet")
    assert (opened.columns, opened.count()) == (("name", "x", "k"), 10)
    assert opened.types(["k", "name"]) == {"k": pa.int64(), "name": pa.string()}
    assert read(tmp_path / "t.parquet", ["k", "name"]).equals(TABLE.select(["k", "name"]))


@pytest.mark.parametrize("kind", [pa.string(), pa.int32(), pa.dictionary(pa.int32(), pa.string())])
def test_one_column_is_read_in_order_by_row_groups(tmp_path: Path, kind: pa.DataType) -> None:
    """Several threads decode it; what comes is what one of them would have read."""
    ids = pa.array([str(i) for i in np.random.default_rng(3).permutation(1000)]).cast(kind)
    whole = pa.table({"name": ids, "x": range(1000)})
    pq.write_table(whole, tmp_path / "t.parquet", row_group_size=64)
    assert read(tmp_path / "t.parquet", ["name"], rows=50)["name"].to_pylist() == ids.to_pylist()
    stopped = open_source(tmp_path / "t.parquet").batches(["name"], {}, 10)
    assert next(stopped).num_rows == 10
    stopped.close()  # type: ignore[attr-defined]


def test_a_row_group_that_is_damaged_is_named_by_its_file(tmp_path: Path) -> None:
    place = tmp_path / "t.parquet"
    pq.write_table(TABLE, place, row_group_size=2, compression="snappy", use_dictionary=False)
    start = pq.read_metadata(place).row_group(2).column(0).data_page_offset
    content = bytearray(place.read_bytes())
    content[start : start + 12] = b"\xff" * 12
    place.write_bytes(bytes(content))
    with pytest.raises(TableError, match=r"t\.parquet cannot be read"):
        read(place, ["name"])


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_text_is_text_unless_a_type_is_asked_for(tmp_path: Path, suffix: str) -> None:
    content = b'name,x,k\n007,1,NA\n"a,b",,null\nNA,nan,\n'
    place = tmp_path / f"t{suffix}"
    place.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    assert open_source(place).count() is None
    assert open_source(place).types(["k"]) == {"k": pa.string()}
    found = read(place, ["name", "k", "x"], x=pa.float64())
    assert found["name"].to_pylist() == ["007", "a,b", "NA"]
    assert found["k"].to_pylist() == ["NA", "null", ""]
    values = found["x"].to_pylist()
    assert values[:2] == [1.0, None]
    assert values[2] is None or np.isnan(values[2])


def test_words_among_numbers_are_refused_without_showing_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name,x\na,1\nb,secret\n")
    with pytest.raises(
        TableError, match=r"feature 'x' has cells that are no numbers in input .*t\.csv"
    ) as caught:
        read(tmp_path / "t.csv", ["name", "x"], x=pa.float64())
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("rows", [7, 1000])
def test_words_among_numbers_come_as_text_where_they_are_to_be_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """No row is lost or there twice, whichever block the word is in."""
    monkeypatch.setattr(source_module, "_CSV_BLOCK", 1 << 9)
    cells = ["oops" if i in {250, 251, 400} else str(i) for i in range(500)]
    (tmp_path / "t.csv").write_text("name,x,y\n" + "".join(f"p{i},{x},{i}\n" for i, x in enumerate(cells)))
    source = open_source(tmp_path / "t.csv", keep_words=True)
    batches = list(source.batches(["y", "x", "name"], {"x": pa.float64(), "y": pa.float64()}, rows))
    assert [name for batch in batches for name in batch.column("name").to_pylist()] == [
        f"p{i}" for i in range(500)
    ]
    assert [y for batch in batches for y in batch.column("y").to_pylist()] == [*map(float, range(500))]
    assert all(batch.num_rows <= rows for batch in batches)
    for batch in batches:
        values = batch.column("x").to_pylist()
        assert pa.types.is_string(batch.column("x").type) == ("oops" in values)
    found = [str(x).removesuffix(".0") for batch in batches for x in batch.column("x").to_pylist()]
    assert found == cells


def test_a_row_that_is_too_long_is_refused_also_where_words_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name,x\na,oops\nb,1,2\n")
    with pytest.raises(TableError, match="Expected 2 columns, got 3"):
        list(open_source(tmp_path / "t.csv", keep_words=True).batches(["x"], {"x": pa.float64()}, 10))


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfname,x\na,1\n")
    assert open_source(tmp_path / "t.csv").columns == ("name", "x")


def test_text_longer_than_a_block_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "_CSV_BLOCK", 1 << 10)
    lines = [f'"id {i}\n with a break",{i}' for i in range(500)]
    (tmp_path / "t.csv").write_text("name,x\n" + "\n".join(lines) + "\n")
    found = read(tmp_path / "t.csv", ["name", "x"], rows=50, x=pa.float64())
    assert found["name"].to_pylist() == [f"id {i}\n with a break" for i in range(500)]


def test_numbers_that_look_whole_at_first_are_not_taken_for_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_CSV_BLOCK", 1 << 10)
    (tmp_path / "t.csv").write_text("name,x\n" + "".join(f"{i:03d},{i}\n" for i in range(500)) + "z,0.5\n")
    found = read(tmp_path / "t.csv", ["name", "x"], rows=99, x=pa.float64())
    assert found["x"].to_pylist() == [*map(float, range(500)), 0.5]
    assert found["name"][7].as_py() == "007"


def test_parts_are_read_in_order_of_their_names_and_hidden_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "parts" / "later").mkdir(parents=True)
    pq.write_table(TABLE.slice(6), tmp_path / "parts" / "later" / "b.parquet")
    pq.write_table(TABLE.slice(0, 6), tmp_path / "parts" / "a.parquet")
    for hidden in ("_temporary", ".hidden"):
        (tmp_path / "parts" / hidden).mkdir()
        pq.write_table(TABLE, tmp_path / "parts" / hidden / "c.parquet")
    (tmp_path / "parts" / "_SUCCESS").touch()
    (tmp_path / "parts" / "README.txt").touch()
    opened = open_source(tmp_path / "parts")
    assert [f.name for f in opened.files] == ["a.parquet", "b.parquet"]
    assert opened.count() == 10
    assert read(tmp_path / "parts", ["name"])["name"].to_pylist() == TABLE["name"].to_pylist()


def test_dictionaries_are_named_by_what_they_hold(tmp_path: Path) -> None:
    pq.write_table(pa.table({"c": pa.array(["a", "b"]).dictionary_encode()}), tmp_path / "t.parquet")
    assert open_source(tmp_path / "t.parquet").types(["c"]) == {"c": pa.string()}


def test_a_change_of_the_files_is_seen(tmp_path: Path) -> None:
    place = tmp_path / "t.parquet"
    pq.write_table(TABLE, place)
    opened = open_source(place)
    before = opened.state()
    assert opened.state() == before
    place.rename(tmp_path / "old")
    pq.write_table(TABLE, place)
    assert opened.state() != before


def _folder(tmp_path: Path, **files: Any) -> Path:
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, table in files.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def test_what_cannot_be_a_table_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"absent.csv does not exist: check the name"):
        open_source(tmp_path / "absent.csv")
    (tmp_path / "t.xlsx").touch()
    with pytest.raises(TableError, match=r"t.xlsx has no known suffix: use .parquet, .pq, .csv, .csv.gz"):
        open_source(tmp_path / "t.xlsx")
    folder = _folder(tmp_path, a=TABLE, b=TABLE.select(["x", "name", "k"]))
    with pytest.raises(TableError, match=r"b.parquet has other columns than a.parquet"):
        open_source(folder)
    (folder / "b.parquet").unlink()
    (folder / "c.csv").write_text("name,x,k\n")
    with pytest.raises(TableError, match="mixes Parquet and CSV"):
        open_source(folder)


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table([[1], [2]], names=["x", "x"]), tmp_path / "t.parquet")
    with pytest.raises(TableError, match="two columns named 'x': rename one"):
        open_source(tmp_path / "t.parquet")


def test_a_file_that_vanishes_is_named(tmp_path: Path) -> None:
    place = tmp_path / "t.parquet"
    pq.write_table(TABLE, place)
    opened = open_source(place)
    place.unlink()
    with pytest.raises(TableError, match=r"t.parquet cannot be read"):
        list(opened.batches(["x"], {}, 5))
    with pytest.raises(TableError, match=r"t.parquet cannot be read"):
        opened.count()


def test_an_error_of_whoever_reads_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    batches = open_source(tmp_path / "t.parquet").batches(["x"], {}, 5)
    next(batches)
    with pytest.raises(OSError, match="disk full") as raised:
        _full(batches)
    assert not isinstance(raised.value, TableError)


def _full(batches: Any) -> None:
    for _ in batches:
        raise OSError(28, "disk full")

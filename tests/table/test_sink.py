"""Writing tables: the hash is the file's own, parts are cut, errors of the disk come out."""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from targetdp.table import Format, Sink
from targetdp.table import _sink as sink_module
from targetdp.table._sink import HashedFile

SCHEMA = pa.schema(
    [pa.field("name", pa.string(), nullable=False), pa.field("x", pa.float64(), nullable=False)]
)


def rows(start: int, count: int) -> pa.Table:
    values = np.random.default_rng(start).normal(size=count)
    return pa.table({"name": [f"{i:05d}" for i in range(start, start + count)], "x": values}).cast(SCHEMA)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_hash_and_the_size_are_the_file_s_own(tmp_path: Path, kind: Format) -> None:
    place = tmp_path / "table"
    with Sink(place, kind, SCHEMA) as sink:
        sink.write(rows(0, 1000))
        sink.write(rows(1000, 500))
        (written,) = sink.finish()
    assert (written.size, written.sha256) == (place.stat().st_size, sha256(place))
    whole = pa.concat_tables([rows(0, 1000), rows(1000, 500)])
    if kind == "parquet":
        assert pq.ParquetFile(place).read().equals(whole)
        assert pq.read_metadata(place).num_row_groups == 2
        assert not pq.read_metadata(place).metadata
    else:
        text = pacsv.ConvertOptions(column_types={"name": pa.string()})
        found = pacsv.read_csv(place, convert_options=text)
        assert found["name"].to_pylist() == whole["name"].to_pylist()
        assert found["x"].to_pylist() == whole["x"].to_pylist(), "to the last bit"


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_parts_are_cut_and_each_has_its_hash(
    tmp_path: Path, kind: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_module, "ROWS_PER_PART", 1000)
    folder = tmp_path / "table"
    with Sink(folder, kind, SCHEMA, parts=True) as sink:
        for start in range(0, 2500, 500):
            sink.write(rows(start, 500))
        written = sink.finish()
    assert [w.name for w in written] == [f"part-{i:05d}.{kind}" for i in range(3)]
    assert sorted(p.name for p in folder.iterdir()) == [w.name for w in written]
    assert [w.sha256 for w in written] == [sha256(folder / w.name) for w in written]
    assert [w.size for w in written] == [(folder / w.name).stat().st_size for w in written]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_no_rows_make_a_table_all_the_same(tmp_path: Path, kind: Format) -> None:
    with Sink(tmp_path / "table", kind, SCHEMA) as sink:
        (written,) = sink.finish()
    assert written.sha256 == sha256(tmp_path / "table")
    if kind == "parquet":
        assert pq.ParquetFile(tmp_path / "table").read().column_names == ["name", "x"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("written", [0, 1, 3])
def test_an_error_half_way_closes_the_file_and_comes_out_as_itself(
    tmp_path: Path, kind: Format, written: int
) -> None:
    with pytest.raises(ZeroDivisionError), Sink(tmp_path / "table", kind, SCHEMA) as sink:  # noqa: PT012
        for i in range(written):
            sink.write(rows(i * 100, 100))
        raise ZeroDivisionError


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_table_of_other_types_is_an_error_that_comes_out(tmp_path: Path, kind: Format) -> None:
    with pytest.raises(ValueError, match=r"."), Sink(tmp_path / "table", kind, SCHEMA) as sink:
        sink.write(pa.table({"name": ["a"], "x": ["no number"]}))  # of fewer columns pyarrow's CSVWriter dies


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_full_disk_is_an_error_with_its_number(
    tmp_path: Path, kind: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> int:
        raise OSError(28, os.strerror(28))

    def write_all() -> None:
        with Sink(tmp_path / "table", kind, SCHEMA) as sink:
            for start in range(0, 40_000, 1000):
                sink.write(rows(start, 1000))
            sink.finish()

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left") as raised:
        write_all()
    assert raised.value.errno == 28


def test_a_failing_sync_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = HashedFile(tmp_path / "f")
    file.write(b"abc")

    def broken(handle: int) -> None:
        raise OSError(5, os.strerror(5))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output error"):
        file.finish()


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("mine")
    with pytest.raises(FileExistsError):
        HashedFile(tmp_path / "f")
    assert (tmp_path / "f").read_text() == "mine"


def test_bytes_are_copied_when_they_are_written(tmp_path: Path) -> None:
    buffer = bytearray(b"first")
    file = HashedFile(tmp_path / "f")
    assert (file.write(buffer), file.tell()) == (5, 5)
    buffer[:] = b"other"
    written = file.finish()
    assert (tmp_path / "f").read_bytes() == b"first"
    assert written.sha256 == hashlib.sha256(b"first").hexdigest()
    assert file.closed

"""Standard input and lazy frames: read once, whole, and like the same rows in a file."""

import io
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import (
    COMMAND,
    environment,
    make_desk,
    place_with,
    read_back,
    request_of,
    table_of,
    words,
    write_csv,
    write_parquet,
)
from targetdp.release import check_release, privatize
from targetdp.table import TableError, on_disk, table_given
from targetdp.table._elsewhere._stream import Stream

PEOPLE = pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3]})


def arrow(table: pa.Table, *, rows: int = 2) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def arrow_file(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


class Slow(io.BytesIO):
    """A pipe gives a few bytes at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(3, size) if size is not None and size > 0 else 3)


@pytest.mark.parametrize("make", [arrow, arrow_file, parquet, lambda _: b"id,n\na,1\nb,2\nc,3\n"])
@pytest.mark.parametrize("pipe", [io.BytesIO, Slow])
def test_each_format_is_told_by_how_it_begins(tmp_path: Path, make: Any, pipe: Any) -> None:
    with on_disk(Stream(pipe(make(PEOPLE))), tmp_path) as source:
        (folder,) = tmp_path.iterdir()
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        read = pa.Table.from_batches(source.batches(["id", "n"], {"n": pa.float64()}, 10))
        assert read["id"].to_pylist() == ["a", "b", "c"]
        assert read["n"].cast(pa.float64()).to_pylist() == [1.0, 2.0, 3.0]
        assert str(source) == "standard input"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input is empty"),
        (arrow(PEOPLE)[:-8], "standard input ends before its end: whoever wrote it did not finish"),
        (arrow(PEOPLE)[:-20], r"standard input (cannot be read as Arrow|ends before its end)"),
        (arrow(PEOPLE)[:100], "standard input cannot be read as Arrow"),
        (parquet(PEOPLE)[:-20], "cannot be read"),
        (b"\xff\xff\xff\xff garbage", "standard input cannot be read as Arrow"),
    ],
)
def test_half_a_stream_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(TableError, match=message), on_disk(Stream(io.BytesIO(content)), tmp_path):
        pytest.fail("it was read")
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_is_no_table(tmp_path: Path) -> None:
    terminal = mock.Mock(isatty=lambda: True)
    with pytest.raises(TableError, match="standard input is a terminal: pipe a table into it"):
        Stream(terminal).spool(tmp_path, None, mock.Mock())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_reads_a_pipe_as_it_reads_a_file(tmp_path: Path, suffix: str) -> None:
    make_desk(tmp_path)
    write = write_csv if suffix == "csv" else write_parquet
    content = write(tmp_path / f"in.{suffix}").read_bytes()
    run = ["privatize", "-", "out.parquet", "--B", "0.25", "--epsilon", "4", "--yes"]
    done = subprocess.run(  # noqa: S603
        [*COMMAND, *run], cwd=tmp_path, input=content, env=environment(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert read_back(tmp_path / "out.parquet").num_rows == 60
    assert [path.name for path in (tmp_path / "desk" / "drafts").iterdir()] == ["CACHEDIR.TAG"]
    asked = subprocess.run(  # noqa: S603
        [*COMMAND, *run[:2], "again.parquet", *run[3:-1]], cwd=tmp_path, input=content, env=environment(),
        capture_output=True, check=False,
    )  # fmt: skip
    assert asked.returncode == 2
    assert "nobody is at the terminal to say yes" in words(asked.stderr.decode())


# Lazy frames


def released_by(table: Any, folder: Path, *, new_people: str = "the same, as a test") -> pa.Table:
    """A release whose noise follows from one key, handed back."""
    place_with(folder)
    with mock.patch("targetdp.release._draws.fresh_keys", lambda n: [b"k" * 32] * n):
        return privatize(table, desk=folder / "desk", request=request_of(), new_people=new_people).frame


def test_a_lazy_frame_is_worked_out_once_and_gives_a_lazy_one_back(tmp_path: Path) -> None:
    seen = []

    def count(frame: pl.DataFrame) -> pl.DataFrame:
        seen.append(frame.height)
        return frame

    people = pl.DataFrame(pl.from_arrow(table_of()))
    lazy = people.lazy().map_batches(count)
    ours = released_by(lazy, tmp_path / "lazy")
    assert seen == [60]
    assert isinstance(ours, pl.LazyFrame)
    theirs = released_by(people.sort("name"), tmp_path / "frame")
    assert ours.collect().equals(theirs)
    check_release(lazy, desk=tmp_path / "lazy" / "desk", request=request_of(), new_people="the same")
    assert seen == [60, 60]


def test_a_relation_of_duckdb_gives_a_table_back(tmp_path: Path) -> None:
    people = table_of()
    with duckdb.connect() as connection:
        connection.register("people", people)
        relation = connection.sql("SELECT * FROM people ORDER BY calls")
        ours = released_by(relation, tmp_path / "relation")
        del relation
    theirs = released_by(people.sort_by("name"), tmp_path / "table")
    assert isinstance(ours, pa.Table)
    assert ours.equals(theirs)


def test_a_lazy_frame_is_released_into_a_file_too(tmp_path: Path) -> None:
    place_with(tmp_path)
    frame = pl.scan_parquet(tmp_path / "in.parquet").filter(pl.col("calls") > 5)
    done = privatize(frame, tmp_path / "out.parquet", desk=tmp_path / "desk", request=request_of())
    assert done.certificate.rows == read_back(tmp_path / "out.parquet").num_rows < 60


@pytest.fixture(params=["categorical", "view", "empty"])
def odd(request: pytest.FixtureRequest) -> Iterator[Any]:
    people = pl.DataFrame({"id": ["b", "a"], "level": ["x", "y"]})
    if request.param == "categorical":
        yield people.with_columns(pl.col("level").cast(pl.Categorical)).lazy()
    elif request.param == "view":
        yield people.lazy()
    else:
        yield people.clear().lazy()


def test_columns_of_polars_come_as_plain_ones(tmp_path: Path, odd: Any) -> None:
    with on_disk(table_given(odd), tmp_path, order="id") as source:
        types = source.types(["id", "level"])
        assert set(map(str, types.values())) <= {"string", "large_string"}
        assert source.count() in {0, 2}

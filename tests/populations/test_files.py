"""Example files: what is written is what is drawn, and a file appears whole or not at all."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from targetdp.populations import CompanionFile, draw, invented_populations, write
from targetdp.populations import _tables as example
from targetdp.populations import _tables as tables
from targetdp.table import Sink, open_source


class Told:
    """Somebody who writes down what progress says."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, int | None]] = []
        self.advances: list[int] = []

    def phase(self, name: str, rows: int | None) -> None:
        self.phases.append((name, rows))

    def advance(self, rows: int) -> None:
        self.advances.append(rows)


@pytest.mark.parametrize("name", invented_populations())
@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".CSV"])
def test_what_is_written_is_what_is_drawn(
    tmp_path: Path, name: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = invented_populations()[name].size
    monkeypatch.setattr(tables, "_ROWS", size)
    path, told = tmp_path / f"people{suffix}", Told()
    saved = write(name, path, rows=2 * size + 7, seed=4, progress=told)
    expected = draw(name, rows=2 * size + 7, seed=4).table
    if suffix == ".CSV":
        text = pacsv.ConvertOptions(column_types=expected.schema, strings_can_be_null=False)
        assert pacsv.read_csv(path, convert_options=text).equals(expected.cast(pa.schema(
            [pa.field(field.name, field.type) for field in expected.schema]
        ))), "to the last bit"  # fmt: skip
    else:
        assert pq.ParquetFile(path).read().equals(expected)
        assert pq.read_metadata(path).num_row_groups == 3
    assert open_source(path).columns == saved.columns == tuple(expected.column_names)
    assert (saved.rows, saved.size, saved.invented) == (2 * size + 7, path.stat().st_size, True)
    assert told.phases == [(f"writing {name}", 2 * size + 7)]
    assert told.advances == [size, size, 7]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_the_same_arguments_make_the_same_bytes(tmp_path: Path) -> None:
    first, second, other = (
        write("togo", tmp_path / f"{i}.parquet", rows=9_000, seed=seed).sha256
        for i, seed in enumerate((1, 1, 2))
    )
    assert first == second != other


def test_nothing_is_replaced_unless_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("mine")
    with pytest.raises(ValueError, match="exists: choose another name, or replace it with --force"):
        write("togo", path)
    assert path.read_text() == "mine"
    assert write("togo", path, rows=5, force=True).rows == 5
    assert len(path.read_text().splitlines()) == 6
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "path", "more", "message"),
    [
        ("togo", "people.txt", {}, "people.txt has no known suffix: use .parquet, .pq, .csv"),
        ("togo", "people.csv.gz", {}, "no known suffix"),
        ("togo", "people", {}, "no known suffix"),
        ("togo", "no/people.csv", {}, "does not exist: create it first"),
        ("togo", "folder.csv", {"force": True}, "is a folder: give the name of a file"),
        ("ghana", "people.csv", {}, "name = 'ghana' is not one of credit, nigeria, togo, vietnam"),
        ("togo", "people.csv", {"rows": 0}, "rows = 0 is outside"),
        ("togo", "people.csv", {"seed": -3}, "seed = -3 is outside"),
        ("vietnam", "people.csv", {"rows": 5}, "rows = 5: vietnam is a real table and comes whole"),
    ],
)
def test_bad_arguments_leave_nothing(
    tmp_path: Path, name: str, path: str, more: dict[str, Any], message: str
) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=message):
        write(name, tmp_path / path, **more)
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder.csv"]


# Whole or not at all


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_an_error_half_way_leaves_what_was_there(
    tmp_path: Path, older: bool, problem: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "people.parquet"
    if older:
        path.write_text("mine")
    written = 0

    class Failing(Sink):
        def write(self, table: pa.Table) -> None:
            nonlocal written
            written += 1
            if written > 2:
                raise problem
            super().write(table)

    monkeypatch.setattr(tables, "_ROWS", 4_201)
    monkeypatch.setattr(example, "Sink", Failing)
    with pytest.raises(type(problem)):
        write("togo", path, rows=50_000, force=older)
    assert [entry.name for entry in tmp_path.iterdir()] == (["people.parquet"] if older else [])
    assert not older or path.read_text() == "mine"


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            write("togo", tmp_path / "people.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.csv"
    finish = Sink.finish

    def somebody_else(self: Sink) -> Any:
        path.write_text("theirs")
        return finish(self)

    monkeypatch.setattr(Sink, "finish", somebody_else)
    with pytest.raises(ValueError, match="exists"):
        write("togo", path)
    assert path.read_text() == "theirs"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_two_runs_for_one_name_do_not_meet(tmp_path: Path) -> None:
    path, folder = tmp_path / "people.csv", tmp_path / ".people.csv.example"
    folder.mkdir(mode=0o700)
    (folder / "table").write_text("half")
    other = os.open(folder, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(ValueError, match=r"people\.csv cannot be written: another run is writing it; wait"):
        write("togo", path)
    assert (folder / "table").read_text() == "half"
    os.close(other)
    assert write("togo", path).rows == 4_201, "what a dead run left is taken away"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_killed_run_leaves_no_file_and_the_next_cleans_up(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    script = (
        "import sys; from pathlib import Path; from targetdp.populations._tables import write; "
        "write('togo', Path(sys.argv[1]), rows=5_000_000)"
    )
    run = subprocess.Popen([sys.executable, "-c", script, path])  # noqa: S603
    half = tmp_path / ".people.csv.example" / "table"
    deadline = time.monotonic() + 60
    while not (half.exists() and half.stat().st_size):
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not path.exists()
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert half.exists(), "the kill came in time"
    assert not path.exists()
    assert write("togo", path, rows=10).rows == 10
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert np.isfinite(pacsv.read_csv(path)["consumption"].to_numpy()).all()


# A text beside the table


def test_a_text_is_written_beside_the_table(tmp_path: Path) -> None:
    text = tmp_path / "about.toml"
    saved = write("togo", tmp_path / "people.csv", rows=5, beside=CompanionFile(text, "über\n"))
    assert text.read_bytes() == "über\n".encode()
    assert saved.path == tmp_path / "people.csv"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["about.toml", "people.csv"]


@pytest.mark.parametrize(
    ("beside", "message"),
    [
        ("people.csv", "would be the table itself: give it another name"),
        ("./folder/../people.csv", "would be the table itself"),
        ("no/about.toml", "does not exist: create it first"),
        ("folder", "is a folder: give the name of a file"),
    ],
)
def test_a_text_that_cannot_be_there_leaves_no_table(tmp_path: Path, beside: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match=message):
        write("togo", tmp_path / "people.csv", force=True, beside=CompanionFile(tmp_path / beside, "text"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("who", ["an error", "somebody else"])
def test_neither_appears_without_the_other(tmp_path: Path, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "about.toml"
    finish = Sink.finish

    def meanwhile(self: Sink) -> Any:
        if who == "an error":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        text.write_text("theirs")
        return finish(self)

    monkeypatch.setattr(Sink, "finish", meanwhile)
    with pytest.raises((OSError, ValueError), match=r"No space left|about.toml exists"):
        write("togo", tmp_path / "people.csv", rows=5, beside=CompanionFile(text, "ours"))
    left = {entry.name: entry.read_text() for entry in tmp_path.iterdir()}
    assert left == ({} if who == "an error" else {"about.toml": "theirs"})

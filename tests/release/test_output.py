"""Where a release goes: no place that would spoil the table or the desk, no file that cannot hold it."""

from pathlib import Path

import pyarrow as pa
import pytest

from support.release import (
    make_desk,
    nothing_changes,
    place_with,
    read_back,
    release,
    request_of,
    table_of,
    write_parquet,
)
from targetdp.release import Desk, fetched, privatize


@pytest.mark.parametrize("output", ["in.parquet", "in.parquet/out.parquet", "desk", "desk/out.parquet", "."])
def test_an_output_that_would_hide_or_be_part_of_the_table_or_the_desk_is_refused(
    tmp_path: Path, output: str
) -> None:
    folder = place_with(tmp_path)
    with nothing_changes(folder), pytest.raises(ValueError, match="overlap: choose an output elsewhere"):
        release(folder, output)


def test_also_through_a_link(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    (folder / "link").symlink_to(folder / "desk")
    with pytest.raises(ValueError, match="overlap"):
        release(folder, "link/out.parquet")
    assert not (folder / "desk" / "out.parquet").exists()


def test_a_folder_of_parts_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write_parquet(tmp_path / "parts" / "a.parquet")
    make_desk(tmp_path)
    with pytest.raises(ValueError, match="overlap"):
        release(tmp_path, "parts/out.parquet", table="parts")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("out.csv.gz", "is compressed text, which is not written: use .csv or .parquet"),
        ("out.xlsx", "has no known suffix: use .parquet, .csv, or no suffix for a directory"),
        ("absent/out.csv", "output folder .* does not exist: create it first"),
    ],
)
def test_a_name_that_says_no_format_is_refused(tmp_path: Path, output: str, message: str) -> None:
    folder = place_with(tmp_path)
    with nothing_changes(folder), pytest.raises(ValueError, match=message):
        release(folder, output)


def test_what_a_csv_cannot_hold_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    table = table_of(60, places=pa.array([[1, 2]] * 60))
    write_parquet(tmp_path / "in.parquet", table)
    make_desk(tmp_path, public={"places": "why"})
    with pytest.raises(ValueError, match=r"public column 'places' has type list.*, which a CSV cannot hold"):
        release(tmp_path, "out.csv")
    release(tmp_path, "out.parquet")
    assert read_back(tmp_path / "out.parquet")["places"].to_pylist() == [[1, 2]] * 60


def test_names_that_a_spreadsheet_would_run_are_refused_in_a_csv(tmp_path: Path) -> None:
    write_parquet(tmp_path / "in.parquet", table_of(60).append_column("=cmd()", [["x"] * 60]))
    make_desk(tmp_path, public={"=cmd()": "why"})
    with pytest.raises(ValueError, match="=cmd"):
        release(tmp_path, "out.csv")
    with Desk.open(tmp_path / "desk").ledger() as ledger:
        assert ledger.history.releases == {}


def test_a_run_that_failed_leaves_no_lock_and_no_folder(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    with pytest.raises(ValueError, match="more than one release"):
        release(folder, epsilon=1e4)
    assert sorted(path.name for path in folder.iterdir()) == ["desk", "in.parquet", "scales.toml"]


def test_a_file_may_be_named_by_its_address(tmp_path: Path) -> None:
    folder = place_with(tmp_path / "with a space")
    out = folder / "out.parquet"
    done = privatize(
        (folder / "in.parquet").as_uri(), out.as_uri(), desk=folder / "desk", request=request_of()
    )
    assert (done.path, done.place) == (out, str(out))
    assert read_back(out).num_rows == 60
    with fetched(out.as_uri()) as path:
        assert path == out
    with pytest.raises(ValueError, match="overlap"):
        privatize(out.as_uri(), out.as_uri(), desk=folder / "desk", request=request_of(), force=True)

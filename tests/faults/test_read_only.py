"""A folder that may not be written to: whoever must write says so and leaves nothing; readers do not mind.

Root may write everywhere; so runs give up root's powers first (Linux), and permissions bind for everybody.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.faults import count
from support.release import ASKED, nothing_changes
from support.staged import RUN, place, states
from support.tradeoff import files
from support.zygote import Harm, Zygote

if os.geteuid() == 0 and sys.platform != "linux":
    pytest.skip("root may write everywhere, and cannot give that up here", allow_module_level=True)

POWERLESS = Harm(powerless=True)


@pytest.fixture
def folder(zygote: Zygote, tmp_path: Path) -> Path:
    made = place(tmp_path / "place", 40)
    assert zygote.run(made, *RUN).code == 0
    (made / "locked").mkdir()
    return made


@contextmanager
def locked(*folders: Path) -> Iterator[None]:
    for path in folders:
        path.chmod(0o500)
    try:
        yield
    finally:
        for path in folders:
            path.chmod(0o700)


def test_an_output_folder(zygote: Zygote, folder: Path) -> None:
    elsewhere = tuple("locked/out.parquet" if word == "out.parquet" else word for word in RUN)
    with locked(folder / "locked"), nothing_changes(folder):
        ended = zygote.run(folder, *elsewhere, harm=POWERLESS)
        assert ended.code == 3, ended.words
        assert "Permission denied" in ended.err
        assert "Traceback" not in ended.words
    count("read-only", "said so, nothing changed")
    assert zygote.run(folder, *elsewhere, harm=POWERLESS).code == 0, "it was the permission"


def test_a_release_that_may_not_be_replaced(zygote: Zygote, folder: Path) -> None:
    with locked(folder), nothing_changes(folder):
        ended = zygote.run(folder, *RUN, "--force", harm=POWERLESS)
        assert ended.code == 3, ended.words
        assert "Traceback" not in ended.words
    count("read-only", "said so, nothing changed")


def test_a_desk(zygote: Zygote, folder: Path) -> None:
    """The output may be written, the desk not: nothing is published that could not be charged."""
    desk = folder / "desk"
    inside = [path for path in desk.rglob("*") if path.is_file()]
    for path in inside:
        path.chmod(0o400)
    run = tuple("new.parquet" if word == "out.parquet" else word for word in RUN)
    with locked(desk, desk / "people", desk / "drafts"), nothing_changes(folder):
        ended = zygote.run(folder, *run, harm=POWERLESS)
        assert ended.code == 3, ended.words
        assert "Nothing was published" in ended.err
        assert "Traceback" not in ended.words
        count("read-only", "said so, nothing changed")
        for command in (
            ("ledger", "show"), ("ledger", "verify"), ("status",),
            ("privatize", "in.parquet", "--request", "request.toml", "--check"),
        ):  # fmt: skip
            shown = zygote.run(folder, *command, harm=POWERLESS)
            assert shown.code == 0, shown.words
            count("read-only", "read")
    assert list(states(folder).values()) == ["published"]


def test_where_no_desk_can_be_made(zygote: Zygote, folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "in.parquet").write_bytes((folder / "in.parquet").read_bytes())
    init = ("init", "in.parquet", "--new-people", "invented twice")
    with locked(place), nothing_changes(place):
        ended = zygote.run(place, *init, harm=POWERLESS)
        assert ended.code == 3, ended.words
        assert "Permission denied" in ended.err
        assert "Traceback" not in ended.words
    count("read-only", "said so, nothing changed")


def test_a_list_of_desks_that_cannot_be_written_stops_nobody(
    zygote: Zygote, folder: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.mkdir()
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "in.parquet").write_bytes((folder / "in.parquet").read_bytes())
    with locked(config):
        (ended,) = zygote.harmed(place, [("init", "in.parquet")], [POWERLESS], XDG_CONFIG_HOME=str(config))
        assert ended.code == 0, ended.words
    assert list(config.iterdir()) == []
    count("read-only", "read")


def test_inputs_and_releases_are_only_read(zygote: Zygote, folder: Path) -> None:
    (folder / "in.parquet").rename(folder / "locked" / "in.parquet")
    with locked(folder / "locked"):
        ended = zygote.run(folder, "privatize", "locked/in.parquet", "new.parquet", *ASKED, harm=POWERLESS)
        assert ended.code == 0, ended.words
        count("read-only", "read")
    with locked(folder), nothing_changes(folder):
        ended = zygote.run(folder, "verify", "out.parquet", "--desk", "desk", harm=POWERLESS)
        assert ended.code == 0, ended.words
        count("read-only", "read")


def test_a_sweeps_folder(zygote: Zygote, tmp_path: Path) -> None:
    program, out = files(tmp_path), tmp_path / "out"
    out.mkdir()
    with locked(out), nothing_changes(out):
        ended = zygote.run(
            tmp_path, "tradeoff", program, "--out", out, "--simulations", "1", "--jobs", "1", "--quiet",
            harm=POWERLESS,
        )  # fmt: skip
        assert ended.code == 3, ended.words
        assert "Permission denied" in ended.err
        assert "Traceback" not in ended.words
    count("read-only", "said so, nothing changed")

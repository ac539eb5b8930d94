"""A full disk, at whatever point it becomes full: a clear error, nothing left behind, the ledger sound."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.faults import count
from support.release import (
    ASKED,
    Ran,
    certificate_of,
    cli,
    hidden,
    holds,
    place_with,
    snapshot,
    words,
)
from support.staged import states
from targetdp.release import Ledger


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if mount is None or unmount is None:
        pytest.skip("a small disk cannot be mounted here: there is no mount command")
    mounted = subprocess.run(  # noqa: S603
        [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=False, capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run([unmount, "-l", place], check=True)  # noqa: S603


def run(folder: Path, output: Path, *more: Any) -> Ran:
    return cli("privatize", folder / "in.parquet", output, *ASKED, "--desk", folder / "desk", *more)


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out"])
def test_a_table_that_does_not_fit_leaves_nothing(tmp_path: Path, small: Path, name: str) -> None:
    """And what noise was drawn for is finished where there is room, at no further cost."""
    folder = place_with(tmp_path / "place", 120_000)
    ran = run(folder, small / name)
    assert ran.code == 3, ran.err
    assert "No space left on device" in ran.err
    assert "make room and run again" in ran.err
    assert "Nothing was published" in ran.err
    assert "Traceback" not in ran.err
    assert snapshot(small) == {}
    (release,) = states(folder)
    assert states(folder)[release] == "reserved"
    assert f"Noise was drawn: release {release[:12]} stays charged; run the same command again" in ran.err
    count("small disk", "not published")
    assert run(folder, folder / name).code == 0
    assert states(folder) == {release: "published"}
    assert certificate_of(folder / name).release == release


def test_a_disk_that_is_full_before_the_first_draw_costs_nothing(tmp_path: Path, small: Path) -> None:
    """Of the output's disk nothing is needed before, and of the desk's a little."""
    place_with(small / "place", 300)
    (tmp_path / "in.parquet").write_bytes((small / "place" / "in.parquet").read_bytes())
    free = os.statvfs(small)
    (small / "ballast").write_bytes(bytes(free.f_bavail * free.f_frsize))
    ran = cli(
        "privatize", tmp_path / "in.parquet", tmp_path / "out.parquet", *ASKED,
        "--desk", small / "place" / "desk",
    )  # fmt: skip
    assert ran.code == 3, ran.err
    assert "Nothing was published" in ran.err
    (small / "ballast").unlink()
    assert set(states(small / "place").values()) <= {"voided"}
    assert not (tmp_path / "out.parquet").exists()
    assert hidden(tmp_path) == []
    count("small disk", "not published")


def test_wherever_the_disk_is_full_the_release_is_whole_or_absent(tmp_path: Path, small: Path) -> None:
    """An older release is on the disk, and the desk too; from run to run there is a little more room."""
    place_with(small / "place", 2_000)
    folder = small / "place"
    output = folder / "out.parquet"
    assert run(folder, output).code == 0
    codes = []
    for room in range(0, 330_000, 15_000):
        older = certificate_of(output).release
        ballast = small / "ballast"
        free = os.statvfs(small)
        ballast.write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - room)))
        ran = run(folder, output, "--force")
        ballast.unlink()
        assert "Traceback" not in ran.err
        assert holds(output)
        there = certificate_of(output).release
        known = states(folder)
        if ran.code == 0:
            assert there != older
            assert hidden(folder) == []
        else:
            assert ran.code == (3 if there == older else 4), ran.err
            assert (there == older) == ("Nothing was published" in words(ran.err)), ran.err
            assert there != older or not any(n.startswith(".out") for n in hidden(folder))
        assert known[there] != "voided"
        codes.append(ran.code)
        count("small disk", {0: "fitted", 3: "not published", 4: "published"}[ran.code])
    assert {0, 3} <= set(codes) <= {0, 3, 4}, codes
    assert run(folder, output, "--force").code == 0
    assert hidden(folder) == []
    begun = [release for release, state in states(folder).items() if state == "reserved"]
    assert begun == [], "each was finished by the next run with room, or freed"


def test_a_desk_on_a_full_disk_is_not_made(tmp_path: Path, small: Path) -> None:
    place_with(tmp_path / "place")
    (small / "in.parquet").write_bytes((tmp_path / "place" / "in.parquet").read_bytes())
    free = os.statvfs(small)
    (small / "ballast").write_bytes(bytes(free.f_bavail * free.f_frsize))
    ran = cli("init", small / "in.parquet", "--desk", small / "desk")
    assert (ran.code, "Traceback" in ran.err) == (3, False), ran.err
    assert sorted(path.name for path in small.iterdir()) == ["ballast", "in.parquet"]
    count("small disk", "no desk")


def test_a_ledger_that_cannot_be_told_is_not_called_unpublished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has its name when the ledger's disk fails: the message must not say that it has not."""
    folder = place_with(tmp_path / "place")
    output = folder / "out.parquet"
    for problem in (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()):

        def fail(*arguments: Any, problem: BaseException = problem) -> None:
            raise problem

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "settle", fail)
            ran = run(folder, output, "--force")
        assert ran.code == 4
        assert "IS published" in ran.err
        assert holds(output)
        there = certificate_of(output).release
        assert states(folder)[there] == "reserved"
        # The next run tells the ledger.
        assert run(folder, output).code == 0
        assert states(folder)[there] == "published"
        assert hidden(folder) == []
        assert not (folder / "desk" / "drafts" / there).exists()
        assert "Nothing was published" not in words(ran.err), ran.err

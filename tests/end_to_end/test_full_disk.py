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
    certificate_of,
    cli,
    hidden,
    holds,
    snapshot,
    table_of,
    words,
    write_parquet,
    write_scales,
)
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


def run(tmp_path: Path, output: Path, *more: Any) -> Any:
    return cli(
        "privatize", tmp_path / "in.parquet", output, *ASKED, "--scales", tmp_path / "scales.toml",
        "--mechanism", "gaussian", *more,
    )  # fmt: skip


@pytest.mark.parametrize("more", [(), ("--keep-order",)])
@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out"])
def test_a_table_that_does_not_fit_leaves_nothing(
    tmp_path: Path, small: Path, name: str, more: tuple[str, ...]
) -> None:
    write_parquet(tmp_path / "in.parquet", table_of(120_000))
    write_scales(tmp_path / "scales.toml")
    book = ("--ledger", tmp_path / "ledger.db", "--population", "people")
    ran = run(tmp_path, small / name, *book, *more)
    assert ran.code == 3, ran.err
    assert "No space left on device" in ran.err
    assert "make room and run again" in ran.err
    assert "Traceback" not in ran.err
    assert snapshot(small) == {}
    if (tmp_path / "ledger.db").exists():
        ledger = Ledger.existing(tmp_path / "ledger.db")
        assert ledger.verify() == []
        assert not any(row.counts for row in ledger.releases())
    count("small disk", "not published")


def test_wherever_the_disk_is_full_the_release_is_whole_or_absent(tmp_path: Path, small: Path) -> None:
    """An older release is on the disk, and the ledger too; from run to run there is a little more room."""
    write_parquet(tmp_path / "in.parquet", table_of(2_000))
    write_scales(tmp_path / "scales.toml")
    output = small / "out.parquet"
    book = ("--ledger", small / "ledger.db", "--population", "people")
    assert run(tmp_path, output, *book).code == 0
    codes = []
    for room in range(0, 330_000, 15_000):
        older = certificate_of(output).release
        ballast = small / "ballast"
        free = os.statvfs(small)
        ballast.write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - room)))
        ran = run(tmp_path, output, *book, "--force")
        ballast.unlink()
        assert "Traceback" not in ran.err
        assert holds(output)
        there = certificate_of(output).release
        ledger = Ledger.existing(small / "ledger.db")
        assert ledger.verify() == []
        if ran.code == 0:
            assert there != older
            assert hidden(small) == []
        else:
            assert ran.code == (3 if there == older else 4), ran.err
            assert (there == older) == ("Nothing was published" in words(ran.err)), ran.err
            assert there == older or ".out.parquet.targetdp" in hidden(small)
            assert there != older or not any(n.startswith(".out") for n in hidden(small))
        assert ledger.release(there).counts
        codes.append(ran.code)
        count("small disk", {0: "fitted", 3: "not published", 4: "published"}[ran.code])
    assert {0, 3} <= set(codes) <= {0, 3, 4}, codes
    assert run(tmp_path, output, *book, "--force").code == 0
    assert hidden(small) == []


def test_a_ledger_that_cannot_be_told_is_not_called_unpublished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has its name when the ledger's disk fails: the message must not say that it has not."""
    write_parquet(tmp_path / "in.parquet")
    write_scales(tmp_path / "scales.toml")
    book = ("--ledger", tmp_path / "ledger.db", "--population", "people")
    for problem in (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()):

        def fail(*arguments: Any, problem: BaseException = problem) -> None:
            raise problem

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "settle", fail)
            ran = run(tmp_path, tmp_path / "out.parquet", *book, "--force")
        assert ran.code != 0
        assert holds(tmp_path / "out.parquet")
        ledger = Ledger.existing(tmp_path / "ledger.db")
        there = certificate_of(tmp_path / "out.parquet").release
        assert ledger.release(there).counts
        # The next run tells the ledger.
        assert run(tmp_path, tmp_path / "out.parquet", *book).code == 2
        assert ledger.release(there).state == "published"
        assert hidden(tmp_path) == []
        assert "Nothing was published" not in words(ran.err), ran.err

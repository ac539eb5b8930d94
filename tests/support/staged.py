"""A release whose run is disturbed: its folder, and what must be true of it at every moment."""

import shutil
from pathlib import Path
from typing import Any

from support.release import certificate_of, hidden, place_with, request_of
from support.zygote import Zygote
from targetdp.release import Desk, certificate_path, verify_in_ledger, verify_release
from targetdp.release._staging import page_path

RUN = ("privatize", "in.parquet", "out.parquet", "--request", "request.toml", "--yes")


def place(folder: Path, rows: int, **policy: Any) -> Path:
    """A folder with in.parquet, a desk, and a request for rows with Gaussian noise."""
    place_with(folder, rows, **policy)
    (folder / "request.toml").write_text(request_of(mechanism="gaussian").text(), encoding="utf-8")
    return folder


def release_that_is_there(folder: Path) -> str | None:
    """Under the output's name there is nothing, or a release with its certificate, in a sound ledger."""
    output = folder / "out.parquet"
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.verify() == []
        if not output.exists():
            return None
        c = certificate_of(output)
        found = verify_release(output, c).also(verify_in_ledger(c, ledger))
        assert found.holds, [check for check in found.checks if check.holds is False]
        assert c.release in page_path(output).read_text()
        assert ledger.release(c.release).counts, "what is published is spent"
        return c.release


def clean_up(zygote: Zygote, folder: Path) -> str:
    """One more run, without --force: whole afterwards, and nothing of the dead is left."""
    ended = zygote.run(folder, *RUN)
    assert ended.code in {0, 2}, ended.words
    if ended.code == 2:
        assert "exists: choose another name, or replace it with --force" in " ".join(ended.words.split())
    assert hidden(folder) == []
    # A draft of the ledger's mark goes with the next entry: a run that was refused made none.
    drafts = [name for name in hidden(folder / "desk") if name.startswith(".ledger.db.head.")]
    assert set(hidden(folder / "desk")) <= set(drafts if ended.code == 2 else ())
    assert len(drafts) <= 1
    there = release_that_is_there(folder)
    assert there is not None
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        assert ledger.release(there).state == "published"
    assert not (desk.drafts / there).exists(), "with its secret the noise could be taken off"
    return there


def put_back(folder: Path, kept: Path) -> None:
    """A folder as it was kept: no kill finds what an earlier one left, and the ledger stays short."""
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)


def forget(folder: Path) -> None:
    output = folder / "out.parquet"
    for path in (output, certificate_path(output), page_path(output)):
        path.unlink()

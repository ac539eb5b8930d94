"""A release whose run is disturbed: its folder, and what must be true of it at every moment."""

import shutil
from pathlib import Path

from support.release import ASKED, certificate_of, hidden, table_of, write_parquet, write_scales
from support.zygote import Zygote
from targetdp.release import Ledger, certificate_path, verify_in_ledger, verify_release
from targetdp.release._staging import page_path

RUN = (
    "privatize", "in.parquet", "out.parquet", *ASKED, "--scales", "scales.toml", "--mechanism", "gaussian",
    "--ledger", "ledger.db", "--population", "people",
)  # fmt: skip

LIMIT = ("--B", "0.25", "--epsilon", "90", "--delta", "0.5", "--ledger", "ledger.db", "--population", "other")


def place(folder: Path, rows: int, zygote: Zygote) -> Path:
    folder.mkdir(exist_ok=True)
    write_parquet(folder / "in.parquet", table_of(rows))
    write_scales(folder / "scales.toml")
    assert zygote.run(folder, "ledger", "limit", *LIMIT).code == 0
    return folder


def release_that_is_there(folder: Path) -> str | None:
    """Under the output's name there is nothing, or a release with its certificate, in a sound ledger."""
    ledger, output = Ledger.existing(folder / "ledger.db"), folder / "out.parquet"
    assert ledger.verify() == []
    if not output.exists():
        return None
    c = certificate_of(output)
    found = verify_release(output, c).also(verify_in_ledger(c, folder / "ledger.db"))
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
    # A draft of the ledger's mark goes with the next entry: a run that was refused made none.
    drafts = [name for name in hidden(folder) if name.startswith(".ledger.db.head.")]
    assert set(hidden(folder)) <= set(drafts if ended.code == 2 else ())
    assert len(drafts) <= 1
    there = release_that_is_there(folder)
    assert there is not None
    assert Ledger.existing(folder / "ledger.db").release(there).state == "published"
    return there


def put_back(folder: Path, kept: Path) -> None:
    """A folder as it was kept: no kill finds what an earlier one left, and the ledger stays short."""
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)


def forget(folder: Path) -> None:
    output = folder / "out.parquet"
    for path in (output, certificate_path(output), page_path(output)):
        path.unlink()

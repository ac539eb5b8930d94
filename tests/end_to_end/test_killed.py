"""Killed at any moment: nothing half-published, nothing lost, the ledger sound, the next run cleans up."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from release_support import ASKED, COMMAND, certificate_of, hidden, table_of, write_parquet, write_scales
from targetdp.release.ledger import Ledger
from targetdp.release.staging import certificate_path, page_path
from targetdp.release.verify import verify_in_ledger, verify_release
from zygote import Ended, Zygote

TIMED, CHAINED = 50, 5
"""Kills at random moments; a run that may finish after so many of them."""

RUN = (
    "privatize", "in.parquet", "out.parquet", *ASKED, "--scales", "scales.toml", "--mechanism", "gaussian",
    "--ledger", "ledger.db", "--population", "people",
)  # fmt: skip


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote() as made:
        yield made


def place(folder: Path, rows: int, zygote: Zygote) -> Path:
    folder.mkdir(exist_ok=True)
    write_parquet(folder / "in.parquet", table_of(rows))
    write_scales(folder / "scales.toml")
    limit = (
        "--B",
        "0.25",
        "--epsilon",
        "90",
        "--delta",
        "0.5",
        "--ledger",
        "ledger.db",
        "--population",
        "other",
    )
    assert zygote.run(folder, "ledger", "limit", *limit).code == 0
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
    assert set(hidden(folder)) <= ({"ledger.db.head.new"} if ended.code == 2 else set())
    there = release_that_is_there(folder)
    assert there is not None
    assert Ledger.existing(folder / "ledger.db").release(there).state == "published"
    return there


def forget(folder: Path) -> None:
    output = folder / "out.parquet"
    for path in (output, certificate_path(output), page_path(output)):
        path.unlink()


@pytest.mark.parametrize("force", [False, True], ids=["a new release", "an older release is replaced"])
def test_it_survives_a_kill_at_every_call_that_touches_the_disk(
    zygote: Zygote, tmp_path: Path, force: bool
) -> None:
    folder = place(tmp_path / "place", 100, zygote)
    run = (*RUN, "--force") if force else RUN
    assert zygote.run(folder, *RUN).code == 0
    older = release_that_is_there(folder)
    if not force:
        forget(folder)
    whole = zygote.run(folder, *run)
    assert whole.code == 0, whole.words
    assert whole.calls > 20, "the run was watched"
    newer, outcomes = 0, []
    for die_at in range(whole.calls):
        if force:
            older = release_that_is_there(folder)
        else:
            older = None
            forget(folder)
        ended = zygote.run(folder, *run, die_at=die_at)
        if not ended.killed:  # the last calls differ a little from run to run
            assert ended.code == 0, ended.words
        visible = release_that_is_there(folder)
        after = clean_up(zygote, folder)
        if force and visible in {None, older}:
            assert after == older, "an older release stays, or comes back"
        if visible is not None:
            assert after == visible
        outcomes.append(visible)
        newer += visible not in {None, older}
    assert 0 < newer < len(outcomes), "kills came before and after the moment of publication"


def test_it_survives_fifty_kills_at_random_moments(zygote: Zygote, tmp_path: Path) -> None:
    rng = random.Random(20)
    folder = place(tmp_path / "place", 20_000, zygote)
    zygote.run(folder, *RUN)
    begin = time.monotonic()
    assert zygote.run(folder, *RUN, "--force").code == 0
    takes = time.monotonic() - begin
    killed, published = 0, set()
    before = release_that_is_there(folder)
    while killed < TIMED:
        ended: Ended = zygote.run(folder, *RUN, "--force", kill_after=rng.uniform(0.05, 1.1) * takes)
        killed += ended.killed
        published.add(release_that_is_there(folder))
        if killed % CHAINED == 0:
            published.add(clean_up(zygote, folder))
    published.add(clean_up(zygote, folder))
    assert zygote.run(folder, *RUN, "--force").code == 0
    states = {row.release: row.state for row in Ledger.existing(folder / "ledger.db").releases("people")}
    assert before in states
    assert published - {None} <= set(states), "the ledger knows all that anyone ever saw"
    assert not any(states[name] == "voided" for name in published - {None} if name)
    assert sorted(p.name for p in folder.iterdir()) == [
        "in.parquet", "ledger.db", "ledger.db.head", "out.parquet", "out.parquet.certificate.json",
        "out.parquet.certificate.md", "scales.toml",
    ]  # fmt: skip


def test_directories_survive_kills_around_publication(zygote: Zygote, tmp_path: Path) -> None:
    """The last third of all calls, where an older directory of parts is replaced."""
    folder = place(tmp_path / "place", 100, zygote)
    run = tuple("out" if a == "out.parquet" else a for a in RUN)
    whole = zygote.run(folder, *run)
    assert whole.code == 0, whole.words
    calls = zygote.run(folder, *run, "--force").calls
    for die_at in range(calls // 2, calls):
        before = certificate_of(folder / "out").release
        zygote.run(folder, *run, "--force", die_at=die_at)
        if (folder / "out").exists():
            assert verify_release(folder / "out", certificate_of(folder / "out")).holds
        assert zygote.run(folder, *run).code == 2, "something is there again"
        assert verify_release(folder / "out", certificate_of(folder / "out")).holds
        assert set(hidden(folder)) <= {"ledger.db.head.new"}
        after = certificate_of(folder / "out").release
        ledger = Ledger.existing(folder / "ledger.db")
        assert ledger.release(after).state == "published"
        assert after == before or ledger.release(before).state == "published"


def test_what_a_killed_run_reserved_counts_until_it_is_voided(zygote: Zygote, tmp_path: Path) -> None:
    folder = place(tmp_path / "place", 100, zygote)
    calls = zygote.run(folder, *RUN).calls
    forget(folder)
    ledger = Ledger.existing(folder / "ledger.db")
    known = {row.release for row in ledger.releases()}
    for die_at in range(calls, 0, -1):
        zygote.run(folder, *RUN, die_at=die_at)
        fresh = [row for row in ledger.releases() if row.release not in known]
        seen = any(folder.glob("out.parquet*"))
        if fresh and fresh[0].state == "reserved" and not seen:
            break
        if seen:
            clean_up(zygote, folder)
            forget(folder)
        known |= {row.release for row in ledger.releases()}
    row = fresh[0]
    assert (row.state, row.counts) == ("reserved", True)
    assert zygote.run(folder, *RUN).code == 0
    assert ledger.release(row.release).state == "reserved", "only the data holder may say otherwise"
    said = ("--ledger", "ledger.db", "--release", row.release, "--reason", "killed before publishing")
    assert zygote.run(folder, "ledger", "void", *said).code == 0
    assert ledger.release(row.release).state == "voided"


def test_an_interrupt_cleans_up_and_says_so(tmp_path: Path, zygote: Zygote) -> None:
    folder = place(tmp_path / "place", 400_000, zygote)
    process = subprocess.Popen([*COMMAND, *RUN], cwd=folder, stderr=subprocess.PIPE, text=True)  # noqa: S603
    while not (folder / ".out.parquet.targetdp").exists():
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert hidden(folder) == []
    assert not (folder / "out.parquet").exists()
    assert Ledger.existing(folder / "ledger.db").verify() == []
    shutil.rmtree(folder)

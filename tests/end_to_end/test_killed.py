"""Killed at any moment: nothing half-published, nothing lost, the ledger sound, the next run cleans up."""

import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from support.faults import count, some, times
from support.release import certificate_of, hidden
from support.staged import RUN, clean_up, forget, place, put_back, release_that_is_there
from support.zygote import Ended, Harm, Zygote
from targetdp.release import Ledger, verify_release

CHAINED = 5
"""A run may finish after so many kills at random moments (every call has its own kill besides)."""


@pytest.mark.parametrize("force", [False, True], ids=["a new release", "an older release is replaced"])
def test_it_survives_a_kill_at_every_call_that_touches_the_disk(
    zygote: Zygote, tmp_path: Path, force: bool
) -> None:
    folder = place(tmp_path / "place", 100, zygote)
    run = (*RUN, "--force") if force else RUN
    assert zygote.run(folder, *RUN).code == 0
    older = release_that_is_there(folder)
    if not force:
        older = None
        forget(folder)
    kept = shutil.copytree(folder, tmp_path / "kept")
    whole = zygote.run(folder, *run)
    assert whole.code == 0, whole.words
    assert whole.calls > 20, "the run was watched"
    newer, outcomes = 0, []
    for die_at in some(range(whole.calls), 30):
        put_back(folder, kept)
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
        count("kills at calls: privatize", "published" if visible not in {None, older} else "not published")
    assert 0 < newer < len(outcomes), "kills came before and after the moment of publication"


def test_it_survives_kills_at_random_moments(zygote: Zygote, tmp_path: Path) -> None:
    rng = random.Random(20)
    folder = place(tmp_path / "place", 20_000, zygote)
    zygote.run(folder, *RUN)
    begin = time.monotonic()
    assert zygote.run(folder, *RUN, "--force").code == 0
    takes = time.monotonic() - begin
    killed, before = 0, release_that_is_there(folder)
    published = {None, before}
    while killed < times("random kills: privatize"):
        ended: Ended = zygote.run(folder, *RUN, "--force", kill_after=rng.uniform(0.05, 1.1) * takes)
        killed += ended.killed
        there = release_that_is_there(folder)
        if ended.killed:
            count("random kills: privatize", "not published" if there in published else "published")
        published.add(there)
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
    kept = shutil.copytree(folder, tmp_path / "kept")
    before = certificate_of(folder / "out").release
    calls = zygote.run(folder, *run, "--force").calls
    for die_at in some(range(calls // 2, calls), 15):
        put_back(folder, kept)
        zygote.run(folder, *run, "--force", die_at=die_at)
        if (folder / "out").exists():
            assert verify_release(folder / "out", certificate_of(folder / "out")).holds
        assert zygote.run(folder, *run).code == 2, "something is there again"
        assert verify_release(folder / "out", certificate_of(folder / "out")).holds
        assert [name for name in hidden(folder) if not name.startswith(".ledger.db.head.")] == []
        after = certificate_of(folder / "out").release
        ledger = Ledger.existing(folder / "ledger.db")
        assert ledger.release(after).state == "published"
        assert after == before or ledger.release(before).state == "published"
        count("kills at calls: privatize", "not published" if after == before else "published")


def test_terminated_at_any_call_it_tidies_up_and_tells_the_truth(zygote: Zygote, tmp_path: Path) -> None:
    """SIGTERM: what was not published is given back, or at worst still counts; what was published is so."""
    folder = place(tmp_path / "place", 100, zygote)
    kept = shutil.copytree(folder, tmp_path / "kept")
    whole = zygote.run(folder, *RUN)
    endings = []
    for die_at in some(range(whole.calls), 20):
        put_back(folder, kept)
        ended = zygote.run(folder, *RUN, harm=Harm(die_at=die_at, die_of=signal.SIGTERM))
        there = release_that_is_there(folder)
        endings.append((ended.code, [row.state for row in Ledger.existing(folder / "ledger.db").releases()]))
        if there is None:
            assert (ended.code, ended.err) == (143, "terminated. Nothing was published\n")
            assert hidden(folder) == []
        else:
            assert (ended.code, "IS published" in ended.err) == (4, True)
            assert clean_up(zygote, folder) == there
    assert (143, []) in endings
    assert (143, ["voided"]) in endings, "what was reserved is given back"
    assert 4 in {code for code, _ in endings}


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


@pytest.mark.parametrize(
    ("by", "code", "words"),
    [
        (signal.SIGINT, 130, "interrupted. Nothing was published\n"),
        (signal.SIGTERM, 143, "terminated. Nothing was published\n"),
    ],
)
def test_an_interrupt_cleans_up_and_says_so(
    tmp_path: Path, zygote: Zygote, by: signal.Signals, code: int, words: str
) -> None:
    folder = place(tmp_path / "place", 400_000, zygote)
    ended = zygote.run(folder, *RUN, interrupt_at=folder / ".out.parquet.targetdp", by=by)
    assert (ended.code, ended.err) == (code, words)
    assert hidden(folder) == []
    assert not (folder / "out.parquet").exists()
    assert Ledger.existing(folder / "ledger.db").verify() == []
    shutil.rmtree(folder)

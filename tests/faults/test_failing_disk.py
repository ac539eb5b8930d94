"""A disk that is full or broken, at every call and at every length of a file: whole or absent, and told."""

import errno
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.faults import FAULTS, WHOLE, count, some, times
from support.staged import (
    RUN,
    clean_up,
    drawn,
    keep,
    place,
    put_back,
    release_that_is_there,
    room_for,
    states,
)
from support.tradeoff import TINY, finished_bytes, sweep
from support.zygote import Ended, Harm, Zygote
from targetdp.release import Desk
from targetdp.tradeoff import run

ERRORS = (Harm(error=errno.ENOSPC), Harm(error=errno.ENOSPC, stays=True), Harm(error=errno.EIO))
"""Full for a moment, full from then on, broken for a moment."""


@pytest.fixture
def folder(tmp_path: Path, zygote: Zygote) -> Path:
    """A folder with an older release, and room for one more; ``kept`` beside it is a copy."""
    made = place(tmp_path / "place", 100, limit=room_for(2))
    assert zygote.run(made, *RUN).code == 0
    keep(made, tmp_path / "kept")
    return made


def disturbed(zygote: Zygote, folder: Path, harm: Harm) -> tuple[Ended, str]:
    """A run under a harm, what came of it, and one more run without."""
    put_back(folder, folder.with_name("kept"))
    older = release_that_is_there(folder)
    known = set(states(folder))
    ended = zygote.run(folder, *RUN, "--force", harm=harm)
    assert "Traceback" not in ended.words
    visible = release_that_is_there(folder)
    assert visible is not None, "an older release stays or comes back"
    newer = visible != older
    assert ended.code in ({0, 4} if newer else {3}), ended.words
    assert ended.code != 3 or "Nothing was published" in " ".join(ended.words.split()), ended.words
    begun = drawn(folder) - {visible}
    assert clean_up(zygote, folder) == visible
    rows = states(folder)
    assert known <= set(rows)
    assert all(rows[name] != "voided" for name in {visible, older} if name), "what could be read is spent"
    if not newer:
        again = zygote.run(folder, *RUN, "--force")
        assert again.code == 0, again.words
        assert begun <= {release_that_is_there(folder)}, "what noise was drawn for is finished"
    assert [state for state in states(folder).values() if state != "voided"] == ["published"] * 2
    return ended, {0: "nothing lost by it", 3: "not published", 4: "published"}[ended.code or 0]


def test_an_error_at_any_call(zygote: Zygote, folder: Path) -> None:
    undisturbed, _ = disturbed(zygote, folder, Harm())
    calls = undisturbed.calls
    assert calls > 60, "the run was watched"
    harms = [replace(harm, fail_at=at) for at in range(calls) for harm in ERRORS]
    outcomes = []
    for harm in some(harms, FAULTS["errors at calls: privatize"].sample):
        _, outcome = disturbed(zygote, folder, harm)
        outcomes.append(outcome)
        count("errors at calls: privatize", outcome)
    assert "not published" in outcomes
    assert not WHOLE or "published" in outcomes


def test_no_file_may_become_longer(zygote: Zygote, folder: Path) -> None:
    """Errors by the kernel itself, whoever writes: Python, Arrow or SQLite."""
    longest = (folder / "desk" / "ledger.db").stat().st_size + 6 * 4096  # it grows by pages
    number = times("small files: privatize")
    lengths = [round(i * longest / (number - 1)) for i in range(number)]
    codes = []
    for length in lengths:
        ended, outcome = disturbed(zygote, folder, Harm(largest_file=length))
        codes.append(ended.code)
        count("small files: privatize", outcome)
    assert codes[0] == 3
    assert codes[-1] == 0, "the longest file fits"


def test_a_ledger_takes_an_entry_or_stays_as_it_was(zygote: Zygote, folder: Path) -> None:
    """Its mark was lost, and somebody puts on record that she goes on without."""
    resume = ("ledger", "resume", "--reason", "copied without its mark")
    kept, mark = folder.with_name("kept"), Path("desk", "ledger.db.head")
    (kept / mark).unlink()
    put_back(folder, kept)
    with Desk.open(folder / "desk").ledger() as ledger:
        lost = ledger.verify()
        known = [entry.hash for entry in ledger.entries]
    assert len(lost) == 1
    calls = zygote.run(folder, *resume).calls
    assert calls >= 3
    length = (kept / "desk" / "ledger.db").stat().st_size
    harms = [Harm(fail_at=at) for at in range(calls)] + [Harm(fail_at=at, stays=True) for at in range(calls)]
    harms += [Harm(largest_file=round(i * length / 20)) for i in range(21)]
    codes = set()
    for harm in some(harms, FAULTS["errors: ledger"].sample):
        put_back(folder, kept)
        ended = zygote.run(folder, *resume, harm=harm)
        assert "Traceback" not in ended.words
        with Desk.open(folder / "desk").ledger() as ledger:
            entries = [entry.hash for entry in ledger.entries]
            taken = [entry.kind for entry in ledger.entries[len(known) :]] == ["resumed"]
            assert entries[: len(known)] == known
            assert taken or entries == known
            assert set(ledger.verify()) <= set(lost)
        assert ended.code in {0, 3}, ended.words
        assert ended.code != 0 or taken
        # An entry may be on record though its run failed, with its mark or without.
        assert zygote.run(folder, *resume).code in ({0, 2} if taken else {0})
        with Desk.open(folder / "desk").ledger() as ledger:
            assert ledger.verify() == []
        codes.add(ended.code)
        count("errors: ledger", "on record" if taken else "as it was")
    assert 3 in codes


CALLS = ("replace", "fsync", "mkdir", "unlink", "open")


@contextmanager
def full_at(number: int) -> Iterator[Callable[[], int]]:
    """In this process: the so-manieth call finds a full disk."""
    made = 0

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def before(*args: Any, **kwargs: Any) -> Any:
            nonlocal made
            if call is not opened or args[1] & os.O_CREAT:
                made += 1
                if made - 1 == number:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*args, **kwargs)

        return before

    opened = os.open
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, watched(getattr(os, name)))
        yield lambda: made


@contextmanager
def files_of_at_most(length: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_sweep_goes_on_after_the_disk_was_full(tmp_path: Path) -> None:
    made = sweep(grid=TINY)
    with full_at(-1) as calls:
        whole = run(made, tmp_path / "whole").folder
    lengths = range(0, 14_000, 700)
    harms = [full_at(at) for at in range(calls())] + [files_of_at_most(length) for length in lengths]
    failed = 0
    for harm in some(harms, FAULTS["errors: tradeoff"].sample):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        error = None
        try:
            with harm:
                run(made, tmp_path / "out")
        except OSError as caught:
            error = caught.errno
        assert error in {None, errno.ENOSPC, errno.EFBIG}
        failed += error is not None
        run(made, tmp_path / "out")
        assert finished_bytes(tmp_path / "out") == finished_bytes(whole)
        assert not list((tmp_path / "out").rglob(".*"))
        count("errors: tradeoff", "nothing lost by it" if error is None else "an error, then the same bytes")
    assert failed > 2

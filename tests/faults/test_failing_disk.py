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
from support.release import hidden
from support.staged import (
    RUN,
    clean_up,
    drawn,
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
def kept(tmp_path: Path, zygote: Zygote) -> Path:
    """A folder with an older release, at a desk that has room for one more."""
    folder = place(tmp_path / "kept", 100, limit=room_for(2))
    assert zygote.run(folder, *RUN).code == 0
    return folder.rename(tmp_path / "moved")  # a desk's copy is refused while it is where it was


def disturbed(zygote: Zygote, kept: Path, folder: Path, harm: Harm) -> tuple[Ended, str]:
    """A run under a harm, what came of it, and one more run without, which may cost nothing more."""
    put_back(folder, kept)
    older = release_that_is_there(folder)
    ended = zygote.run(folder, *RUN, "--force", harm=harm)
    assert "Traceback" not in ended.words
    visible, begun = release_that_is_there(folder), drawn(folder)
    assert visible is not None, "an older release stays or comes back"
    newer = visible != older
    assert ended.code in ({0, 4} if newer else {3}), ended.words
    said = " ".join(ended.words.split())
    assert ended.code != 3 or "Nothing was published" in said, ended.words
    if begun and not newer:
        assert f"Noise was drawn: release {min(begun)[:12]} stays charged" in said
    again = zygote.run(folder, *RUN)
    assert (again.code, release_that_is_there(folder)) == (2, visible), "without --force, nothing is replaced"
    assert hidden(folder) == []
    if not newer:
        assert zygote.run(folder, *RUN, "--force").code == 0, "there is room: nothing was charged in vain"
        assert not begun or begun == {release_that_is_there(folder)}, "the same noise goes out"
    clean_up(zygote, folder)
    known = states(folder)
    assert [state for state in known.values() if state != "voided"] == ["published"] * 2
    assert older in known
    assert known[older] == known[visible] == "published", "what could be read is spent"
    return ended, {0: "nothing lost by it", 3: "not published", 4: "published"}[ended.code or 0]


def test_an_error_at_any_call(zygote: Zygote, tmp_path: Path, kept: Path) -> None:
    folder = tmp_path / "place"
    folder.mkdir()
    assert disturbed(zygote, kept, folder, Harm())[1] == "nothing lost by it"
    put_back(folder, kept)
    calls = zygote.run(folder, *RUN, "--force").calls
    assert calls > 30, "the run was watched"
    harms = [replace(harm, fail_at=at) for at in range(calls) for harm in ERRORS]
    outcomes = []
    for harm in some(harms, FAULTS["errors at calls: privatize"].sample):
        _, outcome = disturbed(zygote, kept, folder, harm)
        outcomes.append(outcome)
        count("errors at calls: privatize", outcome)
    assert "not published" in outcomes
    assert not WHOLE or "published" in outcomes


def test_no_file_may_become_longer(zygote: Zygote, tmp_path: Path, kept: Path) -> None:
    """Errors by the kernel itself, whoever writes: Python, Arrow or SQLite."""
    folder = tmp_path / "place"
    folder.mkdir()
    longest = (kept / "desk" / "ledger.db").stat().st_size + 3 * 4096  # it grows by pages
    number = times("small files: privatize")
    lengths = [round(i * longest / (number - 1)) for i in range(number)]
    codes = []
    for length in lengths:
        ended, outcome = disturbed(zygote, kept, folder, Harm(largest_file=length))
        codes.append(ended.code)
        count("small files: privatize", outcome)
    assert codes[0] == 3
    assert codes[-1] == 0, "the longest file fits"


def test_a_ledger_takes_an_entry_or_stays_as_it_was(zygote: Zygote, tmp_path: Path) -> None:
    """Its mark was lost, and its owner goes on all the same, on record."""
    made, folder = place(tmp_path / "made", 10), tmp_path / "place"
    assert zygote.run(made, *RUN).code == 0
    (made / "desk" / "ledger.db.head").unlink()
    kept = made.rename(tmp_path / "kept")
    resume = ("ledger", "resume", "--reason", "a copy without its mark")
    folder.mkdir()
    put_back(folder, kept)
    whole = zygote.run(folder, *resume)
    assert whole.code == 0, whole.words
    assert whole.calls >= 3
    length = (kept / "desk" / "ledger.db").stat().st_size
    harms = [Harm(fail_at=at, stays=stays) for stays in (False, True) for at in range(whole.calls)]
    harms += [Harm(largest_file=round(i * length / 20)) for i in range(21)]
    codes = set()
    for harm in some(harms, FAULTS["errors: ledger"].sample):
        put_back(folder, kept)
        before = entries(folder)
        ended = zygote.run(folder, *resume, harm=harm)
        assert "Traceback" not in ended.words
        assert ended.code in {0, 3}, ended.words
        taken = entries(folder) != before
        assert entries(folder) == (*before, "resumed") if taken else before
        assert ended.code != 0 or taken
        again = zygote.run(folder, *resume)
        assert again.code in ({0, 2} if taken else {0}), again.words
        assert set(states(folder).values()) == {"published"}, "it verifies, and nothing is forgotten"
        codes.add(ended.code)
        count("errors: ledger", "on record" if taken else "as it was")
    assert 3 in codes


def entries(folder: Path) -> tuple[str, ...]:
    """The kinds of a ledger's entries, which follow one another whole, whatever its mark says."""
    with Desk.open(folder / "desk").ledger() as ledger:
        assert [problem for problem in ledger.verify() if "ledger.db.head" not in problem] == []
        return tuple(entry.kind for entry in ledger.entries)


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

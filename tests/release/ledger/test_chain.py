"""The chain of a ledger: tampering that is found, marks, other processes, and SIGKILL."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.faults import count, times
from support.ledgers import EVERYBODY, LIMIT, SHA, gaussian, mark, reserve, with_history
from targetdp.release import Entry, Head, Ledger, LedgerDamaged, SigningKey, Witness
from targetdp.release._ledger import _chain as chain_module


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.open(tmp_path / "keys" / "signing-key.pem")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path, key: SigningKey) -> Ledger:
    """Six entries."""
    return with_history(path, key)


def problems(path: Path, *heads: Head) -> list[str]:
    """What somebody who opens it now finds, with certificates at hand."""
    with Ledger(path) as opened:
        return opened.verify([seen(head) for head in heads])


def seen(head: Head) -> Witness:
    return Witness("a certificate", head)


def test_a_busy_ledger_says_so(
    ledger: Ledger, path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.close()
    monkeypatch.setattr(chain_module, "_BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        opened = Ledger(path, key)
        with pytest.raises(TimeoutError, match="is busy"):
            opened.settle("r3", SHA)
        assert len(opened.history.releases) == 3
    opened.settle("r3", SHA)
    opened.close()


# Tampering


def edit(path: Path, *statements: str) -> None:
    """What somebody with a database tool, but without the key, can do."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER no_update")
        connection.execute("DROP TRIGGER no_delete")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def entries(path: Path) -> list[Entry]:
    with closing(sqlite3.connect(path)) as connection:
        return [Entry(*row) for row in connection.execute("SELECT * FROM entries ORDER BY number")]


def rehash(path: Path, sign: SigningKey | None = None) -> None:
    """Make all hashes fit again, with the old signatures or with those of another key."""
    previous = entries(path)[0].previous
    with closing(sqlite3.connect(path)) as connection:
        for entry in entries(path):
            fields = {**vars(entry), "previous": previous}
            digest = Entry(**fields).digest()
            signature, public = entry.signature, entry.key
            if sign is not None:
                signature, public = sign.sign(f"targetdp ledger entry {digest}".encode()), sign.public
            connection.execute(
                "UPDATE entries SET previous = ?, hash = ?, signature = ?, key = ? WHERE number = ?",
                (previous, digest, signature, public, entry.number),
            )
            previous = digest
        connection.commit()


def test_mistakes_are_refused_by_the_file_itself(ledger: Ledger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in ("DELETE FROM entries", "UPDATE entries SET body = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="a ledger only grows"):
                connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE entries SET body = replace(body, '10', '11') WHERE number = 2", "entry 2 was edited"),
        ("UPDATE entries SET time = '2020-01-01T00:00:00+00:00' WHERE number = 3", "entry 3 was edited"),
        ("UPDATE entries SET release = 'others' WHERE number = 5", "entry 5 was edited"),
        ("UPDATE entries SET kind = 'voided' WHERE number = 4", "entry 4 was edited"),
        ("UPDATE entries SET body = x'00' WHERE number = 4", "entry 4 is malformed"),
        ("UPDATE entries SET signature = '' WHERE number = 4", "entry 4 is not signed"),
        ("UPDATE entries SET key = 'AAAA' WHERE number = 4", "entry 4 names another key"),
        ("DELETE FROM entries WHERE number = 3", "between entries 2 and 4 some are missing"),
        ("DELETE FROM entries WHERE number = 1", "between entries 0 and 2 some are missing"),
        ("DELETE FROM entries WHERE number = 6", "the tail was cut"),
        ("DELETE FROM entries WHERE number > 1", "the tail was cut"),
        ("DELETE FROM entries", "all of them were removed"),
        ("UPDATE entries SET number = 7 WHERE number = 6", "between entries 5 and 7 some are missing"),
    ],
)
def test_tampering_is_found_and_stops_everything(
    statement: str, problem: str, ledger: Ledger, path: Path, key: SigningKey
) -> None:
    ledger.close()
    edit(path, statement)
    assert any(problem in line for line in problems(path)), problems(path)
    before = path.read_bytes(), mark(path).read_bytes()
    uses: list[Callable[[Ledger], object]] = [
        lambda opened: opened.measure(LIMIT, EVERYBODY, gaussian()),
        lambda opened: reserve(opened, "r9", gaussian(0.1)),
        lambda opened: opened.settle("r3", SHA),
        lambda opened: opened.free("r3", "nothing was drawn"),
        lambda opened: opened.standing(LIMIT),
        lambda opened: opened.history,
        lambda opened: opened.head(),
    ]
    for use in uses:
        with pytest.raises((LedgerDamaged, ValueError), match=r"is damaged|is signed by the key"):
            use(Ledger(path, key))
    assert (path.read_bytes(), mark(path).read_bytes()) == before


def test_reordered_entries_are_found(ledger: Ledger, path: Path) -> None:
    move = "UPDATE entries SET number = {} WHERE number = {}"
    edit(path, move.format(99, 3), move.format(3, 5), move.format(5, 99))
    assert any("entry 3 was edited" in line for line in problems(path))
    assert any("entry 5 does not follow" in line for line in problems(path))


def test_a_chain_that_was_hashed_again_without_the_key_is_found(ledger: Ledger, path: Path) -> None:
    edit(path, "UPDATE entries SET body = replace(body, '10', '11') WHERE number = 2")
    rehash(path)
    found = problems(path)
    assert any("entry 2 is not signed by the key" in line for line in found)
    assert not any("edited" in line for line in found)


def test_a_chain_that_was_signed_with_another_key_is_found(
    ledger: Ledger, path: Path, key: SigningKey, tmp_path: Path
) -> None:
    head = ledger.head()
    edit(path, "UPDATE entries SET body = replace(body, '10', '11') WHERE number = 2")
    rehash(path, sign=SigningKey.open(tmp_path / "thief.pem"))
    mark(path).unlink()
    with Ledger(path) as reader:
        assert any("history was replaced" in line for line in reader.verify([seen(head)]))
        assert any(key.fingerprint in line for line in reader.verify(public_key=key.public))
    with pytest.raises(ValueError, match="is signed by the key"):
        Ledger(path, key)


def test_one_entry_by_another_key_is_found(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    thief = SigningKey.open(tmp_path / "thief.pem")
    last = entries(path)[-1]
    signature = thief.sign(f"targetdp ledger entry {last.hash}".encode())
    edit(path, f"UPDATE entries SET signature = '{signature}' WHERE number = 6")  # noqa: S608
    assert "entry 6 is not signed by the key that it names" in problems(path)
    edit_again = f"UPDATE entries SET key = '{thief.public}' WHERE number = 6"  # noqa: S608
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(edit_again)
        connection.commit()
    assert any("names another key than the one that signs by then" in line for line in problems(path))


def test_what_another_process_appends_is_verified_as_it_comes(
    ledger: Ledger, path: Path, key: SigningKey, tmp_path: Path
) -> None:
    """Who has the ledger open does not read it all again; a forged entry that is new is found anyway."""
    _ = ledger.history
    with Ledger(path, key) as other:
        reserve(other, "theirs")
    ledger.refresh()
    assert "theirs" in ledger.history.releases
    thief = SigningKey.open(tmp_path / "thief.pem")
    last = entries(path)[-1]
    forged = Entry(last.number + 1, last.time, "voided", "r1", '{"reason":"x"}', last.hash, key=key.public)
    digest = forged.digest()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (forged.number, forged.time, forged.kind, forged.release, forged.body, forged.previous, digest,
             key.public, thief.sign(f"targetdp ledger entry {digest}".encode())),
        )  # fmt: skip
        connection.commit()
    with pytest.raises(LedgerDamaged, match="is not signed by the key that it names"):
        ledger.settle("r3", SHA)
    ledger.refresh()
    with pytest.raises(LedgerDamaged):
        _ = ledger.history


def test_a_cut_tail_is_found_by_a_certificate_when_the_mark_was_put_back_too(
    path: Path, key: SigningKey, tmp_path: Path
) -> None:
    with Ledger(path, key, create=True) as ledger:
        reserve(ledger, "r1")
        old = [shutil.copy(file, tmp_path / f"{file.name}.old") for file in (path, mark(path))]
        head = reserve(ledger, "r2")
        assert ledger.verify([seen(head)]) == []
    for file, copy in zip((path, mark(path)), old, strict=True):
        shutil.copy(copy, file)
    assert problems(path) == []  # as the docstring says
    (problem,) = problems(path, head)
    assert "the tail was cut: a certificate has seen entry 3, the last is 2" in problem
    with Ledger(path, key) as ledger:
        reserve(ledger, "r3")
    (problem,) = problems(path, head)
    assert "history was replaced" in problem
    (problem,) = problems(path, Head("another", 1, head.hash))
    assert "another ledger" in problem


def test_a_mark_that_lags_is_no_tampering_and_one_that_is_ahead_is(path: Path, key: SigningKey) -> None:
    with Ledger(path, key, create=True) as ledger:
        reserve(ledger, "r1")
        older = mark(path).read_bytes()
        reserve(ledger, "r2")
        newer = mark(path).read_bytes()
    mark(path).write_bytes(older)
    assert problems(path) == []
    with Ledger(path, key) as ledger:
        ledger.settle("r1", SHA)
    assert json.loads(mark(path).read_bytes())["number"] == 4
    edit(path, "DELETE FROM entries WHERE number >= 3")
    mark(path).write_bytes(newer)
    (problem,) = problems(path)
    assert "the tail was cut: ledger.db.head has seen entry 3, the last is 2" in problem


@pytest.mark.parametrize("first", [True, False])
def test_a_crash_between_an_entry_and_its_mark_is_no_tampering(
    first: bool, path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(path, key, create=True)
    if not first:
        reserve(ledger, "r0")
    number = ledger.head().number

    write = chain_module.Chain._write_mark

    def crash(self: chain_module.Chain, head: Head, key: SigningKey) -> None:
        if head.number > number:  # the very first entry gets its mark late, but before there is a second
            raise KeyboardInterrupt
        write(self, head, key)

    with monkeypatch.context() as patch:
        patch.setattr(chain_module.Chain, "_write_mark", crash)
        with pytest.raises(KeyboardInterrupt):
            reserve(ledger, "r1")
    ledger.refresh()
    assert ledger.head().number == number + 1
    assert json.loads(mark(path).read_text())["number"] == number
    assert problems(path) == []
    ledger.settle("r1", SHA)
    assert json.loads(mark(path).read_text())["number"] == number + 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda m: b"", "malformed"),
        (lambda m: b"[1]", "malformed"),
        (lambda m: b"\xff", "malformed"),
        (lambda m: m.replace(b'"number":6', b'"number":5'), "not signed"),
        (lambda m: m.replace(b'"signature":"', b'"signature":"A'), "not signed"),
    ],
)
def test_a_forged_mark_is_found(
    change: Callable[[bytes], bytes], problem: str, ledger: Ledger, path: Path
) -> None:
    mark(path).write_bytes(change(mark(path).read_bytes()))
    (found,) = problems(path)
    assert problem in found
    with pytest.raises(LedgerDamaged, match=r"ledger\.db\.head"):
        ledger.settle("r3", SHA)


def test_a_lost_mark_is_found_and_the_ledger_can_go_on_with_a_reason(
    ledger: Ledger, path: Path, key: SigningKey
) -> None:
    with pytest.raises(ValueError, match="nothing to resume from"):
        ledger.resume("no need")
    mark(path).unlink()
    (found,) = problems(path)
    assert "ledger.db.head is missing" in found
    with pytest.raises(LedgerDamaged, match="missing"):
        ledger.settle("r3", SHA)
    ledger.resume("the ledger moved to another machine without it")
    assert problems(path) == []
    last = entries(path)[-1]
    assert (last.kind, json.loads(last.body)["found"]) == ("resumed", [found])
    ledger.settle("r3", SHA)
    ledger.close()
    edit(path, "UPDATE entries SET time = '' WHERE number = 3")
    mark(path).unlink()
    with Ledger(path, key) as opened, pytest.raises(LedgerDamaged, match="entry 3 was edited"):
        opened.resume("not this time")


def test_an_emptied_file_is_not_taken_for_a_new_ledger(ledger: Ledger, path: Path, key: SigningKey) -> None:
    ledger.close()
    path.write_bytes(b"")
    with pytest.raises(LedgerDamaged, match=r"it is empty, but ledger\.db\.head has seen entries"):
        Ledger(path, key, create=True)
    with pytest.raises(ValueError, match="is not a ledger"):
        Ledger(path, key)


def test_events_that_make_no_sense_are_found_even_if_signed(key: SigningKey, tmp_path: Path) -> None:
    """A wrong program with the right key: the chain is sound, the story is not."""
    reserved = {"charge": gaussian().record(), "people": "0" * 64, "space": {}, "title": {}}
    published: dict[str, Any] = {"sha256": SHA, "scales": None}
    why: dict[str, Any] = {"reason": "why"}
    stories: list[tuple[list[tuple[str, str, dict[str, Any]]], str]] = [
        ([("published", "r", published)], "was never reserved"),
        ([("voided", "r", {"reason": "why"})], "was never reserved"),
        ([("reserved", "r", reserved)] * 2, "was reserved before"),
        ([("reserved", "r", reserved), *[("published", "r", published)] * 2], "was published before"),
        (
            [("reserved", "r", reserved), ("published", "r", published), ("voided", "r", {"reason": "x"})],
            "was published before",
        ),
        ([("reserved", "r", reserved), *[("voided", "r", {"reason": "x"})] * 2], "was freed before"),
        ([("reserved", "r", reserved), ("voided", "r", {"reason": " "})], "has no reason"),
        ([("reserved", "r", reserved | {"charge": {}})], "makes no sense"),
        ([("reserved", "r", reserved | {"charge": None})], "makes no sense"),
        ([("reserved", "r", {k: v for k, v in reserved.items() if k != "people"})], "makes no sense"),
        ([("policy", "", {"policy": {"name": "x"}})], "makes no sense"),
        ([("policy", "", {})], "makes no sense"),
        ([("opened", "", {"ledger": "x"})], "opened once"),
        ([("resumed", "", {"reason": "", "left_behind": [], "lost": []})], "has no reason"),
        ([("resumed", "", {"reason": "why", "left_behind": []})], "makes no sense"),
        ([("reserved", "r", {k: v for k, v in reserved.items() if k != "space"})], "makes no sense"),
        ([("withdrawn", "r", {"reason": "why"})], "is not published"),
        ([("reserved", "r", reserved), ("withdrawn", "r", {"reason": "why"})], "is not published"),
        (
            [("reserved", "r", reserved), ("published", "r", published), *[("withdrawn", "r", why)] * 2],
            "was withdrawn before",
        ),
        ([("erased", "", {"reason": "why", "people": {"r": SHA}})], "makes no sense"),
        (
            [("reserved", "r", reserved), ("erased", "", {"reason": "", "people": {"r": SHA}})],
            "has no reason",
        ),
        ([("limit", "", {"limit": {"B": 3, "epsilon": 1}})], "nobody"),
        ([("refunded", "r", {})], "nobody"),
    ]
    for number, (story, problem) in enumerate(stories):
        place = tmp_path / f"story{number}.db"
        writer = chain_module.Chain(place, key, create=True)
        with writer.writing() as pen:
            for kind, release, body in story:
                pen.append(kind, release, body)
        writer.close()
        assert any(problem in found for found in problems(place)), (problem, problems(place))
        with Ledger(place, key) as opened, pytest.raises(LedgerDamaged):
            _ = opened.history


# Other processes

ZYGOTE = """
import os, signal, sys
from pathlib import Path
import numpy as np
from targetdp.accounting import PrivacyFilter
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import GaussianNoise
from targetdp.release import Charge, Ledger, Limit, LimitExceeded, SigningKey
from targetdp.release._ledger._people import Sums

path, key_path, folder = map(Path, sys.argv[1:])
charge = Charge(law=GaussianNoise(B=0.25, epsilon=float(os.environ["EPSILON"]), delta=1e-5).law(3))
near = PrivacyFilter("renyi", float(os.environ["LIMIT"]), 1e-5)
far = near.widened(8)
limit = Limit(near, far, Guarantee(0.25, near.epsilon, 1e-5), Guarantee(2.0, far.epsilon, 1e-5))
people = np.arange(10, dtype=np.uint64)
limit.cost(charge)
Sums(people, 2).add(people, np.zeros(2))  # what is compiled is loaded once

def race(name):
    while not (folder / "go").exists():
        pass
    try:
        with Ledger(path, SigningKey.open(key_path), create=True) as ledger:
            ledger.reserve(name, charge, limit, people, {})
        (folder / name).write_text("won")
    except LimitExceeded:
        (folder / name).write_text("refused")
    except BaseException as error:
        (folder / name).write_text(repr(error))

def work(name):
    ledger = Ledger(path, SigningKey.open(key_path), create=True)
    for turn in range(10**6):
        release = f"{name}.{turn}"
        ledger.reserve(release, charge, limit, people, {})
        with (folder / "reserved").open("a") as log:
            log.write(release + "\\n")
        ledger.settle(release, "0" * 64)
        with (folder / "settled").open("a") as log:
            log.write(release + "\\n")

signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
for line in sys.stdin:
    task, name = line.split()
    pid = os.fork()
    if pid == 0:
        {"race": race, "work": work}[task](name)
        os._exit(0)
    print(pid, flush=True)
"""
"""Imports take seconds: one process imports and forks a worker for each line that it reads."""


class Zygote:
    def __init__(self, path: Path, key_path: Path, folder: Path, epsilon: float, limit: float) -> None:
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and script)
            [sys.executable, "-c", ZYGOTE, str(path), str(key_path), str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ
            | {"EPSILON": str(epsilon), "LIMIT": str(limit)}
            | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip

    def start(self, task: str, name: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{task} {name}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def hatch(path: Path, tmp_path: Path, folder: Path) -> Iterator[Callable[[float, float], Zygote]]:
    made: list[Zygote] = []

    def make(epsilon: float, limit: float) -> Zygote:
        made.append(Zygote(path, tmp_path / "keys" / "signing-key.pem", folder, epsilon, limit))
        return made[-1]

    yield make
    for zygote in made:
        zygote.close()


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the other processes did not finish"
        time.sleep(0.01)


def test_of_several_processes_one_gets_the_last_of_the_budget(
    path: Path, key: SigningKey, folder: Path, hatch: Callable[[float, float], Zygote]
) -> None:
    with Ledger(path, key, create=True) as ledger:
        reserve(ledger, "before", gaussian(4.0), limit=LIMIT)
    zygote = hatch(4.0, 8.0)
    names = [f"racer{i}" for i in range(6)]
    for name in names:
        zygote.start("race", name)
    (folder / "go").touch()
    wait_until(lambda: all((folder / name).exists() and (folder / name).read_text() for name in names))
    assert sorted((folder / name).read_text() for name in names) == ["refused"] * 5 + ["won"]
    with Ledger(path) as ledger:
        assert len(ledger.history.releases) == 2
        assert ledger.verify() == []
    assert json.loads(mark(path).read_text())["number"] == 3
    assert len(list((path.parent / "people").iterdir())) == 2


def test_several_processes_may_open_a_new_ledger_at_once(
    path: Path, tmp_path: Path, folder: Path, hatch: Callable[[float, float], Zygote]
) -> None:
    zygote = hatch(1.0, 1e6)
    names = [f"racer{i}" for i in range(5)]
    for name in names:
        zygote.start("race", name)
    (folder / "go").touch()
    wait_until(lambda: all((folder / name).exists() and (folder / name).read_text() for name in names))
    assert {(folder / name).read_text() for name in names} == {"won"}
    with Ledger(path) as ledger:
        assert ledger.verify() == []
        assert sorted(ledger.history.releases) == names
    assert json.loads(mark(path).read_text())["number"] == 6


def test_killed_at_any_moment_it_opens_and_verifies(
    path: Path, tmp_path: Path, folder: Path, hatch: Callable[[float, float], Zygote]
) -> None:
    """The first kills hit the making of key and ledger, too; two workers are always at it."""
    rng = random.Random(3)
    zygote = hatch(0.1, 1e6)
    for turn in range(times("random kills: ledger") // 2):
        workers = [zygote.start("work", f"{turn}.{i}") for i in range(2)]
        time.sleep(rng.uniform(0.0, 0.02 if turn < 10 else 0.25))
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        if turn >= 5:  # before, it may not be there yet
            signing = SigningKey.open(tmp_path / "keys" / "signing-key.pem")
            with Ledger(path, signing, create=True) as ledger:
                assert ledger.verify() == []
                states = {row.release: row.state for row in ledger.history.releases.values()}
        count("random kills: ledger", "sound", len(workers))
    assert len(states) > 10
    # Nothing that a worker was told is lost.
    assert set((folder / "reserved").read_text().split()) <= set(states)
    settled = set((folder / "settled").read_text().split())
    assert {states[release] for release in settled} <= {"published"}
    assert "published" in states.values()
    with Ledger(path, SigningKey.open(tmp_path / "keys" / "signing-key.pem")) as ledger:
        reserve(ledger, "after")
        ledger.settle("after", SHA)
        assert ledger.verify() == []

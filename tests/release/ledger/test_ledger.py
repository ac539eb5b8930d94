"""The ledger: budgets under concurrency and SIGKILL, tampering that is found, and every refusal."""

import hashlib
import json
import math
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
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import GaussianNoise, SphericalLaplace
from targetdp.release import Entry, Head, Ledger, LedgerDamaged, LimitExceeded, ReleaseRow, SigningKey
from targetdp.release._certificate._charge import Charge
from targetdp.release._ledger import _chain as chain_module

LIMIT = Guarantee(0.25, 8.0, 1e-5)
SHA = hashlib.sha256(b"released").hexdigest()
UNBOUNDED = Charge(unbounded="k-anonymity bounds nothing")


def gaussian(epsilon: float = 1.0, B: float = 0.25) -> Charge:
    return Charge(law=GaussianNoise(B=B, epsilon=epsilon, delta=1e-5).law(3))


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.open(tmp_path / "keys" / "signing-key.pem")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path, key: SigningKey) -> Ledger:
    """Seven entries: opened, limit, a published release, a voided one, a reserved one."""
    ledger = Ledger(path, key)
    ledger.set_limit("subscribers", LIMIT)
    ledger.reserve("subscribers", "r1", gaussian(), title={"rows": 10})
    ledger.settle("r1", SHA)
    ledger.reserve("subscribers", "r2", gaussian(2.0))
    ledger.void("r2", "the disk was full, nothing was written")
    ledger.reserve("subscribers", "r3", gaussian(0.5), part="north")
    return ledger


def mark(path: Path) -> Path:
    return path.with_name(path.name + ".head")


# What it records


def test_it_tells_each_release_in_one_row(ledger: Ledger, path: Path) -> None:
    first, second, third = ledger.releases()
    assert (first.release, first.state, first.sha256, first.title) == ("r1", "published", SHA, {"rows": 10})
    assert (second.state, second.counts) == ("voided", False)
    assert second.reason == "the disk was full, nothing was written"
    assert (third.state, third.part, third.settled, third.counts) == ("reserved", "north", None, True)
    assert third.charge == gaussian(0.5)
    assert [row.release for row in ledger.releases("subscribers")] == ["r1", "r2", "r3"]
    assert ledger.releases("others") == []
    assert ledger.release("r3") == third
    assert ledger.populations() == ["subscribers"]
    assert ledger.limit("subscribers") == LIMIT
    assert ledger.limit("others") is None
    assert ledger.verify() == []
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT release, state, part, override FROM releases").fetchall()
    assert rows == [
        ("r1", "published", None, None), ("r2", "voided", None, None), ("r3", "reserved", "north", None)
    ]  # fmt: skip


def test_others_can_read_it_without_a_key_and_change_nothing(ledger: Ledger, path: Path) -> None:
    before = path.read_bytes()
    reader = Ledger.existing(path)
    assert reader.releases() == ledger.releases()
    assert reader.head() == ledger.head()
    assert reader.verify() == []
    assert reader.standing("subscribers").spent == ledger.standing("subscribers").spent
    for write in (
        lambda: reader.set_limit("subscribers", LIMIT),
        lambda: reader.reserve("subscribers", "r9", gaussian()),
        lambda: reader.settle("r3", SHA),
        lambda: reader.void("r3", "why not"),
        lambda: reader.resume("why not"),
    ):
        with pytest.raises(ValueError, match="opened for reading"):
            write()
    assert path.read_bytes() == before


def test_a_write_protected_copy_can_be_read(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    shutil.copy(mark(path), mark(copy))
    copy.chmod(0o400)
    assert Ledger.existing(copy).verify() == []


def test_two_ledgers_are_never_alike(tmp_path: Path, key: SigningKey) -> None:
    heads = {Ledger(tmp_path / f"{i}.db", key).head() for i in range(3)}
    assert len({head.ledger_id for head in heads}) == len({head.hash for head in heads}) == 3
    assert {head.number for head in heads} == {1}


def test_reserve_returns_the_head(path: Path, key: SigningKey) -> None:
    ledger = Ledger(path, key)
    head = ledger.reserve("p", "r1", gaussian())
    assert head == ledger.head() == Head(head.ledger_id, 2, head.hash)
    assert ledger.settle("r1", SHA).number == 3


def test_who_looks_at_all_releases_before_one_is_reserved_may_refuse_it(ledger: Ledger, path: Path) -> None:
    seen: list[str] = []

    def look(rows: list[ReleaseRow]) -> None:
        seen.extend(row.release for row in rows)
        with (
            closing(sqlite3.connect(path, 0.0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
        raise ValueError("somebody may be in both")

    before = ledger.head()
    with pytest.raises(ValueError, match="somebody may be in both"):
        ledger.reserve("subscribers", "r4", gaussian(), look=look)
    assert seen == ["r1", "r2", "r3"]
    assert ledger.head() == before


# The budget


def test_a_release_that_does_not_fit_is_refused_with_its_numbers(path: Path, key: SigningKey) -> None:
    ledger = Ledger(path, key)
    ledger.set_limit("subscribers", LIMIT)
    ledger.reserve("subscribers", "r1", gaussian(6.0))
    with pytest.raises(LimitExceeded) as refused:
        ledger.reserve("subscribers", "r2", gaussian(5.0))
    spending = refused.value.spending
    assert spending.requested == pytest.approx(5.0, rel=1e-3)
    assert spending.spent == pytest.approx(6.0, rel=1e-3)
    assert spending.remaining == pytest.approx(2.0, rel=1e-2)
    assert 8.0 < spending.total < 11.0
    for number in (spending.requested, spending.spent, spending.remaining, spending.total):
        assert f"{number:.6g}" in str(refused.value)
    assert "'subscribers'" in str(refused.value)
    assert [row.release for row in ledger.releases()] == ["r1"]
    with pytest.raises(LimitExceeded):
        ledger.check("subscribers", gaussian(5.0))
    # Composition is not addition: 6 and 2.5 add up to more than 8, but together they are less.
    assert ledger.check("subscribers", gaussian(2.5)).total < 8.0


def test_a_tiny_B_cannot_sneak_past(path: Path, key: SigningKey) -> None:
    ledger = Ledger(path, key)
    ledger.set_limit("subscribers", LIMIT)
    tiny = Charge(law=SphericalLaplace(B=0.01, epsilon=1.0).law(3))
    with pytest.raises(LimitExceeded) as refused:
        ledger.reserve("subscribers", "r1", tiny)
    assert 20 < refused.value.spending.requested <= 25.01


def test_what_was_voided_no_longer_counts_and_what_is_reserved_does(path: Path, key: SigningKey) -> None:
    ledger = Ledger(path, key)
    ledger.set_limit("p", LIMIT)
    ledger.reserve("p", "r1", gaussian(7.9))
    with pytest.raises(LimitExceeded):
        ledger.check("p", gaussian(4.0))
    ledger.void("r1", "the run was killed before anything was written")
    assert ledger.standing("p").spent == 0.0
    ledger.reserve("p", "r2", gaussian(7.9))
    ledger.settle("r2", SHA)
    with pytest.raises(LimitExceeded):
        ledger.check("p", gaussian(4.0))


def test_populations_have_budgets_of_their_own(path: Path, key: SigningKey) -> None:
    ledger = Ledger(path, key)
    for name in ("a", "b"):
        ledger.set_limit(name, LIMIT)
        ledger.reserve(name, f"{name}1", gaussian(7.9))
    ledger.reserve("c", "c1", gaussian(90.0))
    assert ledger.populations() == ["a", "b", "c"]


def test_disjoint_parts_share_nothing_and_everybody_pays_for_the_whole(path: Path, key: SigningKey) -> None:
    ledger = Ledger(path, key)
    ledger.set_limit("p", LIMIT)
    for part in ("north", "south", "east"):
        ledger.reserve("p", part, gaussian(6.0), part=part)
    assert ledger.standing("p").spent == pytest.approx(6.0, rel=1e-3)
    with pytest.raises(LimitExceeded):
        ledger.reserve("p", "again", gaussian(6.0), part="south")
    with pytest.raises(LimitExceeded):
        ledger.reserve("p", "all", gaussian(6.0))
    ledger.reserve("p", "west", gaussian(6.0), part="west")


def test_without_a_limit_everything_bounded_is_recorded(path: Path, key: SigningKey) -> None:
    ledger = Ledger(path, key)
    ledger.reserve("p", "r1", gaussian(50.0))
    spending = ledger.check("p", gaussian(50.0))
    assert spending.limit is None
    assert math.isnan(spending.spent)
    note = ledger.set_limit("p", LIMIT)
    assert "already spent more" in note
    assert "ε = 50" in note
    with pytest.raises(LimitExceeded, match="spent 50"):
        ledger.check("p", gaussian(0.01))
    assert ledger.set_limit("p", Guarantee(0.25, 60.0, 1e-5)) == ""


@pytest.mark.parametrize("limit", [None, LIMIT])
def test_what_has_no_bound_needs_an_override_and_so_does_what_follows(
    limit: Guarantee | None, path: Path, key: SigningKey
) -> None:
    ledger = Ledger(path, key)
    if limit is not None:
        ledger.set_limit("p", limit)
    with pytest.raises(LimitExceeded, match=r"requested ε = without bound.*k-anonymity"):
        ledger.reserve("p", "r1", UNBOUNDED)
    ledger.reserve("p", "r1", UNBOUNDED, override="the board has decided")
    assert ledger.standing("p").spent == math.inf
    with pytest.raises(LimitExceeded, match="'r1', which counts, has no bound"):
        ledger.reserve("p", "r2", gaussian(0.1))
    ledger.reserve("p", "r2", gaussian(0.1), override="the board again")
    assert [row.override for row in ledger.releases()] == ["the board has decided", "the board again"]
    assert "without bound" in ledger.set_limit("p", LIMIT)
    ledger.void("r1", "it was never published")
    ledger.reserve("p", "r3", gaussian(0.1))
    assert ledger.verify() == []


def test_an_override_passes_the_limit_and_stays_on_record(path: Path, key: SigningKey) -> None:
    ledger = Ledger(path, key)
    ledger.set_limit("p", LIMIT)
    assert ledger.check("p", gaussian(20.0), override="an emergency").total > 8.0
    ledger.reserve("p", "r1", gaussian(20.0), override="an emergency")
    assert ledger.releases()[0].override == "an emergency"
    with pytest.raises(LimitExceeded):
        ledger.reserve("p", "r2", gaussian(0.01))


def test_one_name_has_one_spelling(path: Path, key: SigningKey) -> None:
    ledger = Ledger(path, key)
    ledger.set_limit("Abonn\u00e9s", LIMIT)
    assert ledger.limit("Abonne\u0301s") == LIMIT


def test_settling(ledger: Ledger) -> None:
    before = ledger.head()
    assert ledger.settle("r1", SHA).number == 4
    assert ledger.head() == before
    with pytest.raises(ValueError, match="another output is another release"):
        ledger.settle("r1", "0" * 64)
    with pytest.raises(ValueError, match="not in the ledger"):
        ledger.settle("r9", SHA)
    with pytest.raises(ValueError, match="is published: only what is reserved"):
        ledger.void("r1", "a mistake")
    with pytest.raises(ValueError, match="is voided: only what is reserved"):
        ledger.void("r2", "again")
    with pytest.raises(ValueError, match="in the ledger already"):
        ledger.reserve("subscribers", "r2", gaussian(0.1))


def test_what_scores_name_as_their_sample_cannot_be_voided(path: Path, key: SigningKey) -> None:
    """They have read it: it was published, whatever the ledger was told."""
    ledger = Ledger(path, key)
    for release in ("sample", "other"):
        ledger.reserve("p", release, gaussian(0.1))
    ledger.reserve("p", "odd", gaussian(0.1), title={"sample": "other"})  # not what a release writes
    ledger.reserve("q", "scores", gaussian(0.1), title={"sample": {"release": "sample", "scored": True}})
    with pytest.raises(ValueError, match=r"'sample' was published: release 'scores' \(entry 5\) names it"):
        ledger.void("sample", "the run was killed")
    assert ledger.release("sample").counts
    ledger.void("other", "the run was killed")
    ledger.void("scores", "the run was killed")
    ledger.void("sample", "now nothing builds on it")
    assert ledger.verify() == []


def test_what_became_public_after_a_void_counts_again(ledger: Ledger) -> None:
    spent = ledger.standing("subscribers").spent
    ledger.settle("r2", SHA)
    assert ledger.release("r2").state == "published"
    assert ledger.release("r2").reason is not None
    assert ledger.standing("subscribers").spent > spent
    assert ledger.verify() == []


# Bad arguments


@pytest.mark.parametrize("bad", ["", "  ", " p", "p\n", "a\x00b", "x" * 201, "\ud800"])
def test_bad_names_are_refused(bad: str, ledger: Ledger) -> None:
    calls: list[Callable[[], object]] = [
        lambda: ledger.set_limit(bad, LIMIT),
        lambda: ledger.limit(bad),
        lambda: ledger.standing(bad),
        lambda: ledger.releases(bad),
        lambda: ledger.check(bad, gaussian()),
        lambda: ledger.check("p", gaussian(), part=bad),
        lambda: ledger.reserve("p", bad, gaussian()),
        lambda: ledger.release(bad),
        lambda: ledger.settle(bad, SHA),
        lambda: ledger.void(bad, "reason"),
    ]
    if len(bad) < 200:
        calls += [
            lambda: ledger.check("p", gaussian(), override=bad),
            lambda: ledger.void("r3", bad),
            lambda: ledger.resume(bad),
        ]
    for call in calls:
        with pytest.raises(ValueError, match="printable characters"):
            call()
    assert ledger.head().number == 7


def test_other_bad_arguments_are_refused(ledger: Ledger, path: Path, key: SigningKey) -> None:
    anything: Any = ledger
    for bad in (None, 3, b"p"):
        with pytest.raises(TypeError, match="is not text"):
            anything.reserve(bad, "r9", gaussian())
    for call in (
        lambda: anything.set_limit("p", 8.0),
        lambda: anything.check("p", Guarantee(0.25, 1.0)),
        lambda: anything.reserve("p", "r9", None),
        lambda: anything.reserve("p", "r9", gaussian(), title=["rows"]),
        lambda: anything.verify([3]),
        lambda: Ledger(path, "key.pem"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="is not a"):
            call()
    for delta in (0.0, 1.0):
        with pytest.raises(ValueError, match=r"delta = .* is outside \(0, 1\).*try"):
            ledger.set_limit("p", Guarantee(0.25, 1.0, delta))
    for sha in ("", SHA.upper(), SHA[:-1], None):
        with pytest.raises(ValueError, match="64 hex digits"):
            anything.settle("r3", sha)
    for title in ({"share": math.nan}, {"rows": object()}):
        with pytest.raises(ValueError, match="cannot be recorded"):
            ledger.reserve("p", "r9", gaussian(), title=title)
    with pytest.raises(ValueError, match="32 bytes in base64"):
        ledger.verify(public_key="nobody")
    with pytest.raises(ValueError, match="needs the data holder's signing key"):
        Ledger(path, None)
    assert ledger.head().number == 7


def test_what_is_not_a_ledger_is_refused_and_left_alone(tmp_path: Path, key: SigningKey) -> None:
    other = tmp_path / "features.csv"
    other.write_text("name,calls\n" * 1000)
    database = tmp_path / "other.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE entries (number INTEGER)")
    for path in (other, database):
        before = path.read_bytes()
        with pytest.raises(ValueError, match="is not a ledger"):
            Ledger(path, key)
        with pytest.raises(ValueError, match="is not a ledger"):
            Ledger.existing(path)
        assert path.read_bytes() == before
    with pytest.raises(ValueError, match="cannot be a ledger"):
        Ledger(tmp_path, key)
    with pytest.raises(ValueError, match="folder that exists"):
        Ledger(tmp_path / "nowhere" / "ledger.db", key)
    with pytest.raises(FileNotFoundError, match="there is no ledger"):
        Ledger.existing(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "empty.db").touch()
    with pytest.raises(ValueError, match="is not a ledger"):
        Ledger.existing(tmp_path / "empty.db")
    assert Ledger(tmp_path / "empty.db", key).verify() == []


def test_another_key_cannot_write(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    other = SigningKey.open(tmp_path / "other.pem")
    with pytest.raises(ValueError, match=f"not by {other.fingerprint}.*changes are not supported"):
        Ledger(path, other)
    (problem,) = ledger.verify(public_key=other.public)
    assert other.fingerprint in problem


def test_a_busy_ledger_says_so(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_module, "_BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(TimeoutError, match="is busy"):
            ledger.settle("r3", SHA)
        assert len(ledger.releases()) == 3
    ledger.settle("r3", SHA)


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
        ("UPDATE entries SET body = replace(body, '0.25', '0.24') WHERE number = 2", "entry 2 was edited"),
        ("UPDATE entries SET time = '2020-01-01T00:00:00+00:00' WHERE number = 3", "entry 3 was edited"),
        ("UPDATE entries SET population = 'others' WHERE number = 5", "entry 5 was edited"),
        ("UPDATE entries SET kind = 'voided' WHERE number = 4", "entry 4 was edited"),
        ("UPDATE entries SET body = x'00' WHERE number = 4", "entry 4 is malformed"),
        ("UPDATE entries SET signature = '' WHERE number = 4", "entry 4 is not signed"),
        ("UPDATE entries SET key = 'AAAA' WHERE number = 4", "entry 4 names another key"),
        ("DELETE FROM entries WHERE number = 3", "between entries 2 and 4 some are missing"),
        ("DELETE FROM entries WHERE number = 1", "between entries 0 and 2 some are missing"),
        ("DELETE FROM entries WHERE number = 7", "the tail was cut"),
        ("DELETE FROM entries WHERE number > 1", "the tail was cut"),
        ("DELETE FROM entries", "all of them were removed"),
        ("UPDATE entries SET number = 8 WHERE number = 7", "between entries 6 and 8 some are missing"),
    ],
)
def test_tampering_is_found_and_stops_everything(
    statement: str, problem: str, ledger: Ledger, path: Path
) -> None:
    edit(path, statement)
    found = Ledger.existing(path).verify()
    assert any(problem in line for line in found), found
    before = path.read_bytes(), mark(path).read_bytes()
    for use in (
        lambda: ledger.check("subscribers", gaussian()),
        lambda: ledger.reserve("subscribers", "r9", gaussian(0.1)),
        lambda: ledger.settle("r3", SHA),
        lambda: ledger.void("r3", "nothing was published"),
        lambda: ledger.set_limit("subscribers", LIMIT),
        ledger.releases,
    ):
        with pytest.raises(LedgerDamaged, match="is damaged"):
            use()
    assert (path.read_bytes(), mark(path).read_bytes()) == before


def test_reordered_entries_are_found(ledger: Ledger, path: Path) -> None:
    move = "UPDATE entries SET number = {} WHERE number = {}"
    edit(path, move.format(99, 3), move.format(3, 5), move.format(5, 99))
    assert any("entry 3 was edited" in line for line in ledger.verify())
    assert any("entry 5 does not follow" in line for line in ledger.verify())


def test_a_chain_that_was_hashed_again_without_the_key_is_found(ledger: Ledger, path: Path) -> None:
    edit(path, "UPDATE entries SET body = replace(body, '8.0', '9.0') WHERE number = 2")
    rehash(path)
    found = ledger.verify()
    assert any("entry 2 is not signed by the key" in line for line in found)
    assert not any("edited" in line for line in found)


def test_a_chain_that_was_signed_with_another_key_is_found(
    ledger: Ledger, path: Path, key: SigningKey, tmp_path: Path
) -> None:
    head = ledger.head()
    edit(path, "UPDATE entries SET body = replace(body, '8.0', '9.0') WHERE number = 2")
    rehash(path, sign=SigningKey.open(tmp_path / "thief.pem"))
    mark(path).unlink()
    reader = Ledger.existing(path)
    assert any("history was replaced" in line for line in reader.verify([head]))
    assert any(key.fingerprint in line for line in reader.verify(public_key=key.public))
    with pytest.raises(ValueError, match="is signed by the key"):
        Ledger(path, key)


def test_one_entry_by_another_key_is_found(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    thief = SigningKey.open(tmp_path / "thief.pem")
    last = entries(path)[-1]
    signature = thief.sign(f"targetdp ledger entry {last.hash}".encode())
    edit(path, f"UPDATE entries SET signature = '{signature}' WHERE number = 7")  # noqa: S608
    assert "entry 7 is not signed by the key of entry 1" in ledger.verify()
    edit_again = f"UPDATE entries SET key = '{thief.public}' WHERE number = 7"  # noqa: S608
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(edit_again)
        connection.commit()
    assert any("changes are not supported" in line for line in ledger.verify())


def test_a_cut_tail_is_found_by_a_certificate_when_the_mark_was_put_back_too(
    path: Path, key: SigningKey, tmp_path: Path
) -> None:
    ledger = Ledger(path, key)
    ledger.reserve("p", "r1", gaussian())
    old = [shutil.copy(file, tmp_path / f"{file.name}.old") for file in (path, mark(path))]
    head = ledger.reserve("p", "r2", gaussian())
    assert ledger.verify([head]) == []
    for file, copy in zip((path, mark(path)), old, strict=True):
        shutil.copy(copy, file)
    assert ledger.verify() == []  # as the docstring says
    (problem,) = ledger.verify([head])
    assert "the tail was cut: a certificate (entry 3) has seen entry 3, the last is 2" in problem
    ledger.reserve("p", "r3", gaussian())
    (problem,) = ledger.verify([head])
    assert "history was replaced" in problem
    (problem,) = ledger.verify([Head("another", 1, head.hash)])
    assert "another ledger" in problem


def test_a_mark_that_lags_is_no_tampering_and_one_that_is_ahead_is(
    path: Path, key: SigningKey, tmp_path: Path
) -> None:
    ledger = Ledger(path, key)
    ledger.reserve("p", "r1", gaussian())
    older = mark(path).read_bytes()
    ledger.reserve("p", "r2", gaussian())
    newer = mark(path).read_bytes()
    mark(path).write_bytes(older)
    assert ledger.verify() == []
    ledger.settle("r1", SHA)
    assert json.loads(mark(path).read_bytes())["number"] == 4
    edit(path, "DELETE FROM entries WHERE number >= 3")
    mark(path).write_bytes(newer)
    (problem,) = ledger.verify()
    assert "the tail was cut: ledger.db.head has seen entry 3, the last is 2" in problem


@pytest.mark.parametrize("first", [True, False])
def test_a_crash_between_an_entry_and_its_mark_is_no_tampering(
    first: bool, path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(path, key)
    if not first:
        ledger.reserve("p", "r0", gaussian())
    number = ledger.head().number

    write = chain_module.Chain._write_mark

    def crash(self: chain_module.Chain, head: Head, key: SigningKey) -> None:
        if head.number > number:  # the very first entry gets its mark late, but before there is a second
            raise KeyboardInterrupt
        write(self, head, key)

    with monkeypatch.context() as patch:
        patch.setattr(chain_module.Chain, "_write_mark", crash)
        with pytest.raises(KeyboardInterrupt):
            ledger.reserve("p", "r1", gaussian())
    assert ledger.head().number == number + 1
    assert json.loads(mark(path).read_text())["number"] == number
    assert Ledger.existing(path).verify() == []
    ledger.settle("r1", SHA)
    assert json.loads(mark(path).read_text())["number"] == number + 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda m: b"", "malformed"),
        (lambda m: b"[1]", "malformed"),
        (lambda m: b"\xff", "malformed"),
        (lambda m: m.replace(b'"number":7', b'"number":6'), "not signed"),
        (lambda m: m.replace(b'"signature":"', b'"signature":"A'), "not signed"),
    ],
)
def test_a_forged_mark_is_found(
    change: Callable[[bytes], bytes], problem: str, ledger: Ledger, path: Path
) -> None:
    mark(path).write_bytes(change(mark(path).read_bytes()))
    (found,) = ledger.verify()
    assert problem in found
    with pytest.raises(LedgerDamaged, match=r"ledger\.db\.head"):
        ledger.settle("r3", SHA)


def test_a_lost_mark_is_found_and_the_ledger_can_go_on_with_a_reason(ledger: Ledger, path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to resume from"):
        ledger.resume("no need")
    mark(path).unlink()
    (found,) = ledger.verify()
    assert "ledger.db.head is missing" in found
    with pytest.raises(LedgerDamaged, match="missing"):
        ledger.settle("r3", SHA)
    ledger.resume("the ledger moved to another machine without it")
    assert ledger.verify() == []
    last = entries(path)[-1]
    assert (last.kind, json.loads(last.body)["found"]) == ("resumed", [found])
    edit(path, "UPDATE entries SET time = '' WHERE number = 3")
    mark(path).unlink()
    with pytest.raises(LedgerDamaged, match="entry 3 was edited"):
        ledger.resume("not this time")


def test_an_emptied_file_is_not_taken_for_a_new_ledger(ledger: Ledger, path: Path, key: SigningKey) -> None:
    path.write_bytes(b"")
    with pytest.raises(LedgerDamaged, match=r"it is empty, but ledger\.db\.head has seen entries"):
        Ledger(path, key)


def test_events_that_make_no_sense_are_found_even_if_signed(
    path: Path, key: SigningKey, tmp_path: Path
) -> None:
    """A wrong program with the right key: the chain is sound, the story is not."""
    reserved = {"charge": gaussian().record(), "part": None, "override": None, "title": {}}
    stories: list[tuple[list[tuple[str, str, dict[str, Any]]], str]] = [
        ([("published", "r", {"sha256": SHA})], "was never reserved"),
        ([("voided", "r", {"reason": "why"})], "was never reserved"),
        ([("reserved", "r", reserved)] * 2, "was reserved before"),
        ([("reserved", "r", reserved), *[("published", "r", {"sha256": SHA})] * 2], "was published before"),
        (
            [
                ("reserved", "r", reserved),
                ("published", "r", {"sha256": SHA}),
                ("voided", "r", {"reason": "x"}),
            ],
            "was published before",
        ),
        ([("reserved", "r", reserved), *[("voided", "r", {"reason": "x"})] * 2], "was voided before"),
        ([("reserved", "r", reserved), ("voided", "r", {"reason": " "})], "has no reason"),
        ([("reserved", "r", reserved | {"charge": {}})], "makes no sense"),
        ([("reserved", "r", reserved | {"charge": None})], "makes no sense"),
        ([("limit", "", {"limit": {"B": 3, "epsilon": 1}})], "B = 3"),
        ([("opened", "", {"ledger": "x"})], "opened once"),
        ([("refunded", "r", {})], "nobody"),
    ]
    for number, (story, problem) in enumerate(stories):
        place = tmp_path / f"story{number}.db"
        writer = chain_module.Chain(place, key, create=True)
        with writer.writing() as pen:
            for kind, release, body in story:
                pen.append(kind, "p", release, body)
        (found,) = Ledger.existing(place).verify()
        assert problem in found


# Other processes

ZYGOTE = """
import os, signal, sys
from pathlib import Path
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import GaussianNoise
from targetdp.release import Ledger, LimitExceeded, SigningKey
from targetdp.release._certificate._charge import Charge

path, key_path, folder = map(Path, sys.argv[1:])
charge = Charge(law=GaussianNoise(B=0.25, epsilon=float(os.environ["EPSILON"]), delta=1e-5).law(3))

def race(name):
    while not (folder / "go").exists():
        pass
    try:
        Ledger(path, SigningKey.open(key_path)).reserve("p", name, charge)
        (folder / name).write_text("won")
    except LimitExceeded:
        (folder / name).write_text("refused")
    except BaseException as error:
        (folder / name).write_text(repr(error))

def work(name):
    ledger = Ledger(path, SigningKey.open(key_path))
    for turn in range(10**6):
        release = f"{name}.{turn}"
        ledger.reserve("p", release, charge)
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
    def __init__(self, path: Path, key_path: Path, folder: Path, epsilon: float) -> None:
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and script)
            [sys.executable, "-c", ZYGOTE, str(path), str(key_path), str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"EPSILON": str(epsilon), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
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
def hatch(path: Path, tmp_path: Path, folder: Path) -> Iterator[Callable[[float], Zygote]]:
    made: list[Zygote] = []

    def make(epsilon: float) -> Zygote:
        made.append(Zygote(path, tmp_path / "keys" / "signing-key.pem", folder, epsilon))
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
    path: Path, key: SigningKey, folder: Path, hatch: Callable[[float], Zygote]
) -> None:
    ledger = Ledger(path, key)
    ledger.set_limit("p", LIMIT)
    ledger.reserve("p", "before", gaussian(5.0))
    zygote = hatch(5.0)
    names = [f"racer{i}" for i in range(6)]
    for name in names:
        zygote.start("race", name)
    (folder / "go").touch()
    wait_until(lambda: all((folder / name).exists() and (folder / name).read_text() for name in names))
    assert sorted((folder / name).read_text() for name in names) == ["refused"] * 5 + ["won"]
    assert len(ledger.releases()) == 2
    assert ledger.verify() == []
    assert json.loads(mark(path).read_text())["number"] == 4


def test_several_processes_may_open_a_new_ledger_at_once(
    path: Path, tmp_path: Path, folder: Path, hatch: Callable[[float], Zygote]
) -> None:
    zygote = hatch(1.0)
    names = [f"racer{i}" for i in range(5)]
    for name in names:
        zygote.start("race", name)
    (folder / "go").touch()
    wait_until(lambda: all((folder / name).exists() and (folder / name).read_text() for name in names))
    assert {(folder / name).read_text() for name in names} == {"won"}
    ledger = Ledger.existing(path)
    assert ledger.verify() == []
    assert sorted(row.release for row in ledger.releases()) == names
    assert json.loads(mark(path).read_text())["number"] == 6


def test_killed_at_any_moment_it_opens_and_verifies(
    path: Path, tmp_path: Path, folder: Path, hatch: Callable[[float], Zygote]
) -> None:
    """The first kills hit the making of key and ledger, too; two workers are always at it."""
    rng = random.Random(3)
    zygote = hatch(0.1)
    for turn in range(times("random kills: ledger") // 2):
        workers = [zygote.start("work", f"{turn}.{i}") for i in range(2)]
        time.sleep(rng.uniform(0.0, 0.02 if turn < 10 else 0.25))
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        if turn >= 5:  # before, it may not be there yet
            ledger = Ledger(path, SigningKey.open(tmp_path / "keys" / "signing-key.pem"))
            assert ledger.verify() == []
        count("random kills: ledger", "sound", len(workers))
    states = {row.release: row.state for row in ledger.releases()}
    assert len(states) > 10
    # Nothing that a worker was told is lost.
    assert set((folder / "reserved").read_text().split()) <= set(states)
    settled = set((folder / "settled").read_text().split())
    assert {states[release] for release in settled} <= {"published"}
    assert "published" in states.values()
    ledger.reserve("p", "after", gaussian())
    ledger.settle("after", SHA)
    assert ledger.verify() == []

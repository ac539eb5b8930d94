"""What may happen to a ledger after the fact: withdrawals, erasures that are killed, and lost entries."""

import json
import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.ledgers import EVERYBODY, LIMIT, SHA, certificate_of, gaussian, mark, people, reserve
from targetdp.release import Head, Ledger, LedgerDamaged, LimitExceeded, SigningKey, Witness
from targetdp.release._ledger import _book as book_module
from targetdp.release._ledger import _chain as chain_module
from targetdp.release._ledger._people import forget_people, write_people


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.open(tmp_path / "key.pem")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path, key: SigningKey) -> Ledger:
    """Two published releases, of 0 to 9 and of 5 to 14, and one that was freed."""
    ledger = Ledger(path, key, create=True)
    reserve(ledger, "r1", gaussian(4.0))
    ledger.settle("r1", SHA)
    reserve(ledger, "r2", gaussian(2.0), people(range(5, 15)))
    ledger.settle("r2", SHA)
    reserve(ledger, "r3", gaussian(2.0), people(2, 3))
    ledger.free("r3", "nothing was drawn")
    return ledger


def lists(path: Path) -> list[str]:
    return sorted(one.name for one in (path.parent / "people").iterdir())


def tags(ledger: Ledger, release: str) -> list[int]:
    found: list[int] = ledger.people_of(ledger.release(release)).tolist()
    return found


def share(*charges: Any) -> float:
    return LIMIT.share(np.sum([LIMIT.cost(charge) for charge in charges], axis=0))


def spent(ledger: Ledger, *who: int) -> float:
    return ledger.measure(LIMIT, people(*who), None).spent


# Withdrawals


def test_what_was_withdrawn_stays_charged(ledger: Ledger) -> None:
    before = spent(ledger, 7)
    ledger.withdraw("r1", "a column was wrong")
    row = ledger.release("r1")
    assert (row.state, row.withdrawn, row.counts) == ("published", "a column was wrong", True)
    assert spent(ledger, 7) == before == pytest.approx(share(gaussian(4.0), gaussian(2.0)))
    assert ledger.verify() == []
    for name in ("r1", "r3"):
        with pytest.raises(ValueError, match="only what is published can be withdrawn"):
            ledger.withdraw(name, "again")
    assert ledger.settle("r1", SHA).number == row.number, "a run that comes late changes nothing"


# Erasures


def test_who_was_erased_is_in_no_list_and_nothing_becomes_free(ledger: Ledger, path: Path) -> None:
    assert ledger.erase(people(3, 7), "she asked for it") == {"r1": 2, "r2": 1, "r3": 1}
    assert tags(ledger, "r1") == [0, 1, 2, 4, 5, 6, 8, 9]
    assert tags(ledger, "r2") == [5, 6, *range(8, 15)]
    assert tags(ledger, "r3") == [2]
    assert len(lists(path)) == 3
    assert not {"r1.tags", "r2.tags", "r3.tags"} & set(lists(path)), "no old list is left"
    assert {stat.S_IMODE((path.parent / "people" / name).stat().st_mode) for name in lists(path)} == {0o600}
    # Both releases count for everybody: for her, for those who stay, and for those who never were in them.
    for who in (3, 7, 0, 12, 99):
        assert spent(ledger, who) == pytest.approx(share(gaussian(4.0), gaussian(2.0)))
    with pytest.raises(LimitExceeded):
        reserve(ledger, "r4", gaussian(6.0), people(7), LIMIT)
    assert ledger.measure(LIMIT, people(4, 7, 12), None).known == {"r1": 1, "r2": 1}
    assert ledger.verify() == []
    # Again, she is not there; another one is.
    assert ledger.erase(people(3, 7), "again") == {}
    number = ledger.head().number
    assert ledger.erase(people(0), "he asked, too") == {"r1": 1}
    assert ledger.head().number == number + 1
    assert tags(ledger, "r1") == [1, 2, 4, 5, 6, 8, 9]
    assert len(lists(path)) == 3


def test_a_release_that_nobody_was_erased_from_counts_as_before(ledger: Ledger) -> None:
    assert ledger.erase(people(12), "she asked for it") == {"r2": 1}
    assert spent(ledger, 99) == pytest.approx(share(gaussian(2.0)))
    assert spent(ledger, 1) == pytest.approx(share(gaussian(4.0), gaussian(2.0)))
    assert not ledger.release("r1").everybody


def test_everybody_may_be_erased(ledger: Ledger) -> None:
    assert ledger.erase(people(range(20)), "the study is over") == {"r1": 10, "r2": 10, "r3": 2}
    assert tags(ledger, "r1") == []
    assert spent(ledger, 5) == pytest.approx(share(gaussian(4.0), gaussian(2.0)))
    standing = ledger.standing(LIMIT)
    assert standing.spending.spent == pytest.approx(share(gaussian(4.0), gaussian(2.0)))
    assert ledger.verify() == []


class Killed(BaseException):
    """As if the process ended here."""


def killed(*_: Any, **__: Any) -> None:
    raise Killed


def test_an_erasure_that_is_killed_before_it_is_on_record_has_not_happened(
    ledger: Ledger, path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ledger.head()
    with monkeypatch.context() as patch:
        patch.setattr(chain_module.Pen, "append", killed)
        with pytest.raises(Killed):
            ledger.erase(people(3, 7), "she asked for it")
    ledger.close()
    assert len(lists(path)) > 3, "the new lists lie beside the old ones"
    with Ledger(path, key) as again:
        assert again.head() == before
        assert again.verify() == []
        assert tags(again, "r1") == list(range(10))
        reserve(again, "r4", gaussian(0.1), EVERYBODY)
        assert again.erase(people(3, 7), "she asked for it") == {"r1": 2, "r2": 1, "r3": 1, "r4": 2}
        assert again.verify() == []
        assert len(lists(path)) == 4


@pytest.mark.parametrize("lists_written", [1, 2])
def test_an_erasure_that_is_killed_between_two_lists_has_not_happened(
    lists_written: int, ledger: Ledger, path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def some(*given: Any, **named: Any) -> str:
        nonlocal calls
        calls += 1
        if calls > lists_written:
            raise Killed
        return write_people(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(book_module, "write_people", some)
        with pytest.raises(Killed):
            ledger.erase(people(3, 7), "she asked for it")
    ledger.close()
    with Ledger(path, key) as again:
        assert again.verify() == []
        assert [tags(again, name) for name in ("r1", "r3")] == [list(range(10)), [2, 3]]
        again.erase(people(3, 7), "she asked for it")
        assert len(lists(path)) == 3


def test_an_erasure_that_is_killed_after_it_is_on_record_is_finished_by_the_next(
    ledger: Ledger, path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = ledger.head().number

    def once_recorded(*given: Any, **named: Any) -> None:
        if ledger.head().number > number:
            raise Killed
        forget_people(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(book_module, "forget_people", once_recorded)
        with pytest.raises(Killed):
            ledger.erase(people(3, 7), "she asked for it")
    ledger.close()
    assert "r1.tags" in lists(path)
    with Ledger(path, key) as again:
        assert again.verify() == []
        assert tags(again, "r1") == [0, 1, 2, 4, 5, 6, 8, 9], "she is erased as far as the ledger knows"
        assert again.erase(people(3, 7), "again") == {}
        assert len(lists(path)) == 3, "and the old list is gone"


def test_old_lists_are_removed_under_the_lock(
    ledger: Ledger, path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two erasures at once, neither takes the other's new list for an old one."""

    def look(*given: Any, **named: Any) -> None:
        assert ledger._chain._connection.in_transaction
        forget_people(*given, **named)

    monkeypatch.setattr(book_module, "forget_people", look)
    ledger.erase(people(3), "she asked for it")
    with Ledger(path, key) as other:
        monkeypatch.setattr(book_module, "forget_people", forget_people)
        other.erase(people(4), "he, too")
    ledger.refresh()
    assert tags(ledger, "r1") == [0, 1, 2, 5, 6, 7, 8, 9]


# Lost entries


@pytest.fixture
def restored(ledger: Ledger, path: Path, tmp_path: Path) -> Witness:
    """The ledger is put back to where it was before one more release, which its certificate tells of."""
    ledger.close()
    kept = tmp_path / "backup"
    kept.mkdir()
    for one in (path, mark(path)):
        shutil.copy(one, kept / one.name)
    with Ledger(path, SigningKey.open(tmp_path / "key.pem")) as later:
        head = reserve(later, "r4", gaussian(3.0), people(1), LIMIT, rows=1)
        later.settle("r4", SHA)
    for one in (path, mark(path)):
        shutil.copy(kept / one.name, one)
    return certificate_of(head, "r4", gaussian(3.0), rows=1)


def test_an_older_ledger_is_found_by_a_certificate_and_stops(
    restored: Witness, path: Path, key: SigningKey
) -> None:
    with Ledger(path, key) as opened:
        assert opened.verify() == []
        (problem,) = opened.verify([restored])
        assert "the tail was cut: the certificate r4 has seen entry 8, the last is 7" in problem
        with pytest.raises(LedgerDamaged, match="the tail was cut"):
            opened.must_be_newest([restored])
        opened.must_be_newest([])
    with Ledger(path, key, witnesses=[restored]) as opened:
        for use in (
            lambda: opened.history, opened.head, lambda: opened.standing(LIMIT),
            lambda: reserve(opened, "r5", gaussian(0.1)), lambda: opened.withdraw("r1", "why"),
        ):  # fmt: skip
            with pytest.raises(LedgerDamaged, match="the tail was cut"):
                use()


def test_a_release_that_only_a_certificate_tells_of_counts_for_everybody(
    restored: Witness, path: Path, key: SigningKey
) -> None:
    with Ledger(path, key, witnesses=[restored]) as opened:
        assert opened.resume("the disk failed; this is the backup of May") == ["r4"]
        row = opened.release("r4")
        assert (row.state, row.everybody, row.people, row.title) == ("lost", True, "", {"rows": 1})
        for who, charges in ((1, (4.0, 3.0)), (99, (3.0,))):
            assert spent(opened, who) == pytest.approx(share(*map(gaussian, charges)))
        assert opened.verify([restored]) == [], "it is known by now"
        opened.must_be_newest([restored])
        body = json.loads(opened.entries[-1].body)
        assert body["reason"] == "the disk failed; this is the backup of May"
        assert "the tail was cut" in body["found"][0]
        with pytest.raises(LimitExceeded):
            reserve(opened, "r5", gaussian(6.0), people(99), LIMIT)
        with pytest.raises(ValueError, match="nothing to resume from"):
            opened.resume("again", [restored])
        with pytest.raises(ValueError, match="is in the ledger already"):
            reserve(opened, "r4", gaussian(0.1))


def test_it_goes_on_from_there_and_the_same_witness_speaks_no_more(
    restored: Witness, path: Path, key: SigningKey
) -> None:
    """Entry 8 is another one now: the certificate's is left behind, and no other."""
    with Ledger(path, key) as opened:
        opened.resume("from a backup", [restored])
        reserve(opened, "r5", gaussian(0.1))
        assert opened.verify([restored]) == []
        other = Witness("another", Head(opened.head().ledger_id, 8, "0" * 64))
        (problem,) = opened.verify([other])
        assert "the history was replaced: another has seen another entry 8" in problem


def test_a_certificate_that_turns_up_after_its_entry_was_left_behind_is_charged(
    restored: Witness, path: Path, key: SigningKey
) -> None:
    """First only the user's list has seen the entry; that tells of no release."""
    listed = Witness("the user's list", restored.head)
    with Ledger(path, key) as opened:
        assert opened.resume("from a backup", [listed]) == []
        assert opened.verify([listed]) == []
        assert opened.verify([restored]) != []
        with pytest.raises(LedgerDamaged):
            opened.must_be_newest([restored])
        assert opened.resume("a certificate turned up", [restored]) == ["r4"]
        assert opened.verify([listed, restored]) == []
        assert spent(opened, 99) == pytest.approx(share(gaussian(3.0)))


def test_a_lost_mark_and_a_witness_are_gone_on_without_at_once(
    restored: Witness, path: Path, key: SigningKey
) -> None:
    mark(path).unlink()
    with Ledger(path, key) as opened:
        with pytest.raises(LedgerDamaged, match="is missing"):
            _ = opened.history
        assert opened.resume("moved, and from a backup", [restored]) == ["r4"]
        found = json.loads(opened.entries[-1].body)["found"]
        assert ["is missing" in found[0], "the tail was cut" in found[1]] == [True, True]
        assert opened.verify([restored]) == []


def test_a_release_that_is_known_is_not_charged_twice(ledger: Ledger) -> None:
    """Its certificate has seen an entry that is lost; the release itself is not."""
    before = spent(ledger, 1)
    head = Head(ledger.head().ledger_id, 40, "a" * 64)
    again = certificate_of(head, "r1", gaussian(4.0))
    assert ledger.resume("a tail is lost", [again]) == []
    assert spent(ledger, 1) == before
    assert ledger.release("r1").state == "published"


def test_lost_scales_count_too(ledger: Ledger) -> None:
    head = Head(ledger.head().ledger_id, 40, "a" * 64)
    lost = certificate_of(head, "r9", gaussian(1.0), {"calls": "a"})
    ledger.resume("from a backup", [lost])
    near = spent(ledger, 99)
    assert near == pytest.approx(share(gaussian(1.0)))
    moved = ledger.measure(LIMIT, people(99), None, {"calls": "b"})
    assert moved.used.tolist() == pytest.approx(LIMIT.cost(gaussian(1.0), moved=True))


def test_another_ledgers_certificate_is_no_witness_of_this_one(ledger: Ledger) -> None:
    (problem,) = ledger.verify([Witness("a certificate", Head("another", 1, "0" * 64))])
    assert "belongs to another ledger" in problem

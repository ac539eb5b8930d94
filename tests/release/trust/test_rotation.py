"""A desk's key is changed or replaced: what follows, what a killed run leaves, and what forgers can do."""

import json
import re
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest

from support.release import certificate_of, cli, look, make_desk, place_with, release, words
from targetdp._files import canonical
from targetdp.release import (
    Certificate,
    Desk,
    Ledger,
    LedgerDamaged,
    PublishedButUnsettledError,
    SigningKey,
    Succession,
    certificate_path,
    replace_key,
    rotate_key,
    succeeds,
    verify_in_ledger,
)
from targetdp.release import _job as job_module
from targetdp.release import _staging as staging_module
from targetdp.release._draws import Draws
from targetdp.release._ledger import _journal as journal_module
from targetdp.release._ledger._chain import Chain
from targetdp.release._ledger._elsewhere import second_mark
from targetdp.release._ledger._entries import Entry
from targetdp.release._trust import _rotation as rotation_module
from targetdp.release._trust._keys import is_signed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A desk with one release, a.parquet."""
    folder = place_with(tmp_path / "place")
    release(folder, "a.parquet")
    return folder


def desk_of(folder: Path) -> Desk:
    return Desk.open(folder / "desk")


def problems(folder: Path, public_key: str | None = None) -> list[str]:
    with desk_of(folder).ledger(without_key=True) as ledger:
        return ledger.verify(public_key=public_key)


def in_ledger(folder: Path, c: Certificate) -> list[str]:
    """What the desk's ledger says against a certificate."""
    with desk_of(folder).ledger() as ledger:
        return [check.detail for check in verify_in_ledger(c, ledger) if check.holds is False]


def steps_of(c: Certificate) -> tuple[Succession, ...]:
    assert c.signature is not None
    return c.signature.succession


def append(path: Path, key: SigningKey, kind: str, body: dict[str, Any], named: str | None = None) -> None:
    """Write an entry by hand, as somebody could who has some key."""
    with Ledger(path) as ledger:
        last = ledger.entries[-1]
    text = body if isinstance(body, str) else canonical(body)
    draft = Entry(last.number + 1, last.time, kind, "", text, last.hash, key=named or key.public)
    draft = replace(draft, hash=draft.digest())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            astuple(replace(draft, signature=key.sign(draft.message()))),
        )
        connection.commit()


# Changing a key


def test_a_new_key_signs_on_the_word_of_the_old_one(folder: Path) -> None:
    before = certificate_of(folder / "a.parquet")
    old = desk_of(folder).key
    new = rotate_key(desk_of(folder), "once a year")
    assert new.public != old.public
    assert desk_of(folder).key.public == new.public
    c = release(folder, "b.parquet").certificate
    assert c.signature is not None
    assert c.signature.key == new.public
    assert succeeds(old.public, new.public, steps_of(c), c.desk.id)
    assert succeeds(new.public, new.public, steps_of(c), c.desk.id)
    assert not succeeds(new.public, old.public, steps_of(c), c.desk.id), "there is no way back"
    assert steps_of(before) == ()
    assert problems(folder) == problems(folder, old.public) == problems(folder, new.public) == []
    assert in_ledger(folder, before) == in_ledger(folder, c) == []
    assert f"follows {old.fingerprint}, each on the word" in words(
        (folder / "b.parquet.certificate.md").read_text()
    )
    assert cli("ledger", "verify", "--desk", folder / "desk", folder / "a.parquet.certificate.json").code == 0


def test_the_desk_s_python_object_has_the_new_key(folder: Path) -> None:
    desk = desk_of(folder)
    old = desk.key.public
    assert rotate_key(desk, "a test").public == desk.key.public != old


def test_the_old_key_is_destroyed_and_the_new_one_is_the_owner_s_alone(folder: Path) -> None:
    keys = folder / "desk" / "keys"
    with (keys / "signing.pem").open("rb") as old:
        rotate_key(desk_of(folder), "once a year")
        assert set(old.read()) == {0}, "also for whoever has the file open"
    assert stat.S_IMODE((keys / "signing.pem").stat().st_mode) == 0o600
    assert sorted(path.name for path in keys.iterdir()) == ["pseudonyms.key", "signing.pem", "tags.key"]


def test_several_changes_follow_from_each_of_the_keys(folder: Path) -> None:
    known = [desk_of(folder).key.public]
    known += [rotate_key(desk_of(folder), f"change {number}").public for number in range(3)]
    c = release(folder, "b.parquet").certificate
    assert all(succeeds(key, known[-1], steps_of(c), c.desk.id) for key in known)
    assert not succeeds(known[0], known[-1], steps_of(c)[1:], c.desk.id)
    assert not succeeds(known[0], known[-1], steps_of(c)[::-1], c.desk.id)
    assert problems(folder, known[0]) == []
    said = cli("status", "--desk", folder / "desk", "--json").json["keys_changed"]
    assert [f"(change {number})" in one for number, one in enumerate(said)] == [True] * 3


@pytest.mark.parametrize("reason", ["", " ", "x" * 2001])
def test_a_change_needs_a_reason(folder: Path, reason: str) -> None:
    old = desk_of(folder).key.public
    with pytest.raises(ValueError, match="reason"):
        rotate_key(desk_of(folder), reason)
    assert desk_of(folder).key.public == old
    assert problems(folder) == []


def test_no_key_is_changed_while_a_release_is_being_made(folder: Path) -> None:
    desk = desk_of(folder)
    draws = Draws.create(desk.drafts, "0" * 32, "bound")
    with pytest.raises(ValueError, match="release 000000000000 is being made right now"):
        rotate_key(desk, "now")
    draws.close()
    rotate_key(desk, "now")


def test_whoever_has_the_ledger_open_with_the_old_key_cannot_write(folder: Path) -> None:
    c = certificate_of(folder / "a.parquet")
    with desk_of(folder).ledger() as ledger:
        rotate_key(desk_of(folder), "meanwhile")
        with pytest.raises(ValueError, match="the key of this desk was changed meanwhile: run again"):
            ledger.withdraw(c.release, "a mistake")
    with desk_of(folder).ledger() as ledger:
        ledger.withdraw(c.release, "a mistake")
    assert problems(folder) == []


def test_a_release_that_was_begun_is_finished_with_the_new_key(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the machine broke")

    with monkeypatch.context() as patch:
        patch.setattr(job_module, "make_certificate", fail)
        with pytest.raises(RuntimeError):
            release(folder, "b.parquet", epsilon=1.0)
    new = rotate_key(desk_of(folder), "meanwhile")
    done = release(folder, "b.parquet", epsilon=1.0)
    assert done.look.goes_on == done.certificate.release
    assert done.certificate.signature is not None
    assert done.certificate.signature.key == new.public
    assert in_ledger(folder, done.certificate) == []


def published_but_unsettled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "settle", fail)
        with pytest.raises(PublishedButUnsettledError):
            release(folder, "b.parquet", epsilon=1.0)


def test_a_journal_of_the_old_key_settles_what_it_has_published(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published_but_unsettled(folder, monkeypatch)
    rotate_key(desk_of(folder), "meanwhile")
    with pytest.raises(ValueError, match="exists"):
        release(folder, "b.parquet", epsilon=1.0)
    with desk_of(folder).ledger() as ledger:
        assert {row.state for row in ledger.history.releases.values()} == {"published"}


def test_a_journal_of_a_key_that_signed_no_longer_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has a copy of the old key cannot settle what was reserved after the change."""
    thief = desk_of(folder).key
    rotate_key(desk_of(folder), "stolen")
    published_but_unsettled(folder, monkeypatch)
    (path,) = folder.glob(".*/journal.json")
    kept = path.read_text()
    told = {name: value for name, value in json.loads(kept).items() if name not in {"seal", "check"}}
    forged = told | {"seal": thief.sign(journal_module._message(told))}
    path.write_text(json.dumps(forged | {"check": staging_module.digest_of(forged)}))
    with pytest.raises(ValueError, match="is not signed by this desk"):
        release(folder, "b.parquet", epsilon=1.0)
    path.write_text(kept)
    with pytest.raises(ValueError, match="exists"):
        release(folder, "b.parquet", epsilon=1.0)


def test_a_certificate_that_the_old_key_signed_after_the_change_does_not_hold(folder: Path) -> None:
    thief = desk_of(folder).key
    rotate_key(desk_of(folder), "stolen")
    forged = release(folder, "b.parquet").certificate.signed(thief)
    (found,) = in_ledger(folder, forged)
    assert "not signed with the key of the certificate, then or later" in found


# Killed


class Killed(BaseException):
    """As if the process were gone: nobody catches it."""


def at(owner: Any, name: str, *, after: bool = False) -> Callable[[pytest.MonkeyPatch], None]:
    """Die before a call, or after it."""

    def prepare(patch: pytest.MonkeyPatch) -> None:
        kept = getattr(owner, name)

        def die(*given: Any, **more: Any) -> Any:
            if after:
                kept(*given, **more)
            raise Killed

        patch.setattr(owner, name, die)

    return prepare


STEPS = {
    "before there is a new key": (at(rotation_module, "_next_key"), False),
    "when there is one": (at(rotation_module, "_next_key", after=True), False),
    "when it is told": (at(Ledger, "change_key", after=True), True),
    "before the mark": (at(Chain, "_write_mark"), None),
    "before the old one is destroyed": (at(rotation_module, "wipe"), True),
    "when it is destroyed": (at(rotation_module, "wipe", after=True), True),
    "before the new one has its name": (at(Path, "replace"), None),
    "before the folder is synced": (at(rotation_module, "sync_folder"), True),
}


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_the_desk_has_one_key_that_fits(
    folder: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = desk_of(folder).key.public
    with monkeypatch.context() as patch:
        STEPS[step][0](patch)
        with pytest.raises(Killed):
            rotate_key(desk_of(folder), "killed")
    now = desk_of(folder).key.public
    changed = STEPS[step][1]
    assert changed is None or (now != old) == changed
    assert problems(folder, old) == []
    c = release(folder, "b.parquet").certificate
    assert succeeds(old, now, steps_of(c), c.desk.id)
    again = rotate_key(desk_of(folder), "once more").public
    assert again not in {old, now}
    c = release(folder, "c.parquet").certificate
    assert succeeds(old, again, steps_of(c), c.desk.id)
    assert problems(folder, old) == []
    assert not (folder / "desk" / "keys" / "signing.next.pem").exists()


def test_a_key_that_was_left_and_is_damaged_keeps_nobody_from_anything(folder: Path) -> None:
    left = folder / "desk" / "keys" / "signing.next.pem"
    left.write_text("half of a key")
    left.chmod(0o600)
    release(folder, "b.parquet")
    assert left.exists(), "somebody may be writing it"
    rotate_key(desk_of(folder), "once a year")
    assert not left.exists()


def test_a_key_that_signed_before_is_not_taken_again(folder: Path) -> None:
    """A backup of the folder of keys may have brought it back, under the name of the next one."""
    keys = folder / "desk" / "keys"
    first = (keys / "signing.pem").read_bytes()
    second = rotate_key(desk_of(folder), "once").public
    (keys / "signing.next.pem").write_bytes(first)
    (keys / "signing.next.pem").chmod(0o600)
    assert desk_of(folder).key.public == second
    third = rotate_key(desk_of(folder), "twice")
    assert problems(folder) == []
    with desk_of(folder).ledger() as ledger:
        assert third.public not in {one.public for one in ledger.reading.signers[:-1]}


# An older copy of the desk, from before a change


def restored(folder: Path, change: Callable[[Desk], object]) -> None:
    """The key is changed, b.parquet is released, and the desk is put back as it was before."""
    shutil.copytree(folder / "desk", folder / "copy")
    change(desk_of(folder))
    release(folder, "b.parquet")
    shutil.rmtree(folder / "desk")
    (folder / "copy").rename(folder / "desk")


def lose_and_replace(desk: Desk) -> SigningKey:
    (desk.path / "keys" / "signing.pem").unlink()
    return replace_key(desk, "the disk broke")


@pytest.mark.parametrize("change", [lambda desk: rotate_key(desk, "yearly"), lose_and_replace])
def test_a_copy_from_before_a_change_is_found_by_the_user_s_list(
    folder: Path, change: Callable[[Desk], object]
) -> None:
    """The mark in her configuration is signed by a key that the older ledger does not know."""
    restored(folder, change)
    with pytest.raises(LedgerDamaged, match="the tail was cut: your own list of desks has seen entry"):
        release(folder, "c.parquet")


def test_a_copy_from_before_a_change_is_found_by_certificates(folder: Path) -> None:
    restored(folder, lambda desk: rotate_key(desk, "yearly"))
    second_mark(desk_of(folder).id).unlink()
    with pytest.raises(LedgerDamaged, match=r"the tail was cut: the certificate .*b\.parquet"):
        release(folder, "c.parquet")


def test_a_copy_from_before_a_key_was_lost_is_not_found_by_certificates(folder: Path) -> None:
    """They are signed by a key that nobody has vouched for: what remains possible, and is said."""
    restored(folder, lose_and_replace)
    second_mark(desk_of(folder).id).unlink()
    release(folder, "c.parquet")


def test_a_mark_of_an_earlier_key_is_refused_once_the_new_one_has_signed(folder: Path) -> None:
    head = folder / "desk" / "ledger.db.head"
    older = head.read_bytes()
    rotate_key(desk_of(folder), "once a year")
    head.write_bytes(older)
    assert problems(folder) == [], "a run may have died between its entry and its mark"
    release(folder, "b.parquet")
    head.write_bytes(older)
    assert any("ledger.db.head is not signed by the key of this ledger" in one for one in problems(folder))


# Forged


def change_body(desk: Desk, old: SigningKey, new: SigningKey, **other: Any) -> dict[str, Any]:
    """A change of keys as it should be, but for what a forger does."""
    step = Succession.between(desk.id, old, new.public)
    body = {"older": old.public, "newer": new.public, "succession": step.value, "reason": "forged"}
    return body | {"possession": new.sign(step.message(desk.id))} | other


@pytest.fixture
def thief(tmp_path: Path) -> SigningKey:
    return SigningKey.open(tmp_path / "thief.pem")


def test_a_change_that_is_as_it_should_be_is_believed(folder: Path, thief: SigningKey) -> None:
    """So that the next tests test what they say."""
    desk = desk_of(folder)
    append(desk.path / "ledger.db", desk.key, "key", change_body(desk, desk.key, thief))
    assert problems(folder) == []


def test_entries_of_the_old_key_after_the_change_are_found(folder: Path) -> None:
    old = desk_of(folder).key
    rotate_key(desk_of(folder), "stolen")
    append(folder / "desk" / "ledger.db", old, "voided", {"reason": "never drawn"})
    assert any("names another key than the one that signs by then" in one for one in problems(folder))
    with pytest.raises(LedgerDamaged):
        release(folder, "b.parquet")


def test_a_change_that_the_old_key_has_not_signed_is_found(folder: Path, thief: SigningKey) -> None:
    desk, path = desk_of(folder), folder / "desk" / "ledger.db"
    forged = change_body(desk, desk.key, thief, succession=thief.sign(b"a change"))
    append(path, thief, "key", forged)
    found = problems(folder)
    assert any("does not change the key: the older key has not signed" in one for one in found)
    assert any("names another key" in one for one in found)


@pytest.mark.parametrize(
    ("forge", "why"),
    [
        (lambda desk, old, _: {"newer": old.public}, "a key serves once"),
        (lambda *_: {"newer": "no key"}, "is not an Ed25519 public key"),
        (lambda *_: {"possession": None}, "nobody has shown that he has the newer key"),
        (lambda desk, old, _: {"possession": old.sign(b"mine")}, "nobody has shown"),
        (lambda desk, _, new: {"older": new.public}, "speaks of another key"),
        (lambda desk, old, new: {"succession": Succession.between("x", old, new.public).value}, "not signed"),
        (lambda *_: {"succession": 7}, "succession|value|string"),
    ],
)
def test_a_change_that_is_not_whole_is_found(
    folder: Path, thief: SigningKey, forge: Callable[..., dict[str, Any]], why: str
) -> None:
    """Also one that the desk's own key has signed: nobody may take another's key for his."""
    desk = desk_of(folder)
    forged = change_body(desk, desk.key, thief, **forge(desk, desk.key, thief))
    append(desk.path / "ledger.db", desk.key, "key", forged)
    (found,) = problems(folder)
    assert "entry 5 does not change the key" in found
    assert re.search(why, found)


@pytest.mark.parametrize("body", ["{}", "[]", "7", "{", '{"older": 1}'])
def test_a_change_that_says_nothing_is_found(folder: Path, body: Any) -> None:
    desk = desk_of(folder)
    append(desk.path / "ledger.db", desk.key, "key", body)
    assert any("does not change the key" in one for one in problems(folder))
    with pytest.raises(LedgerDamaged):
        release(folder, "b.parquet")


def test_a_succession_belongs_to_its_desk_and_its_keys(folder: Path, tmp_path: Path) -> None:
    """Steps of one desk cannot be put on another's certificate, nor taken off, nor be made by a stranger."""
    old = desk_of(folder).key.public
    rotate_key(desk_of(folder), "once a year")
    c = release(folder, "b.parquet").certificate
    stranger = SigningKey.open(tmp_path / "stranger.pem")
    assert not succeeds(old, stranger.public, steps_of(c), c.desk.id)
    step = steps_of(c)[0]
    grafted = step.model_copy(update={"newer": stranger.public})
    own = Succession.between(c.desk.id, stranger, stranger.public)
    assert not own.holds(c.desk.id), "nobody follows himself"
    for steps in ((grafted,), (step, grafted), (own,), ()):
        assert not succeeds(old, stranger.public, steps, c.desk.id)
    assert not succeeds(old, step.newer, (step,), "another desk")
    assert c.signature is not None
    stripped = c.model_copy(update={"signature": c.signature.model_copy(update={"succession": ()})})
    assert not is_signed(step.newer, c.signature.value, stripped.message())
    # Another desk's key that vouches for this one, which has never agreed.
    other = Succession.between(c.desk.id, stranger, step.newer)
    claimed = c.model_copy(update={"signature": c.signature.model_copy(update={"succession": (other,)})})
    assert not is_signed(step.newer, c.signature.value, claimed.message())


# A lost key


@pytest.fixture(params=["gone", "damaged"])
def lost(request: pytest.FixtureRequest, folder: Path) -> Path:
    """The desk of a.parquet after its key is lost."""
    path = folder / "desk" / "keys" / "signing.pem"
    if request.param == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:40])
    return folder


def test_a_lost_key_is_replaced_on_record(lost: Path) -> None:
    before = certificate_of(lost / "a.parquet")
    assert before.signature is not None
    old = before.signature.key
    with pytest.raises(ValueError, match=r"is gone: .*targetdp key replace|is no Ed25519 key"):
        release(lost, "b.parquet")
    ran = cli("key", "replace", "--reason", "the disk broke", "--desk", lost / "desk")
    assert ran.code == 0, ran.err
    new = desk_of(lost).key
    assert ran.out == f"{new.public}\n"
    assert "without the word of the old one" in words(ran.err)
    c = release(lost, "b.parquet").certificate
    assert steps_of(c) == ()
    assert not succeeds(old, new.public, steps_of(c), c.desk.id)
    assert in_ledger(lost, before) == in_ledger(lost, c) == []
    assert problems(lost) == problems(lost, new.public) == []
    (found,) = problems(lost, old)
    assert "does not vouch for it any more" in found
    assert "the disk broke" in found
    for command in (("ledger", "verify"), ("status",), ("ledger", "log")):
        ran = cli(*command, "--desk", lost / "desk")
        said = words(ran.err + ran.out)
        assert ran.code == 0
        assert new.fingerprint in said
        assert "lost" in said
        assert "the disk broke" in said


def test_after_a_loss_certificates_follow_from_the_new_key_on(lost: Path) -> None:
    known = certificate_of(lost / "a.parquet").signature
    assert known is not None
    second = replace_key(desk_of(lost), "the disk broke")
    third = rotate_key(desk_of(lost), "once a year")
    c = release(lost, "b.parquet").certificate
    assert succeeds(second.public, third.public, steps_of(c), c.desk.id)
    assert not succeeds(known.key, third.public, steps_of(c), c.desk.id)


def test_a_key_that_is_there_is_not_replaced(folder: Path) -> None:
    before = (folder / "desk" / "ledger.db").read_bytes()
    ran = cli("key", "replace", "--reason", "no reason", "--desk", folder / "desk")
    assert (ran.code, "targetdp key rotate changes it" in words(ran.err)) == (2, True)
    path = folder / "desk" / "keys" / "signing.pem"
    path.chmod(0o644)
    ran = cli("key", "replace", "--reason", "others can read it", "--desk", folder / "desk")
    assert (ran.code, "chmod 600" in words(ran.err)) == (2, True), "it is not lost"
    path.unlink()
    other = SigningKey.open(path)
    ran = cli("key", "replace", "--reason", "another is there", "--desk", folder / "desk")
    assert (ran.code, f"is key {other.fingerprint}, which is not" in words(ran.err)) == (2, True)
    assert (folder / "desk" / "ledger.db").read_bytes() == before
    assert SigningKey.open(path, create=False).public == other.public, "it may be the only copy"


def test_what_speaks_against_the_ledger_is_not_lost_with_the_key(folder: Path) -> None:
    """An older ledger was put back, and its key is lost, too: replacing the key forgets nothing."""
    older = (folder / "desk" / "ledger.db").read_bytes()
    done = release(folder, "b.parquet")
    (folder / "desk" / "ledger.db").write_bytes(older)
    (folder / "desk" / "keys" / "signing.pem").unlink()
    replace_key(desk_of(folder), "the disk broke")
    assert any("was cut: ledger.db.head has seen entry" in one for one in problems(folder))
    certificate_path(folder / "b.parquet").rename(folder / "elsewhere.json")
    with pytest.raises(LedgerDamaged):
        release(folder, "c.parquet")
    ran = cli(
        "ledger", "resume", folder / "elsewhere.json", "--reason", "a backup", "--desk", folder / "desk"
    )
    assert ran.code == 0, ran.err
    with desk_of(folder).ledger() as ledger:
        assert ledger.release(done.certificate.release).state == "lost"
    release(folder, "c.parquet")
    assert problems(folder) == []


@pytest.mark.parametrize(
    "step",
    ["before there is a new key", "when there is one", "before the mark", "before the folder is synced"],
)
def test_killed_while_a_lost_key_is_replaced_the_next_run_puts_it_right(
    lost: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        STEPS[step][0](patch)
        with pytest.raises(Killed):
            replace_key(desk_of(lost), "killed")
    with suppress(ValueError):  # it may be there already
        replace_key(desk_of(lost), "again")
    release(lost, "b.parquet")
    assert problems(lost) == []
    with desk_of(lost).ledger() as ledger:
        assert len(ledger.reading.signers) == 2


def said_to_be_lost(old: str, new: SigningKey, reason: str) -> dict[str, Any]:
    return {
        "older": old, "newer": new.public, "succession": None, "possession": None, "reason": reason,
    }  # fmt: skip


def test_a_stranger_who_says_that_the_key_is_lost_is_found(folder: Path, thief: SigningKey) -> None:
    desk, path = desk_of(folder), folder / "desk" / "ledger.db"
    old = desk.key.public
    append(path, thief, "key", said_to_be_lost(old, thief, "it is mine now"))
    told = f"signed by the key {thief.fingerprint}, not by {desk.key.fingerprint}"
    with pytest.raises(ValueError, match=told):
        release(folder, "b.parquet")
    (found,) = problems(folder, old)
    assert "does not vouch for it any more" in found
    assert "it is mine now" in found


def test_a_stranger_who_also_cut_the_tail_is_found_by_the_marks(folder: Path, thief: SigningKey) -> None:
    """What the old key has signed speaks of entries that are gone."""
    path = folder / "desk" / "ledger.db"
    older = path.read_bytes()
    old = desk_of(folder).key.public
    release(folder, "b.parquet")
    path.write_bytes(older)
    append(path, thief, "key", said_to_be_lost(old, thief, "lost"))
    found = problems(folder)
    assert any("ledger.db.head has seen another entry" in one or "was cut: ledger.db" in one for one in found)
    assert any("your own list of desks has seen" in one for one in found)


# Commands


def test_the_command_changes_the_key_and_says_what_to_do(folder: Path) -> None:
    old = desk_of(folder).key
    ran = cli("key", "rotate", "--reason", "once a year", "--desk", folder / "desk")
    new = desk_of(folder).key
    assert (ran.code, ran.out) == (0, f"{new.public}\n")
    assert f"key {new.fingerprint} signs from now on, on the word of {old.fingerprint}" in words(ran.err)
    log = words(cli("ledger", "log", "--desk", folder / "desk").out)
    assert f"{new.fingerprint} signs in place of {old.fingerprint}, on its word" in log
    assert "because: once a year" in log
    ran = cli("ledger", "verify", "--desk", folder / "desk", "--public-key", old.public)
    assert ran.code == 0
    assert f"on record: key {new.fingerprint} signs since" in words(ran.err)
    assert cli("key", "rotate", "--desk", folder / "desk").code == 2, "a reason must be given"
    assert look(folder).problems == ()


def test_a_desk_without_releases_can_change_its_key(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    rotate_key(desk, "at once")
    with Desk.open(desk.path).ledger() as ledger:
        assert ledger.verify() == []

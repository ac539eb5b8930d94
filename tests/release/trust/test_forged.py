"""Keys, successions, approvals and ledgers that were forged: none counts for more than it is."""

import base64
import json
import sqlite3
from contextlib import closing
from dataclasses import astuple, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from support.release import (
    certificate_of,
    cli,
    make_desk,
    new_policy,
    place_with,
    release,
    release_frame,
    table_of,
    words,
)
from targetdp._files import canonical
from targetdp.release import (
    Certificate,
    Desk,
    Ledger,
    Refused,
    SigningKey,
    certificate_path,
    fingerprint_of,
    read_certificate,
    rotate_key,
    verify,
)
from targetdp.release._certificate._contents import output_of
from targetdp.release._certificate._page import page
from targetdp.release._ledger._entries import Entry
from targetdp.release._staging import page_path
from targetdp.release._trust._approval import Approval
from targetdp.release._trust._keys import Succession, config_folder, is_signed, succeeds
from targetdp.release._trust._signers import known_signers, trust
from targetdp.table import Written

WIDER: dict[str, Any] = {"limit": (0.25, 200.0, 0.1), "reason": "a second survey"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = place_with(tmp_path / "place")
    release(made)
    return made


def twins(text: str) -> list[str]:
    """Other texts that the usual reader of base64 takes for the same bytes: it drops the last bits."""
    body = text.rstrip("=")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    every = (body[:-1] + letter + text[len(body) :] for letter in letters)
    raw = base64.b64decode(text)
    return [one for one in every if one != text and base64.b64decode(one, validate=True) == raw]


def write(output: Path, certificate: Certificate) -> None:
    certificate_path(output).write_text(certificate.text(), encoding="utf-8")
    page_path(output).write_text(page(certificate), encoding="utf-8")


# One key, one text


def test_a_key_has_one_text(folder: Path) -> None:
    key = Desk.open(folder / "desk").key
    signature = key.sign(b"something")
    assert len(twins(key.public)) == 3
    for twin in twins(key.public):
        assert not is_signed(twin, signature, b"something")
        with pytest.raises(ValueError, match="is not an Ed25519 public key"):
            fingerprint_of(twin)
        with pytest.raises(ValueError, match="is not an Ed25519 public key"):
            trust("twin", twin)
        assert cli("verify", folder / "out.parquet", "--public-key", twin).code == 2
    assert not any(is_signed(key.public, twin, b"something") for twin in twins(signature))


def test_the_desk_does_not_approve_under_another_spelling_of_its_own_key(tmp_path: Path) -> None:
    """Its key, written in another way, was another person's."""
    folder = place_with(tmp_path / "place")
    key = Desk.open(folder / "desk").key
    twin = twins(key.public)[0]
    try:
        new_policy(folder / "desk", approvers={"the auditor": twin})
        release(folder, "a.parquet")
    except (ValueError, Refused):
        return  # nobody is named so
    new_policy(folder / "desk", approvers={"the auditor": twin}, **WIDER)
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        proposed = ledger.history.proposal(desk.policy)
    approval = Approval(key=twin, value=key.sign(proposed.message()))
    (folder / "desk" / "approval.json").write_text(approval.text())
    with pytest.raises(Refused):
        release(folder, "b.parquet")


def test_a_key_under_which_anybody_can_sign_is_none(folder: Path) -> None:
    """A point of small order: the signature of nothing fits everything, or every eighth message."""
    small = ["01" + "00" * 31, "00" * 32, "ec" + "ff" * 30 + "7f", "01" + "00" * 30 + "80"]
    small += ["26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"]
    small += ["c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"]
    nothing = base64.b64encode(bytes([1]) + bytes(63)).decode()
    for point in small:
        key = base64.b64encode(bytes.fromhex(point)).decode()
        assert not any(is_signed(key, nothing, f"message {i}".encode()) for i in range(200)), point
        assert cli("key", "trust", "operator", key).code == 2
        with pytest.raises(ValueError, match="is not an Ed25519 public key"):
            _ = new_policy(folder / "desk", approvers={"the auditor": key}).policy


# Keys that were replaced


def forge_with(folder: Path, old: SigningKey, **changes: Any) -> None:
    """A release of other values, signed with a key of the desk that somebody has kept."""
    output = folder / "out.parquet"
    table = pq.read_table(output)
    values = np.asarray(table.column("calls")) + 2.0**-3
    table = table.set_column(1, "calls", [values])
    pq.write_table(table, output)
    c = certificate_of(output)
    data = output.read_bytes()
    written = Written(output.name, len(data), sha256(data).hexdigest())
    new = c.model_copy(update={"output": output_of("parquet", [written], output.name)} | changes)
    write(output, new.signed(old))


@pytest.mark.parametrize("other", [True, False])
def test_a_key_that_was_replaced_signs_nothing_new_for_its_own_desk(folder: Path, other: bool) -> None:
    """Whoever has kept a copy of it could have his release taken for one of the desk, at the desk itself."""
    desk = Desk.open(folder / "desk")
    old = desk.key
    rotate_key(desk, "a copy was stolen")
    assert cli("verify", folder / "out.parquet").code == 0, "what it has signed before still counts"
    forge_with(folder, old, **({"release": "ab" * 16} if other else {}))
    found = verify(folder / "out.parquet")
    assert found.by_a_stranger
    assert cli("verify", folder / "out.parquet").code == 5


def test_a_key_that_was_replaced_does_not_sign_what_the_new_one_has_released(folder: Path) -> None:
    desk = Desk.open(folder / "desk")
    old = desk.key
    rotate_key(desk, "a copy was stolen")
    release(folder, "b.parquet")
    write(folder / "b.parquet", certificate_of(folder / "b.parquet").signed(old))
    assert cli("verify", folder / "b.parquet").code == 5


def append_lost(folder: Path, stranger: SigningKey) -> None:
    """What anybody can write who can write the file: the key is lost, and this one signs now."""
    path = folder / "desk" / "ledger.db"
    with Ledger(path) as ledger:
        last, older = ledger.entries[-1], ledger.reading.key
    body = canonical(
        {"older": older, "newer": stranger.public, "succession": None, "possession": None, "reason": "lost"}
    )
    draft = Entry(last.number + 1, last.time, "key", "", body, last.hash, key=stranger.public)
    draft = replace(draft, hash=draft.digest())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            astuple(replace(draft, signature=stranger.sign(draft.message()))),
        )
        connection.commit()


def test_whoever_says_in_the_ledger_that_the_key_is_lost_is_still_a_stranger(folder: Path) -> None:
    """His release was taken for one of the desk, "by an earlier key"."""
    stranger = SigningKey.open(folder / "stranger.pem")
    write(folder / "out.parquet", certificate_of(folder / "out.parquet").signed(stranger))
    assert cli("verify", folder / "out.parquet").code == 5
    append_lost(folder, stranger)
    assert cli("verify", folder / "out.parquet").code == 5


def test_steps_between_keys_cannot_be_bent(folder: Path) -> None:
    """Loops, steps of another desk, steps in another order, and a desk's id that was forged."""
    a, b, c = (SigningKey.open(folder / f"{name}.pem") for name in "abc")
    ab, bc, ba = (Succession.between("desk", *of) for of in ((a, b.public), (b, c.public), (b, a.public)))
    assert succeeds(a.public, c.public, (ab, bc), "desk")
    assert not succeeds(a.public, c.public, (bc, ab), "desk")
    assert not succeeds(a.public, c.public, (ab, bc), "another desk")
    assert not succeeds(c.public, a.public, (ab, bc), "desk")
    assert not succeeds(a.public, c.public, (ab, ba) * 50, "desk")
    assert not succeeds(a.public, c.public, (ab, bc.model_copy(update={"value": ab.value})), "desk")
    theirs = Succession(older=a.public, newer=c.public, value=c.sign(ab.message("desk")))
    assert not succeeds(a.public, c.public, (theirs,), "desk")


def test_a_desk_s_id_does_not_lend_its_keys(folder: Path, tmp_path: Path) -> None:
    """A stranger names the desk of another, and steps that another certificate shows."""
    desk = Desk.open(folder / "desk")
    rotate_key(desk, "a year has gone")
    release(folder, "b.parquet")
    genuine = certificate_of(folder / "b.parquet")
    assert genuine.signature is not None
    assert len(genuine.signature.succession) == 1
    stranger = SigningKey.open(tmp_path / "stranger.pem")
    write(folder / "b.parquet", genuine.signed(stranger, genuine.signature.succession))
    assert cli("verify", folder / "b.parquet").code == 5


# Approvals


def test_a_key_that_approves_does_not_become_the_desk_s_and_approve_all_the_same(tmp_path: Path) -> None:
    """It was accepted once, since it had signed no entry yet, and then the ledger made no sense for good."""
    auditor = SigningKey.open(tmp_path / "auditor.pem")
    folder = place_with(tmp_path / "place", approvers={"the auditor": auditor.public})
    release(folder, "a.parquet")
    (folder / "desk" / "keys" / "signing.next.pem").write_bytes((tmp_path / "auditor.pem").read_bytes())
    (folder / "desk" / "keys" / "signing.next.pem").chmod(0o600)
    rotate_key(Desk.open(folder / "desk"), "the auditor's key signs")
    desk = new_policy(folder / "desk", approvers={"the auditor": auditor.public}, **WIDER)
    assert desk.key.public == auditor.public
    with desk.ledger() as ledger:
        proposed = ledger.history.proposal(desk.policy)
    (folder / "desk" / "approval.json").write_text(proposed.approved(auditor).text())
    with pytest.raises(Refused, match="the desk's own key, which is no second signature"):
        release(folder, "b.parquet")
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.verify() == []


def test_an_approver_sees_how_often_a_release_is_planned(tmp_path: Path) -> None:
    """One came, one went: that another was planned ten times more was not shown."""
    auditor = SigningKey.open(tmp_path / "auditor.pem")
    rows, more, less = (
        {"release": "rows", "columns": 3, "B": 0.25, "epsilon": epsilon, "delta": 1e-9}
        for epsilon in (4.0, 3.0, 2.0)
    )
    approvers = {"the auditor": auditor.public}
    folder = place_with(tmp_path / "place", approvers=approvers, plan=[rows, less])
    release(folder, "a.parquet", delta=1e-9)
    desk = new_policy(folder / "desk", approvers=approvers, plan=[rows] * 11 + [more], reason="more of it")
    with desk.ledger() as ledger:
        lines = ledger.history.proposal(desk.policy).lines()
    (shown,) = [line for line in lines if line.startswith("  plan:")]
    assert shown.count('"epsilon": 4.0') == 10
    assert shown.count('"epsilon": 3.0') == shown.count('"epsilon": 2.0') == 1


# Whose configuration it is


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_a_list_of_signers_that_others_can_write_is_not_believed(folder: Path, mode: int) -> None:
    trust("operator", SigningKey.open(folder / "operator.pem").public)
    config_folder().chmod(mode)
    try:
        with pytest.raises(ValueError, match="others can write whose releases you believe"):
            known_signers()
        assert cli("verify", folder / "out.parquet").code == 2
    finally:
        config_folder().chmod(0o700)
    assert cli("verify", folder / "out.parquet").code == 0


# Files


def test_public_columns_of_a_frame_are_not_said_to_hold(tmp_path: Path) -> None:
    """A frame's certificate does not cover them: anybody can have edited them."""
    table = table_of(60).append_column("region", [["north"] * 60])
    make_desk(tmp_path, public={"region": "it is on the map"})
    done = release_frame(table, tmp_path / "desk")
    frame = done.frame
    place = frame.column_names.index("region")
    pq.write_table(frame.set_column(place, "region", [["south"] * 60]), tmp_path / "out.parquet")
    write(tmp_path / "out.parquet", done.certificate)
    ran = cli("verify", tmp_path / "out.parquet", "--json")
    (found,) = [one for one in ran.json["checks"] if one["what"] == "public columns"]
    assert found["holds"] is None
    assert "anybody can have changed" in words(found["detail"])


@pytest.mark.parametrize("name", ["../outside.parquet", "/dev/zero", "..", ""])
def test_a_certificate_names_no_file_outside_its_folder(tmp_path: Path, name: str) -> None:
    """A stranger's certificate made `verify` read what he named, without an end."""
    folder = place_with(tmp_path / "place")
    release(folder, "parts")
    output = folder / "parts"
    c = certificate_of(output)
    first, *others = c.output.files
    files = (first.model_copy(update={"name": name}), *others)
    forged = c.model_copy(update={"output": c.output.model_copy(update={"files": files})})
    found = verify(output, forged.signed(SigningKey.open(tmp_path / "stranger.pem")))
    assert any("no name of a file" in check.detail for check in found.failed)


def test_a_signature_of_one_thing_is_none_of_another(folder: Path) -> None:
    """Certificates, requests, entries, marks, steps, approvals and journals are told apart by their words."""
    key = Desk.open(folder / "desk").key
    certificate = read_certificate(certificate_path(folder / "out.parquet"))
    with Ledger(folder / "desk" / "ledger.db") as ledger:
        entry, head = ledger.entries[-1], ledger.reading.head()
    messages = [
        certificate.message(), entry.message(), head.message(),
        Succession(older="a", newer="b", value="").message("desk"),
    ]  # fmt: skip
    begins = {message.split(b"{")[0][:22] for message in messages}
    assert len(begins) == len(messages)
    assert json.loads(certificate.message())["format"] == "targetdp certificate 2"
    for message in messages:
        signature = key.sign(message)
        assert [is_signed(key.public, signature, one) for one in messages].count(True) == 1

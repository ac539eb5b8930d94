"""Where a policy names approvers, what loosens it needs the signature of one of them."""

import json
import sqlite3
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from support.release import LIMIT, cli, look, new_policy, nothing_changes, place_with, release, words
from targetdp._files import canonical
from targetdp.release import Desk, Ledger, LedgerDamaged, Refused, SigningKey, read_proposal, write_proposal
from targetdp.release._ledger._entries import Entry
from targetdp.release._trust._approval import Approval, PolicyChange
from targetdp.release._trust._loosened import loosened

WIDER: dict[str, Any] = {"limit": (0.25, 200.0, 0.1), "reason": "a second survey"}


@pytest.fixture
def auditor(tmp_path: Path) -> SigningKey:
    return SigningKey.open(tmp_path / "auditor.pem")


@pytest.fixture
def approvers(auditor: SigningKey) -> dict[str, str]:
    return {"the auditor": auditor.public}


@pytest.fixture
def folder(tmp_path: Path, approvers: dict[str, str]) -> Path:
    """A desk whose policy, which names an approver, is on record with a release."""
    folder = place_with(tmp_path / "place", approvers=approvers)
    release(folder, "a.parquet")
    return folder


def proposal(folder: Path) -> PolicyChange:
    """What the desk proposes, as its file says."""
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        path = write_proposal(desk, ledger.history)
    assert path == folder / "desk" / "proposed.json"
    return read_proposal(path)


def put(folder: Path, approval: Approval) -> None:
    (folder / "desk" / "approval.json").write_text(approval.text(), encoding="utf-8")


def refusal(folder: Path) -> str:
    """Why nothing is released; nothing changes but the log and what is proposed."""
    with pytest.raises(Refused) as error:
        release(folder, "refused.parquet")
    assert not (folder / "refused.parquet").exists()
    return words(str(error.value))


def problems(folder: Path) -> list[str]:
    with Desk.open(folder / "desk").ledger() as ledger:
        return ledger.verify()


# The way it goes


def test_a_wider_limit_needs_an_approval_which_goes_on_record(
    folder: Path, auditor: SigningKey, approvers: dict[str, str]
) -> None:
    new_policy(folder / "desk", approvers=approvers, **WIDER)
    told = refusal(folder)
    assert "needs an approval: there is none" in told
    assert f"one of the auditor ({auditor.fingerprint})" in told
    assert len(look(folder).problems) == 1
    put(folder, proposal(folder).approved(auditor))
    assert look(folder).problems == ()
    release(folder, "b.parquet")
    assert problems(folder) == []
    with Desk.open(folder / "desk").ledger() as ledger:
        (first, second) = [json.loads(e.body)["approval"] for e in ledger.entries if e.kind == "policy"]
    assert first is None
    assert second["key"] == auditor.public
    log = words(cli("ledger", "log", "--desk", folder / "desk").out)
    assert f"approved with key {auditor.fingerprint}" in log
    release(folder, "c.parquet")


def test_commands_of_both_sides(
    folder: Path, auditor: SigningKey, approvers: dict[str, str], tmp_path: Path
) -> None:
    """The auditor has her key and a file that she was sent, and nothing else."""
    new_policy(folder / "desk", approvers=approvers, **WIDER)
    ran = cli("status", "--desk", folder / "desk")
    assert (ran.code, "needs an approval" in words(ran.err)) == (0, True)
    sent = (folder / "desk" / "proposed.json").rename(tmp_path / "proposed.json")
    key, back = tmp_path / "auditor.pem", tmp_path / "approval.json"
    ran = cli("approve", sent, "--out", back, "--key", key)
    assert (ran.code, "nobody is at the terminal" in words(ran.err)) == (2, True)
    assert not back.exists()
    ran = cli("approve", sent, "--out", back, "--key", key, "--yes")
    assert ran.code == 0, ran.err
    said = words(ran.err)
    assert "limit.epsilon: 100.0 → 200.0" in said
    assert "the limit was" in said
    assert "why: a second survey" in said
    assert cli("approve", sent, "--out", back, "--key", key, "--yes").code == 2, "it exists"
    back.rename(folder / "desk" / "approval.json")
    release(folder, "b.parquet")
    assert cli("ledger", "verify", "--desk", folder / "desk").code == 0


def test_whoever_is_asked_may_say_no(
    folder: Path, approvers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_policy(folder / "desk", approvers=approvers, **WIDER)
    proposal(folder)
    terminal = mock.Mock(isatty=lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    asked = ("approve", folder / "desk" / "proposed.json", "--out", tmp_path / "no.json")
    with mock.patch("targetdp.cli._holder_tools.sys", mock.Mock(stdin=terminal, stderr=terminal)):
        for answer in (False, True):
            with mock.patch("typer.confirm", return_value=answer):
                ran = cli(*asked, "--key", tmp_path / "auditor.pem")
            assert (ran.code, (tmp_path / "no.json").exists()) == ((0, True) if answer else (2, False))


def test_what_loosens_nothing_needs_nobody(folder: Path, approvers: dict[str, str]) -> None:
    new_policy(folder / "desk", features=("calls", "texts"), approvers=approvers, most=(50.0, 0.5))
    release(folder, "b.parquet")
    assert not (folder / "desk" / "proposed.json").exists()
    assert problems(folder) == []


def test_the_reason_is_part_of_it_and_asked_for_first(folder: Path, approvers: dict[str, str]) -> None:
    new_policy(folder / "desk", approvers=approvers, limit=WIDER["limit"])
    told = refusal(folder)
    assert "say why, at the top of the file" in told
    assert "approval" not in told
    assert not (folder / "desk" / "proposed.json").exists()


def test_looking_changes_nothing(folder: Path, approvers: dict[str, str]) -> None:
    new_policy(folder / "desk", approvers=approvers, **WIDER)
    with nothing_changes(folder):
        assert len(look(folder).problems) == 1


@pytest.mark.parametrize("named", [{}, {"somebody else": 1}, {"the auditor": 1}, {"another name": 0}])
def test_other_approvers_are_a_loosening(
    folder: Path, auditor: SigningKey, tmp_path: Path, named: dict[str, int]
) -> None:
    """Otherwise whoever wants more would first remove them."""
    other = SigningKey.open(tmp_path / "other.pem")
    keys = (auditor.public, other.public)
    new_policy(folder / "desk", approvers={n: keys[k] for n, k in named.items()}, reason="she left")
    assert "other people approve, or nobody does" in refusal(folder)
    put(folder, proposal(folder).model_copy().approved(auditor))
    release(folder, "b.parquet")
    assert problems(folder) == []


def test_the_first_approvers_need_nobody(tmp_path: Path, approvers: dict[str, str]) -> None:
    folder = place_with(tmp_path / "place")
    release(folder, "a.parquet")
    new_policy(folder / "desk", approvers=approvers)
    release(folder, "b.parquet")
    new_policy(folder / "desk", approvers=approvers, **WIDER)
    assert "needs an approval" in refusal(folder)


def test_the_desk_s_own_key_is_no_approver(tmp_path: Path) -> None:
    folder = place_with(tmp_path / "place")
    desk = Desk.open(folder / "desk")
    new_policy(folder / "desk", approvers={"myself": desk.key.public})
    assert "approvers names the desk's own key (myself)" in refusal(folder)


# Approvals that do not hold


def wider(folder: Path, approvers: dict[str, str], **more: Any) -> PolicyChange:
    new_policy(folder / "desk", approvers=approvers, **(WIDER | more))
    return proposal(folder)


def test_an_approval_of_another_policy_does_not_hold(
    folder: Path, auditor: SigningKey, approvers: dict[str, str]
) -> None:
    approval = wider(folder, approvers).approved(auditor)
    wider(folder, approvers, limit=(0.25, 201.0, 0.1))
    put(folder, approval)
    assert "it is for another change" in refusal(folder)
    wider(folder, approvers, reason="another reason")
    assert "it is for another change" in refusal(folder)


def test_an_approval_of_another_desk_does_not_hold(
    folder: Path, auditor: SigningKey, approvers: dict[str, str], tmp_path: Path
) -> None:
    other = place_with(tmp_path / "other", approvers=approvers)
    release(other, "a.parquet", new_people="a test")
    put(folder, wider(other, approvers).approved(auditor))
    wider(folder, approvers)
    assert "it is for another change: another policy, desk or time" in refusal(folder)


def test_an_approval_serves_once(folder: Path, auditor: SigningKey, approvers: dict[str, str]) -> None:
    """Back to the first policy needs none, or another; the same step again is another one."""
    first = wider(folder, approvers)
    put(folder, first.approved(auditor))
    release(folder, "b.parquet")
    back: dict[str, Any] = {"approvers": approvers, "limit": LIMIT}
    new_policy(folder / "desk", **back, reason="back")
    put(folder, proposal(folder).approved(auditor))
    release(folder, "c.parquet")
    new_policy(folder / "desk", approvers=approvers, **WIDER)
    put(folder, first.approved(auditor))
    told = refusal(folder)
    assert "say why" in told, "a reason serves once, too"
    again = wider(folder, approvers, reason="a third survey")
    assert again.number == 3
    replayed = again.model_copy(update={"number": 1}).approved(auditor)
    put(folder, replayed)
    assert "it is for another change" in refusal(folder)


def test_whom_only_the_new_policy_names_cannot_approve_it(folder: Path, tmp_path: Path) -> None:
    other = SigningKey.open(tmp_path / "other.pem")
    proposed = wider(folder, {"somebody else": other.public})
    with pytest.raises(ValueError, match="is none of the approvers whom the policy on record names"):
        proposed.approved(other)
    put(folder, Approval(key=other.public, value=other.sign(proposed.message())))
    assert "signed by nobody whom the policy on record names as an approver" in refusal(folder)


def test_a_forged_signature_does_not_hold(
    folder: Path, auditor: SigningKey, approvers: dict[str, str], tmp_path: Path
) -> None:
    proposed, thief = wider(folder, approvers), SigningKey.open(tmp_path / "thief.pem")
    put(folder, Approval(key=auditor.public, value=thief.sign(proposed.message())))
    assert "it is for another change" in refusal(folder)
    # What an approver has signed of something else is no approval.
    put(folder, Approval(key=auditor.public, value=auditor.sign(proposed.message()[9:])))
    assert "it is for another change" in refusal(folder)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"7", b"\xff", b'{"format": "targetdp approval 1"}', b"[" * 100_000, b"0" * 5_000_000,
     b'{"format": "targetdp approval 2", "key": "x", "value": "y"}',
     b'{"format": "targetdp approval 1", "key": "", "value": ""}'],
    ids=range(10),
)  # fmt: skip
def test_what_is_no_approval_is_told_and_nothing_more(
    folder: Path, approvers: dict[str, str], content: bytes
) -> None:
    wider(folder, approvers)
    (folder / "desk" / "approval.json").write_bytes(content)
    assert "needs an approval: " in refusal(folder)


# Entries that are written by hand


def append_policy(folder: Path, policy: dict[str, Any], approval: dict[str, Any] | None) -> None:
    """What a holder can write who has the desk's key, and another program."""
    desk, path = Desk.open(folder / "desk"), folder / "desk" / "ledger.db"
    with Ledger(path) as ledger:
        last = ledger.entries[-1]
    body = canonical({"policy": policy, "changed": {}, "approval": approval})
    draft = Entry(last.number + 1, last.time, "policy", "", body, last.hash, key=desk.key.public)
    draft = replace(draft, hash=draft.digest())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            astuple(replace(draft, signature=desk.key.sign(draft.message()))),
        )
        connection.commit()


@pytest.mark.parametrize("kind", ["none", "of another key", "of the desk", "malformed", "good"])
def test_a_policy_that_nobody_approved_is_found_in_the_ledger(
    folder: Path, auditor: SigningKey, approvers: dict[str, str], tmp_path: Path, kind: str
) -> None:
    proposed = wider(folder, approvers)
    other, own = SigningKey.open(tmp_path / "other.pem"), Desk.open(folder / "desk").key

    def by(key: SigningKey) -> dict[str, Any]:
        signed = Approval(key=key.public, value=key.sign(proposed.message()))
        return signed.model_dump(mode="json")

    made = {
        "none": None, "of another key": by(other), "of the desk": by(own), "malformed": {"key": 7},
        "good": by(auditor),
    }  # fmt: skip
    append_policy(folder, proposed.after, made[kind])
    if kind == "good":
        assert problems(folder) == []
        return
    (found,) = problems(folder)
    assert "(policy) makes no sense" in found
    assert kind == "malformed" or "and needs an approval" in found
    ran = cli("ledger", "verify", "--desk", folder / "desk")
    assert ran.code == 1
    with pytest.raises(LedgerDamaged):
        release(folder, "b.parquet")


def test_the_ledger_itself_refuses_what_nobody_approved(folder: Path, approvers: dict[str, str]) -> None:
    wider(folder, approvers)
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger, pytest.raises(ValueError, match="and needs an approval: there is none"):
        ledger.record_policy(desk.policy, 2)
    assert problems(folder) == []


# What an approver is sent


def test_the_approver_is_shown_everything_that_changes(folder: Path, approvers: dict[str, str]) -> None:
    new_policy(
        folder / "desk", features=("calls", "texts", "topups", "age"), approvers=approvers,
        public={"region": "it is on the map"}, pseudonyms=False, **WIDER,
    )  # fmt: skip
    proposed = proposal(folder)
    said = "\n".join(proposed.lines())
    assert 'columns.release: came: "age"' in said
    assert 'columns.public.region: nothing → "it is on the map"' in said
    before, after = proposed.policies()
    assert all(one in said for one in loosened(before, after))


def test_words_of_a_stranger_play_no_tricks_on_a_terminal(folder: Path, approvers: dict[str, str]) -> None:
    proposed = wider(folder, approvers)
    column = "calls\x1b[2K\r\u202esafe"
    columns = {"release": [*proposed.after["columns"]["release"], column], "public": {}}
    tricked = proposed.model_copy(update={"after": proposed.after | {"columns": columns}})
    assert all(line.isprintable() for line in tricked.lines())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": "targetdp proposal 9"}, "format"),
        ({"number": 0}, "number"),
        ({"number": "1"}, "number"),
        ({"before": []}, "before"),
        ({"after": {"name": "x"}}, "a policy of the proposal is none"),
        ({"more": 1}, "more"),
    ],
)
def test_a_proposal_that_is_none_is_refused(
    folder: Path, approvers: dict[str, str], tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    sent = tmp_path / "sent.json"
    sent.write_text(json.dumps(wider(folder, approvers).model_dump(mode="json") | change))
    ran = cli("approve", sent, "--out", tmp_path / "out.json", "--key", tmp_path / "auditor.pem", "--yes")
    assert (ran.code, told in ran.err) == (2, True), ran.err
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b" " * 5_000_000])
def test_a_file_that_is_no_proposal_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "sent.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"proposal .* is none|bytes"):
        read_proposal(tmp_path / "sent.json")
    with pytest.raises(ValueError, match="cannot be read"):
        read_proposal(tmp_path / "nothing.json")


def test_a_key_that_may_not_approve_is_told_so(
    folder: Path, approvers: dict[str, str], tmp_path: Path
) -> None:
    wider(folder, approvers)
    SigningKey.open(tmp_path / "other.pem")
    asked = ("approve", folder / "desk" / "proposed.json", "--out", tmp_path / "out.json", "--yes")
    ran = cli(*asked, "--key", tmp_path / "other.pem")
    assert (ran.code, "is none of the approvers" in words(ran.err)) == (2, True)
    ran = cli(*asked, "--key", tmp_path / "gone.pem")
    assert (ran.code, "does not exist" in words(ran.err)) == (2, True)
    assert not (tmp_path / "gone.pem").exists()


def test_an_approver_s_key_must_be_one(folder: Path) -> None:
    with pytest.raises(ValueError, match="is not an Ed25519 public key"):
        _ = new_policy(folder / "desk", approvers={"the auditor": "no key"}).policy


def test_a_proposal_of_many_columns_is_read_at_once(folder: Path, approvers: dict[str, str]) -> None:
    """Whoever is sent a huge one is not kept waiting: the work grows with its length, and no faster."""
    proposed = wider(folder, approvers)
    names = [f"column {number}" for number in range(60_000)]
    before, after = (
        one | {"columns": {"release": [*one["columns"]["release"], *more], "public": {}}}
        for one, more in ((proposed.before, names[:-1]), (proposed.after, names[1:]))
    )
    said = proposed.model_copy(update={"before": before, "after": after}).lines()
    assert '  columns.release: came: "column 59999"; went: "column 0"' in said


def test_columns_in_another_order_are_shown_as_they_are(folder: Path, approvers: dict[str, str]) -> None:
    proposed = wider(folder, approvers)
    columns = {"release": proposed.after["columns"]["release"][::-1], "public": {}}
    said = proposed.model_copy(update={"after": proposed.after | {"columns": columns}}).lines()
    assert any(line.startswith('  columns.release: ["calls"') and "→" in line for line in said)

"""Desks: made whole or not at all, found or an error, one for its people, for its owner alone."""

import fcntl
import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.release import (
    cli,
    command,
    look,
    make_desk,
    new_policy,
    nothing_changes,
    place_with,
    policy_text,
    release,
    request_of,
    snapshot,
    table_of,
    words,
    write_parquet,
    write_scales,
)
from targetdp._files import must_be_local, must_hold_locks
from targetdp._files._local_disk import NETWORK
from targetdp.release import Desk, Ledger, NoDeskError, Refused, known_desks, privatize
from targetdp.release import _desk as desk_module
from targetdp.release._desk import find_desk


@pytest.fixture(autouse=True)
def own_list(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list of desks for each test."""
    config = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    return config / "targetdp" / "desks.jsonl"


# Making one


def test_a_desk_has_everything_and_is_for_its_owner_alone(tmp_path: Path, own_list: Path) -> None:
    desk = make_desk(tmp_path)
    there = {path.relative_to(desk.path).as_posix() for path in desk.path.rglob("*")}
    assert there == {
        "desk.json", "policy.toml", "scales.toml", "ledger.db", "log.jsonl", "keys", "keys/signing.pem",
        "keys/tags.key", "keys/pseudonyms.key",
    }  # fmt: skip
    assert stat.S_IMODE(desk.path.stat().st_mode) == 0o700
    for path in desk.path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert Desk.open(desk.path) == desk
    assert (desk.name, desk.key.public) == ("people", Desk.open(desk.path).key.public)
    assert list(known_desks()) == [(desk.id, desk.path)]
    assert stat.S_IMODE(own_list.stat().st_mode) & 0o077 == 0
    with desk.ledger() as ledger:
        assert ledger.verify() == []
    assert "people" in desk._repr_html_()


def test_two_desks_are_never_alike_but_for_the_tags_by_which_one_user_compares_them(tmp_path: Path) -> None:
    one, two = (make_desk(place_in(tmp_path / name)) for name in ("a", "b"))
    assert one.id != two.id
    assert one.key.public != two.key.public
    assert one.pseudonym_key != two.pseudonym_key
    assert one.names().tag_key == two.names().tag_key


def place_in(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("broken", ["", "name = 3", "no toml", policy_text(limit=(3.0, 1.0, 0.1))])
def test_a_text_that_is_no_policy_makes_no_desk(tmp_path: Path, broken: str) -> None:
    with nothing_changes(tmp_path), pytest.raises(ValueError, match=r"policy .*/desk/policy\.toml"):
        Desk.create(tmp_path / "desk", broken)


def test_a_failure_on_the_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for step in ("targetdp.release._desk.secret_key", "targetdp.release._desk.sync_folder"):
        with monkeypatch.context() as patch:
            patch.setattr(step, full)
            with nothing_changes(tmp_path), pytest.raises(OSError, match="No space"):
                Desk.create(tmp_path / "desk", policy_text())
    with pytest.raises(ValueError, match=r"absent.* does not exist: create it first"):
        Desk.create(tmp_path / "absent" / "desk", policy_text())
    (tmp_path / "desk").mkdir()
    with pytest.raises(ValueError, match="exists: name a folder that does not"):
        Desk.create(tmp_path / "desk", policy_text())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("desk", "another"), ("desk", "below/desk"), ("desk", "below/deep/other"),
        ("other", "desk"), ("other", "another"), ("other", "below/desk"),
    ],
)  # fmt: skip
def test_none_is_made_beside_or_below_another(tmp_path: Path, first: str, second: str) -> None:
    made = make_desk(tmp_path, at=first)
    place_in((tmp_path / second).parent)
    if first == "other" and "/" in second:
        # Not under the default name: it is not what a command below would find, so nobody is confused.
        assert Desk.create(tmp_path / second, policy_text()).id != made.id
        return
    with nothing_changes(tmp_path), pytest.raises(ValueError, match=f"there is a desk already .{made.path}"):
        Desk.create(tmp_path / second, policy_text())


def test_none_is_made_inside_another(tmp_path: Path) -> None:
    made = make_desk(tmp_path, at="other")
    (made.path / "drafts").mkdir()
    for place in (made.path / "desk", made.path / "drafts" / "desk"):
        with pytest.raises(ValueError, match="there is a desk already"):
            Desk.create(place, policy_text())


def test_a_link_does_not_lead_out_of_another_s_sight(tmp_path: Path) -> None:
    make_desk(place_in(tmp_path / "data"))
    place_in(tmp_path / "data" / "below")
    place_in(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "link").symlink_to(tmp_path / "data" / "below")
    with pytest.raises(ValueError, match="there is a desk already"):
        Desk.create(tmp_path / "elsewhere" / "link" / "desk", policy_text())


# Finding one


def test_it_is_found_as_git_finds_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk(tmp_path)
    deep = place_in(tmp_path / "a" / "b")
    for folder in (tmp_path, deep, desk.path, desk.path / "keys"):
        monkeypatch.chdir(folder)
        assert Desk.open() == desk
    other = make_desk(place_in(tmp_path.parent / f"{tmp_path.name} other"))
    assert Desk.open(other.path) == other, "an argument comes first"
    assert Desk.open(other.path.parent) == other, "the folder that it is in will do"
    monkeypatch.setenv("TARGETDP_DESK", str(other.path))
    assert Desk.open() == other, "then the environment"
    assert Desk.open(desk.path) == desk
    shutil.rmtree(other.path.parent)


def test_the_nearest_one_is_found(tmp_path: Path) -> None:
    make_desk(place_in(tmp_path / "a" / "b"))
    above = make_desk(tmp_path)
    assert find_desk(tmp_path / "a" / "b" / "c") == tmp_path / "a" / "b" / "desk"
    assert find_desk(tmp_path / "a") == above.path


@pytest.mark.parametrize("named", ["dekc", "desk/typo", "../desk"])
def test_a_mistyped_desk_is_an_error_and_no_fresh_budget(
    tmp_path: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place_with(place_in(tmp_path / "holder"))
    monkeypatch.chdir(folder)
    with nothing_changes(tmp_path), pytest.raises(NoDeskError, match="there is no desk at") as refused:
        privatize("in.parquet", "out.parquet", desk=named, request=request_of())
    assert str(folder / "desk") in str(refused.value), "the user's own ones are named"
    monkeypatch.setenv("TARGETDP_DESK", named)
    with nothing_changes(tmp_path), pytest.raises(NoDeskError, match="there is no desk at"):
        privatize("in.parquet", "out.parquet", request=request_of())


def test_from_another_folder_a_command_finds_its_desk_or_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As cron starts it: in a folder that has nothing to do with the table."""
    folder, elsewhere = place_with(place_in(tmp_path / "holder")), place_in(tmp_path / "elsewhere")
    given = ("privatize", folder / "in.parquet", folder / "out.parquet", "--B", "0.25", "--epsilon", "4")
    monkeypatch.chdir(elsewhere)
    with nothing_changes(tmp_path):
        ran = cli(*given, "--yes")
        assert ran.code != 0
        assert "there is no desk here or above, and nothing is released without one" in words(ran.err)
    for relative in (("--desk", "desk"), ("--desk", "holder/desk")):
        with nothing_changes(tmp_path):
            assert cli(*given, "--yes", *relative).code != 0
    assert list(elsewhere.iterdir()) == []
    assert cli(*given, "--yes", "--desk", folder / "desk").code == 0
    assert len(list(known_desks())) == 1


def test_a_desk_that_lost_its_ledger_does_not_begin_anew(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder)
    (folder / "desk" / "ledger.db").unlink()
    with pytest.raises(ValueError, match="has no ledger: without it nobody knows what was spent"):
        release(folder, "again.parquet")
    assert not (folder / "desk" / "ledger.db").exists()


def test_a_desk_that_lost_a_key_does_not_make_another(tmp_path: Path) -> None:
    """With a new key of tags the ledger would know nobody again."""
    folder = place_with(tmp_path, pseudonyms=True)
    release(folder)
    for key in ("tags.key", "pseudonyms.key", "signing.pem"):
        place = folder / "desk" / "keys" / key
        kept = place.read_bytes()
        place.unlink()
        with pytest.raises(ValueError, match=f"{key} (does not exist|is gone): bring it back"):
            release(folder, "again.parquet")
        assert not place.exists()
        place.write_bytes(kept)
        place.chmod(0o600)
    release(folder, "again.parquet")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "cannot be read"),
        ("[]", "cannot be read"),
        ("{}", "cannot be read"),
        ('{"format": "targetdp desk 9", "id": "x"}', "was made by another version of targetdp"),
    ],
)
def test_what_is_no_desk_is_said(tmp_path: Path, content: str, message: str) -> None:
    desk = make_desk(tmp_path)
    (desk.path / "desk.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        Desk.open(desk.path)


def test_a_folder_that_is_closed_to_us_is_no_desk_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Path.exists

    def closed(self: Path, **more: Any) -> bool:
        if self.parent == tmp_path / "desk":
            raise PermissionError(13, "Permission denied")
        return kept(self, **more)

    monkeypatch.setattr(Path, "exists", closed)
    deep = place_in(tmp_path / "ours" / "deep")
    assert find_desk(deep) is None
    desk = make_desk(tmp_path / "ours")
    assert find_desk(deep) == desk.path


# Only one, for its owner alone, on one machine


def test_a_copy_is_refused(tmp_path: Path) -> None:
    folder = place_with(place_in(tmp_path / "holder"))
    shutil.copytree(folder, tmp_path / "copy")
    with nothing_changes(tmp_path), pytest.raises(ValueError, match=r"copy/desk is a copy of .*holder/desk"):
        release(tmp_path / "copy")
    assert Desk.open(folder / "desk").id, "the one that was there first goes on"
    # One that is gone is nobody's rival: the desk has moved.
    shutil.rmtree(folder)
    moved = Desk.open(tmp_path / "copy" / "desk")
    assert not moved.was_known
    assert "you have never used this desk before" in " ".join(look(tmp_path / "copy").warnings)
    release(tmp_path / "copy")
    assert [path for _, path in known_desks()] == [folder / "desk", tmp_path / "copy" / "desk"]
    assert Desk.open(moved.path).was_known


def test_another_name_for_the_same_folder_is_no_copy(tmp_path: Path) -> None:
    desk = make_desk(place_in(tmp_path / "holder"))
    (tmp_path / "link").symlink_to(tmp_path / "holder")
    assert Desk.open(tmp_path / "link" / "desk").id == desk.id


def test_a_list_that_cannot_be_read_or_written_stops_nobody(tmp_path: Path, own_list: Path) -> None:
    desk = make_desk(tmp_path)
    own_list.write_text('no json\n[1]\n{"id": 3}\n{"path": "x"}\n')
    assert [path for _, path in known_desks()] == []
    assert Desk.open(desk.path) == desk
    assert not Desk.open(desk.path).was_known
    own_list.unlink()
    own_list.mkdir()
    assert Desk.open(desk.path) == desk


@pytest.mark.parametrize("mode", [0o750, 0o710, 0o701, 0o707, 0o770])
def test_a_desk_that_others_can_get_at_is_refused(tmp_path: Path, mode: int) -> None:
    folder = place_with(tmp_path)
    (folder / "desk").chmod(mode)
    with nothing_changes(tmp_path), pytest.raises(ValueError, match=f"permission 0{mode:o}.*chmod 700"):
        release(folder)
    (folder / "desk").chmod(0o700)
    release(folder)


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A mount table that a test writes."""
    table, kept = tmp_path / "mounts", Path.read_text

    def read(self: Path, *given: Any, **more: Any) -> str:
        return kept(table if str(self) == "/proc/self/mounts" else self, *given, **more)

    monkeypatch.setattr(Path, "read_text", read)
    return table  # type: ignore[return-value]


def mounted(kind: str, place: Path) -> str:
    escaped = str(place).replace("\\", "\\134").replace(" ", "\\040")
    return f"/dev/root / ext4 rw 0 0\nserver:/share {escaped} {kind} rw,vers=4 0 0\n"


@pytest.mark.parametrize("kind", sorted(NETWORK))
def test_network_file_systems_are_refused(tmp_path: Path, mounts: Path, kind: str) -> None:
    folder = place_in(tmp_path / "share" / "deep")
    mounts.write_text(mounted(kind, tmp_path / "share"))
    with pytest.raises(ValueError, match=rf"is on a network \({kind}\), where two machines could spend"):
        Desk.create(folder / "desk", policy_text())
    assert list(folder.iterdir()) == []
    mounts.write_text(mounted("ext4", tmp_path / "share"))
    desk = make_desk(folder)
    mounts.write_text(mounted(kind, tmp_path / "share"))
    with pytest.raises(ValueError, match="is on a network"):
        Desk.open(desk.path)


@pytest.mark.parametrize("name", ["share", "with space", "données", "back\\slash"])
def test_mount_points_of_any_name_are_known(tmp_path: Path, mounts: Path, name: str) -> None:
    folder = place_in(tmp_path / name / "deep")
    mounts.write_text(mounted("nfs4", tmp_path / name), encoding="utf-8")
    with pytest.raises(ValueError, match=r"is on a network \(nfs4\)"):
        must_be_local(folder)
    must_be_local(tmp_path)
    # The nearest mount counts, and of two on one folder the later.
    mounts.write_text(mounted("nfs4", tmp_path) + mounted("ext4", tmp_path / name), encoding="utf-8")
    must_be_local(folder)
    mounts.write_text(mounted("ext4", tmp_path / name) + mounted("cifs", tmp_path / name), encoding="utf-8")
    with pytest.raises(ValueError, match="cifs"):
        must_be_local(folder)
    mounts.unlink()
    must_be_local(folder)


def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    must_hold_locks(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)  # a lock that nobody else sees
    with nothing_changes(tmp_path), pytest.raises(ValueError, match="is on a file system without locks"):
        Desk.create(tmp_path / "desk", policy_text())


def test_a_ledger_of_the_former_version_is_refused_in_a_sentence(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    old = folder / "desk" / "ledger.db"
    with sqlite3.connect(old) as connection:
        connection.execute(f"PRAGMA application_id = {0x74647031}")
    with pytest.raises(ValueError, match="a ledger of an older targetdp, which kept budgets by declared pop"):
        release(folder)
    with pytest.raises(ValueError, match=r"keep it for the record, and begin a desk \(targetdp init\)"):
        Ledger(old)


# What its owner changes


def test_a_changed_policy_is_taken_as_it_stands(tmp_path: Path) -> None:
    """Also by whoever has opened the desk before, in a notebook."""
    folder = place_with(tmp_path)
    desk = Desk.open(folder / "desk")
    assert desk.policy.release.epsilon == 100.0
    new_policy(desk, most=(2.0, 0.5))
    with pytest.raises(Refused, match="epsilon = 4 is more than one release may have: ask for at most 2"):
        release(folder, desk=desk)
    release(folder, desk=desk, epsilon=2.0)


LOOSER: dict[str, tuple[dict[str, Any], str]] = {
    "ε": ({"limit": (0.25, 31.0, 0.4)}, r"the limit was .*ε=30, .* and becomes .*ε=31,"),
    "δ": ({"limit": (0.25, 30.0, 0.5)}, "the limit was"),
    "B": ({"limit": (0.2, 30.0, 0.4)}, "the limit was"),
    "one release": ({"most": (5.0, 0.5)}, "one release may ask for more"),
    "one release's δ": ({"most": (4.0, 0.6)}, "one release may ask for more"),
    "pseudonyms": ({"pseudonyms": False}, "ids go out in clear"),
    "spelling": ({"spelling": {"case": "upper"}}, "people are identified in another way"),
    "public": ({"public": {"region": "it is printed"}}, "region goes out as it is"),
    "columns": ({"features": ("calls", "texts", "topups", "more")}, "more may be released"),
    "scales": ({"scales": "private", "share": 0.9}, "columns are scaled in another way"),
    "gaps": ({"gaps": {"all": 0}}, "missing values are filled in another way"),
    "keys": ({"requests": {"accept": "any"}, "keys": {}}, "other requests are answered"),
}
BEFORE: dict[str, Any] = {"limit": (0.25, 30.0, 0.4), "most": (4.0, 0.5), "pseudonyms": True}


@pytest.mark.parametrize("what", LOOSER)
def test_allowing_more_needs_a_new_reason_that_goes_on_record(tmp_path: Path, what: str) -> None:
    change, said = LOOSER[what]
    rows = 2_200  # as many as private scales need
    table = table_of(rows, region=["north"] * rows, more=[float(i) for i in range(rows)])
    write_parquet(tmp_path / "in.parquet", table)
    desk = make_desk(tmp_path)
    before = BEFORE | {"reason": "it begins"}
    asked = request_of(epsilon=1.0, features=("calls", "texts"))
    if what == "keys":
        asked = asked.signed(desk.key)
        before |= {"requests": {"accept": "signed"}, "keys": {"ministry": desk.key.public}}
    new_policy(desk, **before)
    release(tmp_path, "one.parquet", request=asked)
    write_scales(desk.path / "scales.toml", features=("calls", "texts", "topups", "more"))
    for reason in ("it begins", None):
        new_policy(desk, **before | change | {"reason": reason})
        with nothing_changes(desk.path / "keys"), pytest.raises(Refused, match=said) as refused:
            release(tmp_path, "two.parquet", request=asked)
        assert 'say why, at the top of the file: reason = "…"; it goes on record' in str(refused.value)
    assert not (tmp_path / "two.parquet").exists()
    new_policy(desk, **before | change | {"reason": "the board has decided"})
    release(tmp_path, "two.parquet", request=asked)
    with Desk.open(desk.path).ledger() as ledger:
        entry = [one for one in ledger.entries if one.kind == "policy"][-1]
        body = json.loads(entry.body)
        assert body["policy"]["reason"] == "the board has decided"
        assert body["changed"]["reason"] == ["it begins", "the board has decided"]
        assert len(body["changed"]) >= 2
        assert ledger.history.policy_version == 2


def test_a_stricter_policy_needs_no_reason_and_goes_on_record_too(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "one.parquet")
    new_policy(folder / "desk", most=(4.0, 0.1), pseudonyms=True)
    done = release(folder, "two.parquet")
    assert done.certificate.desk.policy == 2
    assert done.certificate.desk.policy_sha256 == Desk.open(folder / "desk").policy.sha256
    release(folder, "three.parquet")
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.history.policy_version == 2
        body = json.loads([one for one in ledger.entries if one.kind == "policy"][-1].body)
    assert body["changed"]["release.epsilon"] == [100.0, 4.0]


def test_another_limit_needs_a_reason_also_a_smaller_one_for_both_count(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    first = release(folder, "one.parquet").certificate
    assert (first.together.near.epsilon, first.together.near.delta) == (100.0, 0.1)
    new_policy(folder / "desk", limit=(0.25, 50.0, 0.1))
    with pytest.raises(Refused, match=r"the limit was .* and becomes .*, and δ of both is stated"):
        release(folder, "two.parquet")
    new_policy(folder / "desk", limit=(0.25, 50.0, 0.1), reason="a stricter law")
    together = release(folder, "two.parquet").certificate.together
    assert (together.near.epsilon, together.limits) == (100.0, 2)
    assert together.near.delta == pytest.approx(0.2)
    assert together.near.delta >= 0.2


def test_a_reason_serves_once(tmp_path: Path) -> None:
    """One that was given before, and taken back since, is not given anew."""
    folder = place_with(tmp_path, limit=(0.25, 50.0, 0.1))
    for name, limit, reason in (
        ("a", 50.0, None), ("b", 60.0, "a pilot"), ("c", 50.0, "it is over"),
    ):  # fmt: skip
        new_policy(folder / "desk", limit=(0.25, limit, 0.1), reason=reason)
        release(folder, f"{name}.parquet")
    new_policy(folder / "desk", limit=(0.25, 60.0, 0.1), reason="a pilot")
    with pytest.raises(Refused, match="allows more than the policy on record"):
        release(folder, "d.parquet")
    new_policy(folder / "desk", limit=(0.25, 60.0, 0.1), reason="a second pilot")
    release(folder, "d.parquet")


def test_other_public_scales_are_another_policy(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    first = release(folder, "a.parquet").certificate.desk
    scales = folder / "desk" / "scales.toml"
    scales.write_text(scales.read_text().replace("8.0", "9.0"))
    with pytest.raises(Refused, match="columns are scaled in another way"):
        release(folder, "b.parquet")
    new_policy(folder / "desk", reason="a newer census")
    second = release(folder, "b.parquet").certificate.desk
    assert (first.policy, second.policy) == (1, 2)
    assert first.policy_sha256 != second.policy_sha256


@pytest.mark.parametrize("file", ["policy.toml", "scales.toml"])
def test_a_policy_that_is_changed_while_somebody_thinks_is_not_what_was_agreed_to(
    tmp_path: Path, file: str
) -> None:
    folder = place_with(tmp_path)

    def meanwhile(_: object) -> None:
        path = folder / "desk" / file
        path.write_text(path.read_text().replace("0.25", "0.3").replace("8.0", "9.0"))

    with pytest.raises(ValueError, match="was changed meanwhile: run again, under the new one"):
        privatize(folder / "in.parquet", folder / "out.parquet", desk=folder / "desk", request=request_of(),
                  confirm=meanwhile)  # fmt: skip
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.history.releases == {}


def test_the_log_says_what_happened(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    done = release(folder)
    with pytest.raises(Refused):
        release(folder, "other.parquet", epsilon=1000.0)
    lines = [json.loads(line) for line in (folder / "desk" / "log.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["made", "released", "refused"]
    assert lines[1]["release"] == done.certificate.release
    assert "more than one release may have" in lines[2]["why"][0]


def test_a_desk_outside_this_process_works_alike(tmp_path: Path) -> None:
    """The command as a process of its own, with the list of desks in the environment."""
    folder = place_with(tmp_path)
    before = snapshot(folder)
    ran = command("privatize", "in.parquet", "--check", "--B", "0.25", "--epsilon", "4", cwd=folder)
    assert ran.code == 0, ran.err
    assert snapshot(folder) == before
    assert os.environ["XDG_CONFIG_HOME"]
    assert desk_module.FOLDER == "desk"

"""The one writer: whole files, of the asked permissions from the first moment, never through a link."""

import errno
import os
import stat
from pathlib import Path

import pytest

from support.release import cli, table_of, write_parquet
from targetdp._files import append_line, create_new, remove_drafts, whole_file, write_new, write_whole
from targetdp._files._atomic import draft_of


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def test_a_file_is_written_whole_and_nothing_else_stays(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", "first")
    write_whole(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"second"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_permissions_are_those_asked_for(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "shared", "x")
        write_whole(tmp_path / "private", "x", private=True)
    finally:
        os.umask(before)
    assert mode(tmp_path / "shared") == 0o666 & ~umask
    assert mode(tmp_path / "private") == 0o600 & ~umask


def test_a_private_file_does_not_inherit_an_older_ones_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("open to all")
    path.chmod(0o644)
    write_whole(path, "secret", private=True)
    assert mode(path) == 0o600


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("mine")
    link.symlink_to(victim)
    write_whole(link, "new")
    assert (victim.read_text(), link.read_text(), link.is_symlink()) == ("mine", "new", False)


def test_what_is_there_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    for name in ("file", "dangling"):
        path = tmp_path / name
        path.symlink_to(tmp_path / "nowhere") if name == "dangling" else path.write_text("mine")
        with pytest.raises(FileExistsError):
            write_whole(path, "new", replace=False)
        with pytest.raises(FileExistsError):
            write_new(path, "new")
        with pytest.raises(FileExistsError):
            create_new(path)
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    assert hidden(tmp_path) == []


def test_an_error_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_whole(tmp_path / "a", "older")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "a", "newer")
    assert (tmp_path / "a").read_text() == "older"
    assert hidden(tmp_path) == []


def test_content_is_synced_before_it_has_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(handle: int) -> None:
        seen.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def renamed(self: Path, target: Path) -> Path:
        seen.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    write_whole(tmp_path / "a", "x")
    assert seen == ["file", "name", "folder"]


def test_only_our_drafts_are_removed(tmp_path: Path) -> None:
    ours = [".a.0123456789ab.new", ".b.c.0123456789ab.new"]
    theirs = [
        ".a.new", "a.0123456789ab.new", ".0123456789ab.new", ".a.01.new", ".a.0123456789ab.old", "a",
        ".a.of_my_thesis.new",
    ]  # fmt: skip
    for name in ours + theirs:
        (tmp_path / name).write_text("")
    remove_drafts(tmp_path, "a")
    assert {path.name for path in tmp_path.iterdir()} == {ours[1], *theirs}
    remove_drafts(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(theirs)


def test_lines_are_added_for_the_owner_alone(tmp_path: Path) -> None:
    append_line(tmp_path / "log", "one")
    append_line(tmp_path / "log", "two")
    assert (tmp_path / "log").read_text() == "one\ntwo\n"
    assert mode(tmp_path / "log") == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "log")
    with pytest.raises(OSError, match="symbolic link"):
        append_line(tmp_path / "link", "three")


def test_confidential_scales_are_private_whatever_a_killed_run_has_left(tmp_path: Path) -> None:
    """A leftover draft of mode 644 was written into, and a link in its place followed."""
    table = write_parquet(tmp_path / "t.parquet", table_of(50))
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for leftover in ("file", "link"):
        draft = tmp_path / ".scales.toml.new"
        draft.unlink(missing_ok=True)
        if leftover == "link":
            draft.symlink_to(victim)
        else:
            draft.write_text("")
            draft.chmod(0o644)
        out = tmp_path / "scales.toml"
        asked = ("--features", "calls,texts", "--source", "confidential", "--out", out, "--force")
        ran = cli("scales", table, *asked)
        assert ran.code == 0, ran.err
        assert mode(out) == 0o600
        assert 'source = "confidential"' in out.read_text()
        assert not out.is_symlink()
    assert victim.read_text() == "mine"


def test_a_draft_that_cannot_be_removed_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / ".a.0123456789ab.new").mkdir()
    remove_drafts(tmp_path, "a")
    write_whole(tmp_path / "a", "x")
    assert (tmp_path / "a").read_text() == "x"


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "x" * 237, "x" * 238])
def test_names_may_be_as_long_as_the_file_system_allows(tmp_path: Path, name: str) -> None:
    write_whole(tmp_path / name, "x")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_drafts_of_long_names_are_told_apart(tmp_path: Path) -> None:
    long, other = "x" * 250, "x" * 249 + "y"
    with draft_of(tmp_path / long) as draft:
        write_new(draft, "")
        remove_drafts(tmp_path, other)
        assert draft.exists()
        remove_drafts(tmp_path, long)
        assert not draft.exists()


def test_exact_permissions_can_be_given(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "a", "x", mode=0o640)
    finally:
        os.umask(before)
    assert mode(tmp_path / "a") == 0o640


def test_file_systems_without_links_or_synced_folders_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    sync = os.fsync

    def files_only(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(handle)

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(os, "fsync", files_only)
    write_whole(tmp_path / "a", "x", replace=False)
    assert (tmp_path / "a").read_text() == "x"
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a", "y", replace=False)
    assert ((tmp_path / "a").read_text(), hidden(tmp_path)) == ("x", [])


def test_a_line_after_half_a_line_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('{"half')
    (tmp_path / "log").chmod(0o644)
    append_line(tmp_path / "log", "{}")
    assert (tmp_path / "log").read_text() == '{"half\n{}\n'
    assert mode(tmp_path / "log") == 0o600


@pytest.mark.parametrize("planted", ["link", "open folder"])
def test_a_planted_place_for_a_draft_is_refused(tmp_path: Path, planted: str) -> None:
    """Somebody who may write into the folder must not get at a table while it is written."""
    trap, place = tmp_path / "trap", tmp_path / ".people.csv.example"
    trap.mkdir()
    place.symlink_to(trap) if planted == "link" else place.mkdir(mode=0o777)
    if planted != "link":
        place.chmod(0o777)
    with (
        pytest.raises((ValueError, OSError), match=r"somebody else|symbolic|directory"),
        whole_file(tmp_path / "people.csv", force=False),
    ):
        pytest.fail("it must not be opened")
    assert list(trap.iterdir()) == []

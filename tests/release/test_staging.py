"""All or nothing: every moment at which a run can die, and what the next run makes of it."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from support.certificates import certificate_by
from support.release import hidden, snapshot
from targetdp.release import Certificate, certificate_path
from targetdp.release._certificate._parts import File, Output
from targetdp.release._staging import Staging, page_path

CALLS = ("rename", "replace", "unlink", "mkdir", "rmdir", "fsync", "open", "close")
"""Every way in which staging touches the disk; the moment before each is one to die at."""


def certificate(release: str, *, directory: bool) -> Certificate:
    """A certificate that names the file that `write` writes."""
    file = File(name="part-00000.csv" if directory else "out", size=1, sha256="d" * 64)
    output = Output(format="csv", files=(file,), sha256="d" * 64)
    return certificate_by().model_copy(update={"release": release, "output": output})


def run(
    folder: Path, release: str, *, force: bool, directory: bool, settled: list[Any] | None = None
) -> None:
    """A whole run: begin, write, publish, leave."""
    with Staging(folder / "out", force=force) as staging:
        staging.begin((settled if settled is not None else []).append)
        write(staging, release, directory=directory)
        staging.publish(certificate(release, directory=directory), {"release": release})


def write(staging: Staging, release: str, *, directory: bool) -> None:
    if directory:
        staging.table.mkdir()
        (staging.table / "part-00000.csv").write_text(f"table of {release}")
    else:
        staging.table.write_text(f"table of {release}")


def what_is_there(folder: Path) -> str | None:
    """The name of the release that is there, whole with certificate and page; None if there is nothing."""
    output = folder / "out"
    places = (output, certificate_path(output), page_path(output))
    if not any(place.exists() for place in places):
        return None
    assert all(place.exists() for place in places), sorted(snapshot(folder))
    table = (output / "part-00000.csv" if output.is_dir() else output).read_text()
    release = table.removeprefix("table of ")
    assert Certificate.model_validate_json(certificate_path(output).read_text()).release == release
    assert f"- Release {release}\n" in page_path(output).read_text()
    return release


def what_is_visible(folder: Path) -> str | None:
    """The release under the output's name right after a death; it must have its certificate and page."""
    return what_is_there(folder) if (folder / "out").exists() else None


def certificates(folder: Path) -> str:
    """What can be read of any release beside its table: a certificate tells something by itself."""
    places = (certificate_path(folder / "out"), page_path(folder / "out"))
    return "".join(place.read_text() for place in places if place.exists())


@contextmanager
def every_moment(folder: Path, states: Path) -> Iterator[None]:
    """Copies of the folder, one for the moment before each call that touches the disk."""
    busy = False

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def before(*args: Any, **kwargs: Any) -> Any:
            nonlocal busy
            if not busy:
                busy = True
                try:
                    shutil.copytree(folder, states / f"{len(list(states.iterdir())):03d}", symlinks=True)
                finally:
                    busy = False
            return call(*args, **kwargs)

        return before

    states.mkdir()
    patches: dict[str, Any] = {name: watched(getattr(os, name)) for name in CALLS}
    with mock.patch.multiple(os, **patches):
        yield
    shutil.copytree(folder, states / "last")


def recover(folder: Path) -> list[Any]:
    """The next run, which finds an error in its input: it only cleans up."""
    settled: list[Any] = []
    with suppress(ZeroDivisionError), Staging(folder / "out", force=True) as staging:
        staging.begin(settled.append)
        raise ZeroDivisionError
    return settled


def recovered(state: Path) -> Path:
    """A copy of a folder, after the next run has cleaned it up."""
    copy = shutil.copytree(state, state.with_name(f"{state.name} copy"))
    recover(copy)
    return copy


CASES = [(older, directory) for older in (False, True) for directory in (False, True)]


@pytest.fixture(params=CASES, ids=["new file", "new directory", "file replaced", "directory replaced"])
def deaths(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str | None, list[Path]]:
    """The older release's name, and the folder as it was at every moment of a run."""
    older, directory = request.param
    folder = tmp_path / "folder"
    folder.mkdir()
    if older:
        run(folder, "older", force=False, directory=directory)
    with every_moment(folder, tmp_path / "states"):
        run(folder, "newer", force=older, directory=directory)
    assert what_is_there(folder) == "newer"
    return ("older" if older else None), sorted((tmp_path / "states").iterdir())


def test_a_run_that_dies_at_any_moment_is_undone_or_finished(deaths: tuple[str | None, list[Path]]) -> None:
    older, states = deaths
    outcomes = []
    for state in states:
        visible, told = what_is_visible(state) == "newer", "newer" in certificates(state)
        settled = recover(state)
        found = what_is_there(state)
        assert found in {older, "newer"}
        assert hidden(state) == []
        assert settled in ([], [{"release": "newer"}])
        # Whoever published before dying is heard of, if only a certificate; and nobody else.
        assert told or settled == []
        assert visible == (found == "newer")
        outcomes.append(found)
    turn = outcomes.index("newer")
    assert 0 < turn < len(outcomes) - 1, "the run was watched before and after its moment of truth"
    assert set(outcomes[:turn]) == {older}
    assert set(outcomes[turn:]) == {"newer"}


def test_the_ledger_hears_of_every_release_that_was_published_by_a_run_that_died(
    deaths: tuple[str | None, list[Path]],
) -> None:
    _, states = deaths
    told = []
    for state in states:
        journal = (state / ".out.targetdp" / "journal.json").exists()
        settled = recover(state)
        if what_is_there(state) == "newer":
            told.append(bool(settled))
            assert bool(settled) == journal
    assert told[0], "right after the rename the journal is still there"


def test_a_recovery_that_dies_at_any_moment_is_recovered_from(
    deaths: tuple[str | None, list[Path]], tmp_path: Path
) -> None:
    older, states = deaths
    for number, state in enumerate(states):
        before = shutil.copytree(state, tmp_path / f"plain{number}")
        recover(before)
        expected = what_is_there(before)
        with every_moment(state, tmp_path / f"again{number}"):
            recover(state)
        for later in sorted((tmp_path / f"again{number}").iterdir()):
            assert what_is_visible(later) in {None, older, "newer"}
            recover(later)
            assert what_is_there(later) == expected
            assert hidden(later) == []


def test_the_next_run_without_force_respects_what_it_recovered(deaths: tuple[str | None, list[Path]]) -> None:
    older, states = deaths
    for state in states:
        expected = what_is_there(recovered(state))
        if expected is None:
            run(state, "third", force=False, directory=False)
        else:
            with pytest.raises(ValueError, match="exists: choose another name, or replace it with --force"):
                run(state, "third", force=False, directory=False)
        assert what_is_there(state) == (expected or "third")
        assert expected in {older, "newer"}
        assert hidden(state) == []


@pytest.mark.parametrize("directory", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_an_error_at_any_step_of_publishing_puts_everything_back(
    tmp_path: Path, directory: bool, older: bool
) -> None:
    for failing in range(100):
        folder = tmp_path / f"{failing}"
        folder.mkdir()
        if older:
            run(folder, "older", force=False, directory=directory)
        failed = True
        with suppress(OSError), Staging(folder / "out", force=older) as staging:
            staging.begin(lambda _: None)
            write(staging, "newer", directory=directory)
            with disk_full_at(failing):
                staging.publish(certificate("newer", directory=directory), {"release": "newer"})
            failed = False
        visible = what_is_visible(folder)
        assert visible in {"older" if older else None, "newer"}
        # Published, but not told: the journal waits for the next run, which tells the ledger.
        assert bool(hidden(folder)) == (failed and visible == "newer")
        assert recover(folder) == ([{"release": "newer"}] if failed and visible == "newer" else [])
        assert what_is_there(folder) == visible
        assert hidden(folder) == []
        if not failed:
            break
    assert failing >= (5 if not older else 8)


@contextmanager
def disk_full_at(step: int) -> Iterator[None]:
    left = step

    def checked(call: Callable[..., Any]) -> Callable[..., Any]:
        def maybe(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left == -1:
                raise OSError(28, "No space left on device")
            return call(*args, **kwargs)

        return maybe

    patches: dict[str, Any] = {n: checked(getattr(os, n)) for n in ("rename", "mkdir", "fsync")}
    with mock.patch.multiple(os, **patches):
        yield


def test_nothing_is_visible_while_a_run_works(tmp_path: Path) -> None:
    with Staging(tmp_path / "out.csv", force=False) as staging:
        staging.begin(lambda _: None)
        staging.table.write_text("half")
        assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == []
        assert staging.folder.stat().st_mode & 0o077 == 0, "what is not yet certified is for its owner alone"
        assert not staging.published
    assert list(tmp_path.iterdir()) == []


def test_one_run_at_a_time(tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    with Staging(output, force=False) as first:
        first.begin(lambda _: None)
        first.table.write_text("mine")
        with (
            pytest.raises(ValueError, match=r"another run is writing .*out.csv: wait for it"),
            Staging(output, force=True),
        ):
            pass
        assert first.table.read_text() == "mine"
    with Staging(output, force=False) as again:
        again.begin(lambda _: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["out.csv", "out.csv.certificate.json", "out.csv.certificate.md"])
def test_whatever_stands_in_the_way_is_refused_without_force(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with (
        pytest.raises(ValueError, match=f"output .*{name} exists: .*--force"),
        Staging(tmp_path / "out.csv", force=False) as staging,
    ):
        staging.begin(lambda _: None)
    assert snapshot(tmp_path) == {name: b"mine"}


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match=r"output folder .*absent does not exist: create it first"),
        Staging(tmp_path / "absent" / "out.csv", force=False),
    ):
        pass


def test_a_journal_that_was_cut_short_counts_as_none(tmp_path: Path) -> None:
    folder = tmp_path / ".out.targetdp"
    folder.mkdir()
    for name in ("table", "certificate", "page"):
        (folder / name).write_text("x")
    (folder / "journal.json").write_text('{"release": "ne')
    assert recover(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("journal", ["", '{"release": "ne', '{"release": "new"}'])
@pytest.mark.parametrize("acted", [("old",), ("old", "page"), ()])
def test_a_damaged_journal_is_refused_once_it_was_acted_on(
    tmp_path: Path, journal: str, acted: tuple[str, ...]
) -> None:
    """The older release lies in the folder, or the newer page has its name: nothing may be thrown away."""
    folder = tmp_path / ".out.targetdp"
    folder.mkdir()
    for name in ("table", "certificate", *acted):
        (folder / name).write_text("x")
    (folder / "journal.json").write_text(journal)
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match=r"journal.json is damaged, and a run was publishing when it died"):
        recover(tmp_path)
    assert snapshot(tmp_path) == before


def test_a_failure_to_tell_the_ledger_of_an_earlier_run_keeps_its_journal(tmp_path: Path) -> None:
    run(tmp_path, "older", force=False, directory=False)
    folder = tmp_path / ".out.targetdp"
    folder.mkdir()
    digest = hashlib.sha256(b'{"release": "older"}').hexdigest()
    (folder / "journal.json").write_text(json.dumps({"release": "older", "check": digest}))

    def busy(journal: dict[str, Any]) -> None:
        raise TimeoutError("the ledger is busy")

    with pytest.raises(TimeoutError), Staging(tmp_path / "out", force=True) as staging:
        staging.begin(busy)
    assert what_is_there(tmp_path) == "older"
    assert recover(tmp_path) == [{"release": "older"}]
    assert what_is_there(tmp_path) == "older"

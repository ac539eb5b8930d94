"""A release whose run is disturbed: its folder, and what must be true of it at every moment."""

import shutil
from pathlib import Path
from typing import Any

from support.release import certificate_of, hidden, place_with, request_of
from support.zygote import Zygote
from targetdp.release import Desk, certificate_path, verify_in_ledger, verify_release
from targetdp.release._staging import page_path
from targetdp.release._trust._keys import config_folder

RUN = ("privatize", "in.parquet", "out.parquet", "--request", "request.toml", "--yes")
ROOM = {1: 3.9, 2: 5.6, 3: 7.0}
"""ε of limits (`room_for`) that so many releases of `place` fit in, and no more."""


def room_for(releases: int) -> tuple[float, float, float]:
    """A limit that so many releases fit in: what is charged twice, or to the dead, is refused."""
    return 0.25, ROOM[releases], 1e-3


def place(folder: Path, rows: int, **policy: Any) -> Path:
    """A folder with in.parquet, a desk, and a request for rows with Gaussian noise."""
    place_with(folder, rows, **policy)
    request = request_of(mechanism="gaussian", delta=1e-5)
    (folder / "request.toml").write_text(request.text(), encoding="utf-8")
    return folder


def release_that_is_there(folder: Path, name: str = "out.parquet") -> str | None:
    """Under the output's name there is nothing, or a release with its certificate, in a sound ledger."""
    output = folder / name
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.verify() == []
        if not output.exists():
            return None
        c = certificate_of(output)
        found = verify_release(output, c).also(verify_in_ledger(c, ledger))
        assert found.holds, [check for check in found.checks if check.holds is False]
        assert c.release in page_path(output).read_text()
        assert ledger.release(c.release).counts, "what is published is spent"
        return c.release


def states(folder: Path) -> dict[str, str]:
    """The state of every release that the desk's ledger knows."""
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.verify() == []
        return {row.release: row.state for row in ledger.history.releases.values()}


def drawn(folder: Path) -> set[str]:
    """The releases that are not settled, and that noise was drawn for."""
    reserved = {release for release, state in states(folder).items() if state == "reserved"}
    drafts = folder / "desk" / "drafts"
    noted = {place.parent.name for place in drafts.glob("*/drawn") if place.stat().st_size}
    return reserved & noted


STAGES = ("before the charge", "list of people", "charged", "drawn", "published", "settled")
"""How far a run may have come when it was killed."""


def stage_of(folder: Path, before: set[str], output: str = "out.parquet") -> str:
    """How far the last run has come, by what is on disk; ``before`` were releases that the ledger knew."""
    new = {release: state for release, state in states(folder).items() if release not in before}
    if "published" in new.values():
        return "settled"
    if release_that_is_there(folder, output) in new:
        return "published"
    if new.keys() & drawn(folder):
        return "drawn"
    if "reserved" in new.values():
        return "charged"
    return "list of people" if lists_of_people(folder) - before - new.keys() else "before the charge"


def lists_of_people(folder: Path) -> set[str]:
    """The releases that the desk has a list of people of, or a draft of one."""
    lists = folder / "desk" / "people"
    names = [path.name for path in lists.iterdir()] if lists.exists() else []
    return {name.lstrip(".").partition(".")[0].partition("-")[0] for name in names}


def nothing_is_left_of_the_dead(folder: Path) -> None:
    """Beside a finished release there is nothing hidden, and no secret of one that is settled."""
    assert hidden(folder) == []
    # A draft of the ledger's mark goes with the next entry.
    drafts = [name for name in hidden(folder / "desk") if not name.startswith(".ledger.db.head.")]
    assert drafts == []
    known, secrets = states(folder), folder / "desk" / "drafts"
    # Zeros are none: a disk that was broken for a moment kept the file from being removed.
    for release in (path.parent.name for path in secrets.glob("*/secret") if any(path.read_bytes())):
        # Of what was never reserved, nothing was drawn.
        assert known.get(release, "reserved") == "reserved", "with its secret the noise could be taken off"
    orphans = lists_of_people(folder) - known.keys()
    assert all((secrets / release / "secret").exists() for release in orphans), "the next run removes them"


def clean_up(zygote: Zygote, folder: Path) -> str:
    """One more run, without --force: whole afterwards, and nothing of the dead is left."""
    ended = zygote.run(folder, *RUN)
    assert ended.code == 0, ended.words
    nothing_is_left_of_the_dead(folder)
    there = release_that_is_there(folder)
    assert there is not None
    assert states(folder)[there] == "published"
    return there


def keep(folder: Path, kept: Path) -> Path:
    """A copy of a folder, and of what the user has noted of its desk, by which an older one is found out."""
    if (heads := config_folder() / "heads").exists():
        shutil.copytree(heads, kept.with_name(f"{kept.name} heads"))
    return shutil.copytree(folder, kept)


def put_back(folder: Path, kept: Path) -> None:
    """A folder as it was kept: no kill finds what an earlier one left, and the ledger stays short."""
    heads, noted = config_folder() / "heads", kept.with_name(f"{kept.name} heads")
    for path, before in ((folder, kept), (heads, noted)):
        shutil.rmtree(path, ignore_errors=True)
        if before.exists():
            shutil.copytree(before, path)


def forget(folder: Path) -> None:
    output = folder / "out.parquet"
    for path in (output, certificate_path(output), page_path(output)):
        path.unlink()

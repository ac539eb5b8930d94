"""What was published is never called unpublished, what could be read counts, and nothing else is replaced."""

import os
from pathlib import Path
from typing import Any

import pytest

from support.release import ASKED, certificate_of, cli, hidden, holds, place_with
from support.staged import states
from targetdp.release import Desk, certificate_path
from targetdp.release import _job as job

RUN = ("privatize", "in.parquet", "out.parquet", *ASKED)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = place_with(tmp_path / "place", 200)
    monkeypatch.chdir(place)
    return place


def test_a_failure_to_tidy_up_is_not_a_failure_to_publish(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(*_: Any, **__: Any) -> None:
        raise OSError(39, os.strerror(39))

    with monkeypatch.context() as patch:
        patch.setattr("targetdp.release._staging.shutil.rmtree", stuck)
        ran = cli(*RUN)
    assert (ran.code, "IS published" in ran.err, "Nothing was published" in ran.err) == (4, True, False)
    assert holds(folder / "out.parquet")
    assert set(states(folder).values()) == {"published"} or set(states(folder).values()) == {"reserved"}
    assert cli(*RUN).code == 0, "it was released; what was left is tidied up"
    assert list(states(folder).values()) == ["published"]
    assert hidden(folder) == []


@pytest.mark.parametrize("error", [OSError(28, "full"), UnicodeEncodeError("latin-1", "ε", 0, 1, "no")])
def test_a_summary_that_cannot_be_printed_is_not_a_failure_to_publish(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(text: str) -> None:
        raise error

    monkeypatch.setattr("targetdp.cli._privatize.emit", broken)
    ran = cli(*RUN, "--json")
    assert (ran.code, "IS published" in ran.err) == (4, True)
    assert holds(folder / "out.parquet")
    assert list(states(folder).values()) == ["published"]


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()])
def test_a_log_that_cannot_be_written_is_not_a_failure_to_publish(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    log = Desk.log

    def broken(self: Desk, event: str, **facts: Any) -> None:
        if event == "released":
            raise error
        log(self, event, **facts)

    monkeypatch.setattr(Desk, "log", broken)
    ran = cli(*RUN)
    assert (ran.code, "IS published" in ran.err, "Nothing was published" in ran.err) == (4, True, False)
    assert holds(folder / "out.parquet")
    assert list(states(folder).values()) == ["published"]


def test_a_certificate_that_could_be_read_counts_and_its_release_is_finished(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def no_table(self: Path, target: Any) -> Path:
        if Path(target).name == "out.parquet":
            raise OSError(5, os.strerror(5))
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", no_table)
        ran = cli(*RUN)
    assert ran.code == 3
    assert not certificate_path(folder / "out.parquet").exists()
    (release,) = states(folder)
    assert states(folder) == {release: "reserved"}, "it was readable for a moment: it counts"
    assert cli(*RUN).code == 0
    assert certificate_of(folder / "out.parquet").release == release
    assert states(folder) == {release: "published"}


def test_a_release_that_is_being_made_is_not_freed_by_another_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is charged and has drawn nothing yet: whoever comes now must leave it alone."""
    others: list[Any] = []
    scales = job._scales

    def meanwhile(*given: Any) -> Any:
        if not others:
            others.append(None)  # the other run comes by here, too
            others[0] = cli("privatize", "in.parquet", "other.parquet", *ASKED)
        return scales(*given)

    monkeypatch.setattr(job, "_scales", meanwhile)
    assert cli(*RUN).code == 0
    assert others[0].code == 0
    assert sorted(states(folder).values()) == ["published", "published"]


@pytest.mark.parametrize("name", ["thesis.csv", "thesis.parquet"])
def test_force_replaces_no_file_but_a_release(folder: Path, name: str) -> None:
    Path(name).write_text("years of work")
    ran = cli("privatize", "in.parquet", name, *ASKED, "--force")
    assert ran.code == 2
    assert "--force replaces nothing else" in ran.err
    assert Path(name).read_text() == "years of work"
    Path(f"{name}.certificate.json").write_text('{"output": {"files": [{"name": "another"}]}}')
    assert cli("privatize", "in.parquet", name, *ASKED, "--force").code == 2
    assert Path(name).read_text() == "years of work"
    assert states(folder) == {}, "and nothing was charged"


@pytest.mark.parametrize("name", ["in.parquet", "desk", "desk/out.parquet", "desk/policy.toml"])
def test_nothing_is_written_over_the_table_or_into_the_desk(folder: Path, name: str) -> None:
    before = Path("in.parquet").read_bytes()
    for more in ((), ("--force",)):
        ran = cli("privatize", "in.parquet", name, *ASKED, *more)
        assert (ran.code, "overlap" in ran.err or "no known suffix" in ran.err) == (2, True), ran.err
    assert Path("in.parquet").read_bytes() == before
    assert states(folder) == {}

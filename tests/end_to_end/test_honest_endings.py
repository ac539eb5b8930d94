"""What was published is never called unpublished, what could be read counts, and nothing else is replaced."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.release import ASKED, cli, holds, table_of, write_parquet, write_scales
from targetdp.release import Ledger, SigningKey, certificate_path, default_key_path
from targetdp.release._holder import Holder
from targetdp.release._staging import Staging

BOOK = ("--ledger", "ledger.db", "--population", "people")
RUN = ("privatize", "in.parquet", "out.parquet", *ASKED, "--scales", "scales.toml", *BOOK)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_parquet(Path("in.parquet"), table_of(200))
    write_scales(Path("scales.toml"))
    return tmp_path


def states() -> list[str]:
    return [row.state for row in Ledger.existing("ledger.db").releases()]


def test_a_failure_to_tidy_up_is_not_a_failure_to_publish(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(*_: Any, **__: Any) -> None:
        raise OSError(39, os.strerror(39))

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", stuck)
        ran = cli(*RUN)
    assert (ran.code, "IS published" in ran.err, "Nothing was published" in ran.err) == (4, True, False)
    assert holds(folder / "out.parquet")
    assert states() == ["published"]
    assert cli(*RUN).code == 2, "the output exists; what was left is tidied up"
    assert not [path for path in folder.iterdir() if path.name.startswith(".out")]


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


def test_a_certificate_that_could_be_read_counts_and_is_taken_away(
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
    assert states() == ["published"], "it was readable for a moment: it counts, and cannot be voided"


def test_a_release_that_is_being_made_cannot_be_voided(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    voided: list[Any] = []
    publish = Staging.publish

    def meanwhile(self: Staging, certificate: Any, journal: Any) -> None:
        release = journal["release"]
        voided.append(
            cli("ledger", "void", "--ledger", "ledger.db", "--release", release, "--reason", "hasty")
        )
        publish(self, certificate, journal)

    monkeypatch.setattr(Staging, "publish", meanwhile)
    assert cli(*RUN).code == 0
    assert voided[0].code == 2
    assert "a run is writing" in voided[0].err
    assert states() == ["published"]


def test_a_release_that_was_voided_meanwhile_is_not_published(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = Holder._reserve

    def hasty(self: Holder, release: str, *rest: Any) -> Any:
        mark = reserve(self, release, *rest)
        Ledger.existing("ledger.db", SigningKey.open(default_key_path())).void(release, "hasty")
        return mark

    monkeypatch.setattr(Holder, "_reserve", hasty)
    ran = cli(*RUN)
    assert ran.code == 3
    assert "was voided while it was made" in ran.err
    assert not (folder / "out.parquet").exists()
    assert states() == ["voided"]


@pytest.mark.parametrize("name", ["thesis.csv", "thesis.parquet"])
def test_force_replaces_no_file_but_a_release(folder: Path, name: str) -> None:
    Path(name).write_text("years of work")
    ran = cli("privatize", "in.parquet", name, *ASKED, "--scales", "scales.toml", "--force")
    assert ran.code == 2
    assert "--force replaces nothing else" in ran.err
    assert Path(name).read_text() == "years of work"
    Path(f"{name}.certificate.json").write_text('{"output": {"files": [{"name": "another"}]}}')
    assert cli("privatize", "in.parquet", name, *ASKED, "--scales", "scales.toml", "--force").code == 2
    assert Path(name).read_text() == "years of work"

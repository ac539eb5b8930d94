"""`targetdp allocate`: from released scores to a list of who gets aid, or a loan."""

import stat
from pathlib import Path
from typing import Any

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from support.learn import EVERYBODY, SAMPLED, release_sample, write_program
from support.release import NAMED, Ran, cli, nothing_changes, words

OPTIONS = ("--program", "program.toml", "--out", "decisions.csv")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    release_sample(tmp_path)
    monkeypatch.chdir(tmp_path)
    learned = cli("learn", "sample.parquet", "labels.csv", "--program", "program.toml", "--out", "w.toml")
    assert learned.code == 0, learned.err
    assert "run targetdp allocate" in words(learned.err)
    scored = cli(
        "score", "all.parquet", "w.toml", "scores.parquet", *NAMED, "--B", "0.25", "--epsilon", "4",
        "--scales", "scales.toml", "--sample", "sample.parquet", "--yes", "--key", "key.pem",
    )  # fmt: skip
    assert scored.code == 0, scored.err
    return tmp_path


def allocate(*arguments: Any) -> Ran:
    return cli("allocate", "scores.parquet", "sample.parquet", "labels.csv", *(arguments or OPTIONS))


def test_aid_and_then_loans(folder: Path) -> None:
    ran = allocate()
    assert ran.code == 0, ran.err
    table = pacsv.read_csv(folder / "decisions.csv")
    assert table.num_rows == EVERYBODY
    assert table["decision"].to_pylist().count("aid") == round(0.3 * EVERYBODY)
    assert stat.S_IMODE((folder / "decisions.csv").stat().st_mode) == 0o600
    said = words(ran.err)
    assert f"aid for 270 of 900 people (500 decided by their score, {SAMPLED} by their row" in said
    assert "of them are poor, and" in said
    assert ran.out == ""

    write_program(folder, "lending")
    loans = allocate("--program", "program.toml", "--out", "loans.parquet", "--json", "--quiet")
    assert loans.code == 0, loans.err
    assert loans.err == ""
    decisions = pq.read_table(folder / "loans.parquet")["decision"].to_pylist()
    assert loans.json["chosen"] == decisions.count("loan")
    right, missed = loans.json["chosen_rightly_by_the_chances"], loans.json["missed_by_the_chances"]
    assert 0 < right <= loans.json["chosen"]
    assert 0 < missed <= EVERYBODY - loans.json["chosen"]


def test_the_same_again_only_if_it_is_meant(folder: Path) -> None:
    assert allocate().code == 0
    before = (folder / "decisions.csv").read_bytes()
    with nothing_changes(folder):
        ran = allocate()
    assert ran.code == 2
    assert "exists" in ran.err
    assert allocate(*OPTIONS, "--force").code == 0
    assert (folder / "decisions.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--program", "program.toml", "--out", "decisions.txt"), "no known suffix"),
        (("--program", "program.toml", "--out", "nowhere/decisions.csv"), "folder does not exist"),
        (("--program", "program.toml", "--out", "labels.csv", "--force"), "one of the inputs"),
        (("--program", "missing.toml", "--out", "decisions.csv"), "missing.toml"),
        ((*OPTIONS, "--seed", "-1"), "seed = -1"),
        ((*OPTIONS, "--public-key", "00"), "does not hold for scores"),
        ((*OPTIONS, "--certificate", "sample.parquet.certificate.json"), "does not hold for scores"),
        ((*OPTIONS, "--sample-certificate", "scores.parquet.certificate.json"), "does not hold for sample"),
        ((*OPTIONS, "--id", "person"), "id names 'person'"),
    ],
)
def test_what_is_refused_writes_nothing(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    with nothing_changes(folder):
        ran = allocate(*arguments)
    assert ran.code == 2
    assert said in words(ran.err)


def test_tables_in_the_wrong_place(folder: Path) -> None:
    with nothing_changes(folder):
        ran = cli("allocate", "sample.parquet", "scores.parquet", "labels.csv", *OPTIONS)
    assert ran.code == 2
    assert "holds no scores" in words(ran.err)

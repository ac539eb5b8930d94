"""`targetdp allocate`: from released scores to a list of who gets aid, or a loan."""

import stat
from pathlib import Path
from typing import Any

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from support.learn import (
    EVERYBODY,
    SAMPLED,
    population,
    release_sample,
    write_ids,
    write_population,
    write_program,
)
from support.release import Ran, cli, nothing_changes, read_back, words, write_csv

OPTIONS = ("--program", "program.toml", "--out", "decisions.csv")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    release_sample(tmp_path)
    monkeypatch.chdir(tmp_path)
    ask_for_scores()
    return tmp_path


def ask_for_scores(*more: Any) -> None:
    learned = cli(
        "learn",
        "sample.parquet",
        "labels.csv",
        "--program",
        "program.toml",
        "--out",
        "request.toml",
        "--release",
        "scores",
        *more,
    )
    assert learned.code == 0, learned.err
    assert "run targetdp allocate" in words(learned.err)
    scored = cli("privatize", "all.parquet", "scores.parquet", "--request", "request.toml", "--yes")
    assert scored.code == 0, scored.err


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
        ((*OPTIONS, "--public-key", "00"), "not an Ed25519 public key"),
        ((*OPTIONS, "--certificate", "sample.parquet.certificate.json"), "does not hold for scores"),
        ((*OPTIONS, "--sample-certificate", "scores.parquet.certificate.json"), "does not hold for sample"),
        ((*OPTIONS, "--id", "person"), "id names 'person'"),
        ((*OPTIONS, "--ids", "labels.csv"), "the sample has no pseudonyms; leave --ids out"),
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


def test_the_whole_walk_under_pseudonyms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids go to the holder, pseudonyms come back; and at the end the other way round."""
    write_population(tmp_path, pseudonyms=True)
    release_sample(tmp_path)
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "asked.csv", population().slice(0, SAMPLED).select(["name"]))
    assert cli("ids", "asked.csv", "ids.csv").code == 0
    ask_for_scores("--ids", "ids.csv")
    with nothing_changes(tmp_path):
        ran = allocate()
    assert ran.code == 2
    assert "(targetdp ids), and give the list (--ids)" in words(ran.err)
    ran = allocate(*OPTIONS, "--ids", "ids.csv")
    assert ran.code == 0, ran.err
    assert "the data holder translates the list of those who get aid back (targetdp ids --back)" in words(
        ran.err
    )
    decisions = read_back(tmp_path / "decisions.csv")
    chosen = decisions.filter([one == "aid" for one in decisions["decision"].to_pylist()])
    assert not set(chosen["name"].to_pylist()) & set(population()["name"].to_pylist())
    write_csv(tmp_path / "chosen.csv", chosen.select(["name"]))
    back = cli("ids", "chosen.csv", "pay.csv", "--back", "all.parquet")
    assert back.code == 0, back.err
    paid = read_back(tmp_path / "pay.csv")["id"].to_pylist()
    assert len(set(paid)) == round(0.3 * EVERYBODY)
    known = dict(zip(population()["name"].to_pylist(), population()["consumption"].to_pylist(), strict=True))
    line = sorted(known.values())[round(0.3 * EVERYBODY) - 1]
    assert sum(known[name] <= line for name in paid) > 0.6 * len(paid)  # a lottery: 0.3


def test_nobody_is_told_of_pseudonyms_where_there_are_none(folder: Path) -> None:
    assert "targetdp ids" not in allocate().err


def test_pseudonyms_of_the_wrong_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_population(tmp_path, pseudonyms=True)
    release_sample(tmp_path)
    monkeypatch.chdir(tmp_path)
    write_ids(tmp_path, population().slice(0, SAMPLED))
    ask_for_scores("--ids", "ids.csv")
    write_ids(tmp_path, population().slice(SAMPLED, 300), "others.csv")
    with nothing_changes(tmp_path):
        ran = allocate(*OPTIONS, "--ids", "others.csv")
    assert ran.code == 2
    assert "the list must be of the desk that released the sample" in words(ran.err)

"""`targetdp allocate` of a release of decisions: a list of exactly the quota, and a test on known people."""

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.learn import write_program
from support.release import (
    Ran,
    cli,
    make_desk,
    nothing_changes,
    read_back,
    release,
    table_of,
    words,
    write_csv,
    write_parquet,
)

PEOPLE = 1_000
CUT = 10.0
ONE: dict[str, Any] = {"name": "aid", "weights": {"calls": 1.0}, "cut": CUT}
TWO = (
    {"name": "aid", "weights": {"calls": 1.0}, "cut": CUT},
    {"name": "loan", "weights": {"texts": 1.0}, "cut": 5.0},
)
OPTIONS = ("--program", "program.toml", "--out", "list.csv")


def prepare(folder: Path, **policy: Any) -> None:
    people = table_of(PEOPLE)
    write_parquet(folder / "in.parquet", people)
    make_desk(folder, **policy)
    release(folder, "decisions.parquet", release="decisions", B=2.0, epsilon=4.0, decisions=[ONE])
    write_program(folder)
    write_csv(folder / "agreed.csv", pa.table({"name": people["name"], "score": people["calls"]}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def allocate(*arguments: Any) -> Ran:
    return cli("allocate", "decisions.parquet", *(arguments or OPTIONS))


def test_a_list_of_exactly_the_quota(folder: Path) -> None:
    ran = allocate()
    assert ran.code == 0, ran.err
    listed = read_back(folder / "list.csv")
    assert listed.column_names == ["name", "answer", "decision", "based_on"]
    assert listed["decision"].to_pylist().count("aid") == 300
    assert stat.S_IMODE((folder / "list.csv").stat().st_mode) == 0o600
    yes = listed["answer"].to_pylist().count("yes")
    said = words(ran.err)
    assert f"aid for 300 of 1,000 people: {yes:,} have a yes of 'aid', and {yes - 300:,} people were" in said
    assert "taken off, of those with a yes, by lot" in said
    assert "a drawn answer is the true one in 98.2% of all draws" in said
    assert "of those on the list by a drawn answer it is no for about" in said
    assert "lots were drawn with seed 0" in said
    assert ran.out == ""

    write_program(folder, quota=0.9)
    more = allocate(*OPTIONS, "--force", "--seed", "3")
    assert "put on it, of those with a no, by lot" in words(more.err)
    write_program(folder, "lending")
    loans = allocate(*OPTIONS, "--force", "--json", "--quiet")
    assert loans.err == ""
    told = loans.json
    assert (told["yes"], told["chosen"], told["lots"], told["seed"]) == (yes, yes, 0, 0)
    assert told["known"] == []
    assert told["agreement"]["value"] == pytest.approx(np.exp(4) / (1 + np.exp(4)))
    assert told["true_yes"]["share"] == pytest.approx((yes / 1000 - 0.018) / 0.964, abs=1e-3)
    assert 0 < told["chosen_without_a_true_yes"] < 20


def test_the_seed_is_on_record_and_repeats_the_list(folder: Path) -> None:
    assert allocate(*OPTIONS, "--seed", "5").code == 0
    before = (folder / "list.csv").read_bytes()
    ran = allocate(*OPTIONS, "--force", "--json", "--seed", "5")
    assert ran.json["seed"] == 5
    assert (folder / "list.csv").read_bytes() == before
    assert allocate(*OPTIONS, "--force", "--seed", "6").code == 0
    assert (folder / "list.csv").read_bytes() != before


def test_another_release_of_the_same_people_draws_other_lots(folder: Path) -> None:
    """With the seed alone the same people had the luck: 767 of a thousand in both of two lists, for 98."""
    write_program(folder, quota=0.9)
    lucky = []
    for name in ("decisions.parquet", "again.parquet"):
        if name == "again.parquet":
            release(folder, name, release="decisions", B=2.0, epsilon=4.0, decisions=[ONE])
        assert cli("allocate", name, *OPTIONS, "--force").code == 0
        listed = read_back(folder / "list.csv").to_pylist()
        lucky.append({one["name"] for one in listed if one["based_on"] == "lot"})
    first, second = lucky
    # Of those with a no (half of all), most get a place by lot, so those without are compared.
    no = {one["name"] for one in listed if one["answer"] == "no"}
    without, again = no - first, no - second
    assert len(without & again) < 0.5 * min(len(without), len(again))


def test_known_people_are_tested(folder: Path) -> None:
    ran = allocate(*OPTIONS, "--known", "agreed.csv", "--json")
    assert ran.code == 0, ran.err
    (told,) = ran.json["known"]
    assert (told["people"], told["elsewhere"]) == (PEOPLE, 0)
    assert told["expected"] == pytest.approx(PEOPLE / (1 + np.exp(4)))
    said = words(ran.err)
    assert f"of 1,000 people whose truth is known, {told['wrong']} have a wrong answer; 18.0 were to" in said
    assert "finds faults, not fraud" in said
    # Scores of somebody else are no truth about these people: no list is made.
    people = table_of(PEOPLE)
    write_csv(folder / "wrong.csv", pa.table({"name": people["name"], "score": people["texts"]}))
    with nothing_changes(folder):
        ran = allocate("--program", "program.toml", "--out", "other.csv", "--known", "wrong.csv")
    assert ran.code == 2
    assert "that does not happen" in words(ran.err)
    assert "No list was made" in words(ran.err)


def test_a_test_that_is_hardly_chance_is_a_warning(folder: Path) -> None:
    """Four wrong ones among twenty, where one in 55 is expected."""
    listed = read_back(folder / "decisions.parquet")
    answers = listed["aid"].to_pylist()[:20]
    true = [one ^ (place < 4) for place, one in enumerate(answers)]
    write_parquet(folder / "some.parquet", pa.table({"name": listed["name"].slice(0, 20), "answer": true}))
    ran = allocate(*OPTIONS, "--known", "some.parquet", "--json")
    assert ran.code == 0, ran.err
    (told,) = ran.json["known"]
    assert told["wrong"] == 4
    assert 1e-9 < told["p_value"] < 1e-3
    assert "hardly chance" in words(ran.err)
    assert any("hardly chance" in note for note in ran.json["notes"])


def test_one_of_several_decisions(folder: Path) -> None:
    release(folder, "two.parquet", release="decisions", B=2.0, epsilon=4.0, decisions=list(TWO))
    with nothing_changes(folder):
        ran = cli("allocate", "two.parquet", *OPTIONS)
    assert ran.code == 2
    assert "has 2 decisions (aid, loan): say which one is meant (--decision)" in words(ran.err)
    ran = cli("allocate", "two.parquet", *OPTIONS, "--decision", "loan", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["decision"] == "loan"
    assert ran.json["agreement"]["value"] == pytest.approx(1 - 2 / (np.exp(4) + 3))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("labels.csv", *OPTIONS), "SAMPLE and LABELS belong together"),
        (("agreed.csv", "agreed.csv", *OPTIONS), "has no certificate"),
        ((*OPTIONS, "--sample-certificate", "program.toml"), "SAMPLE and LABELS belong together"),
        ((*OPTIONS, "--ids", "agreed.csv"), "--ids translates the ids of --known"),
        ((*OPTIONS, "--decision", "else"), "decision = 'else': release decisions.parquet has aid"),
        ((*OPTIONS, "--known", "missing.csv"), "missing.csv does not exist"),
        ((*OPTIONS, "--known", "agreed.csv", "--id", "who"), "id names 'who'"),
        (("--program", "program.toml", "--out", "agreed.csv", "--force", "--known", "agreed.csv"), "is one"),
        ((*OPTIONS, "--public-key", "00"), "not an Ed25519 public key"),
        ((*OPTIONS, "--seed", "-1"), "seed = -1"),
    ],
)  # fmt: skip
def test_what_is_refused_writes_nothing(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    with nothing_changes(folder):
        ran = allocate(*arguments)
    assert ran.code == 2
    assert said in words(ran.err)


def test_a_changed_file_is_refused(folder: Path) -> None:
    people = read_back(folder / "decisions.parquet")
    write_parquet(folder / "decisions.parquet", people.slice(1))
    with nothing_changes(folder):
        ran = allocate()
    assert ran.code == 2
    assert "does not hold for decisions" in words(ran.err)


def test_known_people_under_pseudonyms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path, pseudonyms=True)
    monkeypatch.chdir(tmp_path)
    ran = allocate(*OPTIONS, "--known", "agreed.csv")
    assert ran.code == 2
    assert "none of 1,000 known people is in the release" in words(ran.err)
    write_csv(tmp_path / "asked.csv", table_of(PEOPLE).select(["name"]))
    assert cli("ids", "asked.csv", "ids.csv").code == 0
    ran = allocate(*OPTIONS, "--known", "agreed.csv", "--ids", "ids.csv", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["known"][0]["people"] == PEOPLE
    assert "(targetdp ids --back)" in words(ran.err)

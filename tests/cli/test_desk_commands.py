"""`targetdp init`, `status`, `ids` and `key`: what a data holder asks her desk."""

import json
import os
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from support.release import (
    ASKED,
    FEATURES,
    cli,
    make_desk,
    nothing_changes,
    place_with,
    read_back,
    table_of,
    words,
    write_csv,
    write_parquet,
    write_scales,
)
from support.staged import states
from targetdp.release import Desk, SigningKey

RUN = ("privatize", "in.parquet", "out.parquet", *ASKED)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = place_with(tmp_path / "place", 200, pseudonyms=True)
    monkeypatch.chdir(place)
    return place


# init


def test_init_proposes_a_policy_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_parquet(Path("in.parquet"), table_of(60, region=["n", "s"] * 30, day=["2026-01-01"] * 60))
    made = cli("init", "in.parquet", "--name", "subscribers", "--json").json
    desk = Desk.open("desk")
    assert made["id"] == desk.id
    assert (made["name"], made["id_column"], made["released"]) == ("subscribers", "name", list(FEATURES))
    assert made["public_key"] == desk.key.public
    assert len(made["notes"]) >= 2
    (step,) = made["to_do"]
    assert step.startswith(
        "[scales]: epsilon = 0.4 for the private scales of 3 columns needs at least 7,132 rows"
    )
    assert desk.policy.limit.epsilon == 10
    assert stat.S_IMODE(Path("desk").stat().st_mode) == 0o700


def test_with_public_scales_nothing_is_left_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_parquet(Path("in.parquet"))
    write_scales(Path("scales.toml"))
    made = cli("init", "in.parquet", "--scales", "scales.toml")
    assert (made.code, "next: edit" in made.err) == (0, False), made.err
    assert cli(*RUN).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("in.parquet", "--id", "nobody"), "there is no column 'nobody'"),
        (("absent.parquet",), "does not exist"),
        (("in.parquet", "--desk", "absent/desk"), "does not exist: create it first"),
        (("in.parquet", "--scales", "absent.toml"), "absent.toml"),
        (("in.parquet", "--name", "She. Is poor!"), "name"),
        (
            ("twice.csv",),
            "no column is different in every row: name the one that identifies a person with --id",
        ),
    ],
)
def test_a_desk_that_cannot_be_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_parquet(Path("in.parquet"))
    write_csv(Path("twice.csv"), pa.table({"village": ["a", "a"], "calls": [1.5, 2.5]}))
    with nothing_changes(tmp_path):
        ran = cli("init", *arguments)
    assert (ran.code, said in words(ran.err)) == (6 if said == "does not exist" else 2, True), ran.err


# status


def test_status_says_what_is_spent_what_is_unsettled_and_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = cli("status", "--json").json
    assert (fresh["spent_of_the_limit"], fresh["released"], fresh["unsettled"]) == (0, 0, [])
    assert fresh["next"] == ["nothing was released yet: targetdp privatize TABLE OUTPUT --check looks first"]
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise OSError(28, os.strerror(28))

        patch.setattr("targetdp.release._staging.Staging.publish", full)
        assert cli(*RUN).code == 3
    (release,) = states(folder)
    begun = cli("status", "--json").json
    assert begun["unsettled"] == [release]
    assert begun["spent_of_the_limit"] > 0
    assert f"release {release[:12]} was begun" in begun["next"][0]
    assert "run the same command again" in begun["next"][0]
    assert str(folder / "out.parquet") in begun["next"][0]
    assert cli(*RUN).code == 0
    assert list(states(folder)) == [release]
    done = cli("status")
    assert "1 published, 0 unsettled" in done.out
    assert done.err == ""
    assert cli("status", "--json").json["spent_of_the_limit"] == begun["spent_of_the_limit"]


# ids


def test_ids_are_translated_both_ways(folder: Path) -> None:
    """Labels never leave the data holder as ids, and at the end people can be paid."""
    assert cli(*RUN).code == 0
    released = set(read_back(Path("out.parquet"))["name"].to_pylist())
    everybody = read_back(Path("in.parquet"))
    some = everybody.slice(0, 20).select(["name"])
    write_csv(Path("labelled.csv"), some)
    ran = cli("ids", "labelled.csv", "pseudonyms.csv")
    assert ran.code == 0, ran.err
    assert "20 people → pseudonyms.csv; it says who is who: guard it as the table" in words(ran.err)
    text = pacsv.ConvertOptions(column_types={"id": pa.string()})
    there = pacsv.read_csv("pseudonyms.csv", convert_options=text)
    assert there.column_names == ["id", "pseudonym"]
    assert there["id"].to_pylist() == some["name"].to_pylist(), "leading zeros and all"
    assert set(there["pseudonym"].to_pylist()) <= released
    assert stat.S_IMODE(Path("pseudonyms.csv").stat().st_mode) == 0o600
    # The list of those to be helped comes back, with columns of the official.
    chosen = pa.table(
        {"name": [*there["pseudonym"].to_pylist()[:5], "f" * 32], "amount": [10, 20, 30, 40, 50, 60]}
    )
    write_csv(Path("chosen.csv"), chosen)
    ran = cli("ids", "chosen.csv", "payments.csv", "--back", "in.parquet")
    assert ran.code == 0, ran.err
    assert "warning: 1 of them are nobody in in.parquet: they were left out" in ran.err
    back = pacsv.read_csv("payments.csv", convert_options=text)
    assert back["id"].to_pylist() == some["name"].to_pylist()[:5]
    assert back["amount"].to_pylist() == [10, 20, 30, 40, 50]
    logged = [json.loads(line) for line in Path("desk/log.jsonl").read_text().splitlines()]
    assert [line["people"] for line in logged if line["event"] == "ids translated"] == [20, 5]


def test_ids_are_translated_in_every_spelling_of_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_desk(tmp_path, pseudonyms=True, spelling={"country_code": "228", "digits": 8})
    local = [f"901234{i:02d}" for i in range(60)]
    write_parquet(Path("in.parquet"), table_of(60).set_column(0, "name", [local]))
    assert cli(*RUN).code == 0
    released = set(read_back(Path("out.parquet"))["name"].to_pylist())
    write_csv(
        Path("labelled.csv"), pa.table({"who": [f"+228 {n}" for n in local[:5]], "poor": [1, 0, 1, 0, 1]})
    )
    assert cli("ids", "labelled.csv", "list.csv", "--column", "who").code == 0
    translated = pacsv.read_csv("list.csv")
    assert set(translated["pseudonym"].to_pylist()) <= released
    assert translated["id"].to_pylist()[0] == f"+228 {local[0]}", "as it was given, to be joined"
    write_csv(Path("odd.csv"), pa.table({"who": ["Smith"]}))
    ran = cli("ids", "odd.csv", "more.csv")
    assert (ran.code, "another spelling" in ran.err, "Smith" in ran.err) == (2, True, False)


def test_ids_that_go_out_as_they_are_need_no_translation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place_with(tmp_path / "place"))
    ran = cli("ids", "in.parquet", "list.csv")
    assert (ran.code, "nothing needs a translation" in words(ran.err)) == (2, True)
    assert not Path("list.csv").exists()


def test_a_list_that_exists_is_not_replaced_by_accident(folder: Path) -> None:
    Path("list.csv").write_text("mine")
    ran = cli("ids", "in.parquet", "list.csv")
    assert (ran.code, "exists" in ran.err, Path("list.csv").read_text()) == (2, True, "mine")
    assert cli("ids", "in.parquet", "list.csv", "--force").code == 0


# key


def test_a_key_is_that_of_the_desk_here_or_ones_own(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk.open("desk").key
    ran = cli("key")
    assert ran.out == f"{desk.public}\n"
    assert f"the key of the desk, fingerprint {desk.fingerprint}" in ran.err
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TARGETDP_KEY", str(tmp_path / "own.pem"))
    ran = cli("key")
    assert "your own key" in ran.err
    assert ran.out.strip() == SigningKey.open(tmp_path / "own.pem", create=False).public
    assert cli("key", "--desk", folder / "desk").out == f"{desk.public}\n"
    assert cli("key", "--desk", tmp_path / "nowhere").code == 2

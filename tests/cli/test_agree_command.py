"""`targetdp agree`: what is shown, asked, printed and left, and with which exit code it ends."""

from pathlib import Path
from unittest import mock

import pytest

from support.agreed import TO, agreements, list_people, place_of_agreed
from support.release import cli, nothing_changes, words
from targetdp.release import Desk, agreed_rows


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place_of_agreed(tmp_path))
    return tmp_path


LIST = ("agree", "in.parquet", "agreed.csv")


def test_a_look_says_everything_and_changes_nothing(folder: Path) -> None:
    with nothing_changes(folder / "desk"):
        ran = cli(*LIST, "--check")
    assert ran.code == 0
    told = ("20 people of 60", "AS IT IS", TO, "0.87", "0.78", "0.96", "Nothing is promised", "at most 40")
    for part in told:
        assert part in ran.err, part
    ran = cli(*LIST, "--check", "--json")
    assert (ran.json["people"], ran.json["at_most"], ran.json["to"]) == (20, 40, TO)


def test_it_hands_over_and_says_so(folder: Path) -> None:
    ran = cli(*LIST, "agreed.parquet", "--yes")
    assert ran.code == 0, ran.err
    assert "20 people, 3 columns as they are" in ran.err
    assert "nothing is promised to these people" in words(ran.err)
    assert agreed_rows(folder / "agreed.parquet").rows == 20
    again = cli(*LIST, "again.csv", "--yes", "--json", "--quiet")
    assert again.json["rows"] == 20
    assert again.json["look"]["known"] == {}
    assert cli("verify", "again.csv").code == 0


def test_nobody_says_yes_where_nobody_is(folder: Path) -> None:
    ran = cli(*LIST, "agreed.parquet")
    assert ran.code == 2
    assert "nobody is at the terminal to say yes" in ran.err
    assert "AS IT IS" in ran.err
    assert not (folder / "agreed.parquet").exists()
    with mock.patch("sys.stdin.isatty", return_value=True), mock.patch("typer.confirm", return_value=False):
        asked = cli(*LIST, "agreed.parquet", "--quiet")
    assert asked.code == 2, "no terminal on stderr here, either"
    assert agreements(folder) == []


def test_what_is_refused_ends_with_everything_that_is_wrong(folder: Path) -> None:
    list_people(folder, 45)
    ran = cli(*LIST, "agreed.parquet", "--yes", "--json")
    assert ran.code == 2
    assert "45 people would be handed over in all" in ran.err
    (problem,) = ran.json["look"]["problems"]
    assert problem["whose"] == "holder"
    ran = cli("ledger", "log")
    assert "refused" in ran.out
    assert "45 people would be handed over" in words(ran.out)
    assert cli("agree", "in.parquet", "agreed.csv").code == 2, "no output is named"
    assert cli(*LIST, "agreed.txt", "--yes").code == 2


def test_where_the_desk_stands_is_told(folder: Path) -> None:
    assert "handed over" not in cli("status").out
    cli(*LIST, "agreed.parquet", "--yes")
    assert "20 people who agreed: nothing is promised to them" in words(cli("status").out)
    assert cli("status", "--json").json["handed_over"] == 20
    shown = words(cli("ledger", "show").out)
    assert "People who agreed: handed over as they are" in shown
    assert "nothing of this is promised to them" in shown
    logged = words(cli("ledger", "log").out)
    assert f"they agreed to “{TO}”, and nothing is promised to them" in logged
    assert cli("ledger", "verify").code == 0
    assert cli("ledger", "export", "entries.jsonl").code == 0
    assert '"kind": "agreed"' in (folder / "entries.jsonl").read_text()
    assert "compared with 1 certificate" in cli("ledger", "verify").err
    assert "agreed" in cli("ledger", "log", "--json").out


def test_a_new_desk_shows_how(folder: Path) -> None:
    """The lines that init proposes are those that a policy needs."""
    (folder / "new").mkdir()
    (folder / "in.parquet").rename(folder / "new" / "in.parquet")
    (folder / "desk").rename(folder / "gone")
    assert cli("init", "new/in.parquet", "--desk", "new/desk", "--new-people", "a test").code == 0
    place = folder / "new" / "desk" / "policy.toml"
    lines = place.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("# [agreed]"))
    shown = [line.removeprefix("# ") for line in lines[start : start + 5] if not line.startswith("#  ")]
    place.write_text("\n".join([*lines, *shown]) + "\n", encoding="utf-8")
    agreed = Desk.open(folder / "new" / "desk").policy.agreed
    assert agreed is not None
    assert agreed.at_most == 1000

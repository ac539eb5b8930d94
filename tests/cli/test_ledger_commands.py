"""`targetdp ledger`: what was released, about how many people, what was refused, and what was changed."""

import json
import re
import stat
from pathlib import Path

import pyarrow as pa
import pytest

from support.release import (
    ASKED,
    certificate_of,
    cli,
    new_policy,
    nothing_changes,
    place_with,
    read_back,
    words,
    write_csv,
    write_parquet,
)
from support.staged import states
from targetdp.release import Desk, SigningKey

RUN = ("privatize", "in.parquet", "out.parquet", *ASKED)
MORE = ("privatize", "in.parquet", "more.parquet", *ASKED)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = place_with(tmp_path / "place", 200, pseudonyms=True)
    monkeypatch.chdir(place)
    return place


def logged() -> list[dict[str, object]]:
    return [json.loads(line) for line in cli("ledger", "log", "--json").out.splitlines()]


# show


def test_it_shows_releases_and_how_many_people_have_spent_how_much(folder: Path) -> None:
    everybody = read_back(Path("in.parquet"))
    write_parquet(Path("half.parquet"), everybody.slice(0, 100))
    assert cli(*RUN).code == 0
    assert cli("privatize", "half.parquet", "again.parquet", *ASKED).code == 0
    record = cli("ledger", "show", "--json").json
    assert [row["state"] for row in record["releases"]] == ["published", "published"]
    assert [row["release"] for row in record["releases"]] == [
        certificate_of(Path(name)).release for name in ("out.parquet", "again.parquet")
    ]
    most, least = record["people"]
    assert (most["people"], least["people"]) == (100, 100)
    assert most["spent_of_the_limit"] == pytest.approx(2 * least["spent_of_the_limit"], rel=0.1), (
        "δ is another"
    )
    assert record["spent_of_the_limit"] >= most["spent_of_the_limit"]
    assert record["together"]["near"] == record["limit"]
    shown = cli("ledger", "show")
    for row in record["releases"]:
        assert row["release"][:12] in shown.out
    for part in ("spent of the limit", "people", "published", record["statement"]):
        assert words(part) in words(shown.out)


def test_a_new_desk_has_nothing_to_show(folder: Path) -> None:
    shown = cli("ledger", "show").out
    assert "nothing was released yet" in shown
    assert cli("ledger", "show", "--json").json["people"] == []


def test_a_running_total_is_told_of_pure_releases_only(folder: Path) -> None:
    assert cli(*RUN).code == 0
    record = cli("ledger", "show", "--json").json
    assert 4 < record["pure_epsilon"] < 5, "what δ would have saved does not count"
    assert "the sum of pure releases" in cli("status").out
    Path("normal.toml").write_text('B = 0.25\nepsilon = 4\nmechanism = "gaussian"\n')
    asked = ("privatize", "in.parquet", "more.parquet", "--request", "normal.toml", "--yes")
    assert cli(*asked).code == 0
    assert cli("ledger", "show", "--json").json["pure_epsilon"] is None
    assert "the sum of pure releases" not in cli("status").out


def test_after_a_change_of_scales_earlier_releases_count_at_distance_2(folder: Path) -> None:
    assert cli(*RUN).code == 0
    before = cli("ledger", "show", "--json").json
    scales = folder / "desk" / "scales.toml"
    scales.write_text(scales.read_text().replace("center = 10.0", "center = 11.0"))
    new_policy(folder / "desk", reason="the columns were centered wrongly", pseudonyms=True)
    assert cli(*MORE).code == 0
    after = cli("ledger", "show", "--json").json
    assert after["pure_epsilon"] == pytest.approx((8 + 1) * before["pure_epsilon"], rel=0.01)
    assert after["spent_of_the_limit"] > 5 * before["spent_of_the_limit"]
    assert "because: the columns were centered wrongly" in cli("ledger", "log").out


# log


def test_the_log_tells_of_refusals_changes_and_translated_ids(folder: Path) -> None:
    assert cli(*RUN).code == 0
    too_much = ("privatize", "in.parquet", "no.parquet", "--B", "0.25", "--epsilon", "4000", "--yes")
    assert cli(*too_much).code == 2
    assert cli("ids", "in.parquet", "list.csv").code == 0
    new_policy(folder / "desk", limit=(0.25, 120.0, 0.02), reason="the board allows more", pseudonyms=True)
    assert cli(*MORE).code == 0
    told = logged()
    assert sorted(str(line["what"]) for line in told) == [
        "ids translated", "opened", "policy", "policy", "published", "published", "refused", "reserved",
        "reserved",
    ]  # fmt: skip
    refused = next(line for line in told if line["what"] == "refused")
    assert (refused["kind"], refused["B"], refused["epsilon"]) == ("rows", 0.25, 4000)
    assert re.fullmatch("[0-9a-f]{64}", str(refused["request"]))
    assert any("epsilon = 4000 is more than" in why for why in refused["why"])  # type: ignore[attr-defined]
    shown = words(cli("ledger", "log").out.translate(str.maketrans("│┃", "  ")))
    for part in (
        "refused", "rows, B=0.25 ε=4000, request", "epsilon = 4000 is more than one release may have",
        "200 people, ids into pseudonyms", "limit.epsilon: 100 → 120", "because: the board allows more",
        "charged", "200 people: rows, B=0.25", str(refused["request"])[:12],
    ):  # fmt: skip
        assert part in shown, (part, shown)


def test_a_log_that_was_edited_by_hand_is_shown_as_far_as_it_can_be_read(folder: Path) -> None:
    odd = [{"time": 7, "event": ["x"]}, {"time": "2026", "event": "refused", "epsilon": "much", "kind": 1}]
    with Path("desk/log.jsonl").open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in odd)
        file.write("no JSON\n")
    assert len(logged()) == 3
    assert '"epsilon": "much"' in cli("ledger", "log").out


# export


def test_the_ledger_is_exported_as_json_lines(folder: Path) -> None:
    assert cli(*RUN).code == 0
    ran = cli("ledger", "export", "all.jsonl")
    assert (ran.code, ran.out) == (0, "")
    lines = [json.loads(line) for line in Path("all.jsonl").read_text().splitlines()]
    with Desk.open("desk").ledger() as ledger:
        entries = list(ledger.entries)
    assert [line["hash"] for line in lines] == [entry.hash for entry in entries]
    assert [line["body"] for line in lines] == [json.loads(entry.body) for entry in entries]
    assert f"{len(entries)} entries → all.jsonl" in ran.err
    assert stat.S_IMODE(Path("all.jsonl").stat().st_mode) == 0o600
    text = Path("all.jsonl").read_text()
    assert not any(name in text for name in read_back(Path("in.parquet"))["name"].to_pylist())
    assert cli("ledger", "export", "all.jsonl").code == 2
    assert cli("ledger", "export", "all.jsonl", "--force").code == 0


# withdraw and erase


def test_a_release_that_is_withdrawn_stays_charged(folder: Path) -> None:
    assert cli(*RUN).code == 0
    (release,) = states(folder)
    before = cli("status", "--json").json["spent_of_the_limit"]
    ran = cli("ledger", "withdraw", release[:6], "--reason", "a column was wrong")
    assert ran.code == 0
    assert f"release {release[:12]} is withdrawn and stays charged" in ran.err
    assert str(folder / "out.parquet") in ran.err
    assert cli("status", "--json").json["spent_of_the_limit"] == before
    shown = words(cli("ledger", "show").out.replace("│", " "))
    assert "withdrawn" in shown
    assert "a column was wrong" in shown
    for again in (release, "nobody", ""):
        with nothing_changes(folder):
            assert cli("ledger", "withdraw", again, "--reason", "again").code == 2


def test_who_is_erased_is_on_no_list_and_nothing_becomes_free(folder: Path) -> None:
    assert cli(*RUN).code == 0
    (release,) = states(folder)
    before = cli("ledger", "show", "--json").json
    write_csv(Path("gone.csv"), read_back(Path("in.parquet")).slice(0, 3).select(["name"]))
    assert cli("ledger", "erase", "gone.csv", "--reason", " ").code == 2
    ran = cli("ledger", "erase", "gone.csv", "--reason", "they asked")
    assert ran.code == 0
    assert f"3 people are off the list of release {release[:12]}" in ran.err
    after = cli("ledger", "show", "--json").json
    assert after["spent_of_the_limit"] == before["spent_of_the_limit"]
    assert after["spent_by_who_is_in_no_list"] == pytest.approx(before["spent_of_the_limit"])
    assert sum(level["people"] for level in after["people"]) == 197
    assert "Whoever is in none of the lists of people begins at" in cli("ledger", "show").out
    write_csv(Path("others.csv"), pa.table({"name": ["nobody we know"]}))
    with nothing_changes(folder):
        ran = cli("ledger", "erase", "others.csv", "--reason", "they asked")
    assert (ran.code, "nothing was changed" in ran.err) == (0, True)
    assert "they asked" in cli("ledger", "log").out
    assert cli("ledger", "verify").code == 0


# verify and resume


def test_the_ledger_is_verified_by_certificates_and_key(folder: Path) -> None:
    alone = cli("ledger", "verify")
    assert "without certificates, a desk put back to an older state" in words(alone.err)
    assert cli(*RUN).code == 0
    certificate = "out.parquet.certificate.json"
    for arguments in ((), (certificate,)):
        sound = cli("ledger", "verify", *arguments)
        assert (sound.code, sound.out) == (0, "")
        assert "sound; compared with 1 certificate" in sound.err
    other = SigningKey.open(folder / "other.pem").public
    assert cli("ledger", "verify", "--public-key", other).code == 1
    assert cli("ledger", "verify", certificate, "--public-key", other).code == 1
    assert cli("verify", "out.parquet", "--desk", "desk").code == 0
    assert cli("verify", "out.parquet", "--public-key", Desk.open("desk").key.public).code == 0
    assert cli("verify", "out.parquet", "--public-key", other).code == 1


def test_a_ledger_that_was_put_back_is_found_and_gone_on_with(folder: Path) -> None:
    new_policy(folder / "desk", limit=(0.25, 100.0, 0.02), pseudonyms=True)
    assert cli(*RUN).code == 0
    older = {name: Path("desk", name).read_bytes() for name in ("ledger.db", "ledger.db.head")}
    assert cli("privatize", "in.parquet", "later.parquet", *ASKED).code == 0
    spent = cli("status", "--json").json["spent_of_the_limit"]
    for name, content in older.items():
        Path("desk", name).write_bytes(content)
    for arguments in ((), ("later.parquet.certificate.json",)):
        ran = cli("ledger", "verify", *arguments)
        assert (ran.code, "the tail was cut" in ran.out) == (1, True), ran
    assert cli("verify", "later.parquet", "--desk", "desk").code == 1
    assert cli(*MORE).code == 2
    ran = cli("ledger", "resume", "--reason", "the disk failed")
    assert ran.code == 0, ran.err
    (lost,) = re.findall("release ([0-9a-f]{12}) was lost: it is charged to everybody", ran.err)
    assert certificate_of(Path("later.parquet")).release.startswith(lost)
    assert cli("status", "--json").json["spent_of_the_limit"] == pytest.approx(spent)
    assert cli(*MORE).code == 0
    shown = words(cli("ledger", "log").out.replace("│", " "))
    assert "the disk failed" in shown
    assert f"charged to everybody: {lost}" in shown


def test_a_lost_mark_is_gone_on_from_with_a_reason(folder: Path) -> None:
    assert cli(*RUN).code == 0
    Path("desk/ledger.db.head").unlink()
    assert cli(*MORE).code == 2
    assert cli("ledger", "resume", "--reason", " ").code == 2
    assert cli("ledger", "resume", "--reason", "copied without its mark").code == 0
    assert cli(*MORE).code == 0
    assert cli("ledger", "resume", "--reason", "again").code == 2, "there is nothing to resume from"
    with Desk.open("desk").ledger() as ledger:
        (entry,) = [json.loads(one.body) for one in ledger.entries if one.kind == "resumed"]
    assert entry["reason"] == "copied without its mark"
    assert re.search("is missing", entry["found"][0])

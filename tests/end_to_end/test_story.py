"""The story of a release, told by the commands that people type; each a process of its own.

The commands of the story itself start as a shell starts them; what is asked beside it is forked.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.release import Ran, certificate_of, command, hidden, read_back, table_of, words, write_parquet
from support.zygote import Zygote

STORY = """
targetdp plan --accuracy 0.99 --B 0.25 --epsilon 1 --delta 1e-4
targetdp scales census.parquet --features calls,texts,topups --source public --reason census --out scales.toml
targetdp init features.parquet --scales scales.toml --name subscribers
targetdp privatize features.parquet --check --B 0.25 --epsilon 4
targetdp privatize features.parquet private.parquet --B 0.25 --epsilon 4 --yes
targetdp verify private.parquet
targetdp status
targetdp ledger show
"""
ROWS = 100_001
PRIVATIZE = ("privatize", "features.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("story")
    others = [f"9{i:06d}" for i in range(500)]
    write_parquet(place / "census.parquet", table_of(500, seed=9).set_column(0, "name", [others]))
    write_parquet(place / "features.parquet", table_of(ROWS, region=["north"] * ROWS))
    return place


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, Ran]:
    """Every command of the story, exactly as printed, and what it answered."""
    answers = {}
    for line in STORY.strip().splitlines():
        name, *arguments = line.split()
        assert name == "targetdp"
        called = arguments[0] + (" --check" if "--check" in arguments else "")
        answers[called] = command(*arguments, cwd=folder)
    return answers


def test_every_command_of_the_story_succeeds(told: dict[str, Ran]) -> None:
    assert {name: ran.code for name, ran in told.items()} == dict.fromkeys(
        ["plan", "scales", "init", "privatize --check", "privatize", "verify", "status", "ledger"], 0
    ), told
    assert not any("Traceback" in ran.err or "Warning:" in ran.err for ran in told.values())


def test_the_plan_shows_ceilings_noise_and_distances(told: dict[str, Ran]) -> None:
    for said in ("0.25", "gaussian", "spherical-laplace"):
        assert said in told["plan"].out


def test_the_release_is_there_with_its_certificate_and_nothing_else(
    told: dict[str, Ran], folder: Path
) -> None:
    released = read_back(folder / "private.parquet")
    assert released.column_names == ["name", "calls", "texts", "topups"], "region is text"
    assert released["name"].to_pylist() == [f"{i:06d}" for i in range(ROWS)]
    c = certificate_of(folder / "private.parquet")
    assert (c.guarantee.B, c.guarantee.epsilon, c.guarantee.delta) == (0.25, 4.0, 1e-6), "the policy's δ"
    assert (c.desk.name, c.desk.policy) == ("subscribers", 1)
    assert sorted(p.name for p in folder.iterdir()) == [
        "census.parquet", "desk", "features.parquet", "private.parquet",
        "private.parquet.certificate.json", "private.parquet.certificate.md", "scales.toml",
    ]  # fmt: skip
    assert hidden(folder) == []
    assert sorted(p.name for p in (folder / "desk").iterdir()) == [
        "desk.json", "drafts", "keys", "ledger.db", "ledger.db.head", "log.jsonl", "people", "policy.toml",
        "scales.people", "scales.toml",
    ]  # fmt: skip
    assert [p.name for p in (folder / "desk" / "drafts").iterdir()] == ["CACHEDIR.TAG"]


def test_a_run_shows_what_the_check_showed_and_asks(told: dict[str, Ran]) -> None:
    checked, released = told["privatize --check"].err.splitlines(), told["privatize"].err.splitlines()
    assert checked[:-1] == released[: len(checked) - 1]
    said = words(told["privatize --check"].err)
    for part in (
        "desk subscribers (", "what goes out: 3 columns about 100,001 people", "under their ids",
        "what is promised: (B = 0.25, ε = 4, δ = 1e-06)", "length", "for you only",
        "budget of those who have spent most: 0% before,", "largest ε that fits", "on these conditions:",
        "nothing keeps this release from being made",
    ):  # fmt: skip
        assert part in said, part


def test_words_go_to_stderr_and_data_to_stdout(told: dict[str, Ran]) -> None:
    assert told["privatize"].out == told["privatize --check"].out == told["init"].out == ""
    assert "100,001 rows, 3 columns → private.parquet: (B = 0.25, ε = 4, δ = 1e-06)" in told["privatize"].err
    assert "for you only" in told["privatize"].err
    assert told["scales"].out == ""
    assert "scales of 3 columns → scales.toml (public)" in told["scales"].err
    assert '[kinds.region] kind = "category"' in told["init"].err
    assert "the release holds" in told["verify"].err
    assert "guarantee" in told["verify"].out
    assert "1 published, 0 unsettled" in told["status"].out


def test_the_ledger_shows_what_was_spent_and_what_is_left(
    zygote: Zygote, told: dict[str, Ran], folder: Path
) -> None:
    assert "subscribers" in told["ledger"].out
    shown = zygote.run(folder, "ledger", "show", "--json")
    record = json.loads(shown.out)
    assert shown.code == 0
    assert record["releases"][0]["state"] == "published"
    assert record["releases"][0]["release"] == certificate_of(folder / "private.parquet").release
    assert record["limit"] == {"B": 0.25, "epsilon": 10.0, "delta": 1e-6}
    assert 0.25 < record["spent_of_the_limit"] < 0.75
    assert [level["people"] for level in record["people"]] == [ROWS]
    assert record["statement"] in words(told["ledger"].out), "in the same words everywhere"
    assert record["statement"] in words((folder / "private.parquet.certificate.md").read_text())


def test_json_is_pure_and_quiet_is_silent_but_for_warnings(
    zygote: Zygote, told: dict[str, Ran], folder: Path
) -> None:
    ran = zygote.run(folder, *PRIVATIZE, "again.parquet", "--B", "0.25", "--epsilon", "2", "--yes", "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    c = certificate_of(folder / "again.parquet")
    assert summary["output"] == "again.parquet"
    assert summary["sha256"] == c.output.sha256
    assert summary["rows"] == ROWS
    assert summary["guarantee"] == {"B": 0.25, "epsilon": 2.0, "delta": 1e-6}
    assert summary["for_the_data_holder_only"]["rows_clipped"] > 0
    assert 0.25 < summary["look"]["budget"]["spent"] < 0.75
    assert set(summary["look"]["budget"]["known"].values()) == {ROWS}
    asked = ("--B", "0.25", "--epsilon", "0.5", "--yes")
    ran = zygote.run(folder, *PRIVATIZE, "third.parquet", *asked, "--quiet")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.splitlines() != []
    assert all(line.startswith("warning: ") for line in ran.err.splitlines())
    assert "ids go out in clear" in ran.err
    ran = zygote.run(folder, "verify", "third.parquet", "--json")
    assert json.loads(ran.out)["holds"] is True
    assert all(set(check) == {"what", "holds", "detail"} for check in json.loads(ran.out)["checks"])
    ran = zygote.run(folder, "plan", "--B", "0.25", "--epsilon", "1", "--delta", "1e-4", "--json")
    assert json.loads(ran.out)["mechanism"]


def test_a_release_beyond_the_limit_is_refused_with_its_numbers(
    zygote: Zygote, told: dict[str, Ran], folder: Path
) -> None:
    ran = zygote.run(folder, *PRIVATIZE, "more.parquet", "--B", "1.5", "--epsilon", "4", "--yes")
    assert ran.code == 0, "a large B hides more: at the limit's distance it costs less"
    for B, epsilon, code, said in (
        ("0.25", "4", 7, ("of what one person may spend", "is spent by", "ε=10, ", "ask for a smaller ε")),
        ("0.25", "4.5", 2, ("epsilon = 4.5 is more than one release may have", "ask for at most 4")),
    ):
        before = (folder / "desk" / "ledger.db").read_bytes()
        ran = zygote.run(folder, *PRIVATIZE, "most.parquet", "--B", B, "--epsilon", epsilon, "--yes")
        assert (ran.code, ran.out) == (code, "")
        for part in said:
            assert part in words(ran.err)
        assert not (folder / "most.parquet").exists()
        assert (folder / "desk" / "ledger.db").read_bytes() == before


def test_exit_codes_tell_scripts_what_happened(zygote: Zygote, told: dict[str, Ran], folder: Path) -> None:
    forged = folder / "forged.parquet"
    table = pq.read_table(folder / "private.parquet")
    pq.write_table(table, forged)
    ran = zygote.run(folder, "verify", forged, "--certificate", folder / "private.parquet.certificate.json")
    forged.unlink()
    assert ran.code == 1
    assert "does NOT hold" in ran.err
    assert zygote.run(folder, "privatize", "absent.parquet", "x.parquet", "--B", "1").code == 6
    assert zygote.run(folder, "--help").code == 0
    assert zygote.run(folder, "privatize", "--no-such-flag").code == 2


def test_the_ledger_is_verified_with_all_certificates(
    zygote: Zygote, told: dict[str, Ran], folder: Path
) -> None:
    ran = zygote.run(folder, "ledger", "verify", "private.parquet.certificate.json")
    assert ran.code == 0, ran.words
    beside = len(list(folder.glob("*.certificate.json")))
    assert f"sound; compared with {beside} certificate" in ran.err, "those beside outputs, unasked"
    ran = zygote.run(folder, "verify", "private.parquet", "--desk", "desk")
    assert ran.code == 0

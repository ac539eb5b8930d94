"""The story of a release, told by the commands that a data holder types; each a process of its own.

The commands of the story itself start as a shell starts them; what is asked beside it is forked.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.release import Ran, certificate_of, command, hidden, read_back, table_of, words, write_parquet
from support.zygote import Zygote

STORY = """
targetdp plan --accuracy 0.99 --epsilon 1 --delta 1e-4
targetdp scales census.parquet --id name --features calls,texts,topups --source public --out scales.toml
targetdp ledger limit --ledger ledger.db --population subscribers --B 0.25 --epsilon 8 --delta 1e-5
targetdp privatize features.parquet private.parquet --id name --features calls,texts,topups --B 0.25 \
--epsilon 4 --scales scales.toml --ledger ledger.db --population subscribers
targetdp verify private.parquet
targetdp ledger show --ledger ledger.db
"""
ROWS = 100_001
"""Enough that δ = 1/(rows + 1) is within the limit's."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("story")
    write_parquet(place / "census.parquet", table_of(500, seed=9))
    write_parquet(place / "features.parquet", table_of(ROWS, region=["north"] * ROWS))
    return place


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, Ran]:
    """Every command of the story, exactly as printed, and what it answered."""
    answers = {}
    for line in STORY.strip().splitlines():
        name, *arguments = line.split()
        assert name == "targetdp"
        answers[" ".join(arguments[: 2 if arguments[0] == "ledger" else 1])] = command(*arguments, cwd=folder)
    return answers


def test_every_command_of_the_story_succeeds(told: dict[str, Ran]) -> None:
    assert {name: ran.code for name, ran in told.items()} == dict.fromkeys(
        ["plan", "scales", "ledger limit", "privatize", "verify", "ledger show"], 0
    )
    assert not any("Traceback" in ran.err or "Warning:" in ran.err for ran in told.values())


def test_the_plan_shows_ceilings_noise_and_distances(told: dict[str, Ran]) -> None:
    for said in ("0.25", "gaussian", "spherical-laplace"):
        assert said in told["plan"].out


def test_the_release_is_there_with_its_certificate_and_nothing_else(
    told: dict[str, Ran], folder: Path
) -> None:
    released = read_back(folder / "private.parquet")
    assert released.column_names == ["name", "calls", "texts", "topups"], "region was not asked for"
    assert released["name"].to_pylist() == [f"{i:06d}" for i in range(ROWS)]
    c = certificate_of(folder / "private.parquet")
    assert c.guarantee is not None
    assert (c.guarantee.B, c.guarantee.epsilon, c.guarantee.delta) == (0.25, 4.0, 1 / (ROWS + 1))
    assert sorted(p.name for p in folder.iterdir()) == [
        "census.parquet", "features.parquet", "ledger.db", "ledger.db.head", "private.parquet",
        "private.parquet.certificate.json", "private.parquet.certificate.md", "scales.toml",
    ]  # fmt: skip
    assert hidden(folder) == []


def test_words_go_to_stderr_and_data_to_stdout(told: dict[str, Ran]) -> None:
    assert told["privatize"].out == ""
    assert "100,001 rows, 3 columns → private.parquet: (B = 0.25, ε = 4, δ = 1e-05)" in told["privatize"].err
    assert "for you only" in told["privatize"].err
    assert told["scales"].out == told["ledger limit"].out == ""
    assert "scales of 3 columns → scales.toml (public)" in told["scales"].err
    assert "limit of 'subscribers': (B=0.25, ε=8, δ=1e-05)-TDP" in told["ledger limit"].err
    assert "the release holds" in told["verify"].err
    assert "guarantee" in told["verify"].out


def test_the_ledger_shows_what_was_spent_and_what_is_left(
    zygote: Zygote, told: dict[str, Ran], folder: Path
) -> None:
    assert "subscribers" in told["ledger show"].out
    shown = zygote.run(folder, "ledger", "show", "--ledger", "ledger.db", "--json")
    record = json.loads(shown.out)
    assert shown.code == 0
    assert "published" in shown.out
    assert certificate_of(folder / "private.parquet").release in shown.out
    assert record


def test_json_is_pure_and_quiet_is_silent(zygote: Zygote, told: dict[str, Ran], folder: Path) -> None:
    asked = STORY.strip().splitlines()[3].split()[1:]
    asked[2] = "again.parquet"
    asked[asked.index("4")] = "2"  # ε: what is left of the limit
    ran = zygote.run(folder, *asked, "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    c = certificate_of(folder / "again.parquet")
    assert summary["output"] == "again.parquet"
    assert summary["sha256"] == c.output.sha256
    assert summary["rows"] == ROWS
    assert summary["guarantee"] == {"B": 0.25, "epsilon": 2.0, "delta": 1 / (ROWS + 1)}
    assert summary["for_the_data_holder_only"]["rows_clipped"] > 0
    asked[2] = "third.parquet"
    asked[asked.index("2")] = "0.5"
    ran = zygote.run(folder, *asked, "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    ran = zygote.run(folder, "verify", "third.parquet", "--json")
    assert json.loads(ran.out)["holds"] is True
    assert all(set(check) == {"what", "holds", "detail"} for check in json.loads(ran.out)["checks"])
    ran = zygote.run(folder, "plan", "--accuracy", "0.9", "--epsilon", "1", "--delta", "1e-4", "--json")
    assert json.loads(ran.out)["mechanism"]


def test_a_release_beyond_the_limit_is_refused_with_its_numbers(
    zygote: Zygote, told: dict[str, Ran], folder: Path
) -> None:
    asked = STORY.strip().splitlines()[3].split()[1:]
    asked[2] = "more.parquet"
    asked[asked.index("4")] = "9"
    before = (folder / "ledger.db").read_bytes()
    ran = zygote.run(folder, *asked)
    assert (ran.code, ran.out) == (2, "")
    for said in ("population 'subscribers'", "requested ε = ", "spent ", "remaining ", "limit 8", "override"):
        assert said in words(ran.err)
    assert not (folder / "more.parquet").exists()
    assert (folder / "ledger.db").read_bytes() == before


def test_exit_codes_tell_scripts_what_happened(zygote: Zygote, told: dict[str, Ran], folder: Path) -> None:
    forged = folder / "forged.parquet"
    table = pq.read_table(folder / "private.parquet")
    pq.write_table(table, forged)
    ran = zygote.run(folder, "verify", forged, "--certificate", folder / "private.parquet.certificate.json")
    forged.unlink()
    assert ran.code == 1
    assert "does NOT hold" in ran.err
    assert zygote.run(folder, "privatize", "absent.parquet", "x.parquet", "--id", "name").code == 2
    assert zygote.run(folder, "--help").code == 0
    assert zygote.run(folder, "privatize", "--no-such-flag").code == 2


def test_the_ledger_is_verified_with_all_certificates(
    zygote: Zygote, told: dict[str, Ran], folder: Path
) -> None:
    ran = zygote.run(folder, "ledger", "verify", "--ledger", "ledger.db", "private.parquet.certificate.json")
    assert ran.code == 0
    assert "sound; compared with 1 certificate" in ran.err
    ran = zygote.run(folder, "verify", "private.parquet", "--ledger", "ledger.db")
    assert ran.code == 0

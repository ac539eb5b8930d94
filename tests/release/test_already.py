"""The same request again: nothing is done where its release is there, whole, and only there."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.release import (
    FEATURES,
    cli,
    make_desk,
    new_policy,
    nothing_changes,
    place_with,
    read_back,
    release,
    request_of,
    table_of,
    write_csv,
    write_parquet,
)
from targetdp.release import AlreadyReleased, Desk, certificate_path, privatize
from targetdp.release._staging import page_path
from targetdp.table import open_source


def again(folder: Path, **given: Any) -> str:
    """What keeps the same release from being made again, though nothing changes."""
    with nothing_changes(folder), pytest.raises(ValueError, match="out") as found:
        release(folder, **given)
    assert not isinstance(found.value, AlreadyReleased), found.value
    assert "exists: choose another name, or replace it with --force" in str(found.value)
    return str(found.value)


def test_the_same_again_does_nothing_and_says_which_release_is_there(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    done = release(folder)
    with nothing_changes(folder), pytest.raises(AlreadyReleased) as found:
        release(folder)
    assert found.value.certificate == done.certificate
    assert found.value.place == str(folder / "out.parquet")
    assert done.certificate.release[:12] in str(found.value)
    (folder / "in.parquet").rename(folder / "moved.parquet").rename(folder / "in.parquet")
    (folder / "in.parquet").chmod(0o600)
    with pytest.raises(AlreadyReleased):  # neither moves nor permissions make another table of it
        release(folder)


@pytest.mark.parametrize("other", [{"epsilon": 3.0}, {"features": FEATURES[:2]}, {"asked_by": "Ministry"}])
def test_another_request_is_another_release(tmp_path: Path, other: dict[str, Any]) -> None:
    folder = place_with(tmp_path)
    release(folder)
    assert "another one than the certificate cites" in again(folder, **other)


def test_a_table_that_was_written_to_is_another_one_though_its_people_are_the_same(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder)
    os.utime(folder / "in.parquet", ns=(1, 1))
    assert "was made of another table" in again(folder)
    write_parquet(folder / "in.parquet", table_of(60, seed=1))
    assert "was made of another table" in again(folder)
    write_parquet(folder / "another.parquet", table_of(60))
    assert "was made of another table" in again(folder, table="another.parquet")
    assert "was made of another table" in again(folder, table=table_of(60)), "of a frame nobody can tell"


def damage(output: Path) -> None:
    data = bytearray(output.read_bytes())
    data[len(data) // 3] ^= 1
    output.write_bytes(data)


def other_values(output: Path) -> None:
    table = read_back(output)
    write_parquet(output, table.set_column(1, "calls", [[0.0] * table.num_rows]))


def no_certificate(output: Path) -> None:
    certificate_path(output).unlink()


def edited_page(output: Path) -> None:
    page_path(output).write_text("All is well.")


def edited_certificate(output: Path) -> None:
    path = certificate_path(output)
    path.write_text(path.read_text().replace('"rows": 60', '"rows": 61'))


@pytest.mark.parametrize("harm", [damage, other_values, no_certificate, edited_page, edited_certificate])
def test_what_is_not_whole_is_none(tmp_path: Path, harm: Any) -> None:
    folder = place_with(tmp_path)
    release(folder)
    harm(folder / "out.parquet")
    again(folder)


def test_a_release_of_another_desk_or_one_that_was_withdrawn_is_none(tmp_path: Path) -> None:
    here, there = place_with(tmp_path / "here"), place_with(tmp_path / "there")
    done = release(here)
    for path in ("in.parquet", "out.parquet", "out.parquet.certificate.json", "out.parquet.certificate.md"):
        shutil.copy2(here / path, there / path)
    assert "belongs to another ledger" in again(there, new_people="others")
    with Desk.open(here / "desk").ledger() as ledger:
        ledger.withdraw(done.certificate.release, "wrong month")
    assert "was withdrawn" in again(here)


def test_force_makes_a_new_release_and_charges_it(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    one, two = release(folder), release(folder, force=True)
    assert one.certificate.release != two.certificate.release


def test_programs_are_told_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place_with(tmp_path))
    run = (
        "privatize",
        "in.parquet",
        "out.parquet",
        "--B",
        "0.25",
        "--epsilon",
        "4",
        "--yes",
        "--json",
        "--quiet",
    )
    first, second = cli(*run), cli(*run)
    assert (first.code, second.code, second.err) == (0, 0, "")
    assert (first.json["outcome"], second.json["outcome"]) == ("released", "already released")
    facts = set(second.json) - {"outcome", "message"}
    assert {name: second.json[name] for name in facts} == {name: first.json[name] for name in facts}
    lines = [json.loads(line) for line in Path("desk/log.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["made", "released", "already released"]
    assert lines[2]["release"] == first.json["release"]
    assert "already" not in cli("ledger", "log").out, "that nothing was done is not what happened at a desk"


@pytest.mark.parametrize(
    "policy",
    [{"pseudonyms": True, "reason": "no ids any more"}, {"features": FEATURES[:2], "reason": "no topups"}],
)
def test_what_another_policy_made_is_another_release(tmp_path: Path, policy: dict[str, Any]) -> None:
    folder = place_with(tmp_path)
    release(folder)
    new_policy(folder / "desk", **policy)
    assert "was made under another policy than that of now" in again(folder)


def test_files_of_the_same_name_and_another_time_are_another_table(tmp_path: Path) -> None:
    """Sizes are not looked at: they would tell of rows."""
    make_desk(tmp_path)
    for day, month in enumerate(("october", "november")):
        (tmp_path / month).mkdir()
        os.utime(write_parquet(tmp_path / month / "t.parquet", table_of(60)), (day, day))
    release(tmp_path, table="october/t.parquet")
    assert "was made of another table" in again(tmp_path, table="november/t.parquet")


def test_what_folders_are_named_and_how_a_csv_is_read_are_the_tables_own(tmp_path: Path) -> None:
    make_desk(tmp_path, public={"region": "known"})
    (tmp_path / "t" / "region=north").mkdir(parents=True)
    write_parquet(tmp_path / "t" / "region=north" / "p.parquet")
    release(tmp_path, table="t")
    (tmp_path / "t" / "region=north").rename(tmp_path / "t" / "region=south")
    assert "was made of another table" in again(tmp_path, table="t")


def test_a_csv_that_is_read_otherwise_is_another_table(tmp_path: Path) -> None:
    make_desk(tmp_path)
    write_csv(tmp_path / "in.csv")

    def read_with(csv: str) -> None:
        table = open_source(tmp_path / "in.csv", csv=csv, keep_words=True)
        privatize(table, tmp_path / "out.csv", desk=tmp_path / "desk", request=request_of())

    read_with("separator=,")
    with pytest.raises(AlreadyReleased):
        read_with("separator=,")
    with pytest.raises(ValueError, match="was made of another table"):
        read_with("separator=, thousands=space")

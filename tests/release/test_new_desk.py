"""The first policy of a desk: proposed from what a table looks like, with no number of it."""

import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.release import (
    FEATURES,
    holds,
    nothing_changes,
    people,
    table_of,
    write_csv,
    write_parquet,
    write_scales,
)
from targetdp.release import Desk, Refused, make_desk, make_request, privatize


def proposed(folder: Path, table: pa.Table, **given: Any) -> Any:
    return make_desk(write_parquet(folder / "in.parquet", table), folder / "desk", **given)


def test_a_policy_is_proposed_and_says_what_is_left_to_decide(tmp_path: Path) -> None:
    made = proposed(tmp_path, table_of(200, gappy=[None, *range(199)]))
    desk = Desk.open(tmp_path / "desk")
    assert made.desk == desk
    assert (made.id, desk.policy.id.column) == ("name", "name")
    assert made.released == desk.policy.columns.release == (*FEATURES, "gappy")
    assert desk.policy.columns.public == {}, "nothing is public before its owner says so"
    assert desk.policy.scales.source == "private"
    scales, gaps = made.to_do
    assert scales.startswith(
        "[scales]: epsilon = 0.4 for the private scales of 4 columns needs at least 9,509"
    )
    assert gaps == "[gaps]: what stands for a missing value of gappy"
    with pytest.raises(Refused, match=r"needs at least 9,509 rows, and there are 200") as refused:
        privatize(
            tmp_path / "in.parquet",
            tmp_path / "out.parquet",
            desk=desk,
            request=make_request(B=0.25, epsilon=4),
        )
    assert "gappy" in str(refused.value)


def test_the_first_release_of_many_people_needs_no_edit(tmp_path: Path) -> None:
    """Two commands."""
    assert proposed(tmp_path, table_of(7_200)).to_do == ()
    privatize(tmp_path / "in.parquet", tmp_path / "out.parquet", desk=tmp_path / "desk",
              request=make_request(B=0.25, epsilon=4))  # fmt: skip
    assert holds(tmp_path / "out.parquet")


def test_no_number_of_the_table_goes_into_the_policy(tmp_path: Path) -> None:
    """Two tables of one shape and different values have the same policy, byte for byte."""
    texts = []
    for number in (1, 2):
        folder = tmp_path / f"{number}" / "same"
        folder.mkdir(parents=True)
        raw = people(150, seed=number)
        for name in FEATURES:
            raw[name] = raw[name] * (1 if number == 1 else -713.25)
        proposed(folder, pa.table(raw))
        texts.append((folder / "desk" / "policy.toml").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert "713" not in texts[1]
    assert "150" not in texts[0]


def test_public_scales_need_no_edit(tmp_path: Path) -> None:
    scales = write_scales(tmp_path / "scales.toml")
    made = proposed(tmp_path, table_of(200), scales=scales)
    assert made.to_do == ()
    assert made.desk.policy.scales.source == "public"
    privatize(tmp_path / "in.parquet", tmp_path / "out.parquet", desk=made.desk,
              request=make_request(B=0.25, epsilon=4))  # fmt: skip
    assert holds(tmp_path / "out.parquet")


def test_scales_of_these_very_people_make_no_desk(tmp_path: Path) -> None:
    scales = write_scales(tmp_path / "scales.toml", "confidential")
    write_parquet(tmp_path / "in.parquet")
    with (
        nothing_changes(tmp_path),
        pytest.raises(ValueError, match="confidential, learned from the same people"),
    ):
        make_desk(tmp_path / "in.parquet", tmp_path / "desk", scales=scales)


def test_columns_that_the_scales_do_not_know_are_left_out(tmp_path: Path) -> None:
    scales = write_scales(tmp_path / "scales.toml", features=FEATURES[:2])
    assert proposed(tmp_path, table_of(60), scales=scales).released == FEATURES[:2]
    assert "# not topups: scales.toml does not know it" in (tmp_path / "desk" / "policy.toml").read_text()


@pytest.mark.parametrize(
    ("column", "ids", "hidden"),
    [
        ("name", [f"2289{i * i * 7919 % 10**7:07d}" for i in range(1, 61)], True),
        ("name", [f"1{i:07d}" for i in range(60)], False),
        ("name", [f"+228 90 {i:06d}" for i in range(60)], True),
        ("msisdn", [f"s{i}" for i in range(60)], True),
        ("name", [f"person{i}" for i in range(60)], False),
        ("name", [f"Afi Mensah {i}" for i in range(60)], True),
    ],
)
def test_ids_that_look_like_phone_numbers_go_out_as_pseudonyms(
    tmp_path: Path, column: str, ids: list[str], hidden: bool
) -> None:
    table = table_of(60).set_column(0, column, [ids])
    made = proposed(tmp_path, table, id_column=column)
    assert made.pseudonyms == made.desk.policy.id.pseudonyms == hidden


def test_everything_about_every_column_is_said_at_once(tmp_path: Path) -> None:
    raw = people(60) | {
        "region": ["north", "south"] * 30, "flat": [3.0] * 60, "seen": pa.array([0] * 60, pa.date32()),
        "age": [None, *range(59)],
    }  # fmt: skip
    raw["name"] = [f"{name} " if i == 5 else name for i, name in enumerate(raw["name"])]
    made = proposed(tmp_path, pa.table(raw), id_column="name")
    said = "\n".join(made.notes)
    for part in ("region ", "flat ", "seen ", "age ", "ids: "):
        assert part in said
    assert made.released == (*FEATURES, "age")
    assert made.with_gaps == ("age",)
    assert any("[gaps]" in step and "age" in step for step in made.to_do)
    text = (tmp_path / "desk" / "policy.toml").read_text(encoding="utf-8")
    for left_out in ("region", "flat", "seen"):
        assert f"# not {left_out}: " in text


@pytest.mark.parametrize(
    ("table", "given", "message"),
    [
        (pa.table({"a": [1.0, 1.0, 2.0], "b": ["x", "x", "y"]}), {}, "no column is different in every row"),
        (table_of(60), {"id_column": "nope"}, "there is no column 'nope': name the one that identifies"),
        (table_of(60).slice(0, 0), {"id_column": "name"}, "no rows"),
        (table_of(60).slice(0, 0), {}, "no rows|--id"),
    ],
    ids=["no id", "another id", "nobody", "nobody, guessed"],
)
def test_without_an_id_there_is_no_desk(
    tmp_path: Path, table: pa.Table, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        proposed(tmp_path, table, **given)
    assert not (tmp_path / "desk").exists()


def test_a_table_of_words_makes_no_desk(tmp_path: Path) -> None:
    table = pa.table({"name": ["a", "b", "c"], "region": ["x", "y", "z"]})
    with pytest.raises(ValueError, match="can be released as it is: releases are of numbers"):
        proposed(tmp_path, table, id_column="name")
    assert not (tmp_path / "desk").exists()


@pytest.mark.parametrize(
    "name", ['a"b', "a\nb", "a]\n[limit]\nepsilon = 1e9", "# x", "é", "a.b", "\u2028", "'", "=1+1", "\x7f"]
)
def test_whatever_a_column_is_called_the_policy_says_it_and_nothing_else(tmp_path: Path, name: str) -> None:
    table = table_of(60).rename_columns(["name", name, "texts", "topups"])
    table = table.append_column(f"not {name}", [["x", "y"] * 30])
    made = proposed(tmp_path, table, id_column="name")
    policy = made.desk.policy
    assert policy.columns.release == (name, "texts", "topups")
    assert (policy.limit.epsilon, policy.limit.filter) == (10, "renyi")
    text = (tmp_path / "desk" / "policy.toml").read_text(encoding="utf-8")
    assert set(tomllib.loads(text)) == {
        "name", "id", "columns", "gaps", "scales", "limit", "release", "requests",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("subscribers", "subscribers"),
        ("a (copy) of, data!", "a copy of data"),
        ("one two three four five six seven", "one two three four five six"),
        ("x" * 100, "x" * 60),
        ("!!!", "desk"),
    ],
)
def test_a_desk_is_called_as_its_folder_in_plain_words(tmp_path: Path, folder: str, name: str) -> None:
    (tmp_path / folder).mkdir()
    assert proposed(tmp_path / folder, table_of(60)).desk.name == name


def test_a_name_can_be_given_and_a_csv_will_do(tmp_path: Path) -> None:
    made = make_desk(write_csv(tmp_path / "in.csv"), tmp_path / "desk", name="Togo 2026", id_column="name")
    assert made.desk.name == "Togo 2026"
    with pytest.raises(ValueError, match="there is a desk already"):
        make_desk(tmp_path / "in.csv", tmp_path / "other", id_column="name")

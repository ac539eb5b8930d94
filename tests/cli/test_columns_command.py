"""`targetdp columns`: a profile for the data holder's eyes, names to edit, JSON for the next program."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import Ran, cli, words

COLUMNS = {
    "msisdn": [22_890_111_222 + 7919 * i * i for i in range(40)],
    "calls": [float(i) / 4 for i in range(40)],
    "topups": [None if i % 4 else i for i in range(40)],
    "owns_phone": [True, False] * 20,
    "ratio": [np.inf, *range(39)],
    "region": ["north", "south"] * 20,
    "[red]": [1] * 40,
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pq.write_table(pa.table(COLUMNS), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def rows_of(ran: Ran) -> dict[str, list[str]]:
    """The printed table by column; a cell that is folded is one again."""
    rows: dict[str, list[str]] = {}
    last = ""
    for line in ran.out.splitlines():
        if line.startswith("│"):
            cells = [cell.strip() for cell in line.strip("│").split("│")]
            last = cells[0] or last
            before = rows.get(last, [""] * len(cells[1:]))
            rows[last] = [f"{a} {b}".strip() for a, b in zip(before, cells[1:], strict=True)]
    return rows


def test_every_column_has_a_row_that_says_whether_it_can_be_released(table: Path) -> None:
    ran = cli("columns", table)
    assert (ran.code, ran.err) == (0, "")
    assert rows_of(ran) == {
        "msisdn": ["whole number", "0", "", "as the id", ""],
        "calls": ["number", "0", "0 to 9.75", "yes", ""],
        "topups": ["whole number", "30", "0 to 36", "no: 30 gaps", "[gaps] topups = 0"],
        "owns_phone": ["yes-or-no", "0", "0 to 1", "yes", ""],
        "ratio": ["number", "0", "0 to 38", "no: 1 infinite value", "correct or drop these rows"],
        "region": [
            "text", "0", "", "no: text",
            '[kinds.region] kind = "category", levels = ["…"], distance = 0.5; or leave it out of [columns] '
            "release",
        ],
        "[red]": [
            "whole number", "0", "1 to 1", "no: the same in every row", "leave it out of [columns] release",
        ],
    }  # fmt: skip


def test_it_says_for_whose_eyes_it_is(table: Path) -> None:
    assert "40 rows For the data holder's eyes only" in words(cli("columns", table).out)
    assert json.loads(cli("columns", table, "--json").out)["notice"].startswith("For the data holder's eyes")


def test_names_only_are_one_in_each_line_and_read_no_rows(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("names need no rows")

    monkeypatch.setattr("targetdp.table.profile_table", never)
    assert cli("columns", table, "--names").out.splitlines() == list(COLUMNS)
    ran = cli("columns", table, "--names", "--without", "msisdn,[red]")
    assert ran.out.splitlines() == [*COLUMNS][1:-1]


def test_json_has_counts_ranges_and_problems(table: Path) -> None:
    ran = cli("columns", table, "--json", "--without", "msisdn")
    told = json.loads(ran.out)
    assert (told["rows"], told["whole"], told["id"]) == (40, True, "msisdn")
    assert [column["name"] for column in told["columns"]] == [*COLUMNS][1:]
    assert told["columns"][1] == {
        "name": "topups", "type": "whole number", "different": 10, "gaps": 30, "infinite": 0,
        "lowest": 0.0, "highest": 36.0, "problem": {"what": "30 gaps", "remedy": "[gaps] topups = 0"},
    }  # fmt: skip
    assert told["columns"][0]["problem"] is None


def test_no_id_is_shown(table: Path) -> None:
    """The ends of the range of phone numbers are two people's."""
    for more in ((), ("--json",)):
        ran = cli("columns", table, *more)
        assert "22890" not in ran.out
        assert "2.289" not in ran.out
    assert json.loads(ran.out)["columns"][0]["highest"] is None


def test_words_among_the_numbers_of_a_csv_are_counted_and_not_shown(tmp_path: Path) -> None:
    cells = ["7"] * 30 + ["secret", "1 234", "3,5"]
    text = "name,calls\n" + "".join(f'p{i},"{cell}"\n' for i, cell in enumerate(cells))
    (tmp_path / "people.csv").write_text(text, encoding="utf-8")
    ran = cli("columns", tmp_path / "people.csv")
    assert rows_of(ran)["calls"][3].startswith("no: 3 cells that are no numbers: 1 with a comma")
    assert "secret" not in ran.out


def test_part_of_a_large_table_is_said_to_be_one(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targetdp.table._profile.PROFILED_CELLS", 10 * len(COLUMNS))
    assert "the first 10 rows" in words(cli("columns", table).out)


def test_what_is_left_out_must_be_there(table: Path) -> None:
    ran = cli("columns", table, "--without", "msisd")
    assert (ran.code, ran.out) == (2, "")
    assert "without names 'msisd' (did you mean 'msisdn'?): no such column in input" in words(ran.err)


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    ran = cli("columns", tmp_path / "nowhere.csv")
    assert ran.code == 6  # not yet: a timer may find it there later
    assert "nowhere.csv does not exist: check the name" in words(ran.err)

"""The profile of a table: types as people say them, gaps and ranges, and why a column cannot be released."""

from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from targetdp.table import (
    Column,
    ColumnProblem,
    TableProfile,
    Tally,
    guess_id,
    numbers_of,
    open_source,
    profile_table,
)
from targetdp.table import _profile as profile_module

ROWS = 4


def parquet(folder: Path, **columns: Any) -> TableProfile:
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return profile_table(folder / "t.parquet")


def csv(folder: Path, text: str) -> TableProfile:
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return profile_table(folder / "t.csv")


def cells(folder: Path, *values: str) -> Column:
    return csv(folder, "x,y\n" + "".join(f'"{value}",1\n' for value in values))["x"]


def problem(column: Column) -> ColumnProblem:
    assert column.problem is not None
    return column.problem


def test_types_gaps_ranges_and_counts_of_a_parquet_file(tmp_path: Path) -> None:
    found = parquet(
        tmp_path,
        whole=pa.array([3, 1, None, 3], pa.int16()), number=[0.5, np.nan, np.inf, 2.0],
        round=[1.0, 2.0, 5.0, 2.0], money=[Decimal("1.5"), None, Decimal("2.5"), Decimal("9.0")],
        owns=[True, False, None, True], half=pa.array(np.array([0.5, 1, 2, 3], np.float16)),
        level=pa.array([7, 8, 7, 8]).dictionary_encode(), nothing=pa.nulls(4),
    )  # fmt: skip
    assert {
        c.name: (c.kind, c.type_name, c.different, c.gaps, c.infinite, c.lowest, c.highest)
        for c in found.columns
    } == {
        "whole": ("whole", "whole number", 2, 1, 0, 1.0, 3.0),
        "number": ("number", "number", 2, 1, 1, 0.5, 2.0),
        "round": ("whole", "number", 3, 0, 0, 1.0, 5.0),
        "money": ("number", "number", 3, 1, 0, 1.5, 9.0),
        "owns": ("yes-or-no", "yes-or-no", 2, 1, 0, 0.0, 1.0),
        "half": ("number", "number", 4, 0, 0, 0.5, 3.0),
        "level": ("whole", "whole number", 2, 0, 0, 7.0, 8.0),
        "nothing": ("number", "empty", 0, 4, 0, None, None),
    }
    assert all(column.is_number for column in found.columns)
    assert found["number"].missing == 2


OTHERS = {
    "text": (["a", "b", None, "a"], "text", "text"),
    "digits": (["1", "2", None, "4"], "numbers stored as text", "type"),
    "codes": (["007", "008", "009", "010"], "text", "text"),
    "view": (pa.array(["a", "b", "c", "d"]).cast(pa.string_view()), "text", "text"),
    "category": (pa.array(["a", "b", "a", "b"]).dictionary_encode(), "text", "text"),
    "day": ([date(2026, 1, 1)] * ROWS, "date", "date"),
    "moment": ([datetime(2026, 1, 1)] * ROWS, "date and time", "date"),
    "hour": ([time(9)] * ROWS, "time", "type"),
    "calls": ([[1, 2]] * ROWS, "list", "type"),
    "home": ([{"lat": 1.0}] * ROWS, "record", "type"),
    "photo": ([b"x"] * ROWS, "binary", "type"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_number_cannot_be_released(tmp_path: Path, name: str) -> None:
    values, named, kind = OTHERS[name]
    column = parquet(tmp_path, x=values, y=range(ROWS))["x"]
    assert (column.type_name, column.is_number, column.lowest) == (named, False, None)
    assert (problem(column).what, problem(column).kind) == (named, kind)
    assert "leave it out of [columns] release" in problem(column).remedy


@pytest.mark.parametrize(
    ("values", "what", "remedy"),
    [
        ([1.0, None, 2.0, np.nan], "2 gaps", "[gaps] x = 0"),
        ([1.0, None, 1.0, 1.0], "1 gap", "[gaps] x = 0"),
        ([1.0, np.inf, 2.0, -np.inf], "2 infinite values", "correct or drop these rows"),
        (
            [1.0, np.inf, 2.0, None],
            "1 infinite value and 1 gap",
            "correct or drop these rows; [gaps] x = 0",
        ),
        ([5.0] * 4, "the same in every row", "leave it out of [columns] release"),
        ([True] * 4, "the same in every row", "leave it out of [columns] release"),
        ([None, np.nan, None, None], "no values", "leave it out of [columns] release"),
    ],
)
def test_numbers_that_cannot_be_released_say_why_and_what_to_do(
    tmp_path: Path, values: list[Any], what: str, remedy: str
) -> None:
    found = problem(parquet(tmp_path, x=values, y=range(4))["x"])
    assert (found.column, found.what, found.remedy) == ("x", what, remedy)


def test_what_can_be_released_has_no_problem(tmp_path: Path) -> None:
    found = parquet(tmp_path, a=[1, 2, 3], b=[0.5, 0.5, 1.0], c=[True, False, True], d=["x", "y", "z"])
    assert [column.problem is None for column in found.columns] == [True, True, True, False]
    assert [p.column for p in found.problems()] == ["d"]


@pytest.mark.parametrize(
    ("values", "kind", "named", "gaps"),
    [
        (("1", "2", "", "NA"), "whole", "whole number", 2),
        (("1.5", " 2 ", "nan", "3"), "number", "number", 1),
        (("", "N/A", "", ""), "number", "empty", 4),
        (("007", "8", "9", "10"), "text", "text", 0),
        (("a", "", "NA", "b"), "text", "text", 1),
        (("2026-01-31", "2026-02-01 10:00", "", "?"), "text", "date", 1),
        (("31/01/2026", "1.2.26", "", "3/4/2026"), "text", "date", 1),
        (("True", "false", "", "True"), "text", "yes-or-no as text", 1),
        (("yes", "no", "yes", "no"), "text", "yes-or-no as text", 0),
        (("3,5", "a", "b", "1"), "text", "text", 0),
    ],
)
def test_a_csv_is_read_as_what_it_means(
    tmp_path: Path, values: tuple[str, ...], kind: str, named: str, gaps: int
) -> None:
    column = cells(tmp_path, *values)
    assert (column.kind, column.type_name, column.gaps) == (kind, named, gaps)


def test_words_among_numbers_are_counted_and_not_shown(tmp_path: Path) -> None:
    column = cells(tmp_path, *map(str, range(20)), "N/A", "", "unknown", "1 234", "3,5", "private")
    assert (column.kind, column.gaps) == ("text", 1)
    found = problem(column)
    assert found.what == (
        "4 cells that are no numbers: 1 with a comma, 1 with spaces or signs between digits, 2 with words"
    )
    assert found.remedy == "correct these cells, or leave it out of [columns] release"
    assert "private" not in f"{column}"


CSV = (
    "name,calls,texts,topups,region\n"
    + "".join(f"p{i},{i},{'NA' if i % 3 else i},{i / 2},{'ns'[i % 2]}\n" for i in range(30))
    + "p30,inf,3,1 234,n\n"
)


def test_a_profile_and_a_release_agree_on_what_is_wrong(tmp_path: Path) -> None:
    """Of both formats: the same columns, the same counts."""
    look = csv(tmp_path, CSV)
    features = ["calls", "texts", "topups", "region"]
    tally = Tally()
    source = open_source(tmp_path / "t.csv", keep_words=True)
    for batch in source.batches(features, dict.fromkeys(features, pa.float64()), 1000):
        numbers_of(batch, features, {}, tally, 0)
    short = [(p.column, p.what.split(":")[0], p.remedy) for p in look.problems() if p.column != "name"]
    assert short == [(p.column, p.what, p.remedy) for p in tally.problems(rows_are_numbered=False)]


def test_wide_tables_are_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_module, "PROFILED_CELLS", 30)
    found = parquet(tmp_path, a=range(20), b=range(20), c=range(20))
    assert (found.rows, found.whole) == (10, False)
    assert found["a"].highest == 9.0
    assert (parquet(tmp_path, a=range(30)).rows, parquet(tmp_path, a=range(30)).whole) == (30, True)


def table(*columns: Column, rows: int = 10) -> TableProfile:
    return TableProfile(rows, True, columns)


def test_an_id_is_different_in_every_row_and_named_like_one() -> None:
    def text(name: str, different: int = 10) -> Column:
        return Column(name, "text", different, 0)

    def whole(name: str, different: int = 10) -> Column:
        return Column(name, "whole", different, 0, 0.0, 9.0)

    assert guess_id(table(text("village", 3), whole("income"), text("note"), whole("ID"))) == "ID"
    assert guess_id(table(text("note"), text("MSISDN"), whole("id", 9))) == "MSISDN", (
        "an id differs in every row"
    )
    assert guess_id(table(whole("amount"), whole("farmer_id"))) == "farmer_id"
    assert guess_id(table(whole("amount"), text("label"))) == "label"
    assert guess_id(table(text("note"), whole("Phone number"))) == "Phone number"
    assert guess_id(table(text("note"), whole("Farmer-ID"))) == "Farmer-ID"
    assert guess_id(table(whole("amount"), whole("Their mobile phone"))) == "Their mobile phone"
    assert guess_id(table(whole("amount"), text("region", 2))) is None, "an amount may always differ"
    assert guess_id(table(Column("id", "text", 10, 0, type_name="date"))) is None


def test_numbers_with_a_fraction_by_type_are_no_ids(tmp_path: Path) -> None:
    """A release would refuse them; a CSV's are read as text there."""
    assert guess_id(parquet(tmp_path, id=[1.0, 2.0, 3.0])) is None
    assert guess_id(parquet(tmp_path, id=[1, 2, 3])) == "id"
    assert guess_id(csv(tmp_path, "id,calls\n1,5\n2,5\n")) == "id"

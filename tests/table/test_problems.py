"""What is wrong with columns, in words: lines that align, many columns in one line."""

import tomllib

import pyarrow as pa
import pytest

from targetdp.table import ColumnProblem, problem_lines
from targetdp.table._problems import MOST_LINES, problem_with, type_name


def test_lines_are_aligned_as_the_style_shows_them() -> None:
    problems = [
        problem_with("region", "text", "text"), problem_with("last_seen", "date", "date"),
        problem_with("topups", "gaps", "812 gaps"),
    ]  # fmt: skip
    assert problem_lines(problems) == (
        '  region     text      [kinds.region] kind = "category", levels = ["…"], distance = 0.5; or leave '
        "it out of [columns] release",
        '  last_seen  date      [kinds.last_seen] kind = "date", days_from = "2026-01-01", days = 28; or '
        "leave it out of [columns] release",
        "  topups     812 gaps  [gaps] topups = 0",
    )


def gaps(count: int) -> list[ColumnProblem]:
    return [problem_with(f"c{i}", "gaps", "3 gaps") for i in range(count)]


@pytest.mark.parametrize("count", [MOST_LINES, MOST_LINES + 1, 1204])
def test_many_columns_of_one_kind_are_one_line_with_one_remedy(count: int) -> None:
    lines = problem_lines([*gaps(count), problem_with("x", "infinite", "1 infinite value")])
    assert "x" in lines[-1]
    if count == MOST_LINES:
        assert len(lines) == MOST_LINES + 1
    else:
        assert len(lines) == 2
        assert lines[0].split() == f"{count:,} columns gaps: c0, c1, c2, … [gaps] all = 0".split()
        said = problem_lines(gaps(count), policy=False)
        assert said[0].endswith("fill the gaps in the table, or drop these rows")


def test_many_columns_of_other_kinds_are_spoken_of_as_many() -> None:
    lines = problem_lines([problem_with(f"c{i}", "text", "text") for i in range(13)])
    assert lines[0].endswith(
        '[kinds.…] kind = "category", levels = ["…"], distance = 0.5; or leave them out of [columns] release'
    )


@pytest.mark.parametrize(
    "name", ["night calls", 'a "quoted" one', "été", "dots.too", "two\nlines", "", "{it}"]
)
def test_remedies_are_lines_of_toml_whatever_the_name(name: str) -> None:
    problem = problem_with(name, "gaps", "1 gap")
    assert tomllib.loads(problem.remedy.replace("] ", "]\n", 1)) == {"gaps": {name: 0}}
    assert len(problem_lines([problem])[0].splitlines()) == 1


def test_types_are_said_as_people_say_them() -> None:
    kinds = {
        pa.bool_(): "yes-or-no", pa.uint8(): "whole number", pa.float16(): "number",
        pa.decimal128(9): "number", pa.large_string(): "text", pa.date64(): "date",
        pa.timestamp("us", "UTC"): "date and time",
        pa.time64("us"): "time", pa.duration("s"): "duration", pa.large_list(pa.int8()): "list",
        pa.map_(pa.string(), pa.int8()): "record", pa.null(): "empty", pa.binary(): "binary",
    }  # fmt: skip
    assert {kind: type_name(kind) for kind in kinds} == kinds

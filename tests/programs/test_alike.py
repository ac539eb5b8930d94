"""Names of groups that look alike are pointed out, and stay different groups."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from targetdp.programs import Aid, AlikeGroups, alike_in_table, alike_names
from targetdp.programs._people import people_of


@pytest.mark.parametrize(
    "alike",
    [
        ("F", "F "), ("F", "f"), ("F", "Femme"), ("F.", "Femme"), (" rural", "Rural"),
        ("no  north", "No North"), ("\u00e9t\u00e9", "e\u0301te\u0301"), ("Stra\u00dfe", "STRASSE"),
        ("a\u00a0b", "a b"), ("M", "male", "MALE "), ("f", "F", "fem", "Femme adulte"),
    ],
)  # fmt: skip
def test_spaces_case_accents_and_abbreviations(alike: tuple[str, ...]) -> None:
    names = [*alike, "homme", "Z", "(missing)"]
    for order in (names, names[::-1]):
        (found,) = alike_names(order)
        assert sorted(found) == sorted(alike)


@pytest.mark.parametrize(
    "different",
    [
        ("1", "10", "11"), ("North", "North East", "North-East"), ("male", "female"), ("", "a", "b"),
        ("St.", "St. Louis"), ("15-24", "15"), ("...", "x"), ("G1", "G10"), ("A1", "A"), (),
    ],
)  # fmt: skip
def test_numbers_and_longer_names_are_not_abbreviations(different: tuple[str, ...]) -> None:
    assert alike_names(different) == []


def test_each_set_stands_alone() -> None:
    names = ["North", "north", "South", "SOUTH", "East"]
    assert sorted(map(sorted, alike_names(names))) == [["North", "north"], ["SOUTH", "South"]]


def test_the_sentence_shows_spaces_counts_and_what_to_do() -> None:
    people = people_of(7, groups={"sex": ["F", "F ", "Femme", "F", "H", "H", "H"], "area": ["a"] * 7})
    (found,) = people.alike_groups
    assert found.words == (
        "group column 'sex': 'F' (2 rows), 'F ' (1 row) and 'Femme' (1 row) look alike and are counted as "
        "different groups; if they mean the same, give them one name in the table"
    )
    assert found.record() == {
        "column": "sex", "names": ["F", "F ", "Femme"], "rows": [2, 1, 1], "words": found.words,
    }  # fmt: skip
    many = AlikeGroups("sex", {"x" * (i + 1): 1_000 for i in range(9)})
    assert "'xxxxxx' (1,000 rows) and 3 more look alike" in many.words


def test_what_looks_alike_is_never_made_one() -> None:
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "F ", "Femme", "H"], 200)
    result = Aid(rng.random(200), 0.3, groups={"sex": sex.tolist()}).judge(rng.random(200))
    counts = {name: group["people"] for name, group in result.by_group["sex"].items()}
    assert counts == {name: (sex == name).sum() for name in ("F", "F ", "Femme", "H")}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_is_looked_at_before_a_program_is_made_of_it(tmp_path: Path, kind: str) -> None:
    table, path = (
        pa.table({"sex": ["F", "f", None, "H"], "code": ["1", "1 ", "2", "3"]}),
        tmp_path / f"t.{kind}",
    )
    (pq.write_table if kind == "parquet" else pacsv.write_csv)(table, path)
    sex, code = alike_in_table(path, ["sex", "code"], rows=4)
    assert (sex.column, dict(sex.rows)) == ("sex", {"F": 1, "f": 1})
    assert (code.column, dict(code.rows)) == ("code", {"1": 1, "1 ": 1})
    assert alike_in_table(path, [], rows=4) == []


def test_no_more_of_a_large_table_is_looked_at_than_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    names = ["F"] * 400_000 + ["f"]
    pq.write_table(pa.table({"sex": names}), path, row_group_size=100_000)
    assert alike_in_table(path, ["sex"], rows=1_000) == []
    assert len(alike_in_table(path, ["sex"], rows=len(names))) == 1


@pytest.mark.parametrize("odd", ["north\u202eevil", "a\nb", "x\u200b", "\ud800"])
def test_names_that_could_turn_the_words_around_them_are_refused(odd: str) -> None:
    """27.8% was read as %8.72 behind a name of a group."""
    with pytest.raises(ValueError, match="group column 'region' has a value with characters that nobody"):
        people_of(2, groups={"region": ["south", odd]})
    people_of(2, groups={"region": ["Lomé", "شمال"]})  # other scripts are names like any

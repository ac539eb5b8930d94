"""How people write numbers, phone numbers and ids: what is read, what is odd, and that no value is told."""

import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from targetdp.table import looks_like_phone_numbers, spelling_problems
from targetdp.table._spelling import GAPS, describe_words, read_numbers, with_numbers

CELLS = (
    "3", "+3", "-3", " 3 ", "3.", ".5", "1e5", "1E-5", "1e", "e5", "inf", "-Inf", "Infinity", "1e400",
    "0x10", "1_0", "N/A", " NA", "na", "nan", "-nan", "NAN", "", " ", "true", "1d", "3,5", "1 234", "3\u00a0",
    "--3", "+", ".", "007", "\t7", "7%", "½", "٣", "1.5.2", "infinit", "null", "NULL", "None", "-", "#N/A",
)  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_cells_are_read_as_the_reader_of_a_csv_reads_them(cell: str) -> None:
    convert = pacsv.ConvertOptions(column_types={"x": pa.float64()}, strings_can_be_null=False)
    numbers, wrong = read_numbers(pa.array([cell]))
    try:
        text = f'x,y\n"{cell}",1\n'.encode()
        expected = pacsv.read_csv(io.BytesIO(text), convert_options=convert)["x"].combine_chunks()
    except pa.ArrowInvalid:
        assert (numbers.to_pylist(), wrong.to_pylist()) == ([None], [True])
    else:
        assert wrong.to_pylist() == [False]
        assert numbers.equals(expected) or np.isnan([numbers[0].as_py(), expected[0].as_py()]).all()


def test_gaps_are_those_of_the_reader() -> None:
    assert set(GAPS) == set(pacsv.ConvertOptions().null_values)


def test_columns_become_numbers_where_all_of_a_batch_are() -> None:
    batch = pa.record_batch({"name": ["1", "2"], "calls": ["3", "NA"], "texts": ["1", "?"]})
    found = with_numbers(batch, ["calls", "texts"])
    assert found.to_pydict() == {"name": ["1", "2"], "calls": [3.0, None], "texts": ["1", "?"]}


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["unknown"], "1 cell that is no number: 1 with words"),
        (["3,5", "-1,25", "1.234,5"], "3 cells that are no numbers: 3 with a comma"),
        (
            ["1 234", "1'234", "1\u202f234"],
            "3 cells that are no numbers: 3 with spaces or signs between digits",
        ),
        (["?", "12%", "CFA 200", "x,y"], "4 cells that are no numbers: 4 with words"),
    ],
)
def test_words_are_counted_by_sort_and_never_shown(cells: list[str], said: str) -> None:
    assert describe_words(pa.array(cells)) == said


def phones(count: int, form: str = "+2289{:07d}") -> list[str]:
    numbers = np.random.default_rng(1).choice(10_000_000, count, replace=False)
    return [form.format(number) for number in numbers]


FORMS = ("+2289{:07d}", "002289{:07d}", "2289{:07d}", "9{:07d}", "09{:07d}", "+228-9{:07d}", "+228 9 {:07d}")


@pytest.mark.parametrize("form", FORMS)
def test_phone_numbers_look_like_phone_numbers(form: str) -> None:
    assert looks_like_phone_numbers(pa.array(phones(500, form)))


def test_phone_numbers_of_a_whole_country_are_no_counter() -> None:
    """A sixth of all possible numbers, every one different."""
    numbers = 70_000_000 + np.random.default_rng(2).choice(3_000_000, 500_000, replace=False)
    assert looks_like_phone_numbers(pa.array(numbers).cast(pa.string()))


def test_a_few_other_ids_among_phone_numbers_do_not_hide_them() -> None:
    assert looks_like_phone_numbers(pa.array([*phones(95), "anna", "bo", "", "12", None]))
    assert not looks_like_phone_numbers(pa.array([*phones(80), *(f"p{i}" for i in range(20))]))


def every(step: int, count: int = 1000, form: str = "{}", start: int = 1_000_000) -> list[str]:
    return [form.format(start + step * i) for i in range(count)]


IDS: dict[str, Sequence[str | None]] = {
    "a counter": every(1),
    "a counter in steps": every(10),
    "a counter with a prefix": every(1, start=22_800_000_001),
    "a shuffled counter": list(np.random.default_rng(3).permutation(every(1))),
    "a counter with holes": [name for i, name in enumerate(every(1)) if i % 5 != 2],
    "a padded counter": every(1, form="{:08d}", start=1),
    "a padded counter of millions": every(1, 200_000, "{:08d}", 900_000),
    "some of a padded counter": [
        f"{i:07d}" for i in np.random.default_rng(4).choice(900_000, 500, replace=False)
    ],
    "short numbers": every(7, form="{}", start=100)[:500],
    "names": ["ann", "bob", "cleo"] * 50,
    "hashes": [f"{i * 2654435761 % 2**32:08x}f" for i in range(300)],
    "uuids": [f"123e4567-e89b-12d3-a456-4266141740{i:02d}" for i in range(90)],
    "very long numbers": [f"{10**16 + i * 7919 * i}" for i in range(300)],
    "one number for all": phones(1) * 50,
    "two": phones(2),
    "nothing": [],
    "gaps": ["", None, " "],
}


@pytest.mark.parametrize("name", IDS)
def test_other_ids_do_not(name: str) -> None:
    assert not looks_like_phone_numbers(pa.array(IDS[name], pa.string()))


def spelled(*ids: str | None) -> str:
    """What is said of ids, none of which may be in it."""
    said = " / ".join(spelling_problems(pa.array(ids, pa.string())))
    assert not any(name and len(name) > 3 and name in said for name in ids)
    return said


@pytest.mark.parametrize(
    "ids", [["ann", "bob", "cléo"], phones(50), phones(50, "+228 9 {:07d}"), ["7", "8", None, ""], []]
)
def test_nothing_is_odd_about_ids_of_one_form(ids: list[str | None]) -> None:
    assert spelled(*ids) == ""


def test_spaces_around_ids_are_told() -> None:
    assert spelled("anna", "berta ", "cleo").startswith("1 id begins or ends with a space: trim all ids")
    assert spelled(" anna", "berta\t", "cleo").startswith("2 ids begin or end with a space")


def test_forms_of_phone_numbers_are_told_with_their_counts() -> None:
    numbers = phones(30, "{:07d}")
    mixed = [(f"+2289{n}", f"002289{n}", f"2289{n}")[i % 3] for i, n in enumerate(numbers)]
    assert spelled(*mixed) == (
        "phone numbers have 3 forms (10 begin with +, 10 begin with 00, 10 begin with another digit): write "
        "all of them in one"
    )
    assert "2 forms (30 begin with +, 30 begin with a single 0)" in spelled(
        *phones(30), *phones(30, "09{:07d}")
    )


def test_phone_numbers_with_and_without_separators_are_told() -> None:
    ids = [*phones(30), "+228-70-11-22-33", "+228 71 11 22 33"]
    assert spelled(*ids) == (
        "2 of 32 phone numbers are written with spaces, dots or hyphens: write all of them in one form"
    )


def test_one_phone_number_in_two_forms_is_one_person() -> None:
    ids = phones(30)
    said = spelled(*ids, ids[0].replace("+", "00"), ids[1].replace("+", "00"))
    assert (
        "2 ids differ from others only in the form of the phone number: keep one row for each person" in said
    )


def test_ids_that_differ_in_capital_letters_only_are_told() -> None:
    assert spelled("Anna", "anna", "ANNA", "berta") == (
        "2 ids differ from others only in capital letters: spell each person in one way"
    )

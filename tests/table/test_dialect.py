"""How CSV files are written: found, or refused where it can be read in two ways; said in words and TOML."""

import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from targetdp.table import Dialect, Numerals, TableError, dialect_lines, dialect_of, open_source
from targetdp.table._dialect import DECIMALS, ENCODINGS, QUOTES, SEPARATORS, THOUSANDS, doubtful, find_dialect
from targetdp.table._spelling import plainly_spelled, read_numbers

dialects = st.builds(
    lambda parts: parts[0],
    st.tuples(
        st.tuples(*map(st.sampled_from, (SEPARATORS, DECIMALS, THOUSANDS, ENCODINGS, QUOTES)))
        .filter(lambda signs: signs[1] != signs[2])
        .map(lambda signs: Dialect(*signs))
    ),
)


@given(dialects)
def test_what_is_said_of_a_dialect_is_read_again(csv: Dialect) -> None:
    assert dialect_of(csv.text) == csv
    assert Dialect(**tomllib.loads("\n".join(dialect_lines(csv)))) == csv


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("separator=:", "separator = ':' is not one of"), ("foo=1", "a part of csv = 'foo' is not one of"),
        ("decimal=, thousands=,", "must differ"), ("separator=; separator=;", "give each part once"),
        ("separator=", "give each part once"), ("encoding=koi8-r", "encoding = 'koi8-r' is not one of"),
    ],
)  # fmt: skip
def test_what_is_no_dialect_is_refused(said: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dialect_of(said)
    with pytest.raises(TypeError):
        dialect_of(3)  # type: ignore[arg-type]


def found(tmp_path: Path, text: str, encoding: str = "utf-8") -> Dialect:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    return find_dialect([path])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,x\na,1.5\n", Dialect()),
        ("id;x\na;1,5\n", Dialect(";", ",")),
        ("id;x\na;1 234\nb;5\n", Dialect(";", ",", " ")),
        ("id;x\na;12,5\nb;1\N{NO-BREAK SPACE}234,5\n", Dialect(";", ",", " ")),
        ("id;x\na;1.234.567\n", Dialect(";", ",", ".")),
        ("id;x;y\na;1.234;3,5\n", Dialect(";", ",", ".")),
        ("id;x\na;0.125\nb;1.250\n", Dialect(";")),
        ("id;x\na;1’234.5\n", Dialect(";", ".", "'")),
        ("id\tx\na\t3,5\n", Dialect("\t", ",")),
        ("id|x\na|3.5\n", Dialect("|")),
        ("'id';'x'\n'a;b';'3,5'\n", Dialect(";", ",", "", "utf-8", "'")),
        ('id,x\na,"1,234.5"\nb,"2,345.5"\n', Dialect(thousands=",")),
        # Most cells of a column must say so where commas part columns.
        ('id,x\na,"3,5"\nb,2\nc,4\n', Dialect()),
        # A separator in a name: rows tell.
        ("id,a;b\nx,1\n", Dialect()),
        ("id\na\n", Dialect()),
        ("id;tel\na;90 12 34 56\n", Dialect(";")),
        ("id;day\na;01.02.2026\n", Dialect(";")),
        # Columns that contradict each other are named when they are read.
        ("id;x;y\na;3,5;1\nb;2,5;1\nc;1;0.25\n", Dialect(";")),
    ],
)
def test_what_a_file_says_is_found(tmp_path: Path, text: str, expected: Dialect) -> None:
    assert found(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id;x\na;1,234\n", "may part thousands or begin a fraction"),
        ("id;x\na;1.234\nb;12.345\n", "may part thousands or begin a fraction"),
        ('id,x\na,"1,234"\n', "may part thousands or begin a fraction"),
        ("id,a;b\nx,1;2\n", "may be parted by ',' or ';'"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused_with_the_remedy(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(TableError, match=message) as refused:
        found(tmp_path, text)
    assert "--csv 'separator=; decimal=,'" in str(refused.value)
    assert "1,234" not in str(refused.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_encodings_are_found(tmp_path: Path, encoding: str) -> None:
    csv = found(tmp_path, "prénom;x\nZoé;3,5\n", encoding)
    assert csv.encoding == encoding.removesuffix("-sig")
    assert open_source(tmp_path / "t.csv").columns == ("prénom", "x")


def test_an_encoding_that_nobody_knows_or_several_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id;x\n\x81;1\n")
    with pytest.raises(TableError, match="neither in UTF-8 nor in cp1252"):
        open_source(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes("é;x\n".encode())
    (tmp_path / "b.csv").write_bytes("é;x\n".encode("cp1252"))
    with pytest.raises(TableError, match=r"not in one encoding \(a.csv in utf-8, b.csv in cp1252\)"):
        open_source(tmp_path)


def test_a_declared_encoding_that_a_file_has_not_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("name,x\nZoé,1\n".encode("cp1252"))
    for csv in ("encoding=utf-8", "encoding=utf-16"):
        with pytest.raises(TableError, match=r"(is not text in|looks written with)") as refused:
            list(open_source(path, csv=csv).batches(["name"], {}, 10))
        assert "damaged" not in str(refused.value)


def test_what_looks_otherwise_than_declared_is_doubtful(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id;x\na;3,5\n", encoding="utf-8")
    assert doubtful([path], Dialect(";", ",")) == ""
    assert doubtful([path], Dialect(";", ",", " ", "cp1252")) == ""
    assert doubtful([path], Dialect(";", ".")) == "separator=; decimal=,"
    assert doubtful([path], Dialect()) == "separator=; decimal=,"
    path.write_text("id;x\na;3\n", encoding="utf-8")  # nothing speaks against either
    assert doubtful([path], Dialect(";", ",")) == doubtful([path], Dialect(";", ".", " ")) == ""


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(NUMBERS, st.sampled_from([(d, t) for d in DECIMALS for t in THOUSANDS if d != t]))
def test_a_number_is_itself_in_every_spelling(value: float, signs: tuple[str, str]) -> None:
    decimal, mark = signs
    plain = repr(value)
    text = plain.replace(".", decimal)
    if mark and "e" not in plain:
        text = f"{value:,}".replace(",", "\0").replace(".", decimal).replace("\0", mark)
    (number,), (wrong,) = read_numbers(pa.array([text]), Numerals(*signs))
    assert not wrong.as_py()
    assert number.as_py() == value


@pytest.mark.parametrize(
    "text", ["12 34", "1 2345", "1 234 56", "01 234", "1,5.5", "1 234,5,5", "3.5", "1 234.5"]
)
def test_what_is_spelled_otherwise_is_no_number(text: str) -> None:
    numerals = Numerals(",", " ")
    assert read_numbers(pa.array([text]), numerals)[1].to_pylist() == [True]
    # Nor is it one for whoever reads it plainly afterwards.
    assert read_numbers(plainly_spelled(pa.array([text]), numerals))[1].to_pylist() == [True]

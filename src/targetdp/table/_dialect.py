"""How a CSV file is written: separator, decimal sign, thousands marks, encoding, quotes; declared, or found.

What is found is found by the beginning of a file, in which people's rows stand. So it is shown, and a release
reads what its policy declares: nobody's row changes how anybody else's is read.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from targetdp._core import check
from targetdp.table._spelling import Numerals, read_numbers

FIELDS = ("separator", "decimal", "thousands", "encoding", "quote")
SEPARATORS, DECIMALS = (",", ";", "\t", "|"), (".", ",")
THOUSANDS, QUOTES = ("", " ", "'", ".", ","), ('"', "'", "")
ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16")
_WORDS = {"tab": "\t", "space": " ", "none": ""}
_NAMES = {sign: word for word, sign in _WORDS.items()}
_ALIASES = {"utf8": "utf-8", "utf-8-sig": "utf-8", "windows-1252": "cp1252", "latin1": "latin-1",
            "iso-8859-1": "latin-1", "utf16": "utf-16"}  # fmt: skip
HEAD, _ROWS, _CELLS = 1 << 20, 200, 20_000
"""Of each file so many bytes are looked at for its encoding; of one so many rows, or cells, for the rest."""

REMEDY = (
    "say how it is written ([csv] in the desk's policy.toml, or --csv 'separator=; decimal=,' where a "
    "command takes it), or write it with commas and points in UTF-8"
)
_MARKED = re.compile(r"[0-9][\s,'’][0-9]")


class TableError(ValueError):
    """A table that cannot be read.

    Example:
        >>> raise TableError("input people.csv is empty or has no rows: there is nothing to read")
        Traceback (most recent call last):
        targetdp.table._dialect.TableError: input people.csv is empty or has no rows: there is nothing to read
    """


def _summary_only(schema: dict[str, Any]) -> None:
    schema["description"] = schema["description"].split("\n\n")[0]


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written. Names stand for signs that cannot be seen: tab, space, none.

    Args:
        separator: What stands between cells: a comma, ``;``, a tab or ``|``.
        decimal: What stands before a fraction: a point or a comma.
        thousands: What groups of three digits are parted by: nothing, a space of any kind, ``'``, a point or
            a comma.
        encoding: utf-8 (with or without a byte order mark), cp1252, latin-1 or utf-16.
        quote: What stands around a cell that holds a separator: ``"``, ``'`` or nothing.

    Raises:
        ValueError: A sign is none of these, or decimal and thousands are the same.

    Example:
        >>> Dialect(separator=";", decimal=",", thousands="space").text
        'separator=; decimal=, thousands=space'
    """

    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"
    quote: str = '"'

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "json_schema_extra": _summary_only}
    """A file that says it says nothing else: pydantic looks here."""

    def __post_init__(self) -> None:
        known = {"separator": SEPARATORS, "decimal": DECIMALS, "thousands": THOUSANDS,
                 "encoding": ENCODINGS, "quote": QUOTES}  # fmt: skip
        for name, signs in known.items():
            given = getattr(self, name)
            sign = _ALIASES.get(given.lower(), given.lower()) if name == "encoding" else given
            sign = _WORDS.get(sign, sign)
            if sign not in signs:
                check.choice(name, given, tuple(_NAMES.get(one, one) for one in signs))
            object.__setattr__(self, name, sign)
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands are both {self.decimal!r}: they must differ")

    @property
    def text(self) -> str:
        """It in words, as `dialect_of` reads them: what is as usual is left out, but for the first two."""
        usual = Dialect()
        values = {name: getattr(self, name) for name in FIELDS}
        return " ".join(
            f"{name}={_NAMES.get(value, value)}" for name, value in values.items()
            if name in FIELDS[:2] or value != getattr(usual, name)
        )  # fmt: skip

    @property
    def numerals(self) -> Numerals:
        """How its numbers are spelled."""
        return Numerals(self.decimal, self.thousands)


def dialect_of(given: str | Dialect) -> Dialect:
    r"""A dialect from words.

    Args:
        given: Its fields, such as ``"separator=; decimal=, encoding=latin-1"``, with spaces between them.

    Returns:
        The dialect; what is not said is as usual.

    Raises:
        ValueError: A field or a sign is not known, or said twice.

    Example:
        >>> dialect_of("separator=tab decimal=,")
        Dialect(separator='\t', decimal=',', thousands='', encoding='utf-8', quote='"')
    """
    if isinstance(given, Dialect):  # it may say more, as a policy's does
        return Dialect(*(getattr(given, name) for name in FIELDS))
    fields: dict[str, str] = {}
    check.instance("csv", given, str)
    for part in given.split():
        name, equals, value = part.partition("=")
        check.choice("a part of csv", name, FIELDS)
        if not (equals and value) or name in fields:
            raise ValueError(f"csv = {given!r}: give each part once, such as {name}={getattr(Dialect, name)}")
        fields[name] = value
    return Dialect(**fields)


PLAIN = Dialect()


# Finding it


def find_dialect(files: Sequence[Path]) -> Dialect:
    r"""Find how CSV files are written, by the beginning of each.

    Args:
        files: Parts of one table.

    Returns:
        The dialect.

    Raises:
        TableError: It cannot be told; the message says between what.
        OSError: A file cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_bytes("prénom;revenu\nZoé;3,5\n".encode("latin-1"))
        >>> find_dialect([path]).text
        'separator=; decimal=, encoding=cp1252'
    """
    encodings: dict[str, Path] = {}
    first = b""
    for file in files:
        with pa.input_stream(str(file), compression="detect") as stream:
            head = stream.read(HEAD)
        if (encoding := _encoding(file, head)) is not None:
            encodings.setdefault(encoding, file)
        first = first or head
    if len(encodings) > 1:
        listed = ", ".join(f"{file.name} in {encoding}" for encoding, file in encodings.items())
        raise TableError(f"the parts are not in one encoding ({listed}): write all of them in one")
    encoding = next(iter(encodings), "utf-8")
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(first).removeprefix("\ufeff")
    quote = "'" if text.startswith("'") else '"'
    separator, rows = _separator(files[0], text, quote, cut=len(first) == HEAD)
    decimal, thousands = _numbers(files[0], separator, rows)
    return Dialect(separator, decimal, thousands, encoding, quote)


def _encoding(file: Path, head: bytes) -> str | None:
    """In what a file is encoded; None where all of it is ASCII, which is the same in most."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if head.isascii():
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD)
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    try:
        head.decode("cp1252")
    except UnicodeDecodeError as error:
        raise TableError(f"input {file} is text neither in UTF-8 nor in cp1252: {REMEDY}") from error
    return "cp1252"


def _rows(text: str, separator: str, quote: str, *, cut: bool) -> list[list[str]]:
    """The first rows as they are with a separator; none where they cannot be read so."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, quotechar=quote)
    try:
        rows = [row for row in islice(reader, _ROWS + 1) if row]
    except csv.Error:
        return []
    # The last one may go on behind the head.
    return rows[:-1] if cut and len(rows) <= _ROWS and len(rows) > 1 else rows


def _separator(file: Path, text: str, quote: str, *, cut: bool) -> tuple[str, list[list[str]]]:
    """The separator by which the names of columns are parted, and the first rows."""
    parted = {}
    for sign in SEPARATORS:
        rows = _rows(text, sign, quote, cut=cut)
        if rows and len(rows[0]) > 1:
            parted[sign] = rows
    if not parted:  # a single column
        return ",", _rows(text, ",", quote, cut=cut)
    if len(parted) > 1:
        even = {sign: rows for sign, rows in parted.items() if len({len(row) for row in rows}) == 1}
        if len(even) != 1:
            signs = " or ".join(repr(sign) for sign in even or parted)
            raise TableError(f"input {file} may be parted by {signs}: {REMEDY}")
        parted = even
    ((sign, rows),) = parted.items()
    return sign, rows


def _numbers(file: Path, separator: str, rows: list[list[str]]) -> tuple[str, str]:
    """How numbers are spelled: the one way in which every column of numbers can be read.

    A sign that no cell has tells nothing: numbers are as usual then, and a later cell that is not is refused.
    Where a comma parts columns, numbers are as usual unless most of a column are not.
    """
    usual = Numerals()
    marked = separator != "," or any(_MARKED.search(cell) for row in rows[1:] for cell in row)
    if not (rows and marked):
        return usual.decimal, usual.thousands
    width = len(rows[0])
    whole = [row for row in rows[1:] if len(row) == width][: max(1, _CELLS // width)]
    ways = [Numerals(d, t) for d in DECIMALS for t in THOUSANDS if d != t]
    fits, numbers = set(ways), list[dict[Numerals, pa.Array]]()
    for cells in zip(*whole, strict=True):
        column = pa.array(cells)
        read = {way: read_numbers(column, way) for way in ways}
        right = {way: len(found) - found.null_count for way, (found, _) in read.items()}
        most, gaps = max(right.values()), len(column) - right[usual] - read[usual][1].true_count
        if 2 * most > len(column) - gaps and (separator != "," or 2 * right[usual] < most):
            fits &= {way for way in ways if right[way] == most}
            numbers.append({way: found for way, (found, _) in read.items()})
    if not fits:  # columns contradict each other: whichever cannot be read is named when it is
        return usual.decimal, usual.thousands
    likely = "," if separator == ";" else "."
    best = min(fits, key=lambda way: (way != usual, way.thousands != "", way.decimal != likely))
    if not all(column[way].equals(column[best]) for column in numbers for way in fits):
        raise TableError(
            f"input {file} has numbers whose signs may part thousands or begin a fraction: {REMEDY}"
        )
    return best.decimal, best.thousands


def doubtful(files: Sequence[Path], declared: Dialect) -> str:
    """How files look written, where that is not as declared; nothing where it is, or cannot be told.

    Args:
        files: Parts of one table.
        declared: How they are read.

    Returns:
        The dialect that was found, in words.
    """
    try:
        found = find_dialect(files)
    except (TableError, OSError):
        return ""
    differ = (found.separator, found.encoding) != (declared.separator, declared.encoding)
    ascii_only = found.encoding == "utf-8" and declared.encoding in {"cp1252", "latin-1"}
    same_text = {found.encoding, declared.encoding} <= {"cp1252", "latin-1"}
    if differ and found.separator == declared.separator and (ascii_only or same_text):
        differ = False
    spelled = found.numerals not in {Numerals(), declared.numerals} and found.decimal != declared.decimal
    return found.text if differ or spelled else ""


def dialect_lines(dialect: Dialect) -> Iterator[str]:
    """A dialect as lines of TOML: what is not as usual.

    Args:
        dialect: Any.

    Returns:
        The lines, of which there are none if all is as usual.

    Example:
        >>> list(dialect_lines(Dialect(separator=";", decimal=",")))
        ['separator = ";"', 'decimal = ","']
    """
    for name in FIELDS:
        value = getattr(dialect, name)
        shown = _NAMES.get(value, value)
        if value != getattr(PLAIN, name):
            yield f"{name} = '{shown}'" if shown == '"' else f'{name} = "{shown}"'

"""A profile of a table: what each column looks like, and why it cannot be released as it is."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp.table._encode._encoding import words_in
from targetdp.table._problems import (
    NUMBERS_AS_TEXT,
    ColumnProblem,
    ProblemKind,
    problem_with,
    type_name,
    type_problem,
)
from targetdp.table._source import TableOnDisk, batch_rows, is_text, open_source, plain_type
from targetdp.table._spelling import Numerals, describe_words, read_numbers

PROFILED_ROWS = 1_000_000
"""Rows: a proposal needs no more."""

PROFILED_CELLS = 50_000_000
"""Values: a table of a thousand columns is profiled by its first 50,000 rows."""

_SHOWN, _GLANCE, _MOST_LEVELS = 12, 100, 100_000
_IDS = (
    "id", "name", "person", "person_id", "subscriber", "subscriber_id", "phone", "phone_number", "msisdn",
    "caller_id", "user_id", "user", "customer_id", "client_id", "hhid", "household_id", "household", "uid",
)  # fmt: skip
"""Usual names of ids, the likeliest first."""
_PHONE = re.compile("phone|msisdn|mobile|gsm", re.IGNORECASE)
"""Whoever has a column of telephone numbers, each once, identifies people by it."""

_DATE = r"^\s*(?:[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{1,2}[/.][0-9]{1,2}[/.](?:[0-9]{2}){1,2})"
_NAMES = {"number": "number", "whole": "whole number", "yes-or-no": "yes-or-no", "text": "text"}

Kind = Literal["number", "whole", "yes-or-no", "text", "other"]


@dataclass(frozen=True)
class Column:
    """What a column of a table looks like.

    Args:
        name: The column's name.
        kind: Numbers, whole numbers, yes-or-no (numbers 1 and 0 in a release), text, or something else.
        different: How many different values it has.
        gaps: How many values are missing.
        lowest: The lowest value of numbers; None otherwise.
        highest: The highest value of numbers; None otherwise.
        infinite: How many values are infinite.
        type_name: The type, as a person would say it; by default that of its kind.
        words: Of text that is mostly numbers: how many cells are none, and of what sort.

    Example:
        >>> topups = Column("topups", "whole", different=40, gaps=812, lowest=1.0, highest=90.0)
        >>> topups.is_number, topups.problem.remedy
        (True, '[gaps] topups = 0')
    """

    name: str
    kind: Kind
    different: int
    gaps: int
    lowest: float | None = None
    highest: float | None = None
    infinite: int = 0
    type_name: str = ""
    words: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "type_name", self.type_name or _NAMES.get(self.kind, "no number"))

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.kind in {"number", "whole", "yes-or-no"}

    @property
    def missing(self) -> int:
        """How many values are missing or not finite."""
        return self.gaps + self.infinite

    @property
    def problem(self) -> ColumnProblem | None:
        """Why it cannot be released as it is, and what to do; None if it can."""
        if self.words:
            return problem_with(self.name, "words", self.words)
        if not self.is_number:
            return problem_with(self.name, type_problem(self.type_name), self.type_name)
        if self.different == 0 and not self.infinite:
            return problem_with(self.name, "constant", "no values")
        if self.different == 1 and not self.missing:
            return problem_with(self.name, "constant", "the same in every row")
        counts: dict[ProblemKind, tuple[int, str]] = {
            "infinite": (self.infinite, "infinite value"),
            "gaps": (self.gaps, "gap"),
        }
        found = [
            problem_with(self.name, kind, f"{count:,} {what}{'s' if count > 1 else ''}")
            for kind, (count, what) in counts.items() if count
        ]  # fmt: skip
        if not found:
            return None
        what, remedy = " and ".join(p.what for p in found), "; ".join(p.remedy for p in found)
        return replace(found[0], what=what, remedy=remedy)


@dataclass(frozen=True)
class TableProfile:
    """What the first rows of a table look like.

    Args:
        rows: How many rows were read.
        whole: Whether these are all.
        columns: What each column looks like.

    Example:
        >>> profile = TableProfile(2, True, (Column("id", "text", 2, 0), Column("y", "whole", 2, 0, 0, 1)))
        >>> profile["y"].highest, [column.name for column in profile.numbers()]
        (1, ['y'])
    """

    rows: int
    whole: bool
    columns: tuple[Column, ...]

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def names(self) -> list[str]:
        """All columns, in their order."""
        return [column.name for column in self.columns]

    def numbers(self) -> list[Column]:
        """Columns of numbers without a gap."""
        return [column for column in self.columns if column.is_number and not column.missing]

    def problems(self) -> tuple[ColumnProblem, ...]:
        """Why columns cannot be released as they are, in the order of the table."""
        return tuple(column.problem for column in self.columns if column.problem is not None)

    @property
    def shown(self) -> str:
        """The names of the first columns, for a message."""
        more = ", …" if len(self.columns) > _SHOWN else ""
        return f"the table has {', '.join(self.names()[:_SHOWN])}{more}"


def first_named(names: Sequence[str], columns: Sequence[Column]) -> str | None:
    """The first column that has one of some usual names, whatever their case; a space is an underscore.

    Args:
        names: Usual names in lower case, the likeliest first.
        columns: Columns to choose from.

    Returns:
        The column's own name; None if no column has such a name.

    Example:
        >>> first_named(["weight", "w"], [Column("W", "number", 9, 0)])
        'W'
    """
    by_name = {_plain(column.name): column.name for column in reversed(columns)}
    return next((by_name[name] for name in names if name in by_name), None)


def _plain(name: str) -> str:
    """A column's name as usual names are written: Phone number is phone_number."""
    return re.sub(r"[\W_]+", "_", name.casefold()).strip("_")


def guess_id(profile: TableProfile) -> str | None:
    """The column that most likely identifies a person.

    Args:
        profile: The table, as `profile_table` saw it.

    Returns:
        A column of text or whole numbers that is different in every row: one with a usual name of ids if
        there is one, otherwise the first of text; None if there is no such column.

    Example:
        >>> columns = (Column("income", "whole", 2, 0, 5, 9), Column("msisdn", "text", 2, 0))
        >>> guess_id(TableProfile(2, True, columns))
        'msisdn'
    """
    unique = [
        column for column in profile.columns
        if column.different == profile.rows and column.type_name in {"whole number", "text", NUMBERS_AS_TEXT}
    ]  # fmt: skip
    named = first_named(_IDS, unique)
    likely = [c for c in unique if _plain(c.name).endswith("_id") or _PHONE.search(c.name)]
    likely += [c for c in unique if c.kind == "text"]
    return named or next((column.name for column in likely), None)


def profile_table(table: TableOnDisk, rows: int = PROFILED_ROWS) -> TableProfile:
    r"""Profile the first rows of a table. What comes out is a statistic of its people.

    Args:
        table: As for `open_source`.
        rows: How many rows are read at most; of wide tables fewer, about 50 million values.

    Returns:
        What each column looks like.

    Raises:
        ValueError: The table cannot be read, or has no rows.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("id,contacts\n007,12\n008,30\n")
        >>> [column.type_name for column in profile_table(path).columns]
        ['text', 'whole number']
    """
    source = open_source(table)
    width = max(1, len(source.columns))
    rows = min(rows, max(1, PROFILED_CELLS // width))
    batches, seen = [], 0
    for batch in source.batches(source.columns, {}, batch_rows(width)):
        batches.append(batch)
        seen += batch.num_rows
        if seen > rows:
            break
    if not seen:
        raise ValueError(f"table {source.name} has no rows: there is nobody to decide about")
    whole = pa.Table.from_batches(batches).slice(0, rows)
    columns = (
        _csv_column(name, whole.column(name).combine_chunks(), source.csv.numerals)
        if source.format == "csv" else _column(name, whole.column(name).combine_chunks())
        for name in source.columns
    )  # fmt: skip
    return TableProfile(len(whole), seen <= rows, tuple(columns))


def levels_of(table: TableOnDisk, column: str, most: int = 100) -> tuple[list[str], bool]:
    r"""The values of a column, in the first rows of a table, as levels that could be declared.

    Args:
        table: The table, as for `open_source`.
        column: The column's name.
        most: How many are given at most.

    Returns:
        The values, those that most rows have first, and whether there are more. They are people's data.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("id,region\na,south\nb,north\nc,north\n")
        >>> levels_of(path, "region")
        (['north', 'south'], False)
    """
    source, seen, counts = open_source(table), 0, Counter[str]()
    for batch in source.batches([column], {}, batch_rows(1)):
        values = batch.column(0)
        found = words_in(values.cast(plain_type(values.type)))
        if found is None:
            raise ValueError(f"column {column!r} is {type_name(values.type)}: it has no levels")
        words, codes = found
        often = np.bincount(codes, minlength=len(words)).tolist()
        counts.update({word: count for word, count in zip(words, often, strict=True) if word and count})
        seen += batch.num_rows
        if seen >= PROFILED_ROWS or len(counts) > _MOST_LEVELS:
            break
    levels = sorted(counts, key=lambda word: (-counts[word], word))
    return levels[:most], len(levels) > most


def _csv_column(name: str, texts: pa.StringArray, numerals: Numerals) -> Column:
    """A column of a CSV, where all is text: numbers are what a release would read as such."""
    numbers, wrong = read_numbers(texts, numerals)
    readable, odd = len(numbers) - numbers.null_count, wrong.true_count
    if not odd and not _has_leading_zeros(texts):
        return _column(name, numbers, named="" if readable else "empty")
    present = texts.filter(pc.not_equal(texts, ""))
    gaps, different = len(texts) - len(present), pc.count_distinct(present).as_py()
    if readable > odd > 0:
        return Column(name, "text", different, gaps, words=describe_words(texts.filter(wrong)))
    named = "text"
    if pc.sum(pc.match_substring_regex(present, _DATE)).as_py() > len(present) / 2:
        named = "date"
    elif pc.all(pc.is_in(pc.utf8_lower(present), value_set=pa.array(["true", "false", "yes", "no"]))).as_py():
        named = "yes-or-no as text"
    return Column(name, "text", different, gaps, type_name=named)


def _has_leading_zeros(texts: pa.StringArray) -> bool:
    """Whether some of it is digits that begin with 0, which are a name: 007 is not 7."""
    return bool(pc.any(pc.match_substring_regex(texts, r"^[+-]?0[0-9]")).as_py())


def _column(name: str, values: pa.Array, named: str | None = None) -> Column:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    named = type_name(values.type) if named is None else named
    if pa.types.is_decimal(values.type) or pa.types.is_null(values.type) or pa.types.is_floating(values.type):
        values = values.cast(pa.float64())
    kind = _kind(values.type)
    if kind == "other":
        return Column(name, kind, 0, values.null_count, type_name=named)
    present = pc.drop_null(values)
    if kind == "text":
        present = present.cast(pa.string())
        if _are_numbers(present):
            named = NUMBERS_AS_TEXT
        return Column(name, kind, pc.count_distinct(present).as_py(), values.null_count, type_name=named)
    infinite = 0
    if kind == "number":
        present = present.filter(pc.invert(pc.is_nan(present)))
        infinite = len(present)
        present = present.filter(pc.is_finite(present))
        infinite -= len(present)
        if len(present) and pc.all(pc.equal(present, pc.floor(present))).as_py():
            kind = "whole"
    gaps, different = len(values) - len(present) - infinite, pc.count_distinct(present).as_py()
    ends = pc.min_max(present).as_py()
    lowest, highest = (None if end is None else float(end) for end in (ends["min"], ends["max"]))
    return Column(name, kind, different, gaps, lowest, highest, infinite, named)


def _are_numbers(texts: pa.StringArray) -> bool:
    """Whether text is numbers that somebody stored as text."""
    for part in (texts.slice(0, _GLANCE), texts):  # a glance tells most text from numbers
        numbers, wrong = read_numbers(part)
        if wrong.true_count or numbers.null_count == len(part):
            return False
    return not _has_leading_zeros(texts)


def _kind(kind: pa.DataType) -> Kind:
    if pa.types.is_boolean(kind):
        return "yes-or-no"
    if pa.types.is_integer(kind):
        return "whole"
    if pa.types.is_floating(kind):
        return "number"
    return "text" if is_text(kind) else "other"

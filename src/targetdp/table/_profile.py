"""A profile of a table, to propose what of it a program could use."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from targetdp.table._source import Source, batch_rows, is_text, open_source

PROFILED_ROWS = 1_000_000
"""Rows: a proposal needs no more."""

_SHOWN = 12

Kind = Literal["number", "whole", "text", "other"]


@dataclass(frozen=True)
class Column:
    """What a column of a table looks like.

    Args:
        name: The column's name.
        kind: Numbers, whole numbers, text, or something else.
        different: How many different values it has.
        missing: How many values are missing or not finite.
        lowest: The lowest value of numbers; None otherwise.
        highest: The highest value of numbers; None otherwise.

    Example:
        >>> Column("contacts", "whole", different=40, missing=0, lowest=1.0, highest=90.0).is_number
        True
    """

    name: str
    kind: Kind
    different: int
    missing: int
    lowest: float | None = None
    highest: float | None = None

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.kind in {"number", "whole"}


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

    @property
    def shown(self) -> str:
        """The names of the first columns, for a message."""
        more = ", …" if len(self.columns) > _SHOWN else ""
        return f"the table has {', '.join(self.names()[:_SHOWN])}{more}"


def first_named(names: Sequence[str], columns: Sequence[Column]) -> str | None:
    """The first column that has one of some usual names, whatever their case.

    Args:
        names: Usual names in lower case, the likeliest first.
        columns: Columns to choose from.

    Returns:
        The column's own name; None if no column has such a name.

    Example:
        >>> first_named(["weight", "w"], [Column("W", "number", 9, 0)])
        'W'
    """
    by_name = {column.name.lower(): column.name for column in reversed(columns)}
    return next((by_name[name] for name in names if name in by_name), None)


def profile_table(path: Path, rows: int = PROFILED_ROWS) -> TableProfile:
    r"""Profile the first rows of a table. What comes out is a statistic of its people.

    Args:
        path: A Parquet or CSV file, or a directory of such files.
        rows: How many rows are read at most.

    Returns:
        What each column looks like.

    Raises:
        ValueError: The table cannot be read, or has no rows.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("id,contacts\n007,12\n008,30\n")
        >>> [column.kind for column in profile_table(path).columns]
        ['text', 'whole']
    """
    source = open_source(path)
    batches, seen = [], 0
    for batch in source.batches(source.columns, {}, batch_rows(len(source.columns))):
        batches.append(batch)
        seen += batch.num_rows
        if seen > rows:
            break
    if not seen:
        raise ValueError(f"table {path} has no rows: there is nobody to decide about")
    table = pa.Table.from_batches(batches).slice(0, rows)
    columns = (_column(name, table.column(name), source) for name in source.columns)
    return TableProfile(len(table), seen <= rows, tuple(columns))


def _column(name: str, values: pa.ChunkedArray, source: Source) -> Column:
    values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if source.format == "csv":
        values = _as_numbers(values)  # a Parquet file says what it has: digits that are text there are names
    kind = _kind(values.type)
    if kind == "other":
        return Column(name, kind, 0, values.null_count)
    present = pc.drop_null(values)
    if pa.types.is_floating(values.type):
        present = present.filter(pc.is_finite(present))
        if len(present) and pc.all(pc.equal(present, pc.floor(present))).as_py():
            kind = "whole"
    missing = len(values) - len(present)
    different = pc.count_distinct(present).as_py()
    if kind == "text" or not len(present):
        return Column(name, kind, different, missing)
    ends = pc.min_max(present).as_py()
    return Column(name, kind, different, missing, float(ends["min"]), float(ends["max"]))


def _as_numbers(text: pa.StringArray) -> pa.Array:
    """A CSV's text as numbers, where all of it reads as such; what is empty is missing."""
    filled = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    # Digits with a leading zero are a name: 007 is not 7.
    if pc.any(pc.match_substring_regex(filled, r"^[+-]?0[0-9]")).as_py():
        return filled
    try:
        return filled.cast(pa.float64())
    except pa.ArrowInvalid:
        return filled


def _kind(kind: pa.DataType) -> Kind:
    if pa.types.is_integer(kind):
        return "whole"
    if pa.types.is_floating(kind):
        return "number"
    return "text" if is_text(kind) or pa.types.is_boolean(kind) else "other"

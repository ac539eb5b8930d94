"""A first look at a table, to propose what of it a program could use."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from targetdp.table._source import Source, batch_rows, open_source

LOOKED_AT = 1_000_000
"""Rows: a proposal needs no more."""

_SHOWN = 12

Kind = Literal["number", "whole", "text", "other"]


@dataclass(frozen=True)
class Column:
    """What a column looks like: ``lowest`` and ``highest`` for numbers, None otherwise."""

    name: str
    kind: Kind
    different: int
    missing: int
    lowest: float | None = None
    highest: float | None = None

    @property
    def is_number(self) -> bool:
        """Whether it could be a feature."""
        return self.kind in {"number", "whole"}


@dataclass(frozen=True)
class Look:
    """What the first rows of a table look like; ``whole`` if these are all."""

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
    """The first of some columns by a list of usual names, whatever their case."""
    found = {column.name.lower(): column.name for column in reversed(columns)}
    return next((found[name] for name in names if name in found), None)


def look_at(path: Path, rows: int = LOOKED_AT) -> Look:
    """Look at the first rows of a table. What is seen is a statistic of its people."""
    source = open_source(path)
    parts, seen, whole = [], 0, True
    for batch in _batches(source):
        if seen == rows:
            whole = False
            break
        part = batch.slice(0, rows - seen)
        whole = part.num_rows == batch.num_rows
        seen += part.num_rows
        parts.append(part)
        if not whole:
            break
    if not seen:
        raise ValueError(f"table {path} has no rows: there is nobody to decide about")
    table = pa.Table.from_batches(parts)
    columns = (_column(name, table.column(name), source) for name in source.columns)
    return Look(seen, whole, tuple(columns))


def _batches(source: Source) -> Iterator[pa.RecordBatch]:
    return source.batches(source.columns, {}, batch_rows(len(source.columns)))


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
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    return "text" if pa.types.is_boolean(kind) else "other"

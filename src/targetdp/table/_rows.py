"""From a batch of a table to ids and numbers, counting whatever is wrong with it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats
from targetdp._files import did_you_mean
from targetdp.table._source import is_text
from targetdp.table._tally import Tally

SHOWN = 12
"""How many columns a message names."""


def check_columns(present: Sequence[str], where: str, **needed: Sequence[str]) -> None:
    """Make sure that a table has every column that an argument names.

    Args:
        present: The table's columns.
        where: What messages call the table.
        needed: For each argument, the columns that it names.

    Raises:
        ValueError: Some of them are missing: all of them in one message, each with the column it may mean.

    Example:
        >>> check_columns(["id", "contacts"], "table.csv", features=["contact"])
        Traceback (most recent call last):
        ValueError: features names 'contact' (did you mean 'contacts'?): no such column in table.csv; ...
    """
    known, said, asked = set(present), [], set[str]()
    for argument, names in needed.items():
        missing = [name for name in dict.fromkeys(names) if name not in known | asked]
        asked |= set(missing)
        if missing:
            more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
            named = ", ".join(unknown_column(name, present) for name in missing[:SHOWN])
            said.append(f"{argument} names {named}{more}")
    if said:
        shown = ", ".join(present[:SHOWN]) + (", …" if len(present) > SHOWN else "")
        raise ValueError(f"{'; '.join(said)}: no such column in {where}; it has {shown}")


def unknown_column(name: str, present: Iterable[str]) -> str:
    """A column that is not there, as messages call it: with the one that may be meant.

    Args:
        name: The column.
        present: Those that are there.

    Returns:
        The name in quotes, and the question in brackets if there is one.

    Example:
        >>> unknown_column("Contact", ["id", "contacts"])
        "'Contact' (did you mean 'contacts'?)"
    """
    question = did_you_mean(name, present)
    return f"{name!r}" + (f" ({question})" if question else "")


ANY = "*"
"""In the name of a column: anything may stand there."""


def columns_like(names: Iterable[str], present: Sequence[str]) -> tuple[str, ...]:
    """The columns that names stand for, each once.

    Args:
        names: Names of columns, or patterns, in which ``*`` stands for anything.
        present: The table's columns.

    Returns:
        Names as they are, and in the place of each pattern the columns that it stands for, if any.

    Example:
        >>> columns_like(["age", "*_calls"], ["id", "day_calls", "night_calls"])
        ('age', 'day_calls', 'night_calls')
    """
    known, found = {*present}, dict[str, None]()
    for name in names:
        own = [name]
        if ANY in name and name not in known:
            parts = re.compile(".*".join(map(re.escape, name.split(ANY))), re.DOTALL)
            own = [one for one in present if parts.fullmatch(one)] or own
        found |= dict.fromkeys(own)
    return tuple(found)


def ids_of(column: Any, name: str, tally: Tally, offset: int) -> pa.StringArray:
    """Ids as text, whatever they were; leading zeros survive, numbers become their digits.

    Args:
        column: A column of text or whole numbers.
        name: What messages call it.
        tally: Takes note of ids that are missing or empty.
        offset: How many rows of the table come before this batch.

    Returns:
        Texts; what was missing is empty.

    Raises:
        ValueError: The column is of another type, or its text is not UTF-8.

    Example:
        >>> ids_of(pa.array([7, 8]), "id", Tally(), 0).to_pylist()
        ['7', '8']
    """
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if not (is_text(kind) or pa.types.is_integer(kind)):
        raise ValueError(
            f"id column {name!r} has type {kind}: ids must be text or whole numbers; convert them first"
        )
    text = column if pa.types.is_string(kind) else column.cast(pa.string())
    _must_be_unicode(text, f"id column {name!r}")
    text = pc.fill_null(text, "")
    tally.add("missing or empty id", name, np.flatnonzero(pc.equal(text, "")), offset)
    return text


def numbers_of(
    batch: pa.RecordBatch,
    features: Sequence[str],
    constants: dict[str, float],
    tally: Tally,
    offset: int,
    room: Floats | None = None,
) -> Floats:
    """The features of a batch column by column, as floats; what is true or false is 1 or 0.

    Args:
        batch: Some rows of a table.
        features: Names of columns of numbers.
        constants: What stands for missing values, by column.
        tally: Takes note of other missing values, of infinite ones, and of columns that are no numbers.
        offset: How many rows of the table come before this batch.
        room: An array that the numbers are written to; by default a new one.

    Returns:
        An array of d columns by n rows; 0 in the place of a column that is no number.

    Example:
        >>> batch = pa.record_batch({"contacts": [12, 30]})
        >>> numbers_of(batch, ["contacts"], {}, Tally(), 0)
        array([[12., 30.]])
    """
    block = np.empty((len(features), batch.num_rows)) if room is None else room
    fill_numbers(batch, features, block, tally, offset)
    with np.errstate(over="ignore", invalid="ignore"):
        usual = np.isfinite(block.sum())  # one pass for the usual case; the sum may also just overflow
    if not usual:
        for name, column in zip(features, block, strict=True):
            look_closer(name, column, constants, tally, offset)
    if tally.counts:
        tally.columns = tuple(features)
    return block


def fill_numbers(
    batch: pa.RecordBatch, names: Sequence[str], rows: Iterable[Floats], tally: Tally, offset: int
) -> None:
    """Write columns of numbers to rows, missing values as NaN, and note those that are no numbers."""
    for name, row in zip(names, rows, strict=True):
        column = batch.column(name)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            column = _as_numbers(name, column, tally, offset)
        row[:] = column.to_numpy(zero_copy_only=False)


def kept_column(column: Any, name: str, kind: pa.DataType) -> pa.Array:
    """A column that is passed on, in the type that it has in the whole table.

    Args:
        column: The column of a batch.
        name: What messages call it.
        kind: Its type in the whole table.

    Returns:
        The values, no dictionary among them.

    Raises:
        ValueError: Not every value fits the type, or text is not UTF-8.

    Example:
        >>> kept_column(pa.array([1, 2]), "region", pa.float64()).to_pylist()
        [1.0, 2.0]
    """
    if pa.types.is_nested(kind) and "dictionary<" in str(kind):
        raise ValueError(
            f"public column {name!r} has type {kind}: a dictionary inside a nested column may hold values of "
            "nobody in the table; decode it first"
        )
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        kept = column if column.type == kind else column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"public column {name!r} is {column.type} in one part of the table and {kind} in another, and "
            f"not every value fits ({error}): give all parts one type"
        ) from error
    _must_be_unicode(kept, f"public column {name!r}")
    return kept


def _must_be_unicode(values: pa.Array, what: str) -> None:
    """Refuse bytes that a Parquet file calls text and that are none: nobody could read the released table."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"{what} is damaged or holds text that is not UTF-8: convert it first. Nothing was published"
        ) from error


def look_closer(name: str, column: Floats, constants: Mapping[str, float], tally: Tally, offset: int) -> None:
    """Fill what is missing in a column that has a constant for it, and note what is left, or infinite."""
    missing = np.isnan(column)
    if name in constants:
        column[missing] = constants[name]
    else:
        tally.add("missing", name, np.flatnonzero(missing), offset)
    tally.add("infinite", name, np.flatnonzero(np.isinf(column)), offset)


def _as_numbers(name: str, column: pa.Array, tally: Tally, offset: int) -> pa.Array:
    """Numbers of another type; 0 for what is none, which the tally notes."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8())
    if any(
        fits(kind)
        for fits in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    ):
        # As plain columns are: a whole number beyond 2⁵³ is rounded, and nobody's value is refused for that.
        return column.cast(pa.float64(), safe=False)
    tally.add_type(name, column, offset)
    return pa.array(np.zeros(len(column)))

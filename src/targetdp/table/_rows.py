"""From a batch of a table to ids and numbers, counting whatever is wrong with it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, Progress
from targetdp.table._dialect import Dialect
from targetdp.table._source import TableOnDisk, batch_rows, is_text, open_source
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


def did_you_mean(name: str, present: Iterable[str]) -> str:
    """Ask whether a column was meant that has nearly this name.

    Args:
        name: A column that is not there.
        present: Those that are.

    Returns:
        The question; nothing if no name is near.

    Example:
        >>> did_you_mean("Contact", ["id", "contacts"])
        "did you mean 'contacts'?"
    """
    by_lower = {column.lower(): column for column in present}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    return f"did you mean {by_lower[close[0]]!r}?" if close else ""


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
    for j, name in enumerate(features):
        column = batch.column(name)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            column = _as_numbers(name, column, tally, offset)
        block[j] = column.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        usual = np.isfinite(block.sum())  # one pass for the usual case; the sum may also just overflow
    if not usual:
        _look_closer(block, features, constants, tally, offset)
    if tally.counts:
        tally.columns = tuple(features)
    return block


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


@dataclass(frozen=True, eq=False)
class PeopleRows:
    """A table of numbers about people: row i of ``rows`` is that of ``ids[i]``.

    Args:
        ids: Everybody's id, each once.
        rows: Everybody's numbers, a column for each feature.

    Example:
        >>> people = PeopleRows(pa.array(["ann", "bob"]), np.array([[3.0], [5.0]]))
        >>> people.rows[people.ids.index("bob").as_py()].tolist()
        [5.0]
    """

    ids: pa.StringArray = field(repr=False)
    rows: Floats = field(repr=False)


def read_people(
    what: str, table: TableOnDisk, id_column: str, features: Sequence[str], *,
    progress: Progress, gaps: Mapping[str, float] | None = None, kind: pa.DataType | None = None,
    csv: Dialect | None = None,
) -> PeopleRows:  # fmt: skip
    r"""Read ids and numbers of a whole table into memory.

    Args:
        what: What messages call the table: ``"sample"``.
        table: The table, as for `open_source`.
        id_column: The column that identifies a person.
        features: Columns of numbers.
        progress: Is told how far reading is.
        gaps: Constants for missing values, by column.
        kind: How the columns are read where they stand in a CSV: as numbers, unless it says otherwise.
        csv: How CSV files are written, where a certificate says it; by default that is found.

    Returns:
        Everybody's id and numbers, in the table's order.

    Raises:
        ValueError: A column is not there, there are no rows, or something is wrong with ids or values; all of
            it in one message.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from targetdp._core import Silent
        >>> file = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = file.write_text("name,calls\nann,3\nbob,5\n")
        >>> read_people("table", file, "name", ["calls"], progress=Silent()).rows.tolist()
        [[3.0], [5.0]]
    """
    source = open_source(table, csv=csv, keep_words=True)
    check_columns(source.columns, f"{what} {source.name}", id=[id_column], features=features)
    progress.phase(f"reading {source.files[0].name}", source.count())
    tally, seen, ids, blocks = Tally(), 0, [], []
    types = dict.fromkeys(features, kind or pa.float64())
    for batch in source.batches([id_column, *features], types, batch_rows(len(features))):
        ids.append(ids_of(batch.column(id_column), id_column, tally, seen))
        blocks.append(numbers_of(batch, features, dict(gaps or {}), tally, seen))
        seen += batch.num_rows
        progress.advance(batch.num_rows)
    if not seen:
        raise ValueError(f"{what} {source.name} has no rows: there is nobody in it")
    if tally.counts:
        raise ValueError("\n".join([f"{what} {source.name}:", *tally.lines(policy=False)]))
    together = pa.concat_arrays(ids)
    if (different := pc.count_distinct(together).as_py()) < seen:
        raise ValueError(
            f"{what} {source} has {seen - different:,} rows whose id occurs before: one row for each person"
        )
    return PeopleRows(together, np.ascontiguousarray(np.concatenate(blocks, axis=1).T))


def _must_be_unicode(values: pa.Array, what: str) -> None:
    """Refuse bytes that a Parquet file calls text and that are none: nobody could read the released table."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"{what} is damaged or holds text that is not UTF-8: convert it first. Nothing was published"
        ) from error


def _look_closer(
    block: Floats, features: Sequence[str], constants: dict[str, float], tally: Tally, offset: int
) -> None:
    for name, column in zip(features, block, strict=True):
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

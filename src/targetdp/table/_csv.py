"""CSV files as their dialect says: reading one in batches, and writing one; errors show no row."""

import codecs
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from targetdp.table._dialect import PLAIN, REMEDY, Dialect, TableError
from targetdp.table._spelling import plainly_spelled, with_numbers

_CSV_BLOCK = 1 << 24
_NO_NUMBER = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to double")
_ROW_SHOWN = re.compile(r"(Expected \d+ columns, got \d+):.*")
"""What the reader says of a row with too many values, before it prints the row."""


def csv_names(file: Path, csv: Dialect) -> tuple[str, ...]:
    """The names of a file's columns."""
    with pacsv.open_csv(file, read_options=_read(csv), parse_options=_parse(csv)) as reader:
        return tuple(reader.schema.names)


def csv_batches(
    file: Path,
    columns: list[str],
    types: dict[str, pa.DataType],
    rows: int,
    csv: Dialect,
    *,
    keep_words: bool,
) -> Iterator[pa.RecordBatch]:
    """The named columns of a file, at most so many rows at a time; what has no type is text."""
    done = 0
    try:
        if not csv.thousands:  # which Arrow does not know
            for block in _blocks(file, columns, types, csv):
                for start in range(0, block.num_rows, rows):
                    yield block.slice(start, rows)
                done += block.num_rows
            return
    except pa.ArrowInvalid as error:
        if not (keep_words and _NO_NUMBER.search(str(error))):
            raise
    # Some cell is no number. The rest is read as text, and turned into numbers where all of a batch are.
    numbers = [name for name, kind in types.items() if name in columns and kind == pa.float64()]
    others = {name: kind for name, kind in types.items() if name not in numbers}
    for block in _blocks(file, columns, others, csv):
        left = block.slice(min(done, block.num_rows))
        done -= block.num_rows - left.num_rows
        for start in range(0, left.num_rows, rows):
            batch = with_numbers(left.slice(start, rows), numbers, csv.numerals)
            yield _with_words(batch, numbers, csv, file, keep_words=keep_words)


def _with_words(
    batch: pa.RecordBatch, numbers: Sequence[str], csv: Dialect, file: Path, *, keep_words: bool
) -> pa.RecordBatch:
    """A batch whose columns that hold words are spelled as everywhere, for those who count the words."""
    if csv.numerals == PLAIN.numerals:
        return batch
    for name in numbers:
        column = batch.column(name)
        if pa.types.is_string(column.type):
            if not keep_words:
                raise words_in(name, file)
            place = batch.schema.get_field_index(name)
            batch = batch.set_column(place, name, plainly_spelled(column, csv.numerals))
    return batch


def words_in(feature: str, file: Path) -> TableError:
    """The error of a column of numbers with words in it."""
    return TableError(
        f"feature {feature!r} has cells that are no numbers in input {file}: correct them, or leave the "
        "column out"
    )


def _blocks(
    file: Path, columns: list[str], types: dict[str, pa.DataType], csv: Dialect
) -> Iterator[pa.RecordBatch]:
    convert = pacsv.ConvertOptions(
        include_columns=columns,
        column_types={name: types.get(name, pa.string()) for name in columns},
        strings_can_be_null=False,  # an id may be "NA" or "null"
        decimal_point=csv.decimal,
    )
    read, parse = _read(csv), _parse(csv)
    with pacsv.open_csv(file, read_options=read, parse_options=parse, convert_options=convert) as reader:
        yield from reader


def _read(csv: Dialect) -> pacsv.ReadOptions:
    return pacsv.ReadOptions(
        block_size=_CSV_BLOCK, encoding="utf8" if csv.encoding == "utf-8" else csv.encoding
    )


def _parse(csv: Dialect) -> pacsv.ParseOptions:
    return pacsv.ParseOptions(delimiter=csv.separator, quote_char=csv.quote or False, newlines_in_values=True)


@contextmanager
def explained(file: Path, columns: Sequence[str] = (), csv: Dialect | None = None) -> Iterator[None]:
    """Turn a reader's errors into ones that name the file and the column."""
    try:
        yield
    except TableError:
        raise
    # A damaged file may name other columns in one place than in another: then a column is missing.
    except (pa.ArrowException, OSError, UnicodeError, KeyError) as error:
        reason = _ROW_SHOWN.sub(r"\1", " ".join(str(error).split()))
        wrong = _NO_NUMBER.search(reason)
        if wrong and int(wrong[1]) < len(columns):
            raise words_in(columns[int(wrong[1])], file) from error
        if "Empty CSV" in reason:
            raise TableError(f"input {file} is empty or has no rows: there is nothing to read") from error
        if csv is not None and (isinstance(error, UnicodeError) or "invalid UTF8" in reason):
            raise TableError(f"input {file} is not text in {csv.encoding}: {REMEDY}") from error
        raise TableError(f"input {file} cannot be read ({reason}): the file may be damaged") from error


class CsvWriter:
    r"""Writes tables of one schema as CSV in a dialect that Arrow does not write.

    Args:
        file: A file that takes bytes.
        schema: Names and types of the columns.
        csv: How it is written. No mark parts thousands.

    Example:
        >>> import io
        >>> file, people = io.BytesIO(), pa.table({"prénom": ["Zoé"], "revenu": [3.5]})
        >>> CsvWriter(file, people.schema, Dialect(separator=";", decimal=",")).write_table(people)
        >>> file.getvalue().decode()
        '"prénom";"revenu"\n"Zoé";3,5\n'
    """

    def __init__(self, file: Any, schema: pa.Schema, csv: Dialect) -> None:
        self._file, self._csv = file, csv
        self._encoder = codecs.getincrementalencoder(csv.encoding)()
        names = _quoted(pa.array(schema.names, pa.string()), csv.quote).to_pylist()
        self._file.write(self._encoder.encode(csv.separator.join(names) + "\n"))

    def write_table(self, table: pa.Table) -> None:
        """Append rows."""
        for batch in table.to_batches():
            cells = [_cells(column, self._csv) for column in batch.columns]
            rows = pc.binary_join_element_wise(*cells, self._csv.separator, null_handling="replace")
            self._file.write(self._encoder.encode("\n".join([*rows.to_pylist(), ""])))

    def close(self) -> None:
        """Do nothing: all is written, and whoever gave the file closes it."""


def _cells(column: pa.Array, csv: Dialect) -> pa.StringArray:
    """A column as it stands in a file; what is missing is empty."""
    text = column.cast(pa.string())
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        numbers = pc.replace_substring(text, ".", csv.decimal) if csv.decimal != "." else text
        return _quoted(numbers, csv.quote) if csv.separator == csv.decimal else numbers
    plain = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    return text if plain else _quoted(text, csv.quote)


def _quoted(texts: pa.StringArray, quote: str) -> pa.StringArray:
    doubled = pc.replace_substring(texts, quote, 2 * quote)
    return pc.binary_join_element_wise(quote, doubled, quote, "")

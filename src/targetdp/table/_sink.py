"""Writing tables: Parquet and CSV, one file or a directory of parts; hashed and synced while they grow."""

import hashlib
import os
import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from targetdp._files import create_new, sync_folder
from targetdp.table._csv import CsvWriter
from targetdp.table._dialect import Dialect
from targetdp.table._paths import Format

ROWS_PER_PART = 2_000_000
_SYNC_EVERY, _HANDED_OVER = 1 << 26, 1 << 20


@dataclass(frozen=True)
class Written:
    """A finished file.

    Args:
        name: Its name, without the folder.
        size: Its bytes.
        sha256: The SHA-256 of its bytes, in hexadecimal.

    Example:
        >>> Written("table.csv", 12, "9f86d081").size
        12
    """

    name: str
    size: int
    sha256: str


class HashedFile:
    """A file that can only be appended to, hashed and synced on threads of its own while it grows.

    Guarantees: after `finish` all bytes are on disk, and the hash is that of what was written.
    Edges: an error while writing (a full disk) is raised at the next call, and by `finish` at the latest.
    """

    def __init__(self, path: Path, *, private: bool = False) -> None:
        self._name = path.name
        self._file = create_new(path, private=private)
        self._hash, self._size = hashlib.sha256(), 0
        self._error: OSError | None = None
        self._held: list[bytes] = []
        self._pieces: queue.Queue[list[bytes] | None] = queue.Queue(maxsize=16)
        self._worker = threading.Thread(target=self._work, daemon=True)
        self._worker.start()
        self.closed = False

    def write(self, data: Any) -> int:
        """Append bytes."""
        self._raise()
        if self.closed:
            raise ValueError(f"{self._name} is closed")
        piece = bytes(data)
        self._size += len(piece)
        self._held.append(piece)
        # Many small pieces are handed over at once: with few of them ahead, one thread waits for the other.
        if sum(map(len, self._held)) >= _HANDED_OVER:
            self._hand_over()
        return len(piece)

    def _hand_over(self) -> None:
        self._pieces.put(self._held)
        self._held = []

    def tell(self) -> int:
        """How many bytes were written."""
        return self._size

    def flush(self) -> None:
        """Do nothing: `finish` syncs."""

    def close(self) -> None:
        """Stop the thread and close the file, finished or not."""
        if not self.closed:
            self.closed = True
            self._hand_over()
            self._pieces.put(None)
            self._worker.join()
            os.close(self._file)

    def finish(self) -> Written:
        """Wait until everything is on disk."""
        self.close()
        self._raise()
        return Written(self._name, self._size, self._hash.hexdigest())

    def _work(self) -> None:
        unsynced, syncing = 0, None
        with ThreadPoolExecutor(1) as syncer:  # the disk is waited for where nobody waits for it
            while (pieces := self._pieces.get()) is not None:
                if self._error is not None:
                    continue
                try:
                    unsynced += sum(map(self._append, pieces))
                    if unsynced >= _SYNC_EVERY:
                        if syncing is not None:
                            syncing.result()
                        syncing, unsynced = syncer.submit(_sync, self._file), 0
                except OSError as error:
                    self._error = error
            try:
                if syncing is not None:
                    syncing.result()
                os.fsync(self._file)
            except OSError as error:
                self._error = self._error or error

    def _append(self, piece: bytes) -> int:
        self._hash.update(piece)
        view = memoryview(piece)
        while view:
            view = view[os.write(self._file, view) :]
        return len(piece)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


_sync = getattr(os, "fdatasync", os.fsync)
"""Data without times, where the system knows the difference."""


class Sink:
    """Writes tables of one schema to a file, or to part files in a directory.

    In CSV files text that a spreadsheet would run as a formula gets a quotation mark before it; in the column
    ``ids`` it is refused, since others find people by them.

    Args:
        path: The file, or the directory of part files; it must not be there yet.
        kind: Parquet or CSV.
        schema: Names and types of the columns.
        ids: The column of ids, if there is one.
        parts: Whether ``path`` is a directory of part files.
        private: Whether the owner alone may read the files.
        csv: How CSV files are written; by default plainly.

    Raises:
        FileExistsError: Something has this name.
        ValueError: The name of a column would be run as a formula.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> people = pa.table({"id": ["a", "b"], "contacts": [12, 30]})
        >>> with Sink(path, "csv", people.schema, ids="id") as sink:
        ...     sink.write(people)
        ...     [written.name for written in sink.finish()]
        ['people.csv']
    """

    def __init__(
        self, path: Path, kind: Format, schema: pa.Schema, *, ids: str | None = None, parts: bool = False,
        private: bool = False, csv: Dialect | None = None,
    ) -> None:  # fmt: skip
        self._csv = csv
        self._path, self._kind, self._schema, self._parts, self._ids = path, kind, schema, parts, ids
        self._private = private
        self._files: list[Written] = []
        self._file: HashedFile | None = None
        self._writer: Any = None
        self._rows = 0
        if kind == "csv":
            refuse_formulas(schema.names)
        if parts:
            path.mkdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            if isinstance(self._writer, pq.ParquetWriter):
                self._writer.is_open = False  # or pyarrow would still try to write a footer, to a closed file
            self._file.close()

    def write(self, table: pa.Table) -> None:
        """Append rows; each call makes one row group of a Parquet file."""
        if not table.schema.equals(self._schema):  # pyarrow's own CSV writer does not look
            raise ValueError(f"a table of columns {table.schema.names} does not fit {self._schema.names}")
        if self._file is None:
            self._open()
        if self._kind == "parquet":
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        else:
            if self._ids is not None:
                refuse_formula_ids(table.column(self._ids), self._ids)
            self._writer.write_table(harmless(table))
        self._rows += table.num_rows
        if self._parts and self._rows >= ROWS_PER_PART:  # whole groups only: they have a fixed size
            self._close()

    def finish(self) -> tuple[Written, ...]:
        """Finish all files, synced to disk."""
        if self._file is None and not self._files:
            self._open()
        self._close()
        folder = self._path if self._parts else self._path.parent
        sync_folder(folder)
        return tuple(self._files)

    def _open(self) -> None:
        name = f"part-{len(self._files):05d}.{self._kind}"
        self._file = HashedFile(self._path / name if self._parts else self._path, private=self._private)
        if self._kind == "parquet":
            # Noise is hardly compressible, and to try takes longer than all the rest of writing. (Another
            # encoding makes numbers smaller, too, but older versions of Spark cannot read it.)
            codecs = {f.name: "none" if f.type == pa.float64() else "snappy" for f in self._schema}
            self._writer = pq.ParquetWriter(
                pa.PythonFile(self._file, mode="w"), self._schema, compression=codecs,
                use_dictionary=False, store_schema=False, write_batch_size=1 << 16,
                write_statistics=[name for name, codec in codecs.items() if codec != "none"],
            )  # fmt: skip
        else:
            self._writer = (
                pacsv.CSVWriter(pa.PythonFile(self._file, mode="w"), self._schema)
                if self._csv is None else CsvWriter(self._file, self._schema, self._csv)
            )  # fmt: skip

    def _close(self) -> None:
        if self._file is None:
            return
        self._writer.close()
        self._files.append(self._file.finish())
        self._file, self._writer, self._rows = None, None, 0


# Tables in pieces of one fixed size, whatever pieces they came in.
#
# How a table was cut on its way here depends on the input's order, layout and even the length of its text. A
# release must not show any of that, so what is written is cut anew, by the number of rows alone.


def regrouped(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in groups of one size; each column in one piece.

    Args:
        tables: The rows, in whatever pieces.
        rows: How many rows a group has; the last may have fewer.

    Returns:
        The groups, one after the other.

    Example:
        >>> [group.num_rows for group in regrouped([pa.table({"x": [1, 2, 3]})], 2)]
        [2, 1]
    """
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += table.num_rows
        while count >= rows:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, rows).combine_chunks()
            waiting, count = [whole.slice(rows)], count - rows
    if count:
        yield pa.concat_tables(waiting).combine_chunks()


# Text that a spreadsheet would take for a formula, and run, when somebody opens a CSV file in it.

_BEGINS, _NUMBER = r"^[=@+\-\t\r]", r"^[+\-][0-9 .()/\-]*$"
_FIRST = b"=@+-\t\r"
"""How formulas begin; and numbers, such as a telephone's, which begin like that and harm nobody."""

MARK = "'"
"""Before a formula it makes text of it, in every spreadsheet that we know."""


def is_formula(text: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """For each text whether a spreadsheet would run it."""
    begins = pc.match_substring_regex(text, _BEGINS)
    return pc.and_not(begins, pc.match_substring_regex(text, _NUMBER))


def formulas_in(ids: pa.StringArray) -> int:
    """How many ids a spreadsheet would run. Of most tables, only the first byte of each is looked at.

    Args:
        ids: Some ids, none of them null.

    Returns:
        How many begin like a formula, and are no number.

    Example:
        >>> formulas_in(pa.array(["007", "=1+1", "+228 90 12"]))
        1
    """
    _, offsets, data = ids.buffers()
    starts = np.frombuffer(offsets, dtype=np.int32)[ids.offset :][: len(ids) + 1]
    filled = starts[:-1] < starts[1:]
    first = np.frombuffer(data or b"", dtype=np.uint8)[starts[:-1][filled]]
    doubtful = np.flatnonzero(filled)[np.isin(first, np.frombuffer(_FIRST, dtype=np.uint8))]
    if not len(doubtful):
        return 0
    return int(pc.sum(is_formula(ids.take(pa.array(doubtful)))).as_py() or 0)


def harmless(table: pa.Table) -> pa.Table:
    """The same table with a quotation mark before every formula in its text columns.

    Telephone numbers stay as they are. Numbers that are no text cannot be formulas.
    """
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(at)
            formulas = pc.fill_null(is_formula(column), False)
            if pc.any(formulas).as_py():
                marked = pc.utf8_replace_slice(column, 0, 0, MARK)
                table = table.set_column(at, field, pc.if_else(formulas, marked, column))
    return table


def refuse_formula_ids(ids: pa.ChunkedArray | pa.Array, name: str) -> None:
    """Refuse ids that a spreadsheet would run: with a mark before it, an id would be nobody's."""
    formulas = ids.filter(is_formula(ids))
    if len(formulas):
        first = formulas[0].as_py()
        raise ValueError(
            f"id column {name!r} has {len(formulas):,} ids that would be run as formulas where a CSV "
            f"file is opened in a spreadsheet (first: {first[:40]!r}): write Parquet, or pseudonymize. "
            "Nothing was published"
        )


def refuse_formulas(names: Sequence[str]) -> None:
    """Refuse names of columns that a spreadsheet would run: a changed one would be another column.

    Args:
        names: Names of columns.

    Raises:
        ValueError: One of them begins like a formula.

    Example:
        >>> refuse_formulas(["id", "contacts"])
    """
    texts = pa.array(names, pa.string())
    formulas = texts.filter(is_formula(texts)).to_pylist()
    if formulas:
        raise ValueError(
            f"column {formulas[0]!r} would be run as a formula where a CSV file is opened in a spreadsheet: "
            "name it otherwise, or write Parquet"
        )

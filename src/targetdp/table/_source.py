"""Reading tables in batches: Parquet and CSV, a file, a folder of part files, a pattern, or several of them.

Nothing of a source but its values goes further: no metadata, no layout of row groups, no statistics.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar, Union

import pyarrow as pa
import pyarrow.parquet as pq

from targetdp._core import check
from targetdp.table._csv import csv_batches, csv_names, explained, words_in
from targetdp.table._dialect import PLAIN, REMEDY, Dialect, TableError, dialect_of, doubtful, find_dialect
from targetdp.table._paths import Format, TablePath, find_files, folder_type
from targetdp.table._spelling import read_numbers

TableOnDisk = Union[TablePath, "Source"]
"""A table by whatever names it, or one that is open already."""

_SMALL_GROUP = 1 << 25
"""Bytes of a column in a row group of which three may be in memory at once."""


@dataclass(frozen=True)
class Source:
    r"""A table on disk.

    Args:
        name: What messages call it.
        places: What the caller named: files and folders.
        format: The format of all its files.
        files: Its part files in order.
        columns: The names of the columns, the same in each file; those that folders give come last.
        keep_words: Whether a CSV's column of numbers in which some cells are none comes as text, for
            `numbers_of` to count them; otherwise it cannot be read.
        csv: How its files are written, where they are CSV.
        folders: The columns that folders give, with their value in each file.
        doubt: How CSV files look written, where that is not as declared.
        copied: Whether its files are a copy of a table that is elsewhere: nothing tells it from a later one.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("id,contacts\na,12\n")
        >>> source = open_source(path)
        >>> sum(batch.num_rows for batch in source.batches(["id"], {}, rows=100))
        1
    """

    name: str
    places: tuple[Path, ...]
    format: Format
    files: tuple[Path, ...]
    columns: tuple[str, ...]
    keep_words: bool = False
    csv: Dialect = PLAIN
    folders: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    doubt: str = ""
    copied: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def spelled(self) -> frozenset[str]:
        """Columns whose cells alone tell what they are: all of a CSV, and those that folders give."""
        return frozenset(self.columns if self.format == "csv" else self.folders)

    @property
    def described(self) -> str:
        """Which files it is, and how they are read, in a line for whoever owns it."""
        many = f"{len(self.files):,} files" if len(self.files) > 1 else "1 file"
        how = f"CSV, read with {self.csv.text}" if self.format == "csv" else "Parquet"
        if self.copied:
            return f"{self.name}, read once" + (f": {how}" if self.format == "csv" else "")
        folders = f"; folders give {', '.join(self.folders)}" if self.folders else ""
        return f"{self.name}: {many} of {how}{folders}"

    def one_by_one(self) -> Iterator["Source"]:
        """Its files, each as a table of its own."""
        for number, file in enumerate(self.files):
            folders = {name: (values[number],) for name, values in self.folders.items()}
            yield replace(self, files=(file,), folders=folders)

    def count(self) -> int | None:
        """How many rows there are, where the files say so themselves (Parquet); otherwise None."""
        if self.format == "csv":
            return None
        total = 0
        for file in self.files:
            with explained(file):
                total += pq.read_metadata(file).num_rows
        return total

    def types(self, columns: Sequence[str]) -> dict[str, pa.DataType]:
        """The type in which each column will come: dictionaries are decoded, and in a CSV all is text.

        Args:
            columns: Names of columns.

        Returns:
            A type for each of them.
        """
        if self.format == "csv":
            return dict.fromkeys(columns, pa.string())
        types = {name: folder_type(values) for name, values in self.folders.items() if name in columns}
        inside = [name for name in columns if name not in types]
        for file in self.files if inside else ():
            with explained(file):
                schema = pq.read_schema(file)
            for name in inside:
                kind = plain_type(schema.field(name).type)
                if types.setdefault(name, kind) != kind:
                    raise TableError(
                        f"column {name!r} is {kind} in input {file} and {types[name]} in "
                        f"{self.files[0].name}: give all parts one type"
                    )
        return types

    def state(self) -> tuple[tuple[str, int, int, int, int], ...]:
        """Sizes and times of the files: another state means that somebody changed them meanwhile."""
        stats = [(str(file), file.stat()) for file in self.files]
        # The time of the last change of any kind cannot be put back, as that of the content can.
        return tuple((name, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino) for name, s in stats)

    def batches(
        self, columns: Sequence[str], types: dict[str, pa.DataType], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The named columns, at most so many rows at a time, in the order of files and rows.

        Args:
            columns: Names of columns.
            types: How to read columns of a CSV, and those that folders give; other columns of a CSV are text.
            rows: The most rows of a batch.

        Returns:
            The batches, one after the other.
        """
        names = [name for name in columns if name not in self.folders]
        if self.format == "csv" and not names:  # its rows must be counted
            names = [name for name in self.columns if name not in self.folders][:1]
        for number, file in enumerate(self.files):
            given = {name: self.given(name, number, types) for name in columns if name in self.folders}
            with explained(file, self.columns, self.csv):
                batches = (
                    _parquet_batches(file, names, rows) if self.format == "parquet"
                    else csv_batches(file, names, types, rows, self.csv, keep_words=self.keep_words)
                )  # fmt: skip
                yield from batches if not given else (_with_given(one, columns, given) for one in batches)

    def given(self, name: str, number: int, types: Mapping[str, pa.DataType]) -> pa.Scalar:
        """The value that folders give a column in a file: as a CSV's cell, if it should be a number.

        Args:
            name: The column.
            number: Which file, counted from 0.
            types: As for `batches`.

        Returns:
            The value, missing where the folder says so; text where a number is wanted and it is none.
        """
        value = self.folders[name][number]
        kind = types.get(name, pa.string() if self.format == "csv" else folder_type(self.folders[name]))
        if kind != pa.float64():
            empty = "" if self.format == "csv" and value is None else value
            return pa.scalar(None if empty is None else int(empty) if kind == pa.int64() else empty, kind)
        (found,), (wrong,) = read_numbers(pa.array([value], pa.string()))
        if wrong.as_py() and not self.keep_words:
            raise words_in(name, self.files[number])
        return pa.scalar(value, pa.string()) if wrong.as_py() else found


def _with_given(
    batch: pa.RecordBatch, columns: Sequence[str], given: Mapping[str, pa.Scalar]
) -> pa.RecordBatch:
    """A batch with columns that have one value in it."""
    return pa.record_batch(
        {
            name: pa.repeat(given[name], batch.num_rows) if name in given else batch.column(name)
            for name in columns
        }
    )


def open_source(table: TableOnDisk, *, csv: str | Dialect | None = None, keep_words: bool = False) -> Source:
    r"""Find the files, the format and the columns of a table.

    Args:
        table: A Parquet or CSV file, a folder of such files, a pattern such as ``part-*.parquet``, or several
            of these. A table that is open comes back as it is.
        csv: How CSV files are written, such as ``"separator=; decimal=, encoding=latin-1"``; by default that
            is found by looking at how each begins.
        keep_words: Whether batches of a CSV's column of numbers come as text where some cells are no numbers.

    Returns:
        The table, of which no row has been read yet.

    Raises:
        TableError: There is no such table, its parts differ in format or columns, or how it is written cannot
            be told.
        ValueError: ``csv`` is no dialect, or the table is open already.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("id;contacts\na;1,5\n")
        >>> open_source(path).columns, open_source(path).csv.text
        (('id', 'contacts'), 'separator=; decimal=,')
    """
    if isinstance(table, Source):
        if csv is not None:
            raise ValueError("csv belongs where a table is opened, and this one is open: leave it out")
        return replace(table, keep_words=keep_words)
    found = find_files(table)
    kind, files = found.format, found.files
    dialect, doubt = PLAIN, ""
    if kind == "csv":
        with explained(files[0]):
            dialect = find_dialect(files) if csv is None else dialect_of(csv)
        doubt = "" if csv is None else doubtful(files, dialect)
    try:
        names = _names(files[0], kind, dialect)
    except TableError:
        names = ()
        if not doubt:
            raise
    if doubt and len(names) < 2:
        raise TableError(f"input {files[0]} looks written with {doubt}, not with {dialect.text}: {REMEDY}")
    for file in files[1:]:
        if _names(file, kind, dialect) != names:
            raise TableError(
                f"input {file} has other columns than {files[0].name}: all parts must have the same columns "
                "in the same order"
            )
    if clash := [name for name in found.folders if name in names]:
        raise TableError(
            f"input {found.name} has a column {clash[0]!r} in its files, and folders named {clash[0]}=…: "
            "rename one of them"
        )
    if twice := check.twice(names):
        raise TableError(f"input {found.name} has two columns named {twice[0]!r}: rename one")
    columns = (*names, *found.folders)
    return Source(found.name, found.places, kind, files, columns, keep_words, dialect, found.folders, doubt)


def _names(file: Path, kind: Format, csv: Dialect) -> tuple[str, ...]:
    with explained(file, csv=csv):
        return tuple(pq.read_schema(file).names) if kind == "parquet" else csv_names(file, csv)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that values of a type are passed on in: no dictionaries, no views.

    Args:
        kind: The type of a column.

    Returns:
        The plain type.

    Example:
        >>> plain_type(pa.dictionary(pa.int8(), pa.string()))
        DataType(string)
    """
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are text, however it is laid out."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _parquet_batches(file: Path, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file, pre_buffer=False) as parquet:
        if len(columns) == 1 and _in_small_groups(parquet.metadata, columns[0]):
            yield from _one_column(file, columns, rows, parquet.metadata.num_row_groups)
            return
        for batch in parquet.iter_batches(batch_size=rows, columns=columns, use_threads=True):
            yield batch.select(columns)


def _in_small_groups(metadata: pq.FileMetaData, name: str) -> bool:
    """Whether a column of a few row groups can be held at once."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if len(groups) < 2:
        return False
    paths = [groups[0].column(number).path_in_schema for number in range(groups[0].num_columns)]
    if name not in paths:  # a nested column is several of them
        return False
    place = paths.index(name)
    return bool(max(group.column(place).total_uncompressed_size for group in groups) <= _SMALL_GROUP)


def _one_column(file: Path, columns: list[str], rows: int, groups: int) -> Iterator[pa.RecordBatch]:
    """Read one column on several threads, a row group each, and hand over the groups in their order."""
    own = threading.local()
    opened: list[pq.ParquetFile] = []

    def read(group: int) -> pa.Table:
        if not hasattr(own, "parquet"):
            own.parquet = pq.ParquetFile(file, pre_buffer=False)
            opened.append(own.parquet)
        return own.parquet.read_row_group(group, columns=columns, use_threads=False)

    try:
        for table in overlapped(read, range(groups)):
            yield from table.to_batches(max_chunksize=rows)
    finally:
        for parquet in opened:
            parquet.close()


CELLS = 1_000_000
"""Values in a batch: 100,000 rows of ten columns. A few batches are in memory at once."""


def batch_rows(features: int) -> int:
    """How many rows make a batch.

    Args:
        features: How many columns a row has.

    Returns:
        A number of rows, at least 64.

    Example:
        >>> batch_rows(10)
        100000
    """
    return max(64, CELLS // features)


# Work on the next batches while the last is being written.

Item = TypeVar("Item")

Result = TypeVar("Result")

WORKERS = 2
"""Threads; more would only hold more batches in memory, since one writer is the bottleneck."""


def overlapped(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int = WORKERS
) -> Iterator[Result]:
    """Work on the next items in threads while the reader is busy with the last.

    Args:
        work: What is done with each item.
        items: The items.
        workers: How many threads; so many items are worked on ahead of the reader.

    Returns:
        The results, in the order of the items.

    Example:
        >>> list(overlapped(abs, [-1, 2, -3]))
        [1, 2, 3]
    """
    pool = ThreadPoolExecutor(workers)
    ahead: deque[Future[Result]] = deque()
    try:
        for item in items:
            ahead.append(pool.submit(work, item))
            while len(ahead) > workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)

"""Reading tables in batches: Parquet and CSV, a file or a directory of part files.

Nothing of a source but its values goes further: no metadata, no layout of row groups, no statistics.
"""

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from targetdp._core import check
from targetdp.table._spelling import with_numbers

Format = Literal["parquet", "csv"]
"""The formats of tables that are read and written."""

SUFFIXES: dict[str, Format] = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv"}
_CSV_BLOCK = 1 << 24
_SMALL_GROUP = 1 << 25
"""Bytes of a column in a row group of which three may be in memory at once."""
_PARSE = pacsv.ParseOptions(newlines_in_values=True)
_NO_NUMBER = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to double")
_ROW_SHOWN = re.compile(r"(Expected \d+ columns, got \d+):.*")
"""What the reader says of a row with too many values, before it prints the row."""


class TableError(ValueError):
    """A table that cannot be read."""


@dataclass(frozen=True)
class Source:
    r"""A table on disk.

    Args:
        path: What the caller named: a file or a directory.
        format: The format of all its files.
        files: Its part files in order.
        columns: The names of the columns, the same in each file.
        keep_words: Whether a CSV's column of numbers in which some cells are none comes as text, for
            `numbers_of` to count them; otherwise it cannot be read.
        name: What messages call it, where that is not its path.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("id,contacts\na,12\n")
        >>> source = open_source(path)
        >>> [batch.num_rows for batch in source.batches(["id"], {}, rows=100)]
        [1]
    """

    path: Path
    format: Format
    files: tuple[Path, ...]
    columns: tuple[str, ...]
    keep_words: bool = False
    name: str | None = None

    def __str__(self) -> str:
        return self.name or str(self.path)

    def count(self) -> int | None:
        """How many rows there are, where the files say so themselves (Parquet); otherwise None."""
        if self.format == "csv":
            return None
        total = 0
        for file in self.files:
            with _explained(file):
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
        types: dict[str, pa.DataType] = {}
        for file in self.files if columns else ():
            with _explained(file):
                schema = pq.read_schema(file)
            for name in columns:
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
            types: How to read columns of a CSV; every other column there is text.
            rows: The most rows of a batch.

        Returns:
            The batches, one after the other.
        """
        for file in self.files:
            with _explained(file, self.columns):
                if self.format == "parquet":
                    yield from _parquet_batches(file, list(columns), rows)
                else:
                    yield from _csv_batches(file, list(columns), types, rows, keep_words=self.keep_words)


def open_source(path: Path | Source, *, keep_words: bool = False) -> Source:
    r"""Find the files, the format and the columns of a table.

    Args:
        path: A Parquet or CSV file, or a directory of such files; or what was opened before.
        keep_words: Whether batches of a CSV's column of numbers come as text where some cells are no numbers.

    Returns:
        The table, of which no row has been read yet.

    Raises:
        TableError: There is no such table, or its parts differ in format or columns.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("id,contacts\na,12\n")
        >>> open_source(path).columns
        ('id', 'contacts')
    """
    if isinstance(path, Source):
        return replace(path, keep_words=keep_words)
    if not path.exists():
        raise TableError(f"input {path} does not exist: check the name")
    files = _parts(path) if path.is_dir() else (path,)
    kinds = {_format(file) for file in files}
    if len(kinds) > 1:
        raise TableError(f"input {path} mixes Parquet and CSV files: keep one format in a directory")
    kind = kinds.pop()
    names = _names(files[0], kind)
    for file in files[1:]:
        if _names(file, kind) != names:
            raise TableError(
                f"input {file} has other columns than {files[0].name}: all parts must have the same columns "
                "in the same order"
            )
    twice = check.twice(names)
    if twice:
        raise TableError(f"input {path} has two columns named {twice[0]!r}: rename one")
    return Source(path, kind, files, names, keep_words)


def format_of(path: Path) -> Format | None:
    """The format that a file's name promises.

    Args:
        path: The name.

    Returns:
        The format, or None if the suffix is not known.

    Example:
        >>> format_of(Path("people.csv.gz"))
        'csv'
    """
    name = path.name.lower()
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)


def _format(path: Path) -> Format:
    kind = format_of(path)
    if kind is None:
        raise TableError(
            f"input {path} has no known suffix: use {', '.join(SUFFIXES)} or a directory of such files"
        )
    return kind


def _parts(folder: Path) -> tuple[Path, ...]:
    """All part files below a directory, sorted; names that begin with '.' or '_' are not data."""
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file()
        and format_of(file)
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )
    if not files:
        raise TableError(f"input {folder} holds no part files: it needs some with {', '.join(SUFFIXES)}")
    return tuple(files)


def _names(file: Path, kind: Format) -> tuple[str, ...]:
    with _explained(file):
        if kind == "parquet":
            return tuple(pq.read_schema(file).names)
        read = pacsv.ReadOptions(block_size=_CSV_BLOCK)
        with pacsv.open_csv(file, read_options=read, parse_options=_PARSE) as reader:
            return tuple(reader.schema.names)


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


def _csv_batches(
    file: Path, columns: list[str], types: dict[str, pa.DataType], rows: int, *, keep_words: bool
) -> Iterator[pa.RecordBatch]:
    done = 0
    try:
        for block in _csv_blocks(file, columns, types):
            for start in range(0, block.num_rows, rows):
                yield block.slice(start, rows)
            done += block.num_rows
    except pa.ArrowInvalid as error:
        if not (keep_words and _NO_NUMBER.search(str(error))):
            raise
    else:
        return
    # Some cell is no number. The rest is read as text, and turned into numbers where all of a batch are.
    numbers = [name for name, kind in types.items() if name in columns and kind == pa.float64()]
    for block in _csv_blocks(file, columns, {}):
        left = block.slice(min(done, block.num_rows))
        done -= block.num_rows - left.num_rows
        for start in range(0, left.num_rows, rows):
            yield with_numbers(left.slice(start, rows), numbers)


def _csv_blocks(file: Path, columns: list[str], types: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    convert = pacsv.ConvertOptions(
        include_columns=columns,
        column_types={name: types.get(name, pa.string()) for name in columns},
        strings_can_be_null=False,  # an id may be "NA" or "null"
    )
    read = pacsv.ReadOptions(block_size=_CSV_BLOCK)
    with pacsv.open_csv(file, read_options=read, parse_options=_PARSE, convert_options=convert) as reader:
        yield from reader


@contextmanager
def _explained(file: Path, columns: Sequence[str] = ()) -> Iterator[None]:
    """Turn the reader's errors into ones that name the file and the column."""
    try:
        yield
    except TableError:
        raise
    # A damaged file may name other columns in one place than in another: then a column is missing.
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError) as error:
        reason = _ROW_SHOWN.sub(r"\1", " ".join(str(error).split()))
        wrong = _NO_NUMBER.search(reason)
        if wrong and int(wrong[1]) < len(columns):
            raise TableError(
                f"feature {columns[int(wrong[1])]!r} has cells that are no numbers in input {file}: correct "
                "them, or leave the column out"
            ) from error
        if "Empty CSV" in reason:
            raise TableError(f"input {file} is empty or has no rows: there is nothing to read") from error
        raise TableError(f"input {file} cannot be read ({reason}): the file may be damaged") from error


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

"""Tables that pass by once: standard input, and the lazy frames of polars and DuckDB."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from targetdp._core import Progress
from targetdp._files import create_new
from targetdp.table._dialect import TableError
from targetdp.table._elsewhere._secrets import explained
from targetdp.table._elsewhere._spool import Elsewhere, write_spool

_ARROW, _ARROW_FILE, _END = b"\xff" * 4, b"ARROW1\0\0", b"\xff" * 4 + bytes(4)
"""How a stream of Arrow begins, how a file does (a stream follows), and how a whole one ends."""
_SUFFIXES = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz"}
"""Other formats, by how they begin; everything else is a CSV."""
_PIECE = 1 << 20


@dataclass(frozen=True)
class Stream(Elsewhere):
    r"""A table that is read from a stream, once: CSV, Arrow or Parquet, which is told by how it begins.

    Args:
        file: Opened for reading bytes.
        name: What messages call it.

    Guarantees: an Arrow stream that was cut short is refused.
    Does not guarantee: that a CSV is whole: nothing in it says where it ends.

    Example:
        >>> import io, tempfile
        >>> from targetdp._core import Silent
        >>> path = Stream(io.BytesIO(b"id,contacts\na,12\n")).spool(Path(tempfile.mkdtemp()), None, Silent())
        >>> path.name, path.read_text()
        ('table.csv', 'id,contacts\na,12\n')
    """

    file: BinaryIO
    name: str = "standard input"

    def __str__(self) -> str:
        return self.name

    def spool(self, folder: Path, order: str | None, progress: Progress) -> Path:  # noqa: ARG002 (it has its own)
        """See `Elsewhere`."""
        if self.file.isatty():
            raise TableError(f"{self} is a terminal: pipe a table into it, or name a file")
        begins = _some(self.file, len(_ARROW_FILE))
        if not begins:
            raise TableError(f"{self} is empty: there is nothing to read")
        if begins == _ARROW_FILE or begins.startswith(_ARROW):
            return self._spool_arrow(folder, b"" if begins == _ARROW_FILE else begins, progress)
        suffix = next((end for start, end in _SUFFIXES.items() if begins.startswith(start)), ".csv")
        path = folder / f"table{suffix}"
        with os.fdopen(create_new(path, private=True), "wb") as copy:
            copy.write(begins)
            shutil.copyfileobj(self.file, copy, _PIECE)
        return path

    def _spool_arrow(self, folder: Path, begins: bytes, progress: Progress) -> Path:
        watched = _Watched(self.file, begins)
        with (
            explained(f"{self} cannot be read as Arrow"),
            pa.ipc.open_stream(pa.PythonFile(watched, mode="r")) as reader,
        ):
            path = write_spool(folder / "table.parquet", reader.schema, reader, progress)
        if watched.last != _END:
            raise TableError(f"{self} ends before its end: whoever wrote it did not finish")
        return path


def _some(file: BinaryIO, size: int) -> bytes:
    """The next bytes; fewer at the end only."""
    found = b""
    while len(found) < size and (more := file.read(size - len(found))):
        found += more
    return found


class _Watched:
    """A stream whose first bytes were read already, and whose last ones are kept."""

    closed = False

    def __init__(self, file: BinaryIO, begins: bytes) -> None:
        self._file, self._begins = file, begins
        self.last = b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def read(self, size: int) -> bytes:
        found, self._begins = self._begins[:size], self._begins[size:]
        if len(found) < size:
            found += _some(self._file, size - len(found))
        self.last = (self.last + found[-len(_END) :])[-len(_END) :]
        return found


# Lazy frames: what polars and DuckDB would work out


@dataclass(frozen=True)
class LazyTable(Elsewhere):
    """A table that polars or DuckDB works out when it is read.

    Args:
        frame: A `polars.LazyFrame` or a `duckdb.DuckDBPyRelation`.

    Guarantees: it is worked out once, in batches.

    Example:
        >>> import polars as pl
        >>> str(LazyTable(pl.LazyFrame({"id": ["a"]})))
        'the lazy frame'
    """

    frame: Any
    gives_back = True

    def __str__(self) -> str:
        return "the lazy frame" if _is_polars(self.frame) else "the relation"

    def spool(self, folder: Path, order: str | None, progress: Progress) -> Path:
        """See `Elsewhere`."""
        path = folder / "table.parquet"
        if not _is_polars(self.frame):
            ordered = order in self.frame.columns
            sorted_by = '"' + str(order).replace('"', '""') + '"'
            reader = (self.frame.order(sorted_by) if ordered else self.frame).to_arrow_reader(_PIECE)
            return write_spool(path, reader.schema, reader, progress)
        schema = self.frame.collect_schema()
        frame = self.frame.sort(order) if order in schema.names() else self.frame
        first = schema.to_frame()
        return write_spool(path, _arrow(first).schema, _polars_batches(frame), progress)

    def give_back(self, table: pa.Table) -> Any:
        """See `Elsewhere`: a lazy frame of polars; for DuckDB a pyarrow table, which it reads by its name."""
        if not _is_polars(self.frame):
            return table
        import polars as pl  # noqa: PLC0415

        frame = pl.from_arrow(table)
        return frame.lazy() if isinstance(frame, pl.DataFrame) else frame


def is_lazy(table: Any) -> bool:
    """Whether a table is a lazy one of polars or DuckDB."""
    return _is_polars(table) or type(table).__name__ == "DuckDBPyRelation"


def _is_polars(table: Any) -> bool:
    return type(table).__name__ == "LazyFrame" and type(table).__module__.startswith("polars.")


def _arrow(frame: Any) -> pa.Table:
    import polars as pl  # noqa: PLC0415

    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _polars_batches(frame: Any) -> Iterator[pa.RecordBatch]:
    for some in frame.collect_batches(maintain_order=True):
        yield from _arrow(some).to_batches()

"""Sorting tables that do not fit in memory: rows go to ranges of ids on disk, each small enough to sort.

What is spilled is already private (ids and noisy rows): no raw value touches the disk.
"""

import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, kernel
from targetdp.table._ids import SortedIds, buckets_of, sort_ids, text_buffers

MAX_BUCKETS = 1024
"""The most ranges of ids that a table is sorted by."""
_LONGEST_TEXT = 2**31 - 1
_TILE = 32
"""Rows handled together: their part of every column stays in the processor's cache."""


@dataclass(frozen=True)
class _Batch:
    """Where a batch lies: its values, then the bytes of its ids, then their lengths, all by ranges.

    ``rows`` and ``bytes`` say where each range ends. Kept columns lie apart, one Arrow
    batch for each range: (offset, size).
    """

    offset: int
    rows: Integers
    bytes: Integers
    kept: tuple[tuple[int, int], ...]


class Spill:
    """Rows by ranges of their ids, in one file; safe to add to from several threads.

    A row is an id, d values (there may be none), and whatever columns are kept beside them (of types fixed
    beforehand).

    Args:
        folder: Where the file lies; it has no name, and vanishes with the process. None for the usual place.
        splitters: Ids where ranges begin, sorted.
        dimensions: How many values a row has.
        kept: Names and types of the kept columns.

    Example:
        >>> spill = Spill(None, pa.array(["m"]), dimensions=1)
        >>> spill.add(pa.array(["z", "b", "a"]), np.array([[3.0], [2.0], [1.0]]), {})
        >>> ids, values, _, _ = spill.sorted_bucket(0)
        >>> ids.to_pylist(), values
        (['a', 'b'], array([[1., 2.]]))
        >>> spill.close()
    """

    def __init__(
        self,
        folder: Path | None,
        splitters: pa.StringArray,
        dimensions: int,
        kept: Mapping[str, pa.DataType] | None = None,
    ) -> None:
        self._splitters, self._d = splitters, dimensions
        self._kept = pa.schema(list((kept or {}).items()))
        # A file without a name: whatever happens to this process, nothing of it stays.
        self._open = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._file = self._open.fileno()
        self._batches: list[_Batch] = []
        self._end = 0
        self._lock = threading.Lock()

    @property
    def buckets(self) -> int:
        """How many ranges there are."""
        return len(self._splitters) + 1

    def add(self, ids: pa.StringArray, rows: Floats, kept: dict[str, pa.Array]) -> None:
        """Put rows into their ranges.

        Args:
            ids: Whose rows they are.
            rows: Their values, n rows of d columns.
            kept: The kept columns, by name.
        """
        bucket = buckets_of(ids, self._splitters)
        order = np.argsort(bucket, kind="stable")
        where = pa.array(order)
        row_ends = np.cumsum(np.bincount(bucket, minlength=self.buckets))
        data, starts = text_buffers(ids.take(where))
        byte_ends = np.append(starts, starts[-1:])[row_ends].astype(np.int64) - starts[0]
        pieces: list[Any] = [
            rows.take(order, axis=0), data[starts[0] : starts[-1]], np.diff(starts).astype(np.int32)
        ]  # fmt: skip
        sizes: list[int] = []
        if len(self._kept):
            columns = [kept[name].take(where) for name in self._kept.names]
            batch = pa.RecordBatch.from_arrays(columns, schema=self._kept)
            for start, end in zip([0, *row_ends[:-1].tolist()], row_ends.tolist(), strict=True):
                blob = batch.slice(start, end - start).serialize()
                pieces.append(np.frombuffer(blob, dtype=np.uint8))
                sizes.append(blob.size)
        with self._lock:
            offset = self._end
            self._end += sum(piece.nbytes for piece in pieces)
            ends = self._end - sum(sizes) + np.cumsum([0, *sizes])
            places = tuple(zip(ends[:-1].tolist(), sizes, strict=True))
            self._batches.append(_Batch(offset, row_ends, byte_ends, places))
        for piece in pieces:
            self._write(_bytes(piece), offset)
            offset += piece.nbytes

    def sorted_bucket(self, number: int) -> tuple[pa.StringArray, Floats, dict[str, pa.Array], SortedIds]:
        """Read one range back, sorted by id.

        Args:
            number: The range's number, from 0.

        Returns:
            Ids, values column by column (d×n), the kept columns, and the order with its duplicates.
        """
        spans = [(batch, *_span(batch.rows, number), *_span(batch.bytes, number)) for batch in self._batches]
        spans = [span for span in spans if span[2] > span[1]]
        rows = np.empty((sum(r1 - r0 for _, r0, r1, _, _ in spans), self._d))
        text = np.empty(sum(b1 - b0 for _, _, _, b0, b1 in spans), dtype=np.uint8)
        if len(text) > _LONGEST_TEXT:
            raise ValueError(f"ids of one range take {len(text):,} bytes: shorten them to a few hundred each")
        lengths = np.empty(len(rows), dtype=np.int32)
        row = byte = 0
        kept = [pa.RecordBatch.from_pylist([], schema=self._kept)]
        for batch, r0, r1, b0, b1 in spans:
            values, total = batch.offset, int(batch.rows[-1])
            texts = values + total * self._d * 8
            sizes = texts + int(batch.bytes[-1])
            self._read(values + r0 * self._d * 8, rows[row : row + r1 - r0])
            self._read(texts + b0, text[byte : byte + b1 - b0])
            self._read(sizes + r0 * 4, lengths[row : row + r1 - r0])
            row, byte = row + r1 - r0, byte + b1 - b0
            if len(self._kept):
                offset, size = batch.kept[number]
                side = np.empty(size, dtype=np.uint8)
                self._read(offset, side)
                kept.append(pa.ipc.read_record_batch(pa.py_buffer(side), self._kept))
        offsets = np.zeros(len(rows) + 1, dtype=np.int32)
        np.cumsum(lengths, out=offsets[1:])
        ids = pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(text))
        done = sort_ids(ids)
        where = pa.array(done.order)
        columns = {
            name: pa.concat_arrays([batch.column(j) for batch in kept]).take(where)
            for j, name in enumerate(self._kept.names)
        }
        return ids.take(where), columns_in_order(rows, done.order), columns, done

    def close(self) -> None:
        """Close the file, which removes it."""
        self._open.close()

    def _write(self, view: memoryview, offset: int) -> None:
        while view:
            written = os.pwrite(self._file, view, offset)
            offset, view = offset + written, view[written:]

    def _read(self, offset: int, into: NDArray[Any]) -> None:
        view = _bytes(into)
        while view:
            read = os.preadv(self._file, [view], offset)
            if read == 0:
                raise OSError("a temporary file ended too early")
            offset, view = offset + read, view[read:]


def _span(ends: Integers, number: int) -> tuple[int, int]:
    return (int(ends[number - 1]) if number else 0), int(ends[number])


def _bytes(values: NDArray[Any]) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


def columns_in_order(rows: Floats, order: NDArray[np.int64]) -> Floats:
    """The rows of a table in another order, column by column.

    Args:
        rows: n rows of d columns.
        order: The place of each row.

    Returns:
        An array of d columns by n rows.

    Example:
        >>> columns_in_order(np.array([[1.0], [2.0]]), np.array([1, 0]))
        array([[2., 1.]])
    """
    columns = np.empty(rows.shape[::-1])
    _fill_columns(rows, order, columns)
    return columns


@kernel
def _fill_columns(rows: Floats, order: NDArray[np.int64], columns: Floats) -> None:
    d, n = columns.shape
    for start in range(0, n, _TILE):
        end = min(start + _TILE, n)
        for i in range(start, end):
            row = order[i]
            for j in range(d):
                columns[j, i] = rows[row, j]

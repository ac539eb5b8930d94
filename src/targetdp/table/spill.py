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

from targetdp.table.ids import Sorted, buckets_of, sort_ids
from targetdp.table.layout import columns_in_order, rows_in_order
from targetdp.typing import Floats

MAX_BUCKETS = 1024


@dataclass(frozen=True)
class _Piece:
    """Where some rows of one range lie: their values as they are, then ids and others as an Arrow batch."""

    offset: int
    rows: int
    side: int


class Spill:
    """Rows by ranges of their ids, in one file; safe to add to from several threads.

    A row is an id, d values (there may be none), and whatever other columns travel with it (``others``, of
    types fixed beforehand).
    """

    def __init__(
        self,
        folder: Path | None,
        splitters: pa.StringArray,
        dimensions: int,
        others: Mapping[str, pa.DataType] | None = None,
    ) -> None:
        self._splitters, self._d = splitters, dimensions
        self._others = tuple(others or {})
        kinds = enumerate((others or {}).values())
        self._schema = pa.schema([("id", pa.string()), *((f"{j}", kind) for j, kind in kinds)])
        # A file without a name: whatever happens to this process, nothing of it stays.
        self._open = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._file = self._open.fileno()
        self._pieces: list[list[_Piece]] = [[] for _ in range(len(splitters) + 1)]
        self._end = 0
        self._lock = threading.Lock()

    @property
    def buckets(self) -> int:
        """How many ranges there are."""
        return len(self._pieces)

    def add(self, ids: pa.StringArray, rows: Floats, others: dict[str, pa.Array]) -> None:
        """Put rows into their ranges."""
        bucket = buckets_of(ids, self._splitters)
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=self.buckets)).tolist()
        where = pa.array(order)
        values = rows_in_order(rows, order)
        side = [ids.take(where), *(others[name].take(where) for name in self._others)]
        batch = pa.RecordBatch.from_arrays(side, schema=self._schema)
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if end > start:
                blob = batch.slice(start, end - start).serialize()
                self._put(number, values[start:end], blob)

    def _put(self, number: int, values: Floats, blob: Any) -> None:
        with self._lock:
            piece = _Piece(self._end, len(values), blob.size)
            self._end += values.nbytes + blob.size
            self._pieces[number].append(piece)
        buffers = [_bytes(values), memoryview(blob)] if values.size else [memoryview(blob)]
        offset = piece.offset
        for view in buffers:
            while view:
                written = os.pwrite(self._file, view, offset)
                offset, view = offset + written, view[written:]  # noqa: PLW2901

    def sorted_bucket(self, number: int) -> tuple[pa.StringArray, Floats, dict[str, pa.Array], Sorted]:
        """Ids, values column by column, other columns: one range, sorted by id; ids must be different."""
        pieces = self._pieces[number]
        if not pieces:
            none = {name: pa.array([], self._schema.field(j + 1).type) for j, name in enumerate(self._others)}
            empty = pa.array([], pa.string())
            return empty, np.empty((self._d, 0)), none, Sorted(np.empty(0, dtype=np.int64), 0, None)
        rows = np.empty((sum(piece.rows for piece in pieces), self._d))
        batches, start = [], 0
        for piece in pieces:
            end = start + piece.rows
            side = bytearray(piece.side)
            self._read(piece.offset, rows[start:end], side)
            batches.append(pa.ipc.read_record_batch(pa.py_buffer(side), self._schema))
            start = end
        ids = pa.concat_arrays([batch["id"] for batch in batches])
        done = sort_ids(ids)
        where = pa.array(done.order)
        others = {
            name: pa.concat_arrays([batch.column(j + 1) for batch in batches]).take(where)
            for j, name in enumerate(self._others)
        }
        return ids.take(where), columns_in_order(rows, done.order), others, done

    def _read(self, offset: int, values: Floats, side: bytearray) -> None:
        views = [_bytes(values)] if values.size else []
        for view in (*views, memoryview(side)):
            while view:
                read = os.preadv(self._file, [view], offset)
                if read == 0:
                    raise OSError("a temporary file ended too early")
                offset, view = offset + read, view[read:]  # noqa: PLW2901

    def close(self) -> None:
        """Let go of the file."""
        self._open.close()


def _bytes(values: Floats) -> memoryview:
    return values.reshape(-1).view(np.uint8).data

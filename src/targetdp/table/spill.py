"""Sorting tables that do not fit in memory: rows go to ranges of ids on disk, each small enough to sort.

What is spilled is already private (ids and noisy rows): no raw value touches the disk.
"""

import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from targetdp.table.ids import Sorted, buckets_of, sort_ids
from targetdp.table.layout import columns_in_order
from targetdp.typing import Floats

MAX_BUCKETS = 1024


class Spill:
    """Rows by ranges of their ids, in one file; safe to add to from several threads.

    A row is an id, d values (there may be none), and whatever other columns travel with it (``others``,
    named, any type).
    """

    def __init__(self, folder: Path | None, splitters: pa.StringArray, dimensions: int) -> None:
        self._splitters, self._d = splitters, dimensions
        # A file without a name: whatever happens to this process, nothing of it stays.
        self._open = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._file = self._open.fileno()
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(len(splitters) + 1)]
        self._end = 0
        self._lock = threading.Lock()
        self._schema: pa.Schema | None = None

    @property
    def buckets(self) -> int:
        """How many ranges there are."""
        return len(self._pieces)

    def add(self, ids: pa.StringArray, rows: Floats, others: dict[str, pa.Array]) -> None:
        """Put rows into their ranges."""
        bucket = buckets_of(ids, self._splitters)
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(self.buckets), side="right")
        where = pa.array(order)
        columns = {"id": ids.take(where)}
        if self._d:
            columns["row"] = pa.FixedSizeListArray.from_arrays(pa.array(rows[order].ravel()), self._d)
        columns |= {f"other {name}": column.take(where) for name, column in others.items()}
        batch = pa.RecordBatch.from_pydict(columns)
        start = 0
        blobs: list[tuple[int, Any]] = []
        for number, end in enumerate(ends.tolist()):
            if end > start:
                blobs.append((number, batch.slice(start, end - start).serialize()))
            start = end
        with self._lock:
            self._schema = batch.schema
            for number, blob in blobs:
                self._pieces[number].append((self._end, blob.size))
                self._end += blob.size
            offset = self._end - sum(blob.size for _, blob in blobs)
        for _, blob in blobs:
            _write_all(self._file, blob, offset)
            offset += blob.size

    def sorted_bucket(self, number: int) -> tuple[pa.StringArray, Floats, dict[str, pa.Array], Sorted]:
        """Ids, values column by column, other columns: one range, sorted by id; ids must be different."""
        if not self._pieces[number] or self._schema is None:
            empty = pa.array([], pa.string())
            return empty, np.empty((self._d, 0)), {}, Sorted(np.empty(0, dtype=np.int64), 0, None)
        batches = [
            pa.ipc.read_record_batch(pa.py_buffer(os.pread(self._file, size, offset)), self._schema)
            for offset, size in self._pieces[number]
        ]
        ids = pa.concat_arrays([batch["id"] for batch in batches])
        done = sort_ids(ids)
        values = [np.asarray(b["row"].flatten()) for b in batches] if self._d else [np.empty(0)]
        columns = columns_in_order(np.concatenate(values).reshape(len(ids), self._d), done.order)
        where = pa.array(done.order)
        others = {
            name.removeprefix("other "): pa.concat_arrays([b[name] for b in batches]).take(where)
            for name in self._schema.names
            if name.startswith("other ")
        }
        return ids.take(where), columns, others, done

    def close(self) -> None:
        """Let go of the file."""
        self._open.close()


def _write_all(file: int, blob: Any, offset: int) -> None:
    view = memoryview(blob)
    while view:
        written = os.pwrite(file, view, offset)
        offset += written
        view = view[written:]

"""The engine for one machine: batches in, noise on threads, ranges of ids on disk, sorted rows out.

Memory does not grow with the number of rows: at most a few batches are held at once.
"""

import hmac
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from targetdp.moments import Moments
from targetdp.release.columns import Tally, ids_of, numbers_of
from targetdp.release.inspection import Batches, Inspection, Progress, batch_rows, refuse_constants
from targetdp.release.overlap import overlapped
from targetdp.release.settings import Settings
from targetdp.release.terms import Terms
from targetdp.scales import ColumnScales
from targetdp.table.layout import columns_in_order, rows_in_ball
from targetdp.table.spill import Spill
from targetdp.typing import Floats
from targetdp.words import SecretWords


class Output(Protocol):
    """Where finished rows go."""

    def write(self, table: pa.Table) -> None:
        """Append rows."""


@dataclass(frozen=True)
class Outcome:
    """What was done, for the data holder's own eyes."""

    rows: int
    clipped: int


def privatize_table(
    source: Batches,
    output: Output,
    folder: Path | None,
    settings: Settings,
    scales: ColumnScales,
    terms: Terms,
    inspection: Inspection,
    pseudonym_key: bytes | None,
    progress: Progress,
) -> Outcome:
    """Privatize all rows and write them; refuse, after looking at all rows, what must not be released."""
    work = _Work(settings, scales, terms, pseudonym_key)
    keep_order = settings.keep_order
    spill = Spill(folder, inspection.splitters, 0 if keep_order else len(settings.features))
    try:
        progress.phase("adding noise", inspection.rows)

        def put(done: _Private) -> _Private:
            rows = np.empty((len(done.ids), 0)) if keep_order else done.rows
            spill.add(done.ids, rows, {} if keep_order else done.others)
            return done

        for done in _privatized(source, settings, terms, work, put):
            if keep_order:
                order = np.arange(len(done.ids))
                output.write(_table(settings, done.ids, columns_in_order(done.rows, order), done.others))
            progress.advance(len(done.ids))
        work.finish(inspection.rows)
        progress.phase("checking ids" if keep_order else "writing in order of ids", inspection.rows)
        standard = work.standard if settings.made_for == "cider" else None
        duplicates, first = 0, None
        for ids, columns, others, found in overlapped(spill.sorted_bucket, range(spill.buckets)):
            duplicates, first = duplicates + found.duplicates, first or found.first_duplicate
            if len(ids) and not duplicates and not keep_order:
                output.write(_table(settings, ids, standard(columns) if standard else columns, others))
            progress.advance(len(ids))
        if duplicates:
            raise ValueError(
                f"id column {settings.id!r} has duplicated values: {duplicates:,} rows repeat an id (first: "
                f"{first!r}): one row per person; merge or drop the others. Nothing was published"
            )
    finally:
        spill.close()
    return Outcome(work.rows, work.clipped)


def output_schema(settings: Settings, kept: dict[str, pa.DataType]) -> pa.Schema:
    """The columns of a release: the id, the features, and what was kept."""
    return pa.schema(
        [
            pa.field(settings.id, pa.string(), nullable=False),
            *(pa.field(name, pa.float64(), nullable=False) for name in settings.features),
            *(pa.field(name, kind) for name, kind in kept.items()),
        ]
    )


@dataclass(frozen=True)
class _Private:
    """A batch whose noise has been added."""

    ids: pa.StringArray
    rows: Floats
    others: dict[str, pa.Array]


class _Work:
    """What a thread does to a batch. Each thread draws words of its own."""

    def __init__(
        self, settings: Settings, scales: ColumnScales, terms: Terms, pseudonym_key: bytes | None
    ) -> None:
        self._settings, self._scales, self._terms, self._key = settings, scales, terms, pseudonym_key
        self._constants = settings.constants()
        self._own = threading.local()
        self._lock = threading.Lock()
        self._tally = Tally()
        self._lowest: Floats | None = None
        self._highest: Floats | None = None
        self._released: Moments | None = None
        self.rows = self.clipped = 0

    def __call__(self, item: tuple[int, pa.RecordBatch]) -> _Private:
        """Ids, noisy rows (rows of the unit ball for k-anonymity, which follows) and kept columns."""
        offset, batch = item
        settings, tally = self._settings, Tally()
        ids = ids_of(batch.column(settings.id), settings.id, tally, offset)
        block = numbers_of(batch, settings.features, self._constants, tally, offset)
        lowest, highest = block.min(axis=1), block.max(axis=1)
        clipped, rows = 0, np.zeros(block.shape[::-1])
        if not tally.counts:
            rows, clipped = rows_in_ball(block, self._scales)
            if self._terms.law is not None:
                rows = self._terms.law.add_to(rows, self._words())
        moments = Moments.of(np.ascontiguousarray(rows.T)) if settings.made_for == "cider" else None
        with self._lock:
            self._tally.merge(tally)
            self._lowest = lowest if self._lowest is None else np.minimum(self._lowest, lowest)
            self._highest = highest if self._highest is None else np.maximum(self._highest, highest)
            if moments is not None:
                self._released = moments if self._released is None else self._released + moments
            self.rows += len(ids)
            self.clipped += clipped
        others = {name: _decoded(batch.column(name)) for name in settings.keep}
        return _Private(ids if self._key is None else pseudonyms(ids, self._key), rows, others)

    @property
    def found_problems(self) -> bool:
        """Whether some rows cannot be released."""
        return bool(self._tally.counts)

    def finish(self, expected: int) -> None:
        """All rows were seen: refuse what is wrong with them."""
        self._tally.raise_if_any()
        if self.rows == 0 or self._lowest is None or self._highest is None:
            raise ValueError("the table has no rows: there is nothing to release")
        if self.rows != expected:
            raise ValueError(
                f"the table had {expected:,} rows at first and {self.rows:,} then: it changed meanwhile; "
                "try again when nobody writes to it"
            )
        refuse_constants(self._settings.features, self._lowest, self._highest)

    def standard(self, columns: Floats) -> Floats:
        """Released columns with mean 0 and deviation 1, by their own moments: post-processing."""
        if self._released is None:
            raise RuntimeError("moments of the released rows were not collected")
        return np.asarray((columns - self._released.mean[:, None]) / self._released.deviation[:, None])

    def _words(self) -> SecretWords:
        if not hasattr(self._own, "words"):
            self._own.words = SecretWords()
        words: SecretWords = self._own.words
        return words


def pseudonyms(ids: pa.StringArray, key: bytes) -> pa.StringArray:
    """HMAC-SHA-256 of every id, in hexadecimal digits."""
    return pa.array([hmac.digest(key, name.encode(), "sha256").hex() for name in ids.to_pylist()])


def _privatized(
    source: Batches, settings: Settings, terms: Terms, work: _Work, put: Callable[[_Private], _Private]
) -> Iterator[_Private]:
    batches = _numbered(source, settings)
    if terms.mondrian is None:
        yield from overlapped(lambda item: put(work(item)), batches)
        return
    # k-anonymity looks at all rows at once: the one mechanism whose memory grows with the table.
    parts = list(overlapped(work, batches))
    if not parts or work.found_problems:
        return
    rows = terms.mondrian.privatize(np.concatenate([part.rows for part in parts]))
    start = 0
    for part in parts:
        end = start + len(part.ids)
        yield put(_Private(part.ids, rows[start:end], part.others))
        start = end


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _numbered(source: Batches, settings: Settings) -> Iterator[tuple[int, pa.RecordBatch]]:
    offset = 0
    columns = [settings.id, *settings.features, *settings.keep]
    types = dict.fromkeys(settings.features, pa.float64())
    for batch in source.batches(columns, types, batch_rows(len(settings.features))):
        if batch.num_rows:
            yield offset, batch
            offset += batch.num_rows


def _table(settings: Settings, ids: pa.StringArray, columns: Floats, others: dict[str, pa.Array]) -> pa.Table:
    schema = output_schema(settings, {name: column.type for name, column in others.items()})
    return pa.Table.from_arrays([ids, *(pa.array(c) for c in columns), *others.values()], schema=schema)

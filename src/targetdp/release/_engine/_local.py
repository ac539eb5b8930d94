"""The engine for one machine: batches in, noise on threads, ranges of ids on disk, sorted rows out.

Memory does not grow with the number of rows: at most a few batches are held at once.
"""

import hmac
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Progress
from targetdp.mechanisms import NoiseLaw
from targetdp.noise import SecretWords, WordSource
from targetdp.normalization import ColumnScales, rows_in_ball, scores_in_ball
from targetdp.release._engine._inspection import (
    Batches,
    Inspection,
    group_rows,
    nobody_left,
    refuse_constants,
)
from targetdp.release._engine._ordered import Output, check_ids, output_schema, table_of, write_in_order
from targetdp.release._settings import Settings
from targetdp.release._terms import Terms
from targetdp.table import (
    Spill,
    Tally,
    batch_rows,
    columns_in_order,
    ids_of,
    kept_column,
    numbers_of,
    overlapped,
    regrouped,
)

# From columns, as tables are stored, to private rows or scores: where noise is added, for every engine.


def noisy_rows(columns: Floats, scales: ColumnScales, law: NoiseLaw, words: WordSource) -> tuple[Floats, int]:
    """Scale and clip rows whose finite values come column by column, add noise; how many were clipped.

    Scores are summed up on the way, so that rows of all columns are never held.
    """
    if law.linear is not None:
        scores, clipped = scores_in_ball(columns, scales, np.array(law.linear.weights))
        return law.linear.noise_on(scores, words), clipped
    rows, clipped = rows_in_ball(columns, scales)
    return law.add_to(rows, words), clipped


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
    kept: dict[str, pa.DataType],
    pseudonym_key: bytes | None,
    progress: Progress,
) -> Outcome:
    """Privatize all rows and write them; refuse, after looking at all rows, what must not be released."""
    work = _Work(settings, scales, terms, kept, pseudonym_key)
    schema, keep_order = output_schema(settings, kept), settings.keep_order
    spill = Spill(
        folder, inspection.splitters, 0 if keep_order else len(settings.released), {} if keep_order else kept
    )

    def put(done: _Private) -> tuple[int, pa.Table]:
        """On the worker's thread: rows into their ranges or, in the order of the input, as a table."""
        rows = len(done.ids)
        spill.add(done.ids, np.empty((rows, 0)) if keep_order else done.rows, done.others)
        if not keep_order:
            return rows, schema.empty_table()
        every = np.arange(rows)
        # Taking each value leaves behind what a column only hides, such as values under gaps.
        others = {name: column.take(pa.array(every)) for name, column in done.others.items()}
        return rows, table_of(schema, done.ids, columns_in_order(done.rows, every), others)

    def private() -> Iterator[pa.Table]:
        for rows, table in _privatized(source, settings, terms, work, put):
            yield table
            progress.advance(rows)

    try:
        progress.phase("adding noise", inspection.rows)
        for table in regrouped(private(), group_rows(len(settings.released))):
            output.write(table)
        work.finish(inspection.rows)
        if keep_order:
            check_ids(spill.sorted_bucket, spill.buckets, settings)
        else:
            write_in_order(
                spill.sorted_bucket, spill.buckets, inspection.rows, schema, settings, output, progress
            )
    finally:
        spill.close()
    return Outcome(work.rows, work.clipped)


@dataclass(frozen=True)
class _Private:
    """A batch whose noise has been added."""

    ids: pa.StringArray
    rows: Floats
    others: dict[str, pa.Array]


class _Work:
    """What a thread does to a batch. Each thread draws words of its own."""

    def __init__(
        self,
        settings: Settings,
        scales: ColumnScales,
        terms: Terms,
        kept: dict[str, pa.DataType],
        pseudonym_key: bytes | None,
    ) -> None:
        self._kept = kept
        self._settings, self._scales, self._terms, self._key = settings, scales, terms, pseudonym_key
        self._constants = settings.constants()
        self._own = threading.local()
        self._lock = threading.Lock()
        self._tally = Tally()
        self._lowest: Floats | None = None
        self._highest: Floats | None = None
        self._constants_are_possible = True
        self.rows = self.clipped = 0

    def __call__(self, item: tuple[int, pa.RecordBatch]) -> _Private:
        """Ids, noisy rows or scores (rows of the unit ball for k-anonymity, which follows), kept columns."""
        offset, batch = item
        settings, tally = self._settings, Tally()
        ids = ids_of(batch.column(settings.id), settings.id, tally, offset)
        block = numbers_of(
            batch, settings.features, self._constants, tally, offset, self._room(batch.num_rows)
        )
        extremes = self._constants_are_possible and (block.min(axis=1), block.max(axis=1))
        clipped, rows = 0, np.zeros((len(ids), len(settings.released)))
        if not tally.counts and self._terms.law is not None:
            rows, clipped = noisy_rows(block, self._scales, self._terms.law, self._words())
        elif not tally.counts:
            rows, clipped = rows_in_ball(block, self._scales)
        with self._lock:
            self._tally.merge(tally)
            if extremes:
                self._widen(*extremes)
            self.rows += len(ids)
            self.clipped += clipped
        others = {name: kept_column(batch.column(name), name, kind) for name, kind in self._kept.items()}
        return _Private(ids if self._key is None else pseudonyms(ids, self._key), rows, others)

    @property
    def found_problems(self) -> bool:
        """Whether some rows cannot be released."""
        return bool(self._tally.counts)

    def finish(self, expected: int) -> None:
        """All rows were seen: refuse what is wrong with them."""
        self._tally.raise_if_any(rows_are_numbered=not self._settings.leaves_sample_out)
        if self.rows == 0 or self._lowest is None or self._highest is None:
            raise nobody_left(self._settings)
        if self.rows != expected:
            raise ValueError(
                f"the table had {expected:,} rows at first and {self.rows:,} then: it changed meanwhile; "
                "try again when nobody writes to it"
            )
        refuse_constants(self._settings.features, self._lowest, self._highest)

    def _widen(self, lowest: Floats, highest: Floats) -> None:
        """Note a batch's extremes; once every column has two different values, more tell nothing new."""
        self._lowest = lowest if self._lowest is None else np.minimum(self._lowest, lowest)
        self._highest = highest if self._highest is None else np.maximum(self._highest, highest)
        self._constants_are_possible = not bool((self._lowest < self._highest).all())

    def _room(self, rows: int) -> Floats:
        """Memory for a batch, used again by each thread: new pages each time cost as much as the sums."""
        size = rows * len(self._settings.features)
        if getattr(self._own, "room", np.empty(0)).size < size:
            self._own.room = np.empty(size)
        room: Floats = self._own.room
        return room[:size].reshape(len(self._settings.features), rows)

    def _words(self) -> SecretWords:
        if not hasattr(self._own, "words"):
            self._own.words = SecretWords()
        words: SecretWords = self._own.words
        return words


def pseudonyms(ids: pa.StringArray, key: bytes) -> pa.StringArray:
    """HMAC-SHA-256 of every id, in hexadecimal digits."""
    return pa.array([hmac.digest(key, name.encode(), "sha256").hex() for name in ids.to_pylist()])


def _privatized(
    source: Batches,
    settings: Settings,
    terms: Terms,
    work: _Work,
    put: Callable[[_Private], tuple[int, pa.Table]],
) -> Iterator[tuple[int, pa.Table]]:
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


def _numbered(source: Batches, settings: Settings) -> Iterator[tuple[int, pa.RecordBatch]]:
    offset = 0
    columns = [settings.id, *settings.features, *settings.keep]
    types = dict.fromkeys(settings.features, pa.float64())
    for batch in source.batches(columns, types, batch_rows(len(settings.features))):
        if batch.num_rows:
            yield offset, batch
            offset += batch.num_rows

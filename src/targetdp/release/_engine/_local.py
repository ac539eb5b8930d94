"""The engine for one machine: batches in, noise on threads, ranges of ids on disk, sorted rows out.

Memory does not grow with the number of rows: at most a few batches are held at once.
"""

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
from targetdp.release._engine._base import (
    Done,
    Outcome,
    RowWriter,
    Target,
    check_ids,
    named,
    output_schema,
    table_of,
    write_in_order,
)
from targetdp.release._engine._inspection import (
    Batches,
    group_rows,
    inspect,
    nobody_left,
    numbered,
    refuse_constants,
)
from targetdp.release._holder import Holder, Prepared
from targetdp.release._keys import pseudonyms
from targetdp.release._settings import Settings
from targetdp.table import (
    Sink,
    Source,
    Spill,
    Tally,
    columns_in_order,
    ids_of,
    kept_column,
    numbers_of,
    overlapped,
    refuse_formulas,
    regrouped,
)


@named("local")
def run(table: Source, target: Target, holder: Holder, progress: Progress) -> Done:
    """The engine: from a table of files to a written one, not yet published."""
    settings = holder.settings
    kept = table.types(settings.keep)
    schema = output_schema(settings, kept)
    if target.kind == "csv":
        _must_fit_in_text(kept)
        refuse_formulas(schema.names)
    people = holder.people(table)
    prepared = holder.prepare(inspect(people, settings, holder.bounds, progress))
    with Sink(target.table, target.kind, schema, ids=settings.id, parts=target.parts) as sink:
        outcome = privatize_table(people, sink, target.folder, holder, prepared, kept, progress)
        return Done(outcome, prepared, sink.finish())


def _must_fit_in_text(kept: dict[str, pa.DataType]) -> None:
    for name, kind in kept.items():
        if pa.types.is_nested(kind):
            raise ValueError(f"kept column {name!r} has type {kind}, which a CSV cannot hold: use Parquet")


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


def privatize_table(
    source: Batches,
    output: RowWriter,
    folder: Path | None,
    holder: Holder,
    prepared: Prepared,
    kept: dict[str, pa.DataType],
    progress: Progress,
) -> Outcome:
    """Privatize all rows and write them; refuse, after looking at all rows, what must not be released."""
    settings, inspection = holder.settings, prepared.inspection
    work = _BatchWork(settings, prepared, kept, holder.pseudonym_key)
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
        for rows, table in _privatized(source, work, put):
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


class _BatchWork:
    """What a thread does to a batch. Each thread draws words of its own."""

    def __init__(
        self,
        settings: Settings,
        prepared: Prepared,
        kept: dict[str, pa.DataType],
        pseudonym_key: bytes | None,
    ) -> None:
        self.settings, self.terms = settings, prepared.terms
        self._scales, self._kept, self._key = prepared.scales, kept, pseudonym_key
        self._constants = settings.constants()
        self._own = _ThreadsOwn()
        self._lock = threading.Lock()
        self._tally = Tally()
        self._lowest: Floats | None = None
        self._highest: Floats | None = None
        self._constants_are_possible = True
        self.rows = self.clipped = 0

    def __call__(self, item: tuple[int, pa.RecordBatch]) -> _Private:
        """Ids, noisy rows or scores (rows of the unit ball for k-anonymity, which follows), kept columns."""
        offset, batch = item
        settings, tally = self.settings, Tally()
        ids = ids_of(batch.column(settings.id), settings.id, tally, offset)
        block = numbers_of(
            batch, settings.features, self._constants, tally, offset, self._room(batch.num_rows)
        )
        extremes = self._constants_are_possible and (block.min(axis=1), block.max(axis=1))
        clipped, rows = 0, np.zeros((len(ids), len(settings.released)))
        if not tally.counts and self.terms.law is not None:
            rows, clipped = noisy_rows(block, self._scales, self.terms.law, self._own.words)
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
        self._tally.raise_if_any(rows_are_numbered=not self.settings.leaves_sample_out)
        if self.rows == 0 or self._lowest is None or self._highest is None:
            raise nobody_left(self.settings)
        if self.rows != expected:
            raise ValueError(
                f"the table had {expected:,} rows at first and {self.rows:,} then: it changed meanwhile; "
                "try again when nobody writes to it"
            )
        refuse_constants(self.settings.features, self._lowest, self._highest)

    def _widen(self, lowest: Floats, highest: Floats) -> None:
        """Note a batch's extremes; once every column has two different values, more tell nothing new."""
        self._lowest = lowest if self._lowest is None else np.minimum(self._lowest, lowest)
        self._highest = highest if self._highest is None else np.maximum(self._highest, highest)
        self._constants_are_possible = not bool((self._lowest < self._highest).all())

    def _room(self, rows: int) -> Floats:
        """Memory for a batch, used again by each thread: new pages each time cost as much as the sums."""
        size = rows * len(self.settings.features)
        if self._own.room.size < size:
            self._own.room = np.empty(size)
        return self._own.room[:size].reshape(len(self.settings.features), rows)


class _ThreadsOwn(threading.local):
    """What each thread has for itself: words to draw noise from, and room for a batch."""

    def __init__(self) -> None:
        self.words = SecretWords()
        self.room: Floats = np.empty(0)


def _privatized(
    source: Batches, work: _BatchWork, put: Callable[[_Private], tuple[int, pa.Table]]
) -> Iterator[tuple[int, pa.Table]]:
    settings = work.settings
    columns = [settings.id, *settings.features, *settings.keep]
    batches = numbered(source, columns, settings.features)
    if work.terms.mondrian is None:
        yield from overlapped(lambda item: put(work(item)), batches)
        return
    # k-anonymity looks at all rows at once: the one mechanism whose memory grows with the table.
    parts = list(overlapped(work, batches))
    if not parts or work.found_problems:
        return
    rows = work.terms.mondrian.privatize(np.concatenate([part.rows for part in parts]))
    start = 0
    for part in parts:
        end = start + len(part.ids)
        yield put(_Private(part.ids, rows[start:end], part.others))
        start = end

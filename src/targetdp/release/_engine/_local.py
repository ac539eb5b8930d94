"""The engine for one machine: batches in, noise on threads, ranges of ids on disk, sorted rows out.

Memory does not grow with the number of rows, but for 8 bytes each: at most a few batches are held at once.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Integers, NotYetError, Progress
from targetdp.release._decision._bits import Bits, batches_of, marks_of
from targetdp.release._engine._base import (
    Inspection,
    ReleaseJob,
    RowWriter,
    SortedRange,
    Wrote,
    decide_all,
    fingerprint_of,
    hash_splitters,
    joined,
    named,
    ranges_of,
    write_in_order,
)
from targetdp.release._engine._rows import (
    Looked,
    count_from,
    look_at,
    look_at_types,
    noisy_rows,
    nothing_seen,
    people_of,
)
from targetdp.release._prepare import Recipe
from targetdp.table import (
    SortedIds,
    Source,
    Spill,
    Splitters,
    Tally,
    batch_rows,
    kept_column,
    overlapped,
    plain_type,
    words_as_gaps,
)

_HEAD = 2_000
"""Rows of each file by which the data holder is told what a score looks at."""


class Batches(Protocol):
    """A table that can be read from the start, more than once."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of its columns."""

    def count(self) -> int | None:
        """How many rows there are, if that is known without reading."""

    def types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """The types of columns that are passed on."""

    def batches(
        self, columns: list[str], types: dict[str, pa.DataType], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The named columns, at most so many rows at a time."""


@dataclass(frozen=True)
class TableInMemory:
    """A table in memory that can be read in batches."""

    table: pa.Table

    @property
    def columns(self) -> Sequence[str]:
        """The names of its columns."""
        return tuple(self.table.column_names)

    def count(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)

    def types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """The types of columns that are passed on."""
        return {name: plain_type(self.table.schema.field(name).type) for name in names}

    def batches(
        self,
        columns: list[str],
        types: dict[str, pa.DataType],  # noqa: ARG002 (a table knows its own types)
        rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """The named columns, at most so many rows at a time."""
        yield from self.table.select(columns).to_batches(max_chunksize=rows)


@dataclass
class LocalEngine:
    """A table of files, or one in memory, on the threads of this machine."""

    source: Batches
    place: str
    read_as = ""
    doubt = ""
    name = "local"
    numbered = True
    can_repeat = True

    def __post_init__(self) -> None:
        self.columns = self.source.columns
        self._state = self._now()
        self._own = _ThreadsOwn()

    def types(self, names: Sequence[str]) -> Mapping[str, pa.DataType]:
        """See `Engine`."""
        return self.source.types(list(names))

    def check_unchanged(self) -> None:
        """See `Engine`."""
        if self._now() != self._state:
            raise NotYetError(f"{self.place} changed while it was read: try again when nobody writes to it")

    def fingerprint(self, key: bytes) -> str | None:
        """See `Engine`."""
        return fingerprint_of(self.source, key) if isinstance(self.source, Source) else None

    def _now(self) -> Any:
        return self.source.state() if isinstance(self.source, Source) else None

    def inspect(self, recipe: Recipe, progress: Progress) -> Inspection:
        """See `Engine`."""
        progress.phase("looking", self.source.count())
        splitters, hashed = Splitters(), recipe.names.pseudonym_key is not None
        public = self.types(recipe.public)

        def look(item: tuple[int, pa.RecordBatch]) -> tuple[Looked, pa.StringArray]:
            for name, kind in public.items():  # what cannot be passed on is found before anything is charged
                kept_column(item[1].column(name), name, kind)
            if whose:
                return look_at(item[1], recipe, item[0], whose=True)
            room = self._room(item[1].num_rows, len(recipe.features))
            return look_at(item[1], recipe, item[0], None if len(recipe.left_out) else room)

        total, columns = nothing_seen(recipe), recipe.columns
        # Parquet tells types without values: where columns are taken as they are, few are read here.
        whose = recipe.as_they_are and isinstance(self.source, Source) and self.source.format == "parquet"
        if whose and isinstance(self.source, Source):
            columns = [recipe.id, *recipe.public]
            for one in self.source.one_by_one():
                for batch in islice(one.batches(recipe.columns, recipe.types, _HEAD), 1):
                    spelled = words_as_gaps(batch, self._spelled(recipe))
                    total += look_at_types(people_of(spelled, recipe)[0], recipe)
        for found, ids in overlapped(look, self._batches(recipe, columns)):
            total += found
            if not hashed and len(ids):
                splitters.add(ids)
            progress.advance(found.rows + found.left_out)
        ranges = ranges_of(total.rows, len(recipe.released))
        return total.inspection(hash_splitters(ranges) if hashed else splitters.cut(ranges))

    def count(self, recipe: Recipe, centers: Floats, progress: Progress) -> Integers:
        """See `Engine`."""
        progress.phase("measuring columns", self.source.count())

        def measure(item: tuple[int, pa.RecordBatch]) -> tuple[int, Integers | None]:
            room = None if len(recipe.left_out) else self._room(item[1].num_rows, len(recipe.estimated))
            return item[1].num_rows, count_from(centers, item[1], recipe, room)

        total = None
        for rows, counts in overlapped(
            measure, self._batches(recipe, [recipe.id, *recipe.encoding.sources(recipe.estimated_names)])
        ):
            total = joined(total, counts)
            progress.advance(rows)
        return np.empty((len(centers), 0), dtype=np.int64) if total is None else np.asarray(total)

    def write(self, job: ReleaseJob, output: RowWriter, schema: pa.Schema, progress: Progress) -> Wrote:
        """See `Engine`."""
        recipe, inspection = job.recipe, job.inspection
        public = {name: schema.field(name).type for name in recipe.public}
        decided = recipe.scoring is not None
        spill = Spill(job.folder, inspection.splitters, 1 if decided else len(recipe.released), public)
        try:
            run = self._decide if decided else self._add_noise
            done, sorted_range = run(job, spill, public, progress)
            write_in_order(sorted_range, spill.buckets, inspection.rows, schema, output, progress)
        finally:
            spill.close()
        return done

    def _add_noise(
        self, job: ReleaseJob, spill: Spill, public: Mapping[str, pa.DataType], progress: Progress
    ) -> tuple[Wrote, SortedRange]:
        """Spill private rows."""
        recipe, (law, scales) = job.recipe, job.noise

        def put(item: tuple[int, pa.RecordBatch]) -> tuple[int, int]:
            offset, batch = item
            batch, ids = people_of(batch, recipe)
            if not len(ids):
                return 0, 0
            room = self._room(len(ids), len(recipe.features))
            block = recipe.encoding.numbers(batch, recipe.features, Tally(), 0, room)
            words = job.draws.for_batch(offset, ids, block)
            rows, clipped = noisy_rows(block, scales, law, words)
            spill.add(recipe.names.published(ids), rows, _kept(batch, public))
            return len(ids), clipped

        progress.phase("adding noise", job.inspection.rows)
        seen = clipped = 0
        for rows, shortened in overlapped(put, self._batches(recipe, recipe.columns)):
            seen, clipped = seen + rows, clipped + shortened
            progress.advance(rows)
        self._must_have(job.inspection.rows, seen)
        return Wrote(clipped), spill.sorted_bucket

    def _decide(
        self, job: ReleaseJob, spill: Spill, public: Mapping[str, pa.DataType], progress: Progress
    ) -> tuple[Wrote, SortedRange]:
        """Score everybody, then draw all bits; of a person only her id and her place are spilled."""
        recipe, (_, scoring) = job.recipe, job.decisions
        people, m = job.inspection.rows, len(recipe.released)
        places = people + job.inspection.left_out
        batches, scores = np.empty(places, np.uint8), np.empty((places, m), np.int64)
        tags, there = np.empty(places, np.uint64), np.zeros(places, np.bool_)

        def put(item: tuple[int, pa.RecordBatch]) -> tuple[int, int]:
            offset, batch = item
            batch, ids = people_of(batch, recipe)
            if not len(ids):
                return 0, 0
            own = slice(offset, offset + len(ids))
            self._must_have(places, max(places, own.stop))
            steps, clipped = job.steps(offset, batch, self._room(len(ids), len(scoring.numbers)))
            published = recipe.names.published(ids)
            tags[own], moved = marks_of(published, job.release)
            batches[own] = batches_of(tags[own], people)
            scores[own], there[own] = scoring.moved_apart(steps, moved), True
            place = np.arange(own.start, own.stop, dtype=np.float64)
            spill.add(published, place[:, None], _kept(batch, public))
            return len(ids), clipped

        progress.phase("scoring", people)
        seen = clipped = 0
        for rows, shortened in overlapped(put, self._batches(recipe, recipe.columns)):
            seen, clipped = seen + rows, clipped + shortened
            progress.advance(rows)
        self._must_have(people, seen)
        if seen < places:
            batches, scores, tags = batches[there], scores[there], tags[there]
        done = decide_all(job, batches, scores, tags)
        answers = done.bits
        if seen < places:
            answers = np.empty((places, m), dtype=np.bool_)
            answers[there] = done.bits

        def sorted_range(number: int) -> tuple[pa.StringArray, Bits, dict[str, pa.Array], SortedIds]:
            ids, (place,), others, found = spill.sorted_bucket(number)
            return ids, answers[place.astype(np.int64)].T, others, found

        return Wrote(clipped, done.cuts), sorted_range

    def _must_have(self, before: int, now: int) -> None:
        if now != before:
            raise NotYetError(
                f"{self.place} had {before:,} rows at first and {now:,} then: it changed meanwhile; try "
                "again when nobody writes to it"
            )

    def _batches(self, recipe: Recipe, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches that have rows, each behind the number of rows before it."""
        offset = 0
        numbers = self._spelled(recipe)
        for batch in self.source.batches(columns, recipe.types, batch_rows(len(recipe.features))):
            if batch.num_rows:
                yield offset, words_as_gaps(batch, numbers) if numbers else batch
                offset += batch.num_rows

    def _spelled(self, recipe: Recipe) -> list[str]:
        """Columns of which a word is that person's gap.

        Where nothing is refused for what stands in a row, nor is one word in a column whose cells alone tell
        what they are: of a CSV, or of the folders that a file lies in.
        """
        if not (recipe.as_they_are and isinstance(self.source, Source)):
            return []
        numbers = (name for name, kind in recipe.types.items() if kind == pa.float64())
        return [name for name in numbers if name in self.source.spelled]

    def _room(self, rows: int, features: int) -> Floats:
        """Memory for a batch, used again by each thread: new pages each time cost as much as the sums."""
        size = rows * features
        if self._own.room.size < size:
            self._own.room = np.empty(size)
        return self._own.room[:size].reshape(features, rows)


def _kept(batch: pa.RecordBatch, public: Mapping[str, pa.DataType]) -> dict[str, pa.Array]:
    """The columns that are passed on."""
    return {name: kept_column(batch.column(name), name, kind) for name, kind in public.items()}


@named("local")
class LocalFiles(LocalEngine):
    """The engine for a table of files."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, f"input {source}")
        self.read_as, self.doubt = source.described, source.doubt


class _ThreadsOwn(threading.local):
    """What each thread has for itself: room for a batch."""

    def __init__(self) -> None:
        self.room: Floats = np.empty(0)

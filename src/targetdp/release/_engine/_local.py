"""The engine for one machine: batches in, noise on threads, ranges of ids on disk, sorted rows out.

Memory does not grow with the number of rows, but for 8 bytes each: at most a few batches are held at once.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Integers, Progress, Words, kernel
from targetdp.mechanisms import NoiseLaw
from targetdp.noise import WordSource
from targetdp.normalization import (
    ColumnScales,
    count_clipped,
    count_distances,
    count_values,
    rows_in_ball,
    scores_in_ball,
)
from targetdp.release._engine._base import (
    Inspection,
    NoiseJob,
    RowWriter,
    hash_splitters,
    joined,
    named,
    ranges_of,
    write_in_order,
)
from targetdp.release._ids import is_among, loose_tags
from targetdp.release._look._made_of import Spread
from targetdp.release._prepare import Recipe
from targetdp.table import (
    Source,
    Spill,
    Splitters,
    Tally,
    batch_rows,
    formulas_in,
    ids_of,
    kept_column,
    numbers_of,
    overlapped,
    plain_type,
)


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


@dataclass
class Looked:
    """What a look at some rows found; ``+`` joins two parts of a table."""

    rows: int
    people: list[Words]
    tally: Tally
    lowest: Floats
    highest: Floats
    clipped: int | None
    counts: Integers | None
    left_out: int = 0
    formulas: int = 0
    spread: Spread | None = None
    in_scales: int = 0

    def __add__(self, other: "Looked") -> "Looked":
        tally = Tally()
        tally.merge(self.tally)
        tally.merge(other.tally)
        return Looked(
            self.rows + other.rows, self.people + other.people, tally,
            np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest),
            joined(self.clipped, other.clipped), joined(self.counts, other.counts),
            self.left_out + other.left_out, self.formulas + other.formulas,
            joined(self.spread, other.spread), self.in_scales + other.in_scales,
        )  # fmt: skip

    def inspection(self, splitters: pa.StringArray) -> Inspection:
        """All of it, once every row was seen."""
        people = in_order(self.people)
        different = len(people) - int(np.count_nonzero(people[1:] == people[:-1]))
        return Inspection(
            self.rows, people, len(people) - different, splitters, self.tally, self.lowest, self.highest,
            self.clipped, self.counts, self.left_out, self.spread, self.in_scales, self.formulas,
        )  # fmt: skip


def in_order(people: list[Words]) -> Words:
    """The tags of several parts of a table, sorted; the parts go as it grows, so that none is held twice."""
    found, stop = np.empty(sum(map(len, people)), dtype=np.uint64), 0
    people.reverse()
    while people:
        part = people.pop()
        found[stop : stop + len(part)] = part
        stop += len(part)
    found.sort()
    return found


def nothing_seen(recipe: Recipe) -> Looked:
    """What a look at no rows finds."""
    d = len(recipe.features)
    clipped = None if recipe.scales is None else 0
    return Looked(0, [], Tally(), np.full(d, np.inf), np.full(d, -np.inf), clipped, None)


def look_at(
    batch: pa.RecordBatch, recipe: Recipe, offset: int, room: Floats | None = None
) -> tuple[Looked, pa.StringArray]:
    """Look at the rows of a batch: what was found, and the ids of those who will be released."""
    tally = Tally()
    ids = recipe.names.ids(batch, tally, offset)
    tags = recipe.names.tags(ids)
    batch, ids, tags, left_out = _without(batch, ids, tags, recipe)
    block = numbers_of(batch, recipe.features, recipe.gaps, tally, offset, room)
    found = nothing_seen(recipe)
    found.rows, found.people, found.tally, found.left_out = len(ids), [tags], tally, left_out
    if len(ids):
        if len(recipe.scaled_from):
            found.in_scales = _known_to_scales(batch, ids, recipe)
        found.formulas = 0 if recipe.names.pseudonym_key is not None else formulas_in(ids)
        _two_values(block, found.lowest, found.highest)
        if recipe.scales is not None and not tally.counts:
            found.clipped = count_clipped(block, recipe.scales)
            found.spread = Spread.of(block, recipe.scales, whole=recipe.released != recipe.features)
        if recipe.estimated and not tally.counts:
            found.counts = count_values(block[list(recipe.estimated)])
    return found, ids


def _known_to_scales(batch: pa.RecordBatch, ids: pa.StringArray, recipe: Recipe) -> int:
    """How many people the declared scales were learned from: by their ids as they are, and as spelled."""
    as_they_are = ids_of(batch.column(recipe.id), recipe.id, Tally(), 0)
    found = [
        is_among(loose_tags(texts, recipe.names.tag_key), recipe.scaled_from) for texts in (ids, as_they_are)
    ]
    return int(np.logical_or(*found).sum())


@kernel
def _two_values(columns: Floats, lower: Floats, higher: Floats) -> None:
    """Two values of each column: different ones if there are any. It stops at the first difference."""
    for j in range(len(columns)):
        first = other = columns[j, 0]
        for value in columns[j]:
            if value != first:
                other = value
                break
        lower[j], higher[j] = min(first, other), max(first, other)


def _without(
    batch: pa.RecordBatch, ids: pa.StringArray, tags: Words, recipe: Recipe
) -> tuple[pa.RecordBatch, pa.StringArray, Words, int]:
    """A batch without the people who are left out: nothing of their rows is looked at."""
    gone = is_among(tags, recipe.left_out)
    if not gone.any():
        return batch, ids, tags, 0
    stay = pa.array(~gone)
    return batch.filter(stay), ids.filter(stay), tags[~gone], int(gone.sum())


def people_of(batch: pa.RecordBatch, recipe: Recipe) -> tuple[pa.RecordBatch, pa.StringArray]:
    """The rows of a batch that are released, and their ids; all of it was looked at before."""
    ids = recipe.names.ids_again(batch)
    if not len(recipe.left_out):
        return batch, ids
    return _without(batch, ids, recipe.names.tags(ids), recipe)[:2]


def count_from(
    centers: Floats, batch: pa.RecordBatch, recipe: Recipe, room: Floats | None = None
) -> Integers | None:
    """How far the people of a batch are from the centers of the columns whose scales are estimated."""
    batch, ids = people_of(batch, recipe)
    if not len(ids):
        return None
    tally = Tally()
    block = numbers_of(batch, recipe.estimated_names, recipe.gaps, tally, 0, room)
    if tally.counts:  # all of it was looked at before
        raise ValueError("the table changed while it was read: try again when nobody writes to it")
    return count_distances(block, centers)


@dataclass
class LocalEngine:
    """A table of files, or one in memory, on the threads of this machine."""

    source: Batches
    place: str
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
            raise ValueError(f"{self.place} changed while it was read: try again when nobody writes to it")

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
            room = self._room(item[1].num_rows, len(recipe.features))
            return look_at(item[1], recipe, item[0], None if len(recipe.left_out) else room)

        total = nothing_seen(recipe)
        for found, ids in overlapped(look, self._batches(recipe, recipe.columns)):
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
        for rows, counts in overlapped(measure, self._batches(recipe, [recipe.id, *recipe.estimated_names])):
            total = joined(total, counts)
            progress.advance(rows)
        return np.empty((len(centers), 0), dtype=np.int64) if total is None else np.asarray(total)

    def write(self, job: NoiseJob, output: RowWriter, schema: pa.Schema, progress: Progress) -> int:
        """See `Engine`."""
        recipe, inspection = job.recipe, job.inspection
        public = {name: schema.field(name).type for name in recipe.public}
        spill = Spill(job.folder, inspection.splitters, len(recipe.released), public)

        def put(item: tuple[int, pa.RecordBatch]) -> tuple[int, int]:
            offset, batch = item
            batch, ids = people_of(batch, recipe)
            if not len(ids):
                return 0, 0
            room = self._room(len(ids), len(recipe.features))
            block = numbers_of(batch, recipe.features, recipe.gaps, Tally(), 0, room)
            words = job.draws.for_batch(offset, ids, block)
            rows, clipped = noisy_rows(block, job.scales, job.law, words)
            others = {name: kept_column(batch.column(name), name, kind) for name, kind in public.items()}
            spill.add(recipe.names.published(ids), rows, others)
            return len(ids), clipped

        try:
            progress.phase("adding noise", inspection.rows)
            seen = clipped = 0
            for rows, shortened in overlapped(put, self._batches(recipe, recipe.columns)):
                seen, clipped = seen + rows, clipped + shortened
                progress.advance(rows)
            if seen != inspection.rows:
                raise ValueError(
                    f"{self.place} had {inspection.rows:,} rows at first and {seen:,} then: it changed "
                    "meanwhile; try again when nobody writes to it"
                )
            write_in_order(spill.sorted_bucket, spill.buckets, seen, schema, output, progress)
        finally:
            spill.close()
        return clipped

    def _batches(self, recipe: Recipe, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches that have rows, each behind the number of rows before it."""
        offset = 0
        types = dict.fromkeys(recipe.features, pa.float64())
        for batch in self.source.batches(columns, types, batch_rows(len(recipe.features))):
            if batch.num_rows:
                yield offset, batch
                offset += batch.num_rows

    def _room(self, rows: int, features: int) -> Floats:
        """Memory for a batch, used again by each thread: new pages each time cost as much as the sums."""
        size = rows * features
        if self._own.room.size < size:
            self._own.room = np.empty(size)
        return self._own.room[:size].reshape(features, rows)


@named("local")
class LocalFiles(LocalEngine):
    """The engine for a table of files."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, f"input {source.path}")


class _ThreadsOwn(threading.local):
    """What each thread has for itself: room for a batch."""

    def __init__(self) -> None:
        self.room: Floats = np.empty(0)

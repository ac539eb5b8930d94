"""What Spark's workers do to their part of a table. Nothing here knows Spark: batches in, a report out.

Spark may run a task again, twice at once, or over rows in another order. So noise belongs to the row: its
words depend on a secret of the job and on the row's id, and on nothing else. And a task hands its rows over
in a file of its own, which counts only if the driver hears of it: whatever other attempts wrote is never
looked at.
"""

import pickle
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Integers, Words
from targetdp.mechanisms import NoiseLaw
from targetdp.noise import RowWords
from targetdp.normalization import ColumnScales
from targetdp.release._engine._base import joined
from targetdp.release._engine._rows import (
    Looked,
    count_from,
    in_order,
    look_at,
    noisy_rows,
    nothing_seen,
    people_of,
)
from targetdp.release._ids import tags_of
from targetdp.release._prepare import Recipe
from targetdp.table import (
    SortedIds,
    Tally,
    batch_rows,
    buckets_of,
    columns_in_order,
    kept_column,
    numbers_of,
    sort_ids,
)

REPORT = "report"
"""The one column that a task hands to Spark: a packed `Report`, one for each partition."""


@dataclass(frozen=True)
class Secret:
    """What turns ids into noise: two keys of one reservation, thrown away with it.

    Guarantees: the same words for the same id, whoever asks and how often; words of different ids are
    independent as long as AES-256 holds and no other id has the same 96-bit tag, which for one person among
    n happens with probability n·2⁻⁹⁶.
    Does not guarantee: anything if two rows share an id (whoever publishes must prove them unique), or if
    the same secret serves two releases.
    Edges: it is not shown when printed; it can be pickled, since that is how it reaches the workers.
    """

    _tags: bytes = field(repr=False)
    _noise: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self._tags) != 32 or len(self._noise) != 32:
            raise ValueError("a secret is two keys of 32 bytes")

    def words(self, ids: pa.StringArray) -> RowWords:
        """The words of the rows with these ids."""
        return RowWords(self._noise, tags_of(ids, self._tags)[:, : RowWords.TAG_BYTES].tobytes())


@dataclass
class Report:
    """What a task found in its rows, or did to them; ``+`` joins two parts of a table.

    ``pieces`` names each file, and for each of its batches the range of ids it belongs to.
    """

    looked: Looked | None = None
    counts: Integers | None = None
    people: list[Words] = field(default_factory=list)
    """Tags of whose rows got noise, sorted by each task."""
    clipped: int = 0
    pieces: dict[str, list[int]] = field(default_factory=dict)

    def __add__(self, other: "Report") -> "Report":
        return Report(
            joined(self.looked, other.looked), joined(self.counts, other.counts),
            self.people + other.people, self.clipped + other.clipped, self.pieces | other.pieces,
        )  # fmt: skip

    def packed(self) -> pa.RecordBatch:
        """As the one row that a task hands to Spark; most cells of its counts are empty."""
        return pa.RecordBatch.from_pydict(
            {REPORT: pa.array([zlib.compress(pickle.dumps(self), 1)], pa.binary())}
        )

    @classmethod
    def joined(cls, packed: Iterable[bytes]) -> "Report":
        """The report on all parts of a table, each as its task packed it."""
        total = cls()
        for one in packed:  # from our own tasks, over the channel by which Spark moves pickles anyway
            total += pickle.loads(zlib.decompress(one))  # noqa: S301
        return total


@dataclass(frozen=True)
class LookTask:
    """The task that looks at all rows: who they are, and whatever is wrong with them."""

    recipe: Recipe

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One report for all rows of a partition."""
        total, recipe = nothing_seen(self.recipe), self.recipe
        for batch in _gathered(batches, recipe.columns, batch_rows(len(recipe.features))):
            total += look_at(batch, recipe, 0)[0]
        total.people = [in_order(total.people)]
        yield Report(total).packed()


@dataclass(frozen=True)
class CountTask:
    """The task that counts how far people are from the centers that were drawn."""

    recipe: Recipe
    centers: Floats

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One report for all rows of a partition."""
        total, recipe = Report(), self.recipe
        for batch in _gathered(batches, recipe.columns, batch_rows(len(recipe.features))):
            total += Report(counts=count_from(self.centers, batch, recipe))
        yield total.packed()


@dataclass(frozen=True)
class Privatize:
    """The task that adds noise and writes private rows, by ranges of ids, to a file in ``folder``."""

    recipe: Recipe
    scales: ColumnScales
    law: NoiseLaw
    splitters: pa.StringArray
    folder: Path
    types: dict[str, pa.DataType]
    secret: Secret = field(repr=False)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One report for all rows of a partition."""
        total, recipe = Report(), self.recipe
        # No two attempts share a name, so none can spoil what another has handed over.
        with _Pieces(self.folder / f"{uuid.uuid4().hex}.arrow") as pieces:
            for batch in _gathered(batches, recipe.columns, batch_rows(len(recipe.features))):
                total += self._add(batch, pieces)
        if pieces.ranges:
            total.pieces = {pieces.path.name: pieces.ranges}
        total.people = [in_order(total.people)]
        yield total.packed()

    def _add(self, batch: pa.RecordBatch, pieces: "_Pieces") -> Report:
        recipe, tally = self.recipe, Tally()
        batch, ids = people_of(batch, recipe)
        if not len(ids):
            return Report()
        block = numbers_of(batch, recipe.features, recipe.gaps, tally, 0)
        if tally.counts:  # what is computed again may differ from what was looked at
            raise ValueError("the table changed while it was read: try again, or persist the frame")
        rows, clipped = noisy_rows(block, self.scales, self.law, self.secret.words(ids))
        published = recipe.names.published(ids)
        others = {
            f"other {name}": kept_column(batch.column(name), name, kind) for name, kind in self.types.items()
        }
        pieces.write(published, rows, others, buckets_of(published, self.splitters))
        return Report(people=[recipe.names.tags(ids)], clipped=clipped)


class _Pieces:
    """An Arrow file whose every batch belongs to one range of ids. A file that is not finished goes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ranges: list[int] = []
        self._writer: pa.RecordBatchFileWriter | None = None

    def __enter__(self) -> "_Pieces":
        return self

    def write(self, ids: pa.StringArray, rows: Floats, others: dict[str, pa.Array], ranges: Any) -> None:
        """Append rows, those of one range after those of another."""
        order = np.argsort(ranges, kind="stable")
        where, values = pa.array(order), pa.array(rows.take(order, axis=0).ravel())
        batch = pa.RecordBatch.from_pydict(
            {"id": ids.take(where), "row": pa.FixedSizeListArray.from_arrays(values, rows.shape[1])}
            | {name: other.take(where) for name, other in others.items()}
        )
        if self._writer is None:
            self._writer = pa.ipc.new_file(self.path, batch.schema)
        ends = np.cumsum(np.bincount(ranges)).tolist()
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if end > start:
                self._writer.write_batch(batch.slice(start, end - start))
                self.ranges.append(number)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with ExitStack() as last:
            if kind is not None:
                last.callback(self.path.unlink, missing_ok=True)
            if self._writer is not None:
                self._writer.close()


@dataclass(frozen=True)
class Gathered:
    """The private rows that all tasks wrote, one range of ids after the other."""

    folder: Path
    pieces: dict[str, list[int]]

    def sorted_range(self, number: int) -> tuple[pa.StringArray, Floats, dict[str, pa.Array], SortedIds]:
        """Ids, values column by column and other columns of one range, sorted by id."""
        batches = []
        for name, ranges in self.pieces.items():
            places = [place for place, of in enumerate(ranges) if of == number]
            if places:
                with self._open(name) as reader:
                    batches += [reader.get_batch(place) for place in places]
        if not batches:
            nothing = SortedIds(np.empty(0, dtype=np.int64), 0, None)
            return pa.array([], pa.string()), np.empty((0, 0)), {}, nothing
        names = batches[0].schema.names[2:]
        ids, rows, *others = map(pa.concat_arrays, zip(*(b.columns for b in batches), strict=True))
        done = sort_ids(ids)
        values = np.asarray(rows.flatten()).reshape(len(ids), -1)
        where = pa.array(done.order)
        columns = columns_in_order(values, done.order)
        kept = {name: other.take(where) for name, other in zip(names, others, strict=True)}
        return ids.take(where), columns, kept, done

    def _open(self, name: str) -> pa.RecordBatchFileReader:
        try:
            return pa.ipc.open_file(pa.OSFile(str(self.folder / name)))
        except FileNotFoundError as error:
            raise ValueError(
                f"a worker wrote to {self.folder}, and the driver finds nothing there: the output's folder "
                "must be on a file system that the driver and all workers share"
            ) from error


def _gathered(batches: Iterator[pa.RecordBatch], names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Spark's small batches as larger ones, of about so many rows, their columns under these names."""

    def together() -> Iterator[pa.RecordBatch]:
        yield from pa.Table.from_batches(held).rename_columns(list(names)).combine_chunks().to_batches()

    held: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(one.num_rows for one in held) >= rows:
            yield from together()
            held = []
    if held:
        yield from together()

"""What Spark's workers do to their part of a table. Nothing here knows Spark: batches in, a report out.

Spark may run a task again, twice at once, or over rows in another order. So noise belongs to the row: its
words depend on a secret of the job and on the row's id, and on nothing else. Decisions are not drawn here at
all: a task only scores people, and the driver draws. And a task hands its rows over in a file of its own,
which counts only if the driver hears of it: whatever other attempts wrote is never looked at.
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
from targetdp.release._decision._bits import marks_of
from targetdp.release._decision._scoring import Scoring
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
    sort_ids,
)

REPORT = "report"
"""The one column that a task hands to Spark: a packed `Report`, one for each partition."""
_ROW = "row"
"""Where files of private rows have the values."""


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
    """Tags of whose rows got noise, or a score, sorted by each task."""
    clipped: int = 0
    pieces: dict[str, list[int]] = field(default_factory=dict)
    tags: list[Words] = field(default_factory=list)
    """Of those who are decided about: when they are asked."""
    scores: list[Integers] = field(default_factory=list)
    """Theirs, in the same order, a row for each person."""

    def __add__(self, other: "Report") -> "Report":
        return Report(
            joined(self.looked, other.looked), joined(self.counts, other.counts),
            self.people + other.people, self.clipped + other.clipped, self.pieces | other.pieces,
            self.tags + other.tags, self.scores + other.scores,
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
class _WritingTask:
    """A task that writes whose rows it has, by ranges of ids, to a file in ``folder``."""

    recipe: Recipe
    splitters: pa.StringArray
    folder: Path
    types: dict[str, pa.DataType]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One report for all rows of a partition."""
        total, recipe = Report(), self.recipe
        # No two attempts share a name, so none can spoil what another has handed over.
        with _Pieces(self.folder / f"{uuid.uuid4().hex}.arrow") as pieces:
            for batch in _gathered(batches, recipe.columns, batch_rows(len(recipe.features))):
                people, ids = people_of(batch, recipe)
                if len(ids):
                    total += self._add(people, ids, pieces)
        if pieces.ranges:
            total.pieces = {pieces.path.name: pieces.ranges}
        total.people = [in_order(total.people)]
        yield total.packed()

    def _add(self, batch: pa.RecordBatch, ids: pa.StringArray, pieces: "_Pieces") -> Report:
        published = self.recipe.names.published(ids)
        rows, report = self._done_to(batch, ids, published)
        others = {
            f"other {name}": kept_column(batch.column(name), name, kind) for name, kind in self.types.items()
        }
        pieces.write(published, rows, others, buckets_of(published, self.splitters))
        report.people = [self.recipe.names.tags(ids)]
        return report

    def _done_to(
        self, batch: pa.RecordBatch, ids: pa.StringArray, published: pa.StringArray
    ) -> tuple[Floats | None, Report]:
        """What goes to the file of some people beside their published ids, if anything, and a report."""
        raise NotImplementedError


@dataclass(frozen=True)
class Privatize(_WritingTask):
    """The task that adds noise and writes private rows."""

    scales: ColumnScales
    law: NoiseLaw
    secret: Secret = field(repr=False)

    def _done_to(
        self,
        batch: pa.RecordBatch,
        ids: pa.StringArray,
        published: pa.StringArray,  # noqa: ARG002 (noise belongs to the id as it is)
    ) -> tuple[Floats | None, Report]:
        tally = Tally()
        block = self.recipe.encoding.numbers(batch, self.recipe.features, tally, 0)
        if tally.counts:  # what is computed again may differ from what was looked at
            raise ValueError("the table changed while it was read: try again, or persist the frame")
        rows, clipped = noisy_rows(block, self.scales, self.law, self.secret.words(ids))
        return rows, Report(clipped=clipped)


@dataclass(frozen=True)
class ScoreTask(_WritingTask):
    """The task that scores people who are decided about. No score goes to its file: the report has them."""

    scales: ColumnScales | None
    scoring: Scoring
    release: str

    def _done_to(
        self,
        batch: pa.RecordBatch,
        ids: pa.StringArray,  # noqa: ARG002 (tags are of ids that others see)
        published: pa.StringArray,
    ) -> tuple[Floats | None, Report]:
        steps, clipped = self.scoring.steps(batch, self.scales, {})
        tags, moved = marks_of(published, self.release)
        return None, Report(clipped=clipped, tags=[tags], scores=[self.scoring.moved_apart(steps, moved)])


class _Pieces:
    """An Arrow file whose every batch belongs to one range of ids. A file that is not finished goes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ranges: list[int] = []
        self._writer: pa.RecordBatchFileWriter | None = None

    def __enter__(self) -> "_Pieces":
        return self

    def write(
        self, ids: pa.StringArray, rows: Floats | None, others: dict[str, pa.Array], ranges: Any
    ) -> None:
        """Append rows, those of one range after those of another; without values where there are none."""
        order = np.argsort(ranges, kind="stable")
        where = pa.array(order)
        columns = {"id": ids.take(where)} | {name: other.take(where) for name, other in others.items()}
        if rows is not None:
            values = pa.array(rows.take(order, axis=0).ravel())
            columns[_ROW] = pa.FixedSizeListArray.from_arrays(values, rows.shape[1])
        batch = pa.RecordBatch.from_pydict(columns)
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
        columns_of_all = map(pa.concat_arrays, zip(*(b.columns for b in batches), strict=True))
        found = dict(zip(batches[0].schema.names, columns_of_all, strict=True))
        ids, rows = found.pop("id"), found.pop(_ROW, None)
        done = sort_ids(ids)
        columns = np.empty((0, len(ids)))
        if rows is not None:
            columns = columns_in_order(np.asarray(rows.flatten()).reshape(len(ids), -1), done.order)
        where = pa.array(done.order)
        return ids.take(where), columns, {name: other.take(where) for name, other in found.items()}, done

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

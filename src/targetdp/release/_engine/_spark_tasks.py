"""What Spark's workers do to their part of a table. Nothing here knows Spark: batches in, a report out.

Spark may run a task again, twice at once, or over rows in another order. So noise belongs to the row: its
words depend on a secret of the job and on the row's id, and on nothing else. And a task hands its rows over
in a file of its own, which counts only if the driver hears of it: whatever other attempts wrote is never
looked at.
"""

import pickle
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC
from numpy.typing import NDArray

from targetdp._core import Floats, Integers
from targetdp.mechanisms import NoiseLaw
from targetdp.noise import RowWords, fresh_keys
from targetdp.normalization import Bounds, ColumnMoments, ColumnScales
from targetdp.release._engine._inspection import joined
from targetdp.release._engine._local import noisy_rows
from targetdp.release._keys import pseudonyms
from targetdp.release._settings import Settings
from targetdp.table import (
    SortedIds,
    Tally,
    batch_rows,
    buckets_of,
    columns_in_order,
    ids_of,
    numbers_of,
    sort_ids,
)

Bytes = NDArray[np.uint8]

_BLOCK = 16
_LONGEST = 8 * _BLOCK
"""Bytes of an id that is worked on together with others; one giant must not make room for all."""

REPORT = "report"
"""The one column that a task hands to Spark: a pickled `Report`, one for each partition."""


@dataclass(frozen=True)
class Secret:
    """What turns ids into noise: drawn for one job, kept nowhere, thrown away with it.

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
        return RowWords(self._noise, tags_of(ids, self._tags))


def draw_secret() -> Secret:
    """A secret from the operating system's generator."""
    return Secret(*fresh_keys(2))


@dataclass
class Report:
    """What a task found in its rows; ``+`` joins two parts of a table.

    ``pieces`` names each file, and for each of its batches the range of ids it belongs to.
    """

    rows: int = 0
    clipped: int = 0
    tally: Tally = field(default_factory=Tally)
    raw: ColumnMoments | None = None
    """Of the features: a task that adds noise fills in the extremes only."""
    sums: Integers | None = None
    pieces: dict[str, list[int]] = field(default_factory=dict)

    def __add__(self, other: "Report") -> "Report":
        tally = Tally()
        tally.merge(self.tally)
        tally.merge(other.tally)
        return Report(
            self.rows + other.rows, self.clipped + other.clipped, tally,
            joined(self.raw, other.raw), joined(self.sums, other.sums), self.pieces | other.pieces,
        )  # fmt: skip

    def packed(self) -> pa.RecordBatch:
        """As the one row that a task hands to Spark."""
        return pa.RecordBatch.from_pydict({REPORT: pa.array([pickle.dumps(self)], pa.binary())})

    @classmethod
    def joined(cls, packed: Iterable[bytes]) -> "Report":
        """The report on all parts of a table, each as its task packed it."""
        total = cls()
        for one in packed:  # from our own tasks, over the channel by which Spark moves pickles anyway
            total += pickle.loads(one)  # noqa: S301
        return total


@dataclass(frozen=True)
class Measure:
    """The task that sums up what scales need."""

    settings: Settings
    bounds: Bounds | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One report for all rows of a partition."""
        total, features = Report(), self.settings.features
        for batch in _gathered(batches, features, batch_rows(len(features))):
            tally = Tally()
            block = numbers_of(batch, features, self.settings.constants(), tally, 0)
            found = Report(batch.num_rows, tally=tally)
            if not tally.counts:
                found.raw = ColumnMoments.of(block)
                found.sums = None if self.bounds is None else self.bounds.sums(block.T)
            total += found
        yield total.packed()


@dataclass(frozen=True)
class Privatize:
    """The task that adds noise and writes private rows, by ranges of ids, to a file in ``folder``."""

    settings: Settings
    scales: ColumnScales
    law: NoiseLaw
    splitters: pa.StringArray
    folder: Path
    secret: Secret = field(repr=False)
    pseudonym_key: bytes | None = field(repr=False)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One report for all rows of a partition."""
        total, settings = Report(), self.settings
        names = (settings.id, *settings.features, *settings.keep)
        # No two attempts share a name, so none can spoil what another has handed over.
        with _Pieces(self.folder / f"{uuid.uuid4().hex}.arrow") as pieces:
            for batch in _gathered(batches, names, batch_rows(len(settings.features))):
                total += self._add(batch, pieces)
        if pieces.ranges:
            total.pieces = {pieces.path.name: pieces.ranges}
        yield total.packed()

    def _add(self, batch: pa.RecordBatch, pieces: "_Pieces") -> Report:
        settings, tally = self.settings, Tally()
        ids = ids_of(batch.column(settings.id), settings.id, tally, 0)
        block = numbers_of(batch, settings.features, settings.constants(), tally, 0)
        report = Report(batch.num_rows, tally=tally)
        if tally.counts:  # nothing will be published: go on counting only
            return report
        rows, report.clipped = noisy_rows(block, self.scales, self.law, self.secret.words(ids))
        nothing = np.zeros(len(block))
        report.raw = ColumnMoments(len(ids), nothing, nothing, block.min(axis=1), block.max(axis=1))
        if self.pseudonym_key is not None:
            ids = pseudonyms(ids, self.pseudonym_key)
        others = {f"other {name}": batch.column(name) for name in settings.keep}
        pieces.write(ids, rows, others, buckets_of(ids, self.splitters))
        return report


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

    def kept(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """The types of columns that travel with the rows."""
        with self._open(next(iter(self.pieces))) as reader:
            return {name: reader.schema.field(f"other {name}").type for name in names}

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


def tags_of(ids: pa.StringArray, key: bytes) -> bytes:
    """The keyed tags of some ids, none of them null, one after the other: what stands for a row in its noise.

    A tag is AES-256-CMAC (RFC 4493) of the id's bytes, so that what a release rests on stays one assumption:
    AES-256 holds. All ids are worked on at once.

    Guarantees: without the key, tags look like independent random bytes, the same for the same id; two
    different ids share one with probability 2⁻⁹⁶.
    """
    column = ids.cast(pa.binary())
    lengths = np.diff(_starts(column)).astype(np.int64)
    tags = np.empty((len(ids), _BLOCK), dtype=np.uint8)
    short = lengths <= _LONGEST
    if short.any():
        tags[short] = _together(
            column if short.all() else column.filter(pa.array(short)), lengths[short], key
        )
    for place in np.flatnonzero(~short):
        tags[place] = np.frombuffer(_one(column[int(place)].as_py(), key), dtype=np.uint8)
    return tags[:, : RowWords.TAG_BYTES].tobytes()


def _starts(column: pa.BinaryArray) -> NDArray[np.int32]:
    """Where each text begins, and where the last one ends."""
    return np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset :][: len(column) + 1]


def _together(texts: pa.BinaryArray, lengths: Integers, key: bytes) -> Bytes:
    """CMAC of many texts: of all first blocks, then of all second blocks, and so on."""
    blocks = np.maximum(1, -(-lengths // _BLOCK))
    width = _BLOCK * int(blocks.max())
    messages = np.zeros((len(lengths), width), dtype=np.uint8)
    starts = _starts(texts)
    data = np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)
    messages[np.arange(width) < lengths[:, None]] = data[starts[0] : starts[-1]]
    padded = lengths != _BLOCK * blocks
    messages[padded, lengths[padded]] = 0x80
    # One block at a time is what chaining over many messages at once needs.
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
    whole = _doubled(encryptor.update(bytes(_BLOCK)))
    ends = np.stack([np.frombuffer(subkey, dtype=np.uint8) for subkey in (whole, _doubled(whole))])
    by_block = messages.reshape(len(lengths), -1, _BLOCK)
    by_block[np.arange(len(lengths)), blocks - 1] ^= ends[padded.astype(np.int64)]
    state = np.zeros((len(lengths), _BLOCK), dtype=np.uint8)
    for number in range(by_block.shape[1]):
        going = np.flatnonzero(blocks > number)
        mixed = encryptor.update((state[going] ^ by_block[going, number]).tobytes())
        state[going] = np.frombuffer(mixed, dtype=np.uint8).reshape(-1, _BLOCK)
    return state


def _one(text: bytes, key: bytes) -> bytes:
    tag = CMAC(algorithms.AES(key))
    tag.update(text)
    return tag.finalize()


def _doubled(block: bytes) -> bytes:
    """Twice a number of GF(2¹²⁸): how RFC 4493 makes its subkeys."""
    value = int.from_bytes(block, "big") << 1
    return ((value ^ 0x87 if value >> 128 else value) & ((1 << 128) - 1)).to_bytes(_BLOCK, "big")

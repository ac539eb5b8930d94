"""The files of a release against their certificate: hashes, names, shape, and the grid of the noise."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats
from targetdp.mechanisms import DecisionLaw, NoiseLaw, law_of, noise_law_of
from targetdp.release._certificate._certificate import Certificate
from targetdp.release._certificate._parts import File, Output
from targetdp.release._certificate._values import can_be_so_many, has_the_noise, rows_looked_at
from targetdp.release._decision._bits import Bits, Turns, cuts_of, turns_of
from targetdp.release._decision._question import Question
from targetdp.table import Dialect, Written, batch_rows, open_source

# What a check found.


@dataclass(frozen=True)
class Check:
    """One thing that was checked. ``holds`` is None where it could not be."""

    what: str
    holds: bool | None
    detail: str


_HASH = re.compile("[0-9a-f]{32}")
_NOISE = "noise in the values"
_IN_VALUES = {
    True: "rows of the unit ball without any would have been found",
    False: "there is less than is stated, or rows are longer than the unit ball and this noise make them",
    None: "values cannot tell: rows may be as long as this noise, or there are too few of them",
}


def file_checks(output: Path, c: Certificate) -> Iterator[Check]:
    """All checks of files; whatever cannot be read has failed."""
    try:
        if c.output.format == "frame":
            yield _frame(output, c)
            if c.public:
                told = f"anybody can have changed {_shown(tuple(c.public))}: a frame's certificate does not"
                yield Check("public columns", None, f"{told} cover them")
        elif output.is_dir():
            yield from _parts(output, c)
        else:
            yield from _one_file(output, c)
        yield from _content(output, c)
    except (OSError, ValueError, pa.ArrowException) as error:
        yield Check("file", False, str(error))


def _frame(output: Path, c: Certificate) -> Check:
    """A frame that somebody wrote to a file: its content must be the certified one."""
    if output.is_dir():
        return Check("content", False, "a frame's certificate is for one file, and this is a folder")
    source = open_source(output)
    types = dict.fromkeys(c.released, pa.bool_() if c.decisions else pa.float64())
    whole = pa.Table.from_batches(source.batches(list(source.columns), types, batch_rows(len(c.released))))
    good = is_certified(whole, c)
    return Check("content", good, c.output.sha256 if good else "is not the frame that was certified")


def _one_file(output: Path, c: Certificate) -> Iterator[Check]:
    if len(c.output.files) != 1:
        yield Check("file", False, f"one file is there, and {len(c.output.files)} are certified")
        return
    (file,) = c.output.files
    yield same_file(output.name, output, file, file.sha256 == c.output.sha256)


def _parts(output: Path, c: Certificate) -> Iterator[Check]:
    for file in c.output.files:
        if file.name in {"", ".", ".."} or "/" in file.name or not (output / file.name).is_file():
            yield Check("file", False, f"{file.name!r} is no name of a file in this folder")
            return
        yield same_file(file.name, output / file.name, file)
    present = {path.name for path in output.iterdir() if path.is_file() and not path.is_symlink()}
    others = sorted({path.name for path in output.iterdir()} - present)
    extra = sorted(present - {file.name for file in c.output.files}) + others
    good = not extra and list_hash(c.output.files) == c.output.sha256 and len(c.output.files) > 0
    yield Check("list of parts", good, f"not certified: {', '.join(extra)}" if extra else "complete")


MOST_SHOWN = 8
"""Columns that a check names."""


def _shown(columns: Sequence[str]) -> str:
    more = len(columns) - MOST_SHOWN
    return ", ".join(columns[:MOST_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _content(output: Path, c: Certificate) -> Iterator[Check]:
    source = open_source(output, csv=c.output.dialect)
    yield Check("columns of the file", source.columns == c.columns, _shown(source.columns))
    if source.columns != c.columns:
        return
    law = law_of(c.mechanism.law)
    values = (
        _Decisions(c, law.decision) if law.decision is not None else _Noisy(c, noise_law_of(c.mechanism.law))
    )
    rows, last, ordered, hashed = 0, "", True, True
    types = dict.fromkeys(c.released, values.type)
    for batch in source.batches([c.id, *c.released], types, batch_rows(len(c.released))):
        if not batch.num_rows:
            continue
        rows += batch.num_rows
        values.look(batch)
        ids = pa.concat_arrays([pa.array([last], pa.string()), batch.column(c.id).cast(pa.string())])
        ordered &= bool(pc.all(pc.less(ids.slice(0, len(ids) - 1), ids.slice(1))).as_py())
        hashed &= not c.pseudonyms or all(_HASH.fullmatch(name) for name in ids.slice(1).to_pylist())
        last = ids[-1].as_py()
    yield Check("rows", rows == c.rows, f"{rows:,}")
    yield from values.checks(complete=rows == c.rows)
    yield Check("order", ordered, "sorted by id, no id twice" if ordered else "ids are not in order")
    if c.pseudonyms:
        yield Check("pseudonyms", hashed, "all ids look like hashes" if hashed else "some ids are no hashes")


class _Noisy:
    """Values with noise: on its grid, and with no less of it than is stated."""

    type = pa.float64()

    def __init__(self, c: Certificate, law: NoiseLaw) -> None:
        self._names, self._rows, self._law = c.released, c.rows, law
        self._most, self._rng = rows_looked_at(len(c.released)), np.random.default_rng()
        self._good, self._some, self._grid = True, list[Floats](), law.added.steps

    def look(self, batch: pa.RecordBatch) -> None:
        """Look at some more rows."""
        values = np.array([batch.column(name).to_numpy(zero_copy_only=False) for name in self._names])
        # Noise on a grid leaves values on it; other laws leave any finite number.
        self._good &= bool(np.isfinite(values).all())
        if self._grid and self._good:
            self._good = bool((np.rint(values / self._grid) * self._grid == values).all())
        # Which rows are looked at closely, nobody can know beforehand.
        self._some.append(values[:, self._rng.random(batch.num_rows) * self._rows < self._most].T)

    def checks(self, *, complete: bool) -> Iterator[Check]:
        """What was found."""
        good = self._good
        yield Check("values", good, "as the noise leaves them" if good else "not what the noise makes")
        if good and complete:
            yield self._noise(np.concatenate(self._some))

    def _noise(self, values: Floats) -> Check:
        if values.shape[1] != self._law.added.dimensions:
            return Check(_NOISE, False, "the noise on record is for another number of columns")
        found = has_the_noise(values, self._law)
        return Check(_NOISE, found, _IN_VALUES[found])


class _Decisions:
    """Bits: all are there, their cuts follow from them, and their shares are not beyond the law."""

    type = pa.bool_()

    def __init__(self, c: Certificate, law: DecisionLaw) -> None:
        self._c, self._law = c, law
        self._good, self._batches, self._bits = True, list[Turns](), list[Bits]()

    def look(self, batch: pa.RecordBatch) -> None:
        """Look at some more people."""
        columns = [batch.column(name) for name in self._c.released]
        self._good &= all(pa.types.is_boolean(column.type) and not column.null_count for column in columns)
        if self._good:
            bits = [column.to_numpy(zero_copy_only=False) for column in columns]
            self._bits.append(np.stack(bits, axis=1))
            ids = batch.column(self._c.id).cast(pa.string())
            self._batches.append(turns_of(ids, self._c.release, self._c.rows)[0])

    def checks(self, *, complete: bool) -> Iterator[Check]:
        """What was found."""
        good = self._good
        yield Check("values", good, "yes or no" if good else "not a yes or no everywhere")
        if not good or not complete:
            return
        batches, bits = np.concatenate(self._batches), np.concatenate(self._bits)
        try:
            rules = [one.rule(self._law) for one in questions_of(self._c, self._law)]
        except (ValueError, TypeError, ArithmeticError) as error:
            yield Check("cuts", False, f"what was asked makes no sense: {error}")
            return
        same = bits.shape[1] == len(rules) and cuts_of(batches, bits, rules) == self._c.cuts
        yield Check(
            "cuts", same, "found again from the bits" if same else "are not what bits and request make"
        )
        for name, column in zip(self._c.released, bits.T, strict=True):
            found = can_be_so_many(int(column.sum()), len(column), self._law)
            yield Check(f"share of yes: {name}", found, _IN_BITS[found])


_IN_BITS = {
    True: "within what the law allows, which refutes extremes only: all yes, or all no, would be found",
    False: "beyond what the law allows for any table",
    None: "bits cannot tell: even all yes, or all no, would be possible",
}


def questions_of(c: Certificate, law: DecisionLaw) -> list[Question]:
    """What was asked about each person, with the score on record where there is one."""
    return [Question(one, None if law.cells is None else law.cells.score) for one in c.decisions]


def same_file(name: str, path: Path, file: File, known: bool = True) -> Check:
    """Whether a file has the content that is certified."""
    with path.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
        good = known and (digest, opened.tell()) == (file.sha256, file.size)
    return Check(f"file {name}", good, f"SHA-256 {digest}" if good else "is not the one certified")


def output_of(
    kind: Literal["parquet", "csv"], files: Sequence[Written], name: str | None, csv: Dialect | None = None
) -> Output:
    """What was written: one file that will have a name, or (None) parts, hashed by their list."""
    listed = tuple(File(name=name or f.name, size=f.size, sha256=f.sha256) for f in files)
    sha256 = listed[0].sha256 if name else list_hash(listed)
    return Output(format=kind, files=listed, sha256=sha256, csv=csv)


def list_hash(files: Sequence[File]) -> str:
    """SHA-256 of the lines "hash  name" of all parts."""
    return hashlib.sha256("".join(f"{f.sha256}  {f.name}\n" for f in files).encode()).hexdigest()


def frame_hash(table: pa.Table, id_column: str, released: Sequence[str]) -> str:
    """SHA-256 of names, ids and values: the same for equal frames of any kind.

    Of every column its name, then its values in order of rows: numbers as little-endian doubles, names and
    ids as UTF-8 behind their lengths (8 bytes). The values of columns that are not protected do not count.
    """
    digest = hashlib.sha256()
    for name in (id_column, *released):
        digest.update(_framed(name))
        column = table.column(name).combine_chunks()
        if name == id_column:
            for value in column.to_pylist():
                digest.update(_framed(str(value)))
        else:
            digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return digest.hexdigest()


def _framed(text: str) -> bytes:
    data = text.encode()
    return len(data).to_bytes(8, "little") + data


def is_certified(frame: Any, certificate: Certificate) -> bool:
    """Whether a frame has exactly the columns, ids and values that its certificate was made for."""
    table, _ = arrow_of(frame)
    if tuple(table.column_names) != certificate.columns:
        return False
    return frame_hash(table, certificate.id, certificate.released) == certificate.output.sha256


def arrow_of(frame: Any) -> tuple[pa.Table, Any]:
    """The frame as a pyarrow table, and the way back."""
    if isinstance(frame, pa.Table):
        return frame, lambda table: table
    try:
        known = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"table is a {type(frame).__name__}: give a path, a pandas, polars or pyarrow table in memory, "
            "or a Spark frame"
        ) from error
    backend = known.implementation
    return known.to_arrow(), lambda table: nw.from_arrow(table, backend=backend).to_native()

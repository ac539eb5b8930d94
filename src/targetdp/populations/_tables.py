"""Examples drawn and written: invented populations, and public tables of real people.

`togo` and `nigeria` are drawn: nobody in them is real. `vietnam` and `credit` are public tables of real
people, and need the extra ``examples``. `docs/populations.md` says how closely the invented ones follow the
paper's Table S1, and what of them follows nothing.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from targetdp._core import Progress, Silent, check
from targetdp._files import must_be_free, whole_file, write_new
from targetdp.populations._population import (
    ID,
    ID_DIGITS,
    Example,
    Population,
    ids,
    invented_populations,
    people,
    public_tables,
)
from targetdp.table import Format, Sink, overlapped

# Invented people as tables, a few batches at a time: worked out in threads, handed over in order.

_ROWS = 125_000
"""About so many people are worked out, held and written together."""

_MOST_THREADS = 4
"""More would only hold more people in memory: there is one writer."""


def schema(population: Population) -> pa.Schema:
    """Names and types of all columns; no value is ever missing."""
    nobody = population.make(np.empty(0), np.empty((population.normals_each, 0)))
    fields = [pa.field(ID, pa.string(), nullable=False)]
    for name in population.columns:
        kind = pa.string() if name in population.groups else pa.from_numpy_dtype(nobody[name].dtype)
        fields.append(pa.field(name, kind, nullable=False))
    return pa.schema(fields)


def tables(population: Population, rows: int, seed: int) -> Iterator[pa.Table]:
    """The first ``rows`` people of a seed, in order.

    Guarantees: they are the same people, whatever ``rows`` is and however many processors there are.
    Memory: that of some 125,000 people for each of a few threads, whatever ``rows`` is.
    """
    together = max(1, _ROWS // population.size)
    columns = schema(population)

    def piece(first: int) -> pa.Table:
        count = min(together * population.size, rows - first * population.size)
        return _whole_batches(population, columns, seed, first, _batches(population, count)).slice(0, count)

    threads = min(os.cpu_count() or 1, _MOST_THREADS)
    yield from overlapped(piece, range(0, _batches(population, rows), together), threads)


def _batches(population: Population, rows: int) -> int:
    """How many batches hold so many people."""
    return -(-rows // population.size)


def _whole_batches(
    population: Population, columns: pa.Schema, seed: int, first: int, batches: int
) -> pa.Table:
    columns_of = people(population, seed, first, batches)
    arrays = [_text(ids(population, seed, first * population.size, batches * population.size))]
    for name in population.columns:
        column = pa.array(columns_of[name])
        if name in population.groups:
            categories = pa.array(population.groups[name])
            column = pa.DictionaryArray.from_arrays(column, categories).dictionary_decode()
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=columns)


def _text(ids_: NDArray[np.bytes_]) -> pa.StringArray:
    """Texts of one length as an Arrow array, without a Python object for each."""
    offsets = np.arange(0, ID_DIGITS * (len(ids_) + 1), ID_DIGITS, dtype=np.int32)
    return pa.StringArray.from_buffers(len(ids_), pa.py_buffer(offsets), pa.py_buffer(ids_))


DEFAULT_SEED = 17
"""Picked among the first forty, as one that comes close to the paper; `docs/populations.md` shows others."""

MOST_ROWS = 50_000_000

_FORMATS: dict[str, Format] = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}


@dataclass(frozen=True)
class Saved:
    """A finished file.

    Args:
        path: Its name.
        invented: Whether its people are invented.
        rows: How many people it has.
        columns: The names of its columns.
        size: Its bytes.
        sha256: The SHA-256 of its bytes, in hexadecimal.

    Example:
        >>> Saved(Path("togo.csv"), True, 4201, ("id", "contacts"), 100_000, "9f86d081").rows
        4201
    """

    path: Path
    invented: bool
    rows: int
    columns: tuple[str, ...]
    size: int
    sha256: str


@dataclass(frozen=True)
class CompanionFile:
    """A text that belongs to a table, such as a program file, and where it goes.

    Args:
        path: Its name.
        text: Its content.

    Example:
        >>> CompanionFile(Path("togo.toml"), "quota = 0.29").path.name
        'togo.toml'
    """

    path: Path
    text: str


def draw(name: str, rows: int | None = None, seed: int = DEFAULT_SEED) -> Example:
    """Draw an invented population, in memory.

    Args:
        name: One of `invented_populations`.
        rows: How many people; by default as many as the paper's table has. They are the first so many of the
            seed's people, who are the same whatever ``rows`` is.
        seed: Another seed invents other people.

    Returns:
        The table and the roles of its columns.

    Raises:
        ValueError: There is no such population, or a number is outside its range.

    Example:
        >>> draw("togo", rows=3).X.shape
        (3, 10)
    """
    populations = invented_populations()
    population = populations[check.choice("name", name, populations)]
    count, seed = _rows_and_seed(rows, population.size, seed)
    table = pa.concat_tables(tables(population, count, seed)).combine_chunks()
    groups = tuple(population.groups)
    return Example(name, table, population.features, population.target, groups, population.money)


def write(
    name: str,
    path: Path,
    rows: int | None = None,
    seed: int = DEFAULT_SEED,
    *,
    force: bool = False,
    progress: Progress | None = None,
    beside: CompanionFile | None = None,
) -> Saved:
    """Write an example to a Parquet or CSV file, in memory that does not grow with the number of rows.

    Args:
        name: One of `invented_populations` or `public_tables`.
        path: The file; its suffix says the format.
        rows: As for `draw`; a public table comes whole.
        seed: As for `draw`; it means nothing to a public table.
        force: Whether a file of that name is replaced.
        progress: Hears of the rows that are written.
        beside: A text file that is written together with the table.

    Returns:
        What was written.

    Raises:
        ValueError: There is no such example, or the file's name cannot be used.

    Guarantees: each file appears whole and synced, or not at all, and the text never without the table. The
    same arguments make the same bytes, with the same versions of numpy and pyarrow on the same kind of
    processor.

    Example:
        >>> import tempfile
        >>> write("togo", Path(tempfile.mkdtemp()) / "togo.csv", rows=3).rows
        3
    """
    invented, public = invented_populations(), public_tables()
    check.choice("name", name, (*invented, *public))
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"output {path} has no known suffix: use {', '.join(_FORMATS)}")
    parts: Iterable[pa.Table]
    if name in invented:
        population = invented[name]
        count, seed = _rows_and_seed(rows, population.size, seed)
        columns, parts = schema(population), tables(population, count, seed)
    elif rows is None:
        whole = public[name]().table
        count, columns, parts = whole.num_rows, whole.schema, (whole,)
    else:
        raise ValueError(f"rows = {rows!r}: {name} is a real table and comes whole; leave rows out")
    progress = progress or Silent()
    progress.phase(f"writing {name}", count)
    with ExitStack() as files:
        if beside is not None:
            _must_be_another(beside.path, path)
            write_new(files.enter_context(whole_file(beside.path, force=force)), beside.text)
        place = files.enter_context(whole_file(path, force=force))
        with Sink(place, kind, columns) as sink:
            for part in parts:
                sink.write(part)
                progress.advance(part.num_rows)
            (written,) = sink.finish()
        if beside is not None:  # or the table would be there, and its program refused
            must_be_free(beside.path, force=force)
    return Saved(path, name in invented, count, tuple(columns.names), written.size, written.sha256)


def _must_be_another(beside: Path, path: Path) -> None:
    """Refuse one name for both files: the later would replace the earlier."""
    if beside.absolute() == path.absolute() or beside.resolve() == path.resolve():
        raise ValueError(f"program file {beside} would be the table itself: give it another name")


def _rows_and_seed(rows: int | None, usual: int, seed: int) -> tuple[int, int]:
    count = usual if rows is None else check.integer("rows", rows, at_least=1, at_most=MOST_ROWS)
    return count, check.integer("seed", seed, at_least=0, at_most=2**63 - 1)

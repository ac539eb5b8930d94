"""Example tables, to try things on: two invented populations, and two real tables from R's packages.

`togo` and `nigeria` are drawn: nobody in them is real. `vietnam` and `credit` are public tables of real
people, and need the extra ``examples``. `docs/populations.md` says how closely the invented ones follow the
paper's Table S1, and what of them follows nothing.
"""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from targetdp import check
from targetdp.progress import Progress, Silent
from targetdp.table.populations import POPULATIONS, REAL, Example
from targetdp.table.populations.tables import schema, tables
from targetdp.table.populations.whole_file import must_be_free, whole_file
from targetdp.table.sink import Sink
from targetdp.table.source import Format

DEFAULT_SEED = 17
"""Picked among the first forty, as one that comes close to the paper; `docs/populations.md` shows others."""

MOST_ROWS = 50_000_000

_FORMATS: dict[str, Format] = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}


@dataclass(frozen=True)
class Saved:
    """A finished file: whether its people are invented, its rows and columns, its size and its SHA-256."""

    path: Path
    invented: bool
    rows: int
    columns: tuple[str, ...]
    size: int
    sha256: str


@dataclass(frozen=True)
class Beside:
    """A text that belongs to a table, such as a program file, and where it goes."""

    path: Path
    text: str


def draw(name: str, rows: int | None = None, seed: int = DEFAULT_SEED) -> Example:
    """An invented population, in memory.

    ``rows``: how many people; by default as many as the paper's table has. They are the first so many of the
    seed's people, who are the same whatever ``rows`` is.
    """
    population = POPULATIONS[check.choice("name", name, POPULATIONS)]
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
    beside: Beside | None = None,
) -> Saved:
    """Write an example to a Parquet or CSV file, in memory that does not grow with the number of rows.

    ``force`` replaces a file of that name. A real table comes whole, and the seed means nothing to it.
    ``beside`` is a text file that is written together with the table.

    Guarantees: each file appears whole and synced, or not at all, and the text never without the table. The
    same arguments make the same bytes, with the same versions of numpy and pyarrow on the same kind of
    processor.
    """
    check.choice("name", name, (*POPULATIONS, *REAL))
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"output {path} has no known suffix: use {', '.join(_FORMATS)}")
    parts: Iterable[pa.Table]
    if name in POPULATIONS:
        population = POPULATIONS[name]
        count, seed = _rows_and_seed(rows, population.size, seed)
        columns, parts = schema(population), tables(population, count, seed)
    elif rows is None:
        whole = REAL[name]().table
        count, columns, parts = whole.num_rows, whole.schema, (whole,)
    else:
        raise ValueError(f"rows = {rows!r}: {name} is a real table and comes whole; leave rows out")
    told = Silent() if progress is None else progress
    told.phase(f"writing {name}", count)
    with ExitStack() as files:
        if beside is not None:
            _must_be_another(beside.path, path)
            _write_text(files.enter_context(whole_file(beside.path, force=force)), beside.text)
        place = files.enter_context(whole_file(path, force=force))
        with Sink(place, kind, columns) as sink:
            for part in parts:
                sink.write(part)
                told.advance(part.num_rows)
            (written,) = sink.finish()
        if beside is not None:  # or the table would be there, and its program refused
            must_be_free(beside.path, force=force)
    return Saved(path, name in POPULATIONS, count, tuple(columns.names), written.size, written.sha256)


def _must_be_another(beside: Path, path: Path) -> None:
    """Two names for two files: under one name the later would replace the earlier."""
    if beside.absolute() == path.absolute() or beside.resolve() == path.resolve():
        raise ValueError(f"program file {beside} would be the table itself: give it another name")


def _write_text(place: Path, text: str) -> None:
    with place.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _rows_and_seed(rows: int | None, usual: int, seed: int) -> tuple[int, int]:
    count = usual if rows is None else check.integer("rows", rows, at_least=1, at_most=MOST_ROWS)
    return count, check.integer("seed", seed, at_least=0, at_most=2**63 - 1)

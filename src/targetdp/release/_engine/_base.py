"""What an engine is, and how every one ends: ranges of private rows, each sorted, become the released table.

A new engine is one new file here: a function from a table to private rows in a file, under ``@named("…")``.

What is written depends on the released rows alone: their order is that of their ids, and they are cut into
groups of a fixed number of rows. So neither layout nor last digits tell how the input was ordered or cut.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Progress, import_all
from targetdp.normalization import ColumnMoments
from targetdp.release._engine._inspection import group_rows, joined
from targetdp.release._holder import Holder, Prepared
from targetdp.release._settings import Settings
from targetdp.table import Format, SortedIds, Source, Written, overlapped, regrouped


@dataclass(frozen=True)
class Target:
    """Where an engine writes, and in which shape: one file, or a directory of parts."""

    table: Path
    folder: Path
    kind: Format
    parts: bool


@dataclass(frozen=True)
class Outcome:
    """What was done, for the data holder's own eyes."""

    rows: int
    clipped: int


@dataclass(frozen=True)
class Done:
    """What an engine hands back once the table is written, but not yet published."""

    outcome: Outcome
    prepared: Prepared
    written: tuple[Written, ...]


Engine = Callable[[Source, Target, Holder, Progress], Done]
_ENGINES: dict[str, Engine] = {}


def named(name: str) -> Callable[[Engine], Engine]:
    """Declare an engine by the name that settings have for it."""

    def declare(engine: Engine) -> Engine:
        _ENGINES[name] = engine
        return engine

    return declare


def engine_of(name: str) -> Engine:
    """The engine of a name; no other one is imported, since some need libraries that may not be there."""
    import_all("targetdp.release._engine", rf'^@named\("{re.escape(name)}"')
    return _ENGINES[name]


SortedRange = Callable[[int], tuple[pa.StringArray, Floats, dict[str, pa.Array], SortedIds]]
"""By a range's number: ids, values column by column, kept columns, and how the ids were sorted."""


class RowWriter(Protocol):
    """Where finished rows go."""

    def write(self, table: pa.Table) -> None:
        """Append rows."""


def output_schema(settings: Settings, kept: dict[str, pa.DataType]) -> pa.Schema:
    """The columns of a release: the id, the features or scores, and what was kept."""
    return pa.schema(
        [
            pa.field(settings.id, pa.string(), nullable=False),
            *(pa.field(name, pa.float64(), nullable=False) for name in settings.released),
            *(pa.field(name, kind) for name, kind in kept.items()),
        ]
    )


def table_of(
    schema: pa.Schema, ids: pa.StringArray, columns: Floats, others: dict[str, pa.Array]
) -> pa.Table:
    """A piece of the released table."""
    return pa.Table.from_arrays([ids, *map(pa.array, columns), *others.values()], schema=schema)


def write_in_order(
    sorted_range: SortedRange,
    ranges: int,
    rows: int,
    schema: pa.Schema,
    settings: Settings,
    output: RowWriter,
    progress: Progress,
) -> None:
    """Write all ranges one after the other; an error, before the end, unless each id came once."""

    def tables() -> Iterator[pa.Table]:
        seen = 0
        for ids, columns, others in _ranges_without_duplicates(sorted_range, ranges, settings):
            seen += len(ids)
            yield table_of(schema, ids, columns, others)
            progress.advance(len(ids))
        if seen != rows:
            raise RuntimeError(f"{rows:,} rows got noise, and {seen:,} were found again: please report this")

    group, moments = group_rows(len(settings.released)), None
    if settings.made_for == "cider":
        progress.phase("measuring what is released", rows)
        for table in regrouped(tables(), group):
            moments = joined(moments, ColumnMoments.of(_values(table, settings)))
    progress.phase("writing in order of ids", rows)
    for table in regrouped(tables(), group):
        output.write(table if moments is None else _standardized(table, moments, settings))


def check_ids(sorted_range: SortedRange, ranges: int, settings: Settings) -> None:
    """An error unless each id came once."""
    for _ in _ranges_without_duplicates(sorted_range, ranges, settings):
        pass


def _ranges_without_duplicates(
    sorted_range: SortedRange, ranges: int, settings: Settings
) -> Iterator[tuple[pa.StringArray, Floats, dict[str, pa.Array]]]:
    """The ranges that have rows, until an id came twice; all are looked at, and then that is an error."""
    duplicates, first = 0, None
    for ids, columns, others, found in overlapped(sorted_range, range(ranges)):
        duplicates, first = duplicates + found.duplicates, first or found.first_duplicate
        if len(ids) and not duplicates:
            yield ids, columns, others
    if duplicates:
        raise ValueError(
            f"id column {settings.id!r} has duplicated values: {duplicates:,} rows repeat an id (first: "
            f"{first!r}): one row per person; merge or drop the others. Nothing was published"
        )


def _values(table: pa.Table, settings: Settings) -> Floats:
    return np.array([table.column(name).to_numpy() for name in settings.released])


def _standardized(table: pa.Table, moments: ColumnMoments, settings: Settings) -> pa.Table:
    """Released columns with mean 0 and deviation 1, by their own moments: post-processing."""
    columns = (_values(table, settings) - moments.mean[:, None]) / moments.deviation[:, None]
    ids = table.column(settings.id).combine_chunks()
    return table_of(table.schema, ids, np.asarray(columns), {})

"""What an engine is, and how every one ends: ranges of private rows, each sorted, become the released table.

A new engine is one new file here: a class with the methods of `Engine`, under ``@named("…")``.

What is written depends on the released rows alone: their order is that of their ids, and they are cut into
groups of a fixed number of rows. So neither layout nor last digits tell how the input was ordered or cut.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Integers, Progress, Words, check, declared, import_all
from targetdp.mechanisms import NoiseLaw
from targetdp.normalization import ColumnScales
from targetdp.release._draws import Draws
from targetdp.release._look._made_of import Spread
from targetdp.release._prepare import Recipe
from targetdp.table import MAX_BUCKETS, SortedIds, Source, Tally, overlapped, regrouped

GROUP_CELLS = 2_500_000
"""Values in a range of ids, about, and exactly in a row group of the output."""

FEWEST_GROUPED = 10
"""Columns that a range of ids is cut for, at least."""


@dataclass(frozen=True)
class Inspection:
    """What a look at all rows found: nothing of it leaves but through private scales.

    ``people`` are sorted tags; ``repeated`` counts rows whose id came before. ``lowest`` and ``highest`` are
    two values of each feature, different ones if there are any; ``clipped`` says how many rows are longer
    than 1, and ``spread`` how rows differ then, where the scales are known; ``counts`` is what private
    centers are drawn from.
    """

    rows: int
    people: Words
    repeated: int
    splitters: pa.StringArray
    tally: Tally
    lowest: Floats
    highest: Floats
    clipped: int | None
    counts: Integers | None
    left_out: int = 0
    spread: Spread | None = None
    in_scales: int = 0
    """People whom the declared scales were learned from."""
    formulas: int = 0
    """Ids that go out as they are, and that a spreadsheet would run."""


NOTHING_INSPECTED = Inspection(
    0,
    np.empty(0, dtype=np.uint64),
    0,
    pa.array([], pa.string()),
    Tally(),
    np.empty(0),
    np.empty(0),
    None,
    None,
)
"""Of a table without the columns that would tell whose rows there are."""


@dataclass(frozen=True)
class NoiseJob:
    """What is done to all rows, once it is charged."""

    recipe: Recipe
    scales: ColumnScales
    law: NoiseLaw
    inspection: Inspection
    draws: Draws
    folder: Path | None
    """Where what is not sorted yet may lie."""


class RowWriter(Protocol):
    """Where finished rows go."""

    def write(self, table: pa.Table) -> None:
        """Append rows."""


class Engine(Protocol):
    """A table, and the machinery that reads it: made of a table, used for one release."""

    name: str
    """What certificates call it."""
    columns: Sequence[str]
    """The table's columns."""
    place: str
    """What messages call the table."""
    numbered: bool
    """Whether its rows have numbers that a message can name."""
    can_repeat: bool
    """Whether a re-run can repeat draws: rows come in the same batches each time."""

    def types(self, names: Sequence[str]) -> Mapping[str, pa.DataType]:
        """The types in which columns are passed on."""

    def inspect(self, recipe: Recipe, progress: Progress) -> Inspection:
        """Look at all rows: who they are, and whatever is wrong with them. Nothing is drawn."""

    def count(self, recipe: Recipe, centers: Floats, progress: Progress) -> Integers:
        """How far people are from the centers that were drawn: what private scales are drawn from."""

    def write(self, job: NoiseJob, output: RowWriter, schema: pa.Schema, progress: Progress) -> int:
        """Add noise and write all rows in the order of their ids; how many were clipped."""

    def check_unchanged(self) -> None:
        """A ValueError if the table is not what it was when this object was made."""


_ENGINES: dict[str, Callable[[Any], Engine]] = {}


def named(name: str) -> Callable[[type], type]:
    """Declare an engine by the name that the command line has for it."""

    def declare(engine: type) -> type:
        engine.name = name  # type: ignore[attr-defined]
        _ENGINES[name] = engine
        return engine

    return declare


def engine_of(name: str) -> Callable[[Source | Any], Engine]:
    """The engine of a name; no other one is imported, since some need libraries that may not be there."""
    check.choice("engine", name, declared("targetdp.release._engine"))
    import_all("targetdp.release._engine", rf'^@named\("{re.escape(name)}"')
    return _ENGINES[name]


def group_rows(released: int) -> int:
    """How many rows of so many released columns make a range of ids, and a row group of the output.

    Few columns make no larger ranges than ten: ids take memory, too.
    """
    return max(64, GROUP_CELLS // max(released, FEWEST_GROUPED))


def ranges_of(rows: int, released: int) -> int:
    """Into how many ranges of ids a table is cut."""
    return max(1, min(MAX_BUCKETS, -(-rows // group_rows(released))))


def hash_splitters(ranges: int) -> pa.StringArray:
    """Keyed hashes are uniform, so even ranges need no look at them."""
    return pa.array([f"{(b << 64) // ranges:016x}" for b in range(1, ranges)], pa.string())


def joined(total: Any, more: Any) -> Any:
    """The sum of two parts of a table, either of which may be None: nothing."""
    return more if total is None else total if more is None else total + more


SortedRange = Callable[[int], tuple[pa.StringArray, Floats, dict[str, pa.Array], SortedIds]]
"""By a range's number: ids, values column by column, public columns, and how the ids were sorted."""


def output_schema(recipe: Recipe, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """The columns of a release: the id, the features or scores, and what is public."""
    return pa.schema(
        [
            pa.field(recipe.id, pa.string(), nullable=False),
            *(pa.field(name, pa.float64(), nullable=False) for name in recipe.released),
            *(pa.field(name, kind) for name, kind in types.items()),
        ]
    )


def write_in_order(
    sorted_range: SortedRange,
    ranges: int,
    rows: int,
    schema: pa.Schema,
    output: RowWriter,
    progress: Progress,
) -> None:
    """Write all ranges one after the other."""
    progress.phase("writing in order of ids", rows)

    def tables() -> Iterator[pa.Table]:
        seen = 0
        for ids, columns, others, found in overlapped(sorted_range, range(ranges)):
            if found.duplicates:
                raise RuntimeError("an id came twice, and was not seen before: please report this")
            if len(ids):
                seen += len(ids)
                yield pa.Table.from_arrays([ids, *map(pa.array, columns), *others.values()], schema=schema)
                progress.advance(len(ids))
        if seen != rows:
            raise RuntimeError(f"{rows:,} rows got noise, and {seen:,} were found again: please report this")

    released = sum(field.type == pa.float64() and not field.nullable for field in schema)
    for table in regrouped(tables(), group_rows(released)):
        output.write(table)

"""Tables of a sweep: a part for each unit, all figures in one tidy table, and where time went."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import pyarrow as pa

from targetdp.tradeoff.figure import Figure, Simulated
from targetdp.tradeoff.grid import Cell
from targetdp.tradeoff.sweep import Sweep, Unit

_SECONDS = b"targetdp.seconds"

_PART = pa.schema(
    [
        ("simulation", pa.int32()),
        ("metric", pa.string()),
        ("setting", pa.string()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    ]
)

CELL_FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("cell", pa.string()),
    ("mechanism", pa.string()),
    ("B", pa.float64()),
    ("epsilon1", pa.float64()),
    ("epsilon2", pa.float64()),
    ("epsilon", pa.float64()),
    ("delta", pa.float64()),
    ("k", pa.int64()),
    ("parts", pa.int32()),
    ("group_size", pa.int32()),
    ("same_as", pa.string()),
)
"""How every table says which cell a row is about; null where a parameter does not apply."""

_TIMING = pa.schema(
    [
        ("cell", pa.string()),
        ("part", pa.string()),
        ("simulations", pa.int32()),
        ("seconds", pa.float64()),
        ("seconds_per_simulation", pa.float64()),
    ]
)


def part_of(unit: Unit, simulated: Sequence[Simulated]) -> pa.Table:
    """A unit's figures as a table; its seconds go into the metadata, since they differ from run to run."""
    rows = [
        (number, figure)
        for number, one in zip(range(unit.begin, unit.end), simulated, strict=True) for figure in one.figures
    ]  # fmt: skip
    seconds: dict[str, float] = {}
    for one in simulated:
        for name, spent in one.seconds.items():
            seconds[name] = seconds.get(name, 0.0) + spent
    table = _table([number for number, _ in rows], [figure for _, figure in rows])
    return table.replace_schema_metadata({_SECONDS: json.dumps(seconds).encode()})


def derived(figures: Iterable[Figure]) -> pa.Table:
    """Figures that belong to a cell and not to a simulation of it."""
    found = list(figures)
    return _table([None] * len(found), found)


def figures_of(
    sweep: Sweep, parts: dict[str, list[pa.Table]], known: dict[str, pa.Table]
) -> dict[str, pa.Table]:
    """All figures of every cell: its simulations (or those of its equal), then what is derived."""
    return {
        cell.name: pa.concat_tables([*parts[cell.same_as or cell.name], known[cell.name]]).combine_chunks()
        for cell in sweep.cells
    }


def results(sweep: Sweep, figures: dict[str, pa.Table]) -> pa.Table:
    """The tidy table: one row for each cell, simulation, metric and setting, in the order of the grid.

    ``simulation`` is null for what is derived from the noise alone.
    """
    tables = [with_cell(cell, figures[cell.name].drop_columns(["low", "high"])) for cell in sweep.cells]
    return with_source(sweep, pa.concat_tables(tables).combine_chunks())


def with_source(sweep: Sweep, table: pa.Table) -> pa.Table:
    """A table whose last column says where the rows came from: metadata is lost where a table is exported."""
    return table.append_column(
        pa.field("source", pa.string()), pa.repeat(pa.scalar(sweep.study.source), table.num_rows)
    )


def with_cell(cell: Cell, table: pa.Table) -> pa.Table:
    """A table whose first columns say which cell it is about."""
    given = {field.name: getattr(cell, field.name) for field in fields(cell)} | {"cell": cell.name}
    columns = [
        (pa.field(name, kind), pa.repeat(pa.scalar(given[name], kind), table.num_rows))
        for name, kind in CELL_FIELDS
    ]
    columns += [(table.schema.field(name), table.column(name)) for name in table.column_names]
    return pa.table([values for _, values in columns], schema=pa.schema([kind for kind, _ in columns]))


def timing(sweep: Sweep, parts: dict[str, list[pa.Table]]) -> pa.Table:
    """Seconds that each part of the work took, for each cell that was computed."""
    rows: list[dict[str, Any]] = []
    for cell in sweep.cells:
        if cell.same_as is None:
            spent: dict[str, float] = {}
            for table in parts[cell.name]:
                for name, seconds in json.loads((table.schema.metadata or {}).get(_SECONDS, b"{}")).items():
                    spent[name] = spent.get(name, 0.0) + seconds
            times = sweep.times(cell)
            rows += [
                {
                    "cell": cell.name, "part": name, "simulations": times, "seconds": seconds,
                    "seconds_per_simulation": seconds / times,
                }
                for name, seconds in spent.items()
            ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=_TIMING)


def _table(simulations: Sequence[int | None], figures: Sequence[Figure]) -> pa.Table:
    """What is undefined is null; what is infinite stays so."""
    numbers = {
        name: [None if math.isnan(x := getattr(figure, name)) else x for figure in figures]
        for name in ("value", "low", "high")
    }
    words = {name: [getattr(figure, name) for figure in figures] for name in ("metric", "setting")}
    return pa.table({"simulation": list(simulations)} | words | numbers, schema=_PART)

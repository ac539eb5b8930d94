"""Run a sweep in a folder: what is there already is not done again, and the end is the same in any case."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from targetdp.progress import Progress, Silent
from targetdp.tradeoff import results
from targetdp.tradeoff.crowd import crowds
from targetdp.tradeoff.figure import Figure
from targetdp.tradeoff.grid import STATUS_QUO, Cell
from targetdp.tradeoff.place import RESULTS, SUMMARY, TIMING, Place
from targetdp.tradeoff.seeds import generator
from targetdp.tradeoff.simulation import derive, simulate
from targetdp.tradeoff.summary import summary
from targetdp.tradeoff.sweep import Sweep, Unit
from targetdp.tradeoff.workers import Backend, as_they_come


@dataclass(frozen=True)
class Finished:
    """A finished sweep. ``computed`` simulations were run now; the others had been run before."""

    folder: Path
    sweep: Sweep
    summary: pa.Table
    timing: pa.Table
    simulations: int
    computed: int


def run(
    sweep: Sweep,
    out: Path,
    *,
    jobs: int = 1,
    backend: Backend = "loky",
    address: str | None = None,
    progress: Progress | None = None,
) -> Finished:
    """Compute every cell and write `results.parquet`, `summary.parquet` and `timing.parquet` to a folder.

    Guarantees: results and summary have the same bytes however often the run was killed and started again,
    and for any number of workers, with the same software on processors of one kind. A folder that holds
    another sweep is refused.
    Edges: finished simulations are kept whatever happens; run again to go on.
    """
    watch = progress or Silent()
    known = _known(sweep)
    with Place(out, sweep) as place:
        units = list(sweep.units())
        kept = {unit.name: part for unit in units if (part := place.part(unit)) is not None}
        missing = [unit for unit in units if unit.name not in kept]
        watch.phase("simulations", sum(unit.end - unit.begin for unit in units))
        watch.advance(sum(unit.end - unit.begin for unit in units if unit.name in kept))
        for unit, part in _computed(sweep, missing, jobs, backend, address):
            place.keep_part(unit, part)
            kept[unit.name] = part
            watch.advance(unit.end - unit.begin)
        parts: dict[str, list[pa.Table]] = {}
        for unit in units:
            parts.setdefault(unit.cell.name, []).append(kept[unit.name].combine_chunks())
        watch.phase("summary", None)
        figures = results.figures_of(sweep, parts, known)
        finished = Finished(
            out, sweep, summary(sweep, figures), results.timing(sweep, parts),
            simulations=sum(unit.end - unit.begin for unit in units),
            computed=sum(unit.end - unit.begin for unit in missing),
        )  # fmt: skip
        place.keep(RESULTS, results.results(sweep, figures))
        place.keep(TIMING, finished.timing)
        place.keep(SUMMARY, finished.summary)  # last: whoever finds it finds all
    return finished


@dataclass(frozen=True)
class _Work:
    """What a worker needs beside its unit."""

    sweep: Sweep

    def __call__(self, unit: Unit) -> pa.Table:
        sweep, study, cell = self.sweep, self.sweep.study, unit.cell
        mechanism = cell.build(study.dimensions)
        today = study.run(study.X, generator(sweep.seed, sweep.cells[0], 0, "program"))
        simulated = [
            simulate(study, cell, mechanism, today, number, seed=sweep.seed, draws=sweep.draws(cell))
            for number in range(unit.begin, unit.end)
        ]
        return results.part_of(unit, simulated)


def _known(sweep: Sweep) -> dict[str, pa.Table]:
    """What is known of each cell without a simulation. Cells that cannot be are refused first."""
    noise = {cell.name: _derived(cell, sweep.study.dimensions) for cell in sweep.cells}
    crowd = crowds(sweep.study.X, (cell.B for cell in sweep.cells if cell.B is not None))
    return {
        cell.name: results.derived((*noise[cell.name], *(() if cell.B is None else crowd[cell.B])))
        for cell in sweep.cells
    }


def _derived(cell: Cell, dimensions: int) -> tuple[Figure, ...]:
    """What the noise alone tells; a cell that cannot be is refused here, before any work."""
    try:
        return derive(cell, cell.build(dimensions), dimensions)
    except ValueError as error:
        raise ValueError(f"cell {cell.name!r} is not possible on {dimensions} columns: {error}") from error


def _computed(
    sweep: Sweep, units: list[Unit], jobs: int, backend: Backend, address: str | None
) -> Iterator[tuple[Unit, pa.Table]]:
    assert sweep.cells[0].name == STATUS_QUO  # noqa: S101 (workers compare with it)
    if units:
        yield from as_they_come(_Work(sweep), units, jobs=jobs, backend=backend, address=address)

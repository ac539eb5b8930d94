"""A sweep: a study, a grid, how many simulations and a seed; cut into units of work."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from targetdp._core import __version__, check
from targetdp.mechanisms import Mechanism
from targetdp.programs import Result, software_of
from targetdp.tradeoff._grid import Grid
from targetdp.tradeoff._simulation import Simulated, Trial, Use
from targetdp.tradeoff._study import Study, fingerprint_of
from targetdp.tradeoff._technology import Cell, technology_named

# Where a simulation's randomness comes from: its place in the grid, and nothing else.
#
# Not the order of the work, not the number of workers, not which other cells the grid has.

_USES: tuple[Use, ...] = ("release", "program", "holdout", "working set", "attack", "scores", "informed")
"""In an order that must stay: each use has a stream of its own, so that none can shift another's draws."""


def generator(seed: int, cell: Cell, simulation: int, use: Use) -> np.random.Generator:
    """The generator for one use in one simulation of a cell."""
    place = (cell.key >> 32, cell.key & 0xFFFFFFFF, simulation, _USES.index(use))
    return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=place)))


def simulate(
    study: Study, cell: Cell, mechanism: Mechanism | None, status_quo: Result, simulation: int, *,
    seed: int, draws: int = 1,
) -> Simulated:  # fmt: skip
    """One simulation of a cell: what the program makes of the release, and what attackers do.

    Args:
        study: The program and its people.
        cell: What is released.
        mechanism: The cell's own, as `Cell.build` makes it.
        status_quo: What the program achieves without privacy.
        simulation: Its number.
        seed: Of the sweep.
        draws: How often known columns are drawn.

    Returns:
        All figures, and how many seconds each part of the work took.

    Guarantees: the same figures whenever and wherever it is run with the same software on a processor of
    the same kind: all randomness comes from the seed, the cell and the number of the simulation.
    """

    def rng(use: Use) -> np.random.Generator:
        return generator(seed, cell, simulation, use)

    return cell.technology.simulate(Trial(study, cell, mechanism, status_quo, draws, rng))


SIMULATIONS = 50
"""The paper's number for each cell."""

_FIGURES_DEPEND_ON = ("numpy", "scipy", "scikit-learn", "numba", "pyarrow")
_ROWS_PER_UNIT = 50_000
_MOST_PER_UNIT = 10


@dataclass(frozen=True)
class Unit:
    """A few simulations of one cell: what a worker takes at a time."""

    cell: Cell
    begin: int
    end: int

    @property
    def name(self) -> str:
        """The name of its part file."""
        return f"{self.cell.key:016x}-{self.begin:05d}-{self.end:05d}"


@dataclass(frozen=True)
class Sweep:
    """Every cell of a grid, tried so many times on one study.

    Cells without randomness are tried once, and those equal in distribution to an earlier one not at all:
    they share its simulations.

    Args:
        study: The program and its people.
        grid: What is compared; the paper's grid unless given.
        simulations: How often each cell with noise is tried.
        seed: Of all randomness: the same sweep has the same figures.

    Raises:
        TypeError: A technology of the grid is not made for the study's program.
        ValueError: ``simulations`` or ``seed`` is out of its range.

    Example:
        >>> from targetdp.tradeoff import find_sweep
        >>> sweep = find_sweep("togo", quick=True)
        >>> sweep.simulations, len(sweep.cells), sweep.study.people
        (5, 15, 4201)
    """

    study: Study
    grid: Grid = field(default_factory=Grid)
    simulations: int = SIMULATIONS
    seed: int = 0

    def __post_init__(self) -> None:
        check.instance("study", self.study, Study)
        check.instance("grid", self.grid, Grid)
        check.integer("simulations", self.simulations, at_least=1, at_most=99_999)
        check.integer("seed", self.seed, at_least=0)
        for name in self.grid.mechanisms:
            technology_named(name).check_program(self.study.program)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, in the order of the results."""
        return self.grid.cells(self.study.people, self.study.rows)

    def times(self, cell: Cell) -> int:
        """How many simulations of a cell there are."""
        return self.simulations if cell.is_random else 1

    def draws(self, cell: Cell) -> int:
        """How often an attribute inference attack draws its known columns in one simulation.

        The technology says it: for k-anonymity a few times, since many equal rows make every search slow.
        """
        return cell.technology.draws(self.simulations)

    def units(self) -> Iterator[Unit]:
        """All work, in the order of the results. Never depends on who does it."""
        size = max(1, min(_MOST_PER_UNIT, _ROWS_PER_UNIT // self.study.people))
        for cell in self.cells:
            if cell.same_as is None:
                times = self.times(cell)
                for begin in range(0, times, size):
                    yield Unit(cell, begin, min(begin + size, times))

    @cached_property
    def made_of(self) -> dict[str, Any]:
        """Everything that decides the figures, as plain data: two sweeps that agree in it are one."""
        software = {name: version(name) for name in _FIGURES_DEPEND_ON}
        software |= software_of(self.study.program.model)
        return self.study.digest() | {
            "source": self.study.source,
            "release": dict(self.study.release),
            "scales": self.study.scales_record(),
            "told": self.public_record,
            "unit": self.study.unit,
            "grid": self.grid.record(),
            "simulations": self.simulations,
            "seed": self.seed,
            "software": {"targetdp": __version__} | software,
        }

    @property
    def public_record(self) -> dict[str, Any]:
        """What pages and release files say of it: whoever changes that by hand has another sweep."""
        study = self.study
        return {
            "program": study.name,
            "kind": study.program.kind,
            "objective": study.objective,
            "people": study.people,
            "rows": study.rows,
            "comparison_only": study.comparison_only,
            "chance": study.program.chance,
            "features": list(study.features),
        }

    @cached_property
    def fingerprint(self) -> str:
        """The hash of `made_of`."""
        return fingerprint_of(self.made_of)

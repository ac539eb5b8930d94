"""A sweep: a study, a grid of releases, how many simulations and a seed; cut into units of work.

Two releases are *equal in distribution* if nobody could tell their tables apart, whatever they are called:
with all of V kept, Steps 4 and 5 of Algorithm 1 cancel, so cells that differ in ε₂ alone are one experiment.
It is computed once, and the others say whose figures they show (``same_as``).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any, get_args

import numpy as np

from targetdp._core import __version__, check
from targetdp.mechanisms import Mechanism, delta_per_part
from targetdp.normalization import RowRule
from targetdp.programs import ProgramSettings, Result, software_of
from targetdp.tradeoff._study import FINGERPRINT, FIRST_LOOK, Study, fingerprint_of, mark_of
from targetdp.tradeoff._technology import (
    STATUS_QUO,
    Cell,
    Simulated,
    Trial,
    Use,
    technologies,
    technology_named,
)

_PAPER = ProgramSettings.model_fields["grid"].default
"""The paper's parameter grid: a program file that has no grid of its own has it, and it is written there."""

CLASSIC = 2.0
"""B of classic differential privacy: no two people are farther apart."""


@dataclass(frozen=True)
class Grid:
    """What is compared: the paper's parameter grid unless told otherwise.

    ``delta`` is 1/(n + 1) unless given, n being the people of the table; with ``parts`` it is the paper's
    for each part, 1/(⌈n/parts⌉ + 1). It is split 2:1 between Steps 3 and 4. Other mechanisms are calibrated
    to the same total (B, ε₁ + ε₂, δ). Parts are the projection's: on other mechanisms they would change
    nothing but the δ, which all share anyway.

    Args:
        B: Distances within which people are hidden from each other, above 0 and at most 2.
        epsilon1: ε₁ of the projection; other technologies get ε₁ + ε₂.
        epsilon2: ε₂ of the projection, below 1.
        k: Dimensions of the projection.
        group_sizes: Of k-anonymity, 2 or more each.
        mechanisms: Technologies to compare, by their names: see `technologies`.
        delta: δ of every cell; None for 1/(n + 1).
        parts: How many random parts the projection is made in; None for one.

    Raises:
        TypeError: A list of values is none.
        ValueError: A value is out of its range, no technology has a name, or both ``delta`` and ``parts`` are
            given.

    Edges: the status quo and classic differential privacy (B = 2) are always among the cells. Repeated
    values count once. Scores are left out where there are too few people to learn from a part of them.

    Example:
        >>> grid = Grid(B=(0.25,), epsilon1=(3.0,), epsilon2=(0.5,), mechanisms=("score",), group_sizes=(5,))
        >>> print(*(cell.name for cell in grid.cells(people=1000)), sep=", ")
        status quo, score B=0.25 epsilon=3.5, score B=2 epsilon=3.5, mondrian group_size=5
    """

    B: tuple[float, ...] = _PAPER.B
    epsilon1: tuple[float, ...] = _PAPER.epsilon1
    epsilon2: tuple[float, ...] = _PAPER.epsilon2
    k: tuple[int, ...] = _PAPER.k
    group_sizes: tuple[int, ...] = _PAPER.group_sizes
    mechanisms: tuple[str, ...] = _PAPER.mechanisms
    delta: float | None = None
    parts: int | None = None

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[str, Any], Any]] = {
            "B": lambda name, x: check.distance(x, name),
            "epsilon1": partial(check.number, above=0),
            "epsilon2": partial(check.number, above=0, below=1),
            "k": partial(check.integer, at_least=1),
            "group_sizes": partial(check.integer, at_least=2),
        }
        checked = {name: _sorted(name, getattr(self, name), valid) for name, valid in checks.items()}
        checked["mechanisms"] = tuple(dict.fromkeys(self.mechanisms))
        known = [name for name, one in technologies().items() if not one.in_every_grid]
        for name in checked["mechanisms"]:
            check.choice("mechanisms", name, known)
        for name in ("epsilon1", "epsilon2", "k"):
            if not checked[name]:
                raise ValueError(f"{name} has 0 values: give at least one")
        if self.delta is not None and self.parts is not None:
            raise ValueError("parts sets δ from the number of people: leave out delta, or parts")
        if self.delta is not None:
            object.__setattr__(self, "delta", check.number("delta", self.delta, above=0, below=1))
        if self.parts is not None:
            object.__setattr__(self, "parts", check.integer("parts", self.parts, at_least=1))
        if CLASSIC not in checked["B"]:
            checked["B"] = (*checked["B"], CLASSIC)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def cells(self, people: int, rows: RowRule = "clip") -> tuple[Cell, ...]:
        """Every cell, in a fixed order; those equal in distribution to an earlier one say so.

        Args:
            people: How many people the table has: δ hangs on it, and some cells need enough of them.
            rows: How rows came into the unit ball.

        Returns:
            The status quo first, then the technologies in the order of ``mechanisms``, then k-anonymity.
        """
        known = technologies()
        always = (name for name, one in known.items() if one.in_every_grid)
        named = dict.fromkeys([STATUS_QUO, *self.mechanisms, *always])
        cells = [cell for name in named for cell in known[name].cells(self, people)]
        first: dict[str, str] = {}
        return tuple(
            replace(cell, rows=rows) if first.setdefault(cell.experiment, cell.name) == cell.name
            else replace(cell, rows=rows, same_as=first[cell.experiment])
            for cell in cells
        )  # fmt: skip

    def delta_for(self, people: int) -> float:
        """The δ of every cell, for a table of so many people."""
        if self.delta is not None:
            return self.delta
        return delta_per_part(people, self.parts or 1)

    def quick(self) -> "Grid":
        """A few cells of the same kind, for a first look: the largest ε, and four B from end to end."""
        last = len(self.B) - 1
        return replace(
            self, B=tuple(self.B[-(-last * i // 3)] for i in range(4)), epsilon1=self.epsilon1[-1:],
            epsilon2=self.epsilon2[-1:], k=self.k[-1:],
            group_sizes=(*self.group_sizes[:1], *self.group_sizes[-1:]),
        )  # fmt: skip

    def record(self) -> dict[str, Any]:
        """Plain data."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()
        }

    @property
    def totals(self) -> tuple[float, ...]:
        """Every ε₁ + ε₂, for technologies that do not split their ε."""
        return tuple(sorted({self.total(e1, e2) for e1 in self.epsilon1 for e2 in self.epsilon2}))

    @staticmethod
    def total(epsilon1: float, epsilon2: float) -> float:
        """ε₁ + ε₂ as people write it: 3.9999, not 3.9999000000000002."""
        return float(f"{epsilon1 + epsilon2:.12g}")


def _sorted(name: str, values: Sequence[Any], valid: Callable[[str, Any], Any]) -> tuple[Any, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise TypeError(f"{name} = {values!r} is not a list: give values such as (0.25, 1)")
    return tuple(sorted({valid(f"{name}[{i}]", value) for i, value in enumerate(values)}))


# Where a simulation's randomness comes from: its place in the grid, and nothing else.
#
# Not the order of the work, not the number of workers, not which other cells the grid has.


def generator(seed: int, cell: Cell, simulation: int, use: Use) -> np.random.Generator:
    """The generator for one use in one simulation of a cell.

    Args:
        seed: Of the sweep.
        cell: What is released.
        simulation: Its number.
        use: What the randomness is for.

    Returns:
        A generator that depends on these four and nothing else.

    Example:
        >>> cell = Grid().cells(people=100)[0]
        >>> generator(0, cell, 3, "attack").random() == generator(0, cell, 3, "attack").random()
        True
    """
    place = (cell.key >> 32, cell.key & 0xFFFFFFFF, simulation, get_args(Use).index(use))
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

    Example:
        >>> from targetdp.tradeoff import find_sweep
        >>> sweep = find_sweep("togo")
        >>> study, (today, *_, alike) = sweep.study, sweep.cells
        >>> status_quo = study.run(study.X, generator(0, today, 0, "program"))
        >>> simulate(study, alike, alike.build(study.dimensions), status_quo, 0, seed=0).figures[0].metric
        'ties'
    """

    def rng(use: Use) -> np.random.Generator:
        return generator(seed, cell, simulation, use)

    return cell.technology.simulate(Trial(study, cell, mechanism, status_quo, draws, rng))


FORMAT = "targetdp tradeoff 4"
"""Of `run.json`."""

SIMULATIONS = 50
"""The paper's number for each cell."""

FEWEST_TO_DECIDE_BY = 20
"""Fewer simulations of a release with noise are a quick look."""

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

    def __len__(self) -> int:
        """How many simulations it has."""
        return self.end - self.begin


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
        is_partial: Whether the grid is only a part of the one that the program asks for.

    Raises:
        TypeError: A technology of the grid is not made for the study's program.
        ValueError: ``simulations`` or ``seed`` is out of its range.

    Example:
        >>> from targetdp.tradeoff import find_sweep
        >>> sweep = find_sweep("togo", quick=True)
        >>> sweep.simulations, len(sweep.cells), sweep.study.people
        (5, 23, 4201)
    """

    study: Study
    grid: Grid = field(default_factory=Grid)
    simulations: int = SIMULATIONS
    seed: int = 0
    is_partial: bool = False

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
            "scales": self.study.scales_record(),
            "public_record": self.public_record,
            "unit": self.study.unit,
            "grid": self.grid.record(),
            "simulations": self.simulations,
            "seed": self.seed,
            "software": {"targetdp": __version__} | software,
        }

    @property
    def first_look(self) -> tuple[str, ...]:
        """Why its figures are a quick look, and nothing to decide by; empty if they are none."""
        few = self.simulations < FEWEST_TO_DECIDE_BY and any(cell.is_random for cell in self.cells)
        reasons = {
            f"{self.simulations} simulation{'s' * (self.simulations > 1)} of each release with noise, where "
            f"{FEWEST_TO_DECIDE_BY} or more are needed to tell chance from cost": few,
            "a part of the grid only": self.is_partial,
            "these people are invented": self.study.source == "synthetic",
        }
        return tuple(reason for reason, holds in reasons.items() if holds)

    @property
    def public_record(self) -> dict[str, Any]:
        """What pages and requests say of it: whoever changes that by hand has another sweep."""
        study = self.study
        return {
            "program": study.name,
            "title": study.title,
            "kind": study.program.kind,
            "objective": study.objective,
            "people": study.people,
            "counted": study.counted,
            "currency": study.currency,
            "alike_groups": [one.record() for one in study.program.people.alike_groups],
            "rows": study.rows,
            "comparison_only": study.comparison_only,
            "chance": study.program.chance,
            "features": list(study.features),
            FIRST_LOOK: list(self.first_look),
        }

    def record(self) -> dict[str, Any]:
        """What `run.json` says of it."""
        return {
            "format": FORMAT,
            **mark_of(self.study.source),
            FINGERPRINT: self.fingerprint,
            **self.public_record,
            "made_of": self.made_of,
            "cells": [asdict(cell) for cell in self.cells],
        }

    @cached_property
    def fingerprint(self) -> str:
        """The hash of `made_of`."""
        return fingerprint_of(self.made_of)

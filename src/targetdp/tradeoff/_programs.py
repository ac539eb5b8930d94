"""From a program's name or file to a sweep."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from targetdp._core import Progress
from targetdp.attacks import HOLDOUT
from targetdp.normalization import RowRule, data_scales, normalize
from targetdp.populations import Example, draw
from targetdp.programs import (
    QUOTA,
    TOGO_ADULTS,
    Aid,
    Folds,
    Lending,
    Loans,
    OpenProgram,
    Program,
    ProgramSettings,
    QuotaRule,
    example_terms,
    load_program,
    read_program_file,
)
from targetdp.tradeoff._study import Study
from targetdp.tradeoff._sweep import SIMULATIONS, Grid, Sweep
from targetdp.tradeoff._technology import technologies

QUICK_SIMULATIONS = 5

NIGERIA_PARTS = 6
"""The paper cuts the Nigerian table into so many random parts."""


def find_sweep(
    program: str, *, quick: bool = False, simulations: int | None = None, seed: int | None = None,
    rows: RowRule | None = None, quota_rule: QuotaRule | None = None, allow_code: bool = False,
    progress: Progress | None = None,
) -> Sweep:  # fmt: skip
    """The sweep of a built-in program (`togo`, `nigeria`) or of a program file.

    Args:
        program: The name, or the path of a program file.
        quick: Whether it is a first look: a few cells, a few simulations.
        simulations: How often each cell is tried. What is given here wins over the file.
        seed: Of all randomness.
        rows: How rows come into the unit ball.
        quota_rule: Whether there is one quota for all, or one in each fold.
        allow_code: Whether a program file may name an estimator of another package than scikit-learn and
            LightGBM: importing that runs its code.
        progress: Whom to tell how far reading the table is.

    Returns:
        A sweep that `run` takes.

    Raises:
        ValueError: No program has that name, or something in the file is wrong, such as a technology that
            nobody knows, or an estimator whose code was not allowed.

    Example:
        >>> find_sweep("togo", quick=True).cells[0].name
        'status quo'
    """
    if program in BUILT_IN:
        sweep = built_in(program, rows=rows or "clip", quota_rule=quota_rule)
    elif Path(program).exists():
        path = Path(program)
        given = (("rows", rows), ("quota_rule", quota_rule))
        instead = {name: value for name, value in given if value is not None}
        settings = read_program_file(path, instead, allow_code=allow_code)
        try:
            grid_of(settings)  # a name that nobody knows is refused before the table is read
        except ValueError as error:
            raise ValueError(f"program file {path}: grid: {error}") from error
        sweep = sweep_of(load_program(settings, progress=progress), path.stem)
    else:
        raise ValueError(
            f"program = {program!r} is neither a file nor one of {', '.join(BUILT_IN)}: check the name, or "
            "write one with targetdp program init"
        )
    if quick:
        few = min(QUICK_SIMULATIONS, sweep.simulations)
        grid = _without_slow_ones(sweep.grid).quick()
        sweep = replace(sweep, grid=grid, simulations=few, is_partial=grid != sweep.grid)
    if simulations is not None:
        sweep = replace(sweep, simulations=simulations)
    return sweep if seed is None else replace(sweep, seed=seed)


def _without_slow_ones(grid: Grid) -> Grid:
    """A grid without technologies that take too long for a first look, unless the grid names its own."""
    if grid.mechanisms != Grid().mechanisms:
        return grid
    known = technologies()
    return replace(grid, mechanisms=tuple(name for name in grid.mechanisms if known[name].in_quick_looks))


def sweep_of(program: OpenProgram, name: str) -> Sweep:
    """The sweep that a program file asks for, under a name."""
    settings = program.settings
    _parts_must_fit(settings, len(program.rows))
    study = Study(
        name=name,
        source=settings.source or "confidential",  # where nobody said anything
        features=settings.features,
        X=program.rows,
        program=program.program,
        folds=program.folds,
        scales=program.scales,
        unit=settings.unit,
        rows=settings.rows,
        title=settings.title or "",
        currency=settings.money,
    )
    return Sweep(study, grid_of(settings), settings.simulations, settings.seed)


def grid_of(settings: ProgramSettings) -> Grid:
    """The grid of a program file."""
    return Grid(**settings.grid.model_dump(), parts=None if settings.parts == 1 else settings.parts)


def built_in(name: str, *, rows: RowRule = "clip", quota_rule: QuotaRule | None = None) -> Sweep:
    """The paper's case study on an invented population of the same size.

    Args:
        name: ``"togo"`` (aid) or ``"nigeria"`` (lending).
        rows: How rows come into the unit ball.
        quota_rule: Whether there is one quota for all, or one in each fold; for aid only.

    Returns:
        The sweep with the paper's grid.

    Raises:
        ValueError: ``quota_rule`` is given for a program without a quota.

    Example:
        >>> built_in("nigeria").grid.parts
        6
    """
    example, terms = draw(name), example_terms(name)
    program, parts = BUILT_IN[name](example, quota_rule)
    scales = data_scales(example.X)
    study = Study(
        name=name,
        source="synthetic",
        features=example.features,
        X=normalize(example.X, scales, rows).X,
        program=program,
        folds=Folds(len(example.X)),
        scales=scales,
        unit=terms.currency or "people",
        rows=rows,
        title=terms.title or "",
    )
    return Sweep(study, Grid(parts=parts), SIMULATIONS)


_BuiltIn: TypeAlias = Callable[[Example, QuotaRule | None], tuple[Program, int | None]]


def _togo(example: Example, quota_rule: QuotaRule | None) -> tuple[Program, int | None]:
    groups = _groups(example)
    return Aid(example.y, QUOTA, TOGO_ADULTS, groups=groups, quota_rule=quota_rule or "once"), None


def _nigeria(example: Example, quota_rule: QuotaRule | None) -> tuple[Program, int | None]:
    if quota_rule is not None:
        raise ValueError(f"quota_rule = {quota_rule!r}: nigeria has a threshold and no quota; leave it out")
    amount, revenue, interest = (example.column(name).astype(np.float64) for name in example.money)
    return Lending(example.y, Loans(amount, revenue, interest), groups=_groups(example)), NIGERIA_PARTS


BUILT_IN: Mapping[str, _BuiltIn] = MappingProxyType({"togo": _togo, "nigeria": _nigeria})
"""Programs by name: what is decided with an example population, and in how many parts it is privatized."""


def _groups(example: Example) -> dict[str, list[str]]:
    return {name: [str(group) for group in example.column(name)] for name in example.groups}


def _parts_must_fit(settings: ProgramSettings, people: int) -> None:
    """Every random part needs a person, also among those who are left when some are held out.

    A trade-off holds people out to measure attribute inference: the paper's 500, or a quarter.
    """
    held_out = min(HOLDOUT, people // 4)
    most = people - held_out
    if settings.parts > most:
        raise ValueError(
            f"parts = {settings.parts} is outside 1 to {most}: table {settings.table} has {people:,} people, "
            f"a trade-off holds out {held_out:,} of them, and every part needs someone; 1 is usual"
        )

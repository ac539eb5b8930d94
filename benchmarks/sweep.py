"""The whole paper grid with program and attacks: our sweep against the naive stack, simulation by simulation.

The naive stack is what the paper's words and tools come to: Algorithm 1 with all of its n×k noise, a box
around every released row compared with everyone, Anonymeter for every column and number of known columns, and
scikit-learn fold by fold. It would take hours to weeks, so one simulation is timed and multiplied; its time
hardly depends on B. Ours is the real sweep, writing and summary included, run with a handful of simulations.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, confusion_matrix, roc_auc_score

from benchmarks import inference
from benchmarks.release import scratch
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say, figure
from targetdp._core import Floats, at_most
from targetdp.attacks import NET_SIZES, attribute_inference, singling_out, split_holdout
from targetdp.mechanisms import LEAST_NOISE, Partitioned, PrivateProjection, literal_private_projection
from targetdp.programs import Aid, Lending
from targetdp.tradeoff import PROJECTION, SIMULATIONS, Cell, Grid, Study, Sweep, built_in, run

LEAST = {"togo": 300.0, "nigeria": 500.0}
"""How many times faster the grid must be."""


class Counts(NamedTuple):
    """Simulations of each cell in two short runs: their difference is what one more costs.

    ``queried`` people are attacked by Anonymeter, scaled to all; none, where that takes too long to start.
    """

    simulations: tuple[int, int]
    queried: int


COUNTS, QUICK_COUNTS = {"togo": Counts((2, 6), 200), "nigeria": Counts((1, 2), 200)}, Counts((1, 2), 0)

SHOWN = (0.05, 0.25, 2.0)
"""B of the simulations that are timed part by part."""

PARTS = ("privatize", "program", "singling out", "attribute inference")
NET_SAMPLE = 200


@dataclass
class Clock:
    """CPU seconds of this process by part of a simulation."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add what is done inside to a part."""
        begin = time.process_time()
        yield
        self.seconds[name] += time.process_time() - begin


def measure(effort: Effort, say: Say) -> Section:
    """Both case studies; the quick run has the smaller one only."""
    tables: list[Table] = []
    bars: list[Bar] = []
    figures: dict[str, Any] = {}
    for name in ("togo",) if effort.quick else tuple(LEAST):
        sweep, counts = built_in(name), QUICK_COUNTS if effort.quick else COUNTS[name]
        naive, reason = _naive(sweep, counts.queried, say)
        ours = {
            mechanism: _by_part(sweep, mechanism, f"{name}: ours, {mechanism}", say)
            for mechanism in (PROJECTION, LEAST_NOISE)
        }
        fixed, each = _whole(sweep, counts.simulations, name, say)
        grid = fixed + SIMULATIONS * each
        paper = SIMULATIONS * sum(cell.mechanism == PROJECTION for cell in sweep.cells)
        theirs = None if reason else paper * sum(naive.values())
        tables.append(_table(name, sweep.study, naive, ours, grid, theirs, paper, counts, reason))
        ratio = None if theirs is None else theirs / grid
        bars.append(
            Bar(f"whole paper grid, {name}, naive / ours", ratio, LEAST[name], "at least", not effort.quick)
        )
        figures[name] = {
            "naive, seconds by part": naive, "ours, seconds by part": ours, "paper simulations": paper,
            "ours, seconds for the grid": grid, "ours, fixed": fixed, "naive, seconds for the grid": theirs,
        }  # fmt: skip
    return Section(tables, bars, figures)


def _whole(sweep: Sweep, handful: tuple[int, int], name: str, say: Say) -> tuple[float, float]:
    """Seconds of the paper's grid: those that are spent once, and those of one more simulation of each cell.

    The status quo is in it, with the repeated attacks that the paper gives it.
    """
    grid = Grid(mechanisms=(PROJECTION,), group_sizes=(), parts=sweep.grid.parts)
    spent = []
    for simulations in handful:
        say(f"{name}: our sweep of the paper's grid, {simulations} simulations of each cell")
        with scratch() as folder, at_most(1):
            begin = time.process_time()
            run(Sweep(sweep.study, grid, simulations), folder / "sweep")
            spent.append(time.process_time() - begin)
    each = (spent[1] - spent[0]) / (handful[1] - handful[0])
    return spent[0] - handful[0] * each, each


def _by_part(sweep: Sweep, mechanism: str, title: str, say: Say) -> dict[str, float]:
    """What one simulation costs us at the largest ε, as the mean over a small, a middle and a large B."""
    largest = max(cell.epsilon or 0.0 for cell in sweep.cells)
    cells = [
        cell for cell in sweep.cells
        if cell.mechanism == mechanism and cell.B in SHOWN and cell.epsilon == largest
    ]  # fmt: skip
    _ours(sweep.study, cells[1], Clock())  # compiles
    clock = Clock()
    for cell in cells:
        say(f"{title}, B = {cell.B:g}")
        _ours(sweep.study, cell, clock)
    return {part: seconds / len(cells) for part, seconds in clock.seconds.items()}


def _ours(study: Study, cell: Cell, clock: Clock) -> None:
    rng, mechanism = np.random.default_rng(1), cell.build(study.dimensions)
    assert mechanism is not None
    with at_most(1):
        with clock.part("privatize"):
            X_priv = mechanism.privatize(study.X, rng)
        with clock.part("program"):
            study.run(X_priv, rng)
        with clock.part("singling out"):
            singling_out(study.X, X_priv)
        working, holdout = split_holdout(study.X, study.holdout, rng)
        W, H = study.X[working], study.X[holdout]
        with clock.part("privatize"):
            W_priv = mechanism.privatize(W, rng)
        with clock.part("attribute inference"):
            attribute_inference(W, W_priv, H, rng=rng)


def _naive(sweep: Sweep, queried: int, say: Say) -> tuple[dict[str, float], str]:
    """What one simulation costs the naive stack, by part, or why there is no figure."""
    study, clock, rng = sweep.study, Clock(), np.random.default_rng(1)
    cell = next(one for one in sweep.cells if one.mechanism == PROJECTION and one.B == 0.25)
    say(f"{study.name}: the naive stack, privatize")
    with clock.part("privatize"):
        X_priv = _literal(cell, study.X, rng)
    say(f"{study.name}: the naive stack, program")
    with clock.part("program"):
        _by_scikit_learn(study, X_priv)
    say(f"{study.name}: the naive stack, singling out")
    clock.seconds["singling out"] = _nets_by_numpy(study.X, X_priv)
    working, _ = split_holdout(study.X, study.holdout, rng)
    with clock.part("privatize"):
        W_priv = _literal(cell, study.X[working], rng)
    say(f"{study.name}: the naive stack, attribute inference")
    python = inference.its_python()
    if queried == 0:
        return clock.seconds, "it takes too long to start for a quick run"
    seconds, reason = inference.seconds_of_anonymeter(python, study.X[working], W_priv, queried)
    everyone = study.people / len(working)  # the holdout is attacked as well
    clock.seconds["attribute inference"] = study.dimensions * everyone * sum(seconds.values())
    return clock.seconds, reason


def _literal(cell: Cell, X: Floats, rng: np.random.Generator) -> Floats:
    """Algorithm 1 to the letter, part by part of the table if the paper does so."""
    built = cell.build(X.shape[1])
    mechanism = built.mechanism if isinstance(built, Partitioned) else built
    assert isinstance(mechanism, PrivateProjection)
    out = np.empty_like(X)
    for rows in np.array_split(rng.permutation(len(X)), cell.parts or 1):
        out[rows] = literal_private_projection(mechanism, X[rows], rng)
    return out


def _nets_by_numpy(X: Floats, Z: Floats) -> float:
    """Each box is compared with everyone, one net size after the other: some boxes, scaled to all."""
    deviation = Z.std(axis=0)
    begin = time.process_time()
    for size in NET_SIZES:
        for z in Z[:NET_SAMPLE]:
            inside = (np.abs(X - z) <= size * deviation).all(axis=1)
            if inside.sum() == 1:
                inside.argmax()
    return (time.process_time() - begin) * len(Z) / NET_SAMPLE


def _by_scikit_learn(study: Study, X: Floats) -> None:
    """Fit, predict and score fold by fold; ranks and money at the end."""
    program = study.program
    model: Callable[[], Any] = Ridge if isinstance(program, Aid) else LogisticRegression
    y, predicted = program.outcomes, np.empty(len(X))
    for fitted_on, part in study.folds:
        fitted = model().fit(X[fitted_on], y[fitted_on])
        predicted[part] = (
            fitted.predict(X[part]) if isinstance(program, Aid) else fitted.predict_proba(X[part])[:, 1]
        )
    if isinstance(program, Aid):
        truth, chosen = y <= np.quantile(y, program.quota), predicted <= np.quantile(predicted, program.quota)
        spearmanr(predicted, y)
    else:
        assert isinstance(program, Lending)
        truth, chosen = y == 1, predicted > program.threshold
        loans = program.money
        profit = np.where(truth, np.where(chosen, 1, -1) * loans.revenue, 0.0)
        (profit - np.where(chosen & ~truth, loans.amount + loans.interest, 0.0)).sum()
    roc_auc_score(truth, predicted)
    for _, part in study.folds:
        accuracy_score(truth[part], chosen[part])
        confusion_matrix(truth[part], chosen[part])


def _table(
    name: str, study: Study, naive: Mapping[str, float], ours: Mapping[str, Mapping[str, float]],
    grid: float, theirs: float | None, paper: int, counts: Counts, reason: str,
) -> Table:  # fmt: skip
    table = new_table(
        f"The whole paper grid, {name} ({study.people:,} × {study.dimensions}): a simulation by part",
        "part", "naive", "ours, projection", "naive / ours", "ours, least noise",
        caption=f"Naive: Algorithm 1 to the letter, numpy boxes ({NET_SAMPLE} of them, scaled), Anonymeter "
        f"({counts.queried} people, scaled to all, every column and h), scikit-learn; one simulation at "
        f"B = 0.25, multiplied by {paper:,}. Ours by part: the mean of one simulation each at B = "
        f"{', '.join(f'{B:g}' for B in SHOWN)}. Our grid: the sweep itself, writing and summary included, "
        f"with {' and '.join(map(str, counts.simulations))} simulations of each cell, multiplied to "
        f"{SIMULATIONS}; cells equal in distribution are computed once. All: CPU time of one thread."
        + (f" Anonymeter did not run: {reason}." if reason else ""),
    )  # fmt: skip
    printed, least = ours[PROJECTION], ours[LEAST_NOISE]
    rows = {part: (naive[part], printed[part], least[part]) for part in PARTS}
    rows["one simulation"] = (sum(naive.values()), sum(printed.values()), sum(least.values()))
    for part, (slow, fast, other) in rows.items():
        missing = bool(reason) and part in {"attribute inference", "one simulation"}
        table.add_row(
            part, "–" if missing else _told(slow), _told(fast), "–" if missing else figure(slow / fast),
            _told(other),
        )  # fmt: skip
    table.add_row(
        f"the grid, {paper:,} simulations", "–" if theirs is None else _told(theirs), _told(grid),
        "–" if theirs is None else figure(theirs / grid), "",
    )  # fmt: skip
    return table


def _told(seconds: float) -> str:
    if seconds >= 3600:
        return f"{figure(seconds / 3600)} h"
    return f"{figure(seconds)} s" if seconds >= 1 else f"{figure(1e3 * seconds)} ms"

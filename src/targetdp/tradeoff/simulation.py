"""One simulation of one cell: a private table, what the program makes of it, and what attackers do.

The program and the net attack (singling out) meet a release of everyone. Attribute inference needs people
who are not in the release: a second one is made of the working set, without a random holdout.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from targetdp.attacks.distinguishing import Formula, distinguishing
from targetdp.attacks.inference import attribute_inference, split_holdout
from targetdp.attacks.protection import Protection
from targetdp.attacks.singling_out import singling_out
from targetdp.mechanisms import Mechanism, NoiseMechanism
from targetdp.programs.base import Result
from targetdp.tradeoff.grid import PROJECTION, Cell
from targetdp.tradeoff.seeds import Use, generator
from targetdp.tradeoff.study import Study
from targetdp.typing import Floats

ATTACKS = ("singling_out", "attribute_inference")
"""Run in every simulation: a score for each of their settings."""

DERIVED = ("distinguishing", "exact_epsilon", "crowd")
"""Known without a simulation, once for each cell: from the noise, or (the crowd within B) from the rows."""

EVERYBODY = ""
"""The setting of a program's figure about everybody; a group is ``column=group``."""


@dataclass(frozen=True)
class Figure:
    """One number of one simulation. An attack's has an interval, about other people like these."""

    metric: str
    setting: str
    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Simulated:
    """All figures of one simulation, and how many seconds each part of it took."""

    figures: tuple[Figure, ...]
    seconds: dict[str, float] = field(compare=False)


def simulate(
    study: Study, cell: Cell, mechanism: Mechanism | None, status_quo: Result, simulation: int, *,
    seed: int, draws: int = 1,
) -> Simulated:  # fmt: skip
    """One simulation. ``mechanism`` is the cell's own, ``draws`` how often known columns are drawn.

    Guarantees: the same figures whenever and wherever it is run with the same software on a processor of
    the same kind: all randomness comes from the seed, the cell and the number of the simulation.
    """
    seconds: dict[str, float] = {}

    def rng(use: Use) -> np.random.Generator:
        return generator(seed, cell, simulation, use)

    with _timed(seconds, "privatize"):
        X_priv = _released(mechanism, study.X, rng("release"))
    with _timed(seconds, "program"):
        result = study.run(X_priv, rng("program"))
        figures = list(_program_figures(result, status_quo))
    with _timed(seconds, "singling_out"):
        figures += _attack_figures("singling_out", singling_out(study.X, X_priv))
    if study.dimensions > 1:  # one column leaves nothing to be guessed from
        working, holdout = split_holdout(study.X, study.holdout, rng("holdout"))
        W = study.X[working]
        with _timed(seconds, "privatize"):
            W_priv = _released(mechanism, W, rng("working set"))
        with _timed(seconds, "attribute_inference"):
            protection = attribute_inference(
                W, W_priv, study.X[holdout], draws=draws, columns=study.features, rng=rng("attack")
            )
            figures += _attack_figures("attribute_inference", protection)
    return Simulated(tuple(figures), seconds)


def derive(cell: Cell, mechanism: Mechanism | None, dimensions: int) -> tuple[Figure, ...]:
    """What the noise alone tells of a cell: distinguishing protection, and the true ε at its B and δ.

    For the paper's algorithm distinguishing protection also comes as printed and as corrected; the formula
    is the setting. Without a guarantee (the status quo, k-anonymity) protection is 0 and ε infinite.
    """
    formulas: tuple[Formula, ...] = ("exact",)
    if cell.mechanism == PROJECTION:
        formulas = ("exact", "as_printed", "corrected")
    scores = {formula: distinguishing(mechanism, dimensions, formula=formula).score for formula in formulas}
    promise, epsilon = cell.guarantee, math.inf
    if isinstance(mechanism, NoiseMechanism) and promise is not None:
        epsilon = mechanism.epsilon(distance=promise.B, delta=promise.delta, dimensions=dimensions)
    return (
        *(Figure("distinguishing", formula, score) for formula, score in scores.items()),
        Figure("exact_epsilon", "", epsilon),
    )


def _released(mechanism: Mechanism | None, X: Floats, rng: np.random.Generator) -> Floats:
    return X if mechanism is None else mechanism.privatize(X, rng)


def _program_figures(result: Result, status_quo: Result) -> Iterator[Figure]:
    groups = result.people.groups
    settings = [EVERYBODY] + [
        f"{column}={label}"
        for column, labels in zip(groups.columns, groups.labels, strict=True) for label in labels
    ]  # fmt: skip
    yield Figure("ties", EVERYBODY, float(result.ties))
    for metric, values in (dict(result.figures) | result.against(status_quo)).items():
        for setting, value in zip(settings, values.tolist(), strict=True):
            yield Figure(metric, setting, value)


def _attack_figures(attack: str, protection: Protection) -> Iterator[Figure]:
    for name, setting in protection.settings.items():
        yield Figure(attack, name, setting.score, *setting.interval)


@contextmanager
def _timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    seconds[part] = seconds.get(part, 0.0) + time.perf_counter() - begin

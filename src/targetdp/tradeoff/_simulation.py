"""One simulation of one cell: a private table, what the program makes of it, and what attackers do.

The program and the net attack (singling out) meet a release of everyone. Attribute inference needs people
who are not in the release: a second one is made of the working set, without a random holdout. Two rounds are
attacked both inside their sample and outside it (`two_rounds.py`).
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from targetdp._core import Floats
from targetdp.attacks import (
    Formula,
    Protection,
    attribute_inference,
    distinguishing,
    row_inference,
    score_inference,
    singling_out,
    split_holdout,
)
from targetdp.mechanisms import Mechanism, NoiseMechanism
from targetdp.programs import TWO_ROUNDS, Result, ScoredProgram
from targetdp.targeting import Rounds
from targetdp.tradeoff._grid import PROJECTION, Cell
from targetdp.tradeoff._study import Study
from targetdp.tradeoff._sweep import Use, generator

# What a simulation hands back: numbers with names, and how long each part of it took.

ATTACKS = ("singling_out", "attribute_inference", "informed_inference")
"""Run in every simulation: a score for each of their settings. The last one needs noise of a known law."""

DERIVED = ("distinguishing", "exact_epsilon", "crowd")
"""Known without a simulation, once for each cell: from the noise, or (the crowd within B) from the rows."""

INSIDE, OUTSIDE = "inside the sample", "outside the sample"
"""Whom a figure of two rounds is about."""

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


def program_figures(result: Result, status_quo: Result) -> Iterator[Figure]:
    """Every figure of a program's result, about everybody and each group."""
    groups = result.people.groups
    settings = [EVERYBODY] + [
        f"{column}={label}"
        for column, labels in zip(groups.columns, groups.labels, strict=True) for label in labels
    ]  # fmt: skip
    yield Figure("ties", EVERYBODY, float(result.ties))
    for metric, values in (dict(result.figures) | result.against(status_quo)).items():
        for setting, value in zip(settings, values.tolist(), strict=True):
            yield Figure(metric, setting, value)


def attack_figures(attack: str, protection: Protection) -> Iterator[Figure]:
    """The score of each of an attack's settings."""
    for name, setting in protection.settings.items():
        yield Figure(attack, name, setting.score, *setting.interval)


@contextmanager
def timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Add what this takes to a part's seconds."""
    begin = time.perf_counter()
    yield
    seconds[part] = seconds.get(part, 0.0) + time.perf_counter() - begin


# One simulation in two rounds: a private sample, weights, private scores, and what attackers do with both.
#
# Nearly everybody is outside the sample, and that is who is decided about: one noisy number of each is
# released. Of people in it all columns are. Attackers meet both releases, and the worse of the two counts.


def in_two_rounds(
    study: Study,
    rounds: Rounds,
    status_quo: Result,
    rng: Callable[[Use], np.random.Generator],
    draws: int,
) -> Simulated:
    """One simulation; ``rng`` gives the generator for each use.

    The program decides about everybody by weights learned without her part. Attackers of people inside the
    sample meet the private rows of a sample as large as the table, as in a cell of one round; of people
    outside it, scores of everybody by weights learned from those rows. The paper's attribute inference looks
    for a row with the columns that are known of somebody: scores have none, and only the informed attacker,
    who knows whose score is whose, is one for them.
    """
    program = study.program
    seconds: dict[str, float] = {}
    assert isinstance(program, ScoredProgram)  # noqa: S101 (a sweep refuses others)
    release = rng("release")
    with timed(seconds, "privatize"):
        Z = rounds.first.privatize(study.X, release)
    with timed(seconds, "program"):
        predicted = rounds.predict(program, study.X, Z, study.folds, rng("scores"))
        figures = list(program_figures(program.judge(predicted, rng("program"), study.folds), status_quo))
        learned = rounds.learn(Z, program)
    with timed(seconds, "privatize"):
        scores = rounds.release(study.X, learned, release)[:, None]
    exact = study.X @ learned.w[:, None]
    with timed(seconds, "singling_out"):
        figures += _of(INSIDE, "singling_out", singling_out(study.X, Z))
        figures += _of(OUTSIDE, "singling_out", singling_out(exact, scores))
    if study.dimensions > 1:  # one column leaves nothing to be guessed from
        working, holdout = split_holdout(study.X, study.holdout, rng("holdout"))
        W, out = study.X[working], study.X[holdout]
        with timed(seconds, "privatize"):
            W_priv = rounds.first.privatize(W, rng("working set"))
        with timed(seconds, "attribute_inference"):
            searched = attribute_inference(
                W, W_priv, out, draws=draws, columns=study.features, rng=rng("attack")
            )
            figures += _of(INSIDE, "attribute_inference", searched)
        known: dict[str, Any] = {
            "known": [study.dimensions - 1],
            "population": study.X,
            "columns": study.features,
        }
        with timed(seconds, "informed_inference"):
            informed = rng("informed")
            inside = row_inference(W, W_priv, rounds.first, out, rng=informed, **known)
            outside = score_inference(
                W, scores[working], learned.w, rounds.second, out, rng=informed, **known
            )
            figures += _of(INSIDE, "informed_inference", inside)
            figures += _of(OUTSIDE, "informed_inference", outside)
    return Simulated(tuple(figures), seconds)


def _of(who: str, attack: str, protection: Protection) -> Iterator[Figure]:
    """An attack's figures, each with whom it is about."""
    for figure in attack_figures(attack, protection):
        yield replace(figure, setting=f"{who}: {figure.setting}")


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

    if cell.mechanism == TWO_ROUNDS:
        return in_two_rounds(study, cell.rounds(study.dimensions), status_quo, rng, draws)
    with timed(seconds, "privatize"):
        X_priv = _released(mechanism, study.X, rng("release"))
    with timed(seconds, "program"):
        result = study.run(X_priv, rng("program"))
        figures = list(program_figures(result, status_quo))
    with timed(seconds, "singling_out"):
        figures += attack_figures("singling_out", singling_out(study.X, X_priv))
    if study.dimensions > 1:  # one column leaves nothing to be guessed from
        working, holdout = split_holdout(study.X, study.holdout, rng("holdout"))
        W = study.X[working]
        with timed(seconds, "privatize"):
            W_priv = _released(mechanism, W, rng("working set"))
        with timed(seconds, "attribute_inference"):
            protection = attribute_inference(
                W, W_priv, study.X[holdout], draws=draws, columns=study.features, rng=rng("attack")
            )
            figures += attack_figures("attribute_inference", protection)
        if cell.has_known_noise and isinstance(mechanism, NoiseMechanism):
            with timed(seconds, "informed_inference"):
                informed = row_inference(
                    W, W_priv, mechanism, study.X[holdout], known=[study.dimensions - 1], population=study.X,
                    columns=study.features, rng=rng("informed"),
                )  # fmt: skip
                figures += attack_figures("informed_inference", informed)
    return Simulated(tuple(figures), seconds)


def derive(cell: Cell, mechanism: Mechanism | None, dimensions: int) -> tuple[Figure, ...]:
    """What the noise alone tells of a cell: distinguishing protection, and the true ε at its B and δ.

    For the paper's algorithm distinguishing protection also comes as printed and as corrected; the formula
    is the setting. Of two rounds the worse counts, of people inside the sample or outside it; each is told,
    too. Without a guarantee (the status quo, k-anonymity, rows that are not clipped) protection is 0 and ε
    infinite; the paper's formulas stay what they are.
    """
    formulas: tuple[Formula, ...] = ("exact",)
    if cell.mechanism == PROJECTION:
        formulas = ("exact", "as_printed", "corrected")
    scores: dict[str, float] = {
        formula: distinguishing(mechanism, dimensions, formula=formula).score for formula in formulas
    }
    promise, epsilon, noises = cell.guarantee, math.inf, cell.noises(dimensions)
    if promise is not None and noises:
        epsilon = max(
            noise.epsilon(distance=promise.B, delta=promise.delta, dimensions=dimensions) for noise in noises
        )
    if cell.mechanism == TWO_ROUNDS:
        groups = zip((INSIDE, OUTSIDE), noises, strict=True)
        scores |= {who: distinguishing(noise, dimensions).score for who, noise in groups}
        scores["exact"] = min(scores.values())
    if promise is None:
        scores |= {setting: 0.0 for setting in scores if setting not in {"as_printed", "corrected"}}
    return (
        *(Figure("distinguishing", setting, score) for setting, score in scores.items()),
        Figure("exact_epsilon", "", epsilon),
    )


def _released(mechanism: Mechanism | None, X: Floats, rng: np.random.Generator) -> Floats:
    return X if mechanism is None else mechanism.privatize(X, rng)

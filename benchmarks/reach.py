"""How far it goes: releases to ten million rows, attacks and a sweep's simulation to a hundred thousand."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.crowd import write_crowd
from benchmarks.people import EPSILON, B, paper_delta, people
from benchmarks.release import new_desk, release, scratch
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say
from targetdp._core import Floats
from targetdp.attacks import (
    attribute_inference,
    linkage,
    membership,
    reconstruction,
    row_inference,
    singling_out,
)
from targetdp.mechanisms import LEAST_NOISE, SphericalLaplace
from targetdp.programs import Aid, Folds
from targetdp.tradeoff import Cell, Grid, Study, generator, simulate

HOLDOUT = 500
MATCHING, MATCHED = "linkage, one-to-one ways as well", 25_000
"""It leaves these ways out for more people (``matching_limit``)."""
STEEPEST = 2.0
"""Exponent of comparing all pairs."""


@dataclass(frozen=True)
class Attacked:
    """Original rows, their release, people who are not in it, and the noise."""

    X: Floats
    Z: Floats
    holdout: Floats
    noise: SphericalLaplace

    @classmethod
    def of(cls, n: int) -> "Attacked":
        """So many people."""
        everyone = people(n + HOLDOUT, 10)
        noise = SphericalLaplace(B=B, epsilon=EPSILON, delta=paper_delta(n))
        X = everyone[HOLDOUT:]
        return cls(X, noise.privatize(X, np.random.default_rng(1)), everyone[:HOLDOUT], noise)


ATTACKS: Mapping[str, Callable[[Attacked], object]] = {
    "singling out": lambda a: singling_out(a.X, a.Z),
    "attribute inference": lambda a: attribute_inference(a.X, a.Z, a.holdout, rng=np.random.default_rng(0)),
    "inference, whose row is known": lambda a: row_inference(
        a.X, a.Z, a.noise, a.holdout, rng=np.random.default_rng(0)
    ),
    "reconstruction": lambda a: reconstruction(a.Z, a.noise, a.X, rng=np.random.default_rng(0)),
    "membership": lambda a: membership(a.X, a.Z, a.holdout, a.noise, rng=np.random.default_rng(0)),
    "linkage": lambda a: linkage(
        a.X, a.Z, a.noise, assignment_limit=0, matching_limit=0, rng=np.random.default_rng(0)
    ),
    MATCHING: lambda a: linkage(a.X, a.Z, a.noise, rng=np.random.default_rng(0)),
}


def measure(effort: Effort, say: Say) -> Section:
    """Wall times; a fitted exponent for each."""
    scale = 50 if effort.quick else 1
    rows = [n // scale for n in (100_000, 1_000_000, 10_000_000)]
    few, most = ([1_000, 2_000, 4_000], []) if effort.quick else ([6_250, 25_000, 100_000], [1_000_000])
    releases, of_releases = _releases(rows, effort, say)
    attacks, of_attacks, steepest = _attacks(few, most, say)
    sweeps, of_sweeps = _sweeps(few, say)
    bars = [
        Bar("growth: the steepest attack's exponent", steepest, STEEPEST, "at most", not effort.quick),
        Bar("growth: exponent of a release", of_releases["exponent"], 1.1, "at most", not effort.quick),
    ]
    figures = {"releases": of_releases, "attacks": of_attacks, "sweep": of_sweeps}
    return Section([releases, attacks, sweeps], bars, figures)


def _releases(sizes: Sequence[int], effort: Effort, say: Say) -> tuple[Table, dict[str, Any]]:
    seconds = []
    with scratch() as folder:
        for n in sizes:
            say(f"release of {n:,} rows")
            source = write_crowd(folder / "crowd.parquet", n, 10)
            release(source, folder / "warm.parquet", new_desk(source, 10))
            seconds.append(min(_timed(source, folder / "out.parquet") for _ in range(effort.rounds)))
    table, exponent = _growth("How far releases go: targetdp privatize, 10 columns", sizes, {"": seconds})
    return table, {"rows": list(sizes), "seconds": seconds, "exponent": exponent[""]}


def _timed(source: Path, out: Path) -> float:
    desk = new_desk(source, 10)
    begin = time.perf_counter()
    release(source, out, desk)
    return time.perf_counter() - begin


def _attacks(sizes: Sequence[int], more: Sequence[int], say: Say) -> tuple[Table, dict[str, Any], float]:
    found: dict[str, list[float]] = {name: [] for name in ATTACKS}
    for attack in ATTACKS.values():
        attack(Attacked.of(600))  # compiles
    for n in (*sizes, *more):
        attacked = Attacked.of(n)
        for name, attack in ATTACKS.items():
            # The net attack goes ten times as far as the others.
            if (n in more and name != "singling out") or (name == MATCHING and n > MATCHED):
                continue
            say(f"{name}, {n:,} people")
            begin = time.perf_counter()
            attack(attacked)
            found[name].append(time.perf_counter() - begin)
    title = "How far attacks go: 10 columns, spherical Laplace at B = 0.25, a holdout of 500"
    caption = (
        "One call each, all settings, two threads where there are. Membership compares everybody with every "
        "row up to a thousand million pairs, then attacks a sample (most_pairs); one-to-one ways are left "
        f"out by linkage above {MATCHED:,} people (matching_limit)."
    )
    table, exponents = _growth(title, (*sizes, *more), found, caption)
    figures = {"people": [*sizes, *more], "seconds": found, "exponents": exponents}
    return table, figures, max(exponents.values())


def _sweeps(sizes: Sequence[int], say: Say) -> tuple[Table, dict[str, Any]]:
    found: dict[str, list[float]] = {LEAST_NOISE: [], "score": []}
    for n in sizes:
        X = people(n, 10)
        y = np.exp(X @ np.arange(1.0, 11.0) + 0.5 * np.random.default_rng(3).standard_normal(n))
        study = Study("crowd", "synthetic", tuple(f"f{j}" for j in range(10)), X, Aid(y), Folds(n))
        cells = {cell.mechanism: cell for cell in Grid(B=(B,), epsilon1=(3.0,), epsilon2=(0.9999,)).cells(n)}
        for name, seconds in found.items():
            say(f"a simulation of {name}, {n:,} people")
            if not seconds:
                _simulation(study, cells[name], cells["status quo"])  # compiles
            seconds.append(_simulation(study, cells[name], cells["status quo"]))
    title = "How far a sweep goes: one simulation with program and attacks, 10 columns, B = 2"
    table, exponents = _growth(title, sizes, found)
    return table, {"people": list(sizes), "seconds": found, "exponents": exponents}


def _simulation(study: Study, cell: Cell, today: Cell) -> float:
    mechanism = cell.build(study.dimensions)
    status_quo = study.run(study.X, generator(0, today, 0, "program"))
    begin = time.perf_counter()
    simulate(study, cell, mechanism, status_quo, 0, seed=0)
    return time.perf_counter() - begin


def _growth(
    title: str, sizes: Sequence[int], found: Mapping[str, Sequence[float]], caption: str = ""
) -> tuple[Table, dict[str, float]]:
    table = new_table(
        title, "what", *(f"{n:,}" for n in sizes), "exponent of time",
        caption=f"Wall times. {caption}".strip(),
    )  # fmt: skip
    exponents = {}
    for name, seconds in found.items():
        known = sizes[: len(seconds)]
        exponents[name] = float(np.polyfit(np.log(known), np.log(seconds), 1)[0])
        cells = [f"{s:.3g} s" for s in seconds] + ["–"] * (len(sizes) - len(seconds))
        table.add_row(name or "privatize", *cells, f"{exponents[name]:.2f}")
    return table, exponents

"""Every mechanism against the floor: as many numpy normals as the table has values."""

from functools import partial

import numpy as np

from benchmarks.people import EPSILON, B, paper_delta, paper_projection, people
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Call, Say, in_turns
from targetdp._core import Floats
from targetdp.mechanisms import GaussianNoise, Mechanism, Mondrian, Partitioned, SphericalLaplace, Staircase

COLUMNS = 10
MOST_OVER_FLOOR = 3.0
GAUSSIAN = "Gaussian"
SIMULATION, RELEASE = "simulation", "release"


def measure(effort: Effort, say: Say) -> Section:
    """Seconds per million rows, and how many times the floor that is."""
    n = 100_000 if effort.quick else 1_000_000
    X = people(n, COLUMNS)
    rng = np.random.default_rng(1)
    floors = {columns: f"numpy normals, {columns} columns" for columns in (COLUMNS, 1)}
    sides: dict[str, Call] = {
        name: partial(rng.standard_normal, (n, columns)) for columns, name in floors.items()
    }
    mechanisms = _mechanisms(X)
    for name, (mechanism, table) in mechanisms.items():
        sides[f"{name}, {SIMULATION}"] = partial(mechanism.privatize, table, rng)
        if not isinstance(mechanism, Mondrian):
            sides[f"{name}, {RELEASE}"] = partial(mechanism.privatize, table)
    times = in_turns(sides, rounds=max(1, effort.rounds - 1), seconds=effort.seconds / 2, say=say)

    report = new_table(
        f"Seconds per million rows (measured at {n:,}), and how many times numpy's normals",
        "mechanism", "d", "simulation", "× floor", "release", "× floor",
        caption="Floor: default_rng().standard_normal of as many values. Mondrian draws nothing. "
        "A release's projection R is public and kept.",
    )  # fmt: skip
    per_million = 1e6 / n
    for columns, floor in floors.items():
        report.add_row(
            "floor: numpy normals", str(columns), f"{times.best(floor) * per_million:.3f}", "1", "", ""
        )
    ratios: dict[str, float] = {}
    for name, (_, table) in mechanisms.items():
        cells = []
        for kind in (SIMULATION, RELEASE):
            side = f"{name}, {kind}"
            if side in sides:
                ratio = times.ratio(side, floors[table.shape[1]])
                ratios[side] = ratio.best
                cells += [f"{times.best(side) * per_million:.3f}", str(ratio)]
            else:
                cells += ["the same", ""]
        report.add_row(name, str(table.shape[1]), *cells)
    bars = [
        Bar(f"{GAUSSIAN} {kind} / numpy normals", ratios[f"{GAUSSIAN}, {kind}"], MOST_OVER_FLOOR, "at most")
        for kind in (SIMULATION, RELEASE)
    ]
    return Section([report], bars, {"rows": n, "seconds": times.rounds, "times the floor": ratios})


def _mechanisms(X: Floats) -> dict[str, tuple[Mechanism, Floats]]:
    """Each mechanism at one and the same guarantee, and the table that it gets."""
    n, delta = len(X), paper_delta(len(X))
    printed = paper_projection(n)
    return {
        GAUSSIAN: (GaussianNoise(B=B, epsilon=EPSILON, delta=delta), X),
        "spherical Laplace, δ > 0": (SphericalLaplace(B=B, epsilon=EPSILON, delta=delta), X),
        "spherical Laplace, pure": (SphericalLaplace(B=B, epsilon=EPSILON), X),
        "projection, printed": (printed, X),
        "projection, exact": (paper_projection(n, calibration="exact"), X),
        "projection, printed, 6 parts": (Partitioned(printed, parts=6, rows=n), X),
        "Mondrian, group_size 2": (Mondrian(group_size=2), X),
        "staircase": (Staircase(B=B, epsilon=EPSILON), np.ascontiguousarray(X[:, :1])),
    }

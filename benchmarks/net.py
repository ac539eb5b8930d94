"""The net attack: all net sizes against numpy's comparison of all pairs and scipy's cKDTree, and its growth.

Both sides use two threads where they can, so that times here are wall times, taken in turns.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from rich.table import Table
from scipy.spatial import cKDTree

from benchmarks.people import paper_delta, paper_projection, people
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import WALL, Call, Say, best_call, figure, in_turns
from targetdp._core import Floats, Silent
from targetdp.attacks import NET_SIZES, isolated_by_nets
from targetdp.mechanisms import SphericalLaplace

SIZES = np.array(NET_SIZES)
NUMPY_BAR, TREE_BAR, MILLION_SECONDS = 500.0, 5.0, 60.0
SAMPLE = 100
"""Released rows that numpy compares with everyone; its time is in proportion to them."""

OURS, TREE, NEAR = "ours", "cKDTree", "cKDTree within reach"
PRINTED = "Algorithm 1 as printed, B = 0.25"
RELEASES: dict[str, Callable[[Floats], Floats]] = {
    "spherical Laplace, B = 0.25": lambda X: _laplace(X, 0.25),
    "spherical Laplace, B = 0.05": lambda X: _laplace(X, 0.05),
    PRINTED: lambda X: paper_projection(len(X)).privatize(X, np.random.default_rng(1)),
}
FIRST = next(iter(RELEASES))


def measure(effort: Effort, say: Say) -> Section:
    """Against numpy, against cKDTree, and alone as n and d grow."""
    n, d = (1_000, 15) if effort.quick else (20_788, 15)
    many = 5_000 if effort.quick else 100_000
    against = new_table(
        f"Net attack, {len(SIZES)} net sizes at once: same people singled out", "table and release",
        "ours", "numpy", "numpy / ours", "cKDTree", "cKDTree / ours", "cKDTree within reach / ours",
        caption=f"Wall times. numpy compares {SAMPLE} released rows with everyone, scaled to all of them. "
        "cKDTree: 2 neighbors, p = ∞, 2 workers, its tree built anew, as ours is; within reach: no farther "
        "than the largest net size.",
    )  # fmt: skip
    figures: dict[str, object] = {}
    bars = []
    for shape in ((n, d), (many, 10)):
        for name, release in RELEASES.items():
            title = f"{shape[0]:,} × {shape[1]}, {name}"
            say(title)
            X = people(*shape)
            Z = release(X)
            answers: dict[str, Floats] = {}
            sides: dict[str, Call] = {
                OURS: partial(_keep, answers, OURS, partial(_ours, X, Z)),
                TREE: partial(_keep, answers, TREE, partial(_tree, X, Z, np.inf)),
                NEAR: partial(_tree, X, Z, np.nextafter(SIZES[-1], 2)),
            }
            rounds = 1 if name == PRINTED else effort.rounds  # the tree takes minutes there
            times = in_turns(sides, rounds=rounds, seconds=0, say=say, cold=[TREE, NEAR], clock=WALL)
            assert np.array_equal(answers[TREE], answers[OURS]), f"cKDTree finds other people: {title}"
            ours, tree, near = (times.best(side) for side in sides)
            numpy = _numpy(X, Z) if shape[0] == n else None
            against.add_row(
                title, f"{ours * 1e3:,.0f} ms", "–" if numpy is None else f"{numpy:,.0f} s",
                "–" if numpy is None else figure(numpy / ours), f"{tree:,.2f} s", figure(tree / ours),
                figure(near / ours),
            )  # fmt: skip
            figures[title] = {OURS: ours, "numpy": numpy, TREE: tree, NEAR: near}
            if name == FIRST and numpy is not None:
                bars.append(_bar("Net attack, numpy / ours", title, numpy / ours, NUMPY_BAR, effort))
            if name != PRINTED and shape[0] == many:
                bars.append(_bar("Net attack, cKDTree / ours", title, tree / ours, TREE_BAR, effort))
    growth, last = _growth(effort, say, figures)
    if not effort.quick:
        bars.append(Bar("Net attack, 1,000,000 × 10, seconds", last, MILLION_SECONDS, "at most"))
    return Section([against, growth], bars, figures)


def _growth(effort: Effort, say: Say, figures: dict[str, object]) -> tuple[Table, float]:
    sizes = (1_000, 4_000) if effort.quick else (10_000, 100_000, 1_000_000)
    table = new_table(
        f"Net attack, growth ({FIRST})", "rows", *(f"{d} columns" for d in (5, 10, 20)),
        caption="Wall seconds on two threads, all net sizes, exact.",
    )  # fmt: skip
    last = 0.0
    for n in sizes:
        cells = []
        for d in (5, 10, 20):
            say(f"growth: {n:,} × {d}")
            if n * d > 10_000_000:
                cells.append("–")
                continue
            X = people(n, d)
            Z = RELEASES[FIRST](X)
            seconds = best_call(lambda X=X, Z=Z: _ours(X, Z), 0.5, calls=1, clock=time.perf_counter)  # type: ignore[misc]
            cells.append(f"{seconds:.3g} s")
            figures[f"growth {n} × {d}"] = seconds
            last = seconds if d == 10 else last
        table.add_row(f"{n:,}", *cells)
    return table, last


def _laplace(X: Floats, B: float) -> Floats:
    mechanism = SphericalLaplace(B=B, epsilon=4, delta=paper_delta(len(X)))
    return mechanism.privatize(X, np.random.default_rng(1))


def _keep(answers: dict[str, Floats], side: str, find: Callable[[], Floats]) -> None:
    answers[side] = find()


def _ours(X: Floats, Z: Floats) -> Floats:
    return isolated_by_nets(X, Z, SIZES, Silent()).astype(np.float64)


def _tree(X: Floats, Z: Floats, reach: float) -> Floats:
    deviation = Z.std(axis=0)
    nearest = cKDTree(X / deviation).query(
        Z / deviation, k=2, p=np.inf, workers=2, distance_upper_bound=reach
    )
    apart, who = (np.asarray(part) for part in nearest)
    isolated = np.zeros((len(SIZES), len(X)))
    for k, size in enumerate(SIZES):
        isolated[k, who[(apart[:, 0] <= size) & (size < apart[:, 1]), 0]] = 1
    return isolated


def _numpy(X: Floats, Z: Floats) -> float:
    """Each box is compared with everyone, one net size after the other, as the paper's words say."""
    deviation = Z.std(axis=0)

    def sample() -> None:
        for size in SIZES:
            for z in Z[:SAMPLE]:
                inside = (np.abs(X - z) <= size * deviation).all(axis=1)
                if inside.sum() == 1:
                    inside.argmax()

    return best_call(sample, 0, calls=3, clock=time.perf_counter) * len(Z) / SAMPLE


def _bar(name: str, title: str, measured: float, bar: float, effort: Effort) -> Bar:
    return Bar(f"{name}, {title}", measured, bar, "at least", not effort.quick)

"""How time grows with rows and with columns: time per value, and the slope of log time."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from rich.table import Table

from benchmarks.people import EPSILON, B, paper_delta, paper_projection, people
from benchmarks.section import Effort, Section, new_table
from benchmarks.timing import Call, Say, figure, in_turns
from targetdp.mechanisms import GaussianNoise, Mechanism, Mondrian, SphericalLaplace

FLOOR = "numpy normals"


def measure(effort: Effort, say: Say) -> Section:
    """Rows at 10 columns, then columns at 10,000 rows (a tenth of it if quick)."""
    scale = 10 if effort.quick else 1
    by_rows = [(n // scale, 10) for n in (10_000, 100_000, 1_000_000)]
    by_columns = [(10_000 // scale, d) for d in (10, 100, 1_000)]
    rows_table, rows_figures = _grow("rows, d = 10", by_rows, 0, effort, say)
    columns_table, columns_figures = _grow(f"columns, n = {10_000 // scale:,}", by_columns, 1, effort, say)
    return Section([rows_table, columns_table], [], {"rows": rows_figures, "columns": columns_figures})


def _grow(
    title: str, shapes: Sequence[tuple[int, int]], axis: int, effort: Effort, say: Say
) -> tuple[Table, dict[str, object]]:
    sizes = [shape[axis] for shape in shapes]
    rng = np.random.default_rng(1)
    sides: dict[str, Call] = {}
    for shape in shapes:
        X = people(*shape)
        sides[_side(FLOOR, shape)] = partial(rng.standard_normal, shape)
        for name, mechanism in _mechanisms(shape[0]).items():
            sides[_side(name, shape)] = partial(mechanism.privatize, X, rng)
    times = in_turns(sides, rounds=min(2, effort.rounds), seconds=effort.seconds / 4, say=say)

    table = new_table(
        f"Growth with the number of {title} (simulations): ns per value", "mechanism",
        *(f"{size:,}" for size in sizes), "last / first", "exponent of time",
        caption="Exponent 1: time in proportion to the table."
        + (" The projection multiplies every row by two d×d matrices." if axis else ""),
    )  # fmt: skip
    figures: dict[str, object] = {}
    for name in (FLOOR, *_mechanisms(shapes[0][0])):
        seconds = [times.best(_side(name, shape)) for shape in shapes]
        per_value = [t * 1e9 / (n * d) for t, (n, d) in zip(seconds, shapes, strict=True)]
        exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        table.add_row(
            name, *(figure(ns) for ns in per_value), figure(per_value[-1] / per_value[0]), f"{exponent:.2f}"
        )
        figures[name] = {"ns per value": dict(zip(sizes, per_value, strict=True)), "exponent": exponent}
    return table, figures


def _mechanisms(n: int) -> dict[str, Mechanism]:
    delta = paper_delta(n)
    return {
        "Gaussian": GaussianNoise(B=B, epsilon=EPSILON, delta=delta),
        "spherical Laplace, δ > 0": SphericalLaplace(B=B, epsilon=EPSILON, delta=delta),
        "projection, k = 10,000": paper_projection(n),
        "Mondrian, group_size 2": Mondrian(group_size=2),
    }


def _side(name: str, shape: tuple[int, int]) -> str:
    return f"{name}, {shape[0]:,} × {shape[1]:,}"

"""Cryptographic normals on a grid against numpy's ordinary ones."""

from functools import partial

import numpy as np

from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Call, Say, in_turns
from targetdp.noise import SecretWords, add_gaussian, grid_for

MOST_OVER_NUMPY = 1.0
OURS, NUMPY = "add_gaussian", "numpy"


def measure(effort: Effort, say: Say) -> Section:
    """Nanoseconds per normal at several sizes."""
    table = new_table(
        "Cryptographic normals (add_gaussian, SecretWords) against numpy's PCG64", "values",
        "ours, ns each", "numpy, ns each", "ours / numpy",
        caption="Ours: AES-256-CTR words, noise rounded to the grid and added to a rounded signal (zeros), "
        "into a new array. numpy: standard_normal(out=...), no new array.",
    )  # fmt: skip
    bars, figures = [], {}
    for count in (1_000_000,) if effort.quick else (1_000_000, 3_000_000, 10_000_000):
        signal, out = np.zeros((count // 10, 10)), np.ones((count // 10, 10))
        words, rng, grid = SecretWords(), np.random.Generator(np.random.PCG64(1)), grid_for(1.0)
        sides: dict[str, Call] = {
            OURS: partial(add_gaussian, signal, 1.0, grid, words),
            NUMPY: partial(rng.standard_normal, out=out),
        }
        times = in_turns(sides, rounds=2 * effort.rounds, seconds=effort.seconds / 2, say=say)
        ratio = times.ratio(OURS, NUMPY)
        ns = {side: times.best(side) * 1e9 / count for side in sides}
        table.add_row(f"{count:,}", f"{ns[OURS]:.2f}", f"{ns[NUMPY]:.2f}", str(ratio))
        bars.append(Bar(f"{count:,} secret normals / numpy's", ratio.best, MOST_OVER_NUMPY, "at most"))
        figures[f"{count}"] = {"ns per value": ns, "ours / numpy": ratio.best, "seconds": times.rounds}
    return Section([table], bars, figures)

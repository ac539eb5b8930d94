"""Decisions against scores of the same table, file to file, in turns: a bit costs no more than a number.

Wall time, as for scores: everything that `targetdp privatize` does is inside, the look, the charge and the
certificate included. The cut is found on the way, so that scores are sorted into batches.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.crowd import write_crowd
from benchmarks.release import in_mebibytes, new_desk, peak_memory, release, scratch, timed
from benchmarks.score import FEATURES, SCORED, SCORES
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say, Times

MOST = 1.15
EXPECTED = {2.0: [[-1e6, 0.0], [0.0, 0.3], [1e6, 1.0]], 0.25: [[-2.0, 0.0], [-0.2, 0.3], [2.0, 1.0]]}


def asked(B: float) -> dict[str, Any]:
    """A request for one decision by the weights of the scores."""
    one = {"weights": SCORES["weights"], "share": 0.29, "expected": EXPECTED[B]}
    return {"release": "decisions", "B": B, "epsilon": 4.0, "decisions": [one]}


def measure(effort: Effort, say: Say) -> Section:
    """Both kinds of decisions against scores, then memory in processes of their own."""
    n = 100_000 if effort.quick else 5_000_000
    names = {B: f"decision, B = {B:g}" for B in EXPECTED}
    shape = f"{n:,} × {FEATURES}"
    with scratch() as folder:
        say(f"{shape}: writing the table")
        source = write_crowd(folder / "crowd.parquet", n, FEATURES)

        def at_a_new_desk(given: dict[str, Any]) -> Callable[[], Callable[[Path], object]]:
            def made() -> Callable[[Path], object]:
                desk = new_desk(source, FEATURES)
                return lambda out: release(source, out, desk, **given)

            return made

        sides = {SCORED: at_a_new_desk(SCORES)} | {names[B]: at_a_new_desk(asked(B)) for B in EXPECTED}
        for number, side in enumerate(sides.values()):
            side()(folder / f"warm{number}.parquet")
        times = Times(timed(sides, folder, effort.rounds, say))
        say("memory")
        memory = {name: peak_memory(source, FEATURES, folder, **asked(B)) for B, name in names.items()}
    table = new_table(
        f"Decisions against scores, {shape} (wall time, fsync)", "release", "best", "ratio", "peak memory",
        caption="Linear, file to file, at a new desk, ids in clear; the cut is found on the way.",
    )  # fmt: skip
    table.add_row(SCORED, f"{times.best(SCORED):.2f} s", "1", "")
    bars = []
    for name in names.values():
        ratio = times.ratio(name, SCORED)
        table.add_row(name, f"{times.best(name):.2f} s", str(ratio), in_mebibytes(memory[name]))
        bars.append(Bar(f"{name}, {shape} / scores", ratio.best, MOST, "at most", not effort.quick))
    figures = {"seconds": times.rounds, "peak memory in MiB": memory}
    return Section([table], bars, figures)

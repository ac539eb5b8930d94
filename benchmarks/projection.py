"""The private projection against Algorithm 1 to the letter: time, and memory as k grows."""

import os
import time
import tracemalloc
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.people import paper_projection, people
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Call, Say, best_call, figure, in_turns
from targetdp.mechanisms.literal import literal_private_projection

SHAPES = ((4_201, 10), (20_788, 15))
LEAST_SPEEDUP = 500.0
MOST_GROWTH = 1.5
LITERAL, SIMULATION, RELEASE = "literal", "simulation", "release"


def measure(effort: Effort, say: Say) -> Section:
    """Time, what BLAS's own threads do to it, and memory, at the sizes of the paper's two case studies."""
    parts = {
        "speed": _speed(effort, say),
        "threads": _threads(effort, say),
        "peak bytes": _memory(say),
    }
    return Section(
        [table for part in parts.values() for table in part.tables],
        [bar for part in parts.values() for bar in part.bars],
        {name: part.figures for name, part in parts.items()},
    )


def _speed(effort: Effort, say: Say) -> Section:
    table = new_table(
        "Private projection, k = 10,000, full rank: literal against fast", "n × d",
        "literal", "simulation", "literal / simulation", "release", "literal / release",
        caption="Best call, and the range over single rounds. A simulation draws a fresh R at every call.",
    )  # fmt: skip
    bars, figures = [], {}
    for n, d in SHAPES:
        shape, X, mechanism = f"{n:,} × {d}", people(n, d), paper_projection(n)
        rng = np.random.default_rng(1)
        sides: dict[str, Call] = {
            LITERAL: partial(literal_private_projection, mechanism, X, rng),
            SIMULATION: partial(mechanism.privatize, X, rng),
            RELEASE: partial(mechanism.privatize, X),
        }
        literal_private_projection(mechanism, X[:100], rng)
        times = in_turns(sides, rounds=effort.rounds, seconds=effort.seconds, say=say, cold=[LITERAL])
        ratios = {side: times.ratio(LITERAL, side) for side in (SIMULATION, RELEASE)}
        table.add_row(
            shape,
            f"{times.best(LITERAL):.2f} s",
            f"{times.best(SIMULATION) * 1e3:.2f} ms", str(ratios[SIMULATION]),
            f"{times.best(RELEASE) * 1e3:.2f} ms", str(ratios[RELEASE]),
        )  # fmt: skip
        bars.append(
            Bar(f"projection {shape}, literal / fast", ratios[SIMULATION].best, LEAST_SPEEDUP, "at least")
        )
        figures[shape] = {
            "seconds": times.rounds,
            "literal / simulation": ratios[SIMULATION].best,
            "literal / release": ratios[RELEASE].best,
        }
    return Section([table], bars, figures)


def _threads(effort: Effort, say: Say) -> Section:
    table = new_table(
        "The fast projection (a simulation) with as many BLAS threads as there are CPUs: wall time", "n × d",
        "one thread", "as it comes", "as it comes / one",
        caption="Well above 1 on a busy machine: small products wait for a second thread.",
    )  # fmt: skip
    figures = {}
    for n, d in SHAPES:
        shape, run = (
            f"{n:,} × {d}",
            partial(paper_projection(n).privatize, people(n, d), np.random.default_rng(1)),
        )
        best = {1: float("inf"), os.cpu_count() or 1: float("inf")}
        for _ in range(effort.rounds):
            for threads, so_far in best.items():
                say(f"{shape}, BLAS threads: {threads}")
                with threadpool_limits(threads):
                    best[threads] = min(so_far, best_call(run, effort.seconds, clock=time.perf_counter))
        one, all_of_them = best[1], best[max(best)]
        ms = [f"{seconds * 1e3:.2f} ms" for seconds in (one, all_of_them)]
        table.add_row(shape, *ms, figure(all_of_them / one))
        figures[shape] = {"seconds by threads": best}
    return Section([table], [], figures)


def _memory(say: Say) -> Section:
    small, large = 10_000, 1_000_000
    table = new_table(
        "Peak memory of the private projection (a simulation)", "n × d",
        f"fast, k = {small:,}", f"fast, k = {large:,}", "growth", f"literal, k = {small:,}", "literal / fast",
        caption="tracemalloc, which numpy reports to; the caller's own table is not counted.",
    )  # fmt: skip
    bars, figures = [], {}
    for n, d in SHAPES:
        shape, X, rng = f"{n:,} × {d}", people(n, d), np.random.default_rng(1)
        mechanism = paper_projection(n, small)
        say(f"memory at {shape}")
        peaks = [_peak(partial(paper_projection(n, k).privatize, X, rng)) for k in (small, large)]
        # Batches keep the literal one's memory the same for any number of rows beyond one batch.
        literal = _peak(partial(literal_private_projection, mechanism, X[: SHAPES[0][0]], rng))
        growth = peaks[1] / peaks[0]
        table.add_row(
            shape, f"{peaks[0] / 2**20:.2f} MiB", f"{peaks[1] / 2**20:.2f} MiB", figure(growth),
            f"{literal / 2**20:,.0f} MiB", figure(literal / peaks[0]),
        )  # fmt: skip
        bars.append(Bar(f"projection {shape}, memory at k = 10⁶ / 10⁴", growth, MOST_GROWTH, "at most"))
        figures[shape] = {"fast": dict(zip((small, large), peaks, strict=True)), "literal": literal}
    return Section([table], bars, figures)


def _peak(call: Call) -> int:
    """The most bytes that a call held at once."""
    call()  # compiling and caching are not counted
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

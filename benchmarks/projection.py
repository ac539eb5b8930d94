"""The private projection against Algorithm 1 to the letter: time, and memory as k grows."""

import os
import time
import tracemalloc
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.people import paper_projection, people
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Call, Say, Times, best_call, figure, in_turns
from targetdp.mechanisms import literal_private_projection

SHAPES = ((4_201, 10), (20_788, 15))
LEAST_SPEEDUP = 500.0
MOST_GROWTH = 1.5
LITERAL, SIMULATION, RELEASE = "literal", "simulation", "release"
ONE_THREAD = "simulation, one BLAS thread"


def measure(effort: Effort, say: Say) -> Section:
    """CPU time, wall time and memory, at the sizes of the paper's two case studies."""
    parts = {
        "speed": _speed(effort, say),
        "peak bytes": _memory(say),
    }
    if not effort.quick:
        parts["wall"] = _wall(effort, say)
    return Section(
        [table for part in parts.values() for table in part.tables],
        [bar for part in parts.values() for bar in part.bars],
        {name: part.figures for name, part in parts.items()},
    )


def _speed(effort: Effort, say: Say) -> Section:
    table = new_table(
        "Private projection, k = 10,000, full rank: literal against fast", "n × d",
        "literal", "simulation", "literal / simulation", "release", "literal / release",
        caption="CPU time of one thread: best call, and the range over rounds. A simulation draws a fresh R.",
    )  # fmt: skip
    bars, figures = [], {}
    for n, d in SHAPES[: 1 if effort.quick else None]:
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


def _wall(effort: Effort, say: Say) -> Section:
    """Wall times, for what a user sees; reported without a bar, since neighbors decide them as well."""
    table = new_table(
        "Private projection with BLAS's threads as they come, one per CPU: wall time", "n × d",
        "literal", "simulation", "literal / simulation", "simulation, one thread", "as it comes / one",
        caption="What a user sees, neighbors included. Above 1 at the end: a second BLAS thread costs time.",
    )  # fmt: skip
    figures = {}
    for n, d in SHAPES:
        shape, X, mechanism, rng = f"{n:,} × {d}", people(n, d), paper_projection(n), np.random.default_rng(1)
        literal = partial(literal_private_projection, mechanism, X, rng)
        fast = partial(mechanism.privatize, X, rng)
        rounds: dict[str, list[float]] = {LITERAL: [], SIMULATION: [], ONE_THREAD: []}
        for number in range(1, effort.rounds + 1):
            say(f"wall time at {shape}: round {number} of {effort.rounds}")
            with threadpool_limits(os.cpu_count()):
                rounds[LITERAL].append(best_call(literal, 0, calls=1, clock=time.perf_counter))
                rounds[SIMULATION].append(best_call(fast, effort.seconds, clock=time.perf_counter))
            rounds[ONE_THREAD].append(best_call(fast, effort.seconds, clock=time.perf_counter))
        times = Times(rounds)
        table.add_row(
            shape, f"{times.best(LITERAL):.2f} s", f"{times.best(SIMULATION) * 1e3:.2f} ms",
            str(times.ratio(LITERAL, SIMULATION)),
            f"{times.best(ONE_THREAD) * 1e3:.2f} ms", str(times.ratio(SIMULATION, ONE_THREAD)),
        )  # fmt: skip
        figures[shape] = {"wall seconds": times.rounds}
    return Section([table], [], figures)


def _memory(say: Say) -> Section:
    small, large = 10_000, 1_000_000
    table = new_table(
        "Peak memory of the private projection (a simulation)", "n × d",
        f"fast, k = {small:,}", f"fast, k = {large:,}", "growth", f"literal, k = {small:,}", "literal / fast",
        caption="tracemalloc, which numpy reports to; the caller's own table is not counted. Literal: on "
        "the first 4,201 rows, since it works in batches.",
    )  # fmt: skip
    bars, figures = [], {}
    for n, d in SHAPES:
        shape, X, rng = f"{n:,} × {d}", people(n, d), np.random.default_rng(1)
        mechanism = paper_projection(n, small)
        say(f"memory at {shape}")
        peaks = [_peak(partial(paper_projection(n, k).privatize, X, rng)) for k in (small, large)]
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

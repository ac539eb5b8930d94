"""What earlier releases of the same people cost the next one: it adds up what each of them has spent.

Wall time, in turns: the first release of a desk, and one that comes after nineteen others of all its people.
"""

from collections.abc import Callable
from pathlib import Path

from benchmarks.crowd import write_crowd
from benchmarks.release import new_desk, release, scratch, timed
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say, Times

FIRST, LAST = "first", "twentieth"
EARLIER = 19
FEATURES = 10


def measure(effort: Effort, say: Say) -> Section:
    """Both in turns on one table, at new desks and at one that is used again and again."""
    n = 100_000 if effort.quick else 1_000_000
    shape = f"{n:,} × {FEATURES}"
    with scratch() as folder:
        say(f"{shape}: writing the table")
        source = write_crowd(folder / "crowd.parquet", n, FEATURES)
        used = new_desk(source, FEATURES)
        for number in range(EARLIER):
            say(f"{shape}: release {number + 1} of {EARLIER}")
            release(source, folder / "warm.parquet", used)

        def first() -> Callable[[Path], object]:
            desk = new_desk(source, FEATURES)
            return lambda out: release(source, out, desk)

        sides = {FIRST: first, LAST: lambda: lambda out: release(source, out, used)}
        times = Times(timed(sides, folder, 2 * effort.rounds, say))
    table = new_table(
        "The twentieth release of the same people against the first (wall time)", "rows × columns", FIRST,
        LAST, "ratio", caption="At one desk; later rounds have more than nineteen releases before them.",
    )  # fmt: skip
    ratio = times.ratio(LAST, FIRST)
    table.add_row(shape, f"{times.best(FIRST):.2f} s", f"{times.best(LAST):.2f} s", str(ratio))
    bar = Bar(
        f"release {shape}, twentieth of the same people / first", ratio.best, 1.3, "at most", not effort.quick
    )
    return Section([table], [bar], {"seconds": times.rounds})

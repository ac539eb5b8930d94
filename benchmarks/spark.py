"""The Spark engine on two threads of this machine against the local engine, after Spark has started."""

import os
import sys
import time
from pathlib import Path

from benchmarks.crowd import ID, write_crowd
from benchmarks.release import new_desk, release, scratch
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say, Times

LOCAL, SPARK = "local engine", "Spark, local[2]"
FEATURES = 10
BAR = "release, Spark local[2] / local engine"


def measure(effort: Effort, say: Say) -> Section:
    """Both in turns on one table; without pyspark or Java the bar was not measured."""
    n = 100_000 if effort.quick else 5_000_000
    shape = f"{n:,} × 10"
    title = f"Spark against the local engine at {shape} (wall time, after start-up)"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    say("starting Spark")
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)

        session = (
            SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
            .config("spark.io.encryption.enabled", "true").config("spark.log.level", "FATAL").getOrCreate()
        )  # fmt: skip
    except (ImportError, RuntimeError) as error:
        table = new_table(title, "Spark did not run")
        table.add_row(f"{type(error).__name__}: {error}")
        return Section([table], [Bar(BAR, None, 3, "at most")], {"not measured": str(error)})
    with scratch() as folder:
        say(f"{shape}: writing the table")
        source = write_crowd(folder / "crowd.parquet", n, FEATURES)
        times = _in_turns(source, folder, effort.rounds, say)
    session.stop()
    table = new_table(
        title, "rows × columns", LOCAL, SPARK, "ratio",
        caption="Both sorted by id, certified, with the same noise; reading, noise and ranges on Spark.",
    )  # fmt: skip
    ratio = times.ratio(SPARK, LOCAL)
    table.add_row(shape, f"{times.best(LOCAL):.2f} s", f"{times.best(SPARK):.2f} s", str(ratio))
    bar = Bar(f"{BAR}, {shape}", ratio.best, 3, "at most", not effort.quick)
    return Section([table], [bar], {"seconds": times.rounds})


def _in_turns(source: Path, folder: Path, rounds: int, say: Say) -> Times:
    found: dict[str, list[float]] = {LOCAL: [], SPARK: []}
    for number in range(rounds + 1):  # the first time warms both up
        for name, engine in ((LOCAL, "local"), (SPARK, "spark")):
            say(f"{name} by {ID}, round {number} of {rounds}")
            desk = new_desk(source, FEATURES)
            start = time.perf_counter()
            release(source, folder / "out.parquet", desk, engine=engine)
            if number:
                found[name].append(time.perf_counter() - start)
    return Times(found)

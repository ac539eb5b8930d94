"""A table of Cider's shape: a directory of CSV parts with gaps, a thousand columns, to one features.csv."""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from benchmarks.crowd import FEATURE, ID, write_scales
from benchmarks.release import new_desk, peak_memory, release, scratch
from benchmarks.section import Effort, Section, new_table
from benchmarks.timing import Say

PARTS, COLUMNS = 20, 1_000


def measure(effort: Effort, say: Say) -> Section:
    """One release each way: time here, memory in a process of its own. No bar: reported."""
    n = 1_000 if effort.quick else 100_000
    with scratch() as folder:
        say(f"{n:,} × {COLUMNS:,}: writing CSV parts")
        source = _write_parts(folder / "features", n)
        say("cider: time")
        desk = new_desk(source, COLUMNS)
        start = time.perf_counter()
        release(source, folder / "features.csv", desk)
        seconds = time.perf_counter() - start
        text = sum(file.stat().st_size for file in source.glob("*.csv")) / 2**20
        say("cider: memory")
        memory = peak_memory(source, COLUMNS, folder, name="again.csv")
    table = new_table(
        "Cider: CSV parts with gaps to one features.csv (wall time)", "rows × columns", "text in", "time",
        "text per second", "peak memory",
        caption="Gaps filled with a declared constant, certified.",
    )  # fmt: skip
    table.add_row(
        f"{n:,} × {COLUMNS:,}", f"{text:,.0f} MiB", f"{seconds:.0f} s", f"{text / seconds:.0f} MiB",
        f"{memory:.0f} MiB",
    )  # fmt: skip
    return Section([table], [], {"seconds": seconds, "MiB of text": text, "peak memory in MiB": memory})


def _write_parts(folder: Path, rows: int) -> Path:
    rng = np.random.default_rng(2026)
    folder.mkdir()
    each = rows // PARTS
    for part in range(PARTS):
        columns = {ID: [f"0{part * each + i:09d}" for i in range(each)]}
        for j in range(COLUMNS):
            values = rng.gamma(2.0, 50.0, each)
            values[rng.random(each) < 0.02] = np.nan
            columns[FEATURE.format(j)] = pa.array(values, from_pandas=True)
        pacsv.write_csv(pa.table(columns), folder / f"part-{part:05d}.csv")
    write_scales(folder.with_suffix(".toml"), [FEATURE.format(j) for j in range(COLUMNS)])
    return folder

"""Scoring against a plain read of the features and a plain write of id and score, both with fsync, in turns.

Wall time, as for the release job: everything that `targetdp privatize` does with a request for scores is
inside, the look, the charge and the certificate included. With a sample to leave out, finding its people is
inside, too; the desk then knows one release already.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.crowd import FEATURE, ID, write_crowd
from benchmarks.release import in_mebibytes, new_desk, peak_memory, release, scratch, timed
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say, Times

PLAIN, SCORED, LEFT_OUT = "plain read and write", "score", "score, sample left out"
FEATURES, SAMPLE = 10, 5_000
MOST_MEMORY = 700.0
SCORES: dict[str, Any] = {
    "release": "scores",
    "weights": {
        FEATURE.format(j): weight
        for j, weight in enumerate(np.random.default_rng(7).normal(size=FEATURES).tolist())
    },
}
"""What is asked for."""


def measure(effort: Effort, say: Say) -> Section:
    """Growth with rows, then memory in processes of their own."""
    n = 100_000 if effort.quick else 5_000_000
    times: dict[str, Times] = {}
    memory: dict[str, float] = {}
    rows = {f"{n:,} × 10": (n, effort.rounds), f"{4 * n:,} × 10": (4 * n, max(1, effort.rounds - 1))}
    with scratch() as folder:
        for shape, (count, rounds) in rows.items():
            say(f"{shape}: writing the table")
            source = write_crowd(folder / "crowd.parquet", count, FEATURES)
            times[shape] = _in_turns(source, _sample(source), folder, rounds, say)
            if memory and effort.quick:  # once is enough
                continue
            say(f"{shape}: memory")
            memory[shape] = peak_memory(source, FEATURES, folder, **SCORES)
    first, second = rows
    table = new_table(
        "Scoring against a plain read of the features and a plain write of the scores (wall time, fsync)",
        "rows × columns", PLAIN, SCORED, "ratio", LEFT_OUT, "ratio", "peak memory",
        caption="Plain: id and ten features read by pyarrow, in batches or in one piece, the faster of both, "
        "and id and one number written, dictionary encoding off, snappy. Peak memory of a process of its own "
        "that scores once.",
    )  # fmt: skip
    for shape, t in times.items():
        table.add_row(
            shape, f"{t.best(PLAIN):.2f} s", f"{t.best(SCORED):.2f} s", str(t.ratio(SCORED, PLAIN)),
            f"{t.best(LEFT_OUT):.2f} s", str(t.ratio(LEFT_OUT, PLAIN)), in_mebibytes(memory.get(shape)),
        )  # fmt: skip
    binding = not effort.quick
    growth = times[second].best(SCORED) / times[first].best(SCORED)
    bars = [
        Bar(f"score {first} / plain", times[first].ratio(SCORED, PLAIN).best, 2, "at most", binding),
        Bar(f"score {first}, peak memory in MiB", memory[first], MOST_MEMORY, "at most", binding),
        Bar(f"score {second}, peak memory in MiB", memory.get(second), MOST_MEMORY, "at most", binding),
        Bar(f"score, time at {second} / at {first}", growth, 4.4, "at most", binding),
    ]
    figures = {s: {"seconds": t.rounds, "peak memory in MiB": memory.get(s)} for s, t in times.items()}
    return Section([table], bars, figures)


def _in_turns(source: Path, sample: Path, folder: Path, rounds: int, say: Say) -> Times:
    """All sides one after the other, round after round."""

    def scored() -> Callable[[Path], object]:
        desk = new_desk(source, FEATURES)
        return lambda out: release(source, out, desk, **SCORES)

    def without_the_sample() -> Callable[[Path], object]:
        desk = new_desk(source, FEATURES)
        first = release(sample, folder / "private_sample.parquet", desk).certificate.release
        return lambda out: release(source, out, desk, **SCORES, learned_from=first, leave_out=[first])

    plain = {
        "in batches": partial(_plain, source, whole=False),
        "in one piece": partial(_plain, source, whole=True),
    }
    sides = {name: lambda side=side: side for name, side in plain.items()}
    scored()(folder / "warm.parquet")
    found = timed(sides | {SCORED: scored, LEFT_OUT: without_the_sample}, folder, rounds, say)
    best = [min(pair) for pair in zip(*(found[name] for name in plain), strict=True)]
    return Times({PLAIN: best, SCORED: found[SCORED], LEFT_OUT: found[LEFT_OUT]})


def _plain(source: Path, out: Path, *, whole: bool) -> None:
    """Read everything, write id and one column."""
    schema = pa.schema([(ID, pa.string()), ("score", pa.float64())])
    with (
        pq.ParquetFile(source) as file,
        pq.ParquetWriter(out, schema, use_dictionary=False, compression="snappy") as writer,
    ):
        pieces = [file.read()] if whole else map(_table, file.iter_batches(batch_size=250_000))
        for piece in pieces:
            made = pa.Table.from_arrays([piece.column(0), piece.column(1)], schema=schema)
            writer.write_table(made, row_group_size=250_000)
    handle = os.open(out, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _sample(source: Path) -> Path:
    """The first people of the crowd, who are in no order."""
    raw = source.with_name("sample.parquet")
    with pq.ParquetFile(source) as file:
        pq.write_table(pa.Table.from_batches([next(file.iter_batches(batch_size=SAMPLE))]), raw)
    return raw

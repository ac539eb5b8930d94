"""Scoring against a plain read of the features and a plain write of id and score, both with fsync, in turns.

Wall time, as for the release job: everything that `targetdp score` does is inside, checks and certificate
included. With a sample to leave out, the sample's own verification is inside, too.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.crowd import FEATURE, ID, write_crowd
from benchmarks.release import in_mebibytes, peak_memory, release, scratch
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say, Times
from targetdp.release import weights_text

PLAIN, SCORED, LEFT_OUT = "plain read and write", "score", "score, sample left out"
FEATURES, SAMPLE = 10, 5_000
MOST_MEMORY = 700.0


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
            weights = _weights(folder / "weights.toml")
            sample = _sample(source, folder)
            times[shape] = _in_turns(source, weights, sample, folder, rounds, say)
            if memory and effort.quick:  # once is enough
                continue
            say(f"{shape}: memory")
            memory[shape] = peak_memory(source, FEATURES, folder, weights=str(weights), no_sample=True)
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


def _in_turns(source: Path, weights: Path, sample: Path, folder: Path, rounds: int, say: Say) -> Times:
    """All sides one after the other, round after round; each starts with a disk that has nothing to do."""
    given: dict[str, Any] = {"weights": weights}
    sides: dict[str, Callable[[Path], object]] = {
        "in batches": lambda out: _plain(source, out, whole=False),
        "in one piece": lambda out: _plain(source, out, whole=True),
        SCORED: lambda out: release(source, out, FEATURES, **given, no_sample=True),
        LEFT_OUT: lambda out: release(source, out, FEATURES, **given, sample=sample),
    }
    found: dict[str, list[float]] = {name: [] for name in sides}
    release(source, folder / "warm.parquet", FEATURES, **given, no_sample=True)
    for number in range(1, rounds + 1):
        for name, side in sides.items():
            say(f"{name}, round {number} of {rounds}")
            for old in folder.glob("*out.parquet*"):
                old.unlink()
            os.sync()
            start = time.perf_counter()
            side(folder / "out.parquet")
            found[name].append(time.perf_counter() - start)
    plain = [min(pair) for pair in zip(found["in batches"], found["in one piece"], strict=True)]
    return Times({PLAIN: plain, SCORED: found[SCORED], LEFT_OUT: found[LEFT_OUT]})


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


def _weights(path: Path) -> Path:
    drawn = np.random.default_rng(7).normal(size=(1, FEATURES))
    path.write_text(weights_text([FEATURE.format(j) for j in range(FEATURES)], drawn), encoding="utf-8")
    return path


def _sample(source: Path, folder: Path) -> Path:
    """The first people of the crowd, who are in no order, privatized as a labelled sample would be."""
    raw, out = folder / "sample_raw.parquet", folder / "sample.parquet"
    with pq.ParquetFile(source) as file:
        pq.write_table(pa.Table.from_batches([next(file.iter_batches(batch_size=SAMPLE))]), raw)
    release(raw, out, FEATURES, scales=str(source.with_suffix(".toml")))
    return out

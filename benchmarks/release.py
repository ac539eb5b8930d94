"""The release job against a plain copy of the same file by pyarrow, both with fsync, in turns.

Wall time: the job's threads, the disk and its wait are part of what is measured. Everything that a release
needs is inside: validation, duplicate ids, noise, order, hash, certificate, signature.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.crowd import FEATURE, ID, write_crowd
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say, Times

PLAIN, SORTED, KEPT = "plain copy", "release, sorted by id", "release, order kept"
MOST_MEMORY = 700.0


def measure(effort: Effort, say: Say) -> Section:
    """Growth with rows, then a wide table, then memory in processes of their own."""
    n = 100_000 if effort.quick else 5_000_000
    with scratch() as folder:
        rows = {
            f"{n:,} × 10": (n, 10, effort.rounds),
            f"{4 * n:,} × 10": (4 * n, 10, max(1, effort.rounds - 1)),
            f"{n // 50:,} × 1,000": (n // 50, 1_000, effort.rounds),
        }
        times: dict[str, Times] = {}
        memory: dict[str, float] = {}
        for shape, (count, features, rounds) in rows.items():
            say(f"{shape}: writing the table")
            source = write_crowd(folder / "crowd.parquet", count, features)
            times[shape] = _in_turns(source, features, folder, rounds, say)
            if memory and effort.quick:  # once is enough
                continue
            say(f"{shape}: memory")
            memory[shape] = peak_memory(source, features, folder)
    first, second, wide = rows
    table = new_table(
        "The release job against a plain copy (wall time, fsync on both sides)", "rows × columns", PLAIN,
        SORTED, "ratio", KEPT, "ratio", "peak memory",
        caption="Plain copy: the faster of pyarrow in batches and pyarrow in one piece, dictionary encoding "
        "off, snappy as in the release. Peak memory of a process of its own that does one sorted release.",
    )  # fmt: skip
    for shape, t in times.items():
        table.add_row(
            shape, f"{t.best(PLAIN):.2f} s", f"{t.best(SORTED):.2f} s", str(t.ratio(SORTED, PLAIN)),
            f"{t.best(KEPT):.2f} s", str(t.ratio(KEPT, PLAIN)), in_mebibytes(memory.get(shape)),
        )  # fmt: skip
    binding = not effort.quick
    growth = times[second].best(SORTED) / times[first].best(SORTED)
    bars = [
        Bar(
            f"release {first}, order kept / plain copy",
            times[first].ratio(KEPT, PLAIN).best,
            2,
            "at most",
            binding,
        ),
        Bar(
            f"release {first}, sorted / plain copy",
            times[first].ratio(SORTED, PLAIN).best,
            3,
            "at most",
            binding,
        ),
        Bar(f"release {first}, peak memory in MiB", memory[first], MOST_MEMORY, "at most", binding),
        Bar(f"release {second}, peak memory in MiB", memory.get(second), MOST_MEMORY, "at most", binding),
        Bar(f"release, time at {second} / at {first}", growth, 4.4, "at most", binding),
        Bar(
            f"release {wide}, sorted / plain copy",
            times[wide].ratio(SORTED, PLAIN).best,
            3,
            "at most",
            binding,
        ),
    ]
    figures = {
        shape: {"seconds": t.rounds, "peak memory in MiB": memory.get(shape)} for shape, t in times.items()
    }
    return Section([table], bars, figures)


def _in_turns(source: Path, features: int, folder: Path, rounds: int, say: Say) -> Times:
    """All sides one after the other, round after round; each starts with a disk that has nothing to do."""
    sides: dict[str, Callable[[Path], object]] = {
        "in batches": lambda out: _copy_batches(source, out, features),
        "in one piece": lambda out: _copy_whole(source, out, features),
        SORTED: lambda out: release(source, out, features, keep_order=False),
        KEPT: lambda out: release(source, out, features, keep_order=True),
    }
    found: dict[str, list[float]] = {name: [] for name in sides}
    release(source, folder / "warm.parquet", features, keep_order=False)
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
    return Times({PLAIN: plain, SORTED: found[SORTED], KEPT: found[KEPT]})


def release(source: Path, out: Path, features: int, *, keep_order: bool = False, **more: Any) -> Any:
    """One release of a crowd, as `targetdp privatize` does it."""
    from targetdp.release import make_settings, privatize_file  # noqa: PLC0415 (imported where it is timed)

    given = {
        "id": ID, "features": [FEATURE.format(j) for j in range(features)], "B": 0.25, "epsilon": 4.0,
        "scales": str(source.with_suffix(".toml")), "keep_order": keep_order, "tuned_on": "synthetic",
        "key": source.with_name("signing-key.pem"),
    }  # fmt: skip
    return privatize_file(source, out, make_settings(given | more), force=True)


def in_mebibytes(memory: float | None) -> str:
    """As a table shows it."""
    return "–" if memory is None else f"{memory:.0f} MiB"


def peak_memory(source: Path, features: int, folder: Path, **more: Any) -> float:
    """MiB that a fresh process needs for one release."""
    name = more.pop("name", "out.parquet")
    arguments = json.dumps([str(source), str(folder / name), features, more])
    done = subprocess.run(  # noqa: S603 (our own interpreter and module)
        [sys.executable, "-m", "benchmarks.release", arguments], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def _copy_batches(source: Path, out: Path, features: int) -> None:
    with pq.ParquetFile(source) as file, _writer(out, file.schema_arrow) as writer:
        for batch in file.iter_batches(batch_size=2_500_000 // features):
            writer.write_batch(batch)
    _sync(out)


def _copy_whole(source: Path, out: Path, features: int) -> None:
    table = pq.read_table(source)
    with _writer(out, table.schema) as writer:
        writer.write_table(table, row_group_size=2_500_000 // features)
    _sync(out)


def _writer(out: Path, schema: pa.Schema) -> Any:
    return pq.ParquetWriter(out, schema, use_dictionary=False, compression="snappy")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that goes when it is no longer needed."""
    folder = Path(tempfile.mkdtemp(prefix="targetdp-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _main() -> None:
    """In a process of its own: one release, then its peak memory."""
    source, out, features, more = json.loads(sys.argv[1])
    release(Path(source), Path(out), features, **more)
    # Not resource.getrusage: its maximum begins with what the parent process had when it forked.
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    print(int(peak.split()[1]) / 1024)


if __name__ == "__main__":
    _main()

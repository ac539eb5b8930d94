"""The release job against a plain copy of the same file by pyarrow, both with fsync, in turns.

Wall time: the job's threads, the disk and its wait are part of what is measured. Everything that a release
needs is inside: the look at all rows, the list of people, duplicate ids, the charge, noise, order, hash,
certificate, signature. The desk is new for each release and is made before the clock runs: what earlier
releases cost its people would be measured, too (`again` does).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.crowd import FEATURE, ID, write_crowd
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say, Times

PLAIN, SORTED = "plain copy", "release, sorted by id"
MOST_MEMORY = 800.0
POLICY = """
name = "benchmark"
id = {{ column = "{id}", pseudonyms = false }}
columns.release = {features}
gaps.all = 0
scales = {{ source = "public" }}
limit = {{ B = 0.25, epsilon = 2000, delta = 1e-5 }}
release = {{ epsilon = 8, delta = 1e-5 }}
"""


def measure(effort: Effort, say: Say) -> Section:
    """Growth with rows, then a wide table, then memory in processes of their own."""
    n = 100_000 if effort.quick else 5_000_000
    with scratch() as folder:
        rows = {
            f"{n:,} × 10": (n, 10, effort.rounds),
            f"{4 * n:,} × 10": (4 * n, 10, max(1, effort.rounds - 1)),
            f"{n // 5:,} × 40": (n // 5, 40, effort.rounds),
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
    first, second, broad, wide = rows
    table = new_table(
        "The release job against a plain copy (wall time, fsync on both sides)", "rows × columns", PLAIN,
        SORTED, "ratio", "peak memory",
        caption="Plain copy: the faster of pyarrow in batches and pyarrow in one piece, dictionary encoding "
        "off, snappy as in the release. Release: at a new desk, ids in clear. Peak memory of a process of "
        "its own that does one release.",
    )  # fmt: skip
    for shape, t in times.items():
        table.add_row(
            shape, f"{t.best(PLAIN):.2f} s", f"{t.best(SORTED):.2f} s", str(t.ratio(SORTED, PLAIN)),
            in_mebibytes(memory.get(shape)),
        )  # fmt: skip
    binding = not effort.quick
    growth = times[second].best(SORTED) / times[first].best(SORTED)
    bars = [
        Bar(
            f"release {first}, sorted / plain copy",
            times[first].ratio(SORTED, PLAIN).best,
            2.1,
            "at most",
            binding,
        ),
        Bar(f"release {first}, peak memory in MiB", memory[first], MOST_MEMORY, "at most", binding),
        Bar(f"release {second}, peak memory in MiB", memory.get(second), MOST_MEMORY, "at most", binding),
        Bar(f"release, time at {second} / at {first}", growth, 4.4, "at most", binding),
        Bar(
            f"release {broad}, sorted / plain copy",
            times[broad].ratio(SORTED, PLAIN).best,
            1.7,
            "at most",
            binding,
        ),
        Bar(f"release {broad}, peak memory in MiB", memory.get(broad), 950.0, "at most", binding),
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
    """All sides one after the other, round after round."""
    copies: dict[str, Callable[[Path], object]] = {
        "in batches": lambda out: _copy_batches(source, out, features),
        "in one piece": lambda out: _copy_whole(source, out, features),
    }

    def sorted_release() -> Callable[[Path], object]:
        desk = new_desk(source, features)
        return lambda out: release(source, out, desk)

    sides = {name: lambda copy=copy: copy for name, copy in copies.items()} | {SORTED: sorted_release}
    sorted_release()(folder / "warm.parquet")
    found = timed(sides, folder, rounds, say)
    plain = [min(pair) for pair in zip(*(found[name] for name in copies), strict=True)]
    return Times({PLAIN: plain, SORTED: found[SORTED]})


def timed(
    sides: Mapping[str, Callable[[], Callable[[Path], object]]], folder: Path, rounds: int, say: Say
) -> dict[str, list[float]]:
    """Seconds of each side, round after round; each starts with a disk that has nothing to do.

    A side prepares itself, and what it gives back is timed.
    """
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(1, rounds + 1):
        for name, side in sides.items():
            say(f"{name}, round {number} of {rounds}")
            ready = side()
            for old in folder.glob("*out.parquet*"):
                old.unlink()
            os.sync()
            start = time.perf_counter()
            ready(folder / "out.parquet")
            found[name].append(time.perf_counter() - start)
    return found


def new_desk(source: Path, features: int) -> Path:
    """A desk for people of whom nothing was released yet, with the table's public scales."""
    from targetdp.release import Desk  # noqa: PLC0415 (imported where it is timed)

    policy = POLICY.format(id=ID, features=json.dumps([FEATURE.format(j) for j in range(features)]))
    desk = Path(tempfile.mkdtemp(prefix="desk-", dir=source.parent)) / "desk"
    _as_its_user(desk)
    return Desk.create(desk, policy, scales=source.with_suffix(".toml")).path


def _as_its_user(desk: Path) -> None:
    """Each desk is another user's: the same people at two desks of one user are refused."""
    os.environ["XDG_CONFIG_HOME"] = str(desk.with_name("config"))


def release(source: Any, out: Path, desk: Path, *, engine: str | None = None, **asked: Any) -> Any:
    """One release of a crowd, as `targetdp privatize` does it; ``asked`` are more fields of its request."""
    from targetdp.release import make_request, privatize  # noqa: PLC0415 (imported where it is timed)

    _as_its_user(desk)
    request = make_request(**{"B": 0.25, "epsilon": 4.0, "tuned_on": "synthetic"} | asked)
    return privatize(source, out, desk=desk, request=request, engine=engine, force=True)


def in_mebibytes(memory: float | None) -> str:
    """As a table shows it."""
    return "–" if memory is None else f"{memory:.0f} MiB"


def peak_memory(source: Path, features: int, folder: Path, name: str = "out.parquet", **asked: Any) -> float:
    """MiB that a fresh process needs for one release."""
    arguments = json.dumps([str(source), str(folder / name), str(new_desk(source, features)), asked])
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
    """A folder that goes when it is no longer needed; desks in it are in nobody's list of desks."""
    folder, before = Path(tempfile.mkdtemp(prefix="targetdp-bench-")), os.environ.get("XDG_CONFIG_HOME")
    os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        os.environ.pop("XDG_CONFIG_HOME")
        os.environ.update({} if before is None else {"XDG_CONFIG_HOME": before})


def _main() -> None:
    """In a process of its own: one release, then its peak memory."""
    source, out, desk, asked = json.loads(sys.argv[1])
    release(Path(source), Path(out), Path(desk), **asked)
    # Not resource.getrusage: its maximum begins with what the parent process had when it forked.
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    print(int(peak.split()[1]) / 1024)


if __name__ == "__main__":
    _main()

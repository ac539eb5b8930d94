"""Killed at any moment and started again: the same bytes as an undisturbed run."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from support.faults import count, times
from support.tradeoff import TINY, finished_bytes, sweep
from targetdp.tradeoff import run

TESTS = Path(__file__).parents[1]
SIMULATIONS = 12
SCRIPT = (
    "import sys\nfrom pathlib import Path\nfrom targetdp.tradeoff._run import run\n"
    "from support.tradeoff import sweep\n"
    f"run(sweep(simulations={SIMULATIONS}), Path(sys.argv[1]), jobs=2)\n"
)


def environment() -> dict[str, str]:
    return dict(os.environ) | {"PYTHONPATH": str(TESTS), "OPENBLAS_NUM_THREADS": "1"}


def has_workers(out: Path) -> bool:
    """Whether processes that were started for a run are still there (where the system tells)."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has just ended
            if f"OUT_OF_THIS_TEST={out}".encode() in path.read_bytes():
                return True
    return False


def test_it_survives_a_kill_at_calls_that_touch_the_disk(tmp_path: Path) -> None:
    whole = finished_bytes(run(sweep(grid=TINY), tmp_path / "whole").folder)
    script = Path(__file__).with_name("killed_sweeps.py")
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(script), str(tmp_path), str(times("random kills: tradeoff"))],
        env=environment(), capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    happened = json.loads(done.stdout)
    assert happened["kills"] > 5
    assert happened["ends"] >= 9, "three files, each synced, renamed, and its folder synced"
    folders = [tmp_path / "chain", *tmp_path.glob("end-*"), *tmp_path.glob("random-*")]
    assert len(folders) == happened["ends"] + 2 + happened["folders"]
    for folder in folders:
        assert finished_bytes(folder) == whole
        assert not list(folder.rglob(".*"))
    count("kills at calls: tradeoff", "the same bytes", happened["kills"] + happened["ends"])
    count("random kills: tradeoff", "the same bytes", times("random kills: tradeoff"))


def test_a_run_with_workers_is_killed_and_goes_on_without_them(tmp_path: Path) -> None:
    out = tmp_path / "killed"
    marked = environment() | {"OUT_OF_THIS_TEST": str(out)}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(out)], env=marked)  # noqa: S603
    deadline = time.monotonic() + 100
    while not list((out / "parts").glob("*.parquet")):
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(timeout=30) == -signal.SIGKILL
    while has_workers(out):
        assert time.monotonic() < deadline, "workers do not outlive their parent"
        time.sleep(0.1)
    assert not (out / "summary.parquet").exists()
    same = sweep(simulations=SIMULATIONS)
    again = run(same, out)
    assert 0 < again.computed < again.simulations
    whole = run(same, tmp_path / "whole")
    assert finished_bytes(out) == finished_bytes(whole.folder)

"""Runs of the command line that can be killed: forked from a process that has imported everything.

Run as a script it is that process. Each line on its stdin is a job, `{"argv": […], "cwd": …, "die_at": n}`;
it answers with the child's process id, then with how the child ended. ``die_at`` kills the child, by SIGKILL,
at the n-th call that touches the disk (``-1``: never); the child writes the number of calls that it made.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CALLS = ("rename", "replace", "unlink", "mkdir", "rmdir", "fsync", "link", "pwrite")
"""What is counted, besides what SQLite is told to change: between two of these nothing on disk changes."""


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code, or the signal that killed it; how often it touched the disk."""

    code: int | None
    killed: bool
    calls: int
    words: str


class Zygote:
    """The parent's side."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    def run(self, folder: Path, *arguments: Any, die_at: int = -1, kill_after: float | None = None) -> Ended:
        """A run in a folder, perhaps killed at a call or after some seconds."""
        said, counted = folder / "words.log", folder / "calls.log"
        job = {"argv": list(map(str, arguments)), "cwd": str(folder), "die_at": die_at}
        pid = int(self._ask(json.dumps(job)))
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(pid, signal.SIGKILL)  # it is not reaped before we read the answer, so the id is its own
        status = int(self._ask(None))
        calls = int(counted.read_text() or 0) if counted.exists() else 0  # killed while it wrote: empty
        ended = Ended(
            None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), os.WIFSIGNALED(status), calls,
            said.read_text() if said.exists() else "",
        )  # fmt: skip
        said.unlink(missing_ok=True)
        counted.unlink(missing_ok=True)
        return ended

    def _ask(self, line: str | None) -> str:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write((line or "wait") + "\n")
        stdin.flush()
        return stdout.readline()


def _serve() -> None:
    import targetdp.release.job  # noqa: PLC0415
    import targetdp.release.verify  # noqa: F401, PLC0415
    from targetdp.cli import main  # noqa: PLC0415

    _load_kernels()
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _child(job, main)
        print(pid, flush=True)  # noqa: T201
        sys.stdin.readline()
        # Not before the parent has killed it, if it wants to: until then the id stays taken.
        print(os.waitpid(pid, 0)[1], flush=True)  # noqa: T201


def _load_kernels() -> None:
    """Compiled code is loaded once and not by every child. No thread is started: a fork would lose it."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    from targetdp import GaussianNoise, declared_scales  # noqa: PLC0415
    from targetdp.table.layout import rows_in_ball  # noqa: PLC0415
    from targetdp.table.spill import Spill  # noqa: PLC0415

    rows, _ = rows_in_ball(np.ones((3, 4)), declared_scales(np.zeros(3), np.ones(3)))
    GaussianNoise(B=0.25, epsilon=4.0, delta=0.1).privatize(rows)
    spill = Spill(None, pa.array(["b"]), 3)
    spill.add(pa.array(["a", "b", "c", "d"]), rows, {})
    for bucket in range(spill.buckets):
        spill.sorted_bucket(bucket)
    spill.close()


def _child(job: dict[str, Any], main: Callable[[], None]) -> None:
    os.chdir(job["cwd"])
    log = os.open("words.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    calls = _count_calls(job["die_at"])
    sys.argv = ["targetdp", *job["argv"]]
    code = 0
    try:
        main()
    except SystemExit as left:
        code = int(left.code or 0)
    except BaseException as error:  # noqa: BLE001
        os.write(2, f"Traceback: {error!r}\n".encode())
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    Path("calls.log").write_text(str(calls()), encoding="utf-8")
    os._exit(code)


def _count_calls(die_at: int) -> Callable[[], int]:
    count = 0

    def touch() -> None:
        nonlocal count
        if count == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def before(*args: Any, **kwargs: Any) -> Any:
            touch()
            return call(*args, **kwargs)

        return before

    class Watched(sqlite3.Connection):
        def execute(self, *args: Any) -> sqlite3.Cursor:
            if args[0].startswith(("INSERT", "COMMIT", "CREATE")):
                touch()
            return super().execute(*args)

    connect = sqlite3.connect
    for name in CALLS:
        setattr(os, name, watched(getattr(os, name)))
    sqlite3.connect = lambda *args, **kwargs: connect(*args, factory=Watched, **kwargs)  # type: ignore[assignment]
    return lambda: count


if __name__ == "__main__":
    _serve()

"""Runs of the command line, forked from a process that has imported everything: they start at once.

They can race each other, and be killed, interrupted or harmed. Run as a script it is that process. Each line
on its stdin is a job, `{"runs": [[…], …], "cwd": …, "harms": [{…}, …], "environment": {…}, "logs": …}`; it
answers with the children's process ids, then, asked again, with how they ended. A child writes the number of
calls that it made to the disk; what may happen to it at one of them, `Harm` says.

What a fork cannot show is that a command imports all that it needs: for that, `support.release.command`.
"""

import ctypes
import errno
import io
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import TracebackType
from typing import Any, Self

GROWING = ("mkdir", "fsync", "link", "pwrite", "write")
CALLS = (*GROWING, "rename", "replace", "unlink", "rmdir")
"""What is counted, besides files that are made and what SQLite is told to change: between two of these
nothing on disk changes. The first ones need room."""
ROOMS = ("table", "release", "cli")
"""Rooms of the package whose every module is imported before the first fork."""
SLOW = ("dp_accounting.pld.privacy_loss_distribution", "sklearn.linear_model")
"""What commands import when they need it, and that takes long."""
OWN = ("XDG_CONFIG_HOME",)
"""What each test's runs have of its environment, and not of the test's that came first."""
LATER = ("spark",)
"""But for modules whose names begin like this: they need what may not be installed."""


@dataclass(frozen=True)
class Harm:
    """What happens to a run: a signal at a call (-1: at none); an error at a call, and from then on wherever
    room is needed, if it ``stays``; no file longer than so many bytes; no powers of root, so that permissions
    bind."""

    die_at: int = -1
    die_of: int = signal.SIGKILL
    fail_at: int = -1
    error: int = errno.ENOSPC
    stays: bool = False
    largest_file: int | None = None
    powerless: bool = False


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code, or the signal that killed it; how often it touched the disk."""

    code: int | None
    killed: bool
    calls: int
    out: str
    err: str

    @property
    def words(self) -> str:
        return self.out + self.err


class Zygote:
    """The parent's side."""

    def __init__(self) -> None:
        self._logs = tempfile.TemporaryDirectory(prefix="zygote-")
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)
        self._logs.cleanup()

    def run(
        self, folder: Path, *arguments: Any, die_at: int = -1, kill_after: float | None = None,
        interrupt_at: Path | None = None, by: signal.Signals = signal.SIGINT, harm: Harm | None = None,
    ) -> Ended:  # fmt: skip
        """A run in a folder, perhaps killed at a call or after some seconds, or interrupted at a sight."""
        (pid,) = self._start(folder, [arguments], [harm or Harm(die_at)], {})
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(pid, signal.SIGKILL)  # it is not reaped before we read the answer, so the id is its own
        if interrupt_at is not None:
            deadline = time.monotonic() + 60
            while not interrupt_at.exists():
                assert time.monotonic() < deadline, f"{interrupt_at} was never there"
                time.sleep(0.002)
            os.kill(pid, by)
        (ended,) = self._wait()
        return ended

    def together(self, folder: Path, *runs: Sequence[Any], **environment: str) -> list[Ended]:
        """Runs in one folder that are started at the same time."""
        self._start(folder, runs, [Harm()] * len(runs), environment)
        return self._wait()

    def harmed(
        self, folder: Path, runs: Sequence[Sequence[Any]], harms: Sequence[Harm], **environment: str
    ) -> list[Ended]:
        """Runs that are started at the same time, and what happens to each."""
        self._start(folder, runs, harms, environment)
        return self._wait()

    def _start(
        self, folder: Path, runs: Sequence[Sequence[Any]], harms: Sequence[Harm], environment: dict[str, str]
    ) -> list[int]:
        # The test's own list of desks: this process was started by an earlier test.
        own = {name: os.environ[name] for name in OWN if name in os.environ} | environment
        job = {
            "runs": [list(map(str, run)) for run in runs], "cwd": str(folder),
            "harms": list(map(asdict, harms)), "environment": own, "logs": self._logs.name,
        }  # fmt: skip
        return list(map(int, self._ask(json.dumps(job)).split()))

    def _wait(self) -> list[Ended]:
        return [self._ended(number, int(status)) for number, status in enumerate(self._ask("wait").split())]

    def _ended(self, number: int, status: int) -> Ended:
        killed = os.WIFSIGNALED(status)
        out, err, calls = (self._log(f"{number}.{name}") for name in ("out", "err", "calls"))
        # Who is killed while it writes the number of its calls leaves none.
        return Ended(None if killed else os.WEXITSTATUS(status), killed, int(calls or 0), out, err)

    def _log(self, name: str) -> str:
        path = Path(self._logs.name, name)
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        path.unlink(missing_ok=True)
        return text

    def _ask(self, line: str) -> str:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(line + "\n")
        stdin.flush()
        return stdout.readline()


def _serve() -> None:
    for room in ROOMS:
        package = import_module(f"targetdp.{room}")
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            if not module.name.rpartition(".")[2].startswith(LATER):
                import_module(module.name)
    main = import_module("targetdp.cli").main
    for slow in SLOW:
        import_module(slow)
    load_kernels()
    for line in sys.stdin:
        job = json.loads(line)
        pids = []
        for number, arguments in enumerate(job["runs"]):
            pid = os.fork()
            if pid == 0:
                _child(job, number, arguments, main)
            pids.append(pid)
        print(*pids, flush=True)  # noqa: T201
        sys.stdin.readline()
        # Not before the parent has killed them, if it wants to: until then the ids stay taken.
        print(*(os.waitpid(pid, 0)[1] for pid in pids), flush=True)  # noqa: T201


def load_kernels() -> None:
    """Compiled code is loaded once and not by every child. No thread is started: a fork would lose it."""
    import numpy as np
    import pyarrow as pa

    from targetdp import GaussianNoise, SphericalLaplace, declared_scales
    from targetdp.normalization import rows_in_ball
    from targetdp.release._ledger._people import Sums
    from targetdp.table import Spill

    rows, _ = rows_in_ball(np.ones((3, 4)), declared_scales(np.zeros(3), np.ones(3)))
    GaussianNoise(B=0.25, epsilon=4.0, delta=0.1).privatize(rows)
    SphericalLaplace(B=0.25, epsilon=4.0).privatize(rows)
    Sums(np.arange(3, dtype=np.uint64), 1).add(np.arange(2, dtype=np.uint64), np.ones(1))
    spill = Spill(None, pa.array(["b"]), 3)
    spill.add(pa.array(["a", "b", "c", "d"]), rows, {})
    for bucket in range(spill.buckets):
        spill.sorted_bucket(bucket)
    spill.close()


def _child(job: dict[str, Any], number: int, arguments: list[str], main: Callable[[], None]) -> None:
    os.chdir(job["cwd"])
    os.environ.update(job["environment"])
    logs = Path(job["logs"])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs tests in the background ignores it
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(logs / f"{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    harm = Harm(**job["harms"][number])
    calls = _count_calls(harm)
    if harm.powerless:
        _give_up_powers()
    sys.argv = ["targetdp", *arguments]
    code = 0
    try:
        with _small_files(harm.largest_file):
            main()
    except SystemExit as left:
        code = int(left.code or 0)
    except BaseException as error:  # noqa: BLE001
        sys.stderr.write(f"Traceback: {error!r}\n")
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    (logs / f"{number}.calls").write_text(str(calls()), encoding="utf-8")
    os._exit(code)


@contextmanager
def _small_files(largest: int | None) -> Iterator[None]:
    """The kernel refuses what would make a file longer, whoever writes: SQLite and Python's files, too."""
    if largest is None:
        yield
        return
    before, out, err = resource.getrlimit(resource.RLIMIT_FSIZE), io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):  # the logs are files, too
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, before[1]))
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.stdout.write(out.getvalue())
        sys.stderr.write(err.getvalue())


def _give_up_powers() -> None:
    """Root may write everywhere, unless it has no capabilities (Linux)."""
    if os.geteuid() == 0:
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        if ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)()) != 0:
            raise OSError("root's powers could not be given up")


def _count_calls(harm: Harm) -> Callable[[], int]:
    count = 0

    def touch(grows: bool) -> bool:
        """Whether this call must fail."""
        nonlocal count
        now, count = count, count + 1
        if now == harm.die_at:
            os.kill(os.getpid(), harm.die_of)
        return now == harm.fail_at or (harm.stays and grows and 0 <= harm.fail_at < now)

    def watched(call: Callable[..., Any], is_counted: Callable[..., bool], grows: bool) -> Callable[..., Any]:
        def before(*args: Any, **kwargs: Any) -> Any:
            if is_counted(*args) and touch(grows):
                raise OSError(harm.error, os.strerror(harm.error))
            return call(*args, **kwargs)

        return before

    class Watched(sqlite3.Connection):
        def execute(self, *args: Any) -> sqlite3.Cursor:
            if args[0].startswith(("INSERT", "COMMIT", "CREATE")) and touch(True):
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
            return super().execute(*args)

    connect, making = sqlite3.connect, os.O_CREAT | (getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY)
    for name in CALLS:
        setattr(os, name, watched(getattr(os, name), lambda *_: True, name in GROWING))
    os.open = watched(os.open, lambda _, flags, *__: bool(flags & making), True)
    sqlite3.connect = lambda *args, **kwargs: connect(*args, factory=Watched, **kwargs)  # type: ignore[assignment]
    return lambda: count


if __name__ == "__main__":
    _serve()

"""The process that runs a model has no keys, files, network or other processes: tried out inside it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.models import node, row_model
from targetdp.release._model import _process
from targetdp.release._model._file import judge_model
from targetdp.release._model._pipe import read_exactly, receive, send
from targetdp.release._model._process import ConfinedProcess
from targetdp.release._model._runner import ModelRunner

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel what a process may do")

ATTEMPTS = """
import ctypes, json, mmap, os, signal, socket, subprocess, sys, threading
_, paths = json.loads(sys.argv[1])
sys.path += paths
from targetdp.release._model import _confine
from targetdp.release._model._pipe import send

seen = {
    "environment": dict(os.environ),
    "directory": os.getcwd(),
    "files": sorted(os.listdir("/dev/fd")),
    "arguments": sys.argv[1:],
}

def what_is_left(size):
    # In memory that was given back, away from where the library keeps its own numbers.
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    row = library.malloc(size)
    ctypes.memset(row, 7, size)
    library.free(row)
    return ctypes.string_at(row + size // 2, 8).hex()

seen["left in memory"] = [what_is_left(size) for size in (64, 256, 1_000, 4_000, 64_000)]
_confine.begin()
seen["too much work"] = (
    signal.getsignal(signal.SIGPROF) == signal.SIG_DFL
    and signal.SIGPROF not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
)
by = _confine.confine()

def copy():
    if (pid := os.fork()) == 0:
        os._exit(0)
    return os.waitpid(pid, 0)

def attempt(what):
    try:
        what()
    except (OSError, RuntimeError, ValueError) as error:
        return type(error).__name__
    return "done"

attempts = {
    "read a file": lambda: os.open(json.__file__, os.O_RDONLY),
    "write a file": lambda: os.open("written", os.O_WRONLY | os.O_CREAT),
    "remove a file": lambda: os.unlink(json.__file__),
    "list a folder": lambda: os.listdir("/"),
    "connect": lambda: socket.socket(),
    "run a program": lambda: os.execv(sys.executable, [sys.executable, "-c", ""]),
    "start a program": lambda: subprocess.run([sys.executable, "-c", ""]),
    "end its parent": lambda: os.kill(os.getppid(), 0),
    "start a thread": lambda: threading.Thread(target=int).start(),
    "open a pipe": lambda: os.pipe(),
    "make code": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC),
    "make memory": lambda: mmap.mmap(-1, 4096),
}
first = {name: attempt(what) for name, what in attempts.items()}
first["copy itself"] = attempt(copy)
_confine.forbid_copies()
send(1, json.dumps({"confined_by": by}).encode())
second = {name: attempt(what) for name, what in attempts.items()}
second["copy itself"] = attempt(copy)
send(1, json.dumps({"seen": seen, "first": first, "second": second}).encode())
os._exit(0)
"""


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """What a process like a model's sees and can do, started while this one has a secret and an open file."""
    monkeypatch.setenv("A_SECRET", "of this process")
    monkeypatch.setattr(_process, "_START", ATTEMPTS)
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        process = ConfinedProcess("run")
        try:
            return process.reply()
        finally:
            process.close()


def test_it_starts_with_nothing_of_ours(found: Any) -> None:
    assert set(found["seen"]["environment"]) <= {*_process._ENVIRONMENT, "LC_CTYPE"}
    assert found["seen"]["environment"]["ORT_DISABLE_TELEMETRY"] == "1"
    assert found["seen"]["directory"] == "/"
    # Three pipes, and the folder that is being listed.
    assert found["seen"]["files"] == ["0", "1", "2", "3"]
    assert "secret" not in json.dumps(found["seen"]["arguments"])


@on_linux
def test_memory_that_is_given_back_is_overwritten(found: Any) -> None:
    """Small blocks, too: a row is one."""
    left = found["seen"]["left in memory"]
    assert left, "nothing was looked at"
    assert "07" * 8 not in left


def test_too_much_work_ends_it_whatever_was_turned_off_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_process, "_START", ATTEMPTS)
    before = signal.signal(signal.SIGPROF, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
    try:
        process = ConfinedProcess("run")
        try:
            assert process.reply()["seen"]["too much work"]
        finally:
            process.close()
    finally:
        signal.signal(signal.SIGPROF, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})


@on_linux
@pytest.mark.parametrize("when", ["first", "second"])
def test_it_can_do_nothing_but_compute(found: Any, when: str) -> None:
    done = [name for name, how in found[when].items() if how == "done"]
    assert done == ["make memory", *(["copy itself"] if when == "first" else [])]


@on_linux
@pytest.mark.parametrize("kind", ["judge", "run"])
def test_it_is_confined_before_it_reads_a_model(kind: Any) -> None:
    process = ConfinedProcess(kind)
    try:
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
            if ":\t" in line
        )
        limits = Path(f"/proc/{process.pid}/limits").read_text() if os.geteuid() == 0 else ""
    finally:
        process.close()
    assert status["Seccomp"].strip() == "2"
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Threads"].strip() == "1"  # none that the runtime reports to its maker with
    assert "filter of system calls" in process.confined_by
    assert not limits or "Max open files            0" in limits


def test_the_runtime_is_never_loaded_in_our_own_process() -> None:
    """It writes a file and reports to its maker unless told not to: only the confined process loads it."""
    script = (
        "import sys\n"
        "from targetdp.release._model._file import judge_model\n"
        "from targetdp.release._model._invented import try_model\n"
        f"model = judge_model({row_model(node('Identity', ['x'], ['score'])).SerializeToString()!r})\n"
        "try_model(model, microseconds=100_000)\n"
        "print([name for name in ('onnx', 'onnxruntime') if name in sys.modules])"
    )
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout == "[]\n"


def test_what_it_says_is_bounded() -> None:
    out, into = os.pipe()
    try:
        send(into, b"12345")
        with pytest.raises(EOFError, match="5 bytes is announced: at most 4"):
            receive(out, 4)
        assert read_exactly(out, 5) == b"12345"
        os.close(into)
        with pytest.raises(EOFError, match="has ended"):
            read_exactly(out, 1)
    finally:
        os.close(out)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import os; os.write(1, b'\\xff' * 8)", "ended before it was confined"),
        ("import os; os.write(1, b'\\x02' + bytes(7) + b'no')", "ended before it was confined"),
        ("raise SystemExit(1)", "ended before it was confined"),
    ],
)
def test_a_process_that_does_not_keep_to_the_rules_is_ended(
    script: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_process, "_START", script)
    with pytest.raises(OSError, match=words):
        ConfinedProcess("run")


def test_a_process_that_cannot_be_confined_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (
        "import json, sys; sys.path += json.loads(sys.argv[1])[1]\n"
        "from targetdp.release._model import _child, _confine\n"
        "def refuse(): raise OSError(1, 'the kernel refuses')\n"
        "_confine.confine = refuse\n"
        "_child.main('judge')"
    )
    monkeypatch.setattr(_process, "_START", broken)
    with pytest.raises(OSError, match="the kernel refuses"):
        judge_model(b"")


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"pip install 'targetdp\[models\]'"):
        ConfinedProcess("judge")


def test_windows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(OSError, match="cannot be run on Windows"):
        ConfinedProcess("judge")


def test_processes_end_with_the_runner() -> None:
    model = judge_model(row_model(node("Identity", ["x"], ["score"])).SerializeToString())
    with ModelRunner(model, ["a"], jobs=2) as runner:
        processes = list(runner._processes)
        assert len({one.pid for one in processes}) == 2
        assert runner.confined_by
    assert all(one._process.returncode is not None for one in processes)

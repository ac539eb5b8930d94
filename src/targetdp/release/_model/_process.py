"""The other side of a confined process: how it is started, and how one talks to it without trusting it."""

import importlib.util
import json
import os
import signal
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from targetdp.release._model._pipe import read_exactly, receive, send, write_all

MOST_REPLY = 1 << 20
"""Bytes of a message from the process, answers to rows apart."""
_START = (
    "import json, sys; kind, paths = json.loads(sys.argv[1]); sys.path += paths; "
    "from targetdp.release._model._child import main; main(kind)"
)
_ENVIRONMENT = {
    # The runtime reports to its maker, by a thread and a file of its own, unless told not to.
    "ORT_DISABLE_TELEMETRY": "1",
    # Copies of a process have one thread: so has the process that is copied.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    # Memory that is given back is overwritten: what a row leaves there is gone before the next one comes.
    # Blocks as small as a row are overwritten only where no thread keeps them for itself.
    "MALLOC_PERTURB_": "165",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
}
"""All that the process has for an environment."""


def plain(words: object) -> str:
    """Words of a stranger as one line that cannot do anything to a terminal.

    Example:
        >>> plain("a model that" + chr(10) + chr(27) + "[1mshouts")
        'a model that ?[1mshouts'
    """
    text = " ".join(str(words)[:500].split())
    return "".join(letter if letter.isprintable() else "?" for letter in text)


class ConfinedProcess:
    """A process of its own, without keys, files or network, for a model that somebody else wrote.

    It is started from scratch: nothing of this process's memory, environment or open files is in it. What it
    says is read with a bounded length, and is never run.

    Args:
        kind: ``"judge"``: it judges one file; ``"run"``: it answers rows.

    Raises:
        ImportError: What it needs is not installed.
        OSError: It cannot be confined here.
    """

    def __init__(self, kind: Literal["judge", "run"]) -> None:
        if sys.platform == "win32":
            raise OSError("models cannot be run on Windows: no means to confine them are known; use Linux")
        for name in ("onnx", "onnxruntime"):
            if importlib.util.find_spec(name) is None:
                raise ImportError(f"models need {name}: install it with pip install 'targetdp[models]'")
        paths = [str(Path(__file__).parents[3]), *(path for path in sys.path if Path(path).is_absolute())]
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            [sys.executable, "-I", "-S", "-B", "-c", _START, json.dumps([kind, paths])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            close_fds=True,
            cwd="/",
            env=_ENVIRONMENT,
            umask=0o077,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: PT018, S101
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        try:
            ready = self.reply()
        except EOFError:
            ready = {"error": "it ended before it was confined: is memory short?"}
        if "error" in ready:
            self.close()
            raise OSError(f"the process for models cannot start: {plain(ready['error'])}")
        self.confined_by = str(ready["confined_by"])

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def tell(self, message: bytes) -> None:
        """Give it a message.

        Raises:
            EOFError: The process has ended.
        """
        send(self._to, message)

    def reply(self) -> dict[str, Any]:
        """Its next message.

        Raises:
            EOFError: The process has ended, or what it says is no message.
        """
        try:
            return dict(json.loads(receive(self._from, MOST_REPLY)))
        except (ValueError, TypeError, RecursionError):
            raise EOFError("the process for models does not say what it should") from None

    def data(self, most: int) -> bytes:
        """Its next message, which is data of at most so many bytes."""
        return receive(self._from, most)

    def ask(self, rows: int, chunk: bytes) -> bytes:
        """A float64 for each row of a chunk, as bytes.

        Raises:
            EOFError: The process has ended.
        """
        write_all(self._to, struct.pack("<Q", rows))
        send(self._to, chunk)
        return read_exactly(self._from, 8 * rows)

    def close(self) -> None:
        """End it, and all copies of itself that it made."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

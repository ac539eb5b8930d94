"""Fuzzing that follows coverage (atheris), one reader after another.

Each line of standard input is a JSON object: the ``reader``, the ``file`` where each input is written for it
(with the name that it expects), libFuzzer's ``options`` and folders, and the ``log`` that takes what it says.
Importing under instrumentation takes most of the time, so it is done once, and each reader is fed in a fork.
For each line its exit code is printed: 0 when the time is over, another one, with a traceback in the log, at
the first input that a reader neither takes nor refuses.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["targetdp", "tomllib", "json"]):
    from support.fuzz_readers import READERS, only_value_errors


@atheris.instrument_func  # type: ignore[untyped-decorator, unused-ignore]
def careless(path: Path) -> None:
    """A reader with a fault behind two branches: who follows coverage finds it, guessing takes long."""
    data = path.read_bytes()
    if data[:1] == b"d" and data[1:2] == b"p":
        raise KeyError("not a ValueError")


def feed(reader: str, file: str, options: list[str]) -> None:
    """Feed one reader until libFuzzer has enough; it ends the process."""
    read, place = (READERS | {"careless": careless})[reader], Path(file)

    def one(data: bytes) -> None:
        place.write_bytes(data)
        only_value_errors(read, place)

    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


def forked(task: dict[str, Any]) -> int:
    """The exit code of a process of its own that feeds one reader."""
    pid = os.fork()
    if pid == 0:
        log = os.open(task.pop("log"), os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        feed(**task)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(f"{forked(json.loads(line))}\n")
        sys.stdout.flush()

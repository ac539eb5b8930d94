"""How a run ends that did not do its work: a message, an exit code and, where JSON was asked for, an object.

Exit codes: 0 done, 1 a check did not hold, 2 bad input or refused, 3 the machine could not do it (a full
disk, say), 5 what was verified holds but nobody has named its signer, 130 interrupted, 143 terminated; for
all of these nothing was published. 4: the release IS published, but what came after it failed.
"""

import errno
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, TextIO

import typer

from targetdp.cli._console import PublishedError

STRANGER = 5
"""Exit code of a release that is signed by nobody whom the user has named."""
_ONE_REQUEST = 1.0
"""Seconds within which a second SIGTERM is the first one again: `timeout` tells a process and its group."""


class Terminated(KeyboardInterrupt):
    """Somebody asked this process to end (SIGTERM): as Ctrl-C, so that all that tidies up then does so."""


Kind = Literal["refused", "machine", "interrupted", "published"]
_KINDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Kind, int], ...] = (
    (PublishedError, "published", 4),
    ((ValueError, TypeError), "refused", 2),
    ((OSError, RuntimeError), "machine", 3),
    (Terminated, "interrupted", 143),
    (KeyboardInterrupt, "interrupted", 130),
)
"""What an error means, and the exit code; the first that fits."""


@dataclass(frozen=True)
class Ending:
    """What is said of a run that failed, and its exit code; ``told``: typer has told people already.

    ``look`` is the `Look` at a release that was refused.
    """

    message: str
    kind: Kind
    exit_code: int
    notes: tuple[str, ...] = ()
    told: bool = False
    look: Any = None

    def tell(self, *, as_json: bool) -> None:
        """Words to stderr and, where it was asked for, JSON to stdout."""
        prefix = "" if self.kind == "interrupted" else "error: "
        if not self.told:
            _say(". ".join([f"{prefix}{self.message}", *self.notes]), sys.stderr)
        if as_json:
            record = {"message": self.message, "kind": self.kind, "exit_code": self.exit_code}
            record |= {"notes": self.notes} | ({} if self.look is None else {"look": self.look.record()})
            _say(json.dumps({"error": record}, indent=2), sys.stdout)


def _say(text: str, stream: TextIO) -> None:
    with suppress(OSError):  # whoever listened may be gone; the exit code still tells
        typer.echo(text, file=stream)


def ending_of(error: BaseException) -> Ending | None:
    """How a run ends that met this error; None if it is none of the run, or a mistake of ours."""
    if isinstance(error, SystemExit):
        return _ending_by_typer(error)
    notes = tuple(getattr(error, "__notes__", ()))
    for errors, kind, code in _KINDS:
        if isinstance(error, errors):
            return Ending(_message(error), kind, code, notes, look=getattr(error, "look", None))
    return None


def _message(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "terminated" if isinstance(error, Terminated) else "interrupted"
    if isinstance(error, OSError):
        remedy = ": make room and run again" if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
        place = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror or error}{place}{remedy}"
    return str(error)


def _ending_by_typer(left: SystemExit) -> Ending | None:
    """Typer meets interrupts and mistakes in arguments itself, and leaves; the context says why."""
    met: Any = left.__context__
    if not isinstance(left.code, int) or left.code == 0:
        return None
    behind = met
    while behind is not None:
        if isinstance(behind, KeyboardInterrupt):
            return ending_of(behind)
        behind = behind.__context__
    if isinstance(met, typer.Abort):
        return Ending("aborted", "interrupted", left.code, told=True)
    if hasattr(met, "format_message"):
        return Ending(met.format_message(), "refused", left.code, told=True)
    return None


def asks_for_json(command: Any, arguments: Sequence[str]) -> bool:
    """Whether ``--json`` is among the options: not as the value of another one, and not behind ``--``."""
    rest = list(arguments)
    while commands := getattr(command, "commands", None):
        name = rest.pop(0) if rest and rest[0] in commands else next(iter(commands))
        command = commands[name]
    with_value = {flag for one in command.params if not getattr(one, "is_flag", True) for flag in one.opts}
    words = iter(rest)
    for word in words:
        if word in {"--", "--json"}:
            return word == "--json"
        if word in with_value:
            next(words, None)
    return False


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """SIGTERM raises `Terminated` here: files are tidied up, and what was reserved is freed.

    Where somebody else decided what it does, or in another thread than the main one, nothing is changed.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    process, last = os.getpid(), float("-inf")

    def end(_: int, __: FrameType | None) -> None:
        nonlocal last
        if os.getpid() != process:
            os._exit(143)  # a fork: what is to be tidied up is its parent's
        now = time.monotonic()
        again, last = now - last < _ONE_REQUEST, now
        if not again:
            raise Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

"""How a run ends: its outcome, an exit code and, where JSON was asked for, an object that says both.

Exit codes: 0 done, or done before; 1 a check did not hold; 2 bad input, or refused; 3 the machine could not
do it (a full disk, say); 5 what was verified holds but nobody has named its signer; 6 not yet: an input is
not there, or another run is at work; 7 the limit or the plan is spent; 130 interrupted; 143 terminated; for
all but 0 nothing was published. 4: the release IS published, but what came after it failed.
"""

import errno
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, TextIO

import typer

from targetdp._core import NothingLeftError, NotYetError
from targetdp.cli._console import PublishedError

STRANGER = 5
"""Exit code of a release that is signed by nobody whom the user has named."""
_ONE_REQUEST = 1.0
"""Seconds within which a second SIGTERM is the first one again: `timeout` tells a process and its group."""


class Terminated(KeyboardInterrupt):
    """Somebody asked this process to end (SIGTERM): as Ctrl-C, so that all that tidies up then does so."""


Outcome = Literal[
    "released", "already released", "possible", "refused", "machine", "unsettled", "waiting", "spent",
    "interrupted",
]  # fmt: skip
"""Those of a release, all in all: the first three are no errors, and have exit code 0."""
_FAILED: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Outcome, int], ...] = (
    (PublishedError, "unsettled", 4),
    (NotYetError, "waiting", 6),
    (NothingLeftError, "spent", 7),
    ((ValueError, TypeError), "refused", 2),
    ((OSError, RuntimeError), "machine", 3),
    (Terminated, "interrupted", 143),
    (KeyboardInterrupt, "interrupted", 130),
)
"""What an error means, and the exit code; the first that fits."""
_GOES_ON: frozenset[Outcome] = frozenset({"machine", "unsettled", "waiting", "interrupted"})
"""Outcomes after which the same command may succeed, though nobody has changed what it is given."""


def ending_record(
    outcome: Outcome, exit_code: int, message: str, notes: Iterable[str] = (), unfinished: str | None = None
) -> dict[str, Any]:
    """What every object says of how a run ended; ``unfinished`` is a release that the next run finishes."""
    return {
        "outcome": outcome, "exit_code": exit_code, "message": message, "notes": list(notes),
        "run_again": outcome in _GOES_ON, "unfinished": unfinished,
    }  # fmt: skip


@dataclass(frozen=True)
class Ending:
    """What is said of a run that failed, and its exit code; ``told``: typer has told people already.

    ``look`` is the `Look` at a release that was refused, ``unfinished`` the id of one that is charged and
    that the same command finishes.
    """

    message: str
    outcome: Outcome
    exit_code: int
    notes: tuple[str, ...] = ()
    told: bool = False
    look: Any = None
    unfinished: str | None = None

    def tell(self, *, as_json: bool) -> None:
        """Words to stderr and, where it was asked for, JSON to stdout."""
        prefix = "" if self.outcome == "interrupted" else "error: "
        if not self.told:
            _say(". ".join([f"{prefix}{self.message}", *self.notes]), sys.stderr)
        if as_json:
            record = ending_record(self.outcome, self.exit_code, self.message, self.notes, self.unfinished)
            record |= {} if self.look is None else {"look": self.look.record()}
            _say(json.dumps(record, indent=2), sys.stdout)


def _say(text: str, stream: TextIO) -> None:
    with suppress(OSError):  # whoever listened may be gone; the exit code still tells
        typer.echo(text, file=stream)


def ending_of(error: BaseException) -> Ending | None:
    """How a run ends that met this error; None if it is none of the run, or a mistake of ours."""
    if isinstance(error, SystemExit):
        return _ending_by_typer(error)
    notes = tuple(getattr(error, "__notes__", ()))
    begun = getattr(error, "begun", None)
    unfinished = begun.release if begun is not None and begun.goes_on else None
    for errors, outcome, code in _FAILED:
        if isinstance(error, errors):
            look = getattr(error, "look", None)
            return Ending(_message(error), outcome, code, notes, look=look, unfinished=unfinished)
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

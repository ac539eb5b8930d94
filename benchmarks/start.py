"""How long the command line takes to answer, beside Python itself: --help, a command's --help, and Tab.

Each call is a new process. Its processor time is compared, which neighbors on a busy machine do not lengthen;
the shortest wall time is shown beside it.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say

ALLOWED = 0.5
"""Seconds more than Python itself."""
TIMES_LIBRARIES = 2.5
"""`targetdp privatize` reads the table after at most so many times the import of what it is built on."""
PYTHON, HELP, COMMAND, TAB = "python -c pass", "targetdp --help", "targetdp plan --help", "Tab"
LIBRARIES, PRIVATIZE = (
    "numpy, pyarrow, pydantic, typer, cryptography",
    "targetdp privatize, to its first read",
)
UNTIL_IT_READS = """
import os, sys
import targetdp.table._source as source
source.open_source = lambda *_, **__: os._exit(0)
sys.argv = "targetdp privatize a.csv b.csv --B 1 --epsilon 1".split()
from targetdp.cli import main
main()
"""
ROUNDS, QUICK_ROUNDS = 10, 2


def measure(effort: Effort, say: Say) -> Section:
    """Start every side in turns, each once a round; the best of all rounds counts."""
    sides = _sides()
    processor: dict[str, list[float]] = {name: [] for name in sides}
    wall: dict[str, list[float]] = {name: [] for name in sides}
    for call in sides.values():  # what the disk holds is in memory from here on
        call()
    for number in range(1, 1 + (QUICK_ROUNDS if effort.quick else ROUNDS)):
        for name, call in sides.items():
            say(f"{name}: round {number}")
            before, began = _children(), time.perf_counter()
            call()
            processor[name].append(_children() - before)
            wall[name].append(time.perf_counter() - began)
    best = {name: min(times) for name, times in processor.items()}
    shortest = {name: min(times) for name, times in wall.items()}
    table = new_table(
        "Starting the command line", "command", "seconds", "more than Python", "shortest wall time, more",
        caption=f"Processor time of a whole process, best of {len(processor[PYTHON])}. Tab: what bash is "
        "offered for targetdp learn … --mechanism.",
    )  # fmt: skip
    for name in sides:
        more, longer = best[name] - best[PYTHON], shortest[name] - shortest[PYTHON]
        shown = ("", "") if name == PYTHON else (f"{more:.2f}", f"{longer:.2f}")
        table.add_row(name, f"{best[name]:.2f}", *shown)
    bars = [
        Bar(f"start: {HELP}, seconds more than Python itself", best[HELP] - best[PYTHON], ALLOWED, "at most"),
        Bar(
            f"start: {HELP}, shortest wall time, seconds more", shortest[HELP] - shortest[PYTHON], ALLOWED,
            "at most", binding=False,
        ),
        Bar(
            f"start: {PRIVATIZE}, times the import of {LIBRARIES}", best[PRIVATIZE] / best[LIBRARIES],
            TIMES_LIBRARIES, "at most",
        ),
    ]  # fmt: skip
    return Section([table], bars, {"processor seconds": processor, "wall seconds": wall})


def _sides() -> Mapping[str, Callable[[], None]]:
    targetdp = str(Path(sys.executable).with_name("targetdp"))
    words = "targetdp learn sample.parquet labels.csv --mechanism "
    asked = {"_TARGETDP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "5"}
    return {
        PYTHON: partial(_run, sys.executable, "-c", "pass"),
        HELP: partial(_run, targetdp, "--help"),
        COMMAND: partial(_run, targetdp, "plan", "--help"),
        TAB: partial(_run, targetdp, **asked),
        LIBRARIES: partial(_run, sys.executable, "-c", f"import {LIBRARIES}"),
        PRIVATIZE: partial(_run, sys.executable, "-c", UNTIL_IT_READS),
    }


def _run(*command: str, **environment: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=os.environ | environment)  # noqa: S603


def _children() -> float:
    """Processor time of all processes that were started from here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

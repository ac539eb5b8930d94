"""A plugin of pytest (`make faults`): the tally of a whole run goes into docs/reliability.md if all held."""

import json
import os
import platform
import re
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from support.faults import FAULTS, TALLY, WHOLE
from targetdp._core import __version__

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
TABLE = re.compile(r"(?<=<!-- written by make faults -->\n).*(?=<!-- until here -->)", re.DOTALL)
_BEGIN = time.monotonic()


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    """Before workers start, so that they know the file."""
    if WHOLE and not _is_worker(config):
        handle, name = tempfile.mkstemp(prefix="faults-")
        os.close(handle)
        os.environ[TALLY] = name


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    if not WHOLE or _is_worker(config):
        return
    path = Path(os.environ.pop(TALLY))
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in FAULTS}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, outcome, number = json.loads(line)
        outcomes[name][outcome] += number
    path.unlink()
    terminalreporter.section("faults")
    for name, found in outcomes.items():
        terminalreporter.line(f"{found.total():6,}  {name}: {_told(found)}")
    lacking = [name for name, found in outcomes.items() if found.total() < FAULTS[name].whole]
    if exitstatus != 0 or lacking:
        terminalreporter.line(f"{PAGE.name} stays as it is; not injected often enough: {lacking or 'none'}")
        return
    workers = int(config.getoption("numprocesses", None) or 1)
    table = _table(outcomes, workers)
    PAGE.write_text(TABLE.sub(lambda _: table, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    terminalreporter.line(f"{PAGE.name} is written")


def _told(outcomes: Counter[str]) -> str:
    return "; ".join(f"{outcome}: {number:,}" for outcome, number in sorted(outcomes.items()))


def _table(outcomes: dict[str, Counter[str]], workers: int) -> str:
    lines = ["| injected | into | must hold, and held | times | what came of it |", "|---|---|---|--:|---|"]
    lines += [
        f"| {fault.injected} | {fault.into} | {fault.must_hold} | {outcomes[name].total():,} "
        f"| {_told(outcomes[name])} |"
        for name, fault in FAULTS.items()
    ]
    took = round((time.monotonic() - _BEGIN) / 60)
    total, kills = (
        sum(found.total() for name, found in outcomes.items() if part in name) for part in ("", "kills")
    )
    lines += [
        "",
        f"Together {total:,} faults, {kills:,} of them kills. targetdp {__version__}, Python "
        f"{platform.python_version()} on {platform.system()}, {took} minutes by {workers} "
        f"process{'es' if workers > 1 else ''} of tests on {os.cpu_count()} processors.",
        "",
    ]
    return "\n".join(lines)

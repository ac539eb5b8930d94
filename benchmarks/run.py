"""`make bench`: measure every ratio that the documentation quotes, and say which bars are met.

Times are CPU times of one thread, BLAS's included, unless a table says otherwise: the only ones that can be
compared on a machine with neighbors. Tables go to stdout, progress to stderr.
Exit code 1: a bar was missed, or (but in a quick run, which installs no peers) could not be measured.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks import (
    again,
    cider,
    database,
    decision,
    growth,
    inference,
    mechanisms,
    mondrian,
    net,
    noise,
    peers,
    projection,
    reach,
    release,
    sample_then_scores,
    score,
    score_attacks,
    spark,
    start,
    sweep,
)
from benchmarks.page import BARS, merged, page
from benchmarks.quoted import PAGE, refresh
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say, figure

SECTIONS: dict[str, Callable[[Effort, Say], Section]] = {
    "private projection": projection.measure,
    "mechanisms": mechanisms.measure,
    "growth": growth.measure,
    "cryptographic normals": noise.measure,
    "peers": peers.measure,
    "Mondrian": mondrian.measure,
    "net attack": net.measure,
    "attribute inference": inference.measure,
    "whole paper grid": sweep.measure,
    "release job": release.measure,
    "databases": database.measure,
    "people": again.measure,
    "scores": score.measure,
    "decisions": decision.measure,
    "sample then scores": sample_then_scores.measure,
    "score attacks": score_attacks.measure,
    "start": start.measure,
    "reach": reach.measure,
    "Spark": spark.measure,
    "Cider": cider.measure,
}
THOROUGH = Effort(quick=False, rounds=3, seconds=0.3)
QUICK = Effort(quick=True, rounds=1, seconds=0.1)
PACKAGES = (
    "targetdp", "numpy", "scipy", "numba", "cryptography", "pandas", "pyarrow", "pyspark", "scikit-learn",
    "anonypy",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and judge."""
    options = _options(arguments)
    effort = QUICK if options.quick else THOROUGH
    words = Console(stderr=True)
    out = Console(width=None if sys.stdout.isatty() else 120)
    sections: dict[str, Section] = {}
    began, load = time.perf_counter(), os.getloadavg()
    with threadpool_limits(1):
        chosen = {name: measure for name, measure in SECTIONS.items() if name in (options.only or SECTIONS)}
        for number, (name, measure) in enumerate(chosen.items(), start=1):
            start = time.perf_counter()
            with _progress(words) as say:
                sections[name] = measure(effort, say)
            words.print(f"{number}/{len(chosen)} {name} ({time.perf_counter() - start:.0f} s)")
            for table in sections[name].tables:
                out.print(table)
    bars = [bar for section in sections.values() for bar in section.bars]
    verdicts = _bars_table(bars, quick=options.quick)
    out.print(verdicts)
    words.print(
        f"{time.perf_counter() - began:.0f} s; load average before {load[0]:.1f}, {os.cpu_count()} CPUs"
    )
    if options.json is not None:
        options.json.write_text(json.dumps(_record(sections, bars, options.quick, load), indent=1) + "\n")
        words.print(f"figures written to {options.json}")
    if options.markdown is not None:
        tables = [verdicts, *(table for section in sections.values() for table in section.tables)]
        text = page(_machine(), tables)
        if options.only and options.markdown.exists():
            text = merged(options.markdown.read_text(encoding="utf-8"), _machine(), tables)
        options.markdown.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        words.print(f"page written to {options.markdown}")
        if options.markdown.resolve() == PAGE.resolve():
            for path in refresh(options.markdown.read_text(encoding="utf-8")):
                words.print(f"quoted figures brought up to date in {path.name}")
    fails = {"missed"} if options.quick else {"missed", "not measured"}
    return int(any(bar.verdict in fails for bar in bars))


@contextmanager
def _progress(console: Console) -> Iterator[Say]:
    """A line that says what is being measured, as long as it is."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("")
        yield lambda step: progress.update(task, description=step)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="smaller tables and fewer rounds: under two minutes, rougher"
    )
    parser.add_argument(
        "--only", action="append", choices=SECTIONS, help="measure this section alone (may be repeated)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures and versions to a file")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write all tables to a Markdown page")
    return parser.parse_args(arguments)


def _bars_table(bars: Sequence[Bar], *, quick: bool) -> Table:
    table = new_table(
        BARS + (" (quick: smaller tables, fewer rounds)" if quick else ""), "ratio", "measured", "bar",
        caption="All times above: CPU time of one thread, BLAS at one thread, unless said otherwise.",
    )  # fmt: skip
    table.add_column("verdict")
    for bar in bars:
        measured = "–" if bar.measured is None else figure(bar.measured)
        table.add_row(bar.name, measured, f"{bar.side} {figure(bar.bar)}", bar.verdict)
    return table


def _record(
    sections: dict[str, Section], bars: Sequence[Bar], quick: bool, load: tuple[float, float, float]
) -> dict[str, Any]:
    """Everything that was measured, where and with what."""
    return {
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES},
        "machine": {
            "machine": platform.machine(), "system": platform.system(),
            "cpus": os.cpu_count(), "clock": "CPU time of one thread", "load average before": load,
        },
        "quick": quick,
        "sections": {name: section.figures for name, section in sections.items()},
        "bars": [vars(bar) | {"verdict": bar.verdict} for bar in bars],
    }  # fmt: skip


def _machine() -> str:
    found = {name: _version(name) for name in PACKAGES} | {"anonymeter": inference.anonymeter_version()}
    versions = ", ".join(f"{name} {number or 'not installed'}" for name, number in found.items())
    return f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, {versions}."


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())

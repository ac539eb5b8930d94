"""The tour: what the three users of targetdp do, one command after the other, on invented people.

Every step is a command that a reader can type again; what it makes stays in a folder to be looked at.
"""

import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from examples.tour.comparison import ADULTS, QUOTA, SIMULATIONS, compare, render
from targetdp.cli import app
from targetdp.populations import invented_populations

OURS = ".made-by-targetdp-demo"
"""Marks the folder: only what a tour has made is replaced by the next one."""


@dataclass(frozen=True)
class Step:
    """A part of the tour: who does it and why, and its commands."""

    title: str
    commands: tuple[str, ...]


def steps(folder: Path) -> tuple[Step, ...]:
    """The tour's commands, all in one folder."""
    f = folder.as_posix()
    features = ",".join(invented_populations()["togo"].features)
    ledger = f"--ledger {f}/ledger.db --population subscribers"
    return (
        Step(
            "Invented people: subscribers of an operator, and others that stand for a public census",
            (
                f"example togo --out {f}/people.parquet --program {f}/program.toml --quiet",
                f"example togo --seed 7 --out {f}/census.parquet --quiet",
                f"example togo --seed 8 --rows 1000 --out {f}/others.parquet --quiet",
            ),
        ),
        Step(
            "Data holder and official, before anything: what a guarantee rules out, and the noise it needs",
            ("plan --accuracy 0.9 --epsilon 4 --delta 0.0002 --B 0.25 --features 10",),
        ),
        Step(
            "Data holder: public column scales, a limit in the ledger, a certified release, verified",
            (
                f"scales {f}/census.parquet --id id --features {features} --source public "
                f"--out {f}/scales.toml",
                f"ledger limit {ledger} --B 0.25 --epsilon 8 --delta 1e-5",
                f"privatize {f}/people.parquet {f}/private.parquet --id id --features {features} --B 0.25 "
                f"--epsilon 4 --scales {f}/scales.toml {ledger} --tuned-on synthetic --quiet",
                f"verify {f}/private.parquet",
                f"ledger show --ledger {f}/ledger.db",
            ),
        ),
        Step(
            "Privacy researcher: what an adversary still learns from that release",
            (f"attack {f}/people.parquet {f}/private.parquet --id id --holdout {f}/others.parquet",),
        ),
        Step(
            "Official: what each setting would cost the two programs of the paper (a first look)",
            (
                f"tradeoff togo --quick --out {f}/togo",
                f"tradeoff nigeria --quick --out {f}/nigeria",
            ),
        ),
        Step(
            "Official: the decision page, and the paper's figures",
            (
                f"report {f}/togo --out {f}/togo.html --quiet",
                f"report {f}/nigeria --out {f}/nigeria.html --quiet",
                f"report figures {f}/togo {f}/nigeria --out {f}/figures",
            ),
        ),
    )


def tour(folder: Path) -> None:
    """Run every step, then say where everything is."""
    begin = time.monotonic()
    words = Console(file=sys.stderr, highlight=False, soft_wrap=True)
    _prepare(folder)
    _compared(words)
    for number, step in enumerate(steps(folder), 2):
        words.print(Text(f"\n{number}. {step.title}", style="bold"))
        for command in step.commands:
            words.print(Text(f"$ targetdp {command}", style="cyan"))
            _run(command)
    out = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    out.print()
    out.print(_summary(folder))
    words.print(f"Done in {time.monotonic() - begin:.0f} s. Open {folder / 'togo.html'} in a browser.")


def _prepare(folder: Path) -> None:
    """An empty folder. What an earlier tour made is removed, anything else refused."""
    if folder.exists():
        if not (folder / OURS).is_file():
            raise SystemExit(
                f"{folder} exists and was not made by the demo: move it away, or name another folder"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / OURS).touch()


def _compared(words: Console) -> None:
    words.print(Text("1. One guarantee, kept by every mechanism: what is left of targeting", style="bold"))
    words.print(
        "Drawing 4,201 invented people with 10 features of phone use (the first run compiles: some seconds)."
    )
    with Progress(console=words, transient=True) as bar:
        task = bar.add_task("privatizing", total=5 * SIMULATIONS + 1)
        lines = compare(lambda: bar.advance(task))
    Console(width=None if sys.stdout.isatty() else 120).print(render(lines))
    words.print(
        f"Accuracy: share of people put on the right side when the poorest {QUOTA:.0%} are helped "
        f"(chance: {1 - 2 * QUOTA * (1 - QUOTA):.3f}). Poor people missed: out of {ADULTS:,} adults; mean of "
        f"{SIMULATIONS} simulations with column scales taken from the data; a release would have to pay for "
        "its scales, declare them, or state the condition (docs/promise.md)."
    )


def _run(command: str) -> None:
    """A command in this process: the next one need not import and compile everything again."""
    sys.stdout.flush()
    code = app(shlex.split(command), standalone_mode=False)
    if code:
        raise SystemExit(f"targetdp {command} ended with exit code {code}")


def _summary(folder: Path) -> Table:
    """Where everything is."""
    table = Table(title="What the tour has made", title_justify="left")
    table.add_column("who it is for")
    table.add_column("file", no_wrap=True)
    table.add_column("what it is")
    for row in _files():
        name = folder / row[1]
        if not name.exists():
            raise SystemExit(f"{name} is missing: please report this")
        table.add_row(row[0], Text(name.as_posix()), row[2])
    return table


def _files() -> Sequence[tuple[str, str, str]]:
    return (
        ("official", "togo.html", "decision page of an aid program: open it in a browser"),
        ("official", "nigeria.html", "decision page of a lending program"),
        ("data holder", "private.parquet", "the private table that is handed over"),
        (
            "data holder",
            "private.parquet.certificate.md",
            "its certificate, to read; beside it as JSON, signed",
        ),
        ("data holder", "ledger.db", "what was spent so far about these people"),
        ("researcher", "togo/summary.parquet", "every figure of the sweep, with intervals"),
        ("researcher", "figures", "the paper's Figures 2 and 3, and two more, as PNG, SVG and PDF"),
        (
            "researcher",
            "program.toml",
            "the aid program as a file: change it, and run targetdp tradeoff on it",
        ),
    )

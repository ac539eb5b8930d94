"""The tour: what the three users of targetdp do, one command after the other, on invented people.

Every step is a command that a reader can type again in the tour's folder; what it makes stays there to be
looked at.
"""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from examples.tour import hands
from examples.tour.comparison import ADULTS, QUOTA, SIMULATIONS, compare, render
from targetdp.cli import app

OURS = ".made-by-targetdp-demo"
"""Marks the folder: only what a tour has made is replaced by the next one."""


@dataclass(frozen=True)
class Step:
    """A part of the tour: who does it and why, what is done by hand before, and its commands."""

    title: str
    commands: tuple[str, ...]
    by_hand: Callable[[], str] | None = None


def steps() -> tuple[Step, ...]:
    """The tour's commands, all in one folder."""
    return (
        Step(
            "Invented people: subscribers of an operator, and others that stand for a public census",
            (
                "example togo --out people.parquet --program program.toml --quiet",
                "example togo --seed 7 --out census.parquet --quiet",
                "example togo --seed 8 --rows 1000 --out others.parquet --quiet",
            ),
        ),
        Step(
            "Data holder and official, before anything: what a guarantee rules out, and the noise it needs",
            ("plan --accuracy 0.9 --epsilon 4 --delta 0.0002 --B 0.25 --features 10",),
        ),
        Step(
            "Data holder: public column scales, and a desk with a policy, a ledger and keys",
            (
                "scales census.parquet --id id --features @columns.txt --source public --reason census "
                "--fit 0.9 --out scales.toml",
                "init features.parquet --scales scales.toml --name subscribers",
            ),
            hands.divide,
        ),
        Step(
            "Official: asks for the rows of those whom a survey has asked, and signs",
            (
                "request sign request.toml --key official.pem --out signed.toml",
                "request show signed.toml",
            ),
            hands.ask,
        ),
        Step(
            "Data holder: looks first, then a certified release, verified; who is who, for those asked",
            (
                "privatize sample.parquet --request signed.toml --check",
                "privatize sample.parquet private_sample.parquet --request signed.toml --yes --quiet",
                "verify private_sample.parquet --desk desk",
                "ids asked.csv pseudonyms.csv",
            ),
            hands.pin,
        ),
        Step(
            "Official: learns from private rows and own labels, and asks for one score of everybody else",
            (
                "learn private_sample.parquet labels.csv --id phone --ids pseudonyms.csv "
                "--program program.toml --out scores.toml",
                "request sign scores.toml --key official.pem --out signed_scores.toml",
            ),
        ),
        Step(
            "Data holder: the scores, and what the ledger says then",
            (
                "privatize features.parquet scores.parquet --request signed_scores.toml --yes",
                "ledger show",
            ),
        ),
        Step(
            "Official: checks that it is what was asked for, and decides",
            (
                "verify scores.parquet --request signed_scores.toml",
                "allocate scores.parquet private_sample.parquet labels.csv --id phone "
                "--ids pseudonyms.csv --program program.toml --out decisions.csv",
            ),
        ),
        Step(
            "Data holder: the phone numbers of those who are to be helped, so that they can be paid",
            ("ids helped.csv payments.csv --back features.parquet",),
            hands.pick,
        ),
        Step(
            "Privacy researcher: what an adversary still learns from these releases",
            (
                "attack sample.parquet private_sample.parquet --id phone --holdout others.parquet",
                "attack features.parquet scores.parquet --id phone --rest-is-holdout "
                "--attacks distinguishing,insider_inference",
            ),
        ),
        Step(
            "Official: what each setting would cost the two programs of the paper (a first look)",
            (
                "tradeoff togo --quick --out togo",
                "tradeoff nigeria --quick --out nigeria",
            ),
        ),
        Step(
            "Official: the decision page, and the paper's figures",
            (
                "report togo --out togo.html --quiet",
                "report nigeria --out nigeria.html --quiet",
                "report figures togo nigeria --out figures",
            ),
        ),
    )


def tour(folder: Path) -> None:
    """Run every step, then say where everything is."""
    begin = time.monotonic()
    words = Console(file=sys.stderr, highlight=False, soft_wrap=True)
    _prepare(folder)
    _compared(words)
    words.print(Text(f"\n$ cd {folder.as_posix()}", style="cyan"))
    with chdir(folder), _own_settings():
        for number, step in enumerate(steps(), 2):
            words.print(Text(f"\n{number}. {step.title}", style="bold"))
            if step.by_hand is not None:
                words.print(step.by_hand(), markup=False)
            for command in step.commands:
                words.print(Text(f"$ targetdp {command}", style="cyan"))
                _run(command)
    out = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    out.print()
    out.print(_summary(folder))
    words.print(f"Done in {time.monotonic() - begin:.0f} s. Open {folder / 'togo.html'} in a browser.")


@contextmanager
def _own_settings() -> Iterator[None]:
    """The tour's desk is none of the user's, and goes with the folder: it is in a list of its own."""
    mine = {"XDG_CONFIG_HOME": str(Path("config").absolute()), "TARGETDP_DESK": "", "TARGETDP_KEY": ""}
    before = {name: os.environ.get(name) for name in mine}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})


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
        ("official", "decisions.csv", "who is helped, by pseudonym, with everybody's chance to be poor"),
        ("data holder", "desk/policy.toml", "what the data holder allows: read it"),
        ("data holder", "private_sample.parquet", "the private rows that are handed over"),
        (
            "data holder",
            "private_sample.parquet.certificate.md",
            "their certificate, to read; beside it as JSON, signed",
        ),
        ("data holder", "scores.parquet", "one private number of everybody else, certified, too"),
        ("researcher", "togo/summary.parquet", "every figure of the sweep, with intervals"),
        ("researcher", "figures", "the paper's Figures 2 and 3, and two more, as PNG, SVG and PDF"),
        (
            "researcher",
            "program.toml",
            "the aid program as a file: change it, and run targetdp tradeoff on it",
        ),
    )

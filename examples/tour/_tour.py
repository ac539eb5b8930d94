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
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from examples.tour import cost, hands
from examples.tour.comparison import ADULTS, QUOTA, SIMULATIONS, compare, render
from targetdp.cli import app

MODEL = "{model}"
"""In a command: nothing, or the file of the model that `targetdp learn` has found to be the best score."""
FIRST, SECOND = "first", "second"
"""Folders of the two operators: rows and scores are released by one, decisions by the other."""
OURS = ".made-by-targetdp-demo"
"""Marks the folder: only what a tour has made is replaced by the next one."""


@dataclass(frozen=True)
class Step:
    """A part of the tour: who does it and why, what is done by hand before, and its commands.

    Args:
        title: Who does it, and why.
        commands: Of targetdp. `MODEL` in one stands for the option that names a model, if there is one.
        by_hand: What is done before them; it says what it was.
        inside: The operator's folder, within that of the tour.
    """

    title: str
    commands: tuple[str, ...]
    by_hand: Callable[[], str] | None = None
    inside: str = FIRST


def steps() -> tuple[Step, ...]:
    """The tour's commands: rows, scores and the page, then decisions at another operator."""
    return (*_rows_and_scores(), *_decisions())


def _decisions() -> tuple[Step, ...]:
    """From a new desk to a list: people who agreed are learned from, everybody else gives one private bit."""
    every = (
        Step(
            "Another operator: other subscribers, some of whom agreed that a survey is matched to their rows",
            ("example togo --seed 9 --out people.parquet --program program.toml --quiet",),
        ),
        Step(
            "Data holder: a desk, whose policy says what these people agreed to",
            ("init features.parquet --scales ../first/scales.toml --name second-operator",),
            hands.survey,
        ),
        Step(
            "Data holder: the rows of those who agreed, as they are, on record; nothing is promised to them",
            ("agree features.parquet agreed.csv agreed.parquet --yes",),
            hands.allow,
        ),
        Step(
            "Official: what rows, a score and a decision would bring at B = 2, ε = 4, and the best request",
            ("learn agreed.parquet labels.csv --program program.toml --epsilon 4 --out request.toml",),
        ),
        Step(
            "Data holder: one drawn yes or no about everybody, under classic differential privacy",
            (f"privatize features.parquet decisions.parquet --request request.toml{MODEL} --yes",),
        ),
        Step(
            "Official: checks the answers, and makes the list",
            (
                "verify decisions.parquet --request request.toml",
                "allocate decisions.parquet agreed.parquet labels.csv --program program.toml"
                f"{MODEL} --out list.csv",
            ),
        ),
    )
    return tuple(replace(step, inside=SECOND) for step in every)


def _rows_and_scores() -> tuple[Step, ...]:
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
                "--program program.toml --release scores --out scores.toml",
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
    place = ""
    with chdir(folder), _own_settings():
        for number, step in enumerate(steps(), 2):
            words.print(Text(f"\n{number}. {step.title}", style="bold"))
            Path(step.inside).mkdir(exist_ok=True)
            if step.inside != place:
                there = f"../{step.inside}" if place else step.inside
                words.print(Text(f"$ mkdir {there}; cd {there}", style="cyan"))
                place = step.inside
            if step.by_hand is not None:
                with chdir(step.inside):
                    words.print(step.by_hand(), markup=False)
            with chdir(step.inside):
                for command in step.commands:
                    known = command.replace(MODEL, hands.model_option())
                    words.print(Text(f"$ targetdp {known}", style="cyan"))
                    _run(known)
        words.print(Text("\nWhat the list has cost people, and what others would", style="bold"))
        with chdir(SECOND):
            costs = hands.count()
    out = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    out.print(cost.render(costs))
    out.print()
    out.print(_summary(folder))
    words.print(
        f"Done in {time.monotonic() - begin:.0f} s. Open {folder / FIRST / 'togo.html'} in a browser."
    )


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
        ("official", "first/togo.html", "decision page of an aid program: open it in a browser"),
        ("official", "first/nigeria.html", "decision page of a lending program"),
        (
            "official",
            "first/decisions.csv",
            "who is helped, by pseudonym, with everybody's chance to be poor",
        ),
        ("official", "second/list.csv", "who is helped, by drawn answers and by lots"),
        ("data holder", "first/desk/policy.toml", "what the data holder allows: read it"),
        ("data holder", "first/private_sample.parquet", "the private rows that are handed over"),
        (
            "data holder",
            "first/private_sample.parquet.certificate.md",
            "their certificate, to read; beside it as JSON, signed",
        ),
        ("data holder", "first/scores.parquet", "one private number of everybody else, certified, too"),
        ("data holder", "second/decisions.parquet", "one private yes or no about everybody, certified, too"),
        ("researcher", "first/togo/summary.parquet", "every figure of the sweep, with intervals"),
        ("researcher", "first/figures", "the paper's Figures 2 and 3, and two more, as PNG, SVG and PDF"),
        (
            "researcher",
            "first/program.toml",
            "the aid program as a file: change it, and run targetdp tradeoff on it",
        ),
    )

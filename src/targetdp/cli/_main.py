"""The command line: wiring only. Data go to stdout, words and progress to stderr. Exit codes: `_endings`."""

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import wrap
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_command_name

from targetdp._core import __version__
from targetdp.cli._agree import agree
from targetdp.cli._attacks._attack import app as attack
from targetdp.cli._desk import ids, init, status
from targetdp.cli._endings import asks_for_json, ending_of, sigterm_raises
from targetdp.cli._holder_tools import approve, columns, scales, schema
from targetdp.cli._holder_tools import keys as key
from targetdp.cli._ledger import app as ledger
from targetdp.cli._plan import plan
from targetdp.cli._privatize import privatize, requests
from targetdp.cli._program import app as program
from targetdp.cli._program import example
from targetdp.cli._report import app as report
from targetdp.cli._targeting._allocate import allocate
from targetdp.cli._targeting._learn import learn
from targetdp.cli._tradeoff import app as tradeoff
from targetdp.cli._verify import verify

COMMANDS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "For the data holder": {
        "init": init,
        "privatize": privatize,
        "status": status,
        "ledger": ledger,
        "ids": ids,
        "agree": agree,
        "key": key,
        "approve": approve,
        "scales": scales,
    },
    "For the program official": {
        "learn": learn,
        "allocate": allocate,
        "verify": verify,
        "request": requests,
        "report": report,
    },
    "For the privacy researcher": {
        "tradeoff": tradeoff,
        "attack": attack,
        "plan": plan,
        "program": program,
        "example": example,
        "columns": columns,
        "schema": schema,
    },
}
"""Every command by who uses it, in the order of `targetdp --help`. Each needs an example, too."""

EXAMPLES = {
    "init": "features.parquet",
    "privatize": "features.parquet private.parquet --request request.toml",
    "status": "",
    "ledger": "show",
    "ledger show": "--json",
    "ledger verify": "private.parquet.certificate.json",
    "ledger resume": "--reason 'restored from a backup'",
    "ledger log": "",
    "ledger export": "ledger.jsonl",
    "ledger withdraw": "3f9c2a --reason 'wrong month'",
    "ledger erase": "people.csv --reason 'they asked for it'",
    "ids": "labelled.csv ids.csv",
    "agree": "features.parquet agreed.csv agreed.parquet",
    "request": "show request.toml",
    "request sign": "request.toml --out signed.toml",
    "request show": "request.toml",
    "key": "",
    "key show": "--desk desk",
    "key rotate": "--reason 'once a year'",
    "key replace": "--reason 'the disk broke, and no backup had it'",
    "key trust": "operator 3q2+7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "key list": "",
    "key forget": "operator",
    "approve": "proposed.json --out approval.json",
    "scales": "census.parquet --id name --features calls,texts --source public --reason census "
    "--out scales.toml",
    "learn": "sample.parquet labels.csv --ids ids.csv --program program.toml --out request.toml",
    "allocate": "decisions.parquet --program program.toml --known agreed.csv --out list.csv",
    "verify": "private.parquet",
    "report": "results/ --out report.html",
    "report page": "results/ --out report.html --singling-out 0.9",
    "report figures": "results-togo/ results-nigeria/ --out figures/",
    "tradeoff": "togo --quick --out results/",
    "tradeoff run": "program.toml --simulations 50 --out results/",
    "tradeoff recommend": "results/ --inference 0.7 --out release.toml",
    "attack": "features.parquet private.parquet --id name",
    "attack release": "features.parquet private.parquet --id name --holdout others.parquet",
    "attack audit": "--B 0.25 --epsilon 4 --delta 1e-5 --features 10",
    "plan": "--B 0.25 --epsilon 4 --delta 1e-4 --accuracy 0.99",
    "program": "init survey.parquet --kind aid --out program.toml",
    "program init": "survey.parquet --kind aid --target consumption --quota 0.29 --out program.toml",
    "example": "togo --out features.parquet --program program.toml",
    "columns": "features.parquet --without name > features.txt",
    "schema": "certificate",
}
"""How each command could be called: what stands behind its name. It is shown below its help."""

_WIDTH = 76
"""Of a line of an example, without the backslash at its end: it fits a terminal of 80 columns."""


class _InOrder(TyperGroup):
    """Commands and groups of commands, in the order of `COMMANDS`."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Names of the commands."""
        return [name for commands in COMMANDS.values() for name in commands]


def _give_examples(app: typer.Typer, *names: str) -> None:
    """Put each example below the help of its command; ``names`` are those of the groups around it."""
    for command in app.registered_commands:
        name = command.name or get_command_name(getattr(command.callback, "__name__", ""))
        command.epilog = _epilog(*names, name)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            group.epilog = _epilog(*names, str(group.name))
            _give_examples(group.typer_instance, *names, str(group.name))


def _epilog(*names: str) -> str | None:
    arguments = EXAMPLES.get(" ".join(names))
    if arguments is None:
        return None
    call = " ".join(["targetdp", *names, arguments]).strip()
    call = re.sub(r"(--[\w-]+) ", "\\1\u00a0", call)  # an option and its value stay in one line
    lines = wrap(call, _WIDTH, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False)
    return "Example:\n\n" + " \\\n".join(lines).replace("\u00a0", " ")


app = typer.Typer(
    name="targetdp",
    cls=_InOrder,
    help="Release personal data for targeting under a targeted differential privacy guarantee.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _panel, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, rich_help_panel=_panel)(_command)
_give_examples(app)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"targetdp {__version__}")
        raise typer.Exit


@app.callback()
def targetdp(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Release personal data for targeting under a targeted differential privacy guarantee."""


def main() -> None:
    """Run a command; whatever goes wrong is a message and an exit code, not a traceback."""
    with _warnings_for_people(), sigterm_raises():
        try:
            app()
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            ending = ending_of(error)
            if ending is None:
                raise
            ending.tell(as_json=asks_for_json(get_command(app), sys.argv[1:]))
            raise SystemExit(ending.exit_code) from error


@contextmanager
def _warnings_for_people() -> Iterator[None]:
    """Show a library's warning by its message, without its line of code."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before

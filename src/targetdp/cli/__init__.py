"""The command line: wiring only. Data go to stdout, words and progress to stderr.

Exit codes: 0 done, 1 a check did not hold, 2 bad input or refused (nothing was published), 3 the machine
could not do it (a full disk, say; nothing was published), 130 interrupted.
"""

import errno
import sys

import typer

from targetdp.cli import ledger, plan, privatize, scales, tools, verify
from targetdp.version import __version__

app = typer.Typer(
    name="targetdp",
    help="Release personal data for targeting under a targeted differential privacy guarantee.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(plan.plan)
app.command()(scales.scales)
app.command()(privatize.privatize)
app.command()(verify.verify)
app.add_typer(ledger.app, name="ledger")
app.command()(tools.columns)
app.command()(tools.key)
app.command()(tools.schema)


@app.callback()
def targetdp() -> None:
    """Release personal data for targeting under a targeted differential privacy guarantee."""


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def main() -> None:
    """Run a command; whatever goes wrong is a message and an exit code, not a traceback."""
    try:
        app()
    except (ValueError, TypeError) as error:
        _leave(f"error: {error}", 2, error)
    except OSError as error:
        remedy = "make room and run again" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "see above"
        place = f" ({error.filename})" if error.filename else ""
        _leave(f"error: {error.strerror or error}{place}: {remedy}. Nothing was published", 3, error)
    except KeyboardInterrupt as error:
        _leave("interrupted. Nothing was published", 130, error)


def _leave(message: str, code: int, cause: BaseException) -> None:
    typer.echo(message, file=sys.stderr)
    raise SystemExit(code) from cause

"""The command line: wiring only. Data go to stdout, words and progress to stderr.

Exit codes: 0 done, 1 a check did not hold, 2 bad input or refused, 3 the machine could not do it (a full
disk, say), 130 interrupted; for all of these nothing was published. 4: the release IS published, but what
came after it failed.
"""

import errno
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer

from targetdp._core import __version__
from targetdp.cli._attack import attack, audit
from targetdp.cli._console import PublishedError
from targetdp.cli._holder_tools import columns, key, scales, schema, verify
from targetdp.cli._ledger import app as ledger
from targetdp.cli._plan import plan
from targetdp.cli._privatize import privatize, score
from targetdp.cli._program import app as program
from targetdp.cli._program import example
from targetdp.cli._report import figures, report
from targetdp.cli._targeting import allocate, learn
from targetdp.cli._tradeoff import app as tradeoff

app = typer.Typer(
    name="targetdp",
    help="Release personal data for targeting under a targeted differential privacy guarantee.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_ABOUT_RELEASES = (plan, scales, privatize, learn, score, allocate, verify, attack, audit)
_ABOUT_PROGRAMS_AND_FILES = (example, report, figures, columns, key, schema)
for _command in (*_ABOUT_RELEASES, *_ABOUT_PROGRAMS_AND_FILES):
    app.command()(_command)
app.add_typer(ledger, name="ledger")
app.add_typer(program, name="program")
app.add_typer(tradeoff, name="tradeoff")


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
        with _warnings_for_people():
            app()
    except PublishedError as error:
        _leave(f"error: {error}", 4, error)
    except (ValueError, TypeError) as error:
        _leave(f"error: {error}", 2, error)
    except (OSError, RuntimeError) as error:
        code = error.errno if isinstance(error, OSError) else None
        remedy = ": make room and run again" if code in {errno.ENOSPC, errno.EDQUOT} else ""
        place = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        _leave(f"error: {text}{place}{remedy}", 3, error)
    except KeyboardInterrupt as error:
        _leave("interrupted", 130, error)


@contextmanager
def _warnings_for_people() -> Iterator[None]:
    """A library's warning is told by what it says, not by the line of code that said it."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def _leave(message: str, code: int, cause: BaseException) -> None:
    with suppress(OSError):  # whoever listened may be gone; the exit code still tells
        typer.echo(". ".join([message, *getattr(cause, "__notes__", ())]), file=sys.stderr)
    raise SystemExit(code) from cause

"""`targetdp agree`: rows of people who agreed to it are handed over as they are, on record."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from targetdp.cli._console import (
    Bar,
    DeskFolder,
    FromTable,
    PublishedError,
    Query,
    TableName,
    emit,
    tell,
)


def agree(
    table: TableName,
    people: Annotated[Path, typer.Argument(help="*.csv or *.parquet with the ids of those who agreed")],
    output: Annotated[
        Path | None, typer.Argument(help="*.parquet or *.csv: their rows; not for --check")
    ] = None,
    *,
    from_table: FromTable = None,
    query: Query = None,
    column: Annotated[str | None, typer.Option(help="their column in PEOPLE; default: its first")] = None,
    desk: DeskFolder = None,
    check: Annotated[bool, typer.Option("--check", help="only look: nothing changes")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="ask nothing")] = False,
    force: Annotated[bool, typer.Option("--force", help="replace rows that were handed over before")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress and no summary")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
) -> None:
    """Hand over rows of people who agreed to it, as they are, as far as the policy's part agreed allows.

    Nothing is promised to these people from then on, and certificates say so. It shows who goes out, with
    what and what that means, and asks before anything goes on record.
    """
    if output is None and not check:
        raise ValueError("OUTPUT must be given: where their rows go; or --check, to look only")
    from targetdp.release import (
        NotHandedOver,
        PublishedButUnsettledError,
        check_agreed,
        hand_over,
    )
    from targetdp.table import table_named

    given = table_named(table, table=from_table, query=query)
    asking = _Asking(quiet=quiet or as_json, yes=yes)
    if check or output is None:
        with Bar(quiet=quiet or as_json) as bar:
            seen = check_agreed(given, people, desk=desk, column=column, progress=bar)
        asking.look(seen)
        if seen.problems:
            raise NotHandedOver(seen)
        if as_json:
            emit(seen.record())
        if not quiet:
            tell("nothing keeps these people from being handed over; nothing went on record")
        return
    try:
        with Bar(quiet=quiet or as_json) as bar:
            asking.bar = bar
            done = hand_over(
                given, people, output, desk=desk, column=column, confirm=asking.confirm, force=force,
                progress=bar,
            )  # fmt: skip
    except PublishedButUnsettledError as error:
        raise PublishedError(str(error)) from error
    except (OSError, RuntimeError, KeyboardInterrupt) as error:
        error.add_note("Nothing was handed over")
        raise
    try:
        record = done.agreement
        if as_json:
            emit({"output": str(done.path), **record.model_dump(mode="json"), "look": done.look.record()})
        if not quiet:
            tell(
                f"{record.rows:,} people, {len(record.columns):,} columns as they are → {done.path}: nothing "
                f"is promised to these people (desk {record.desk.name}, agreement {record.agreement[:12]})"
            )
            tell(f"their record: {done.path}.agreement.json; hand over both, and guard them as the table")
    except (OSError, ValueError, KeyboardInterrupt) as error:
        lost = f"these people ARE handed over ({done.path}); only the summary was lost: {error}"
        raise PublishedError(lost) from error


class _Asking:
    """Shows the data holder who would be handed over, and asks."""

    def __init__(self, *, quiet: bool, yes: bool) -> None:
        self._quiet, self._yes = quiet, yes
        self.bar: Bar | None = None

    def look(self, seen: Any) -> None:
        """Who would go out, with what."""
        for line in () if self._quiet else seen.lines:
            tell(line)

    def confirm(self, seen: Any) -> None:
        """Show everything and go on only with the data holder's word."""
        if self.bar is not None:
            self.bar.pause()
        if self._yes:
            self.look(seen)
            return
        self._quiet = False
        self.look(seen)
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise ValueError("nobody is at the terminal to say yes: look with --check, then give --yes")
        if not typer.confirm("Did these people agree to this, and shall they be handed over?", err=True):
            raise ValueError("that was not confirmed: nothing went on record and nothing was handed over")

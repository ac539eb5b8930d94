"""`targetdp privatize` and `request`: what is asked for, and what a desk makes of it, certified."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from targetdp._core import NotYetError, declared
from targetdp.cli._console import (
    Bar,
    DeskFolder,
    FromTable,
    KeyFile,
    NewPeople,
    PublishedError,
    Query,
    emit,
    must_be_free,
    save_new,
    tell,
    warn,
)
from targetdp.cli._endings import Outcome, ending_record

if TYPE_CHECKING:
    from targetdp.release import Request

    EngineName = str
else:
    EngineName = Literal[declared("targetdp.release._engine")]


_POSSIBLE = "nothing keeps this release from being made; nothing was charged, drawn or published"


def privatize(
    names: Annotated[
        list[str],
        typer.Argument(
            help="the table (Parquet or CSV: files, folders of part files, or patterns in quotes; - for "
            "standard input; postgresql://…, duckdb:FILE, sqlite:FILE; s3://…), then the output: *.parquet, "
            "*.csv, or a folder (no suffix), also s3://…; for --check it may be left out",
            metavar="TABLE... OUTPUT",
        ),
    ],
    *,
    from_table: FromTable = None,
    query: Query = None,
    request: Annotated[Path | None, typer.Option(help="what an official asks for (TOML)")] = None,
    B: Annotated[
        float | None,
        typer.Option("--B", help="without a request: people within this distance are hidden from each other"),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="without a request: ε of the guarantee")] = None,
    desk: DeskFolder = None,
    check: Annotated[bool, typer.Option("--check", help="only look: nothing changes")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="ask nothing")] = False,
    force: Annotated[bool, typer.Option("--force", help="replace an output that is a release")] = False,
    units: Annotated[
        Path | None, typer.Option(help="also write the rows in the table's own units, to this file")
    ] = None,
    engine: Annotated[EngineName | None, typer.Option(help="where the work is done")] = None,
    new_people: NewPeople = None,
    csv: Annotated[
        str | None, typer.Option(help="how CSV files are written, in place of what the policy says")
    ] = None,
    model: Annotated[
        list[Path] | None, typer.Option(help="the file (ONNX) of a model that the request names; repeatable")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress and no summary")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
) -> None:
    """Release private rows, scores or decisions, with a certificate, as far as the desk's policy allows.

    It shows what would go out, at what price, and asks before anything is charged.
    """
    tables, output = _tables_and_output(names, check=check)
    from targetdp.table import Elsewhere, find_files, is_stored, local_path, open_source, table_named

    table = table_named(tables, table=from_table, query=query)
    # What is no table is refused at once, before anything slow is imported.
    try:
        if not isinstance(table, Elsewhere):
            _ = find_files(table).format
        elif csv is not None:
            raise ValueError("--csv is for files: for any other table say it in [csv] of policy.toml")
    except NotYetError as error:
        if yes and not check:  # a timer's; a slip of the hand is answered at once
            _log_waiting(desk, error)
        raise
    from targetdp.release import Desk, certificate_path, must_have_units

    asked, opened = _asked(request, B, epsilon), Desk.open(desk)
    usual = opened.policy.csv if csv is None else csv
    source = table if isinstance(table, Elsewhere) else open_source(table, csv=usual, keep_words=True)
    if units is not None and output is not None:
        again = not is_stored(output) and certificate_path(local_path(output)).exists()
        inputs = () if isinstance(source, Elsewhere) else (*source.places, *source.files)
        must_have_units(asked.release, units, Path(output), (*inputs, opened.path))
        must_be_free("units", units, force=force or again)  # a timer finds both there
    given = {
        "desk": opened, "request": asked, "engine": engine, "new_people": new_people,
        "models": model or (),
    }  # fmt: skip
    shown = _Shown(quiet=quiet, as_json=as_json, yes=yes)
    if check or output is None:
        _look(source, given, shown)
    else:
        _release(source, output, given, shown, units, force=force)


def _look(source: Any, given: dict[str, Any], shown: "_Shown") -> None:
    """Look only; nothing changes."""
    from targetdp.release import check_release

    with shown.bar as bar:
        seen = check_release(source, **given, progress=bar)
    shown.look(seen)
    if seen.problems:
        raise seen.refusal
    shown.end("possible", _POSSIBLE, {"look": seen.record()})


def _release(
    source: Any, output: str, given: dict[str, Any], shown: "_Shown", units: Path | None, *, force: bool
) -> None:
    """Release, or find that it was done before."""
    from targetdp.release import AlreadyReleased, PublishedButUnsettledError, fetched, privatize
    from targetdp.release import write_in_units as in_units

    further: tuple[str, ...] = ()

    try:
        with shown.bar as bar:
            done = privatize(source, output, **given, confirm=shown.confirm, force=force, progress=bar)
    except AlreadyReleased as before:
        shown.end("already released", str(before), _summary(before.place, before.certificate))
        return
    except PublishedButUnsettledError as error:
        raise PublishedError(str(error)) from error
    except (OSError, RuntimeError, KeyboardInterrupt) as error:
        error.add_note("Nothing was published")
        raise
    own = {"rows_clipped": done.clipped, "rows_without_answer": done.without_answer}
    seen = {"look": done.look.record(), "for_the_data_holder_only": own}
    what = "its summary" if units is None else f"{units}, in the table's own units,"
    try:
        if units is not None:
            with fetched(output) as place:
                in_units(place, done.certificate, units, force=force)
            what = "its summary"
            further = (f"in the table's own units: {units} (not certified: computed from it)",)
        told = _summary(done.place, done.certificate) | seen
        shown.end("released", _in_words(done), told, [*_further(done), *further])
    except (OSError, ValueError, KeyboardInterrupt) as error:
        lost = f"the release IS published ({done.place}); only {what} was lost: {error}"
        raise PublishedError(lost) from error


def _asked(request: Path | None, B: float | None, epsilon: float | None) -> "Request":
    """What is asked for: by a file, or at this desk."""
    from targetdp.release import make_request, read_request

    if request is not None and (B is not None or epsilon is not None):
        raise ValueError("--B and --epsilon are the request's: leave them out, or give no --request")
    if request is None and (B is None or epsilon is None):
        raise ValueError("what is asked for must be given: --request FILE, or --B and --epsilon")
    return read_request(request) if request is not None else make_request(B=B, epsilon=epsilon)


def _tables_and_output(names: list[str], *, check: bool) -> tuple[list[str], str | None]:
    """Which names are the table's, and which is the output's: the last of several.

    A look may go without: of more than two names, the last one is a table if it is there and no release.
    """
    *tables, last = names
    if not (tables or check):
        raise ValueError("OUTPUT must be given: where the release goes; or --check, to look only")
    if not tables:
        return names, None
    if len(tables) > 1 and _is_table(last):
        if check:
            return names, None
        raise ValueError(
            f"{last} exists, and as the last name it is where the release would go: name an output behind it"
        )
    if check:
        warn((f"{last} is taken for the output, which exists and is no release: a real run refuses it",))
    return tables, last


def _is_table(name: str) -> bool:
    """Whether there is something under a name, and it is no release."""
    from targetdp.table import is_stored, local_path

    if is_stored(name) or not local_path(name).exists():
        return False
    from targetdp.release import certificate_path

    path = local_path(name)
    return not (path.name and certificate_path(path).exists())


class _Shown:
    """Shows the data holder a look, asks, and says how it ended."""

    def __init__(self, *, quiet: bool, as_json: bool, yes: bool) -> None:
        self._quiet, self._as_json, self._yes = quiet, as_json, yes
        self.bar = Bar(quiet=quiet or as_json)

    def end(self, outcome: Outcome, message: str, facts: dict[str, Any], further: Sequence[str] = ()) -> None:
        """How it ended, well: an object for programs, words for people."""
        if self._as_json:
            emit(ending_record(outcome, 0, message) | facts)
        for line in () if self._quiet else (message, *further):
            tell(line)

    def look(self, seen: Any) -> None:
        """What would go out; warnings whatever was asked for."""
        if not (self._quiet or self._as_json):
            for line in seen.lines:
                tell(line)
        warn(seen.warnings)

    def confirm(self, seen: Any) -> None:
        """Show everything and go on only with the data holder's word."""
        self.bar.pause()
        if self._yes:
            self.look(seen)
            return
        # Whoever is asked sees what it is about, whatever was to be quiet.
        self._quiet = self._as_json = False
        self.look(seen)
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise ValueError("nobody is at the terminal to say yes: look with --check, then give --yes")
        if not typer.confirm("Release this?", err=True):
            raise ValueError("that was not confirmed: nothing was charged, drawn or published")


def _log_waiting(desk: Path | None, error: NotYetError) -> None:
    """One line in the desk's log, as of every run, where there is a desk."""
    from targetdp.release import Desk

    with suppress(ValueError, OSError):
        Desk.open(desk).log("waiting", kind=type(error).__name__)


def _summary(place: str, c: Any) -> dict[str, Any]:
    return {
        "output": place,
        "certificate": place + ".certificate.json",
        "release": c.release,
        "desk": c.desk.model_dump(),
        "request": c.request.model_dump(),
        "rows": c.rows,
        "features": list(c.features),
        "scores": list(c.scores),
        "decisions": [one.name for one in c.decisions],
        "guarantee": c.guarantee.model_dump(),
        "conditions": list(c.conditions),
        "mechanism": c.mechanism.name,
        "sha256": c.output.sha256,
        "ledger": c.ledger.model_dump(),
    }


def _in_words(done: Any) -> str:
    from targetdp.release import format_guarantee

    c = done.certificate
    one = {"rows": "column", "scores": "score", "decisions": "decision"}[c.kind]
    what = one + "s" * (len(c.released) > 1)
    return (
        f"{c.rows:,} rows, {len(c.released)} {what} → {done.place}: {format_guarantee(c.guarantee.value())}, "
        f"on conditions (desk {c.desk.name}, release {c.release[:12]})"
    )


def _further(done: Any) -> list[str]:
    """What there is to know besides; some of it is for the data holder only."""
    c = done.certificate
    said = [f"certificate: {done.place}.certificate.json, for people: {done.place}.certificate.md"]
    if done.without_answer:
        said.append(
            f"for you only: {done.without_answer:,} rows had no answer of a model (never publish this)"
        )
    if c.scales.source != "none":
        share = done.clipped / c.rows
        said.append(
            f"for you only: {share:.1%} of rows were longer than 1 and were clipped (never publish this)"
        )
    return said


# What is asked for: written, shown and signed by an official.

requests = typer.Typer(help="What an official asks a data holder for.", no_args_is_help=True)


@requests.command()
def sign(
    request: Annotated[Path, typer.Argument(help="the request (TOML)")],
    *,
    output: Annotated[Path, typer.Option("--out", help="the signed request to write")],
    key: KeyFile = None,
    force: Annotated[bool, typer.Option("--force", help="replace a file that exists")] = False,
) -> None:
    """Sign a request with your own key, so that the data holder knows whose it is."""
    from targetdp.release import SigningKey, default_key_path, read_request

    must_be_free("out", output, force=force)
    asked = read_request(request)
    opened = SigningKey.open(key or default_key_path())
    save_new("request", output, asked.signed(opened).text(), force=force)
    tell(f"signed with key {opened.fingerprint} → {output}; the data holder must know your key: targetdp key")


@requests.command()
def show(
    request: Annotated[Path, typer.Argument(help="the request (TOML)")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of words")] = False,
) -> None:
    """Say in words what a request asks for, and whether its signature fits."""
    from targetdp.release import describe_request, read_request

    asked = read_request(request)
    if as_json:
        emit(asked.model_dump(mode="json") | {"sha256": asked.sha256, "signer": asked.signer})
        return
    for line in describe_request(asked):
        emit(line)

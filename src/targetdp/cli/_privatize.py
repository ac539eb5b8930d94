"""`targetdp privatize` and `request`: what is asked for, and what a desk makes of it, certified."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from targetdp._core import declared
from targetdp.cli._console import (
    Bar,
    DeskFolder,
    KeyFile,
    NewPeople,
    PublishedError,
    emit,
    must_be_free,
    save_new,
    tell,
    warn,
)

if TYPE_CHECKING:
    from targetdp.release import Request

    EngineName = str
else:
    EngineName = Literal[declared("targetdp.release._engine")]


def privatize(
    table: Annotated[Path, typer.Argument(help="Parquet or CSV: a file, or a directory of part files")],
    output: Annotated[
        Path | None, typer.Argument(help="*.parquet, *.csv, or a directory (no suffix); not for --check")
    ] = None,
    *,
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
    model: Annotated[
        list[Path] | None, typer.Option(help="the file (ONNX) of a model that the request names; repeatable")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress and no summary")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
) -> None:
    """Release private rows, scores or decisions, with a certificate, as far as the desk's policy allows.

    It shows what would go out, at what price, and asks before anything is charged.
    """
    if output is None and not check:
        raise ValueError("OUTPUT must be given: where the release goes; or --check, to look only")
    from targetdp.table import open_source

    # What is no table is refused at once, before anything slow is imported.
    source = open_source(table, keep_words=True)
    from targetdp.release import (
        Desk,
        PublishedButUnsettledError,
        Refused,
        check_release,
        must_have_units,
    )
    from targetdp.release import privatize as release

    asked = _asked(request, B, epsilon)
    if units is not None and output is not None:
        must_be_free("units", units, force=force)
        must_have_units(asked.release, units, output)
    opened = Desk.open(desk)
    shown = _Shown(quiet=quiet, as_json=as_json, yes=yes)
    if check or output is None:
        with Bar(quiet=quiet or as_json) as bar:
            seen = check_release(
                source, desk=opened, request=asked, engine=engine, new_people=new_people,
                models=model or (), progress=bar,
            )  # fmt: skip
        shown.look(seen)
        if seen.problems:
            raise Refused(seen)
        if as_json:
            emit(seen.record())
        if not quiet:
            tell("nothing keeps this release from being made; nothing was charged, drawn or published")
        return
    try:
        with Bar(quiet=quiet or as_json) as bar:
            shown.bar = bar
            done = release(
                source, output, desk=opened, request=asked, engine=engine, new_people=new_people,
                models=model or (), confirm=shown.confirm, force=force, progress=bar,
            )  # fmt: skip
    except PublishedButUnsettledError as error:
        raise PublishedError(str(error)) from error
    except (OSError, RuntimeError, KeyboardInterrupt) as error:
        error.add_note("Nothing was published")
        raise
    what = "its summary"
    try:
        if units is not None:
            what = f"{units}, in the table's own units,"
            _write_units(done, units, force=force, quiet=quiet)
            what = "its summary"
        if as_json:
            emit(_summary(done))
        if not quiet:
            _say(done)
    except (OSError, ValueError, KeyboardInterrupt) as error:
        lost = f"the release IS published ({done.path}); only {what} was lost: {error}"
        raise PublishedError(lost) from error


def _asked(request: Path | None, B: float | None, epsilon: float | None) -> "Request":
    """What is asked for: by a file, or at this desk."""
    from targetdp.release import make_request, read_request

    if request is not None and (B is not None or epsilon is not None):
        raise ValueError("--B and --epsilon are the request's: leave them out, or give no --request")
    if request is None and (B is None or epsilon is None):
        raise ValueError("what is asked for must be given: --request FILE, or --B and --epsilon")
    return read_request(request) if request is not None else make_request(B=B, epsilon=epsilon)


def _write_units(done: Any, place: Path, *, force: bool, quiet: bool) -> None:
    from targetdp.release import write_in_units

    write_in_units(done.path, done.certificate, place, force=force)
    if not quiet:
        tell(f"in the table's own units: {place} (not certified: computed from the release)")


class _Shown:
    """Shows a look to the data holder, and asks."""

    def __init__(self, *, quiet: bool, as_json: bool, yes: bool) -> None:
        self._quiet, self._as_json, self._yes = quiet, as_json, yes
        self.bar: Bar | None = None

    def look(self, seen: Any) -> None:
        """What would go out; warnings whatever was asked for."""
        if not (self._quiet or self._as_json):
            for line in seen.lines:
                tell(line)
        warn(seen.warnings)

    def confirm(self, seen: Any) -> None:
        """Show everything and go on only with the data holder's word."""
        if self.bar is not None:
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


def _summary(done: Any) -> dict[str, Any]:
    c = done.certificate
    return {
        "output": str(done.path),
        "certificate": str(done.path) + ".certificate.json",
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
        "look": done.look.record(),
        "warnings": list(done.look.warnings),
        "for_the_data_holder_only": {
            "rows_clipped": done.clipped,
            "rows_without_answer": done.without_answer,
        },
    }


def _say(done: Any) -> None:
    from targetdp.release import format_guarantee

    c = done.certificate
    one = {"rows": "column", "scores": "score", "decisions": "decision"}[c.kind]
    what = one + "s" * (len(c.released) > 1)
    tell(
        f"{c.rows:,} rows, {len(c.released)} {what} → {done.path}: {format_guarantee(c.guarantee.value())}, "
        f"on conditions (desk {c.desk.name}, release {c.release[:12]})"
    )
    tell(f"certificate: {done.path}.certificate.json, for people: {done.path}.certificate.md")
    if done.without_answer:
        tell(f"for you only: {done.without_answer:,} rows had no answer of a model (never publish this)")
    if c.scales.source == "none":
        return
    share = done.clipped / c.rows
    tell(f"for you only: {share:.1%} of rows were longer than 1 and were clipped (never publish this)")


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

"""Small commands of a data holder: scales, columns of a table, keys, approvals, schemas."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from targetdp.cli._console import (
    Bar,
    Csv,
    DeskFolder,
    FirstByDefault,
    FromTable,
    KeyFile,
    Query,
    Tables,
    cells,
    constants,
    emit,
    must_be_free,
    names,
    opened_table,
    out,
    save_new,
    tell,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from targetdp.table import Column, Source
# `targetdp scales`: learn column scales from public data, or say that they are confidential.


def scales(
    table: Annotated[
        list[str],
        typer.Argument(
            help="a table of OTHER people (public), or of the same (confidential): files or folders",
            metavar="TABLE...",
        ),
    ],
    features: Annotated[str, typer.Option(help="columns to scale: a,b,c (* stands for anything) or @FILE")],
    source: Annotated[
        Literal["public", "confidential"],
        typer.Option(
            help="public: learned from no one who will be released; confidential: from the same people"
        ),
    ],
    out: Annotated[Path, typer.Option(help="scales file to write (TOML)")],
    from_table: FromTable = None,
    query: Query = None,
    reason: Annotated[
        str | None, typer.Option(help="why public scales are public: whose data they are learned from")
    ] = None,
    id: Annotated[  # noqa: A002
        str | None, typer.Option(help="column that identifies a person; default: guessed")
    ] = None,
    without: Annotated[
        Path | None, typer.Option(help="leave out the people of this table: that which will be released")
    ] = None,
    other_people: Annotated[
        str | None, typer.Option(help="why ids that both tables have are other people's, if they are")
    ] = None,
    impute: Annotated[str | None, typer.Option(help="constants for missing values")] = None,
    csv: Csv = None,
    fit: Annotated[
        float | None,
        typer.Option(help="widen all scales alike, so that this share of rows fits in the unit ball"),
    ] = None,
    force: Annotated[bool, typer.Option(help="replace a file that exists")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress and no words")] = False,
) -> None:
    """Write the means and deviations of a table's columns to a scales file.

    Whom public scales are learned from is kept by keyed tags in your configuration: a release of the same
    people does not accept them.
    """
    import numpy as np

    from targetdp.normalization import scales_text
    from targetdp.release import learn_scales, people_in, remember_people
    from targetdp.table import columns_like, guess_id, open_source, profile_table

    if source == "public" and not (reason and reason.strip()):
        raise ValueError(
            "--reason must be given: whose data public scales are learned from, and why they are public"
        )
    if out.exists() and not force:
        raise ValueError(f"scales file {out} exists: choose another name, or replace it with --force")
    left_out = people = None
    with opened_table(table, from_table, query, csv=csv) as given, Bar(quiet=quiet) as bar:
        column = id or guess_id(profile_table(given))
        wanted = columns_like(names(features) or (), [name for name in given.columns if name != column])
        if without is not None:
            theirs = column if column in open_source(without).columns else guess_id(profile_table(without))
            if column is None or theirs is None:
                raise ValueError(f"{given if column is None else without} has no column that identifies "
                                 "people: name it with --id; without one nobody can be left out")  # fmt: skip
            left_out = people_in(without, theirs)
        learned = learn_scales(
            given, wanted, id_column=column, impute=constants(impute), fit=fit, progress=bar, without=left_out
        )
        if source == "public" and column is not None:
            of = people_in(given, column)
            of = of if left_out is None else np.setdiff1d(of, left_out)
            people = remember_people(of, learned, wanted)
    text = scales_text(learned, wanted, source, reason, people, other_people)
    save_new("scales file", out, text, force=force, private=source == "confidential")
    if not quiet:
        tell(f"scales of {len(wanted)} columns → {out} ({source})")


# Every kind of file that targetdp reads or writes, by name: their JSON schemas are in `docs/schemas`.


def schemas() -> "dict[str, type[BaseModel]]":
    """The model behind each kind of file."""
    from targetdp.normalization import ScalesFile
    from targetdp.programs import program_file
    from targetdp.release import AgreementRecord, Certificate, Policy, Request

    return {
        "request": Request,
        "policy": Policy,
        "certificate": Certificate,
        "agreement": AgreementRecord,
        "scales": ScalesFile,
        "program": program_file(),
    }


# Small commands beside a release: a table's columns, the public key, schemas.


EYES = (
    "For the data holder's eyes only: counts and ranges are statistics of people, and no one paid for them."
)


def columns(
    table: Tables,
    from_table: FromTable = None,
    query: Query = None,
    csv: Csv = None,
    without: Annotated[str | None, typer.Option(help="names to leave out: a,b,c or @FILE")] = None,
    only_names: Annotated[
        bool, typer.Option("--names", help="print names only, one in each line, to edit and give to @FILE")
    ] = False,
    levels: Annotated[
        str | None, typer.Option(help="print the levels of this column, to declare them: data of people")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
) -> None:
    """Print a table's columns: type, gaps, range, and whether each can be released as it is."""
    from targetdp.table import check_columns, guess_id, profile_table

    left_out = names(without) or ()
    with opened_table(table, from_table, query, csv=csv) as source:
        named = [] if levels is None else [levels]
        check_columns(source.columns, f"input {source}", without=left_out, levels=named)
        if levels is not None:
            _show_levels(source, levels)
            return
        shown = [name for name in source.columns if name not in left_out]
        if only_names:
            emit("\n".join(shown))
            return
        profile = profile_table(source)
    likely = guess_id(profile)
    listed = [_listed(profile[name], is_id=name == likely) for name in shown]
    if as_json:
        emit(
            {
                "notice": EYES,
                "table": source.described,
                "rows": profile.rows,
                "whole": profile.whole,
                "id": likely,
                "columns": listed,
            }
        )
        return
    read = f"{profile.rows:,} rows" if profile.whole else f"the first {profile.rows:,} rows"
    report = Table(title=Text(f"{source.described}: {read}\n{EYES}"), title_justify="left")
    for heading in ("column", "type", "gaps", "range", "can be released", "what to do"):
        report.add_column(heading, overflow="fold", justify="right" if heading == "gaps" else "left")
    for about in listed:
        problem, lowest = about["problem"], about["lowest"]
        ends = "" if lowest is None else f"{lowest:g} to {about['highest']:g}"
        can = "as the id" if about["name"] == likely else f"no: {problem['what']}" if problem else "yes"
        remedy = problem["remedy"] if problem else ""
        report.add_row(*cells(about["name"], about["type"], f"{about['gaps']:,}", ends, can, remedy))
    out().print(report, highlight=False)


def _show_levels(table: "Source", column: str) -> None:
    """The values of a column as a line of policy.toml, those that most people have first."""
    from targetdp._files import toml_key, toml_value
    from targetdp.table import levels_of

    found, more = levels_of(table, column)
    tell(EYES)
    tell(
        f"[kinds.{toml_key(column)}] in policy.toml, as far as these may be public; the most frequent first:"
    )
    emit(f"levels = {toml_value(found)}")
    if more:
        tell(f"and more than {len(found):,}: give a level for all others, other = …")


def _listed(column: "Column", *, is_id: bool) -> dict[str, Any]:
    """What is told of a column; an id has no range, whose ends would be two people's, and no problem."""
    problem = None if is_id else column.problem
    return {
        "name": column.name, "type": column.type_name, "different": column.different, "gaps": column.gaps,
        "infinite": column.infinite, "lowest": None if is_id else column.lowest,
        "highest": None if is_id else column.highest,
        "problem": None if problem is None else {"what": problem.what, "remedy": problem.remedy},
    }  # fmt: skip


# Keys: whose they are, and what becomes of them.

keys = typer.Typer(
    cls=FirstByDefault,
    help="Keys: print a desk's, or your own; replace a desk's; name those of others whom you believe.\n\n"
    "The word `show` may be left out: targetdp key.",
)


@keys.command("show")
def show_key(
    key: KeyFile = None,
    desk: Annotated[Path | None, typer.Option("--desk", help="the key of this desk")] = None,
) -> None:
    """Print a public key, for those who check what it signs: a desk's, or your own (made if there is none).

    A data holder's is that of the desk here or above; an official's is her own.
    """
    from targetdp.release import Desk, NoDeskError, SigningKey, default_key_path

    opened = None
    if key is None:
        try:
            opened = Desk.open(desk).key
        except NoDeskError:
            if desk is not None:
                raise
    whose = "your own key" if opened is None else "the key of the desk"
    opened = opened or SigningKey.open(key or default_key_path())
    emit(opened.public)
    tell(f"{whose}, fingerprint {opened.fingerprint}, as certificates print it")


Reason = Annotated[str, typer.Option(help="why, for the record")]


@keys.command("rotate")
def rotate(reason: Reason, desk: DeskFolder = None) -> None:
    """Let a new key sign for the desk, on the word of the present one, which is destroyed.

    Certificates say so from now on: whoever has named the old key can follow. Tell everybody the new one all
    the same, by another way: whoever has a copy of the old key could still sign with it.
    """
    from targetdp.release import Desk, rotate_key

    opened = Desk.open(desk)
    old = opened.key.fingerprint
    new = rotate_key(opened, reason)
    emit(new.public)
    tell(f"key {new.fingerprint} signs from now on, on the word of {old}, which is destroyed; on record")
    tell("back it up, destroy the old one in your backups, and tell officials the new fingerprint")


@keys.command("replace")
def replace(reason: Reason, desk: DeskFolder = None) -> None:
    """Make a new key for a desk whose signing key is lost, without its word; that stays on record.

    Nobody who has named the old key can tell the new one from a stranger's: tell them its fingerprint.
    """
    from targetdp.release import Desk, replace_key

    new = replace_key(Desk.open(desk), reason)
    emit(new.public)
    tell(
        f"key {new.fingerprint} signs from now on, without the word of the old one, which is lost; on record"
    )
    tell("back it up, and tell everybody who checks your releases its fingerprint, by another way")


@keys.command("trust")
def trust_key(
    name: Annotated[str, typer.Argument(help="whose key it is, in a few words")],
    key: Annotated[str, typer.Argument(help="the public key, as `targetdp key` prints it")],
    replace: Annotated[
        bool, typer.Option("--replace", help="the name had another key, and its owner told you of this one")
    ] = False,
) -> None:
    """Name a data holder's key: what it signs is believed from now on, and what others sign is not.

    Ask for the key, or compare its fingerprint, by another way than the release came: on the phone, say.
    """
    from targetdp.release import fingerprint_of, signers_path, trust

    trust(name, key, replace=replace)
    tell(f"{name} signs with key {fingerprint_of(key)} → {signers_path()}")


@keys.command("list")
def list_keys(
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of lines")] = False,
) -> None:
    """List whose signatures are believed: keys that you have named, and those of your own desks."""
    from targetdp.release import fingerprint_of, known_signers

    known = known_signers()
    if as_json:
        emit({name: {"key": one, "fingerprint": fingerprint_of(one)} for name, one in known.items()})
        return
    for name, one in known.items():
        emit(f"{fingerprint_of(one)}  {one}  {name}")
    if not known:
        tell("nobody: targetdp key trust NAME KEY names a data holder's key")


@keys.command("forget")
def forget_key(name: Annotated[str, typer.Argument(help="as `targetdp key list` shows it")]) -> None:
    """Believe a named key no longer."""
    from targetdp.release import forget

    forget(name)
    tell(f"what {name} signs is believed no longer")


# Second signatures, where a policy names approvers.


def approve(
    proposal: Annotated[Path, typer.Argument(help="what is proposed: a desk's proposed.json")],
    *,
    output: Annotated[Path, typer.Option("--out", help="the approval to write: the desk's approval.json")],
    key: KeyFile = None,
    yes: Annotated[bool, typer.Option("--yes", help="ask nothing")] = False,
    force: Annotated[bool, typer.Option("--force", help="replace a file that exists")] = False,
) -> None:
    """Show what a change of a desk's policy would allow, and sign it with your own key as its approver.

    The data holder sends you the proposal, and puts what you send back into the desk.
    """
    from targetdp.release import SigningKey, default_key_path, fingerprint_of, read_proposal

    must_be_free("out", output, force=force)
    proposed = read_proposal(proposal)
    for line in proposed.lines():
        tell(line)
    signed = proposed.approved(SigningKey.open(key or default_key_path(), create=False))
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise ValueError("nobody is at the terminal to say yes: read what changes, then give --yes")
        if not typer.confirm("Approve this?", err=True):
            raise ValueError("that was not confirmed: nothing was signed")
    save_new("approval", output, signed.text(), force=force)
    tell(f"approved with key {fingerprint_of(signed.key)} → {output}; send it to the data holder")


def schema(
    of: Annotated[
        Literal["request", "policy", "certificate", "agreement", "scales", "program"],
        typer.Argument(help="which kind of file"),
    ],
) -> None:
    """Print the JSON schema of a file that targetdp reads or writes."""
    emit(schemas()[of].model_json_schema())

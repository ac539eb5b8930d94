"""`targetdp program`: files that say what a table is used for."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from targetdp.cli.words import names, tell

app = typer.Typer(help="Program files: what a table is used for.", no_args_is_help=True)


@app.callback()
def program() -> None:
    """Program files: what a table is used for."""


@app.command()
def init(
    table: Annotated[
        Path, typer.Argument(help="Parquet or CSV with features and outcomes of the same people")
    ],
    kind: Annotated[
        Literal["aid", "lending"],
        typer.Option(help="aid: the poorest get it; lending: those who are predicted to repay"),
    ],
    out: Annotated[Path, typer.Option(help="program file to write (TOML)")],
    source: Annotated[
        Literal["public", "synthetic", "confidential"], typer.Option(help="where the rows come from")
    ] = "confidential",
    id: Annotated[str | None, typer.Option(help="column that identifies a person")] = None,  # noqa: A002
    target: Annotated[str | None, typer.Option(help="column that is predicted")] = None,
    features: Annotated[str | None, typer.Option(help="columns to privatize: a,b,c or @FILE")] = None,
    groups: Annotated[str | None, typer.Option(help="columns to give every figure by: a,b,c")] = None,
    quota: Annotated[float | None, typer.Option(help="aid: the share of people who get it")] = None,
    population: Annotated[float | None, typer.Option(help="how many people the table stands for")] = None,
    amount: Annotated[str | None, typer.Option(help="lending: column of loan amounts")] = None,
    repaid: Annotated[str | None, typer.Option(help="lending: value of the target that means repaid")] = None,
    revenue: Annotated[
        str | None, typer.Option(help="lending: column of revenue, or a rate of the amount")
    ] = None,
    interest: Annotated[
        str | None, typer.Option(help="lending: column of interest, or a rate of the amount")
    ] = None,
    currency: Annotated[str | None, typer.Option(help="lending: of all money, such as $ or NGN")] = None,
    parts: Annotated[int, typer.Option(help="random parts that a release is made in")] = 1,
    force: Annotated[bool, typer.Option(help="replace a file that exists")] = False,
    quiet: Annotated[bool, typer.Option(help="no words about the table")] = False,
) -> None:
    """Look at a table and write a commented program file, to be checked and edited."""
    from targetdp.programs.file import MARK  # noqa: PLC0415 (slow to import: keep --help quick)
    from targetdp.programs.look import look_at  # noqa: PLC0415
    from targetdp.programs.proposal import propose  # noqa: PLC0415
    from targetdp.programs.text import (  # noqa: PLC0415
        Terms,
        checked_text,
        describe,
        table_as_named,
    )

    if (out.exists() or out.is_symlink()) and not force:
        raise ValueError(f"program file {out} exists: choose another name, or replace it with --force")
    if out.exists() and table.exists() and out.samefile(table):
        raise ValueError(f"program file {out} is the table itself: choose another name")
    look = look_at(table)
    proposal = propose(
        look, kind, id_column=id, target=target, features=names(features), groups=names(groups),
        amount=amount, revenue=revenue, interest=interest, repaid=repaid,
    )  # fmt: skip
    terms = Terms(source, quota, population, currency, parts)
    _write(out, checked_text(proposal, look, table_as_named(table, out), terms), force=force)
    if not quiet:
        if source == "confidential":
            tell(MARK)
        for line in describe(look):
            tell(line)
        tell(
            f"{kind} program: {len(proposal.features)} features, target {proposal.target} → {out}. Check it."
        )


def _write(path: Path, text: str, *, force: bool) -> None:
    """The whole file or none; what somebody else wrote meanwhile is not replaced."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        temporary.write_text(text, encoding="utf-8")
        if force:
            temporary.replace(path)
        else:
            path.hardlink_to(temporary)
    except FileExistsError as error:
        raise ValueError(
            f"program file {path} exists: choose another name, or replace it with --force"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)

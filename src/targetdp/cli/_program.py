"""`targetdp program`: files that say what a table is used for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from targetdp._core import declared
from targetdp.cli._console import Bar, names, save_new, tell, warn

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[declared("targetdp.programs")]

# `targetdp example`: a table to try things on.


def example(
    name: Annotated[
        Literal["togo", "nigeria", "vietnam", "credit"],
        typer.Argument(help="togo, nigeria: invented; vietnam, credit: public tables (extra: examples)"),
    ],
    out: Annotated[Path, typer.Option(help="*.parquet or *.csv")],
    program: Annotated[
        Path | None, typer.Option(help="also write a program file (TOML), ready for targetdp tradeoff")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="invented people, up to 50 million; default: as many as the paper's")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="another seed invents other people")] = None,
    force: Annotated[bool, typer.Option(help="replace a file that exists")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress and no words")] = False,
) -> None:
    """Write a table to try things on: invented phone users like the paper's, or public data."""
    from targetdp.populations import DEFAULT_SEED, CompanionFile, write

    beside = None
    if program is not None:
        from targetdp.programs import example_program, table_as_named

        beside = CompanionFile(program, example_program(name, table_as_named(out, program)))
    with Bar(quiet=quiet) as bar:
        done = write(
            name, out, rows, DEFAULT_SEED if seed is None else seed, force=force, progress=bar, beside=beside
        )
    if not quiet:
        tell(f"{done.rows:,} rows, {len(done.columns)} columns → {out} ({done.size / 1e6:,.1f} MB)")
        tell(f"{'nobody in it is real' if done.invented else 'a public table'}: see docs/populations.md")
        if program is not None:
            tell(f"program file → {program}: targetdp tradeoff {program} --out results/")


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
        Kind, typer.Option(help="aid: the poorest get it; lending: those who are predicted to repay")
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
    currency: Annotated[
        str | None, typer.Option(help="of all money, such as $ or NGN; lending needs it")
    ] = None,
    parts: Annotated[int, typer.Option(help="random parts that a release is made in")] = 1,
    force: Annotated[bool, typer.Option(help="replace a file that exists")] = False,
    quiet: Annotated[bool, typer.Option(help="no words about the table")] = False,
) -> None:
    """Look at a table and write a commented program file, to be checked and edited."""
    from targetdp.programs import (
        MARK,
        ProgramTerms,
        alike_in_table,
        describe,
        program_template,
        propose,
        table_as_named,
    )
    from targetdp.table import profile_table

    if (out.exists() or out.is_symlink()) and not force:
        raise ValueError(f"program file {out} exists: choose another name, or replace it with --force")
    if out.exists() and table.exists() and out.samefile(table):
        raise ValueError(f"program file {out} is the table itself: choose another name")
    look = profile_table(table)
    proposal = propose(
        look, kind, id_column=id, target=target, features=names(features), groups=names(groups),
        amount=amount, revenue=revenue, interest=interest, repaid=repaid,
    )  # fmt: skip
    terms = ProgramTerms(source, quota, population, currency, parts=parts)
    save_new(
        "program file", out, program_template(proposal, look, table_as_named(table, out), terms), force=force
    )
    alike = [one.words for one in alike_in_table(table, proposal.groups, look.rows)]
    if source == "confidential" and (alike or not quiet):
        tell(MARK)
    warn(alike)
    if not quiet:
        for line in describe(look):
            tell(line)
        tell(
            f"{kind} program: {len(proposal.features)} features, target {proposal.target} → {out}. Check it."
        )

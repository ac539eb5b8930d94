"""`targetdp example`: a table to try things on."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from targetdp.cli.words import Bar, tell


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
    from targetdp.table.example import DEFAULT_SEED, Beside, write  # noqa: PLC0415 (slow: keep --help quick)

    beside = None
    if program is not None:
        from targetdp.programs.examples import example_program  # noqa: PLC0415
        from targetdp.programs.text import table_as_named  # noqa: PLC0415

        beside = Beside(program, example_program(name, table_as_named(out, program)))
    with Bar(quiet=quiet) as bar:
        done = write(
            name, out, rows, DEFAULT_SEED if seed is None else seed, force=force, progress=bar, beside=beside
        )
    if not quiet:
        tell(f"{done.rows:,} rows, {len(done.columns)} columns → {out} ({done.size / 1e6:,.1f} MB)")
        tell(f"{'nobody in it is real' if done.invented else 'a public table'}: see docs/populations.md")
        if program is not None:
            tell(f"program file → {program}: targetdp tradeoff {program} --out results/")

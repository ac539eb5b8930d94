"""`targetdp scales`: learn column scales from public data, or say that they are confidential."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from targetdp.cli.words import Bar, constants, names, tell


def scales(
    table: Annotated[
        Path, typer.Argument(help="a table of OTHER people (public), or of the same (confidential)")
    ],
    features: Annotated[str, typer.Option(help="columns to scale: a,b,c or @FILE")],
    source: Annotated[
        Literal["public", "confidential"],
        typer.Option(
            help="public: learned from no one who will be released; confidential: from the same people"
        ),
    ],
    out: Annotated[Path, typer.Option(help="scales file to write (TOML)")],
    id: Annotated[str | None, typer.Option(help="column that identifies a person")] = None,  # noqa: A002
    impute: Annotated[str | None, typer.Option(help="constants for missing values")] = None,
    fit: Annotated[
        float | None,
        typer.Option(help="widen all scales alike, so that this share of rows fits in the unit ball"),
    ] = None,
    force: Annotated[bool, typer.Option(help="replace a file that exists")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress and no words")] = False,
) -> None:
    """Write the means and deviations of a table's columns to a scales file."""
    from targetdp.release.learning import learn_scales  # noqa: PLC0415
    from targetdp.release.scales_file import scales_text  # noqa: PLC0415

    if out.exists() and not force:
        raise ValueError(f"scales file {out} exists: choose another name, or replace it with --force")
    wanted = names(features) or ()
    with Bar(quiet=quiet) as bar:
        learned = learn_scales(table, wanted, id_column=id, impute=constants(impute), fit=fit, progress=bar)
    temporary = out.with_name(f".{out.name}.new")
    mode = 0o600 if source == "confidential" else 0o666
    with os.fdopen(
        os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8"
    ) as file:
        file.write(scales_text(learned, wanted, source))
    temporary.replace(out)
    if not quiet:
        tell(f"scales of {len(wanted)} columns → {out} ({source})")

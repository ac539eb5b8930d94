"""Small commands beside a release: names of columns, the public key, schemas."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from targetdp.cli.words import emit, names, tell


def columns(
    table: Annotated[Path, typer.Argument(help="Parquet or CSV: a file, or a directory of part files")],
    without: Annotated[str | None, typer.Option(help="names to leave out: a,b,c or @FILE")] = None,
) -> None:
    """Print a table's column names, one in each line, to edit and give to --features @FILE."""
    from targetdp.table.source import open_source  # noqa: PLC0415

    left_out = set(names(without) or ())
    for name in open_source(table).columns:
        if name not in left_out:
            emit(name)


def key(
    key: Annotated[Path | None, typer.Option(help="signing key; default: the user's own")] = None,
) -> None:
    """Print the public key, for those who verify your certificates. Makes a key if there is none."""
    from targetdp.release.keys import SigningKey, default_key_path  # noqa: PLC0415

    opened = SigningKey.open(key or default_key_path())
    emit(opened.public)
    tell(f"fingerprint {opened.fingerprint}, as certificates print it")


def schema(
    of: Annotated[
        Literal["release", "certificate", "scales", "bounds", "program", "weights"],
        typer.Argument(help="which kind of file"),
    ],
) -> None:
    """Print the JSON schema of a file that targetdp reads or writes."""
    from targetdp.cli.schemas import SCHEMAS  # noqa: PLC0415

    emit(json.dumps(SCHEMAS[of].model_json_schema(), indent=2, ensure_ascii=False))

"""`targetdp verify`: a released file against its certificate, and the certificate against its noise."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from targetdp.cli.words import cells, emit, out, tell


def verify(
    output: Annotated[Path, typer.Argument(help="the released file or directory")],
    certificate: Annotated[
        Path | None, typer.Option(help="its certificate; default: OUTPUT.certificate.json")
    ] = None,
    public_key: Annotated[
        str | None, typer.Option(help="the data holder's public key, as `targetdp key` prints it")
    ] = None,
    sample: Annotated[
        Path | None, typer.Option(help="of scores: the private sample, with its certificate beside it")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="also look the release up in this ledger")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
) -> None:
    """Check a release: signature, files, and every stated number derived again from the noise."""
    from targetdp.release.findings import Check  # noqa: PLC0415
    from targetdp.release.sample import sample_checks  # noqa: PLC0415
    from targetdp.release.score_checks import against_sample  # noqa: PLC0415
    from targetdp.release.staging import certificate_path  # noqa: PLC0415
    from targetdp.release.verify import read_certificate, verify_in_ledger, verify_release  # noqa: PLC0415

    read = read_certificate(certificate or certificate_path(output))
    found = verify_release(output, read, public_key)
    if sample is not None:
        own = read_certificate(certificate_path(sample))
        signer = public_key or (None if read.signature is None else read.signature.key)
        checks = [Check(f"sample: {c.what}", c.holds, c.detail) for c in sample_checks(sample, own, signer)]
        found = found.also([against_sample(read, own), *checks])
    if ledger is not None:
        found = found.also(verify_in_ledger(read, ledger))
    if as_json:
        emit(json.dumps({"holds": found.holds, "checks": [asdict(c) for c in found.checks]}, indent=2))
    else:
        table = Table(title=Text(str(output)), title_justify="left")
        for heading in ("check", "holds", "detail"):
            table.add_column(heading, overflow="fold")
        for c in found.checks:
            table.add_row(*cells(c.what, {True: "yes", False: "NO", None: "–"}[c.holds], c.detail))
        out().print(table, highlight=False)
        tell("the release holds" if found.holds else "the release does NOT hold: do not use it")
    if not found.holds:
        raise typer.Exit(1)

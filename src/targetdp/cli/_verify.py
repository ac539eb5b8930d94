"""`targetdp verify`: a released file against its certificate, and the certificate against its noise."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from targetdp.cli._console import PublicKey, cells, emit, must_be_free, out, tell
from targetdp.cli._endings import STRANGER

if TYPE_CHECKING:
    from targetdp.release import Verification


def verify(
    output: Annotated[
        str, typer.Argument(help="the released file or directory (also s3://…), or rows of who agreed")
    ],
    certificate: Annotated[
        Path | None,
        typer.Option(help="its certificate; default: OUTPUT.certificate.json, or OUTPUT.agreement.json"),
    ] = None,
    public_key: PublicKey = None,
    request: Annotated[
        Path | None, typer.Option(help="what was asked for: hold the release against it")
    ] = None,
    desk: Annotated[
        Path | None, typer.Option("--desk", help="for the data holder: also look it up in this desk's ledger")
    ] = None,
    units: Annotated[
        Path | None, typer.Option(help="if it holds, write its rows in the table's own units to this file")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
) -> None:
    """Check a release: who signed it, its files and values, and every number derived again from the noise.

    Rows of people who agreed are checked against their record. Exit codes: 0 all of it holds; 5 all of it
    but the signer, whom nobody has named (targetdp key trust); 1 something does not hold; 2 there is no
    certificate.
    """
    from targetdp.release import certificate_path, fetched, read_certificate, write_in_units

    if units is not None:
        must_be_free("units", units, force=False)
    with fetched(output) as place:
        found = _verified(place, certificate, public_key, request, desk)
        if found.holds and units is not None:
            write_in_units(place, read_certificate(certificate or certificate_path(place)), units)
    if as_json:
        checks = [asdict(check) for check in found.checks]
        emit({"holds": found.holds, "verdict": found.verdict, "checks": checks})
    else:
        table = Table(title=Text(str(output)), title_justify="left")
        for heading in ("check", "holds", "detail"):
            table.add_column(heading, overflow="fold")
        for c in found.checks:
            table.add_row(*cells(c.what, {True: "yes", False: "NO", None: "–"}[c.holds], c.detail))
        out().print(table, highlight=False)
        tell(found.verdict)
    if not found.holds:
        raise typer.Exit(STRANGER if found.only_the_signer_is_unknown else 1)
    if units is not None:
        tell(f"rows in the table's own units → {units}: computed from the release, which stays as it is")


def _verified(
    output: Path, proof: Path | None, public_key: str | None, request: Path | None, desk: Path | None
) -> "Verification":
    """All checks of a release, or of the rows of people who agreed: by the record that there is."""
    from targetdp.release import (
        Desk,
        agreement_path,
        certificate_path,
        read_agreement,
        read_certificate,
        read_request,
        verify_agreement,
        verify_agreement_in_ledger,
        verify_in_ledger,
        verify_release,
    )

    beside = agreement_path(output)
    if proof is None and beside.exists() and not certificate_path(output).exists():
        proof = beside
    if proof is not None and proof.name.endswith(".agreement.json"):
        if request is not None:
            raise ValueError(f"--request = {request}: rows of people who agreed answer none; leave it out")
        agreed = read_agreement(proof)
        found = verify_agreement(output, agreed, public_key)
        if desk is not None:
            with Desk.open(desk).ledger() as ledger:
                found = found.also(verify_agreement_in_ledger(agreed, ledger))
        return found
    read = read_certificate(proof or certificate_path(output))
    asked = None if request is None else read_request(request)
    found = verify_release(output, read, public_key, asked)
    if desk is not None:
        with Desk.open(desk).ledger() as ledger:
            found = found.also(verify_in_ledger(read, ledger))
    return found

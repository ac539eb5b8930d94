"""`targetdp ledger`: what was released, what is left, and whether anyone touched the book."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from targetdp._core import down, exact, up
from targetdp.cli._console import DeskFolder, cells, emit, out, tell

app = typer.Typer(help="What was released, what it cost whom, and what is left.", no_args_is_help=True)

ADAPTIVE = (
    "Spent: true ε of all releases that one person is in, for whoever spent most, at the limit's distance "
    "and δ, in each release's own scaled space; it holds for settings that were not chosen by looking at "
    "earlier releases."
)


@app.command()
def show(
    desk: DeskFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of tables")] = False,
) -> None:
    """What was released, what it cost, and what is left of the limit."""
    from targetdp.release import Desk

    opened = Desk.open(desk)
    with opened.ledger() as ledger:
        rows = list(ledger.history.releases.values())
        standing = ledger.standing(opened.policy.limit.value())
    if as_json:
        emit(_record(rows, standing))
        return
    budget = Table(
        title=f"Desk {opened.name}", title_justify="left", caption=ADAPTIVE, caption_justify="left"
    )
    for heading in ("limit for each person", "spent ε", "remaining ε"):
        budget.add_column(heading, justify="right" if heading.endswith("ε") else "left")
    left = f"{float(down(standing.remaining, 4)):g}"
    budget.add_row(*cells(str(standing.limit), _number(standing.spent), left))
    releases = Table(title="Releases", title_justify="left")
    for heading in ("release", "time", "state", "kind", "guarantee", "noise", "rows", "asked by", "note"):
        releases.add_column(heading, overflow="fold")
    for row in rows:
        releases.add_row(
            *cells(
                row.release[:12], row.reserved[:16].replace("T", " "), _STATES[row.state],
                str(row.title.get("kind", "–")), _guarantee(row.title["guarantee"]),
                str(row.title.get("mechanism", "–")), f"{row.title.get('rows', 0):,}",
                str(row.title.get("asked_by") or "–"), _note(row),
            )
        )  # fmt: skip
    out().print(budget, releases, highlight=False)


@app.command()
def verify(
    certificates: Annotated[
        list[Path] | None, typer.Argument(help="certificates of releases: each proves where the ledger stood")
    ] = None,
    desk: DeskFolder = None,
    public_key: Annotated[str | None, typer.Option(help="the data holder's public key")] = None,
) -> None:
    """Find edits, reordering, a cut tail and missing lists of people. Give all certificates you have."""
    from targetdp.release import Desk, read_certificate

    read = [read_certificate(path) for path in certificates or []]
    heads = [c.ledger.head() for c in read]
    signers = {c.signature.key for c in read if c.signature is not None} | ({public_key} - {None})
    if len(signers) > 1:
        raise ValueError("certificates and --public-key name different keys: a ledger is signed by one")
    with Desk.open(desk).ledger() as ledger:
        problems = ledger.verify(heads, next(iter(signers), None))
    for problem in problems:
        emit(problem)
    if problems:
        tell(f"{len(problems)} problem{'s' if len(problems) > 1 else ''}: do not trust this ledger")
        raise typer.Exit(1)
    anchored = f"{len(heads)} certificate{'s' if len(heads) != 1 else ''}"
    tell(f"the ledger is sound; compared with {anchored}")
    if not heads:
        tell("without certificates, a ledger rolled back together with its .head file cannot be told")


@app.command()
def resume(
    reason: Annotated[str, typer.Option(help="what happened, for the record")],
    desk: DeskFolder = None,
) -> None:
    """Go on with a ledger whose .head file was lost or lags; reason and findings go on record."""
    from targetdp.release import Desk

    with Desk.open(desk).ledger() as ledger:
        ledger.resume(reason)
    tell("on record; the ledger can be used again")


_STATES = {"reserved": "unsettled", "published": "published", "voided": "freed"}


def _number(epsilon: float) -> str:
    return "unbounded" if math.isinf(epsilon) else up(epsilon, 4)


def _guarantee(record: dict[str, float]) -> str:
    return f"B={exact(record['B'])} ε={up(record['epsilon'], 6)} δ={up(record['delta'], 2)}"


def _note(row: Any) -> str:
    public = row.title.get("public") or ()
    notes = (
        (
            row.title.get("left_out"),
            f"without the people of {', '.join(r[:12] for r in row.title['left_out'])}",
        ),
        (row.scales is not None, "estimated the scales"),
        (public, f"not protected: {', '.join(public)}"),
        (row.reason, row.reason),
        (row.state == "reserved", "counts as spent"),
    )
    return "; ".join(text for holds, text in notes if holds) or "–"


def _record(rows: Any, standing: Any) -> dict[str, Any]:
    return {
        "limit": asdict(standing.limit),
        "spent": standing.spent if math.isfinite(standing.spent) else "unbounded",
        "remaining": standing.remaining,
        "releases": [
            {
                "release": row.release, "entry": row.entry, "time": row.reserved, "state": row.state,
                "reason": row.reason, "sha256": row.sha256, "charge": row.charge.record(), **row.title,
            }
            for row in rows
        ],
        "condition": ADAPTIVE,
    }  # fmt: skip

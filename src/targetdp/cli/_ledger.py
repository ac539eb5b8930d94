"""`targetdp ledger`: limits, what was released, what is left, and whether anyone touched the book."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from targetdp._core import down, exact, up
from targetdp.cli._console import cells, emit, out, tell

app = typer.Typer(help="What was released about each population, and what is left.", no_args_is_help=True)

_Ledger = Annotated[Path, typer.Option("--ledger", help="the ledger (SQLite)")]
_Key = Annotated[Path | None, typer.Option("--key", help="signing key; default: the user's own")]

ADAPTIVE = (
    "Spent: true ε of all releases together, at the limit's distance and δ, in each release's own scaled "
    "space; it holds for settings that were not chosen by looking at earlier releases."
)


@app.command()
def limit(
    ledger: _Ledger,
    population: Annotated[str, typer.Option(help="whose budget it is")],
    B: Annotated[float, typer.Option("--B", help="distance at which releases are charged")],
    epsilon: Annotated[float, typer.Option(help="ε that all releases together may reach")],
    delta: Annotated[float, typer.Option(help="δ that all releases together may reach")],
    key: _Key = None,
) -> None:
    """Set the limit of a population; the ledger is made if there is none."""
    from targetdp.guarantee import Guarantee
    from targetdp.release import Ledger

    made = Guarantee(B, epsilon, delta)
    note = Ledger(ledger, _signing_key(key)).set_limit(population, made)
    tell(f"limit of {population!r}: {made}")
    if note:
        tell(f"warning: {note}", style="yellow")


@app.command()
def show(
    ledger: _Ledger,
    population: Annotated[str | None, typer.Option(help="only this one")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of tables")] = False,
) -> None:
    """What was released, what it cost, and what is left of every limit."""
    from targetdp.release import Ledger

    book = Ledger.existing(ledger)
    rows = book.releases(population)
    named = [population] if population is not None else book.populations()
    standings = {name: book.standing(name) for name in named}
    if as_json:
        emit(_record(rows, standings))
        return
    budgets = Table(title="Populations", title_justify="left", caption=ADAPTIVE, caption_justify="left")
    for heading in ("population", "limit", "spent ε", "remaining ε"):
        budgets.add_column(heading, justify="right" if heading.endswith("ε") else "left")
    for name, s in standings.items():
        bound = "none" if s.limit is None else str(s.limit)
        left = "–" if s.limit is None else f"{float(down(s.remaining, 4)):g}"
        budgets.add_row(*cells(name, bound, _number(s.spent), left))
    releases = Table(title="Releases", title_justify="left")
    for heading in ("entry", "time", "population", "part", "state", "guarantee", "noise", "rows", "note"):
        releases.add_column(heading, overflow="fold")
    for row in rows:
        releases.add_row(
            *cells(
                str(row.entry), row.reserved[:16].replace("T", " "), row.population, row.part or "–",
                row.state,
                _guarantee(row.title.get("guarantee")), str(row.title.get("mechanism", "–")),
                f"{row.title.get('rows', 0):,}", _note(row),
            )
        )  # fmt: skip
    out().print(budgets, releases, highlight=False)


@app.command()
def void(
    ledger: _Ledger,
    release: Annotated[str, typer.Option(help="the release that a run reserved and did not publish")],
    reason: Annotated[str, typer.Option(help="how you know that nothing was published")],
    key: _Key = None,
) -> None:
    """Say, on record, that a reserved release was never published: it no longer counts."""
    from targetdp.release import Ledger, is_busy, traces_of

    book = Ledger.existing(ledger, _signing_key(key))
    place = str(book.release(release).title.get("output", ""))
    if is_busy(place):
        raise ValueError(f"a run is writing {place} right now: wait for it")
    found = traces_of(release, place)
    if found is not None:
        raise ValueError(
            f"release {release} was published, or is being published: {found} is there. It counts; a run to "
            "the same output tells the ledger"
        )
    book.void(release, reason)
    tell(f"release {release} is void: {reason}")


@app.command()
def verify(
    ledger: _Ledger,
    certificates: Annotated[
        list[Path] | None, typer.Argument(help="certificates of releases: each proves where the ledger stood")
    ] = None,
    public_key: Annotated[str | None, typer.Option(help="the data holder's public key")] = None,
) -> None:
    """Find edits, reordering and a cut tail. Give all certificates you have."""
    from targetdp.release import Ledger, read_certificate

    read = [read_certificate(path) for path in certificates or []]
    heads = [c.ledger.head() for c in read if c.ledger is not None]
    signers = {c.signature.key for c in read if c.signature is not None} | ({public_key} - {None})
    if len(signers) > 1:
        raise ValueError("certificates and --public-key name different keys: a ledger is signed by one")
    problems = Ledger.existing(ledger).verify(heads, next(iter(signers), None))
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
    ledger: _Ledger,
    reason: Annotated[str, typer.Option(help="what happened, for the record")],
    key: _Key = None,
) -> None:
    """Go on with a ledger whose .head file was lost or lags; reason and findings go on record."""
    from targetdp.release import Ledger

    Ledger.existing(ledger, _signing_key(key)).resume(reason)
    tell("on record; the ledger can be used again")


def _signing_key(path: Path | None) -> Any:
    from targetdp.release import SigningKey, default_key_path

    return SigningKey.open(path or default_key_path())


def _number(epsilon: float) -> str:
    if math.isnan(epsilon):
        return "–"
    return "unbounded" if math.isinf(epsilon) else up(epsilon, 4)


def _guarantee(record: dict[str, float] | None) -> str:
    if record is None:
        return "none"
    return f"B={exact(record['B'])} ε={up(record['epsilon'], 6)} δ={up(record['delta'], 2)}"


def _note(row: Any) -> str:
    sample, kept = row.title.get("sample"), row.title.get("not_protected") or ()
    who = "" if sample is None else ", sample scored, too" if sample["scored"] else ", sample left out"
    notes = (
        (row.title.get("scores"), f"scores{who}"),
        (row.override, f"overridden: {row.override}"),
        (row.charge.unbounded, "no bound"),
        (kept, f"not protected: {', '.join(kept)}"),
        (row.reason, row.reason),
        (row.state == "reserved", f"unsettled, counts as spent: {row.release}"),
    )
    return "; ".join(text for holds, text in notes if holds) or "–"


def _record(rows: Any, standings: Any) -> dict[str, Any]:
    def finite(value: float) -> float | str | None:
        return None if math.isnan(value) else "unbounded" if math.isinf(value) else value

    return {
        "populations": {
            name: {
                "limit": None if s.limit is None else asdict(s.limit),
                "spent": finite(s.spent), "remaining": finite(s.remaining),
            }
            for name, s in standings.items()
        },
        "releases": [
            {
                "release": row.release, "entry": row.entry, "time": row.reserved, "state": row.state,
                "population": row.population, "part": row.part, "override": row.override,
                "reason": row.reason, "sha256": row.sha256, "charge": row.charge.record(), **row.title,
            }
            for row in rows
        ],
        "condition": ADAPTIVE,
    }  # fmt: skip

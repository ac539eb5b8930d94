"""`targetdp ledger`: what was released, what it cost whom, and whether anyone touched the book."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from targetdp._core import exact, up
from targetdp.cli._console import DeskFolder, cells, emit, out, save_new, tell

app = typer.Typer(help="What was released, what it cost whom, and what is left.", no_args_is_help=True)
Reason = Annotated[str, typer.Option(help="why, for the record")]
_SHOWN, _LONGEST = 12, 60


@app.command()
def show(
    desk: DeskFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of tables")] = False,
) -> None:
    """What was released, and how many people have spent how much of the limit."""
    from targetdp.release import Desk, Limit

    opened = Desk.open(desk)
    limit = Limit.of(opened.policy)
    with opened.ledger() as ledger:
        rows = list(ledger.history.releases.values())
        standing, statement = ledger.standing(limit), ledger.history.statement(limit)
    if as_json:
        emit(_record(rows, standing, statement))
        return
    caption = statement + ("" if standing.pure is None else f" {pure_words(standing.pure)}")
    budget = Table(title=f"Desk {opened.name}", title_justify="left", caption=caption, caption_justify="left")
    budget.add_column("spent of the limit", justify="right")
    budget.add_column("people", justify="right")
    for level, people in levels_for_people(standing.levels):
        budget.add_row(*cells(level, f"{people:,}"))
    releases = Table(title="Releases", title_justify="left")
    for heading in ("release", "time", "state", "kind", "guarantee", "noise", "rows", "asked by", "note"):
        releases.add_column(heading, overflow="fold")
    for row in rows:
        releases.add_row(
            *cells(
                row.release[:12], row.reserved[:16].replace("T", " "), _state(row),
                str(row.title.get("kind", "–")), _guarantee(row.title["guarantee"]),
                str(row.title.get("mechanism", "–")), f"{row.title.get('rows', 0):,}",
                str(row.title.get("asked_by") or "–"), _note(row),
            )
        )  # fmt: skip
    out().print(budget, releases, highlight=False)


@app.command()
def log(
    desk: DeskFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON lines instead of a table")] = False,
) -> None:
    """Everything that happened at the desk, refusals too: when, what, which request, and why."""
    from targetdp.release import Desk

    opened = Desk.open(desk)
    with opened.ledger() as ledger:
        told = [(entry.time, entry.kind, entry.release, json.loads(entry.body)) for entry in ledger.entries]
    # Releases are in the ledger: the log's own lines about them would say it twice.
    told += [
        (line.pop("time"), line.pop("event"), line.pop("release", ""), line)
        for line in opened.logged() if line.get("event") not in {"released", "goes on"}
    ]  # fmt: skip
    told.sort(key=lambda one: one[0])
    if as_json:
        for time, what, release, body in told:
            out().print(
                json.dumps({"time": time, "what": what, "release": release, **body}, ensure_ascii=False),
                markup=False, highlight=False, soft_wrap=True,
            )  # fmt: skip
        return
    shown = Table(title=f"Desk {opened.name}", title_justify="left")
    for heading in ("time", "what", "release", "details"):
        shown.add_column(heading, overflow="fold")
    for time, what, release, body in told:
        shown.add_row(*cells(time[:16].replace("T", " "), what, str(release)[:12] or "–", _details(body)))
    out().print(shown, highlight=False)


@app.command()
def export(
    output: Annotated[Path, typer.Argument(help="*.jsonl to write: one entry a line, with its signature")],
    desk: DeskFolder = None,
    force: Annotated[bool, typer.Option("--force", help="replace a file that exists")] = False,
) -> None:
    """Write the whole ledger as JSON lines, for an auditor or another tool."""
    from targetdp.release import Desk

    with Desk.open(desk).ledger() as ledger:
        _ = ledger.history
        lines = [
            json.dumps(asdict(entry) | {"body": json.loads(entry.body)}, ensure_ascii=False)
            for entry in ledger.entries
        ]
    save_new("OUTPUT", output, "\n".join(lines) + "\n", force=force, private=True)
    tell(f"{len(lines)} entries → {output}; it says what was released, and not about whom")


@app.command()
def verify(
    certificates: Annotated[
        list[Path] | None, typer.Argument(help="certificates of releases: each proves where the ledger stood")
    ] = None,
    desk: DeskFolder = None,
    public_key: Annotated[str | None, typer.Option(help="the data holder's public key")] = None,
) -> None:
    """Find edits, reordering, a cut tail, an older copy and missing lists of people.

    Certificates beside releases are looked at by themselves; give those that lie elsewhere.
    """
    from targetdp.release import Desk, read_certificate, witness, witnesses

    read = {path: read_certificate(path) for path in certificates or []}
    signers = {c.signature.key for c in read.values() if c.signature is not None} | ({public_key} - {None})
    if len(signers) > 1:
        raise ValueError("certificates and --public-key name different keys: a ledger is signed by one")
    opened = Desk.open(desk)
    with opened.ledger() as ledger:
        told = [*(witness(path, c) for path, c in read.items()), *witnesses(opened, ledger)]
        problems = ledger.verify(told, next(iter(signers), None))
    for problem in dict.fromkeys(problems):
        emit(problem)
    if problems:
        tell(f"{len(problems)} problem{'s' if len(problems) > 1 else ''}: do not trust this ledger")
        raise typer.Exit(1)
    count = len({one.release for one in told})
    tell(f"the ledger is sound; compared with {count} certificate{'s' if count != 1 else ''}")
    if not told:
        tell("without certificates, a desk put back to an older state with your list of desks cannot be told")


@app.command()
def resume(
    certificates: Annotated[
        list[Path] | None, typer.Argument(help="certificates of releases that the ledger may have lost")
    ] = None,
    *,
    reason: Reason,
    desk: DeskFolder = None,
) -> None:
    """Go on with a ledger that was brought back from a backup, or whose .head file was lost.

    Reason and findings go on record. A release that only its certificate tells of is charged to everybody;
    one that left no certificate is forgotten, so give all that you have.
    """
    from targetdp.release import Desk, read_certificate, witness, witnesses

    opened = Desk.open(desk)
    with opened.ledger() as ledger:
        told = [witness(path, read_certificate(path)) for path in certificates or []]
        lost = ledger.resume(reason, [*told, *witnesses(opened, ledger)])
    tell("on record; the ledger can be used again")
    for release in lost:
        tell(f"release {release[:12]} was lost: it is charged to everybody")


@app.command()
def withdraw(
    release: Annotated[str, typer.Argument(help="the release: its id, or how that begins")],
    reason: Reason,
    desk: DeskFolder = None,
) -> None:
    """Put on record that a published release should no longer be used. It stays charged: it was seen."""
    from targetdp.release import Desk

    with Desk.open(desk).ledger() as ledger:
        row = ledger.history.find(release)
        ledger.withdraw(row.release, reason)
    tell(f"release {row.release[:12]} is withdrawn and stays charged: tell whoever has {row.title['output']}")


@app.command()
def erase(
    people: Annotated[Path, typer.Argument(help="*.csv or *.parquet with the ids of people to forget")],
    reason: Reason,
    column: Annotated[str | None, typer.Option(help="their column; default: the first")] = None,
    desk: DeskFolder = None,
) -> None:
    """Remove people from the lists of who was in which release. Nothing that was released comes back.

    Who was erased and comes back is nobody the ledger knows. So that nothing becomes free, each release that
    somebody was erased from counts for everybody from then on.
    """
    from targetdp.release import Desk, tags_in

    opened = Desk.open(desk)
    with opened.ledger() as ledger:
        opened.free_what_was_not_drawn(ledger)  # with lists that killed runs have left
        erased = ledger.erase(tags_in(opened.names(), people, column), reason)
    if not erased:
        tell("none of them is in any release: nothing was changed")
    for release, count in erased.items():
        tell(f"{count:,} people are off the list of release {release[:12]}, which counts for all from now on")


def levels_for_people(levels: Any) -> list[tuple[str, int]]:
    """How many people have spent how much, the most first; many levels become ranges of tenths."""
    from targetdp.release import percent

    if len(levels) <= _SHOWN:
        return [(percent(share), people) for share, people in levels]
    tenths: dict[int, int] = {}
    for share, people in levels:
        tenths[min(10, int(share * 10))] = tenths.get(min(10, int(share * 10)), 0) + people
    return [(f"{10 * one}% to {10 * one + 10}%", tenths[one]) for one in sorted(tenths, reverse=True)]


def pure_words(epsilon: float) -> str:
    """A running total, which only pure releases have."""
    return f"So far it is ε = {up(epsilon, 4)} at most, the sum of pure releases."


def _state(row: Any) -> str:
    if row.withdrawn is not None:
        return "withdrawn"
    return {"reserved": "unsettled", "published": "published", "voided": "freed", "lost": "lost"}[row.state]


def _guarantee(record: dict[str, float]) -> str:
    return f"B={exact(record['B'])} ε={up(record['epsilon'], 6)} δ={up(record['delta'], 2)}"


def _note(row: Any) -> str:
    public, left_out = row.title.get("public") or (), row.title.get("left_out") or ()
    notes = (
        (left_out, f"without the people of {', '.join(r[:12] for r in left_out)}"),
        (row.scales is not None, "estimated the scales"),
        (row.title.get("plan"), "planned"),
        (public, f"not protected: {', '.join(public)}"),
        (row.title.get("new_people"), f"new people: {row.title.get('new_people')}"),
        (row.everybody, "counts for everybody"),
        (row.reason, row.reason),
        (row.withdrawn, row.withdrawn),
        (row.state == "reserved", "counts as spent"),
    )
    return "; ".join(text for holds, text in notes if holds) or "–"


def _details(body: dict[str, Any]) -> str:
    """An entry in a line: what a person would ask first."""
    title, why = body.get("title") or {}, body.get("why")
    request = title.get("request") or body.get("request")
    said = (
        (title, f"{title.get('kind')} of {title.get('rows', 0):,} people"),
        (title.get("guarantee"), _guarantee(title.get("guarantee") or {"B": 1, "epsilon": 1, "delta": 0})),
        (title.get("asked_by"), f"asked by {title.get('asked_by')}"),
        (request, f"request {str(request)[:12]}"),
        *((True, f"{at}: {_short(a)} → {_short(b)}") for at, (a, b) in (body.get("changed") or {}).items()),
        (why, "; ".join(why) if isinstance(why, list) else str(why)),
        (body.get("found"), "; ".join(body.get("found") or ())),
        (body.get("reason"), str(body.get("reason"))),
    )  # fmt: skip
    return "; ".join(text for holds, text in said if holds) or "–"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _record(rows: Any, standing: Any, statement: str) -> dict[str, Any]:
    limit = standing.spending.limit
    return {
        "limit": asdict(limit.stated),
        "classic": asdict(limit.classic),
        "statement": statement,
        "spent_of_the_limit": standing.spending.spent,
        "pure_epsilon": standing.pure,
        "people": [{"spent_of_the_limit": share, "people": people} for share, people in standing.levels],
        "releases": [
            {
                "release": row.release, "entry": row.entry, "time": row.reserved, "state": row.state,
                "reason": row.reason, "withdrawn": row.withdrawn, "everybody": row.everybody,
                "sha256": row.sha256, "charge": row.charge.record(), **row.title,
            }
            for row in rows
        ],
    }  # fmt: skip

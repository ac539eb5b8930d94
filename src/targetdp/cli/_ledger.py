"""`targetdp ledger`: what was released, what it cost whom, and whether anyone touched the book."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from targetdp.cli._console import DeskFolder, cells, emit, out, save_new, tell
from targetdp.cli._ledger_words import (
    SILENT,
    agreement_words,
    details_of,
    levels_for_people,
    notes_of,
    plan_words,
    pure_words,
    release_words,
    state_of,
    together_record,
    what_of,
)

app = typer.Typer(help="What was released, what it cost whom, and what is left.", no_args_is_help=True)
Reason = Annotated[str, typer.Option(help="why, for the record")]


@app.command()
def show(
    desk: DeskFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of tables")] = False,
) -> None:
    """What was released, and how many people have spent how much of the limit."""
    from targetdp.release import Desk, Limit, percent

    opened = Desk.open(desk)
    limit = Limit.of(opened.policy)
    with opened.ledger() as ledger:
        rows, history = list(ledger.history.releases.values()), ledger.history
        agreements = list(history.agreements.values())
        standing, statement = ledger.standing(limit), history.statement(limit)
    if as_json:
        emit(_record(rows, agreements, standing, history.together(limit), statement))
        return
    budget = Table(title=f"Desk {opened.name}", title_justify="left")
    budget.add_column("spent of the limit", justify="right")
    budget.add_column("people", justify="right")
    for level, people in levels_for_people(standing.levels):
        budget.add_row(*cells(level, f"{people:,}"))
    releases = Table(title="Releases", title_justify="left")
    for heading in ("release", "date (UTC)", "state", "people"):
        releases.add_column(heading, no_wrap=True, justify="right" if heading == "people" else "left")
    releases.add_column("what", overflow="fold")
    for row in rows:
        what = "\n".join([release_words(row.title), *notes_of(row)])
        count = f"{row.title.get('rows', 0):,}"
        releases.add_row(*cells(row.release[:12], row.reserved[:10], state_of(row), count, what))
    console, said = out(), []
    if planned := plan_words(limit, history):
        said += [f"Plan: {planned[0]}, and is not part of what is spent above.", *planned[1:]]
    if standing.anybody:
        said.append(f"Whoever is in none of the lists of people begins at {percent(standing.anybody)}.")
    if standing.pure is not None and rows:
        said.append(f"Of those who have spent most: {pure_words(standing.pure, limit.stated.B)}.")
    console.print(budget if rows else Text("nothing was released yet"), highlight=False)
    for line in (*said, statement):
        console.print(Text(line), highlight=False)
    if rows:
        console.print("", releases, highlight=False)
    if agreements:
        handed_over = Table(title="People who agreed: handed over as they are", title_justify="left")
        for heading in ("agreement", "date (UTC)", "people"):
            handed_over.add_column(heading, no_wrap=True)
        handed_over.add_column("what they agreed to, and which columns", overflow="fold")
        for one in agreements:
            told = cells(one.agreement[:12], one.time[:10], f"{one.rows:,}", agreement_words(one))
            handed_over.add_row(*told)
        console.print("", handed_over, highlight=False)


@app.command()
def log(
    desk: DeskFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON lines instead of words")] = False,
) -> None:
    """Everything that happened at the desk, refusals too: when, what, which request, and why."""
    from targetdp.release import Desk

    opened = Desk.open(desk)
    with opened.ledger() as ledger:
        told = [(entry.time, entry.kind, entry.release, json.loads(entry.body)) for entry in ledger.entries]
        titles = {name: row.title for name, row in ledger.history.releases.items()}
    told += [
        (str(line.pop("time")), str(line.pop("event")), str(line.pop("release", "")), line)
        for line in opened.logged() if str(line["event"]) not in SILENT
    ]  # fmt: skip
    told.sort(key=lambda one: one[0])
    if as_json:
        for time, what, release, body in told:
            record = {"time": time, "what": what, "release": release, **body}
            emit(json.dumps(record, ensure_ascii=False))
        return
    # No table: details need the whole width.
    console = out()
    console.print(Text(f"Desk {opened.name}; times are UTC"), highlight=False)
    for time, what, release, body in told:
        head = f"{time[:16].replace('T', ' ')}  {what_of(what)}{f' {release[:12]}' if release else ''}"
        console.print(Text(head), highlight=False)
        for line in details_of(what, body, titles, release):
            console.print(Padding(Text(line, overflow="fold"), (0, 0, 0, 4), expand=False), highlight=False)


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
    count = len(lines)
    tell(f"{count} entr{'y' if count == 1 else 'ies'} → {output}; what was released, and not about whom")


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
    from targetdp.release import Desk, witness, witnesses

    opened = Desk.open(desk)
    with opened.ledger() as ledger:
        told = [*(witness(path, opened, ledger) for path in certificates or []), *witnesses(opened, ledger)]
        problems, changed = ledger.verify(told, public_key), ledger.reading.signers[1:]
    for problem in dict.fromkeys(problems):
        emit(problem)
    if problems:
        tell(f"{len(problems)} problem{'s' if len(problems) > 1 else ''}: do not trust this ledger")
        raise typer.Exit(1)
    for one in changed:
        tell(f"on record: {one}")
    count = len({one.release or one.name for one in told})
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
    from targetdp.release import Desk, witness, witnesses

    opened = Desk.open(desk)
    with opened.ledger() as ledger:
        told = [witness(path, opened, ledger) for path in certificates or []]
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
    """Remove people from the lists of who was in which release, or agreed. Nothing that went out comes back.

    Who was erased and comes back is nobody the ledger knows. So that nothing becomes free, each release that
    somebody was erased from counts for everybody from then on.
    """
    from targetdp.release import Desk, tags_in

    opened = Desk.open(desk)
    with opened.ledger() as ledger:
        opened.free_what_was_not_drawn(ledger)  # with lists that killed runs have left
        erased = ledger.erase(tags_in(opened.names(), people, column), reason)
        agreements = ledger.history.agreements
    if not erased:
        tell("none of them is in any release: nothing was changed")
    for name, count in erased.items():
        tell(
            f"{count:,} people are off the list of agreement {name[:12]}: they count as everybody from now "
            "on; rows that went out stay out"
            if name in agreements
            else f"{count:,} people are off the list of release {name[:12]}, which counts for all from now on"
        )


def _record(rows: Any, agreements: Any, standing: Any, together: Any, statement: str) -> dict[str, Any]:
    limit = standing.spending.limit
    return {
        "limit": asdict(limit.stated),
        "classic": asdict(limit.classic),
        "together": together_record(together),
        "statement": statement,
        "spent_of_the_limit": standing.spending.spent,
        "spent_by_who_is_in_no_list": standing.anybody,
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
        "agreements": [
            {
                "agreement": one.agreement, "entry": one.entry, "time": one.time, "to": one.to,
                "columns": list(one.columns), "people": one.rows, "in_all": one.in_all,
                "erased": one.list_changed, "sha256": one.sha256, **one.title,
            }
            for one in agreements
        ],
    }  # fmt: skip

"""`targetdp init`, `status` and `ids`: a desk is made, says where it stands, and translates ids."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from targetdp.cli._console import (
    Csv,
    DeskFolder,
    FromTable,
    NewPeople,
    Query,
    Tables,
    cells,
    emit,
    must_be_free,
    out,
    save_table,
    tell,
    warn,
)
from targetdp.cli._ledger_words import (
    limit_words,
    next_record,
    next_words,
    plan_words,
    pure_words,
    together_record,
)

_SHOWN = 40


def init(
    table: Tables,
    *,
    from_table: FromTable = None,
    query: Query = None,
    csv: Csv = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="column that identifies a person; default: guessed")
    ] = None,
    scales: Annotated[
        Path | None, typer.Option(help="public scales (targetdp scales); without, private ones are paid for")
    ] = None,
    name: Annotated[str | None, typer.Option(help="what the desk is called; default: as this folder")] = None,
    desk: Annotated[Path | None, typer.Option(help="the folder to make; default: desk")] = None,
    new_people: NewPeople = None,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
) -> None:
    """Make a desk: a folder with a proposed policy, a ledger and keys. Nothing is released without one."""
    from targetdp.release import make_desk
    from targetdp.table import table_named

    given = table_named(table, table=from_table, query=query)
    chosen = {"--table": from_table, "--query": query}
    of = shlex.join([*table, *(word for name, one in chosen.items() if one for word in (name, one))])
    made = make_desk(
        given, desk, csv=csv, id_column=id_column, name=name, scales=scales, new_people=new_people
    )
    policy = made.desk.path / "policy.toml"
    warn(
        f"whether desk {other.path} knows these people cannot be told ({other.problem}): what it releases "
        "about them does not add up here"
        for other in made.elsewhere
        if other.problem is not None
    )
    if as_json:
        emit(
            {
                "desk": str(made.desk.path), "id": made.desk.id, "name": made.desk.name, "id_column": made.id,
                "pseudonyms": made.pseudonyms, "released": list(made.released), "notes": list(made.notes),
                "to_do": list(made.to_do), "public_key": made.desk.key.public,
                "other_desks": [str(other.path) for other in made.elsewhere],
            }
        )  # fmt: skip
        return
    tell(f"desk {made.desk.name} → {made.desk.path} (for you alone; back it up, but for its folder drafts)")
    hidden = "keyed hashes in place of its ids" if made.pseudonyms else "ids as they are"
    tell(f"people are identified by {made.id!r}; releases have {hidden}")
    count = len(made.released)
    tell(f"{count} column{'s' if count > 1 else ''} may be released: {', '.join(made.released[:12])}"
         f"{', …' if count > 12 else ''}")  # fmt: skip
    for note in made.notes[:_SHOWN]:
        tell(f"  {note}")
    if len(made.notes) > _SHOWN:
        tell(f"  and {len(made.notes) - _SHOWN:,} more: targetdp columns {of}")
    if made.to_do:
        tell(f"next: edit {policy}")
        for step in made.to_do:
            tell(f"  {step}")
    tell(f"then: targetdp privatize {of} OUTPUT --B 0.25 --epsilon 4 (or --request FILE; --check looks)")


def status(
    desk: DeskFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
) -> None:
    """Say what the desk allows, what is spent, what is unsettled, and what to do next."""
    from targetdp.release import Desk, Limit, left_of_plan, percent, policy_problems, write_proposal

    opened = Desk.open(desk)
    if not opened.was_known:
        warn(
            (f"you have never used this desk before: {opened.path}; from now on it is in your list of desks",)
        )
        opened.remember()
    with opened.ledger() as ledger:
        limit, history = Limit.of(opened.policy), ledger.history
        standing, statement = ledger.standing(limit), history.statement(limit)
        together = history.together(limit)
        unsettled = [row for row in history.releases.values() if row.state == "reserved"]
        published = [row for row in history.releases.values() if row.state == "published"]
        problems = list(policy_problems(opened, history))
        changed = ledger.reading.signers[1:]
        planned, again = left_of_plan(limit, limit.plan, history), next_record(limit, standing, history)
    steps = []
    if history.policy is not None and history.policy != opened.policy:
        try:
            write_proposal(opened, history)
        except OSError as error:  # whoever may only read is told all the same
            warn((f"what an approver would sign cannot be written: {error}",))
        steps += [f"{what}: {remedy}" for what, remedy in problems] or [
            "policy.toml has changed since the last release: the next one puts it on record"
        ]
    for row in unsettled:
        if opened.is_at_work(row.release):
            steps.append(f"release {row.release[:12]} is being made right now")
        elif not (opened.drafts / row.release).is_dir():
            steps.append(
                f"release {row.release[:12]} was begun {row.reserved} and cannot be finished: noise was "
                "drawn, so it stays charged; nothing is left to do"
            )
        else:
            steps.append(
                f"release {row.release[:12]} was begun {row.reserved} and not finished: it counts; run the "
                f"same command again (output {row.title.get('output')}), and it is finished at no cost"
            )
    if not published and not unsettled:
        steps.append("nothing was released yet: targetdp privatize TABLE OUTPUT --check looks first")
    record = {
        "desk": str(opened.path), "name": opened.name, "id": opened.id,
        "limit": asdict(limit.stated), "classic": asdict(limit.classic),
        "together": together_record(together), "statement": statement,
        "spent_of_the_limit": standing.spending.spent, "pure_epsilon": standing.pure,
        "plan": [line.model_dump(mode="json") | {"left": left} for line, left in planned], "again": again,
        "released": len(published), "handed_over": history.handed_over,
        "unsettled": [row.release for row in unsettled], "next": steps, "public_key": opened.key.public,
        "keys_changed": [str(one) for one in changed],
    }  # fmt: skip
    if as_json:
        emit(record)
        return
    plan = plan_words(limit, history)
    rest = "what the plan leaves of the limit" if plan else "the limit"
    spent = f"{percent(standing.spending.spent)} of {rest}, by those who have spent most"
    if standing.pure is not None and history.counted:
        spent += f" ({pure_words(standing.pure, limit.stated.B)})"
    shown = Table(title=f"Desk {opened.name}", title_justify="left", show_header=False)
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for heading, value in (
        ("folder", str(opened.path)),
        ("limit for each person", limit_words(together)),
        *(("plan" if place == 0 else "", line) for place, line in enumerate(plan)),
        ("spent", spent),
        *([("next", next_words(again))] if again is not None else []),
        ("releases", f"{len(published)} published, {len(unsettled)} unsettled"),
        *(
            [("handed over", f"{history.handed_over:,} people who agreed: nothing is promised to them")]
            if history.handed_over
            else []
        ),
        ("signs with key", opened.key.fingerprint),
        *(("its keys", str(one)) for one in changed),
    ):
        shown.add_row(*cells(heading, value))
    console = out()
    console.print(shown, highlight=False)
    console.print(Text(statement), highlight=False)
    for step in steps:
        tell(f"next: {step}")


def ids(
    table: Annotated[Path, typer.Argument(help="ids (or, with --back, pseudonyms) of some people")],
    output: Annotated[Path, typer.Argument(help="*.csv or *.parquet to write: id, pseudonym")],
    *,
    column: Annotated[str | None, typer.Option(help="their column in TABLE; default: its first")] = None,
    back: Annotated[
        Path | None, typer.Option(help="translate pseudonyms back: the table with everybody's ids")
    ] = None,
    desk: DeskFolder = None,
    force: Annotated[bool, typer.Option("--force", help="replace a file that exists")] = False,
) -> None:
    """Translate ids of labelled people into pseudonyms, or pseudonyms of those to be helped back into ids.

    Whoever gets the list knows who is who: hand over no more people than are needed. It goes into the log.
    """
    from targetdp.release import Desk, translate_ids

    must_be_free("OUTPUT", output, force=force)
    opened = Desk.open(desk)
    found = translate_ids(opened, table, column=column, everybody=back)
    save_table(found.table, output, force=force)
    opened.log("ids translated", people=found.table.num_rows, unknown=found.unknown, back=back is not None)
    tell(f"{found.table.num_rows:,} people → {output}; it says who is who: guard it as the table")
    if found.unknown:
        warn((f"{found.unknown:,} of them are nobody in {back}: they were left out",))

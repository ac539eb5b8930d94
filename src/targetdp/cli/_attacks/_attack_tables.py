"""What `targetdp attack` shows people: the strongest attacks, every attack, and the regulators' questions."""

import math
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from targetdp._core import down, exact
from targetdp.cli._console import cells, out, tell

_IDS_IN_CLEAR = (
    'This release carries ids. What is headed "if ids were stripped" holds only for somebody who gets the '
    "table without them."
)


def show_attacks(released: Path, tables: Any, findings: Any) -> None:
    """Tables to stdout, notes to stderr."""
    out().print(_worst(findings), highlight=False)
    guess = best_guess(findings)
    if guess is not None:
        out().print(_of_any_attacker(tables, guess), highlight=False)
    for table in (_scores(released, tables, findings), _criteria(findings)):
        out().print(table, highlight=False)
    for finding in findings:
        for note in () if finding.protection is None else finding.protection.detail.get("notes", ()):
            tell(f"{finding.attack}: {note}")


def best_guess(findings: Any) -> dict[str, Any] | None:
    """How often the best guess of any attacker is right, at B and at distance 2, and on what it depends."""
    for finding in findings:
        if finding.attack == "distinguishing" and finding.protection is not None:
            far = finding.protection.detail
            at_B, at_2 = (one.get("best_guess", 1.0) for one in (far.get("at_B") or {}, far))
            return {"at_B": at_B, "at_distance_2": at_2, "holds_only": list(finding.given)}
    return None


def _worst(findings: Any) -> Table:
    """A line for each kind: the strongest attack that was run, as released and without the ids."""
    from targetdp.attacks import AS_RELEASED, worst_by_kind

    table = Table(
        title="At most so well protected: the strongest attack that was run",
        title_justify="left",
        caption=_IDS_IN_CLEAR if any(f.situation == "if ids were stripped" for f in findings) else None,
        caption_justify="left",
    )
    worst = worst_by_kind(findings)
    situations = list(dict.fromkeys(situation for found in worst.values() for situation in found))
    for heading in ("kind of attack", *situations):
        table.add_column(heading)
    for kind, by_situation in worst.items():
        shown = [_shortly(by_situation.get(situation)) for situation in situations]
        if AS_RELEASED in by_situation:
            shown[0].stylize("bold")
        table.add_row(*cells(kind), *shown)
    return table


def _shortly(finding: Any) -> Text:
    return Text("–" if finding is None else f"≤ {down(finding.protection.score)}  {finding.attack}")


def _of_any_attacker(tables: Any, guess: dict[str, Any]) -> Text:
    """The best guess beside the promise."""
    proof = tables.certificate
    promised = ""
    if proof is not None:
        promised = f"Promised: ε = {exact(proof.guarantee.epsilon)} at B = {exact(proof.guarantee.B)}. "
    at_B, at_2 = (math.ceil(100 * guess[share] - 1e-9) for share in ("at_B", "at_distance_2"))
    near = f"{at_B} of 100 times for two people B apart, " if tables.B is not None else ""
    only = f"Only {' and '.join(guess['holds_only'])}: the" if guess["holds_only"] else "The"
    return Text(
        f"{promised}{only} best guess of any attacker which of two people a row belongs to, at even odds, is "
        f"right at most {near}{at_2} of 100 at distance 2 (a coin: 50)."
    )


def _scores(released: Path, tables: Any, findings: Any) -> Table:
    held = "no holdout" if tables.holdout is None else f"holdout {len(tables.holdout):,}"
    table = Table(
        title=Text(f"{released}: {len(tables.original):,} people, {_columns(tables)}, {held}"),
        title_justify="left",
        caption="Protection: 1 is safe, 0 is none. ≤: at most so much, cleverer attacks may get more. ≥: no "
        "attack gets more (≥*: on the condition that its meaning begins with).",
        caption_justify="left",
    )
    table.add_column("attack", no_wrap=True)
    table.add_column("protection", justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    table.add_column("strongest", overflow="fold", max_width=22)
    table.add_column("meaning")
    heading = None
    for finding in _by_situation(findings):
        if finding.situation != heading:
            heading = finding.situation
            table.add_section()
            table.add_row(Text(f"{heading}:", style="bold"))
        p = finding.protection
        if p is None:
            row = cells(finding.attack, "–", "–", "–", finding.meaning)
        else:
            sign, (low, high) = (
                {"upper": "≤", "lower": "≥*" if finding.given and p.score > 0 else "≥"}[p.bound],
                p.interval,
            )
            interval = f"{down(low)}–{math.ceil(high * 1000 - 1e-9) / 1000:.3f}"
            row = cells(finding.attack, f"{sign} {down(p.score)}", interval, p.strongest, finding.meaning)
        table.add_row(*row)
    return table


def _by_situation(findings: Any) -> list[Any]:
    """First what is true of the release as it is; in each part the worst first, what was not run last."""
    from targetdp.attacks import AS_RELEASED

    def order(finding: Any) -> tuple[bool, bool, float]:
        p = finding.protection
        return (
            finding.situation != AS_RELEASED,
            p is None or p.bound == "lower",
            2.0 if p is None else p.score,
        )

    return sorted(findings, key=order)


def _columns(tables: Any) -> str:
    """What was released, in numbers."""
    many = len(tables.features)
    if tables.rows_before_scoring is None:
        return f"{many} columns"
    return f"{many} {'score' if many == 1 else 'scores'} of {len(tables.rows.features)} columns"


def _criteria(findings: Any) -> Table:
    from targetdp.attacks import QUESTIONS

    table = Table(
        title="The regulators' criteria (Article 29 Working Party, WP 216): what is and is not answered",
        title_justify="left",
    )
    for heading in ("criterion", "answered in part by", "not reached"):
        table.add_column(heading)
    for criterion in QUESTIONS:
        answering = [f for f in findings if f.protection and criterion in f.answer.criteria]
        rows = [(f.attack, f.answer.does_not_reach) for f in answering]
        for place, row in enumerate(rows or [("–", "Everything: no attack on it was run.")]):
            table.add_row(*cells("" if place else criterion, *row))
    return table

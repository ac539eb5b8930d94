"""`targetdp attack`: what an adversary could still learn from a release, in one table."""

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from targetdp._core import down
from targetdp.cli import _console as completion
from targetdp.cli._console import Bar, PublicKey, cells, emit, must_be_free, names, out, save_text, tell, warn

FOR_THE_HOLDER = (
    "These scores are statistics of the original rows: for the data holder's eyes, not to be published with "
    "the release, unless the rows are public or invented."
)

LOOKED_AT = 5_000
"""People whose crowd within B is counted, at most: enough for its distribution."""


def attack(  # noqa: PLR0912 (one command, many options)
    original: Annotated[Path, typer.Argument(help="the original table (Parquet, CSV, or a directory)")],
    released: Annotated[Path, typer.Argument(help="its release")],
    id: Annotated[str, typer.Option(help="column that identifies a person, in both tables")],  # noqa: A002
    attacks: Annotated[
        str | None,
        typer.Option(
            help="which attacks: singling_out,linkage,… or @FILE; default: all",
            autocompletion=completion.attacks,
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="its certificate; default: RELEASED.certificate.json, if there")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="columns to attack, where there is no certificate: a,b,c or @FILE")
    ] = None,
    scales: Annotated[
        Path | None, typer.Option(help="scales file, where the certificate may not tell the scales")
    ] = None,
    holdout: Annotated[
        Path | None, typer.Option(help="table of people who are not in the release, with the same columns")
    ] = None,
    rest_is_holdout: Annotated[
        bool, typer.Option(help="people of ORIGINAL who are not in RELEASED are the holdout")
    ] = False,
    second: Annotated[
        Path | None, typer.Option(help="a second release of the same people, to link the two")
    ] = None,
    second_scales: Annotated[
        Path | None, typer.Option(help="scales file of the second release, where it is needed")
    ] = None,
    public_key: PublicKey = None,
    pseudonym_key: Annotated[
        Path | None, typer.Option(help="key of the release's pseudonyms, if it has any")
    ] = None,
    people: Annotated[
        int | None, typer.Option(help="how many people's values to guess; default: at most 20,000")
    ] = None,
    confidence: Annotated[float, typer.Option(help="of the intervals")] = 0.95,
    seed: Annotated[int | None, typer.Option(help="makes random choices repeatable")] = None,
    save: Annotated[Path | None, typer.Option(help="write everything to a JSON file")] = None,
    force: Annotated[bool, typer.Option(help="replace a file that exists")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress")] = False,
) -> None:
    """Attack a release as an adversary would, and say how well people are protected (1 = safe)."""
    from targetdp._core import check
    from targetdp.attacks import join_tables, panel_names, run_attacks

    chosen, known = names(attacks), panel_names()
    if chosen == ():
        raise ValueError(f"attacks = {attacks!r} names none: choose from {', '.join(known)}")
    for name in chosen or ():
        check.choice("attacks", name, known)
    check.number("confidence", confidence, above=0, below=1)
    if people is not None:
        check.integer("people", people, at_least=1)
    if seed is not None:
        check.integer("seed", seed, at_least=0)
    if save is not None:
        must_be_free("save", save, force=force)
        if save.resolve() in {p.resolve() for p in (original, released, holdout, second, scales) if p}:
            raise ValueError(f"save = {save} is one of the tables: choose another name")
    with Bar(quiet=quiet) as bar:
        tables = join_tables(
            original, released, id, progress=bar, certificate=certificate, features=names(features),
            scales=scales, public_key=public_key, pseudonym_key_file=pseudonym_key, holdout=holdout,
            rest_is_holdout=rest_is_holdout,
        )  # fmt: skip
        other = None
        if second is not None:
            other = join_tables(
                original, second, id, progress=bar, scales=second_scales, public_key=public_key,
                pseudonym_key_file=pseudonym_key, rest_is_holdout=True,
            )  # fmt: skip
        crowd = _crowd(tables, seed, bar)
        findings = run_attacks(
            tables, chosen, second=other, people=people, confidence=confidence, seed=seed, progress=bar,
        )  # fmt: skip
    record = _record(tables, findings, confidence, seed, crowd)
    text = json.dumps(record, indent=2, ensure_ascii=False)
    if as_json:
        emit(text)
    else:
        _show(released, tables, findings)
        if crowd is not None:
            out().print(crowd.sentence(), highlight=False)
    if not as_json and tables.certificate is not None:
        for condition in tables.certificate.conditions:
            tell(f"the release's condition: {condition}")
    warn((*tables.notes, FOR_THE_HOLDER))
    if save is not None:
        save_text(save, text + "\n")
        tell(f"written to {save}")


def _crowd(tables: Any, seed: int | None, bar: Bar) -> Any:
    """What B means in this table: how many look alike; of at most so many people."""
    import numpy as np

    from targetdp.attacks import neighborhood

    if tables.B is None:
        return None
    rows = tables.rows.original  # B is a distance of rows, also where scores were released
    people = min(LOOKED_AT, len(rows))
    return neighborhood(rows, tables.B, people=people, rng=np.random.default_rng(seed), progress=bar)


def _record(tables: Any, findings: Any, confidence: float, seed: int | None, crowd: Any) -> dict[str, Any]:
    proof = tables.certificate
    return {
        "format": "targetdp attacks 1",
        "for_the_data_holder_only": True,
        "release": None if proof is None else proof.release,
        "guarantee": None if proof is None or proof.guarantee is None else proof.guarantee.model_dump(),
        "conditions": [] if proof is None else list(proof.conditions),
        "people": len(tables.original),
        "holdout": 0 if tables.holdout is None else len(tables.holdout),
        "features": list(tables.rows.features),
        "scores": None if tables.rows_before_scoring is None else list(tables.features),
        "confidence": confidence,
        "seed": seed,
        "notes": list(tables.notes),
        "crowd_within_B": None if crowd is None else crowd.record(),
        "findings": [finding.record() for finding in findings],
    }


def _show(released: Path, tables: Any, findings: Any) -> None:
    for table in (_scores(released, tables, findings), _criteria(findings)):
        out().print(table, highlight=False)
    for finding in findings:
        for note in () if finding.protection is None else finding.protection.detail.get("notes", ()):
            tell(f"{finding.attack}: {note}")


def _scores(released: Path, tables: Any, findings: Any) -> Table:
    held = "no holdout" if tables.holdout is None else f"holdout {len(tables.holdout):,}"
    table = Table(
        title=Text(f"{released}: {len(tables.original):,} people, {_columns(tables)}, {held}"),
        title_justify="left",
        caption="Protection: 1 is safe, 0 is none. ≤: cleverer attacks may get more. ≥: no attack gets "
        "more (≥*: on the condition that its meaning begins with).",
        caption_justify="left",
    )
    table.add_column("attack", no_wrap=True)
    table.add_column("protection", justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    table.add_column("strongest", overflow="fold", max_width=22)
    table.add_column("meaning")
    for finding in findings:
        p = finding.protection
        if p is None:
            row = cells(finding.attack, "–", "–", "–", finding.meaning)
        else:
            sign, (low, high) = {"upper": "≤", "lower": "≥*" if finding.given else "≥"}[p.bound], p.interval
            row = cells(
                finding.attack, f"{sign} {down(p.score)}", f"{down(low)}–{_rounded_up(high)}",
                p.strongest, finding.meaning,
            )  # fmt: skip
        table.add_row(*row)
    return table


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


def _columns(tables: Any) -> str:
    """What was released, in numbers."""
    many = len(tables.features)
    if tables.rows_before_scoring is None:
        return f"{many} columns"
    return f"{many} {'score' if many == 1 else 'scores'} of {len(tables.rows.features)} columns"


def _rounded_up(score: float) -> str:
    """The upper end of an interval, with three digits."""
    return f"{math.ceil(score * 1000 - 1e-9) / 1000:.3f}"


# `targetdp audit`: run a mechanism as it is installed here, and try to refute its claim.


def audit(
    B: Annotated[float, typer.Option("--B", help="distance B of the claim")],
    epsilon: Annotated[float, typer.Option(help="ε of the claim")],
    delta: Annotated[float, typer.Option(help="δ of the claim")],
    features: Annotated[int, typer.Option(help="number of columns")] = 10,
    mechanism: Annotated[
        str, typer.Option(help="least-noise, or another by name", autocompletion=completion.audited)
    ] = "least-noise",
    distance: Annotated[float | None, typer.Option(help="audit two people so far apart; default: B")] = None,
    runs: Annotated[int, typer.Option(help="runs on each of the two people")] = 200_000,
    confidence: Annotated[float, typer.Option(help="of the lower bound on ε")] = 0.999,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress")] = False,
) -> None:
    """Draw a release's noise many times for two similar people, and try to refute the claim (exit code 1)."""
    from targetdp._core import check
    from targetdp.attacks import audit as run_audit
    from targetdp.guarantee import Guarantee
    from targetdp.mechanisms import least_noise, noise_mechanisms

    check.choice("mechanism", mechanism, ("least-noise", *noise_mechanisms()))
    d = check.dimensions(features, "features")
    claim = Guarantee(B, epsilon, delta)
    name = least_noise(claim, d).name if mechanism == "least-noise" else mechanism
    with Bar(quiet=quiet) as bar:
        build = noise_mechanisms()[name]
        result = run_audit(
            build(claim), dimensions=d, distance=distance, runs=runs, confidence=confidence, progress=bar
        )
    if as_json:
        emit({"mechanism": name} | result.record())
    else:
        out().print(f"{name}: {result.sentence}", highlight=False)
    if not result.holds:
        raise typer.Exit(1)

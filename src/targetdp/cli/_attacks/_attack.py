"""`targetdp attack`: what an adversary could still learn from a release; whether noise keeps its promise."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from targetdp.cli import _console as completion
from targetdp.cli._attacks._attack_tables import best_guess, show_attacks
from targetdp.cli._console import (
    Bar,
    DeskFolder,
    FirstByDefault,
    PublicKey,
    emit,
    must_be_free,
    names,
    out,
    save_text,
    tell,
    warn,
)

FOR_THE_HOLDER = (
    "These scores are statistics of the original rows: for the data holder's eyes, not to be published with "
    "the release, unless the rows are public or invented."
)

LOOKED_AT = 5_000
"""People whose crowd within B is counted, at most: enough for its distribution."""

app = typer.Typer(
    cls=FirstByDefault,
    help="What an adversary could still learn from a release, and whether its noise keeps the promise.\n\n"
    "The word `release` may be left out: targetdp attack ORIGINAL RELEASED.",
    no_args_is_help=True,
)


@app.command()
def release(
    original: Annotated[
        Path,
        typer.Argument(
            help="the original table (Parquet, CSV, or a directory)", autocompletion=completion.tables
        ),
    ],
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
        Path | None, typer.Option(help="scales file, where there is no certificate to tell the scales")
    ] = None,
    holdout: Annotated[
        Path | None, typer.Option(help="table of people who are not in the release, with the same columns")
    ] = None,
    rest_is_holdout: Annotated[
        bool, typer.Option(help="people of ORIGINAL who are not in RELEASED are the holdout")
    ] = False,
    second: Annotated[
        list[Path] | None,
        typer.Option(
            help="another release of the same people, seen together with the first; may be repeated"
        ),
    ] = None,
    second_scales: Annotated[
        list[str] | None,
        typer.Option(help="OTHER=FILE: scales file of another release without certificate; may be repeated"),
    ] = None,
    public_key: PublicKey = None,
    desk: DeskFolder = None,
    people: Annotated[
        int | None, typer.Option(help="how many people's values to guess; default: at most 20,000")
    ] = None,
    confidence: Annotated[float, typer.Option(help="of the intervals")] = 0.95,
    seed: Annotated[int | None, typer.Option(help="makes random choices repeatable")] = None,
    save: Annotated[Path | None, typer.Option(help="write everything to a JSON file")] = None,
    force: Annotated[bool, typer.Option(help="replace a file that exists")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
    quiet: Annotated[
        bool, typer.Option(help="no progress; warnings and conditions are told all the same")
    ] = False,
) -> None:
    """Attack a release as an adversary would, and say how well people are protected (1 = safe)."""
    from targetdp._core import check
    from targetdp.attacks import join_tables, panel_names, run_attacks
    from targetdp.release import certificate_path

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
    scales_of = _scales_of(second or [], second_scales or [])
    if save is not None:
        must_be_free("save", save, force=force)
        releases = (released, *(second or ()))
        read = (original, *releases, *map(certificate_path, releases), *scales_of.values())
        given = {p.resolve() for p in (*read, certificate, holdout, scales) if p}
        if given & {save.resolve(), *save.resolve().parents}:
            raise ValueError(f"save = {save} is one of the tables or files given: choose another name")
    found = _desk(desk)
    with Bar(quiet=quiet) as bar:
        tables = join_tables(
            original, released, id, progress=bar, certificate=certificate, features=names(features),
            scales=scales, public_key=public_key, holdout=holdout, rest_is_holdout=rest_is_holdout,
            desk=found,
        )  # fmt: skip
        further = [
            join_tables(
                original, other, id, progress=bar, scales=scales_of.get(other), public_key=public_key,
                desk=found, holdout=holdout, rest_is_holdout=rest_is_holdout, further=True,
            )
            for other in second or ()
        ]  # fmt: skip
        crowd = _crowd(tables, seed, bar)
        findings = run_attacks(
            tables, chosen, further=further, people=people, confidence=confidence, seed=seed, progress=bar,
        )  # fmt: skip
    record = _record(tables, further, findings, confidence, seed, crowd)
    text = json.dumps(record, indent=2, ensure_ascii=False)
    if save is not None:  # before anything is shown: where this fails, stdout has the error alone
        save_text(save, text + "\n")
    if as_json:
        emit(text)
    else:
        show_attacks(released, tables, findings)
        if crowd is not None:
            out().print(crowd.sentence(), highlight=False)
        for condition in () if tables.certificate is None else tables.certificate.conditions:
            tell(f"the release's condition: {condition}")
    warn((*_notes(tables, further), FOR_THE_HOLDER))
    if save is not None and not quiet:
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


def _record(
    tables: Any, further: Any, findings: Any, confidence: float, seed: int | None, crowd: Any
) -> dict[str, Any]:
    from targetdp.attacks import worst_by_kind

    proof = tables.certificate
    return {
        "format": "targetdp attacks 2",
        "for_the_data_holder_only": True,
        "release": None if proof is None else proof.release,
        "guarantee": None if proof is None else proof.guarantee.model_dump(),
        "conditions": [] if proof is None else list(proof.conditions),
        "ids": tables.ids_are,
        "people": len(tables.original),
        "holdout": 0 if tables.holdout is None else len(tables.holdout),
        "features": list(tables.rows.features),
        "scores": None if tables.rows_before_scoring is None else list(tables.features),
        "further_releases": [
            {
                "release": None if other.certificate is None else other.certificate.release,
                "people": len(other.original),
                "released": list(other.features),
                "ids": other.ids_are,
            }
            for other in further
        ],
        "confidence": confidence,
        "seed": seed,
        "notes": _notes(tables, further),
        "crowd_within_B": None if crowd is None else crowd.record(),
        "best_guess": best_guess(findings),
        "worst": {
            kind: {
                situation: {"attack": finding.attack, "score": finding.protection.score}
                for situation, finding in by_situation.items()
                if finding.protection is not None
            }
            for kind, by_situation in worst_by_kind(findings).items()
        },
        "findings": [finding.record() for finding in findings],
    }


def _notes(tables: Any, further: Any) -> list[str]:
    """What a reader should know of the release and of every further one."""
    return [*tables.notes, *(f"Release {k}: {n}" for k, one in enumerate(further, 2) for n in one.notes)]


def _desk(given: Path | None) -> Any:
    """The desk that knows how ids are spelled, and the key of pseudonyms, if there is one."""
    from targetdp.release import Desk, NoDeskError

    try:
        return Desk.open(given)
    except NoDeskError:
        if given is not None:
            raise
        return None


def _scales_of(second: list[Path], given: list[str]) -> dict[Path, Path]:
    """The scales file of each further release; a single release's may come without its name."""
    files = {}
    for one in given:
        name, separator, file = one.rpartition("=")
        if not separator and len(second) == 1:
            name, file = str(second[0]), one
        if Path(name) not in second or not file:
            raise ValueError(
                f"second_scales = {one!r} does not name one of the other releases: give OTHER=FILE, where "
                "OTHER is written as after --second"
            )
        files[Path(name)] = Path(file)
    return files


# `targetdp attack audit`: run a mechanism as it is installed here, and try to refute its claim.


@app.command()
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

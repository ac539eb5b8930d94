"""`targetdp privatize`: from a table to a certified private one."""

from typing import Annotated, Any

import typer

from targetdp.cli.completion import released
from targetdp.cli.release_options import (
    AsJson,
    Bounds,
    Delta,
    Distance,
    Engine,
    Epsilon,
    Force,
    Id,
    Impute,
    Keep,
    KeepOrder,
    Key,
    Ledger,
    MadeFor,
    Output,
    Override,
    Part,
    Population,
    Pseudonymize,
    Quiet,
    ReleaseFile,
    Scales,
    ScalesEpsilon,
    Table,
    TunedOn,
    given_by,
    run,
)
from targetdp.cli.words import constants, names


def privatize(
    table: Table,
    output: Output,
    release: ReleaseFile = None,
    id: Id = None,  # noqa: A002
    features: Annotated[str | None, typer.Option(help="columns to release: a,b,c or @FILE")] = None,
    B: Distance = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    scales: Scales = None,
    bounds: Bounds = None,
    scales_epsilon: ScalesEpsilon = None,
    mechanism: Annotated[
        str | None,
        typer.Option(help="least-noise (default), another by name, or mondrian", autocompletion=released),
    ] = None,
    group_size: Annotated[int | None, typer.Option(help="rows that look alike, for mondrian")] = None,
    partitions: Annotated[int | None, typer.Option(help="the paper's random parts, which set δ")] = None,
    keep: Keep = None,
    keep_order: KeepOrder = None,
    impute: Impute = None,
    pseudonymize: Pseudonymize = None,
    tuned_on: TunedOn = None,
    ledger: Ledger = None,
    population: Population = None,
    part: Part = None,
    override: Override = None,
    key: Key = None,
    engine: Engine = None,
    made_for: MadeFor = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Release a private version of a table, with a certificate. Only the id and the features go out."""
    from targetdp.release.settings import make_settings  # noqa: PLC0415 (slow: keep --help quick)

    flags: dict[str, Any] = {
        "id": id, "features": names(features), "B": B, "epsilon": epsilon, "delta": delta, "scales": scales,
        "bounds": bounds, "scales_epsilon": scales_epsilon, "mechanism": mechanism, "group_size": group_size,
        "partitions": partitions, "keep": names(keep), "keep_order": keep_order, "impute": constants(impute),
        "pseudonymize": pseudonymize, "tuned_on": tuned_on, "ledger": ledger, "population": population,
        "part": part, "override": override, "key": key, "engine": engine, "for": made_for,
    }  # fmt: skip
    given = given_by(release, flags)
    if given.get("weights") is not None:
        raise ValueError(f"release file {release} names weights: targetdp score makes scores of them")
    run(table, output, make_settings(given), force=force, quiet=quiet, as_json=as_json)

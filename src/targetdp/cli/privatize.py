"""`targetdp privatize`: from a table to a certified private one."""

from typing import Annotated, Any

import typer

from targetdp.cli import release_options as options
from targetdp.cli.completion import released
from targetdp.cli.words import constants, names


def privatize(
    table: options.Table,
    output: options.Output,
    release: options.ReleaseFile = None,
    id: options.Id = None,  # noqa: A002
    features: Annotated[str | None, typer.Option(help="columns to release: a,b,c or @FILE")] = None,
    B: options.Distance = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    scales: options.Scales = None,
    bounds: options.Bounds = None,
    scales_epsilon: options.ScalesEpsilon = None,
    mechanism: Annotated[
        str | None,
        typer.Option(help="least-noise (default), another by name, or mondrian", autocompletion=released),
    ] = None,
    group_size: Annotated[int | None, typer.Option(help="rows that look alike, for mondrian")] = None,
    partitions: Annotated[int | None, typer.Option(help="the paper's random parts, which set δ")] = None,
    keep: options.Keep = None,
    keep_order: options.KeepOrder = None,
    impute: options.Impute = None,
    pseudonymize: options.Pseudonymize = None,
    tuned_on: options.TunedOn = None,
    ledger: options.Ledger = None,
    population: options.Population = None,
    part: options.Part = None,
    override: options.Override = None,
    key: options.Key = None,
    engine: options.Engine = None,
    made_for: options.MadeFor = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
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
    given = options.given_by(release, flags)
    if given.get("weights") is not None:
        raise ValueError(f"release file {release} names weights: targetdp score makes scores of them")
    options.run(table, output, make_settings(given), force=force, quiet=quiet, as_json=as_json)

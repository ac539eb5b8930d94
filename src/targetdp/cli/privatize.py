"""`targetdp privatize`: from a table to a certified private one."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from targetdp.cli.words import Bar, PublishedError, constants, emit, names, tell, warn


def privatize(
    table: Annotated[Path, typer.Argument(help="Parquet or CSV: a file, or a directory of part files")],
    output: Annotated[Path, typer.Argument(help="*.parquet, *.csv, or a directory (no suffix)")],
    release: Annotated[Path | None, typer.Option(help="release file (TOML); flags override it")] = None,
    id: Annotated[str | None, typer.Option(help="column that identifies a person")] = None,  # noqa: A002
    features: Annotated[str | None, typer.Option(help="columns to release: a,b,c or @FILE")] = None,
    B: Annotated[
        float | None, typer.Option("--B", help="people within this distance are hidden from each other")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="ε of the guarantee")] = None,
    delta: Annotated[float | None, typer.Option(help="δ of the guarantee; default 1/(rows + 1)")] = None,
    scales: Annotated[str | None, typer.Option(help="scales file, or 'private', or 'data'")] = None,
    bounds: Annotated[Path | None, typer.Option(help="public bounds (TOML), for private scales")] = None,
    scales_epsilon: Annotated[float | None, typer.Option(help="ε paid for private scales")] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="least-noise (default), another by name, or mondrian")
    ] = None,
    group_size: Annotated[int | None, typer.Option(help="rows that look alike, for mondrian")] = None,
    partitions: Annotated[int | None, typer.Option(help="the paper's random parts, which set δ")] = None,
    keep: Annotated[str | None, typer.Option(help="columns to pass on, NOT protected: a,b or @FILE")] = None,
    keep_order: Annotated[
        bool | None,
        typer.Option("--keep-order/--sort-by-id", help="keep the order of rows: may publish ranks"),
    ] = None,
    impute: Annotated[
        str | None, typer.Option(help="constants for missing values: 0 or calls=0,texts=0")
    ] = None,
    pseudonymize: Annotated[
        Path | None, typer.Option(help="replace ids by keyed hashes; the key file is created if missing")
    ] = None,
    tuned_on: Annotated[
        Literal["public", "synthetic", "this-data"] | None, typer.Option(help="which data B was chosen on")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="ledger to charge")] = None,
    population: Annotated[str | None, typer.Option(help="whose budget is charged")] = None,
    part: Annotated[
        str | None, typer.Option(help="part that shares no person with other named parts")
    ] = None,
    override: Annotated[str | None, typer.Option(help="break the limit; the reason goes on record")] = None,
    key: Annotated[Path | None, typer.Option(help="signing key; default: the user's own")] = None,
    engine: Annotated[Literal["local", "spark"] | None, typer.Option(help="where the work is done")] = None,
    made_for: Annotated[
        Literal["cider"] | None, typer.Option("--for", help="shape the output for another tool")
    ] = None,
    force: Annotated[bool, typer.Option(help="replace an output that exists")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress and no words")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print a summary as JSON")] = False,
) -> None:
    """Release a private version of a table, with a certificate. Only the id and the features go out."""
    from targetdp.release.holder import PublishedButUnsettledError  # noqa: PLC0415 (slow: keep --help quick)
    from targetdp.release.job import privatize_file  # noqa: PLC0415
    from targetdp.release.settings import make_settings, read_release_file  # noqa: PLC0415

    flags: dict[str, Any] = {
        "id": id, "features": names(features), "B": B, "epsilon": epsilon, "delta": delta, "scales": scales,
        "bounds": bounds, "scales_epsilon": scales_epsilon, "mechanism": mechanism, "group_size": group_size,
        "partitions": partitions, "keep": names(keep), "keep_order": keep_order, "impute": constants(impute),
        "pseudonymize": pseudonymize, "tuned_on": tuned_on, "ledger": ledger, "population": population,
        "part": part, "override": override, "key": key, "engine": engine, "for": made_for,
    }  # fmt: skip
    given = {} if release is None else read_release_file(release)
    settings = make_settings(given | {name: value for name, value in flags.items() if value is not None})
    try:
        with Bar(quiet=quiet or as_json) as bar:
            done = privatize_file(table, output, settings, force=force, progress=bar)
    except PublishedButUnsettledError as error:
        raise PublishedError(str(error)) from error
    except (OSError, RuntimeError, KeyboardInterrupt) as error:
        error.add_note("Nothing was published")
        raise
    try:
        if not quiet:
            warn(done.warnings)
        if as_json:
            emit(json.dumps(_summary(done), indent=2, ensure_ascii=False))
        elif not quiet:
            _say(done)
    except (OSError, ValueError, KeyboardInterrupt) as error:
        lost = f"the release IS published ({done.path}); only its summary was lost: {error}"
        raise PublishedError(lost) from error


def _summary(done: Any) -> dict[str, Any]:
    c = done.certificate
    return {
        "output": str(done.path),
        "certificate": str(done.path) + ".certificate.json",
        "release": c.release,
        "rows": c.rows,
        "features": len(c.features),
        "guarantee": None if c.guarantee is None else c.guarantee.model_dump(),
        "conditions": list(c.conditions),
        "mechanism": c.mechanism.name,
        "sha256": c.output.sha256,
        "ledger": None if c.ledger is None else c.ledger.model_dump(),
        "warnings": list(done.warnings),
        "for_the_data_holder_only": {"rows_clipped": done.outcome.clipped},
    }


def _say(done: Any) -> None:
    c = done.certificate
    if done.key.created:
        tell(
            f"a signing key was made for you: keep it, and tell others its fingerprint {done.key.fingerprint}"
        )
    promise = (
        "no guarantee" if c.guarantee is None
        else f"(B = {c.guarantee.B:g}, ε = {c.guarantee.epsilon:g}, δ = {c.guarantee.delta:.3g})"
    )  # fmt: skip
    tell(f"{c.rows:,} rows, {len(c.features)} columns → {done.path}: {promise}, on conditions")
    tell(done.why)
    tell(f"certificate: {done.path}.certificate.json, for people: {done.path}.certificate.md")
    share = done.outcome.clipped / c.rows
    tell(f"for you only: {share:.1%} of rows were longer than 1 and were clipped (never publish this)")

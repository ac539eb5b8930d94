"""`targetdp score`: from a table and somebody's weights to certified private scores."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from targetdp.cli import completion
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
    ScalesEpsilon,
    Table,
    TunedOn,
    given_by,
    run,
)
from targetdp.cli.words import constants, names, tell


def score(
    table: Table,
    weights: Annotated[Path, typer.Argument(help="weights file (TOML), as targetdp learn writes it")],
    output: Output,
    sample: Annotated[
        Path | None,
        typer.Option(help="the private sample that the weights were learned from: its people are left out"),
    ] = None,
    score_sample: Annotated[
        bool | None, typer.Option("--score-sample", help="score them, too: for them both releases add up")
    ] = None,
    some_have_left: Annotated[
        bool | None,
        typer.Option("--some-have-left", help="people of the sample who are not in the table have left"),
    ] = None,
    no_sample: Annotated[
        bool | None,
        typer.Option("--no-sample", help="nobody in the table is in what the weights were learned from"),
    ] = None,
    yes: Annotated[
        bool | None,
        typer.Option("--yes", help="ask nothing: you know that weights single out a column, or who left"),
    ] = None,
    release: ReleaseFile = None,
    id: Id = None,  # noqa: A002
    features: Annotated[
        str | None, typer.Option(help="columns that the scores are made of: a,b,c or @FILE")
    ] = None,
    B: Distance = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    scales: Annotated[
        str | None,
        typer.Option(
            help="scales file, 'sample' (the sample's), 'private' or 'data'",
            autocompletion=completion.score_scales,
        ),
    ] = None,
    bounds: Bounds = None,
    scales_epsilon: ScalesEpsilon = None,
    mechanism: Annotated[
        str | None,
        typer.Option(help="least-noise (default), or another by name", autocompletion=completion.audited),
    ] = None,
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
    """Release one private score for each person, or a few: weighted sums of the features, with noise.

    Weights are divided by their norm here, so whoever gives them cannot weaken the guarantee.
    """
    from targetdp.release.sample import ManyMissingError  # noqa: PLC0415 (slow: keep --help quick)
    from targetdp.release.settings import make_settings  # noqa: PLC0415

    flags: dict[str, Any] = {
        "weights": weights, "sample": sample, "score_sample": score_sample, "some_have_left": some_have_left,
        "no_sample": no_sample, "accept_weights": yes, "accept_missing": yes, "id": id,
        "features": names(features), "B": B, "epsilon": epsilon, "delta": delta, "scales": scales,
        "bounds": bounds, "scales_epsilon": scales_epsilon, "mechanism": mechanism, "keep": names(keep),
        "keep_order": keep_order, "impute": constants(impute), "pseudonymize": pseudonymize,
        "tuned_on": tuned_on, "ledger": ledger, "population": population, "part": part, "override": override,
        "key": key, "engine": engine, "for": made_for,
    }  # fmt: skip
    settings = _seen(make_settings(given_by(release, flags)), quiet=quiet)
    try:
        run(table, output, settings, force=force, quiet=quiet, as_json=as_json)
    except ManyMissingError as found:
        settings = _confirmed(found, settings, "accept_missing", "Have they all left?")
        run(table, output, settings, force=force, quiet=quiet, as_json=as_json)


def _seen(settings: Any, *, quiet: bool) -> Any:
    """The settings, once the data holder has seen what the scores tell; asked only where it matters."""
    from targetdp.release.telling import SingledOutError, must_be_meant, weights_in_words  # noqa: PLC0415

    try:
        must_be_meant(settings)
    except SingledOutError as found:
        return _confirmed(found, settings, "accept_weights", "Score with these weights?")
    if not quiet:
        tell(f"the scores are made of: {weights_in_words(settings)} (shares of the squared weights)")
    return settings


def _confirmed(found: ValueError, settings: Any, name: str, question: str) -> Any:
    """The settings with the data holder's word for what was found; without it, what was found is an error."""
    if not _at_a_terminal():
        raise found
    tell(f"warning: {found}", style="yellow")
    if not typer.confirm(question, err=True):
        raise ValueError("that was not confirmed: nothing was published") from found
    return settings.model_copy(update={name: True})


def _at_a_terminal() -> bool:
    """Whether somebody can be asked, and sees the question."""
    return sys.stdin.isatty() and sys.stderr.isatty()

"""`targetdp score`: from a table and somebody's weights to certified private scores."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from targetdp.cli import _console as completion
from targetdp.cli._console import Bar, PublishedError, constants, emit, names, released, tell, warn

# What the commands that make a release share: their options, one run, and what is said of it.

Table = Annotated[Path, typer.Argument(help="Parquet or CSV: a file, or a directory of part files")]
Output = Annotated[Path, typer.Argument(help="*.parquet, *.csv, or a directory (no suffix)")]
ReleaseFile = Annotated[Path | None, typer.Option(help="release file (TOML); flags override it")]
Id = Annotated[str | None, typer.Option(help="column that identifies a person")]
Distance = Annotated[
    float | None, typer.Option("--B", help="people within this distance are hidden from each other")
]
Epsilon = Annotated[float | None, typer.Option(help="ε of the guarantee")]
Delta = Annotated[float | None, typer.Option(help="δ of the guarantee; default 1/(rows + 1)")]
Scales = Annotated[
    str | None, typer.Option(help="scales file, or 'private', or 'data'", autocompletion=completion.scales)
]
Bounds = Annotated[Path | None, typer.Option(help="public bounds (TOML), for private scales")]
ScalesEpsilon = Annotated[float | None, typer.Option(help="ε paid for private scales")]
Keep = Annotated[str | None, typer.Option(help="columns to pass on, NOT protected: a,b or @FILE")]
KeepOrder = Annotated[
    bool | None, typer.Option("--keep-order/--sort-by-id", help="keep the order of rows: may publish ranks")
]
Impute = Annotated[str | None, typer.Option(help="constants for missing values: 0 or calls=0,texts=0")]
Pseudonymize = Annotated[
    Path | None, typer.Option(help="replace ids by keyed hashes; the key file is created if missing")
]
TunedOn = Annotated[
    Literal["public", "synthetic", "this-data"] | None, typer.Option(help="which data B was chosen on")
]
Ledger = Annotated[Path | None, typer.Option(help="ledger to charge")]
Population = Annotated[str | None, typer.Option(help="whose budget is charged")]
Part = Annotated[str | None, typer.Option(help="part that shares no person with other named parts")]
Override = Annotated[str | None, typer.Option(help="break the limit; the reason goes on record")]
Key = Annotated[Path | None, typer.Option(help="signing key; default: the user's own")]
Engine = Annotated[Literal["local", "spark"] | None, typer.Option(help="where the work is done")]
MadeFor = Annotated[Literal["cider"] | None, typer.Option("--for", help="shape the output for another tool")]
Force = Annotated[bool, typer.Option(help="replace an output that exists")]
Quiet = Annotated[bool, typer.Option(help="no progress and no words")]
AsJson = Annotated[bool, typer.Option("--json", help="print a summary as JSON")]


def given_by(release: Path | None, flags: dict[str, Any]) -> dict[str, Any]:
    """The settings of a release file, if there is one, and of the flags over it."""
    from targetdp.release import read_release_file

    given = {} if release is None else read_release_file(release)
    if flags.get("scales") not in {None, "private"}:  # what the file says of private scales is not meant
        given = {name: value for name, value in given.items() if name not in {"bounds", "scales_epsilon"}}
    return given | {name: value for name, value in flags.items() if value is not None}


def run(table: Path, output: Path, settings: Any, *, force: bool, quiet: bool, as_json: bool) -> None:
    """Make a release and say what was made; whoever hears of an error knows whether it was published."""
    from targetdp.table import open_source

    open_source(table)  # what is no table is refused at once, before anything slow is imported
    from targetdp.release import PublishedButUnsettledError, privatize_file

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
        "scores": None if c.scores is None else list(c.scores),
        "guarantee": None if c.guarantee is None else c.guarantee.model_dump(),
        "inside_the_sample": None if c.sample is None else c.sample.inside.model_dump(),
        "conditions": list(c.conditions),
        "mechanism": c.mechanism.name,
        "sha256": c.output.sha256,
        "ledger": None if c.ledger is None else c.ledger.model_dump(),
        "warnings": list(done.warnings),
        "for_the_data_holder_only": {"rows_clipped": done.outcome.clipped},
    }


def _say(done: Any) -> None:
    from targetdp.normalization import PUBLISHED
    from targetdp.release import told

    c = done.certificate
    if done.key.created:
        tell(
            f"a signing key was made for you: keep it, and tell others its fingerprint {done.key.fingerprint}"
        )
    promise = "no guarantee" if c.guarantee is None else told(c.guarantee.value())
    what = ("column" if c.scores is None else "score") + "s" * (len(c.released) > 1)
    tell(f"{c.rows:,} rows, {len(c.released)} {what} → {done.path}: {promise}, on conditions")
    spending = c.sample_spending()
    if spending is not None:
        how = "left out: their own release gave them"
        how = "scored, too: both releases give them" if spending.scored else how
        given = "" if c.sample.scales in {None, *PUBLISHED} else f", given its scales ({c.sample.scales})"
        tell(f"people of the sample are {how} {told(spending.inside)}{given}")
    tell(done.why)
    tell(f"certificate: {done.path}.certificate.json, for people: {done.path}.certificate.md")
    share = done.outcome.clipped / c.rows
    tell(f"for you only: {share:.1%} of rows were longer than 1 and were clipped (never publish this)")


# `targetdp privatize`: from a table to a certified private one.


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
    from targetdp.release import make_settings

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
    from targetdp.release import ManyMissingError, make_settings

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
    from targetdp.release import SingledOutError

    try:
        settings.must_mean_weights()
    except SingledOutError as found:
        return _confirmed(found, settings, "accept_weights", "Score with these weights?")
    if not quiet:
        tell(
            f"the scores are made of: {settings.asked.in_words(settings.features)} (shares of the squared weights)"
        )
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

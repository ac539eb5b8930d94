"""`targetdp privatize` and `targetdp score`: from a table to certified private rows or scores."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from targetdp._core import declared
from targetdp.cli import _console as completion
from targetdp.cli._console import Bar, PublishedError, constants, emit, names, option, takes, tell, warn

# What the commands that make a release share: their options, one run, and what is said of it.

if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[declared("targetdp.release._engine")]

Table = Annotated[Path, typer.Argument(help="Parquet or CSV: a file, or a directory of part files")]
Output = Annotated[Path, typer.Argument(help="*.parquet, *.csv, or a directory (no suffix)")]
Force = Annotated[bool, typer.Option(help="replace an output that exists")]
Quiet = Annotated[bool, typer.Option(help="no progress and no words")]
AsJson = Annotated[bool, typer.Option("--json", help="print a summary as JSON")]

OPTIONS: dict[str, Any] = {
    "release": option(Path, "release file (TOML); flags override it"),
    "id": option(str, "column that identifies a person"),
    "features": option(str, "columns to release: a,b,c or @FILE"),
    "B": option(float, "people within this distance are hidden from each other", "--B"),
    "epsilon": option(float, "ε of the guarantee"),
    "delta": option(float, "δ of the guarantee; default 1/(rows + 1)"),
    "scales": option(str, "scales file, or 'private', or 'data'", autocompletion=completion.scales),
    "bounds": option(Path, "public bounds (TOML), for private scales"),
    "scales_epsilon": option(float, "ε paid for private scales"),
    "mechanism": option(
        str, "least-noise (default), another by name, or mondrian", autocompletion=completion.released
    ),
    "group_size": option(int, "rows that look alike, for mondrian"),
    "partitions": option(int, "the paper's random parts, which set δ"),
    "keep": option(str, "columns to pass on, NOT protected: a,b or @FILE"),
    "keep_order": option(bool, "keep the order of rows: may publish ranks", "--keep-order/--sort-by-id"),
    "impute": option(str, "constants for missing values: 0 or calls=0,texts=0"),
    "pseudonymize": option(Path, "replace ids by keyed hashes; the key file is created if missing"),
    "tuned_on": option(Literal["public", "synthetic", "this-data"], "which data B was chosen on"),
    "ledger": option(Path, "ledger to charge"),
    "population": option(str, "whose budget is charged"),
    "part": option(str, "part that shares no person with other named parts"),
    "override": option(str, "break the limit; the reason goes on record"),
    "key": option(Path, "signing key; default: the user's own"),
    "engine": option(EngineName, "where the work is done"),
    "made_for": option(Literal["cider"], "shape the output for another tool", "--for"),
}
"""The options of `targetdp privatize`, by the names that settings have."""

_NOT_FOR_SCORES = ("group_size", "partitions")
SCORE_OPTIONS = {
    "sample": option(Path, "the private sample that the weights were learned from: its people are left out"),
    "score_sample": option(bool, "score them, too: for them both releases add up", "--score-sample"),
    "some_have_left": option(
        bool, "people of the sample who are not in the table have left", "--some-have-left"
    ),
    "no_sample": option(bool, "nobody in the table is in what the weights were learned from", "--no-sample"),
    "yes": option(bool, "ask nothing: you know that weights single out a column, or who left", "--yes"),
    **{name: kind for name, kind in OPTIONS.items() if name not in _NOT_FOR_SCORES},
    "features": option(str, "columns that the scores are made of: a,b,c or @FILE"),
    "scales": option(
        str,
        "scales file, 'sample' (the sample's), 'private' or 'data'",
        autocompletion=completion.score_scales,
    ),
    "mechanism": option(str, "least-noise (default), or another by name", autocompletion=completion.audited),
}


def given_by(flags: dict[str, Any]) -> dict[str, Any]:
    """The settings of a release file, if one is named, and of the flags over it."""
    from targetdp.release import read_release_file

    release = flags.pop("release")
    flags |= {name: names(flags[name]) for name in ("features", "keep")}
    flags |= {"impute": constants(flags["impute"]), "for": flags.pop("made_for")}
    given = {} if release is None else read_release_file(release)
    if flags["scales"] not in {None, "private"}:  # what the file says of private scales is not meant
        given = {name: value for name, value in given.items() if name not in {"bounds", "scales_epsilon"}}
    return given | {name: value for name, value in flags.items() if value is not None}


def run(table: Path, output: Path, settings: Any, *, force: bool, quiet: bool, as_json: bool) -> None:
    """Make a release and say what was made; whoever hears of an error knows whether it was published."""
    from targetdp.table import open_source

    source = open_source(table)  # what is no table is refused at once, before anything slow is imported
    from targetdp.release import PublishedButUnsettledError, privatize_file

    try:
        with Bar(quiet=quiet or as_json) as bar:
            done = privatize_file(source, output, settings, force=force, progress=bar)
    except PublishedButUnsettledError as error:
        raise PublishedError(str(error)) from error
    except (OSError, RuntimeError, KeyboardInterrupt) as error:
        error.add_note("Nothing was published")
        raise
    try:
        if not quiet:
            warn(done.warnings)
        if as_json:
            emit(_summary(done))
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


@takes(OPTIONS)
def privatize(
    table: Table,
    output: Output,
    *,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Release a private version of a table, with a certificate. Only the id and the features go out."""
    from targetdp.release import make_settings

    release = flags["release"]
    given = given_by(flags)
    if given.get("weights") is not None:
        raise ValueError(f"release file {release} names weights: targetdp score makes scores of them")
    run(table, output, make_settings(given), force=force, quiet=quiet, as_json=as_json)


@takes(SCORE_OPTIONS)
def score(
    table: Table,
    weights: Annotated[Path, typer.Argument(help="weights file (TOML), as targetdp learn writes it")],
    output: Output,
    *,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Release one private score for each person, or a few: weighted sums of the features, with noise.

    Weights are divided by their norm here, so whoever gives them cannot weaken the guarantee.
    """
    from targetdp.release import ManyMissingError, make_settings

    flags["accept_weights"] = flags["accept_missing"] = flags.pop("yes")
    settings = _seen(make_settings(given_by(flags | {"weights": weights})), quiet=quiet)
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
        parts = settings.asked.in_words(settings.features)
        tell(f"the scores are made of: {parts} (shares of the squared weights)")
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

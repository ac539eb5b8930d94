"""What the commands that make a release share: their options, one run, and what is said of it."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from targetdp.cli import completion
from targetdp.cli.words import Bar, PublishedError, emit, tell, warn

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
    from targetdp.release.settings import read_release_file  # noqa: PLC0415 (slow: keep --help quick)

    given = {} if release is None else read_release_file(release)
    if flags.get("scales") not in {None, "private"}:  # what the file says of private scales is not meant
        given = {name: value for name, value in given.items() if name not in {"bounds", "scales_epsilon"}}
    return given | {name: value for name, value in flags.items() if value is not None}


def run(table: Path, output: Path, settings: Any, *, force: bool, quiet: bool, as_json: bool) -> None:
    """Make a release and say what was made; whoever hears of an error knows whether it was published."""
    from targetdp.release.holder import PublishedButUnsettledError  # noqa: PLC0415
    from targetdp.release.job import privatize_file  # noqa: PLC0415

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
    from targetdp.release.caveats import told  # noqa: PLC0415
    from targetdp.scales import PUBLISHED  # noqa: PLC0415

    c = done.certificate
    if done.key.created:
        tell(
            f"a signing key was made for you: keep it, and tell others its fingerprint {done.key.fingerprint}"
        )
    promise = "no guarantee" if c.guarantee is None else told(c.guarantee.value())
    what = ("column" if c.scores is None else "score") + "s" * (len(c.released) > 1)
    tell(f"{c.rows:,} rows, {len(c.released)} {what} → {done.path}: {promise}, on conditions")
    rounds = c.rounds()
    if rounds is not None:
        how = "scored, too: both rounds give them" if rounds.scored else "left out: the first round gave them"
        given = "" if c.sample.scales in {None, *PUBLISHED} else f", given its scales ({c.sample.scales})"
        tell(f"people of the sample are {how} {told(rounds.inside)}{given}")
    tell(done.why)
    tell(f"certificate: {done.path}.certificate.json, for people: {done.path}.certificate.md")
    share = done.outcome.clipped / c.rows
    tell(f"for you only: {share:.1%} of rows were longer than 1 and were clipped (never publish this)")

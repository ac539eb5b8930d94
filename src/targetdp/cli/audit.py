"""`targetdp audit`: run a mechanism as it is installed here, and try to refute its claim."""

import json
from typing import Annotated

import typer

from targetdp.cli.completion import audited
from targetdp.cli.words import Bar, emit, out


def audit(
    B: Annotated[float, typer.Option("--B", help="distance B of the claim")],
    epsilon: Annotated[float, typer.Option(help="ε of the claim")],
    delta: Annotated[float, typer.Option(help="δ of the claim")],
    features: Annotated[int, typer.Option(help="number of columns")] = 10,
    mechanism: Annotated[
        str, typer.Option(help="least-noise, or another by name", autocompletion=audited)
    ] = "least-noise",
    distance: Annotated[float | None, typer.Option(help="audit two people so far apart; default: B")] = None,
    runs: Annotated[int, typer.Option(help="runs on each of the two people")] = 200_000,
    confidence: Annotated[float, typer.Option(help="of the lower bound on ε")] = 0.999,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress")] = False,
) -> None:
    """Draw a release's noise many times for two similar people, and try to refute the claim (exit code 1)."""
    from targetdp import check  # noqa: PLC0415 (slow to import: keep --help quick)
    from targetdp.attacks.audit import audit as run_audit  # noqa: PLC0415
    from targetdp.guarantee import Guarantee  # noqa: PLC0415
    from targetdp.mechanisms import least_noise  # noqa: PLC0415
    from targetdp.mechanisms.choice import REGISTER  # noqa: PLC0415

    check.choice("mechanism", mechanism, ("least-noise", *REGISTER))
    d = check.dimensions(features, "features")
    asked = Guarantee(B, epsilon, delta)
    name = least_noise(asked, d).name if mechanism == "least-noise" else mechanism
    with Bar(quiet=quiet) as bar:
        found = run_audit(
            REGISTER[name](asked), dimensions=d, distance=distance, runs=runs, confidence=confidence,
            progress=bar,
        )  # fmt: skip
    if as_json:
        emit(json.dumps({"mechanism": name} | found.record(), indent=2, ensure_ascii=False))
    else:
        out().print(f"{name}: {found.sentence}", highlight=False)
    if not found.holds:
        raise typer.Exit(1)

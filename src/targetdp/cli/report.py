"""`targetdp report`: the decision page of a finished sweep, for an official who does not code."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from targetdp.cli.limits import (
    AtLeast,
    AtMost,
    AttributeInference,
    Distinguishing,
    MaxExclusionErrors,
    MinProfit,
    SinglingOut,
    limits,
)
from targetdp.cli.words import Bar, must_be_free, save_text, tell


def report(
    folder: Annotated[Path, typer.Argument(help="folder of a finished sweep (targetdp tradeoff)")],
    page: Annotated[Path, typer.Option("--out", help="the HTML file to write")],
    audience: Annotated[
        Literal["official", "data-holder"] | None,
        typer.Option("--for", help="who will read it; default: whoever may"),
    ] = None,
    override: Annotated[
        str | None,
        typer.Option(
            "--show-confidential",
            help="show figures of confidential rows to an official all the same; say why: it goes on record",
        ),
    ] = None,
    singling_out: SinglingOut = None,
    attribute_inference: AttributeInference = None,
    distinguishing: Distinguishing = None,
    max_exclusion_errors: MaxExclusionErrors = None,
    min_profit: MinProfit = None,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    force: Annotated[bool, typer.Option(help="replace a file that exists")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress and no words")] = False,
) -> None:
    """Write one HTML page that opens offline: what each setting costs the program, and what it protects.

    Without limits it asks for protection from singling out of 0.8 and from attribute inference of 0.7.
    """
    from targetdp.report.page.audience import check_audience, record_override  # noqa: PLC0415 (slow to import)
    from targetdp.report.page.content import content, usual_limits  # noqa: PLC0415
    from targetdp.report.page.render import page as rendered  # noqa: PLC0415

    must_be_free("out", page, force=force)
    check_audience(folder, audience, override)
    asked = limits(
        singling_out=singling_out, attribute_inference=attribute_inference, distinguishing=distinguishing,
        max_exclusion_errors=max_exclusion_errors, min_profit=min_profit, at_least=at_least, at_most=at_most,
    )  # fmt: skip
    with Bar(quiet=quiet, unit="settings") as bar:
        made = content(folder, asked or usual_limits(folder), progress=bar)
        text = rendered(made, override=override)
    if override is not None:
        record_override(folder, override, text)
    save_text(page, text, shared=not made.marked)
    if not quiet:
        chosen = made.chosen
        tell(made.data["why_none"] if chosen is None else f"{chosen['label']}: {chosen['cost']}")
        tell(f"page ({len(text.encode()) / 1e6:.1f} MB, opens offline) → {page}")
        if made.marked:
            tell(f"warning: {made.mark}", style="yellow")

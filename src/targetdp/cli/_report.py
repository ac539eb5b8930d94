"""`targetdp report`: the decision page of a finished sweep, and the paper's figures."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from targetdp.cli._console import (
    Bar,
    FirstByDefault,
    cells,
    emit,
    folders,
    must_be_free,
    option,
    out,
    save_text,
    takes,
    tell,
    warn,
)

# What is asked of a setting, as options that commands share.

LIMITS = {
    "singling_out": option(float, "protection of at least so much, 0 to 1"),
    "inference": option(float, "protection of at least so much from the strongest attack on hidden values"),
    "attribute_inference": option(float, "the same from the paper's own attack, by a stranger"),
    "distinguishing": option(float, "protection of at least so much"),
    "best_guess": option(float, "an attacker's best guess at distance B right at most so often, 0.5 to 1"),
    "max_exclusion_errors": option(float, "poor people left out beyond those of the status quo, at most"),
    "min_profit": option(float, "the lender's profit, at least"),
    "at_least": option(list[str], "any metric: accuracy=0.68; may be given several times"),
    "at_most": option(list[str], "any metric: worst_group_rate=0.4; several times"),
}


def constraints(limits: dict[str, Any]) -> list[Any]:
    """The constraints that were given."""
    from targetdp.tradeoff import Constraint

    protections = ("singling_out", "inference", "attribute_inference", "distinguishing")
    at_least = [(name, limits[name]) for name in protections]
    at_least += [("profit", limits["min_profit"])]
    asked = [Constraint(metric, at_least=value) for metric, value in at_least if value is not None]
    at_most = [
        ("best_guess", limits["best_guess"]),
        ("extra_exclusion_errors", limits["max_exclusion_errors"]),
    ]
    asked += [Constraint(metric, at_most=value) for metric, value in at_most if value is not None]
    asked += [Constraint(metric, at_least=value) for metric, value in map(_limit, limits["at_least"] or ())]
    return asked + [
        Constraint(metric, at_most=value) for metric, value in map(_limit, limits["at_most"] or ())
    ]


def _limit(text: str) -> tuple[str, float]:
    metric, _, value = text.partition("=")
    try:
        return metric.strip().replace("-", "_"), float(value)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a metric and a number: write it as accuracy=0.68") from error


app = typer.Typer(
    cls=FirstByDefault,
    help="One page to decide by, or the paper's figures, from finished sweeps.\n\n"
    "The word `page` may be left out: targetdp report FOLDER.",
    no_args_is_help=True,
)

# `targetdp report page`: the decision page, for an official who does not code.


@app.command()
@takes(LIMITS)
def page(
    folder: Annotated[
        Path,
        typer.Argument(help="folder of a finished sweep (targetdp tradeoff)", autocompletion=folders),
    ],
    out_file: Annotated[Path, typer.Option("--out", help="the HTML file to write")],
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
    *,
    force: Annotated[bool, typer.Option(help="replace a file that exists")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress and no words")] = False,
    **limits: Any,
) -> None:
    """Write one HTML page that opens offline: what each setting costs the program, and what it protects.

    Without limits the defaults hold: protection of 0.8 from singling out, and of 0.7 from the strongest
    attack on hidden values.
    """
    from targetdp.report import check_audience, content, record_override
    from targetdp.report import page as rendered

    must_be_free("out", out_file, force=force)
    check_audience(folder, audience, override)
    asked = constraints(limits)
    with Bar(quiet=quiet, unit="settings") as bar:
        made = content(folder, asked, progress=bar)
        text = rendered(made, override=override)
    if override is not None:
        record_override(folder, override, text)
    save_text(out_file, text, shared=not made.marked)
    if not quiet:
        advice, shown = made.comparison.recommendation, made.shown
        is_advised = advice.chosen is not None and shown is not None
        tell(f"{shown['label']}: {shown['cost']}" if shown and is_advised else advice.reason)
        tell(f"page ({len(text.encode()) / 1e6:.1f} MB, opens offline) → {out_file}")
    warn(text for text in (made.mark, made.first_look) if text is not None)


# `targetdp report figures`: for a paper, or slides.


@app.command()
def figures(
    sweeps: Annotated[
        list[Path], typer.Argument(help="folders of one or two finished sweeps", autocompletion=folders)
    ],
    out_folder: Annotated[Path, typer.Option("--out", help="folder for the figures")],
    caption: Annotated[
        bool, typer.Option("--caption", help="write into each figure what it was drawn from")
    ] = False,
    force: Annotated[bool, typer.Option(help="replace figures that are there")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
    quiet: Annotated[bool, typer.Option(help="no words")] = False,
) -> None:
    """Draw the paper's Figures 2 and 3 for one or two sweeps, and two about the noise: PNG, SVG, PDF."""
    try:
        from targetdp.report import (
            choose,
            draw_all,
            first_look,
            must_be_free,
            quick_look,
            read_program,
            save_figures,
        )
    except ImportError as error:
        raise RuntimeError(
            f"figures cannot be drawn ({error}): install what they need with pip install 'targetdp[report]'"
        ) from error

    must_be_free(out_folder, force=force)
    if len({folder.resolve() for folder in sweeps}) < len(sweeps):
        raise ValueError("the same folder is named twice: give two different sweeps, or one")
    programs = [read_program(folder) for folder in sweeps]
    drawn = draw_all(programs, caption=caption)
    sizes = save_figures(drawn, out_folder, force=force)
    marked = any(one.marked for one in drawn)
    chosen = [choose(program) for program in programs]
    quick, notes = first_look(chosen), [note for one in chosen for note in one.notes()]
    if as_json:
        emit(_record(out_folder, drawn, sizes, marked) | {"first_look": list(quick), "notes": notes})
    else:
        _show(drawn, sizes, marked=marked)
    if marked:
        warn((_mark(),))
    if quick:
        warn((quick_look(quick),))
    if not quiet:
        for note in notes:
            tell(note)
        tell(f"{len(sizes)} files → {out_folder}")


def _record(folder: Path, drawn: Any, sizes: dict[str, int], marked: bool) -> dict[str, Any]:
    return {
        "out": str(folder),
        "for_the_data_holder_only": marked,
        "figures": [
            {
                "name": one.name,
                "title": one.title,
                "caption": one.caption,
                "files": [f"{one.name}.{kind}" for kind in _formats(one, sizes)],
            }
            for one in drawn
        ],
    }


def _formats(one: Any, sizes: dict[str, int]) -> list[str]:
    return [kind for name, _, kind in (name.rpartition(".") for name in sizes) if name == one.name]


def _show(drawn: Any, sizes: dict[str, int], *, marked: bool) -> None:
    formats = dict.fromkeys(kind for one in drawn for kind in _formats(one, sizes))
    table = Table(title=Text(_mark()) if marked else None, title_justify="left", box=box.SIMPLE)
    table.add_column("figure")
    table.add_column("file")
    for kind in formats:
        table.add_column(f".{kind}", justify="right")
    for one in drawn:
        kilobytes = (f"{-(-sizes[f'{one.name}.{kind}'] // 1000):,} kB" for kind in formats)
        table.add_row(*cells(one.title, one.name, *kilobytes))
    out().print(table, highlight=False)


def _mark() -> str:
    from targetdp.programs import MARK

    return MARK

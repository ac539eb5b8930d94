"""`targetdp tradeoff`: what each release costs a program and how it protects people; which to choose."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from targetdp._core import exact, up
from targetdp.cli._console import (
    Bar,
    FirstByDefault,
    cells,
    emit,
    must_be_free,
    out,
    programs,
    save_text,
    takes,
    tell,
    warn,
)
from targetdp.cli._report import LIMITS, constraints

_LABELS = ("mechanism", "B", "ε")
_PRIVACY = (
    "singling_out", "inference", "attribute_inference", "distinguishing", "best_guess", "best_guess_at_2"
)  # fmt: skip
_HEADINGS = {
    "singling_out": "singling\nout",
    "inference": "infer-\nence",
    "attribute_inference": "as in\npaper",
    "exact_epsilon": "true ε",
    "best_guess": "best\nguess",
    "best_guess_at_2": "at\n2",
    "extra_exclusion_errors": "extra\nerrors",
    "misspent": "paid to\nnot poor",
    "distinguishing": "distin-\nguishing",
}


_CAPTION = (
    "Protection: 1 is safe, 0 is none; attacks give upper bounds on it. Inference: from the strongest "
    "attack, a stranger's (as in the paper) or an insider's, who knows whose row or score it is, the noise, "
    "and all columns but one. Best guess: how often any attacker can be right, which of two rows B apart a "
    "person has."
)


app = typer.Typer(
    cls=FirstByDefault,
    help="What each release of a grid would cost a program, and how well it protects people: "
    "targetdp tradeoff PROGRAM --out DIR.",
    no_args_is_help=True,
)


@app.command()
def run(
    program: Annotated[
        str, typer.Argument(help="program file (TOML), or built-in: togo, nigeria", autocompletion=programs)
    ],
    out_folder: Annotated[
        Path, typer.Option("--out", help="folder for the results; one that was begun is gone on with")
    ],
    quick: Annotated[bool, typer.Option(help="a few cells and simulations, for a first look")] = False,
    simulations: Annotated[int | None, typer.Option(help="of each release with noise")] = None,
    seed: Annotated[
        int | None, typer.Option(help="of noise and draws, not of folds; default: the program's")
    ] = None,
    rows: Annotated[
        Literal["clip", "largest", "unit"] | None,
        typer.Option(help="how rows come into the unit ball; only clip has a guarantee; default: clip"),
    ] = None,
    quota_rule: Annotated[
        Literal["once", "per fold"] | None,
        typer.Option(help="one quota, or one in each fold as the paper's authors; default: once"),
    ] = None,
    allow_code: Annotated[
        bool,
        typer.Option(
            help="import the program file's estimator whatever package it is of, which runs that code; "
            "default: scikit-learn and LightGBM only"
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(help="simulations at once; -1: one for each processor")] = -1,
    backend: Annotated[
        Literal["loky", "threading", "dask", "ray", "spark"], typer.Option(help="who computes (joblib)")
    ] = "loky",
    address: Annotated[str | None, typer.Option(help="of a dask scheduler or a ray cluster")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress and no words")] = False,
) -> None:
    """Simulate every release of a grid: what the program achieves, and what attackers do.

    Killed and started again, it goes on where it was, and ends with the same results.
    """
    from targetdp.tradeoff import find_sweep
    from targetdp.tradeoff import run as run_sweep

    with Bar(quiet=quiet, unit="simulations") as bar:
        sweep = find_sweep(
            program, quick=quick, simulations=simulations, seed=seed, rows=rows, quota_rule=quota_rule,
            allow_code=allow_code, progress=bar,
        )  # fmt: skip
        bar.pause()
        warn(one.words for one in sweep.study.program.people.alike_groups)
        try:
            done = run_sweep(sweep, out_folder, jobs=jobs, backend=backend, address=address, progress=bar)
        except (OSError, RuntimeError, KeyboardInterrupt) as error:
            error.add_note("Simulations that were finished are kept: run the same command to go on")
            raise
    _show_run(done, as_json=as_json, quiet=quiet)


@app.command()
@takes(LIMITS)
def recommend(
    folder: Annotated[Path, typer.Argument(help="folder of a finished sweep")],
    *,
    request: Annotated[
        Path | None, typer.Option("--out", help="write the request for it here, such as request.toml")
    ] = None,
    force: Annotated[bool, typer.Option(help="replace a file that exists")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
    **limits: Any,
) -> None:
    """Which release satisfies all that is asked and serves the program best. Exit code 1: none does."""
    from targetdp.tradeoff import recommend as choose

    asked = constraints(limits)
    if request is not None:
        must_be_free("out", request, force=force)
    found = choose(folder, asked)
    if as_json:
        emit(found.record())
    else:
        _show_recommendation(found)
    _mark(found.for_the_data_holder_only)
    warn(found.warnings)
    if found.chosen is None:
        raise typer.Exit(1)
    if request is not None:
        save_text(request, found.request or "")
        tell(f"request → {request}: say in it who asks and why, and send it to the data holder")


def _show_run(done: Any, *, as_json: bool, quiet: bool) -> None:
    from targetdp.tradeoff import read_figures

    study = done.sweep.study
    figures, money = read_figures(done.folder), _money(done.sweep.public_record)
    if as_json:
        emit(_run_record(done, figures))
    else:
        beside = [name for name in money if name in figures[done.sweep.cells[0].name]][:1]
        names = tuple(dict.fromkeys((study.objective["metric"], *beside, *_PRIVACY, "exact_epsilon")))
        title = (
            f"{study.title}: {study.people:,} {study.counted} ({study.source}), "
            f"{done.sweep.simulations} simulations, "
            + (
                _delta(done.sweep.grid.delta_for(study.people), study.people)
                if study.rows == "clip"
                else f"rows = {study.rows}: NOT CLIPPED, NO GUARANTEE"
            )
        )
        caption = f"{_CAPTION} Means over simulations; intervals are in summary.parquet."
        rows = [[*_label(cell), *_means(figures[cell.name], names)] for cell in done.sweep.cells]
        if study.rows != "clip":
            caption += " B and ε say how much noise was added, and promise nothing."
        if any(cell.same_as for cell in done.sweep.cells):
            caption += " *: equal in distribution to an earlier cell, computed once."
        _print(
            title, caption, (*_LABELS, *names), rows, money, marked=study.for_the_data_holder_only,
            first_look=done.first_look,
        )  # fmt: skip
    _mark(study.for_the_data_holder_only)
    if study.rows == "clip":
        _warn_of(done.sweep.grid.delta_for(study.people))
    if study.comparison_only is not None:
        warn((f"for comparisons only: {study.comparison_only}",))
    if not quiet:
        _tell_time(done)
        tell(f"results, summary and timing → {done.folder}")


def _run_record(done: Any, figures: Any) -> dict[str, Any]:
    from targetdp.tradeoff import mark_of

    said = done.sweep.public_record
    return {
        "out": str(done.folder),
        "program": done.sweep.study.name,
        **{name: said[name] for name in ("title", "counted", "currency", "alike_groups")},
        **mark_of(done.sweep.study.source),
        "fingerprint": done.sweep.fingerprint,
        "first_look": list(done.first_look),
        "rows": done.sweep.study.rows,
        "comparison_only": done.sweep.study.comparison_only,
        "simulations": done.simulations,
        "computed_now": done.computed,
        "cells": [
            asdict(cell)
            | {"guarantee": None if cell.guarantee is None else asdict(cell.guarantee)}
            | {"means": {name: _finite(one.mean) for name, one in figures[cell.name].items()}}
            for cell in done.sweep.cells
        ],
    }


def _tell_time(done: Any) -> None:
    spent: dict[str, float] = {}
    for row in done.timing.to_pylist():
        spent[row["part"]] = spent.get(row["part"], 0.0) + row["seconds"]
    parts = ", ".join(f"{name} {1000 * seconds / done.simulations:.1f}" for name, seconds in spent.items())
    tell(f"{done.simulations:,} simulations ({done.computed:,} of them now); milliseconds for each: {parts}")


def _show_recommendation(found: Any) -> None:
    from targetdp.tradeoff import PROTECTIONS

    metric = found.run["objective"]["metric"]
    asked = [constraint.metric for constraint in found.constraints]
    measured = {name for one in found.results for name in one.figures}
    beside = (name for name in (*PROTECTIONS, "best_guess") if name in measured)
    names = list(dict.fromkeys([metric, *asked, *beside]))
    rows = [
        [
            *_label(one.cell),
            *(f"{mean}{'✗' if name in one.fails else ' '}"
              for name, mean in zip(names, _means(one.figures, names), strict=True)),
            "yes" if one.on_front else "",
            "best" if one is found.chosen else "no" if one.excluded_by else "yes",
        ]
        for one in found.results
    ]  # fmt: skip
    caption = (
        "✗: not what is asked, by the safe end of its 95% interval. Front: no other cell is better in the "
        "program's figure and in all protections. k-anonymity has no guarantee, the status quo no privacy. "
        + _CAPTION
    )
    run, people = found.run, found.run["people"]
    deltas = [cell["delta"] for cell in found.run["cells"] if cell["delta"] is not None]
    title = f"{run['title']}: {people:,} {run['counted']} ({run['source']})"
    title += f", {_delta(deltas[0], people)}" if deltas else ""
    _print(
        title, caption, (*_LABELS, *names, "front", "fits"), rows, _money(run),
        marked=found.for_the_data_holder_only, first_look=found.first_look,
    )  # fmt: skip
    out().print(found.reason, highlight=False)
    for miss in found.near_misses:
        out().print(f"near miss: {miss}", highlight=False, markup=False)
    if found.request is not None:
        emit("")
        emit(found.request.rstrip("\n"))


def _money(run: Mapping[str, Any]) -> dict[str, str]:
    """Figures that are sums of money, each with its currency."""
    from targetdp.programs import objective_of

    return {} if run["currency"] is None else dict.fromkeys(objective_of(run).money, run["currency"])


def _print(
    title: str, caption: str, headings: tuple[str, ...], rows: list[list[str]], money: Mapping[str, str], *,
    marked: bool, first_look: tuple[str, ...],
) -> None:  # fmt: skip
    from targetdp.programs import MARK

    quick = f"QUICK LOOK: {'; '.join(first_look)}"
    above = [MARK] * marked + [quick] * bool(first_look)
    table = Table(
        title=Text("\n".join([*above, title])), title_justify="left", caption=Text(caption),
        caption_justify="left", box=box.SIMPLE, collapse_padding=True, pad_edge=False,
    )  # fmt: skip
    for heading in headings:
        words = heading in {*_LABELS, "front", "fits"}
        named = _HEADINGS.get(heading, heading.replace("_", "\n"))
        table.add_column(
            Text(f"{named}\n({money[heading]})" if heading in money else named), no_wrap=True,
            justify="left" if words else "right",
        )  # fmt: skip
    for row in rows:
        table.add_row(*cells(*row))
    out().print(table, highlight=False)


def _label(cell: Any) -> list[str]:
    """A cell's name, in columns."""
    name, B, epsilon = cell.mechanism, "", ""
    if cell.group_size is not None:
        name += f" {cell.group_size}"
    if cell.B is not None:
        B, epsilon = exact(cell.B), up(cell.epsilon, 6)
    if cell.epsilon1 is not None:
        epsilon = f"{cell.epsilon1:g} + {cell.epsilon2:g}"
    return [name + (" *" if cell.same_as else ""), B, epsilon]


def _delta(delta: float, people: int) -> str:
    from targetdp.tradeoff import larger_by_parts

    return f"δ = {up(delta)}{larger_by_parts(delta, people)}"


def _warn_of(delta: float) -> None:
    from targetdp.tradeoff import large_delta

    if (warning := large_delta(delta)) is not None:
        warn((warning,))


def _means(figures: Any, names: Any) -> list[str]:
    from targetdp.tradeoff import shown

    means = {name: figures[name].mean if name in figures else None for name in names}
    return ["–" if mean is None else shown(mean, name) for name, mean in means.items()]


def _finite(value: float | None) -> float | None:
    return None if value is None or value in {float("inf"), float("-inf")} else value


def _mark(marked: bool) -> None:
    if marked:
        from targetdp.programs import MARK

        warn((MARK,))

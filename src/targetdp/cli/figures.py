"""`targetdp figures`: the paper's figures from finished sweeps."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from targetdp.cli.words import cells, emit, out, tell, warn


def figures(
    folders: Annotated[list[Path], typer.Argument(help="folders of one or two finished sweeps")],
    out_folder: Annotated[Path, typer.Option("--out", help="folder for the figures")],
    force: Annotated[bool, typer.Option(help="replace figures that are there")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
    quiet: Annotated[bool, typer.Option(help="no words")] = False,
) -> None:
    """Draw the paper's Figures 2 and 3 for one or two sweeps, and two about the noise: PNG, SVG, PDF."""
    try:
        from targetdp.report.figures.choice import choose  # noqa: PLC0415 (slow to import: keep --help quick)
        from targetdp.report.figures.drawing import draw_all  # noqa: PLC0415
        from targetdp.report.figures.saving import FORMATS, must_be_free, save_figures  # noqa: PLC0415
        from targetdp.report.figures.sweep import read_program  # noqa: PLC0415
    except ImportError as error:
        raise RuntimeError(
            f"figures cannot be drawn ({error}): install what they need with pip install 'targetdp[report]'"
        ) from error

    must_be_free(out_folder, force=force)
    _must_differ(folders)
    programs = [read_program(folder) for folder in folders]
    drawn = draw_all(programs)
    sizes = save_figures(drawn, out_folder, force=force)
    marked = any(one.marked for one in drawn)
    if as_json:
        emit(json.dumps(_record(out_folder, drawn, sizes, marked), indent=2, ensure_ascii=False))
    else:
        _show(drawn, sizes, FORMATS, marked=marked)
    if marked:
        warn((_mark(),))
    if not quiet:
        for program in programs:
            for note in choose(program).notes():
                tell(note)
        tell(f"{len(sizes)} files → {out_folder}")


def _must_differ(folders: list[Path]) -> None:
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise ValueError("the same folder is named twice: give two different sweeps, or one")


def _record(folder: Path, drawn: Any, sizes: dict[str, int], marked: bool) -> dict[str, Any]:
    return {
        "out": str(folder),
        "for_the_data_holder_only": marked,
        "figures": [
            {
                "name": one.name,
                "title": one.title,
                "files": [name for name in sizes if name.rpartition(".")[0] == one.name],
            }
            for one in drawn
        ],
    }


def _show(drawn: Any, sizes: dict[str, int], formats: tuple[str, ...], *, marked: bool) -> None:
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
    from targetdp.programs.file import MARK  # noqa: PLC0415

    return MARK

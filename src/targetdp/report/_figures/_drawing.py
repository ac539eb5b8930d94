"""Figures as files, in three formats: all of them or none, and the same bytes every time."""

import io
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from targetdp._core import __version__
from targetdp._files import sync_folder, write_new
from targetdp.programs import MARK
from targetdp.report._figures._accuracy import accuracy_figure
from targetdp.report._figures._choice import SweptProgram, choose
from targetdp.report._figures._curves import (
    EpsilonCurves,
    NoiseComparison,
    compare_noise,
    epsilon_curves,
    epsilon_figure,
    noise_figure,
)
from targetdp.report._figures._style import style
from targetdp.report._figures._tradeoff import tradeoff_figure

# All figures of one or two sweeps.

TITLES = {
    "figure2_accuracy": "Figure 2: accuracy by technology",
    "figure3_tradeoff": "Figure 3: the program against each protection",
    "noise_by_columns": "Noise by number of columns, for one guarantee",
    "epsilon_by_distance": "Exact epsilon by distance, for one guarantee",
}
"""Every figure, by the name of its files."""


@dataclass(frozen=True)
class Drawn:
    """A finished figure; ``marked`` if it is for the data holder only."""

    name: str
    title: str
    figure: Figure
    marked: bool


def draw_all(
    programs: Sequence[SweptProgram],
    noise: NoiseComparison | None = None,
    curves: EpsilonCurves | None = None,
) -> tuple[Drawn, ...]:
    """Draw every figure. Once one sweep is for the data holder only, all figures beside it are marked."""
    if not 1 <= len(programs) <= 2:
        raise ValueError(
            f"{len(programs)} sweeps: the paper's figures hold one program or two side by side; draw the "
            "others into a folder of their own"
        )
    marked = any(program.for_the_data_holder_only for program in programs)
    shown = [choose(program) for program in programs]
    figures = {
        "figure2_accuracy": accuracy_figure(shown),
        "figure3_tradeoff": tradeoff_figure(shown),
        "noise_by_columns": noise_figure(noise or compare_noise(), marked=marked),
        "epsilon_by_distance": epsilon_figure(curves or epsilon_curves(), marked=marked),
    }
    return tuple(Drawn(name, TITLES[name], figure, marked) for name, figure in figures.items())


FORMATS = ("png", "svg", "pdf")


def must_be_free(folder: Path, *, force: bool) -> None:
    """Refuse a place where the figures cannot go: found out before the work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out = {folder} is a file: give the name of a folder")
    if not folder.absolute().parent.is_dir():
        raise ValueError(f"out = {folder}: its folder does not exist; create it first")
    for name in (f"{name}.{kind}" for name in TITLES for kind in FORMATS):
        path = folder / name
        if path.is_dir():
            raise ValueError(f"{path} is a folder: move it away, or choose another --out")
        if (path.exists() or path.is_symlink()) and not force:
            raise ValueError(f"{path} exists: choose another folder, or replace its figures with --force")


def save_figures(drawn: Sequence[Drawn], folder: Path, *, force: bool = False) -> dict[str, int]:
    """Write every figure in every format; names and sizes in bytes.

    Guarantees: everything is rendered before anything is written, and an error leaves the folder as it was.
    Figures for the data holder only can be read by their owner alone.
    """
    must_be_free(folder, force=force)
    files = {f"{one.name}.{kind}": rendered(one, kind) for one in drawn for kind in FORMATS}
    private = any(one.marked for one in drawn)
    place = folder.absolute()
    draft = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}.new-"))
    try:
        new = draft / "new"
        new.mkdir(mode=0o700 if private else 0o777)
        for name, content in files.items():
            write_new(new / name, content, private=private)
        sync_folder(new)
        if place.exists():
            must_be_free(folder, force=force)  # again: somebody may have been quicker
            _move_into(place, new, draft / "old", files)
        else:
            new.rename(place)
        sync_folder(place.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return {name: len(content) for name, content in files.items()}


def rendered(one: Drawn, kind: str) -> bytes:
    """A figure's file. It tells no time and no machine, so that two runs give the same bytes."""
    sink = io.BytesIO()
    with style():
        one.figure.savefig(sink, format=kind, metadata=_metadata(one, kind))
    return sink.getvalue()


def _metadata(one: Drawn, kind: str) -> dict[str, Any]:
    maker = f"targetdp {__version__}"
    mark = {"Subject" if kind == "pdf" else "Description": MARK} if one.marked else {}
    if kind == "pdf":
        return {"Title": one.title, "Creator": maker, "Producer": maker, "CreationDate": None} | mark
    if kind == "svg":
        return {"Title": one.title, "Creator": maker, "Date": None} | mark
    return {"Title": one.title, "Software": maker} | mark


def _move_into(place: Path, new: Path, old: Path, files: Mapping[str, bytes]) -> None:
    """Take the place of older figures; whatever goes wrong, these come back."""
    old.mkdir(mode=0o700)
    moved: list[str] = []
    try:
        for name in files:
            if (place / name).exists() or (place / name).is_symlink():
                (place / name).rename(old / name)
            moved.append(name)
            (new / name).rename(place / name)
    except BaseException:
        for name in moved:
            (place / name).unlink(missing_ok=True)
        for path in old.iterdir():
            path.rename(place / path.name)
        raise

"""Figures as files, in three formats: all of them or none, and the same bytes every time.

A figure is a function in one file of this folder that declares its name and what it needs with `figure`.
There is no list of them to keep in step: `figures` finds them all.
"""

import io
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.figure import Figure

from targetdp._core import __version__, import_all
from targetdp._files import sync_folder, write_new
from targetdp.programs import MARK
from targetdp.report._figures._choice import ShownCells, SweptProgram, choose, first_look
from targetdp.report._figures._style import applied
from targetdp.report._page._words import quick_look

_Draw = TypeVar("_Draw", bound=Callable[..., Figure])


@dataclass(frozen=True)
class FigureDeclaration:
    """What a file declares of its figure; see `figure` for the parts."""

    name: str
    title: str
    place: int
    caption: Callable[[Any], str]
    data: Callable[[], Any] | None
    draw: Callable[..., Figure]


_FIGURES: dict[str, FigureDeclaration] = {}


def figure(
    name: str, *, title: str, place: int, caption: Callable[[Any], str], data: Callable[[], Any] | None = None
) -> Callable[[_Draw], _Draw]:
    """Declare a figure: the decorated function is drawn with all others from then on.

    Args:
        name: That of its files.
        title: What the files and the command line call it.
        place: Where it stands among the figures.
        caption: Says what the figure was drawn from; it is handed what the figure is.
        data: What computes the figure's data, if it is not drawn from sweeps. The function is handed these
            data and ``marked=``; without it, what `choose` makes of each sweep. In both cases it is told by
            ``caption=`` whether the caption is to stand in the figure.

    Returns:
        A decorator that leaves the function as it is.
    """

    def declare(draw: _Draw) -> _Draw:
        _FIGURES[name] = FigureDeclaration(name, title, place, caption, data, draw)
        return draw

    return declare


def figures() -> dict[str, FigureDeclaration]:
    """Every figure by its name, in the order of their places."""
    import_all("targetdp.report._figures")
    return {one.name: one for one in sorted(_FIGURES.values(), key=lambda one: one.place)}


@dataclass(frozen=True)
class Drawn:
    """A finished figure; ``marked`` if it is for the data holder only.

    ``first_look`` says why it shows a quick look only; empty if it does not. ``caption`` says what it was
    drawn from, whether or not that stands in it.
    """

    name: str
    title: str
    figure: Figure
    marked: bool
    first_look: tuple[str, ...] = ()
    caption: str = ""

    @property
    def said(self) -> str:
        """All that must be known of it: its marks, which are in sight in it, too, and its caption."""
        quick = [quick_look(self.first_look)] * bool(self.first_look)
        return " ".join(filter(None, [*[MARK] * self.marked, *quick, self.caption]))


def draw_all(programs: Sequence[SweptProgram], *, caption: bool = False) -> tuple[Drawn, ...]:
    """Draw every figure. Once one sweep is for the data holder only, all figures beside it are marked.

    ``caption`` says whether captions stand in the figures: they are in their files in any case.
    """
    if not 1 <= len(programs) <= 2:
        raise ValueError(
            f"{len(programs)} sweeps: the paper's figures hold one program or two side by side; draw the "
            "others into a folder of their own"
        )
    marked = any(program.for_the_data_holder_only for program in programs)
    shown = [choose(program) for program in programs]
    return tuple(_drawn(one, shown, marked=marked, caption=caption) for one in figures().values())


def _drawn(one: FigureDeclaration, shown: list[ShownCells], *, marked: bool, caption: bool) -> Drawn:
    if one.data is None:
        sheet = one.draw(shown, caption=caption)
        return Drawn(one.name, one.title, sheet, marked, first_look(shown), one.caption(shown))
    data = one.data()
    sheet = one.draw(data, marked=marked, caption=caption)
    return Drawn(one.name, one.title, sheet, marked, caption=one.caption(data))


FORMATS = ("png", "svg", "pdf")
CAPTIONS = "captions.md"
"""What each figure was drawn from, for whoever sets it in a text."""


def must_be_free(folder: Path, *, force: bool) -> None:
    """Refuse a place where the figures cannot go: found out before the work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out = {folder} is a file: give the name of a folder")
    if not folder.absolute().parent.is_dir():
        raise ValueError(f"out = {folder}: its folder does not exist; create it first")
    for name in (CAPTIONS, *(f"{name}.{kind}" for name in figures() for kind in FORMATS)):
        path = folder / name
        if path.is_dir():
            raise ValueError(f"{path} is a folder: move it away, or choose another --out")
        if (path.exists() or path.is_symlink()) and not force:
            raise ValueError(f"{path} exists: choose another folder, or replace its figures with --force")


def save_figures(drawn: Sequence[Drawn], folder: Path, *, force: bool = False) -> dict[str, int]:
    """Write every figure in every format, and their captions; names and sizes in bytes.

    Guarantees: everything is rendered before anything is written, and an error leaves the folder as it was.
    Figures for the data holder only can be read by their owner alone.
    """
    must_be_free(folder, force=force)
    files = {f"{one.name}.{kind}": rendered(one, kind) for one in drawn for kind in FORMATS}
    files[CAPTIONS] = (
        "\n\n".join(f"`{one.name}`: **{one.title}.** {one.said}" for one in drawn).encode() + b"\n"
    )
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
    with applied():
        one.figure.savefig(sink, format=kind, metadata=_metadata(one, kind))
    return sink.getvalue()


def _metadata(one: Drawn, kind: str) -> dict[str, Any]:
    maker = f"targetdp {__version__}"
    mark = {"Subject" if kind == "pdf" else "Description": one.said} if one.said else {}
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

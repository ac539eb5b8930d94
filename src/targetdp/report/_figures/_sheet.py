"""A sheet for print: panels in rows and columns, and around them the mark, a legend and a note.

The panels keep their size: the sheet grows by as much as the words around them need, so that none is cut off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text

from targetdp.programs import MARK
from targetdp.report._figures._style import DOTS, FONT, SMALL, VERMILLION, WHITE

_EDGE, _GAP = 0.06, 0.08
_LINES = 1.3
"""Inches around the sheet and between its bands; the distance of lines, in letters."""
_MARGIN = 0.75
"""Inches of a panel's width that its tick labels and the gap to the next may take."""


@dataclass(frozen=True)
class Sheet:
    """A figure and its panels, by row and column."""

    figure: Figure
    panels: tuple[tuple[Axes, ...], ...]

    @property
    def width(self) -> float:
        """Inches."""
        return float(self.figure.get_figwidth())


def new_sheet(width: float, heights: Sequence[float], columns: int) -> Sheet:
    """Empty panels: a height in inches for each row, tick labels included."""
    figure = Figure(figsize=(width, sum(heights)), dpi=DOTS)
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(heights), columns, squeeze=False, height_ratios=list(heights))
    return Sheet(figure, tuple(tuple(row) for row in panels))


def finish(sheet: Sheet, *, legend: Sequence[Artist], note: str, marked: bool) -> None:
    """Put legend and note below the panels and the mark above, then fix where everything is."""
    figure, inner = sheet.figure, sheet.width - 2 * _EDGE
    panels = float(figure.get_figheight())
    noted = _wrapped(figure, note, inner)
    mark = _wrapped(figure, MARK, inner - 0.1, weight="bold") if marked else None
    key = _legend(figure, legend, inner)
    heights = {part: 0.0 if part is None else _height(figure, part) + _GAP for part in (noted, mark, key)}
    above, below = heights[mark] + _EDGE, heights[noted] + heights[key] + _EDGE
    total = panels + above + below
    figure.set_size_inches(sheet.width, total)
    noted.set_position((_EDGE / sheet.width, _EDGE / total))
    if key is not None:
        key.set_bbox_to_anchor((0.5, (_EDGE + heights[noted]) / total), figure.transFigure)
    if mark is not None:
        mark.set_position((0.5, 1 - (_EDGE + 0.03) / total))
        mark.set(ha="center", va="top")
        mark.set_bbox({"boxstyle": "square,pad=0.3", "fc": WHITE, "ec": VERMILLION, "lw": 1.0})
    engine = ConstrainedLayoutEngine(
        w_pad=_EDGE, h_pad=_EDGE, wspace=0.03, hspace=0.03, rect=(0, below / total, 1, panels / total)
    )
    figure.set_layout_engine(engine)
    engine.execute(figure)
    figure.set_layout_engine("none")


def shortened(sheet: Sheet, words: str, size: float) -> str:
    """A bold heading that is no wider than its panel; what is too long ends in an ellipsis."""
    room = (sheet.width / len(sheet.panels[0]) - _MARGIN) * sheet.figure.dpi
    font = FontProperties(family=FONT, size=size, weight="bold")
    kept = words
    while len(kept) > 1 and _extent(sheet.figure, kept, font) > room:
        kept = kept[:-2].rstrip() + "…"
    return kept


def renderer_of(figure: Figure) -> Any:
    """What measures words, at the figure's own resolution; `new_sheet` gave the figure such a canvas."""
    canvas: Any = figure.canvas
    return canvas.get_renderer()


def _wrapped(figure: Figure, words: str, width: float, weight: str = "normal") -> Text:
    """Words at the foot of the figure in lines that are no wider than ``width`` inches."""
    font = FontProperties(family=FONT, size=SMALL, weight=weight)
    room, lines = width * figure.dpi, [""]
    for word in words.split(" "):  # never at a space that must not break
        longer = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and _extent(figure, longer, font) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return figure.text(
        0, 0, "\n".join(lines), fontproperties=font, linespacing=_LINES, ha="left", va="bottom",
        in_layout=False,
    )  # fmt: skip


def _extent(figure: Figure, words: str, font: FontProperties) -> float:
    """The width of a line in pixels."""
    return float(renderer_of(figure).get_text_width_height_descent(words, font, ismath=False)[0])


def _legend(figure: Figure, handles: Sequence[Artist], width: float) -> Legend | None:
    """The legend with as many columns as there is room for."""
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(
            handles=list(handles), ncols=columns, loc="lower center", borderpad=0.0, borderaxespad=0.0
        )
        legend.set_in_layout(False)
        rows = -(-len(handles) // columns)
        even = len(handles) > (columns - 1) * rows  # no column is left empty
        fits = legend.get_window_extent(renderer_of(figure)).width <= width * figure.dpi
        if (fits and even) or columns == 1:
            return legend
        legend.remove()
    return None


def _height(figure: Figure, part: Text | Legend) -> float:
    """Inches."""
    return float(part.get_window_extent(renderer_of(figure)).height) / float(figure.dpi)

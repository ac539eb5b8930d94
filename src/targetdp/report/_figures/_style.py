"""How every figure looks: print sizes, colors that color-blind people tell apart, and shapes beside colors.

Nothing is told by color alone. A technology has a color and a star with its own number of points; a mechanism
has a line style, open or filled marks and a hatch.

A sheet for print has panels in rows and columns, and around them the mark, a legend and a note. The panels
keep their size: the sheet grows by as much as the words around them need, so that none is cut off.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text

from targetdp.mechanisms import LEAST_NOISE
from targetdp.programs import MARK
from targetdp.report._page._words import quick_look
from targetdp.tradeoff import PROJECTION, technologies

# Numbers as they are printed in a figure. What a guarantee says is rounded to the safe side only.

_IS = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
_STEPS = ((1e9, "G"), (1e6, "M"), (1e3, "K"))


def short(value: float, *, signed: bool = False) -> str:
    """Three digits, with K for thousands and M for millions: 196K, −18.4K, +1.25M."""
    size, unit = abs(value), ""
    for step, letter in _STEPS:
        if size >= step * 0.9995:  # what rounds to 1.00K is not 1,000
            size, unit = size / step, letter
            break
    digits = f"{size:.0f}" if not unit or size >= 99.95 else f"{size:.1f}" if size >= 9.995 else f"{size:.2f}"
    sign = "" if float(digits) == 0 else "−" if value < 0 else "+" if signed else ""
    return f"{sign}{digits}{unit}"


def tick(value: float) -> str:
    """A round number on an axis, with all its digits: 250K, −2.5M, 0.5."""
    size = abs(value)
    step, letter = next(((step, letter) for step, letter in _STEPS if size >= step), (1.0, ""))
    return f"{'−' if value < 0 else ''}{size / step:.10g}{letter}"


def epsilon_words(epsilon: float) -> str:
    """Rounded up: ε = 3.9999."""
    return f"ε{_IS}{math.ceil(epsilon * 1e4 - 1e-6) / 1e4:,.10g}" if math.isfinite(epsilon) else "no finite ε"


def delta_words(delta: float) -> str:
    """Rounded up: δ = 1/4,202, or a decimal where δ is large."""
    if delta <= 0:
        return f"δ{_IS}0"
    if delta < 0.1:
        # The quotient of a float may fall short of the whole number it stands for.
        return f"δ{_IS}1/{math.floor(1 / delta * (1 + 1e-12)):,}"
    return f"δ{_IS}{math.ceil(delta * 1000 - 1e-9) / 1000:.3f}"


BLACK, GRAY, WHITE = "#000000", "#6E6E6E", "#FFFFFF"
ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE = (
    "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
"""The palette of Okabe and Ito."""

SINGLE, DOUBLE = 3.5, 7.2
"""Inches: one column of a journal's page, and both."""

SMALL, NORMAL = 7.0, 7.5
"""Points. Nothing is printed smaller than SMALL."""

DOTS = 300
"""Per inch, in a PNG."""

FONT = "DejaVu Sans"
"""It comes with matplotlib, so that every machine draws the same."""

_SETTINGS: dict[Any, Any] = {
    "font.family": FONT,
    "font.size": NORMAL,
    "axes.titlesize": NORMAL,
    "axes.labelsize": NORMAL,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": NORMAL,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.columnspacing": 1.4,
    "text.parse_math": False,  # a currency is $, and a program may be named so
    "pdf.fonttype": 42,  # whole outlines: journals refuse the other kind
    "svg.fonttype": "path",  # looks the same where the font is not installed
    "svg.hashsalt": "targetdp",  # the same bytes every time
    "text.hinting": "none",  # words are as wide in every format and resolution
    "figure.dpi": DOTS,
    "savefig.dpi": DOTS,
}


@contextmanager
def applied() -> Iterator[None]:
    """These settings and no others, whatever the user's own file says; afterwards all is as before."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


@dataclass(frozen=True)
class Star:
    """A way to protect people: its name, color, and how many points its star has."""

    words: str
    color: str
    points: int

    @property
    def star(self) -> tuple[int, Literal[1], int]:
        """As matplotlib writes a star."""
        return (self.points, 1, 0)


STATUS_QUO = Star("Status quo", BLUE, 5)
ALIKE = Star("k-anonymity", VERMILLION, 4)
CLASSIC = Star("Classic DP", VERMILLION, 8)
TARGETED = Star("Targeted DP", GREEN, 6)


@dataclass(frozen=True)
class MarkStyle:
    """How a mechanism's curves, marks and bars are drawn; ``filled`` marks or open ones."""

    words: str
    color: str
    line: str | tuple[int, tuple[float, ...]]
    mark: str
    filled: bool
    hatch: str

    def curve(self, width: float, size: float, edge: float) -> dict[str, Any]:
        """As matplotlib draws a curve of this width, with marks of this size and edge."""
        return {
            "color": self.color, "ls": self.line, "lw": width, "marker": self.mark, "ms": size, "mew": edge,
            "mfc": self.color if self.filled else WHITE,
        }  # fmt: skip


_MARK_STYLES = {
    PROJECTION: MarkStyle("projection as printed", GRAY, (0, (4, 2)), "o", False, "/////"),
    LEAST_NOISE: MarkStyle("least noise", BLACK, "-", "o", True, ""),
    "score": MarkStyle("score", PURPLE, (0, (6, 1.5)), "D", True, "----"),
    "decision": MarkStyle("decision", GREEN, (0, (8, 1.5)), "s", True, "\\\\\\\\"),
    "decision-agreed": MarkStyle("decision, agreed sample", GREEN, (0, (2, 1)), "v", False, "ooo"),
    "gaussian": MarkStyle("Gaussian", BLUE, (0, (6, 1.5, 1, 1.5)), "s", False, "....."),
    "spherical-laplace": MarkStyle("spherical Laplace", VERMILLION, (0, (1, 1)), "^", True, "xxxxx"),
    "staircase": MarkStyle("staircase", ORANGE, (0, (3, 1, 1, 1, 1, 1)), "D", False, "+++++"),
    "projection-exact": MarkStyle("projection, exact scale", PURPLE, (0, (8, 2)), "v", False, "\\\\\\\\\\"),
}


def bar_colors(mechanism: str | None, color: str) -> dict[str, Any]:
    """Of a bar in a technology's color: filled, or open; a hatch on a filled one is white, to be seen."""
    drawn = None if mechanism is None else of(mechanism)
    if drawn is not None and not drawn.filled:
        return {"facecolor": WHITE, "edgecolor": color, "hatch": drawn.hatch}
    if drawn is None or not drawn.hatch:
        return {"facecolor": color, "edgecolor": color}
    return {"facecolor": color, "edgecolor": WHITE, "hatch": drawn.hatch}


def of(mechanism: str) -> MarkStyle:
    """How a mechanism is drawn; one that is new gets a plain one under its technology's label."""
    known = technologies().get(mechanism)
    words = printable(mechanism if known is None else known.label)
    return _MARK_STYLES.get(mechanism) or MarkStyle(words, SKY, (0, (2, 2)), "p", False, "|||||")


def printable(text: str, longest: int = 30) -> str:
    """Words of others in one line that the font can draw: what it cannot becomes a question mark."""
    line = " ".join(text.split())
    line = line if len(line) <= longest else line[: longest - 1] + "…"
    return "".join(letter if ord(letter) in _drawn() else "?" for letter in line)


@cache
def _drawn() -> frozenset[int]:
    return frozenset(get_font(findfont(FONT)).get_charmap())


# A sheet for print.

_EDGE, _GAP = 0.06, 0.08
_LINES = 1.3
"""Inches around the sheet and between its bands; the distance of lines, in letters."""


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


def finish(
    sheet: Sheet, *, legend: Sequence[Artist], note: str, marked: bool, first_look: Sequence[str] = ()
) -> None:
    """Put legend and note, if any, below the panels and marks above, then fix where everything is.

    ``first_look`` says why what is drawn is a quick look; empty if it is none.
    """
    figure, inner = sheet.figure, sheet.width - 2 * _EDGE
    panels = float(figure.get_figheight())
    quick = [quick_look(first_look)] * bool(first_look)
    noted = _wrapped(figure, note, inner) if note else None
    above_all = [MARK] * marked + quick
    mark = _wrapped(figure, " ".join(above_all), inner - 0.1, weight="bold") if above_all else None
    key = _legend(figure, legend, inner)
    heights = {part: 0.0 if part is None else _height(figure, part) + _GAP for part in (noted, mark, key)}
    above, below = heights[mark] + _EDGE, heights[noted] + heights[key] + _EDGE
    total = panels + above + below
    figure.set_size_inches(sheet.width, total)
    if noted is not None:
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


def shortened(sheet: Sheet, words: str, size: float, beside: float = 0.75) -> str:
    """A bold heading that is no wider than its panel; what is too long ends in an ellipsis.

    ``beside`` are the inches of a panel's part of the sheet that words at its sides and the gap to the next
    may take.
    """
    room = (sheet.width / len(sheet.panels[0]) - beside) * sheet.figure.dpi
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

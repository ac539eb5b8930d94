"""How every figure looks: print sizes, colors that color-blind people tell apart, and shapes beside colors.

Nothing is told by color alone. A technology has a color and a star with its own number of points; a mechanism
has a line style, open or filled marks and a hatch.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.font_manager import findfont, get_font

from targetdp.mechanisms import LEAST_NOISE
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


def whole(value: float) -> str:
    """A count or a sum with thousands separators."""
    return f"{value:,.0f}".replace("-", "−")


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
def style() -> Iterator[None]:
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
class Look:
    """How a mechanism's curves, marks and bars are drawn; ``filled`` marks or open ones."""

    words: str
    color: str
    line: str | tuple[int, tuple[float, ...]]
    mark: str
    filled: bool
    hatch: str


_LOOKS = {
    PROJECTION: Look("projection as printed", GRAY, (0, (4, 2)), "o", False, "/////"),
    LEAST_NOISE: Look("least noise", BLACK, "-", "o", True, ""),
    "score": Look("score", PURPLE, (0, (6, 1.5)), "D", True, "----"),
    "gaussian": Look("Gaussian", BLUE, (0, (6, 1.5, 1, 1.5)), "s", False, "....."),
    "spherical-laplace": Look("spherical Laplace", VERMILLION, (0, (1, 1)), "^", True, "xxxxx"),
    "staircase": Look("staircase", ORANGE, (0, (3, 1, 1, 1, 1, 1)), "D", False, "+++++"),
    "projection-exact": Look("projection, exact scale", PURPLE, (0, (8, 2)), "v", False, "\\\\\\\\\\"),
}


def bar_colors(mechanism: str | None, color: str) -> dict[str, Any]:
    """Of a bar in a technology's color: filled, or open; a hatch on a filled one is white, to be seen."""
    drawn = None if mechanism is None else look(mechanism)
    if drawn is not None and not drawn.filled:
        return {"facecolor": WHITE, "edgecolor": color, "hatch": drawn.hatch}
    if drawn is None or not drawn.hatch:
        return {"facecolor": color, "edgecolor": color}
    return {"facecolor": color, "edgecolor": WHITE, "hatch": drawn.hatch}


def look(mechanism: str) -> Look:
    """The look of a mechanism; one that is new gets a plain one under its technology's label."""
    known = technologies().get(mechanism)
    words = printable(mechanism if known is None else known.label)
    return _LOOKS.get(mechanism) or Look(words, SKY, (0, (2, 2)), "p", False, "|||||")


def printable(text: str, longest: int = 30) -> str:
    """Words of others in one line that the font can draw: what it cannot becomes a question mark."""
    line = " ".join(text.split())
    line = line if len(line) <= longest else line[: longest - 1] + "…"
    return "".join(letter if ord(letter) in _drawn() else "?" for letter in line)


@cache
def _drawn() -> frozenset[int]:
    return frozenset(get_font(findfont(FONT)).get_charmap())

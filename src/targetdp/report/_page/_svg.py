"""Charts as SVG text: scales, marks, and names that lie on nothing else."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

from markupsafe import Markup

LETTER = 0.6
"""Width of a letter, at most on average, in units of its size: names are kept apart by it."""

MARKS = {
    "circle": "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",
    "square": "M-4.6,-4.6h9.2v9.2h-9.2z",
    "triangle": "M0,-6L5.8,4.6H-5.8z",
    "diamond": "M0,-6.4L6.4,0L0,6.4L-6.4,0z",
    "cross": "M-1.6,-5.5h3.2v3.9h3.9v3.2h-3.9v3.9h-3.2v-3.9h-3.9v-3.2h3.9z",
    "bar": "M-6,-2h12v4h-12z",
}
"""Marks of about the same area around the origin: shape tells kinds apart where color does not."""


@dataclass(frozen=True)
class Box:
    """A rectangle that is taken."""

    left: float
    top: float
    right: float
    bottom: float

    def hits(self, other: "Box") -> bool:
        """Whether both share a point."""
        return not (
            self.right <= other.left or other.right <= self.left
            or self.bottom <= other.top or other.bottom <= self.top
        )  # fmt: skip


@dataclass(frozen=True)
class Ruler:
    """From values to places, evenly or by their logarithm."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (
            self.low,
            self.high,
            min(max(value, min(self.low, self.high)), max(self.low, self.high)),
        )
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        share = 0.5 if high == low else (at - low) / (high - low)
        return round(self.begin + share * (self.end - self.begin), 2)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from low to high."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(step * i, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


@dataclass
class Drawing:
    """An SVG of a size, with names that are placed where nothing else is.

    Charts are drawn with the page's own colors, by classes; text is escaped.
    """

    width: float
    height: float
    size: float = 13.0
    parts: list[Markup] = field(default_factory=list)
    taken: list[Box] = field(default_factory=list)

    def add(self, form: str, *texts: object) -> None:
        """A piece of SVG; braces are filled with escaped text."""
        self.parts.append(Markup(form).format(*texts))  # noqa: S704 (forms are ours, and texts are escaped)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """A straight line."""
        self.add('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>', kind, x1, y1, x2, y2)

    def text(self, x: float, y: float, words: str, kind: str, anchor: str = "start", size: float = 0) -> None:
        """Words that begin, end or are centered at a place; their room is taken from then on."""
        self.taken.append(self.room(x, y, words, anchor, size or self.size))
        self.add(
            '<text class="{}" x="{}" y="{}" text-anchor="{}" font-size="{}">{}</text>',
            kind, round(x, 1), round(y, 1), anchor, size or self.size, words,
        )  # fmt: skip

    def room(self, x: float, y: float, words: str, anchor: str, size: float) -> Box:
        """The room of words, with a little air."""
        wide = LETTER * size * len(words)
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        return Box(left - 2, y - 0.95 * size, left + wide + 2, y + 0.35 * size)

    def take(self, x: float, y: float, reach: float) -> None:
        """The room of a mark."""
        self.taken.append(Box(x - reach, y - reach, x + reach, y + reach))

    def name(self, places: Iterable[tuple[float, float]], words: str, kind: str, reach: float = 9) -> bool:
        """Words beside one of several places where there is room, near ones first; whether there was any."""
        places = list(places)
        for far, (x, y) in product((reach, reach + 12, reach + 26, reach + 44), places):
            for dx, dy, anchor in (
                (far, 4, "start"), (-far, 4, "end"), (0, -far, "middle"), (0, far + 9, "middle"),
                (far * 0.7, -far * 0.7, "start"), (-far * 0.7, -far * 0.7, "end"),
                (far * 0.7, far * 0.7 + 8, "start"), (-far * 0.7, far * 0.7 + 8, "end"),
                (0, -far, "start"), (0, -far, "end"), (0, far + 9, "start"), (0, far + 9, "end"),
            ):  # fmt: skip
                box = self.room(x + dx, y + dy, words, anchor, self.size)
                # Letters of a font that is not known may be wider than they were taken for.
                wider = 0.06 * (box.right - box.left)
                inside = box.left >= wider and box.right + wider <= self.width and box.top >= 0
                if inside and box.bottom <= self.height and not any(map(box.hits, self.taken)):
                    self.text(x + dx, y + dy, words, kind, anchor)
                    return True
        return False

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """A line through points."""
        self.add('<path class="{}" d="{}"/>', kind, "M" + "L".join(f"{x:g},{y:g}" for x, y in points))

    def svg(self, title: str, kind: str) -> Markup:
        """The whole drawing, which says to those who hear the page what it shows."""
        body = Markup("").join(self.parts)
        return Markup('<svg class="{}" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}</svg>').format(
            kind, self.width, self.height, title, body
        )


def axis(
    drawing: Drawing,
    scale: Ruler,
    at: float,
    values: Iterable[float],
    told: Callable[[float], str],
    *,
    across: bool,
    other: Ruler,
) -> None:
    """Ticks with their values and lines of a grid, below a chart or to its left."""
    for value in values:
        place = scale(value)
        if across:
            drawing.line(place, other.begin, place, other.end, "grid")
            drawing.text(place, at + 16, told(value), "tick", "middle", 12)
        else:
            drawing.line(other.begin, place, other.end, place, "grid")
            drawing.text(at - 8, place + 4, told(value), "tick", "end", 12)


def dots(near: float, far: float) -> Markup:
    """A hundred dots: so many are filled, and so many more half-filled, each rounded up.

    Two dashed lines of round caps draw them all: a dot more would be an element more.
    """
    filled, half = (min(100, math.ceil(100 * share - 1e-9)) for share in (near, max(near, far)))
    said = f"{filled} of 100" + (f", and {half} of 100 for people who are not alike" if half > filled else "")
    rows = []
    for kind, many in (("none", 100), ("half", half), ("full", filled)):
        d = "".join(f"M{4 + 6 * (i % 25)},{4 + 6 * (i // 25)}h0" for i in range(many))
        rows.append(f'<path class="dot-{kind}" d="{d}"/>' if d else "")
    return Markup('<svg class="dots" viewBox="0 0 152 26" role="img" aria-label="{}">{}</svg>').format(
        said,
        Markup("".join(rows)),  # noqa: S704 (numbers only)
    )

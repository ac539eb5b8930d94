"""Small labels at points that neither overlap nor leave their panel."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import Normal, Stroke
from matplotlib.text import Annotation
from numpy.typing import NDArray

from targetdp._core import Floats
from targetdp.report._figures import _style as style

Truths = NDArray[np.bool_]

_RADII = (0.0, 2.0, 4.0, 7.0, 10.0, 14.0, 18.0, 24.0)
"""Points between a mark and its label, tried in this order."""
_STRUCK = 4
"""Dots of lines (1.8 points apart) under a label beyond which it looks struck through."""
_ANGLES = tuple(range(0, 360, 15))
_LEADER = 5.0
"""Farther away than this, a thin line leads to the label."""


@dataclass(frozen=True)
class Label:
    """Words for a point of a panel, in data coordinates; ``size`` is its mark's width in points."""

    x: float
    y: float
    words: str
    color: str
    size: float = 4.0
    minor: bool = False
    """Not bold, and left out where an earlier label's mark covers the point."""


def place_labels(
    panel: Axes, labels: Sequence[Label], lines: Iterable[Sequence[tuple[float, float]]] = ()
) -> tuple[Annotation, ...]:
    """Write each label beside its point, first come first served.

    ``lines`` are what is drawn in the panel besides the marks, point by point; labels keep off them where
    they can. A label that finds no place where it can be read, and as that of its point, is left out: none
    is better than one that is taken for another point's.
    """
    figure = panel.get_figure(root=True)
    assert figure is not None  # noqa: S101 (a panel is in a figure)
    renderer, pixels = style.renderer_of(figure), figure.dpi / 72
    sizes = np.array([[one.size * pixels / 2] for one in labels])
    spots = panel.transData.transform([(one.x, one.y) for one in labels]) if labels else np.empty((0, 2))
    marks = np.hstack([spots - sizes, spots + sizes]) if labels else np.empty((0, 4))
    room = _Room(
        np.array(panel.get_window_extent(renderer).extents),
        marks,
        _dotted(panel, lines, 1.8 * pixels),
        pixels,
    )
    written = []
    for i, one in enumerate(labels):
        if one.minor and _inside(spots[i], marks[:i]).any():
            continue
        label = panel.annotate(
            one.words, (one.x, one.y), xytext=(0, 0), textcoords="offset points", ha="center", va="center",
            fontsize=style.SMALL, color=one.color, fontweight="normal" if one.minor else "bold", zorder=6,
            arrowprops={"arrowstyle": "-", "color": style.GRAY, "lw": 0.4, "shrinkA": 0, "shrinkB": 2},
        )  # fmt: skip
        label.set_in_layout(False)
        label.set_path_effects([Stroke(linewidth=1.6, foreground=style.WHITE), Normal()])
        box = label.get_window_extent(renderer)
        place = room.find(i, (box.width / 2 + 0.8 * pixels, box.height / 2 + 0.3 * pixels))
        if place is None or (one.minor and place.crossed > _STRUCK):
            label.remove()
            continue
        label.set_position((place.across / pixels, place.up / pixels))
        if label.arrow_patch is not None and not len(place.lead):
            label.arrow_patch.set_visible(False)
        room.take(place)
        written.append(label)
    return tuple(written)


@dataclass(frozen=True)
class _Place:
    """A box for a label, how far it is from its point, and dots along a line that leads to it, if any."""

    box: Floats
    across: float
    up: float
    lead: Floats
    crossed: int
    cost: float


class _Room:
    """What of a panel is taken: by marks and labels, which nothing may cover, and lines, which it may.

    Boxes are left, bottom, right, top, in pixels; ``dots`` are along lines.
    """

    def __init__(self, inside: Floats, marks: Floats, dots: Floats, pixels: float) -> None:
        self._inside, self._marks, self._dots, self._pixels = inside, marks, dots, pixels
        self._labels = np.empty((0, 4))

    def find(self, point: int, half: tuple[float, float]) -> _Place | None:
        """The best place for the label of a point, whose box has this half width and height."""
        best: _Place | None = None
        for away in _RADII:
            for angle in _ANGLES:
                place = self._at(point, half, away, angle)
                if place is not None and (best is None or place.cost < best.cost - 1e-9):
                    best = place
            if best is not None and best.cost <= away:
                break
        return best

    def take(self, place: _Place) -> None:
        """From now on nothing else goes there."""
        self._labels = np.vstack([self._labels, place.box])
        self._dots = np.vstack([self._dots, place.lead])

    def _at(self, point: int, half: tuple[float, float], away: float, angle: int) -> _Place | None:
        left, bottom, right, top = self._marks[point].tolist()
        spot, radius = np.array([(left + right) / 2, (bottom + top) / 2]), (right - left) / 2
        across, up = _offset(angle, half, radius + (1.0 + away) * self._pixels)
        middle = spot + np.array([across, up])
        box = np.array([*(middle - half), *(middle + half)])
        low, high = self._inside[:2], self._inside[2:]
        if (box[:2] < low).any() or (box[2:] > high).any() or self._is_taken(box):
            return None
        # A mark that lies on this one cannot be told from it by where a label is.
        apart = self._marks[~_overlap(self._marks[point], self._marks)]
        own = float(_distances(box, spot[None])[0])
        lead = np.empty((0, 2))
        if own > radius + _LEADER * self._pixels:
            lead = _lead(spot, middle, box)
            if any(_inside(dot, boxes).any() for dot in lead for boxes in (self._labels, apart)):
                return None
        elif (_distances(box, (apart[:, :2] + apart[:, 2:]) / 2) < own).any():
            return None
        crossed = int(((self._dots >= box[:2]) & (self._dots <= box[2:])).all(1).sum())
        return _Place(box, across, up, lead, crossed, crossed * 6 + away)

    def _is_taken(self, box: Floats) -> bool:
        return bool(_overlap(box, self._labels).any() or _overlap(box, self._marks).any())


def _offset(angle: int, half: tuple[float, float], gap: float) -> tuple[float, float]:
    """From a point to the middle of a box that is ``gap`` away from it in a direction."""
    across, up = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    # The box slides along the ellipse-like edge: it touches a circle of radius gap around the point.
    return across * gap + _sign(across) * half[0], up * gap + _sign(up) * half[1]


def _sign(value: float) -> float:
    """−1 to 1: the full half of the box where a direction is plain, less of it near the axes."""
    return max(-1.0, min(1.0, value * 1.8))


def _lead(spot: Floats, middle: Floats, box: Floats) -> Floats:
    """Dots along the line from a mark to its label, beyond the mark itself."""
    dots = spot + (middle - spot) * np.linspace(0.2, 1.0, 17)[:, None]
    return np.asarray(dots[((dots < box[:2]) | (dots > box[2:])).any(1)])


def _dotted(panel: Axes, lines: Iterable[Sequence[tuple[float, float]]], apart: float) -> Floats:
    """Dots along lines, so many pixels apart."""
    dots = [np.empty((0, 2))]
    for line in lines:
        for begin, end in pairwise(panel.transData.transform(line) if len(line) else ()):
            steps = max(2, math.ceil(math.dist(begin, end) / apart))
            dots.append(begin + (end - begin) * np.linspace(0, 1, steps + 1)[:, None])
    return np.vstack(dots)


def _overlap(box: Floats, boxes: Floats) -> Truths:
    return np.asarray(((box[:2] <= boxes[:, 2:]) & (boxes[:, :2] <= box[2:])).all(1))


def _inside(dot: Floats, boxes: Floats) -> Truths:
    return np.asarray(((boxes[:, :2] <= dot) & (dot <= boxes[:, 2:])).all(1))


def _distances(box: Floats, dots: Floats) -> Floats:
    """From a box to each of some dots."""
    beyond = np.maximum(0.0, np.maximum(box[:2] - dots, dots - box[2:]))
    return np.asarray(np.hypot(beyond[:, 0], beyond[:, 1]))

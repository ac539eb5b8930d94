"""Figure 3: what the program achieves against each protection, one point for each B."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from targetdp.report._figures import _choice as choice
from targetdp.report._figures import _style as style
from targetdp.report._figures._choice import Release, ShownCells
from targetdp.report._figures._drawing import figure
from targetdp.report._figures._labels import Label, place_labels
from targetdp.tradeoff import (
    AS_IN_THE_PAPER,
    INSIDER,
    PROTECTIONS,
    STRANGER,
    in_words,
    technologies,
)
from targetdp.tradeoff import shown as told

_HEIGHT = 2.3
_STAR, _DOT = 8.5, 4.0
_TITLES = {
    "singling_out": "Singling out",
    "inference": "Inference (best attacker)",
    "distinguishing": "Distinguishing (exact)",
}
_ROOM = 0.1
"""Around the outermost points of a panel, as a share of their spread."""
_ALL, _FEWEST, _MOST = 1000.0, 0.1, 100.0
"""Nobody is protected, per 1,000; between which powers of ten lies the end of an axis that 0 stands at."""
_TICKS = ((450.0, "123456789"), (150.0, "12357"), (4.0, "125"), (0.0, "1"))
"""With which digits the numbers at an axis begin, by the smallest that is drawn."""


@dataclass(frozen=True)
class _View:
    """A program against one protection: what a panel shows.

    Across is how many of 1,000 are not protected, on a log axis. It has no 0: what is less than ``fewest``,
    a power of ten, stands there, which is never more private than it is.
    """

    one: ShownCells
    protection: str
    fewest: float

    def spot(self, release: Release) -> tuple[float, float] | None:
        """Where a release is."""
        across, upright = release.figure(self.protection).mean, release.figure(self._metric).mean
        return None if across is None or upright is None else (self._open(across), upright)

    def crosses(self, release: Release) -> list[list[tuple[float, float]]]:
        """The intervals of a point, across and upright."""
        if (spot := self.spot(release)) is None:
            return []
        across, upright, lines = release.figure(self.protection), release.figure(self._metric), []
        if across.low is not None and across.high is not None:
            lines.append([(self._open(across.low), spot[1]), (self._open(across.high), spot[1])])
        if upright.low is not None and upright.high is not None:
            lines.append([(spot[0], upright.low), (spot[0], upright.high)])
        return lines

    def there(self) -> list[Release]:
        """Every release that the panel has a point for."""
        return [release for release in _drawn(self.one) if self.spot(release) is not None]

    @property
    def _metric(self) -> str:
        return self.one.program.metric

    def _open(self, protection: float) -> float:
        return min(_ALL, max(self.fewest, _ALL * (1 - protection)))


def tradeoff_caption(shown: Sequence[ShownCells]) -> str:
    """What Figure 3 was drawn from."""
    return " ".join(
        part for part in (
            "Numbers at points are B. Upper right is best: private and accurate. Not protected is 1 − "
            "protection; ≤ stands at the end of an axis where a 0 is drawn.", choice.whose(shown),
            choice.guarantees(shown), choice.without_guarantee(shown),
            "Protection from singling out and inference is against the attacks that were run, and so an "
            "upper bound; distinguishing protection follows from the noise.",
            _whose(shown), choice.best_guesses(shown), _about(shown),
            choice.intervals(shown, attacks=True),
        ) if part
    )  # fmt: skip


@figure(
    "figure3_tradeoff", title="Figure 3: the program against each protection", place=2,
    caption=tradeoff_caption,
)  # fmt: skip
def tradeoff_figure(shown: Sequence[ShownCells], *, caption: bool = False) -> Figure:
    """Six panels, three for each program, as in the paper: the right end is private, the upper accurate.

    ``caption`` writes below the panels what they were drawn from.
    """
    with style.applied():
        width, size = style.DOUBLE if len(shown) > 1 else style.SINGLE, style.NORMAL + 1
        sheet = style.new_sheet(width, [_HEIGHT] * len(PROTECTIONS), len(shown))
        views = []
        for row, protection in enumerate(PROTECTIONS):
            fewest = _fewest(shown, protection)
            beside = [_View(one, protection, fewest) for one in shown]
            for column, view in enumerate(beside):
                panel, letter = sheet.panels[row][column], "ABCDEF"[column * len(PROTECTIONS) + row]
                _draw(panel, view)
                panel.set_title(f"{letter}  {_TITLES[protection]}", loc="left", fontweight="bold")
                views.append((panel, view))
            _across(sheet.panels[row], beside)
        for panel, one in zip(sheet.panels[0], shown, strict=True):
            panel.annotate(
                style.shortened(sheet, choice.heading(one), size), (0.5, 1), xytext=(0, 18), ha="center",
                va="bottom", xycoords="axes fraction", textcoords="offset points", fontsize=size,
                fontweight="bold",
            )  # fmt: skip
        style.finish(
            sheet, legend=list(_key(shown)), note=tradeoff_caption(shown) * caption,
            marked=any(one.program.for_the_data_holder_only for one in shown),
            first_look=choice.first_look(shown),
        )  # fmt: skip
        for panel, view in views:  # last: only now panels are as large as they will be
            _label(panel, view)
        return sheet.figure


def _drawn(one: ShownCells) -> list[Release]:
    """Releases with a star first, each of them once."""
    every = [release for _, release, _ in _stars(one)]
    every += [release for curve in one.curves.values() for release in curve]
    return list({id(release): release for release in every}.values())


def _fewest(shown: Sequence[ShownCells], protection: str) -> float:
    """The power of ten at or below whatever is not 0."""
    found = [release.figure(protection).mean for one in shown for release in _drawn(one)]
    least = min((_ALL * (1 - mean) for mean in found if mean is not None and mean < 1), default=_MOST)
    return 10.0 ** math.floor(math.log10(min(_MOST, max(_FEWEST, least))) + 1e-9)


def _draw(panel: Axes, view: _View) -> None:
    one = view.one
    for name, curve in one.curves.items():
        points = [release for release in curve if view.spot(release) is not None]
        for release in points:
            _whiskers(panel, view, release, style.of(name).color)
        panel.plot(
            *_columns([view.spot(release) for release in points]), zorder=3,
            **style.of(name).curve(1.1, _DOT, 0.9),
        )  # fmt: skip
    for technology, release, filled in _stars(one):
        if (spot := view.spot(release)) is not None:
            if release.B is None:
                _whiskers(panel, view, release, technology.color)
            panel.plot(
                *spot, marker=technology.star, ms=_STAR, mew=0.9, mec=technology.color, ls="none", zorder=5,
                mfc=technology.color if filled else style.WHITE,
            )  # fmt: skip
    _upright(panel, view)
    if not view.there():
        panel.set_yticks([])
        panel.text(0.5, 0.5, "not measured in this sweep", transform=panel.transAxes, ha="center")


def _upright(panel: Axes, view: _View) -> None:
    one = view.one
    spots = [end for release in view.there() for end in choice.ends(release.figure(one.program.metric))]
    low, high = (min(spots), max(spots)) if spots else (0.0, 1.0)
    room = _ROOM * (high - low) or abs(high) * _ROOM or 1.0
    # Up is better for the program everywhere, so errors are counted downwards.
    smallest = one.program.best == "smallest"
    panel.set_ylim((high + room, low - room) if smallest else (low - room, high + room))
    panel.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    if high - low >= 10:
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: style.tick(value)))
    panel.set_ylabel(f"{_measured(one)}\n(more accurate →)", linespacing=1.35)


def _across(panels: Sequence[Axes], views: Sequence[_View]) -> None:
    """One scale for all programs, from all who are not protected to the fewest; to the right is private."""
    spots = [spot[0] for view in views for release in view.there() if (spot := view.spot(release))]
    fewest, least = views[0].fewest, min([*spots, _ALL / 2])
    room = (_ALL / least) ** _ROOM
    digits = next(digits for end, digits in _TICKS if least >= end)
    numbers = [digit * 10.0**power for power in range(-1, 4) for digit in range(1, 10)]
    ticks = [number for number in numbers if max(fewest, least / room) <= number <= _ALL]
    named = [number for number in ticks if f"{number:e}"[0] in digits]
    # A log axis has no 0: what is there stands at the end, which says so.
    words = [f"{'≤ ' if least <= fewest == number else ''}{number:,g}" for number in named]
    for panel in panels:
        panel.set_xscale("log")
        panel.set_xlim(_ALL * room, least / room)
        panel.set_xticks(named, words)
        panel.set_xticks([number for number in ticks if number not in named], minor=True)
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlabel("Not protected, per 1,000 (more private →)")


def _measured(one: ShownCells) -> str:
    metric, unit = one.program.metric, style.printable(one.program.unit, 12)
    words = in_words(metric).capitalize()
    objective = one.program.objective
    counted = objective.people is not None or (objective.is_money and unit not in {"", "people"})
    return f"{words} ({unit or 'people'})" if counted else words


def _stars(one: ShownCells) -> Iterator[tuple[style.Star, Release, bool]]:
    """What is marked with a star, and whether it is filled."""
    yield style.STATUS_QUO, one.status_quo, True
    if one.alike is not None:
        yield style.ALIKE, one.alike, True
    for technology, at in ((style.CLASSIC, one.classic), (style.TARGETED, one.targeted)):
        for name in one.curves:
            if (release := at(name)) is not None:
                yield technology, release, style.of(name).filled


def _label(panel: Axes, view: _View) -> None:
    """Names of stars first, so that they find the best places; then B at the other points."""
    one, labels, lines = view.one, [], []
    starred = {id(release): technology for technology, release, _ in _stars(one)}
    colors = {
        id(release): style.BLACK if style.of(name).filled else style.GRAY
        for name, curve in one.curves.items() for release in curve
    }  # fmt: skip
    for release in _drawn(one):
        spot, technology = view.spot(release), starred.get(id(release))
        if spot is not None:
            labels.append(
                Label(
                    *spot, _words(release), colors[id(release)] if technology is None else technology.color,
                    _DOT if technology is None else _STAR - 1, technology is None,
                )
            )  # fmt: skip
            lines += view.crosses(release)
    lines += [
        [spot for release in curve if (spot := view.spot(release)) is not None]
        for curve in one.curves.values()
    ]
    place_labels(panel, labels, lines)


def _words(release: Release) -> str:
    if release.B is not None:
        return f"{release.B:g}"
    return "status quo" if release.group_size is None else f"groups of {release.group_size}"


def _whiskers(panel: Axes, view: _View, release: Release, color: str) -> None:
    for line in view.crosses(release):
        panel.plot(*_columns(line), color=color, lw=0.7, solid_capstyle="butt", zorder=2)


def _columns(spots: Sequence[tuple[float, float] | None]) -> tuple[list[float], list[float]]:
    there = [spot for spot in spots if spot is not None]
    return [x for x, _ in there], [y for _, y in there]


def _key(shown: Sequence[ShownCells]) -> Iterator[Artist]:
    for technology in (style.STATUS_QUO, style.ALIKE, style.CLASSIC, style.TARGETED):
        if any(technology is there for one in shown for there, _, _ in _stars(one)):
            yield Line2D(
                [], [], marker=technology.star, ms=_STAR, mec=technology.color, mfc=technology.color,
                ls="none", label=_named(technology, shown),
            )  # fmt: skip
    for name in dict.fromkeys(name for one in shown for name in one.curves):
        drawn = style.of(name)
        yield Line2D([], [], label=drawn.words, **drawn.curve(1.1, _DOT, 0.9))
    if any(one.curves for one in shown):
        yield Line2D([], [], ls="none", label="numbers at points: B")


def _named(technology: style.Star, shown: Sequence[ShownCells]) -> str:
    if technology is style.CLASSIC:
        return f"{technology.words} (B = 2)"
    if technology is style.TARGETED:
        at = " and ".join(dict.fromkeys(f"{one.B:g}" for one in shown if one.B is not None))
        return f"{technology.words} (B = {at})"
    return technology.words


def _about(shown: Sequence[ShownCells]) -> str:
    """What the technologies that are drawn say of their figures."""
    drawn = {name for one in shown for name in one.curves}
    notes = (one.about_figure for name, one in technologies().items() if name in drawn)
    return " ".join(filter(None, notes))


def _whose(shown: Sequence[ShownCells]) -> str:
    """Whose guesses are drawn, and what the paper's own attack found of the same releases."""
    own = AS_IN_THE_PAPER["inference"]
    found = [
        f"{choice.named(one, shown)}{technology.words} by {style.of(release.mechanism).words} "
        + ", the paper's ".join(told(release.figure(name).mean, name) for name in ("inference", own))
        for one in shown for technology, release, _ in _stars(one)
        if release.B is not None and {"inference", own} <= set(release.figures)
    ]  # fmt: skip
    if not found:
        return ""
    return (
        f"Inference is by an insider or a stranger, whoever guesses best. {INSIDER} {STRANGER} Beside what "
        f"is drawn, the attack as in the paper (a stranger): {'; '.join(found)}."
    )

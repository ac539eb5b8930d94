"""Figure 3: what the program achieves against each protection, one point for each B."""

from collections.abc import Iterator, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

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
    Estimate,
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


@figure("figure3_tradeoff", title="Figure 3: the program against each protection", place=2)
def tradeoff_figure(shown: Sequence[ShownCells]) -> Figure:
    """Six panels, three for each program, as in the paper: the right end is private, the upper accurate."""
    with style.applied():
        width, size = style.DOUBLE if len(shown) > 1 else style.SINGLE, style.NORMAL + 1
        sheet = style.new_sheet(width, [_HEIGHT] * len(PROTECTIONS), len(shown))
        for column, one in enumerate(shown):
            for row, protection in enumerate(PROTECTIONS):
                panel, letter = sheet.panels[row][column], "ABCDEF"[column * len(PROTECTIONS) + row]
                _draw(panel, one, protection)
                panel.set_title(f"{letter}  {_TITLES[protection]}", loc="left", fontweight="bold")
            sheet.panels[0][column].annotate(
                style.shortened(sheet, choice.heading(one), size), (0.5, 1), xytext=(0, 18), ha="center",
                va="bottom", xycoords="axes fraction", textcoords="offset points", fontsize=size,
                fontweight="bold",
            )  # fmt: skip
        style.finish(
            sheet, legend=list(_key(shown)), note=_note(shown),
            marked=any(one.program.for_the_data_holder_only for one in shown),
            first_look=choice.first_look(shown),
        )  # fmt: skip
        for column, one in enumerate(shown):
            for row, protection in enumerate(PROTECTIONS):
                _label(sheet.panels[row][column], one, protection)
        return sheet.figure


def _draw(panel: Axes, one: ShownCells, protection: str) -> None:
    metric = one.program.metric
    for name, curve in one.curves.items():
        points = [release for release in curve if _spot(release, protection, metric) is not None]
        for release in points:
            _whiskers(panel, release, protection, metric, style.of(name).color)
        panel.plot(
            *_columns([_spot(release, protection, metric) for release in points]), zorder=3,
            **style.of(name).curve(1.1, _DOT, 0.9),
        )  # fmt: skip
    for technology, release, filled in _stars(one):
        if (spot := _spot(release, protection, metric)) is not None:
            if release.B is None:
                _whiskers(panel, release, protection, metric, technology.color)
            panel.plot(
                *spot, marker=technology.star, ms=_STAR, mew=0.9, mec=technology.color, ls="none", zorder=5,
                mfc=technology.color if filled else style.WHITE,
            )  # fmt: skip
    _axes(panel, one, protection)


def _axes(panel: Axes, one: ShownCells, protection: str) -> None:
    drawn = [one.status_quo, *(release for _, release, _ in _stars(one))]
    drawn += [release for curve in one.curves.values() for release in curve]
    spots = [
        end
        for release in drawn if _spot(release, protection, one.program.metric) is not None
        for end in _ends(release.figure(one.program.metric))
    ]  # fmt: skip
    low, high = (min(spots), max(spots)) if spots else (0.0, 1.0)
    room = _ROOM * (high - low) or abs(high) * _ROOM or 1.0
    # Up is better for the program everywhere, so errors are counted downwards.
    smallest = one.program.best == "smallest"
    panel.set_ylim((high + room, low - room) if smallest else (low - room, high + room))
    panel.set_xlim(-0.05, 1.12)  # on the right there is room for labels, where many points are
    panel.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    panel.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    if high - low >= 10:
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: style.whole(value)))
    panel.set_xlabel(f"{in_words(protection).capitalize()} (more private →)")
    panel.set_ylabel(f"{_measured(one)}\n(more accurate →)", linespacing=1.35)
    if not spots:
        panel.set_yticks([])
        panel.text(0.5, 0.5, "not measured in this sweep", transform=panel.transAxes, ha="center")


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


def _label(panel: Axes, one: ShownCells, protection: str) -> None:
    """Names of stars first, so that they find the best places; then B at the other points."""
    metric, labels, lines = one.program.metric, [], []
    starred = {id(release): technology for technology, release, _ in _stars(one)}
    every = [release for _, release, _ in _stars(one)]
    every += [release for curve in one.curves.values() for release in curve if id(release) not in starred]
    colors = {
        id(release): style.BLACK if style.of(name).filled else style.GRAY
        for name, curve in one.curves.items() for release in curve
    }  # fmt: skip
    for release in every:
        spot, technology = _spot(release, protection, metric), starred.get(id(release))
        if spot is not None:
            labels.append(
                Label(
                    *spot, _words(release), colors[id(release)] if technology is None else technology.color,
                    _DOT if technology is None else _STAR - 1, technology is None,
                )
            )  # fmt: skip
            lines += _crosses(release, protection, metric)
    lines += [
        [spot for release in curve if (spot := _spot(release, protection, metric)) is not None]
        for curve in one.curves.values()
    ]
    place_labels(panel, labels, lines)


def _words(release: Release) -> str:
    if release.B is not None:
        return f"{release.B:g}"
    return "status quo" if release.group_size is None else f"groups of {release.group_size}"


def _whiskers(panel: Axes, release: Release, protection: str, metric: str, color: str) -> None:
    for line in _crosses(release, protection, metric):
        panel.plot(*_columns(line), color=color, lw=0.7, solid_capstyle="butt", zorder=2)


def _crosses(release: Release, protection: str, metric: str) -> list[list[tuple[float, float]]]:
    """The intervals of a point, across and upright; protection ends at 0 and 1."""
    spot, across, upright = (
        _spot(release, protection, metric), release.figure(protection), release.figure(metric),
    )  # fmt: skip
    lines = []
    if spot is not None and across.low is not None and across.high is not None:
        lines.append([(max(0.0, across.low), spot[1]), (min(1.0, across.high), spot[1])])
    if spot is not None and upright.low is not None and upright.high is not None:
        lines.append([(spot[0], upright.low), (spot[0], upright.high)])
    return lines


def _spot(release: Release, protection: str, metric: str) -> tuple[float, float] | None:
    across, upright = release.figure(protection).mean, release.figure(metric).mean
    return None if across is None or upright is None else (across, upright)


def _ends(estimate: Estimate) -> list[float]:
    return [end for end in (estimate.mean, estimate.low, estimate.high) if end is not None]


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
        label = f"{drawn.words} ({'filled' if drawn.filled else 'open'})"
        yield Line2D([], [], label=label, **drawn.curve(1.1, _DOT, 0.9))


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


def _note(shown: Sequence[ShownCells]) -> str:
    return " ".join(
        part for part in (
            "Numbers at points are B. Upper right is best: private and accurate.", choice.whose(shown),
            choice.guarantees(shown), choice.without_guarantee(shown),
            "Protection from singling out and inference is against the attacks that were run, and so an "
            "upper bound; distinguishing protection follows from the noise.",
            _whose(shown), choice.best_guesses(shown), _about(shown),
            choice.intervals(shown, attacks=True),
        ) if part
    )  # fmt: skip

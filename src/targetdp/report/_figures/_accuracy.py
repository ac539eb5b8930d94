"""Figure 2: accuracy of the program by technology, with its price in people or money."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from targetdp.report._figures import _choice as choice
from targetdp.report._figures import _style as style
from targetdp.report._figures._choice import Release, ShownCells
from targetdp.report._figures._drawing import figure
from targetdp.tradeoff import in_words
from targetdp.tradeoff import shown as told

_HEIGHT = 2.9
_GAP, _BAR = 0.35, 0.9
"""Between groups of bars, and the width of a bar, where one follows another at distance 1."""
_ANY = "#8A8A8A"
"""A bar of whatever technology, in the legend."""
_NARROW = 2
"""Mechanisms whose bars fit half a page."""
_HEAD = 1.22
"""Room above the tallest bar for its two lines, as a share of it."""


@dataclass(frozen=True)
class _Group:
    technology: style.Star
    below: str
    bars: tuple[tuple[str | None, Release], ...]
    """A mechanism, where there is one, and its release."""


@figure("figure2_accuracy", title="Figure 2: accuracy by technology", place=1)
def accuracy_figure(shown: Sequence[ShownCells]) -> Figure:
    """Bars for one or two programs, side by side or below each other.

    Above each bar stands the accuracy, and under it what the release costs in the program's own units.
    """
    with style.applied():
        # Three bars in a group need the width of a page, with the programs below each other.
        wide = any(len(one.curves) > _NARROW for one in shown)
        rows, columns = (len(shown), 1) if wide else (1, len(shown))
        width = style.DOUBLE if wide or len(shown) > 1 else style.SINGLE
        sheet = style.new_sheet(width, [_HEIGHT] * rows, columns)
        panels = [panel for row in sheet.panels for panel in row]
        for panel, letter, one in zip(panels, "AB", shown, strict=False):
            _bars(panel, one)
            name = f"{letter}  {choice.heading(one)}" if len(shown) > 1 else choice.heading(one)
            panel.set_title(style.shortened(sheet, name, style.NORMAL), loc="left", fontweight="bold")
        _same_height(panels)
        for row in sheet.panels:
            row[0].set_ylabel("Accuracy (share of people decided rightly)")
        for panel, one in zip(panels, shown, strict=True):
            _prices(panel, one)
        _finish(sheet, shown)
        return sheet.figure


def _bars(panel: Axes, one: ShownCells) -> None:
    at, ticks, names, tallest = 0.0, [], [], one.program.chance or 0.0
    for group in _groups(one):
        first = at
        for mechanism, release in group.bars:
            tallest = max(tallest, _bar(panel, at, group.technology, mechanism, release))
            at += 1
        ticks.append((first + at - 1) / 2)
        names.append(group.below)
        at += _GAP
    right = at - _GAP - 1 + _BAR / 2 + 0.15
    panel.set_xlim(-_BAR / 2 - 0.15, right)
    panel.set_ylim(0, tallest * _HEAD or 1)
    panel.set_xticks(ticks, names)
    panel.tick_params(axis="x", length=0)
    panel.grid(visible=False, axis="x")
    if one.program.chance is not None:
        panel.axhline(one.program.chance, color=style.BLACK, lw=0.9, ls=(0, (2, 2)), zorder=3)


def _same_height(panels: Sequence[Axes]) -> None:
    """One scale for all programs: a bar means the same in each."""
    top = max(panel.get_ylim()[1] for panel in panels)
    for panel in panels:
        panel.set_ylim(0, top)


def _prices(panel: Axes, one: ShownCells) -> None:
    at = 0.0
    for group in _groups(one):
        for _, release in group.bars:
            _price(panel, at, release, one)
            at += 1
        at += _GAP


def _groups(one: ShownCells) -> list[_Group]:
    groups = [_Group(style.STATUS_QUO, "Status\nquo", ((None, one.status_quo),))]
    if one.alike is not None:
        below = f"k-anonymity\ngroups of {one.alike.group_size}"
        groups.append(_Group(style.ALIKE, below, ((None, one.alike),)))
    # Without a guarantee, B only names the noise.
    clipped = one.program.rows == "clip"
    classic, targeted = ("Classic DP", "Targeted DP") if clipped else ("no guarantee", "no guarantee")
    for technology, below, at in (
        (style.CLASSIC, f"{classic}\nB = 2", one.classic),
        (style.TARGETED, f"{targeted}\nB = {one.B:g}" if one.B is not None else "", one.targeted),
    ):
        bars = [(name, release) for name in one.curves if (release := at(name)) is not None]
        if bars:
            groups.append(_Group(technology, below, tuple(bars)))
    return groups


def _bar(panel: Axes, at: float, technology: style.Star, mechanism: str | None, release: Release) -> float:
    """Draw a bar with its interval; how high it reaches."""
    accuracy = release.figure("accuracy")
    mean, low, high = accuracy.mean, accuracy.low, accuracy.high
    if mean is None:
        return 0.0
    panel.bar(at, mean, _BAR, linewidth=0.8, zorder=2, **style.bar_colors(mechanism, technology.color))
    if low is not None and high is not None:
        panel.errorbar(
            at, mean, [[max(0.0, mean - low)], [max(0.0, high - mean)]],
            fmt="none", ecolor=style.BLACK, elinewidth=0.8, capsize=2, capthick=0.8, zorder=4,
        )  # fmt: skip
    return mean if high is None else high


def _price(panel: Axes, at: float, release: Release, one: ShownCells) -> None:
    """Two lines above a bar: the accuracy, and what it means to the program."""
    accuracy = release.figure("accuracy")
    top = accuracy.at_best or 0.0
    low, high = panel.get_ylim()
    chance = one.program.chance
    if chance is not None and top <= chance <= top + (high - low) * 0.1:
        top = chance  # the line does not cross the words
    words = "not\ndefined" if accuracy.mean is None else told(accuracy.mean, "accuracy")
    price = _cost(release, one)
    panel.annotate(
        words if price is None else f"{words}\n{price}", (at, top), xytext=(0, 2.5), fontsize=style.SMALL,
        textcoords="offset points", ha="center", va="bottom", zorder=5, linespacing=1.15,
    )  # fmt: skip


def _cost(release: Release, one: ShownCells) -> str | None:
    objective = one.program.objective
    if objective.drawn is not None and release is one.status_quo:
        return "±0"
    if objective.drawn is None and not objective.is_money:
        return None
    cost = release.figure(objective.drawn or objective.metric).mean
    return None if cost is None else style.short(cost, signed=objective.drawn is not None)


def _second_line(one: ShownCells) -> str:
    """What the second line above a bar is."""
    objective, more = one.program.objective, ""
    if objective.drawn is None and not objective.is_money:
        return ""
    if objective.is_money and one.program.unit not in {"", "people"}:
        more = f" in {style.printable(one.program.unit, 12)}"
    if objective.drawn is not None and (today := one.status_quo.figure(objective.metric).mean) is not None:
        more = f" beyond today's {told(today)}"
    counted = objective.noun or in_words(objective.metric)
    return f"{one.program.label}: below the accuracy, {counted}{more}."


def _chance(shown: Sequence[ShownCells]) -> str:
    known = [
        (f"{letter} " if len(shown) > 1 else "") + f"{one.program.chance:.3f}"
        for letter, one in zip("AB", shown, strict=False) if one.program.chance is not None
    ]  # fmt: skip
    return f"deciding without looking at anyone ({', '.join(known)})" if known else ""


def _finish(sheet: style.Sheet, shown: Sequence[ShownCells]) -> None:
    mechanisms = dict.fromkeys(name for one in shown for name in one.curves)
    handles: list[Artist] = [
        Patch(linewidth=0.8, label=f"DP by {style.of(name).words}", **style.bar_colors(name, _ANY))
        for name in mechanisms
    ]  # fmt: skip
    if chance := _chance(shown):
        handles.append(Line2D([], [], color=style.BLACK, lw=0.9, ls=(0, (2, 2)), label=chance))
    note = " ".join(
        part for part in (
            *map(_second_line, shown), choice.whose(shown), choice.guarantees(shown),
            choice.best_guesses(shown), choice.without_guarantee(shown),
            choice.intervals(shown, attacks=False),
        ) if part
    )  # fmt: skip
    marked = any(one.program.for_the_data_holder_only for one in shown)
    style.finish(sheet, legend=handles, note=note, marked=marked, first_look=choice.first_look(shown))

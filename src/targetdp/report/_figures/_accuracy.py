"""Figure 2: accuracy of the program by technology, and beside it what that means in people or in money."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from targetdp.report._figures import _choice as choice
from targetdp.report._figures import _style as style
from targetdp.report._figures._choice import Release, ShownCells
from targetdp.report._figures._drawing import figure
from targetdp.tradeoff import Estimate, in_words
from targetdp.tradeoff import shown as told

_ROW, _AROUND = 0.17, 0.7
"""Inches: the height of a line with its bar, and what title and axis need around all lines."""
_BAR = 0.78
"""The width of a bar, where one follows another at distance 1."""
_NUMBER = 34
"""Points to the right of a panel, for the number of each bar."""
_BESIDE = 1.6
"""Inches of a panel's part of the sheet that the words and numbers beside it may take."""


@dataclass(frozen=True)
class _Line:
    """A line of words with a bar, or the heading of those that follow."""

    words: str
    technology: style.Star
    release: Release | None = None
    mechanism: str | None = None
    bold: bool = True


def accuracy_caption(shown: Sequence[ShownCells]) -> str:
    """What Figure 2 was drawn from."""
    return " ".join(
        part for part in (
            *map(_beyond, shown), choice.whose(shown), choice.guarantees(shown),
            choice.best_guesses(shown), choice.without_guarantee(shown),
            choice.intervals(shown, attacks=False),
        ) if part
    )  # fmt: skip


@figure(
    "figure2_accuracy", title="Figure 2: accuracy by technology, and its price", place=1,
    caption=accuracy_caption,
)  # fmt: skip
def accuracy_figure(shown: Sequence[ShownCells], *, caption: bool = False) -> Figure:
    """Bars for one or two programs, below each other: on the left accuracy, on the right its price.

    The price is the figure that the program is for, in its own unit; a program that is for nothing but
    accuracy has none. ``caption`` writes below the panels what they were drawn from.
    """
    with style.applied():
        both = any(_price(one) is not None for one in shown)
        lines = [_lines(one) for one in shown]
        sheet = style.new_sheet(
            style.DOUBLE if both else style.SINGLE,
            [_AROUND + _ROW * len(some) for some in lines],
            1 + both,
        )
        letters = iter("ABCD")
        chances = []
        for panels, one, some in zip(sheet.panels, shown, lines, strict=True):
            letter = next(letters)
            _accuracy(panels[0], one, some)
            _title(sheet, panels[0], f"{letter}  {choice.heading(one)}")
            if one.program.chance is not None:
                chances.append((f"{letter} " if len(shown) > 1 else "") + f"{one.program.chance:.3f}")
            metric = _price(one)
            if metric is not None:
                _in_its_unit(panels[1], one, some, metric)
                _title(sheet, panels[1], f"{next(letters)}  {_counted(one).capitalize()}")
            elif both:
                panels[1].set_axis_off()
        top = max(panels[0].get_xlim()[1] for panels in sheet.panels)
        for panels in sheet.panels:  # one scale for all programs: a bar means the same in each
            panels[0].set_xlim(0, top)
        legend: list[Artist] = []
        if chances:
            words = f"deciding without looking at anyone ({', '.join(chances)})"
            legend.append(Line2D([], [], color=style.BLACK, lw=0.9, ls=(0, (2, 2)), label=words))
        style.finish(
            sheet, legend=legend, note=accuracy_caption(shown) * caption,
            marked=any(one.program.for_the_data_holder_only for one in shown),
            first_look=choice.first_look(shown),
        )  # fmt: skip
        return sheet.figure


def _title(sheet: style.Sheet, panel: Axes, words: str) -> None:
    kept = style.shortened(sheet, words, style.NORMAL, beside=_BESIDE)
    panel.set_title(kept, loc="left", fontweight="bold")


def _lines(one: ShownCells) -> list[_Line]:
    lines = [_Line("Status quo", style.STATUS_QUO, one.status_quo)]
    if one.alike is not None:
        lines.append(_Line(f"k-anonymity, groups of {one.alike.group_size}", style.ALIKE, one.alike))
    # Without a guarantee, B only names the noise.
    promised = one.program.rows == "clip"
    for technology, B, at in (
        (style.CLASSIC, "2", one.classic),
        (style.TARGETED, "" if one.B is None else f"{one.B:g}", one.targeted),
    ):
        bars = [
            _Line(style.of(name).words, technology, release, name, bold=False)
            for name in one.curves if (release := at(name)) is not None
        ]  # fmt: skip
        if bars:
            words = technology.words if promised else "No guarantee"
            lines += [_Line(f"{words}, B = {B}", technology), *bars]
    return lines


def _accuracy(panel: Axes, one: ShownCells, lines: Sequence[_Line]) -> None:
    _bars(panel, lines, lambda release: release.figure("accuracy"), lambda mean: told(mean, "accuracy"))
    panel.set_yticks(range(len(lines)), [line.words for line in lines])
    for label, line in zip(panel.get_yticklabels(), lines, strict=True):
        label.set_fontweight("bold" if line.bold else "normal")
    chance = one.program.chance
    if chance is not None:
        panel.axvline(chance, color=style.BLACK, lw=0.9, ls=(0, (2, 2)), zorder=3)
    ends = [end for line in lines if line.release for end in choice.ends(line.release.figure("accuracy"))]
    panel.set_xlim(0, 1.04 * max([*ends, chance or 0.0]) or 1.0)
    panel.set_xlabel("Accuracy (share of people decided rightly →)")


def _price(one: ShownCells) -> str | None:
    """The figure that the program is for; None if it is accuracy, which has its own panel."""
    objective = one.program.objective
    metric = objective.drawn or objective.metric
    return None if metric == "accuracy" else metric


def _counted(one: ShownCells) -> str:
    """What that figure counts."""
    objective = one.program.objective
    return objective.noun or in_words(objective.metric)


def _in_its_unit(panel: Axes, one: ShownCells, lines: Sequence[_Line], metric: str) -> None:
    objective = one.program.objective
    beyond = objective.drawn is not None

    def price(release: Release) -> Estimate:
        # What is counted from the status quo is nothing there, whether or not a sweep says so.
        return Estimate(0.0) if beyond and release is one.status_quo else release.figure(metric)

    def number(mean: float) -> str:
        return "±0" if beyond and mean == 0 else style.short(mean, signed=beyond)

    _bars(panel, lines, price, number)
    panel.set_yticks([])
    panel.axvline(0, color=style.BLACK, lw=0.6, zorder=3)
    ends = [0.0, *(end for line in lines if line.release for end in choice.ends(price(line.release)))]
    room = 0.04 * (max(ends) - min(ends)) or 1.0
    panel.set_xlim(min(ends) - room * (min(ends) < 0), max(ends) + room)
    panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.tick(value)))
    counted = style.printable(one.program.unit, 16) or "people"
    better = "better →" if objective.best == "largest" else "← better"
    panel.set_xlabel(f"{counted}{' more than today' * beyond} ({better})")


def _bars(
    panel: Axes, lines: Sequence[_Line], figure_of: Callable[[Release], Estimate],
    number: Callable[[float], str],
) -> None:  # fmt: skip
    """A bar with its interval in each line that has a release, and its number at the right."""
    for at, line in enumerate(lines):
        if line.release is None:
            continue
        estimate = figure_of(line.release)
        mean, low, high = estimate.mean, estimate.low, estimate.high
        panel.annotate(
            "undefined" if mean is None else number(mean), (1, at), xytext=(_NUMBER, 0), ha="right",
            xycoords=("axes fraction", "data"), textcoords="offset points", va="center_baseline",
            fontsize=style.SMALL,
        )  # fmt: skip
        if mean is None:
            continue
        colors = style.bar_colors(line.mechanism, line.technology.color)
        panel.barh(at, mean, _BAR, linewidth=0.8, zorder=2, **colors)
        if low is not None and high is not None:
            panel.errorbar(
                mean, at, xerr=[[max(0.0, mean - low)], [max(0.0, high - mean)]], fmt="none", capsize=2,
                ecolor=style.BLACK, elinewidth=0.8, capthick=0.8, zorder=4,
            )  # fmt: skip
    panel.set_ylim(len(lines) - 0.4, -0.6)  # the first line is the upper one
    panel.tick_params(axis="y", length=0)
    panel.grid(visible=False, axis="y")


def _beyond(one: ShownCells) -> str:
    """What a price is counted from."""
    objective = one.program.objective
    today = one.status_quo.figure(objective.metric).mean
    if objective.drawn is None or today is None:
        return ""
    return f"{one.program.label}: {_counted(one)} beyond today's {told(today)}."

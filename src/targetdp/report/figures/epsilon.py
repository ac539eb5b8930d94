"""What one guarantee means at other distances: the exact ε of each mechanism. No data are looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from targetdp.guarantee import Guarantee
from targetdp.mechanisms.choice import REGISTER, least_noise
from targetdp.report.figures.noise import COMPARED, TOGO
from targetdp.report.figures.rounding import delta_words, epsilon_words
from targetdp.report.figures.sheet import finish, new_sheet
from targetdp.report.figures.style import BLACK, DOUBLE, SMALL, look, style

DIMENSIONS = 10
"""Columns of the paper's aid program (Table S1)."""
DISTANCES = tuple(i / 40 for i in range(1, 20)) + tuple(i / 20 for i in range(10, 41))
"""0 to 2, closer together where B is."""


@dataclass(frozen=True)
class EpsilonCurves:
    """The exact ε at the guarantee's δ, by mechanism and distance; never below the truth."""

    guarantee: Guarantee
    dimensions: int
    distances: tuple[float, ...]
    epsilon: Mapping[str, tuple[float, ...]]
    quietest: str
    """Which mechanism is the least noise here."""


def epsilon_curves(
    guarantee: Guarantee = TOGO, dimensions: int = DIMENSIONS, distances: Sequence[float] = DISTANCES
) -> EpsilonCurves:
    """Ask the mechanisms themselves."""
    found = {
        name: tuple(
            mechanism.epsilon(distance=r, delta=guarantee.delta, dimensions=dimensions) for r in distances
        )
        for name, mechanism in ((name, REGISTER[name](guarantee)) for name in COMPARED)
    }
    quietest = least_noise(guarantee, dimensions).name
    return EpsilonCurves(guarantee, dimensions, tuple(distances), found, quietest)


def epsilon_figure(curves: EpsilonCurves, *, marked: bool = False) -> Figure:
    """All distances on the left, those up to 2B on the right."""
    with style():
        sheet = new_sheet(DOUBLE, [2.6], 2)
        g = curves.guarantee
        near = [i for i, r in enumerate(curves.distances) if r <= 2 * g.B]
        for panel, letter, shown in zip(
            sheet.panels[0], "AB", (range(len(curves.distances)), near), strict=True
        ):
            for name, values in curves.epsilon.items():
                panel.plot(
                    # Rows that do not differ cannot be told apart: every curve begins at 0.
                    [0.0, *(curves.distances[i] for i in shown)], [0.0, *(values[i] for i in shown)],
                    color=look(name).color, ls=look(name).line, lw=1.3, marker=look(name).mark, ms=3.6,
                    mew=0.8, mfc=look(name).color if look(name).filled else "white", zorder=3,
                    markevery=(1 + "AB".index(letter), max(1, len(shown) // 7)),
                )  # fmt: skip
            panel.axvline(g.B, color=BLACK, lw=0.8, ls=(0, (2, 2)), zorder=2)
            panel.set_xlim(0, curves.distances[shown[-1]] * 1.02)
            panel.set_ylim(0, None)
            panel.set_xlabel("Distance r between two people's rows")
        left, right = sheet.panels[0]
        left.set_title("A  All distances", loc="left", fontweight="bold")
        right.set_title("B  Up to 2B", loc="left", fontweight="bold")
        left.set_ylabel("Exact ε\n← more private     less private →", linespacing=1.35)
        right.axhline(g.epsilon, color=BLACK, lw=0.8, ls=(0, (2, 2)), zorder=2)
        for panel in (left, right):
            panel.annotate(
                f"B = {g.B:g}", (g.B, 1), xytext=(3, -2), xycoords=("data", "axes fraction"), ha="left",
                textcoords="offset points", va="top", fontsize=SMALL,
            )  # fmt: skip
        right.annotate(
            f"claimed {epsilon_words(g.epsilon)}", (0, g.epsilon), xytext=(4, 3), fontsize=SMALL,
            textcoords="offset points", ha="left", va="bottom",
        )  # fmt: skip
        finish(sheet, legend=_key(curves), note=_epsilon_note(curves), marked=marked)
        return sheet.figure


def _key(curves: EpsilonCurves) -> list[Line2D]:
    return [
        Line2D(
            [], [], color=look(name).color, ls=look(name).line, lw=1.3, marker=look(name).mark, ms=3.6,
            mew=0.8, mfc=look(name).color if look(name).filled else "white",
            label=look(name).words + (" (least noise)" if name == curves.quietest else ""),
        )
        for name in curves.epsilon
    ]  # fmt: skip


def _epsilon_note(curves: EpsilonCurves) -> str:
    g = curves.guarantee
    return (
        f"Every mechanism is calibrated to one claim: B = {g.B:g}, {epsilon_words(g.epsilon)}, "
        f"{delta_words(g.delta)}, on {curves.dimensions:,} columns. Shown is the smallest ε that holds at "
        "that δ for one release, with one row per person, between two people at distance r; rows have length "
        "at most 1, so nobody is farther apart than 2."
    )

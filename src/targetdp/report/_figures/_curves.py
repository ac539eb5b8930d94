"""What one guarantee means at other distances: the exact ε of each mechanism. No data are looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from targetdp._core import percent_up
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import COMPARED_COLUMNS, LEAST_NOISE, least_noise, noise_mechanisms
from targetdp.report._figures import _style as style
from targetdp.report._figures._drawing import figure
from targetdp.tradeoff import PROJECTION

# How loud each mechanism is for one guarantee, by the number of columns. No data are looked at.

TOGO = Guarantee(0.25, 4.0, 1 / 4202)
"""The paper's claim for its aid program (Figures 2 and 3)."""
COLUMNS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 400, 1000)
COMPARED = (PROJECTION, "gaussian", "spherical-laplace")
_BAND: dict[str, Any] = {"color": "#C9C9C9", "lw": 6, "ls": "-", "zorder": 2}


@dataclass(frozen=True)
class NoiseComparison:
    """Deviation of the noise per coordinate, in units of B, by mechanism and number of columns."""

    guarantee: Guarantee
    columns: tuple[int, ...]
    noise: Mapping[str, tuple[float, ...]]
    quietest: tuple[str, ...]
    """Which mechanism is the least noise, by number of columns."""


def compare_noise(guarantee: Guarantee = TOGO, columns: Sequence[int] = COLUMNS) -> NoiseComparison:
    """Ask the mechanisms themselves. A wide projection takes seconds."""
    noise: dict[str, list[float]] = {name: [] for name in (*COMPARED, LEAST_NOISE)}
    quietest = []
    for d in columns:
        choice = least_noise(guarantee, d)
        for name in COMPARED:
            wide = d > COMPARED_COLUMNS and name not in choice.noise
            deviation = noise_mechanisms()[name](guarantee).noise_sd(d) if wide else choice.noise[name]
            noise[name].append(deviation / guarantee.B)
        noise[LEAST_NOISE].append(choice.noise[choice.name] / guarantee.B)
        quietest.append(choice.name)
    return NoiseComparison(
        guarantee, tuple(columns), {name: tuple(values) for name, values in noise.items()}, tuple(quietest)
    )


def noise_caption(compared: NoiseComparison) -> str:
    """What was computed, and which mechanism is the quietest."""
    g = compared.guarantee
    runs: list[str] = []
    for d, name in zip(compared.columns, compared.quietest, strict=True):
        if not runs or not runs[-1].startswith(style.of(name).words):
            runs.append(f"{style.of(name).words} from d = {d:,}")
    return (
        f"For {style.epsilon_words(g.epsilon)}, {style.delta_words(g.delta)} between rows within B, at any "
        f"B; computed at B = {g.B:g}. Rows have length at most 1. Least noise is {', '.join(runs)}. "
        "Of one guarantee, less noise leaves more to an attacker's best guess."
    )


@figure(
    "noise_by_columns", title="Noise by number of columns, for one guarantee", place=3, caption=noise_caption,
    data=compare_noise,
)  # fmt: skip
def noise_figure(compared: NoiseComparison, *, marked: bool = False, caption: bool = False) -> Figure:
    """Both axes are logarithmic; lower is quieter. ``caption`` writes below what was computed."""
    with style.applied():
        sheet = style.new_sheet(style.SINGLE, [2.7], 1)
        panel = sheet.panels[0][0]
        handles: list[Line2D] = []
        for name, values in compared.noise.items():
            if name == LEAST_NOISE:  # it is one of the others: a broad band behind it
                drawn = _BAND | {"label": "least noise: the quietest registered"}
            else:
                drawn = style.of(name).curve(1.2, 3.4, 0.8) | {"label": style.of(name).words, "zorder": 3}
            handles += panel.plot(compared.columns, values, solid_capstyle="round", **drawn)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axis.set_minor_formatter(NullFormatter())
        panel.set_xlabel("Columns d")
        panel.set_ylabel("Noise on each coordinate\n(deviation, in units of B)")
        panel.text(
            0.98, 0.03, "lower: less noise, for the same guarantee", transform=panel.transAxes, ha="right",
            fontsize=style.SMALL,
        )  # fmt: skip
        style.finish(sheet, legend=handles, note=noise_caption(compared) * caption, marked=marked)
        return sheet.figure


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
    guesses: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """How often the best guess of any attacker is right, at distance B and at 2."""


def epsilon_curves(
    guarantee: Guarantee = TOGO, dimensions: int = DIMENSIONS, distances: Sequence[float] = DISTANCES
) -> EpsilonCurves:
    """Ask the mechanisms themselves."""
    epsilon, guesses = {}, {}
    for name in COMPARED:
        mechanism = noise_mechanisms()[name](guarantee)
        at_B, at_2 = (
            mechanism.privacy_loss(distance=r, dimensions=dimensions).best_guess() for r in (guarantee.B, 2.0)
        )
        guesses[name] = (at_B, at_2)
        epsilon[name] = tuple(
            mechanism.epsilon(distance=r, delta=guarantee.delta, dimensions=dimensions) for r in distances
        )
    quietest = least_noise(guarantee, dimensions).name
    return EpsilonCurves(guarantee, dimensions, tuple(distances), epsilon, quietest, guesses)


def epsilon_caption(curves: EpsilonCurves) -> str:
    """What was computed, and how often the best guess of any attacker is right."""
    g = curves.guarantee
    guesses = "; ".join(
        f"{style.of(name).words} {percent_up(at_B)} and {percent_up(at_2)}"
        for name, (at_B, at_2) in curves.guesses.items()
    )
    return (
        f"Every mechanism is calibrated to one claim: B = {g.B:g}, {style.epsilon_words(g.epsilon)}, "
        f"{style.delta_words(g.delta)}, on {curves.dimensions:,} columns. Shown is the smallest ε that "
        "holds at that δ for one release, with one row per person, between two people at distance r; "
        "rows have length at most 1, so nobody is farther apart than 2."
        + f" The best guess of any attacker is right, at distance B and at distance 2: {guesses}."
        * bool(guesses)
    )


@figure(
    "epsilon_by_distance", title="Exact epsilon by distance, for one guarantee", place=4,
    caption=epsilon_caption, data=epsilon_curves,
)  # fmt: skip
def epsilon_figure(curves: EpsilonCurves, *, marked: bool = False, caption: bool = False) -> Figure:
    """All distances on the left, those up to 2B on the right. ``caption`` writes below what was computed."""
    with style.applied():
        sheet = style.new_sheet(style.DOUBLE, [2.6], 2)
        g = curves.guarantee
        near = [i for i, r in enumerate(curves.distances) if r <= 2 * g.B]
        for panel, letter, shown in zip(
            sheet.panels[0], "AB", (range(len(curves.distances)), near), strict=True
        ):
            for name, values in curves.epsilon.items():
                panel.plot(
                    # Rows that do not differ cannot be told apart: every curve begins at 0.
                    [0.0, *(curves.distances[i] for i in shown)], [0.0, *(values[i] for i in shown)],
                    markevery=(1 + "AB".index(letter), max(1, len(shown) // 7)), zorder=3,
                    **style.of(name).curve(1.3, 3.6, 0.8),
                )  # fmt: skip
            panel.axvline(g.B, color=style.BLACK, lw=0.8, ls=(0, (2, 2)), zorder=2)
            panel.set_xlim(0, curves.distances[shown[-1]] * 1.02)
            panel.set_ylim(0, None)
            panel.set_xlabel("Distance r between two people's rows")
        left, right = sheet.panels[0]
        left.set_title("A  All distances", loc="left", fontweight="bold")
        right.set_title("B  Up to 2B", loc="left", fontweight="bold")
        left.set_ylabel("Exact ε\n← more private     less private →", linespacing=1.35)
        right.axhline(g.epsilon, color=style.BLACK, lw=0.8, ls=(0, (2, 2)), zorder=2)
        for panel in (left, right):
            panel.annotate(
                f"B = {g.B:g}", (g.B, 1), xytext=(3, -2), xycoords=("data", "axes fraction"), ha="left",
                textcoords="offset points", va="top", fontsize=style.SMALL,
            )  # fmt: skip
        right.annotate(
            f"claimed {style.epsilon_words(g.epsilon)}", (0, g.epsilon), xytext=(4, 3), fontsize=style.SMALL,
            textcoords="offset points", ha="left", va="bottom",
        )  # fmt: skip
        style.finish(sheet, legend=_key(curves), note=epsilon_caption(curves) * caption, marked=marked)
        return sheet.figure


def _key(curves: EpsilonCurves) -> list[Line2D]:
    least = {curves.quietest: " (least noise)"}
    return [
        Line2D([], [], label=drawn.words + least.get(name, ""), **drawn.curve(1.3, 3.6, 0.8))
        for name, drawn in ((name, style.of(name)) for name in curves.epsilon)
    ]

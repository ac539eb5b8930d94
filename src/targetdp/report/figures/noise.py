"""How loud each mechanism is for one guarantee, by the number of columns. No data are looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from targetdp.guarantee import Guarantee
from targetdp.mechanisms.choice import COMPARED_COLUMNS, REGISTER, least_noise
from targetdp.report.figures.rounding import delta_words, epsilon_words
from targetdp.report.figures.sheet import finish, new_sheet
from targetdp.report.figures.style import SINGLE, SMALL, look, style
from targetdp.tradeoff.grid import LEAST_NOISE, PROJECTION

TOGO = Guarantee(0.25, 4.0, 1 / 4202)
"""The paper's claim for its aid program (Figures 2 and 3)."""
COLUMNS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 400, 1000)
COMPARED = (PROJECTION, "gaussian", "spherical-laplace")


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
            deviation = REGISTER[name](guarantee).noise_sd(d) if wide else choice.noise[name]
            noise[name].append(deviation / guarantee.B)
        noise[LEAST_NOISE].append(choice.noise[choice.name] / guarantee.B)
        quietest.append(choice.name)
    return NoiseComparison(
        guarantee, tuple(columns), {name: tuple(values) for name, values in noise.items()}, tuple(quietest)
    )


def noise_figure(compared: NoiseComparison, *, marked: bool = False) -> Figure:
    """Both axes are logarithmic; lower is quieter."""
    with style():
        sheet = new_sheet(SINGLE, [2.7], 1)
        panel = sheet.panels[0][0]
        handles = []
        for name, values in compared.noise.items():
            least, drawn = name == LEAST_NOISE, look(name)
            # The least noise is one of the others: a broad band behind it.
            (line,) = panel.plot(
                compared.columns, values, color="#C9C9C9" if least else drawn.color, lw=6 if least else 1.2,
                ls="-" if least else drawn.line, marker=None if least else drawn.mark, ms=3.4, mew=0.8,
                mfc=drawn.color if drawn.filled else "white", zorder=2 if least else 3,
                solid_capstyle="round",
                label="least noise: the quietest registered" if least else drawn.words,
            )  # fmt: skip
            handles.append(line)
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
            fontsize=SMALL,
        )  # fmt: skip
        finish(sheet, legend=handles, note=_noise_note(compared), marked=marked)
        return sheet.figure


def _noise_note(compared: NoiseComparison) -> str:
    g = compared.guarantee
    runs: list[str] = []
    for d, name in zip(compared.columns, compared.quietest, strict=True):
        if not runs or not runs[-1].startswith(look(name).words):
            runs.append(f"{look(name).words} from d = {d:,}")
    return (
        f"For {epsilon_words(g.epsilon)}, {delta_words(g.delta)} between rows within B, at any B; "
        f"computed at B = {g.B:g}. Rows have length at most 1. Least noise is {', '.join(runs)}."
    )

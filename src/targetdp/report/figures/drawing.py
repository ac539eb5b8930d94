"""All figures of one or two sweeps."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from targetdp.report.figures.accuracy import accuracy_figure
from targetdp.report.figures.choice import choose
from targetdp.report.figures.epsilon import EpsilonCurves, epsilon_curves, epsilon_figure
from targetdp.report.figures.noise import NoiseComparison, compare_noise, noise_figure
from targetdp.report.figures.sweep import SweptProgram
from targetdp.report.figures.tradeoff import tradeoff_figure

TITLES = {
    "figure2_accuracy": "Figure 2: accuracy by technology",
    "figure3_tradeoff": "Figure 3: the program against each protection",
    "noise_by_columns": "Noise by number of columns, for one guarantee",
    "epsilon_by_distance": "Exact epsilon by distance, for one guarantee",
}
"""Every figure, by the name of its files."""


@dataclass(frozen=True)
class Drawn:
    """A finished figure; ``marked`` if it is for the data holder only."""

    name: str
    title: str
    figure: Figure
    marked: bool


def draw_all(
    programs: Sequence[SweptProgram],
    noise: NoiseComparison | None = None,
    curves: EpsilonCurves | None = None,
) -> tuple[Drawn, ...]:
    """Draw every figure. Once one sweep is for the data holder only, all figures beside it are marked."""
    if not 1 <= len(programs) <= 2:
        raise ValueError(
            f"{len(programs)} sweeps: the paper's figures hold one program or two side by side; draw the "
            "others into a folder of their own"
        )
    marked = any(program.for_the_data_holder_only for program in programs)
    shown = [choose(program) for program in programs]
    figures = {
        "figure2_accuracy": accuracy_figure(shown),
        "figure3_tradeoff": tradeoff_figure(shown),
        "noise_by_columns": noise_figure(noise or compare_noise(), marked=marked),
        "epsilon_by_distance": epsilon_figure(curves or epsilon_curves(), marked=marked),
    }
    return tuple(Drawn(name, TITLES[name], figure, marked) for name, figure in figures.items())

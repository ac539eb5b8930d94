"""One guarantee, every mechanism, and what each leaves of a program's targeting.

An invented population is drawn and privatized many times by each mechanism at one and the same (B, ε, δ);
a ridge regression then picks the poorest 29%, as in the paper's Togolese case study.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.table import Table
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict

from targetdp._core import Floats, percent_up
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import (
    Mechanism,
    Mondrian,
    NoiseMechanism,
    SphericalLaplace,
    least_noise,
    noise_mechanisms,
)
from targetdp.normalization import data_scales, normalize
from targetdp.populations import draw

ADULTS = 4_950_000
QUOTA = 0.29
SIMULATIONS = 50
SEED = 2026
TITLE = "One guarantee, five ways to keep it; above and below, two ways without"


@dataclass(frozen=True)
class Line:
    """One row of the comparison."""

    name: str
    guarantee: Guarantee | None
    noise: float | None
    true_epsilon: float | None
    best_guess: float
    accuracy: float
    missed: float


def targeting(X: Floats, consumption: Floats) -> tuple[float, float]:
    """Accuracy, and the share of all people who are poor but missed, when the poorest 29% are picked."""
    folds = KFold(5, shuffle=True, random_state=SEED)
    predicted = cross_val_predict(Ridge(), X, consumption, cv=folds)
    poor = _lowest(consumption)
    picked = _lowest(predicted)
    return float((poor == picked).mean()), float((poor & ~picked).mean())


def _lowest(values: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The quota's share of people with the lowest values."""
    chosen = np.zeros(len(values), dtype=bool)
    chosen[np.argsort(values, kind="stable")[: round(QUOTA * len(values))]] = True
    return chosen


def compare(progress: Callable[[], None] = lambda: None) -> list[Line]:
    """Privatize the example with every mechanism at one guarantee; the same numbers at every run."""
    people = draw("togo")
    table = normalize(people.X, data_scales(people.X)).X
    n, d = table.shape
    promise = Guarantee(B=0.25, epsilon=3.9999, delta=1 / (n + 1))
    accuracy, missed = targeting(table, people.y)
    lines = [Line("status quo (no privacy)", None, None, None, 1.0, accuracy, missed)]
    mechanisms: list[tuple[str, Mechanism]] = [
        ("private projection, as printed", noise_mechanisms()["projection"](promise)),
        ("private projection, exact scale", noise_mechanisms()["projection-exact"](promise)),
        ("Gaussian noise", noise_mechanisms()["gaussian"](promise)),
        ("spherical Laplace, pure", SphericalLaplace(B=promise.B, epsilon=promise.epsilon)),
        ("least noise: " + (best := least_noise(promise, d)).name, best.mechanism),
        ("Mondrian, groups of 2 or more", Mondrian(group_size=2)),
    ]
    for name, mechanism in mechanisms:
        rng = np.random.default_rng(SEED)
        runs = []
        repeats = SIMULATIONS if isinstance(mechanism, NoiseMechanism) else 1
        for _ in range(repeats):
            runs.append(targeting(mechanism.privatize(table, rng), people.y))
            progress()
        accuracy, missed = (float(value) for value in np.mean(runs, axis=0))
        noise, truth, guess = None, None, 1.0  # nothing is promised
        if isinstance(mechanism, NoiseMechanism):
            noise = mechanism.noise_sd(d) / promise.B
            truth = mechanism.epsilon(distance=promise.B, delta=mechanism.guarantee.delta, dimensions=d)
            guess = mechanism.privacy_loss(distance=promise.B, dimensions=d).best_guess()
        lines.append(Line(name, mechanism.guarantee, noise, truth, guess, accuracy, missed))
    return lines


HEADINGS = (
    "mechanism", "B", "ε stated", "ε true", "δ", "best guess", "noise / B", "accuracy", "poor people missed",
)  # fmt: skip


def cells(line: Line) -> list[str]:
    """One row of the comparison as texts, under HEADINGS."""
    g = line.guarantee
    return [
        line.name,
        "none" if g is None else f"{g.B:g}",
        "none" if g is None else f"{g.epsilon:.4f}",
        "–" if line.true_epsilon is None else f"{math.ceil(line.true_epsilon * 1e4 - 1e-6) / 1e4:.4f}",
        "–" if g is None else f"{g.delta:.1e}",
        percent_up(line.best_guess),
        "–" if line.noise is None else f"{line.noise:.3f}",
        f"{line.accuracy:.3f}",
        f"{line.missed * ADULTS:,.0f}",
    ]


def render(lines: list[Line]) -> Table:
    """The comparison as a table for people."""
    table = Table(title=TITLE, title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "mechanism" else "right")
    for line in lines:
        table.add_row(*cells(line))
    return table

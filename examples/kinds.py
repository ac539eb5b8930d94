"""Rows, a score, a decision at one promise: python -m examples.kinds [--plays 20] [--write README.md].

Half of a table's people are labelled, the poorest 29% of the others are to be helped, everything that is
released is paid for but the scales of columns, which are taken as public and are the tables' own. Accuracy is
the share of the others who are rightly helped or not; chance is 0.588. The tables are not part of this
project: TARGETDP_REAL_TABLES and TARGETDP_AUTHORS name the folders they are in.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console

from targetdp import Guarantee, data_scales, declared_scales, least_noise, normalize
from targetdp._core import Floats
from targetdp.normalization import ColumnScales
from targetdp.programs import Aid, Ridge
from targetdp.release import simulate_decisions
from targetdp.targeting import (
    CrossFitted,
    SampleAndDecisions,
    SampleAndScores,
    fit_scores,
    in_own_units,
    try_decisions,
)

SETTINGS = ((0.25, 4.0), (2.0, 4.0), (2.0, 2.0))
COLUMNS = (
    "rows", "score", "decision, private sample", "decision, agreed, linear", "decision, agreed, best",
    "no privacy, linear",
)  # fmt: skip
BEGIN, END = "<!-- kinds -->", "<!-- /kinds -->"


@dataclass(frozen=True, eq=False)
class People:
    """A table of people: their columns as they are, by what these are scaled, and what says who is poor."""

    name: str
    X: Floats
    y: Floats
    scales: ColumnScales


def vietnam() -> People:
    """4,201 households of the Vietnam Living Standards Survey; scaled by means and deviations."""
    table = pq.read_table(Path(os.environ["TARGETDP_REAL_TABLES"]) / "vietnam_4201x10.parquet")
    X = np.column_stack([table.column(place).to_numpy() for place in range(10)]).astype(float)
    scales = data_scales(X)
    public = declared_scales(scales.center, scales.scale)
    return People("Vietnam, 4,201 households", X, table["y"].to_numpy().astype(float), public)


def authors() -> People:
    """The invented table that the paper's authors published; its columns are scaled already."""
    found = np.loadtxt(
        Path(os.environ["TARGETDP_AUTHORS"]) / "replication_input.csv", delimiter=",", skiprows=1
    )
    return People(
        "the authors' own table, 4,201 × 10", found[:, :10], found[:, 10], declared_scales([0] * 10, [1] * 10)
    )


def play(people: People, seed: int) -> Iterator[tuple[tuple[float, float], dict[str, float]]]:
    """One division of the people into labelled ones and others, and what each release achieves."""
    order = np.random.default_rng(seed).permutation(len(people.y))
    half = len(order) // 2
    asked, others = order[:half], order[half:]
    labelled, truth = Aid(people.y[asked]), Aid(people.y[others])
    ball = normalize(people.X, people.scales).X
    fits = {
        classic: fit_scores((people.X if classic else ball)[asked], labelled, classic=classic, seed=seed)
        for classic in (False, True)
    }
    for place, (B, epsilon) in enumerate(SETTINGS):
        rng = np.random.default_rng([seed, place])
        promise = Guarantee(B, epsilon, 1 / (len(people.y) + 1))

        def accuracy(scores: Floats, rng: np.random.Generator = rng) -> float:
            return float(truth.judge(scores, rng)["accuracy"])

        raw = people.X if B == 2 else ball
        noise = least_noise(promise, ball.shape[1]).mechanism
        Z = noise.privatize(ball, rng)
        both = SampleAndScores.of(promise, promise, ball.shape[1])
        learned = both.learn(Z[asked], labelled)
        chances = both.read(both.release(ball[others], learned, rng), learned, labelled)
        yield (
            (B, epsilon),
            {
                "rows": accuracy(_ridge(Z[asked], labelled.consumption, Z[others])),
                "score": accuracy(1 - chances),
                "decision, private sample": accuracy(
                    _privately(people, promise, Z[asked], labelled, raw[others], rng)
                ),
                "decision, agreed, linear": accuracy(
                    _agreed(fits[B == 2][:1], labelled, raw[others], promise, rng)
                ),
                "decision, agreed, best": accuracy(
                    _agreed(fits[B == 2], labelled, raw[others], promise, rng)
                ),
                "no privacy, linear": accuracy(
                    _ridge(people.X[asked], labelled.consumption, people.X[others])
                ),
            },
        )


def _ridge(X: Floats, consumption: Floats, others: Floats) -> Floats:
    """Predictions by a ridge regression (α = 1) on columns of one deviation, of the log of consumption."""
    from sklearn.linear_model import Ridge as AnyRidge  # noqa: PLC0415 (slow to import)

    center, deviation = X.mean(axis=0), X.std(axis=0)
    fit = AnyRidge(alpha=Ridge().alpha).fit((X - center) / deviation, np.log(consumption))
    return np.asarray(fit.predict((others - center) / deviation))


def _privately(
    people: People, promise: Guarantee, Z: Floats, labelled: Aid, rows: Floats, rng: np.random.Generator
) -> Floats:
    """Drawn answers to a question that was learned from private rows; low is a yes."""
    both = SampleAndDecisions.of(promise, promise, Z.shape[1])
    names = [f"column {place}" for place in range(Z.shape[1])]
    asked = both.question(both.learn(Z, labelled), labelled, names)
    if promise.B == 2:
        each = zip(people.scales.center.tolist(), people.scales.scale.tolist(), strict=True)
        asked = in_own_units(asked, dict(zip(names, each, strict=True)))
    scores = asked.scores_of(dict(zip(names, rows.T, strict=True)))
    yes = simulate_decisions(asked, scores, B=promise.B, epsilon=promise.epsilon, rng=rng)
    return np.asarray(1.0 - yes, dtype=np.float64)


def _agreed(
    fits: tuple[CrossFitted, ...], labelled: Aid, rows: Floats, promise: Guarantee, rng: np.random.Generator
) -> Floats:
    """The same of a question that was learned from people who agreed."""
    names = [f"column {place}" for place in range(rows.shape[1])]
    best = try_decisions(fits, labelled, names, B=promise.B, epsilon=promise.epsilon)[0]
    scores = best.fitted.score.of_rows(rows)
    yes = simulate_decisions(best.asked, scores, B=promise.B, epsilon=promise.epsilon, rng=rng)
    return np.asarray(1.0 - yes, dtype=np.float64)


def table(plays: int, console: Console) -> str:
    """The README's table, in Markdown."""
    lines = [
        f"| table | B, ε | {' | '.join(COLUMNS)} |",
        "|---|---|" + "---:|" * len(COLUMNS),
    ]
    for people in (authors(), vietnam()):
        found: dict[tuple[float, float], list[list[float]]] = {setting: [] for setting in SETTINGS}
        for seed in range(plays):
            for setting, figures in play(people, seed):
                found[setting].append([figures[name] for name in COLUMNS])
            console.print(f"{people.name}: play {seed + 1} of {plays}", highlight=False)
        for (B, epsilon), each in found.items():
            means = " | ".join(f"{value:.3f}" for value in np.mean(each, axis=0))
            lines.append(f"| {people.name} | {B:g}, {epsilon:g} | {means} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the table between its marks if a file is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--plays", type=int, default=20)
    parser.add_argument("--write", type=Path, help="a Markdown file with the marks of this table")
    given = parser.parse_args()
    made = table(given.plays, Console(stderr=True))
    Console().print(made, highlight=False, soft_wrap=True)
    if given.write is not None:
        text = given.write.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        given.write.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

"""`make demo`: one guarantee, every mechanism, and what each leaves of a program's targeting.

An invented population is drawn and privatized many times by each mechanism at one and the same (B, ε, δ);
a ridge regression then picks the poorest 29%, as in the paper's Togolese case study. Then the example is
released for good, as a data holder would: with a certificate, charged to a ledger, and verified.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict

from targetdp.guarantee import Guarantee
from targetdp.mechanisms import Mechanism, Mondrian, NoiseMechanism, SphericalLaplace, least_noise
from targetdp.mechanisms.choice import REGISTER
from targetdp.normalization import normalize
from targetdp.release.job import privatize_file
from targetdp.release.keys import SigningKey
from targetdp.release.ledger import Ledger
from targetdp.release.scales_file import scales_text
from targetdp.release.settings import make_settings
from targetdp.release.verify import verify_release
from targetdp.scales import data_scales
from targetdp.table.example import DEFAULT_SEED, draw, write
from targetdp.typing import Floats

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
    lines = [Line("status quo (no privacy)", None, None, None, accuracy, missed)]
    mechanisms: list[tuple[str, Mechanism]] = [
        ("private projection, as printed", REGISTER["projection"](promise)),
        ("private projection, exact scale", REGISTER["projection-exact"](promise)),
        ("Gaussian noise", REGISTER["gaussian"](promise)),
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
        noise = truth = None
        if isinstance(mechanism, NoiseMechanism):
            noise = mechanism.noise_sd(d) / promise.B
            truth = mechanism.epsilon(distance=promise.B, delta=mechanism.guarantee.delta, dimensions=d)
        lines.append(Line(name, mechanism.guarantee, noise, truth, accuracy, missed))
    return lines


HEADINGS = ("mechanism", "B", "ε stated", "ε true", "δ", "noise / B", "accuracy", "poor people missed")


def cells(line: Line) -> list[str]:
    """One row of the comparison as texts, under HEADINGS."""
    g = line.guarantee
    return [
        line.name,
        "none" if g is None else f"{g.B:g}",
        "none" if g is None else f"{g.epsilon:.4f}",
        "–" if line.true_epsilon is None else f"{line.true_epsilon:.4f}",
        "–" if g is None else f"{g.delta:.1e}",
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


def main() -> None:
    """Compute and print."""
    words = Console(file=sys.stderr)
    words.print(
        "Drawing 4,201 invented people with 10 features of phone use (first run compiles: some seconds)."
    )
    with Progress(console=words, transient=True) as bar:
        task = bar.add_task("privatizing", total=5 * SIMULATIONS + 1)
        lines = compare(lambda: bar.advance(task))
    Console(width=None if sys.stdout.isatty() else 120).print(render(lines))
    words.print(
        f"Accuracy: share of people put on the right side when the poorest {QUOTA:.0%} are helped "
        f"(chance: {1 - 2 * QUOTA * (1 - QUOTA):.3f}).\n"
        f"Poor people missed: out of {ADULTS:,} adults; mean of {SIMULATIONS} simulations.\n"
        "These are simulations with column scales taken from the data; a release would have to pay for "
        "its scales, declare them, or state the condition (docs/promise.md).\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        words.print(released(Path(folder)), soft_wrap=True, highlight=False, markup=False)


def released(folder: Path) -> str:
    """Release the example in a folder, as a data holder would; what happened, in words."""
    write("togo", folder / "features.parquet")
    people, other = draw("togo"), draw("togo", seed=DEFAULT_SEED + 1)
    scales = scales_text(data_scales(other.X), people.features, "public")
    (folder / "scales.toml").write_text(scales, encoding="utf-8")
    settings = make_settings(
        {
            "id": "id", "features": people.features, "B": 0.25, "epsilon": 4.0, "tuned_on": "synthetic",
            "scales": str(folder / "scales.toml"), "key": folder / "signing-key.pem",
            "ledger": folder / "ledger.db", "population": "invented people",
        }
    )  # fmt: skip
    key = SigningKey.open(folder / "signing-key.pem")
    Ledger(folder / "ledger.db", key).set_limit("invented people", Guarantee(0.25, 8.0, 1e-5))
    done = privatize_file(folder / "features.parquet", folder / "private.parquet", settings)
    checks = verify_release(done.path, done.certificate, key.public).checks
    promise = done.certificate.guarantee.value() if done.certificate.guarantee else "no guarantee"
    standing = Ledger.existing(folder / "ledger.db").standing("invented people")
    return (
        "And a release for good (targetdp privatize), with scales from other people:\n"
        f"  {done.certificate.rows:,} rows, {len(people.features)} columns, {promise}\n"
        f"  verified: {sum(bool(check.holds) for check in checks)} of {len(checks)} checks hold\n"
        f"  ledger: ε = {standing.spent:.3g} spent of 8 at B = 0.25, δ = 1e-05"
    )


if __name__ == "__main__":
    main()

"""Safe Gaussian noise, value by value, beside OpenDP's and diffprivlib's; scikit-learn fold by fold.

The two libraries need other versions than everyone else, and live in an environment of their own
(`.venv-peers`). Rounds are taken in turns all the same: theirs is asked for one whenever ours has had one.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_predict

from benchmarks.people import people
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Call, Say, best_call, figure, in_turns
from targetdp.noise import SecretWords, add_gaussian, grid_for
from targetdp.programs import Folds, Logistic
from targetdp.programs import Ridge as OurRidge

PYTHON = "TARGETDP_PEERS"
"""Names the Python of an environment with the peers; without it, the one in .venv-peers is used."""
OURS = "targetdp"
COUNT = 1_000_000
LEAST = {"OpenDP": 100.0, "diffprivlib": 100.0}


def measure(effort: Effort, say: Say) -> Section:
    """Noise first, then programs."""
    noise, models = _noise(effort, say), _models(effort, say)
    return Section(noise.tables + models.tables, noise.bars + models.bars, noise.figures | models.figures)


def _noise(effort: Effort, say: Say) -> Section:
    table = new_table(
        "Safe Gaussian noise for each value", "library", "ns for each value", "over ours",
        caption="CPU time of one thread, best of several rounds in turns. All three mend the low bits of "
        "floats: ours and OpenDP's noise lies on a grid, diffprivlib adds up several draws. Ours: a million "
        "values with cryptographic randomness. Theirs: 5,000 at a time, as their interfaces take them.",
    )  # fmt: skip
    signal, words, grid = np.zeros((COUNT // 10, 10)), SecretWords(), grid_for(1.0)
    ours = partial(add_gaussian, signal, 1.0, grid, words)
    ours()
    seconds: dict[str, list[float]] = {OURS: []}
    versions: dict[str, str] = {}
    with _asked() as ask:
        if ask is not None:
            versions = json.loads(ask.readline())
        for number in range(1, 2 * effort.rounds + 1):
            say(f"noise, round {number}")
            seconds[OURS].append(best_call(ours, effort.seconds / 4) / COUNT)
            if ask is not None:
                for name, value in json.loads(ask.round()).items():
                    seconds.setdefault(name, []).append(value)
    best = {name: min(values) for name, values in seconds.items()}
    for name, value in best.items():
        ratio = figure(value / best[OURS])
        table.add_row(f"{name} {versions.get(name, '')}".strip(), figure(value * 1e9), ratio)
    for name in LEAST:
        if name not in best:
            table.add_row(name, "not installed: make .venv-peers/.ready", "–")
    bars = [
        Bar(
            f"Gaussian noise for each value, {name} / ours",
            best[name] / best[OURS] if name in best else None, least, "at least",
        )
        for name, least in LEAST.items()
    ]  # fmt: skip
    return Section([table], bars, {"noise, seconds for each value": seconds, "versions": versions})


class _Asked:
    """The peers' process: a round for each line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def readline(self) -> str:
        stream: IO[str] | None = self._process.stdout
        line = "" if stream is None else stream.readline()
        if not line:
            raise RuntimeError(
                "the peers' process ended: make .venv-peers/.ready builds its environment anew"
            )
        return line

    def round(self) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.readline()


@contextmanager
def _asked() -> Iterator[_Asked | None]:
    root = Path(__file__).parents[1]
    python = Path(os.environ.get(PYTHON, root / ".venv-peers" / "bin" / "python"))
    if not python.exists():
        yield None
        return
    side = Path(__file__).with_name("peers_side.py")
    with subprocess.Popen(  # noqa: S603 (an interpreter that the caller names, our own script)
        [str(python), str(side)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield _Asked(process)
        process.communicate(timeout=60)


def _models(effort: Effort, say: Say) -> Section:
    """Cross-validated predictions, as a program needs them in every simulation."""
    table = new_table(
        "Programs: predictions of five folds against scikit-learn, fold by fold", "model and table", "ours",
        "scikit-learn", "scikit-learn / ours", "largest difference",
        caption="CPU time of one thread. The same models, folds and penalties; differences: of predictions.",
    )  # fmt: skip
    bars: list[Bar] = []
    figures: dict[str, Any] = {}
    scale = 10 if effort.quick else 1
    for kind, shape in (
        ("ridge", (4_201, 10)),
        ("ridge", (100_000 // scale, 10)),
        ("logistic", (20_788 // scale, 15)),
    ):
        X = people(*shape)
        rng, folds = np.random.default_rng(2), Folds(shape[0])
        outcome = X @ rng.standard_normal(shape[1]) + 0.3 * rng.standard_normal(shape[0])
        y = outcome if kind == "ridge" else (outcome > 0).astype(np.float64)
        title = f"{kind}, {shape[0]:,} × {shape[1]}"
        ours, theirs = _sides(kind, X, y, folds)
        say(title)
        times = in_turns(
            {"ours": ours, "sklearn": theirs}, rounds=effort.rounds, seconds=effort.seconds, say=say
        )
        ratio = times.ratio("sklearn", "ours")
        apart = float(np.abs(np.asarray(ours()) - np.asarray(theirs())).max())
        table.add_row(
            title, f"{1e3 * times.best('ours'):.2f} ms", f"{1e3 * times.best('sklearn'):.2f} ms", str(ratio),
            f"{apart:.1e}",
        )  # fmt: skip
        figures[title] = times.rounds
        bars.append(
            Bar(f"five folds of {title}, scikit-learn / ours", ratio.best, 1.0, "at least", not effort.quick)
        )
    return Section([table], bars, figures)


def _sides(kind: str, X: Any, y: Any, folds: Folds) -> tuple[Call, Call]:
    splits = list(folds)
    if kind == "ridge":
        return (
            lambda: OurRidge().predict(X, y, folds),
            lambda: cross_val_predict(Ridge(alpha=1.0), X, y, cv=splits),
        )
    model = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-8)
    return (
        lambda: Logistic().predict(X, y, folds),
        lambda: cross_val_predict(model, X, y, cv=splits, method="predict_proba")[:, 1],
    )

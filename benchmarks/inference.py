"""Attribute inference against Anonymeter in its own environment, its growth, and what Anonymeter's slip does.

`python -m benchmarks.inference` prints the table of the slip for `docs/attacks.md`.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.page import page
from benchmarks.people import EPSILON, B, paper_delta, paper_projection, people
from benchmarks.release import scratch
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say, best_call, figure
from targetdp._core import Floats, Silent, at_most, processors
from targetdp.attacks import (
    PreparedTables,
    attribute_inference,
    near,
    near_by_anonymeter,
    nearest,
    nearest_leaving_one_out,
    prepare,
    zero_tolerances,
)
from targetdp.mechanisms import SphericalLaplace

ROOT = Path(__file__).parents[1]
PYTHON = "ANONYMETER_PYTHON"
"""Names the Python of an environment with Anonymeter; without it, the one in .venv-anonymeter is used."""

LEAST = {"1": 500.0, "⌈d/2⌉": 100.0, "d-1": 400.0}
"""How many times faster, by known columns."""


def measure(effort: Effort, say: Say) -> Section:
    """Both on the same releases; then ours alone on larger tables."""
    shapes = [(1_000, 10)] if effort.quick else [(4_201, 10), (20_788, 15)]
    python = its_python()
    table = new_table(
        "Attribute inference: Anonymeter against ours, every column as the secret once",
        "rows × columns, known, release", "Anonymeter", "ours", "ratio", "one secret: Anonymeter", "ours",
        "ratio", f"ours, wall, {processors()} threads",
        caption="Anonymeter's time is measured on some people and scaled to all (it compares each with every "
        "row by itself), for one secret, and scaled to d; one thread. Ours is the whole call for all people, "
        "in Anonymeter's mode, scores included, one thread; for one secret, a single search with its "
        "preparations. The sampled people's guesses were compared: all are equal.",
    )  # fmt: skip
    bars: list[Bar] = []
    figures: dict[str, Any] = {}
    for n, d in shapes:
        X = people(n, d)
        worst: dict[str, float | None] = {}
        for release, X_priv in list(releases(X).items())[: 1 if effort.quick else None]:
            say(f"{n:,} × {d}, {release}")
            theirs, reason = seconds_of_anonymeter(python, X, X_priv, 30 if effort.quick else 300)
            for label, h in known_columns(d).items():
                ours = _ours(X, X_priv, h, effort.seconds)
                name = f"{n:,} × {d}, {label} = {h}, {release}"
                figures[name] = ours | {"Anonymeter, one secret": theirs.get(h)}
                if h in theirs:
                    _add_row(table, name, theirs[h], d, ours)
                    ratio = d * theirs[h] / ours["all"]
                    worst[label] = min(ratio, worst.get(label) or ratio)
                else:
                    table.add_row(name, "–", _seconds(ours["all"]), "–", "–", _seconds(ours["one"]), "–",
                                  _seconds(ours["wall"]))  # fmt: skip
            if reason:
                table.caption = f"Anonymeter did not run: {reason}"
        bars += [
            Bar(f"attribute inference {n:,} × {d}, {label} known, Anonymeter / ours", worst.get(label), least,
                "at least", not effort.quick)
            for label, least in LEAST.items()
        ]  # fmt: skip
    growth, grown = _growth(effort, say)
    return Section([table, growth, sign_slip()], bars, figures | {"growth": grown})


def releases(X: Floats) -> dict[str, Floats]:
    """The paper's projection and the mechanism with less noise, both at B = 0.25."""
    rng = np.random.default_rng(len(X))
    laplace = SphericalLaplace(B=B, epsilon=EPSILON, delta=paper_delta(len(X)))
    return {
        "projection": paper_projection(len(X)).privatize(X, rng),
        "spherical Laplace": laplace.privatize(X, rng),
    }


def known_columns(d: int) -> dict[str, int]:
    """The paper's numbers of known columns."""
    return {"1": 1, "⌈d/2⌉": -(-d // 2), "d-1": d - 1}


def _ours(X: Floats, X_priv: Floats, h: int, seconds: float) -> dict[str, float]:
    attack = partial(
        attribute_inference, X, X_priv, known=[h], compatibility="anonymeter", rng=np.random.default_rng(0)
    )
    attack()
    width = np.ptp(np.concatenate([X, X_priv]), axis=0)

    def one_secret() -> None:
        nearest(prepare(X, X_priv, width, np.arange(len(X))), range(h), Silent())

    one_secret()
    wall = best_call(attack, seconds, clock=time.perf_counter)
    with at_most(1):  # in a thread of its own: the process's clock counts it
        return {
            "all": best_call(attack, seconds, clock=time.process_time),
            "one": best_call(one_secret, seconds, clock=time.process_time),
            "wall": wall,
        }


def anonymeter_version() -> str | None:
    """Of the one in its own environment."""
    python = its_python()
    if not python.exists():
        return None
    asked = [str(python), "-c", "from importlib.metadata import version; print(version('anonymeter'))"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() or None


def its_python() -> Path:
    """The interpreter that has Anonymeter."""
    return Path(os.environ.get(PYTHON, ROOT / ".venv-anonymeter" / "bin" / "python"))


def seconds_of_anonymeter(
    python: Path, X: Floats, X_priv: Floats, sample: int
) -> tuple[dict[int, float], str]:
    """Seconds for one secret and everyone, by known columns, or why there are none; guesses must agree."""
    if not python.exists():
        return {}, "there is no environment with it, see tests/attacks/anonymeter/README.md"
    chosen = np.sort(np.random.default_rng(1).choice(len(X), sample, replace=False))
    counts = list(known_columns(X.shape[1]).values())
    with scratch() as folder:
        np.savez(folder / "tables.npz", people=X[chosen], released=X_priv, known=np.array(counts))
        done = subprocess.run(  # noqa: S603 (an interpreter that the caller names, our own script)
            [str(python), "-W", "ignore", str(Path(__file__).with_name("anonymeter_side.py")),
             str(folder / "tables.npz"), "2"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        error = done.stderr.strip().splitlines()[-1].split(":")[0]  # the rest may name folders
        return {}, f"its Python ended with code {done.returncode}, {error}"
    answers: dict[str, Any] = json.loads(done.stdout)
    width = np.ptp(np.concatenate([X[chosen], X_priv]), axis=0)
    sides = prepare(X[chosen], X_priv, width)
    seconds = {}
    for h in counts:
        answer = answers[str(h)]
        if nearest(sides, range(h), Silent()).tolist() != answer["rows"]:
            raise AssertionError(f"with {h} known columns Anonymeter's guesses differ from ours")
        each = (answer["sample"] - answer["one"]) / (sample - 1)
        seconds[h] = answer["one"] + (len(X) - 1) * each
    return seconds, ""


def _add_row(table: Table, name: str, theirs: float, d: int, ours: dict[str, float]) -> None:
    table.add_row(
        name, _seconds(d * theirs), _seconds(ours["all"]), figure(d * theirs / ours["all"]),
        _seconds(theirs), _seconds(ours["one"]), figure(theirs / ours["one"]), _seconds(ours["wall"]),
    )  # fmt: skip


def _seconds(seconds: float) -> str:
    return f"{figure(seconds)} s" if seconds >= 1 else f"{figure(1e3 * seconds)} ms"


def _growth(effort: Effort, say: Say) -> tuple[Table, dict[str, Any]]:
    sizes = [n // (10 if effort.quick else 1) for n in (5_000, 20_000, 80_000)]
    table = new_table(
        "Attribute inference, ours: growth with rows (spherical Laplace)",
        "columns, known", *(f"{n:,}" for n in sizes), "exponent of time",
        caption="All columns for d-1 (one pass), one search for ⌈d/2⌉, tables prepared inside. Comparing all "
        "pairs has exponent 2.",
    )  # fmt: skip
    figures = {}
    for d in (10, 15):
        seconds: dict[str, list[float]] = {"⌈d/2⌉": [], "d-1": []}
        for n in sizes:
            say(f"growth: {n:,} × {d}")
            X = people(n, d)
            X_priv = releases(X)["spherical Laplace"]
            scale, rows = X_priv.std(axis=0), np.arange(n)
            tables = partial(prepare, X, X_priv, scale, rows)
            for label, search in (
                ("⌈d/2⌉", partial(_half, tables, -(-d // 2))),
                ("d-1", partial(_all_but_one, tables)),
            ):
                calls = 1 if n > 50_000 else 2
                with at_most(1):
                    seconds[label].append(best_call(search, 0, calls=calls, clock=time.process_time))
        for label, times in seconds.items():
            exponent = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
            table.add_row(f"{d}, {label}", *(_seconds(t) for t in times), f"{exponent:.2f}")
            figures[f"{d}, {label}"] = {"seconds": dict(zip(sizes, times, strict=True)), "exponent": exponent}
    return table, figures


def _half(tables: Callable[[], PreparedTables], h: int) -> None:
    nearest(tables(), range(h), Silent())


def _all_but_one(tables: Callable[[], PreparedTables]) -> None:
    nearest_leaving_one_out(tables(), Silent())


def sign_slip(n: int = 4_201, d: int = 10, holdout: int = 500) -> Table:
    """Shares of guesses that count as right under both rules, for the same guesses, d-1 columns known.

    The columns have mean 0, as standardized columns have. Shares are means over columns, the ratio of
    failures is the worst over columns.
    """
    X = people(n + holdout, d)
    inside, outside = X[:n], X[n:]
    noise = np.random.default_rng(7).standard_normal(inside.shape) * X.std(axis=0)
    table = new_table(
        f"What dividing by the signed guess does ({n:,} × {d}, d-1 columns known)", "release, rule",
        "right, in the release", "right, holdout", "worst ratio of failures",
        caption="The same guesses under both rules. Noise that knows nobody cannot be guessed from: what is "
        "right there is luck.",
    )  # fmt: skip
    zero = zero_tolerances(inside, 0.05)
    for name, X_priv in {"noise alone": noise, **releases(inside), "the original": inside}.items():
        scale = X_priv.std(axis=0)
        right: dict[str, list[list[float]]] = {"ours": [], "Anonymeter's": []}
        for group in (inside, outside):
            rows = nearest_leaving_one_out(prepare(group, X_priv, scale), Silent())
            guesses = [X_priv[row, column] for column, row in enumerate(rows)]
            right["ours"].append(
                [float(near(g, group[:, j], 0.05, zero[j]).mean()) for j, g in enumerate(guesses)]
            )
            right["Anonymeter's"].append(
                [float(near_by_anonymeter(g, group[:, j], 0.05).mean()) for j, g in enumerate(guesses)]
            )
        for rule, (of_inside, of_outside) in right.items():
            ratio = min((1 - a) / (1 - b) for a, b in zip(of_inside, of_outside, strict=True))
            table.add_row(
                f"{name}, {rule}", f"{np.mean(of_inside):.1%}", f"{np.mean(of_outside):.1%}", f"{ratio:.2f}"
            )
    return table


if __name__ == "__main__":
    print(page("", [sign_slip()]).split("\n## ", 1)[1])

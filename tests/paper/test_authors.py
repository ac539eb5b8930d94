"""The outputs that the paper's authors published with their demonstration code, repeated with this software.

Kohli, "Targeted Differential Privacy Demonstration Code" (github.com/nitinkohli/
targeted_differential_privacy_replication, commit 3689792, October 2024): an invented table of 4,201 × 10, and
what their code made of it. Nobody here wrote it, and it is not part of this project.
"""

import csv
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from support.outside import AUTHORS, needs, outside
from targetdp import Guarantee, least_noise
from targetdp._core import Floats
from targetdp.attacks import attribute_inference, singling_out, split_holdout
from targetdp.mechanisms import Mechanism, PrivateProjection
from targetdp.normalization import clip_rows
from targetdp.normalization._ball import shrink_rows
from targetdp.programs import Aid, Folds

TABLE = outside(AUTHORS, "replication_input.csv")
PAGE = Path(__file__).parents[2] / "docs" / "reproduction.md"
ALL_B = (0.05, 0.25, 0.5, 1.0, 2.0)
NET_SIZES = {0.1: "10", 0.33: "33", 0.5: "50", 0.67: "67", 1.0: "100"}
"""Theirs, and how their columns write them."""
ERRORS = 4
"""Means of simulations must agree within so many standard errors: a true one fails once in 15,000."""

pytestmark = needs(TABLE)


def rows_of(name: str) -> list[dict[str, str]]:
    with outside(AUTHORS, name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def table() -> tuple[Floats, Floats]:
    """Their columns as they are (they do not scale them), and the targeting variable."""
    found = np.loadtxt(TABLE, delimiter=",", skiprows=1)
    return found[:, :10], found[:, 10]


@cache
def folds() -> Folds:
    return Folds.of(KFold(5, shuffle=True, random_state=0).split(table()[0]))


@cache
def program() -> Aid:
    return Aid(table()[1], 0.29, quota_rule="per fold")


def printed(B: float) -> PrivateProjection:
    return PrivateProjection(B=B, epsilon1=3, epsilon2=0.9999, delta1=0.00015, delta2=0.00008, k=10_000)


def quiet(B: float) -> Mechanism:
    """The least noise for the same promise."""
    return least_noise(Guarantee(B, 3.9999, 0.00023), 10).mechanism


@cache
def accuracies(noise: str, rows: str, B: float) -> Floats:
    """Twenty simulations."""
    X = {"largest": shrink_rows, "clip": clip_rows}[rows](table()[0])
    mechanism = {"printed": printed, "least": quiet}[noise](B)
    rng = np.random.default_rng([7, round(B * 100)])
    private = (mechanism.privatize(X, rng) for _ in range(20))
    return np.array([program().evaluate(Z, folds(), rng)["accuracy"] for Z in private])


def error(a: Floats, b: Floats) -> float:
    """Of the difference of two means."""
    return math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))


def test_the_status_quo_is_theirs_to_the_last_digits() -> None:
    (theirs,) = rows_of("nonprivate_prediction_metrics.csv")
    result = program().evaluate(shrink_rows(table()[0]), folds())
    ours = result.metrics | {"tpr": result["recall"], "fpr": result["false_positive_rate"]}
    for name in ("accuracy", "tpr", "fpr", "precision"):
        assert ours[name] == pytest.approx(float(theirs[name]), abs=1e-12), name
    assert ours["accuracy"] == pytest.approx(0.90954, abs=5e-6)


def test_the_status_quo_is_what_scikit_learn_says_in_plain_words() -> None:
    """The same without any code of this project but the division by the largest norm."""
    X, y = table()
    X = X / np.linalg.norm(X, axis=1).max()
    shares = []
    for fitted, judged in KFold(5, shuffle=True, random_state=0).split(X):
        predicted = Ridge().fit(X[fitted], y[fitted]).predict(X[judged])
        poor, chosen = (v <= np.percentile(v, 29) for v in (y[judged], predicted))
        shares.append((poor == chosen).mean())
    assert program().evaluate(shrink_rows(table()[0]), folds())["accuracy"] == pytest.approx(
        np.mean(shares), abs=1e-12
    )


@pytest.mark.parametrize("B", ALL_B)
def test_the_projection_is_as_accurate_as_theirs(B: float) -> None:
    rows = [row for row in rows_of("private_prediction_metrics.csv") if float(row["B"]) == B]
    theirs = np.array([float(row["accuracy"]) for row in rows])
    ours = accuracies("printed", "largest", B)
    assert len(theirs) == 5
    assert abs(ours.mean() - theirs.mean()) <= ERRORS * error(ours, theirs)


def test_the_comparison_has_power() -> None:
    """The next B of their grid is told apart where the figures are, and the least noise always is."""
    for B, other in ((0.05, 0.25), (0.25, 0.5)):
        here, there = accuracies("printed", "largest", B), accuracies("printed", "largest", other)
        assert abs(here.mean() - there.mean()) > ERRORS * error(here[:5], there)
    for B in ALL_B:
        here, there = accuracies("printed", "largest", B), accuracies("least", "largest", B)
        assert there.mean() - here.mean() > ERRORS * error(here[:5], there)


def test_their_nets_around_the_original_rows_are_ours() -> None:
    """To the last person, once deviations are divided by n − 1 as theirs are: 2 of 4,201 hang on that."""
    (row,) = rows_of("nonprivate_pso_metrics.csv")
    X = shrink_rows(table()[0])
    theirs = [round(float(row[f"avg_priv_{size}_risk"]) * len(X)) for size in NET_SIZES.values()]
    larger = math.sqrt(len(X) / (len(X) - 1))
    for factor, off in ((larger, 0), (1.0, 2)):
        found = singling_out(X, X, tuple(factor * size for size in NET_SIZES)).detail["singled_out"]
        ours = [found[name] for name in found if name != "net size 0"]
        assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) == off


@pytest.mark.parametrize("B", ALL_B)
def test_their_nets_around_private_rows_miss_the_table(B: float) -> None:
    """Their output is not multiplied by k: it is 10⁴ times smaller than the rows whom they look for.

    Nets of its deviations lie around zero, and hold nobody, or the one row that is nearest to zero. With the
    factor k the same attack singles people out, but for the largest B.
    """
    (theirs,) = [row for row in rows_of("private_pso_metrics.csv") if float(row["B"]) == B]
    X = shrink_rows(table()[0])
    private = printed(B).privatize(X, np.random.default_rng(11))
    found = singling_out(X, private / 1e4, tuple(NET_SIZES)).detail["singled_out"]
    assert max(found.values()) <= 1
    assert max(float(theirs[f"avg_priv_{size}_risk"]) for size in NET_SIZES.values()) * len(X) <= 1 + 1e-9
    scaled = max(singling_out(X, private, tuple(NET_SIZES)).detail["singled_out"].values())
    assert scaled > 1 if B < 2 else scaled == 0


def wilson(failed: float, attacked: int) -> float:
    """The rate of success that Anonymeter states: the middle of Wilson's 95% interval."""
    square = 1.959963984540054**2
    return ((1 - failed) * attacked + square / 2) / (attacked + square)


def risks(X: Floats, private: Any, known: int, seed: int) -> Floats:
    """Anonymeter's risk of each column: its rate of success beyond that on people outside the release."""
    rng = np.random.default_rng(seed)
    working, holdout = split_holdout(X, 500, rng)
    found = attribute_inference(
        X[working], private(X[working], rng), X[holdout], known=[known], people=500,
        compatibility="anonymeter", rng=rng,
    ).detail  # fmt: skip
    inside, beyond = (
        np.array([wilson(p, 500) for p in found[side].values()]) for side in ("p_release", "p_holdout")
    )
    return np.asarray(np.maximum((inside - beyond) / (1 - beyond), 0.0))


STYLES = {"one": 1, "half": 5, "all_but_one": 9, "but_one": 9}
"""Their names for how many columns are known. "all_but_one" is spelled "but_one" in their loop over the
original table, where it therefore ran as "one": on original rows every guess is right with either."""


@pytest.mark.parametrize("style", ["one", "half", "but_one"])
def test_values_are_guessed_from_the_original_rows_as_theirs_are(style: str) -> None:
    (theirs,) = [
        row for row in rows_of("nonprivate_attribute_inference_metrics.csv") if row["attack_style"] == style
    ]
    X = shrink_rows(table()[0])
    ours = np.array([risks(X, lambda W, _: W, STYLES[style], seed) for seed in range(5)])
    for name, found in (("median", np.median(ours, axis=1)), ("mean", ours.mean(1)), ("max", ours.max(1))):
        spread = math.hypot(float(theirs[f"sd_{name}_risk"]), found.std(ddof=1)) / math.sqrt(5)
        assert found.mean() == pytest.approx(float(theirs[f"avg_{name}_risk"]), abs=ERRORS * spread), name


@pytest.mark.parametrize("B", [0.05, 0.25, 2.0])
@pytest.mark.parametrize("style", ["one", "half", "all_but_one"])
def test_values_are_guessed_from_private_rows_as_theirs_are(style: str, B: float) -> None:
    """Ten columns vary much from simulation to simulation: their five have deviations up to 0.3."""
    (theirs,) = [
        row for row in rows_of("private_attribute_inference_metrics.csv")
        if row["attack_style"] == style and float(row["B"]) == B
    ]  # fmt: skip
    X = shrink_rows(table()[0])

    def private(W: Floats, rng: np.random.Generator) -> Floats:
        return printed(B).privatize(W, rng) / 1e4

    ours = np.array([risks(X, private, STYLES[style], 100 + seed) for seed in range(10)])
    for name, found in (("mean", ours.mean(1)), ("max", ours.max(1))):
        spread = math.sqrt(float(theirs[f"sd_{name}_risk"]) ** 2 / 5 + found.var(ddof=1) / 10)
        assert found.mean() == pytest.approx(float(theirs[f"avg_{name}_risk"]), abs=ERRORS * spread), name


def test_the_table_of_the_documentation_is_what_comes_out() -> None:
    lines = re.findall(r"^\| (theirs|ours)([^|]*)\|([^\n]+)\|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert [words for _, words, _ in lines] == [
        " (mean of 5) ", ": the projection, as printed ", ": least noise ", ": least noise, rows clipped ",
    ]  # fmt: skip
    shown = [[float(cell) for cell in cells.split("|")] for _, _, cells in lines]
    evaluate = program().evaluate
    today = [evaluate(rule(table()[0]), folds())["accuracy"] for rule in (shrink_rows, clip_rows)]
    published = rows_of("private_prediction_metrics.csv")
    theirs = [np.mean([float(r["accuracy"]) for r in published if float(r["B"]) == B]) for B in ALL_B]
    assert shown[0] == pytest.approx([today[0], *theirs], abs=6e-4)
    settings = (("printed", "largest"), ("least", "largest"), ("least", "clip"))
    for line, (noise, rows) in zip(shown[1:], settings, strict=True):
        means = [accuracies(noise, rows, B).mean() for B in ALL_B]
        assert line == pytest.approx([today[rows == "clip"], *means], abs=6e-4), noise

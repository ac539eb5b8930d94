"""Figures and words of docs/promise.md."""

import math

import numpy as np

from support.docs import DOCS
from targetdp import declared_scales, normalize
from targetdp.accounting import GaussianLoss, PrivacyLoss, compose
from targetdp.mechanisms import Staircase
from targetdp.release import Limit
from targetdp.release._certificate._caveats import statement
from targetdp.release._policy import LimitPolicy

TEXT = (DOCS / "promise.md").read_text(encoding="utf-8")
EPSILON, DELTA, MU = 4.0, 1 / 4202, 0.33


def staircase(epsilon: float) -> PrivacyLoss:
    return Staircase(B=0.25, epsilon=epsilon).privacy_loss(distance=0.25, dimensions=1)


def test_who_chooses_after_looking_beats_exact_composition() -> None:
    """Both ways to go on compose to the limit; taking whichever suits what was seen does not."""
    first = GaussianLoss(MU)
    largest = max(mu for mu in np.arange(1, 2, 1e-4).tolist() if GaussianLoss(mu).delta(EPSILON) <= DELTA)
    normal = GaussianLoss(math.sqrt(largest**2 - MU**2))
    low, high = 2.0, 4.0
    for _ in range(20):
        middle = (low + high) / 2
        fits = compose(first, staircase(middle)).delta(EPSILON) <= DELTA
        low, high = (middle, high) if fits else (low, middle)
    ways = [normal, staircase(low)]
    assert all(compose(first, way).delta(EPSILON) <= DELTA for way in ways)
    seen = np.linspace(-8, 8, 2001)
    weights = np.exp(-np.square(seen) / 2)
    losses = MU**2 / 2 + MU * seen
    left = np.array([[way.delta(EPSILON - loss) for loss in losses.tolist()] for way in ways])
    true = float(left.max(axis=0) @ weights / weights.sum())
    assert f"The true δ is {true / DELTA:.2f} times the limit's" in TEXT
    assert f"{true / DELTA:.2f} times δ" in (DOCS / "departures.md").read_text(encoding="utf-8")


def test_clipping_makes_distances_of_subsets_differ() -> None:
    rows = np.array([[0.5, 10.0], [-0.5, 10.0]])
    for columns, told in ((2, "0.10"), (1, "1.0")):
        X = normalize(rows[:, :columns], declared_scales([0.0] * columns, [1.0] * columns)).X
        apart = float(np.linalg.norm(X[0] - X[1]))
        assert f"{apart:.{len(told) - 2}f}" == told
    assert (
        "(0.5, 10) and (−0.5, 10) are 0.10 apart when both columns are released, and 1.0 apart in the" in TEXT
    )


def test_the_statement_stands_there_in_its_exact_words() -> None:
    limit = Limit.within(LimitPolicy(B=0.25, epsilon=10, delta=1e-6), ())
    assert f"> {statement(limit.stated, limit.classic)}\n" in TEXT

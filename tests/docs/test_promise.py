"""Figures and words of docs/promise.md."""

import math

import numpy as np
import pytest

from support.docs import DOCS
from targetdp import Guarantee, declared_scales, normalize
from targetdp._core import up
from targetdp.accounting import GaussianLoss, PrivacyLoss, compose
from targetdp.mechanisms import GaussianNoise, Scores, SphericalLaplace, Staircase, noise_mechanisms
from targetdp.noise import SecretWords
from targetdp.release import Limit
from targetdp.release._certificate._caveats import statement
from targetdp.release._engine._rows import noisy_rows
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


ONE = Guarantee(0.25, 4.0, 1e-6)
NOISES = {
    "spherical Laplace": SphericalLaplace(B=ONE.B, epsilon=ONE.epsilon, delta=ONE.delta),
    "normal": GaussianNoise(B=ONE.B, epsilon=ONE.epsilon, delta=ONE.delta),
}


@pytest.mark.parametrize("name", NOISES)
def test_a_person_with_two_rows(name: str) -> None:
    """Composition of two rows that each have their own noise is never more than what certificates state."""
    loss = NOISES[name].privacy_loss(distance=ONE.B, dimensions=10)
    two, stated = compose(loss, loss), ONE.at_distance(2 * ONE.B)
    assert two.delta(2 * ONE.epsilon) <= 2 * ONE.delta <= stated.delta
    exactly = up(two.epsilon(ONE.delta), 3)
    guesses = (f"{math.ceil(1000 * one.best_guess()) / 1000:.3f}" for one in (loss, two))
    assert (
        f"| {name} | (4, 1e-06) | ({stated.epsilon:g}, {up(stated.delta, 3)}) | ({exactly}, 1e-06) "
        f"| {' | '.join(guesses)} |" in TEXT
    )


def test_two_rows_under_normal_noise_are_one_at_root_two() -> None:
    loss = NOISES["normal"].privacy_loss(distance=ONE.B, dimensions=10)
    at = NOISES["normal"].epsilon(distance=ONE.B * math.sqrt(2), delta=ONE.delta, dimensions=10)
    assert compose(loss, loss).epsilon(ONE.delta) == pytest.approx(at, rel=1e-4)


@pytest.mark.parametrize("name", NOISES)
def test_beyond_epsilon_the_loss_grows_gradually(name: str) -> None:
    loss = NOISES[name].privacy_loss(distance=ONE.B, dimensions=10)
    told = (math.ceil(100 * loss.epsilon(delta) - 1e-6) / 100 for delta in (1e-6, 1e-9, 1e-12, 1e-15))
    assert f"| ε, {name} | {' | '.join(f'{epsilon:g}' for epsilon in told)} |" in TEXT


def test_the_loss_of_laplace_noise_is_bounded_and_the_sampler_errs_by_little() -> None:
    largest = []
    for distance in (ONE.B, 2.0):
        ideal, imperfection = (
            NOISES["spherical Laplace"].privacy_loss(distance=distance, dimensions=10).split()
        )
        assert imperfection.tail <= 2.0**-90
        assert imperfection.log_error < 1e-6
        largest.append(ideal.largest())
    near, far = (f"{up(loss, 3)}" for loss in largest)
    assert f"in units of its scale, {near} here ({far} at distance 2)" in TEXT


@pytest.mark.parametrize("name", noise_mechanisms())
@pytest.mark.parametrize("scores", [False, True])
def test_no_row_enters_another_rows_release(name: str, scores: bool) -> None:
    """With public scales and the same words, one row is moved: everybody else's numbers stay as they are."""
    d = 1 if name == "staircase" and not scores else 4
    mechanism = noise_mechanisms()[name](ONE)
    law = (Scores(np.ones((1, d)), mechanism) if scores else mechanism).law(d)
    scales = declared_scales([0.0] * d, [2.0] * d)
    before = np.random.default_rng(19).normal(size=(d, 500))
    key = bytes(range(32))
    for moved in (1e-9, 1.0, 1e12, 1e200):
        after = before.copy()
        after[:, 137] = moved
        rows = [noisy_rows(columns, scales, law, SecretWords(key))[0] for columns in (before, after)]
        same = (rows[0] == rows[1]).all(axis=1)
        assert np.flatnonzero(~same).tolist() == [137]

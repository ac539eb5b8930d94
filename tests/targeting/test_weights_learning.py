"""Weights that know both noises: the optimum in the limit, least squares without noise, sense in between."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression

from support.targeting import best_direction, covariance, crowd, noisy, true_correlation, unit
from targetdp import Guarantee
from targetdp._core import Floats
from targetdp.targeting import learn
from targetdp.targeting._learn import FEWEST

NONE = np.zeros((4, 4))


def labels(X: Floats, seed: int = 0, slopes: Any = (9.0, -6.0, 4.0, 0.0)) -> Floats:
    """Who repays, by a logistic curve."""
    chances = expit(0.4 + X @ np.asarray(slopes))
    return np.asarray(np.random.default_rng(seed).random(len(X)) < chances, dtype=np.float64)


# In the limit, and without noise


@pytest.mark.parametrize("v2", [0.0, 0.002, 0.5])
def test_with_many_rows_they_are_the_optimum_of_the_true_moments(v2: float) -> None:
    """300,000 rows: the angle to (C + v₂I)⁻¹c is small, and to weights that forget either noise it is not."""
    mechanism, sigma = noisy(Guarantee(0.25, 4.0))
    people = crowd(300_000)
    Z = mechanism.privatize(people.X, np.random.default_rng(2))
    found = learn(Z, people.y, sigma, v2)
    best = best_direction(v2)
    assert found.w @ best > 0.9995
    assert found.correlation(v2) == pytest.approx(true_correlation(best, v2), abs=0.01)
    noisy_C = np.asarray(np.cov(Z.T, people.y), dtype=np.float64)
    forgetful = unit(np.asarray(np.linalg.solve(noisy_C[:4, :4] + v2 * np.eye(4), noisy_C[:4, 4]), float))
    assert forgetful @ best < found.w @ best
    if v2 == 0.5:  # so much noise: weights along c are best
        assert found.w @ unit(covariance() @ [1.0, -0.5, 0.25, 0.0]) > 0.999
        assert found.w @ best_direction(0.0) < 0.99


def test_without_noise_they_are_those_of_least_squares() -> None:
    people = crowd(20_000)
    found = learn(people.X, people.y, NONE, 0.0)
    slopes = LinearRegression().fit(people.X, people.y).coef_
    np.testing.assert_allclose(found.w, unit(slopes), atol=2e-3)
    assert found.ridge == 0
    assert found.covariance == pytest.approx(np.cov(people.X @ found.w, people.y)[0, 1], rel=1e-3)


def test_without_noise_they_are_those_of_logistic_regression() -> None:
    X = crowd(20_000).X
    y = labels(X)
    found = learn(X, y, NONE, 0.0, task="classification")
    slopes = LogisticRegression(solver="newton-cholesky", tol=1e-8).fit(X, y).coef_[0]
    np.testing.assert_allclose(found.w, unit(slopes), atol=2e-3)


def test_lending_under_noise_finds_the_direction() -> None:
    X = crowd(100_000).X
    y = labels(X)
    mechanism, sigma = noisy(Guarantee(0.25, 4.0))
    Z = mechanism.privatize(X, np.random.default_rng(4))
    truth = unit(np.array([9.0, -6.0, 4.0, 0.0]))
    naive = unit(LogisticRegression().fit(Z, y).coef_[0])
    found = learn(Z, y, sigma, 0.0, task="classification")
    assert found.w @ truth > 0.99
    assert naive @ truth < found.w @ truth
    assert found.covariance == pytest.approx(np.cov(X @ found.w, y)[0, 1], rel=0.02)


# What must not matter


def test_units_and_levels_of_the_target_do_not_matter() -> None:
    mechanism, sigma = noisy(Guarantee(0.25, 4.0))
    people = crowd(400)
    Z = mechanism.privatize(people.X, np.random.default_rng(6))
    one, other = (learn(Z, y, sigma, 0.01) for y in (people.y, 1e6 * people.y - 3e5))
    np.testing.assert_allclose(one.w, other.w, rtol=1e-9)
    assert one.correlation(0.01) == pytest.approx(other.correlation(0.01), rel=1e-9)


def test_columns_may_come_in_any_order_and_with_any_sign() -> None:
    mechanism, sigma = noisy(Guarantee(0.25, 4.0))
    people = crowd(400)
    Z = mechanism.privatize(people.X, np.random.default_rng(6))
    order, signs = np.array([2, 0, 3, 1]), np.array([1.0, -1.0, 1.0, -1.0])
    one, other = (
        learn(Z, people.y, sigma, 0.01),
        learn(Z[:, order] * signs, people.y, sigma, 0.01),
    )
    np.testing.assert_allclose(one.w[order] * signs, other.w, rtol=1e-8)


def test_rows_and_all_noise_of_half_the_size_give_the_same_weights() -> None:
    people = crowd(3_000)
    sigma = 0.001 * np.eye(4)
    Z = people.X + np.random.default_rng(8).normal(0, np.sqrt(0.001), people.X.shape)
    one, other = learn(Z, people.y, sigma, 0.01), learn(Z / 2, people.y, sigma / 4, 0.0025)
    np.testing.assert_allclose(one.w, other.w, atol=1e-6)


def test_a_surveys_weights_count_people_as_often() -> None:
    people = crowd(300)
    counts = np.arange(300) % 3 + 1.0
    one = learn(people.X, people.y, NONE, 0.01, weights=counts)
    again = np.repeat(np.arange(300), counts.astype(int))
    other = learn(people.X[again], people.y[again], NONE, 0.01)
    np.testing.assert_allclose(one.w, other.w, atol=0.02)
    assert one.target_mean == pytest.approx(other.target_mean)
    alike = learn(people.X, people.y, NONE, 0.01, weights=np.full(300, 7.0))
    np.testing.assert_array_equal(alike.w, learn(people.X, people.y, NONE, 0.01).w)


# Nobody judges herself


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_leaving_one_out_in_closed_form_is_learning_again_without_her(task: Any) -> None:
    """To first order: less than a fifth of the error of scores that do not leave her out."""
    X = crowd(60, seed=3).X
    y = labels(X) if task == "classification" else crowd(60, seed=3).y
    sigma = 0.001 * np.eye(4)
    found = learn(X, y, sigma, 0.01, task=task)
    again = []
    for i in range(60):
        rest = np.arange(60) != i
        again.append(X[i] @ learn(X[rest], y[rest], sigma, 0.01, task=task).w)
    flattered = X @ found.w
    assert np.abs(found.scores - again).mean() < 0.2 * np.abs(flattered - again).mean()


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_where_nothing_is_to_be_learned_nothing_is_promised(task: Any) -> None:
    """Labels drawn apart from the rows: predicted covariance is 0 in the mean; what was fitted is not."""
    rng = np.random.default_rng(10)
    mechanism, sigma = noisy(Guarantee(0.5, 4.0))
    told, fitted, telling = [], [], 0
    for _ in range(60):
        Z = mechanism.privatize(crowd(200, seed=int(rng.integers(2**31))).X, rng)
        y = rng.standard_normal(200) if task == "regression" else (rng.random(200) < 0.6).astype(float)
        found = learn(Z, y, sigma, 0.01, task=task)
        told.append(found.covariance / np.sqrt(found.target_variance))
        fitted.append(np.cov(Z @ found.w, y)[0, 1] / np.sqrt(found.target_variance))
        telling += found.tells
        assert found.believed <= max(found.covariance, 0)
    error = np.std(told) / np.sqrt(60)
    assert abs(np.mean(told)) < 4 * error + 0.1 * np.mean(fitted)
    assert np.mean(fitted) > 5 * error
    assert telling <= 8  # 2.3% are expected
    people = crowd(400)
    assert learn(people.X, people.y, NONE, 0.01).tells


def test_a_ridge_is_taken_where_few_people_are() -> None:
    """Thirty columns of pure noise among few people: a ridge is predicted to help, and it does."""
    rng = np.random.default_rng(12)
    people = crowd(60)
    Z = np.hstack([people.X, rng.normal(0, 0.1, (60, 30))])
    found = learn(Z, people.y, np.zeros((34, 34)), 0.0)
    plain = unit(LinearRegression().fit(Z, people.y).coef_)
    rest = crowd(20_000, seed=5)
    apart = rng.normal(0, 0.1, (20_000, 30))
    ours, theirs = (
        np.corrcoef(np.hstack([rest.X, apart]) @ w, rest.y)[0, 1] for w in (found.w, plain)
    )  # fmt: skip
    assert found.ridge > 0
    assert ours > theirs + 0.05


# Edges


def test_one_column() -> None:
    people = crowd(200)
    found = learn(people.X[:, 1:2], people.y, [[0.01]], 0.1)
    assert abs(found.w[0]) == 1
    flipped = learn(-people.X[:, 1:2], people.y, [[0.01]], 0.1)
    assert flipped.w[0] == -found.w[0]


@pytest.mark.parametrize("v2", [0.0, 0.05])
@pytest.mark.parametrize("B", [None, 0.25, 2.0])
def test_more_columns_than_rows(v2: float, B: float | None) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(0, 0.05, (40, 100))
    y = X[:, 0] + 0.01 * rng.standard_normal(40)
    sigma, Z = np.zeros((100, 100)), X
    if B is not None:
        mechanism, sigma = noisy(Guarantee(B, 4.0), 100)
        Z = mechanism.privatize(X, rng)
    for task, target in (("regression", y), ("classification", (y > 0).astype(float))):
        found = learn(Z, target, sigma, v2, task=task)  # type: ignore[arg-type]
        assert np.linalg.norm(found.w) == pytest.approx(1)
        assert np.isfinite(found.scores).all()
        assert 0 < found.spread <= 1


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_constant_columns_are_left_alone(task: Any) -> None:
    people = crowd(500)
    y = labels(people.X) if task == "classification" else people.y
    Z = np.hstack([people.X, np.full((500, 2), 0.3)])
    found = learn(Z, y, np.zeros((6, 6)), 0.0, task=task)
    assert np.abs(found.w[4:]).max() < 1e-9
    np.testing.assert_allclose(unit(found.w[:4]), learn(people.X, y, NONE, 0.0, task=task).w, atol=0.05)


def test_noise_far_larger_than_the_signal_gives_weights_along_the_covariance() -> None:
    mechanism, sigma = noisy(Guarantee(2.0, 0.5))
    people = crowd(2_000)
    Z = mechanism.privatize(people.X, np.random.default_rng(3))
    found = learn(Z, people.y, sigma, 4.0)
    c = np.cov(Z.T, people.y)[:4, 4]
    assert found.w @ unit(c) > 0.99


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": np.full(100, 3.0)}, "3.0 for everybody"),
        ({"y": np.ones(99)}, "99 entries"),
        ({"y": np.r_[np.nan, np.ones(99)]}, "NaN"),
        ({"Z": np.zeros((100, 4))}, "no covariance at all"),
        ({"noise_covariance": np.eye(3)}, "3 columns"),
        ({"noise_covariance": np.ones((3, 4))}, "shape"),
        ({"score_variance": -0.1}, "score_variance"),
        ({"task": "tombola"}, "tombola"),
        ({"task": "classification"}, "other values than 0 and 1"),
        ({"weights": np.zeros(100)}, "not above 0"),
    ],
)
def test_bad_arguments(change: dict[str, Any], words: str) -> None:
    people = crowd(100)
    given: dict[str, Any] = {
        "Z": people.X, "y": people.y, "noise_covariance": NONE, "score_variance": 0.01,
    }  # fmt: skip
    with pytest.raises(ValueError, match=words):
        learn(**(given | change))


def test_too_few_people() -> None:
    people = crowd(FEWEST - 1)
    with pytest.raises(ValueError, match="fewer labels"):
        learn(people.X, people.y, NONE, 0.01)

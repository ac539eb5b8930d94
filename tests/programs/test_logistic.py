"""Newton's logistic regression is scikit-learn's, if that is run to its end."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from targetdp._core import Floats
from targetdp.programs import Folds, Logistic


def slow(X: Floats, y: Floats, folds: Folds, C: float, weights: Floats | None = None) -> Floats:
    predicted = np.empty(len(X))
    for fitted, held_out in folds:
        model = LogisticRegression(C=C, tol=1e-12, max_iter=1_000, solver="newton-cholesky")
        model.fit(X[fitted], y[fitted], sample_weight=None if weights is None else weights[fitted])
        predicted[held_out] = model.predict_proba(X[held_out])[:, 1]
    return predicted


def table(n: int, d: int, strength: float = 1.0, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    odds = strength * (X @ rng.standard_normal(d)) + 0.5
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(np.float64)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("n", "d", "k", "strength"), [(500, 8, 5, 1.0), (80, 2, 4, 0.0), (60, 80, 5, 1.0)])
def test_probabilities_are_scikit_learns(n: int, d: int, k: int, strength: float, C: float) -> None:
    X, y = table(n, d, strength)
    folds = Folds(n, k)
    assert Logistic(C).predict(X, y, folds) == pytest.approx(slow(X, y, folds, C), abs=1e-6)


def test_weights_count_as_in_scikit_learn() -> None:
    X, y = table(300, 5)
    weights = np.random.default_rng(1).uniform(0.1, 5, 300)
    folds = Folds(300)
    fast = Logistic().predict(X, y, folds, weights)
    assert fast == pytest.approx(slow(X, y, folds, 1.0, weights), abs=1e-6)
    assert np.abs(fast - Logistic().predict(X, y, folds)).max() > 1e-3


def test_people_who_can_be_told_apart_without_doubt() -> None:
    X, _ = table(200, 3)
    y = (X[:, 0] > 0).astype(np.float64)
    folds = Folds(200)
    for C in (1.0, 1e4):
        assert Logistic(C).predict(X, y, folds) == pytest.approx(slow(X, y, folds, C), abs=1e-6)


def test_columns_of_very_different_size() -> None:
    X, y = table(400, 4)
    X = X * np.array([1e3, 1.0, 1e-3, 30.0])
    folds = Folds(400)
    assert Logistic().predict(X, y, folds) == pytest.approx(slow(X, y, folds, 1.0), abs=1e-6)


@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_where_all_are_alike_the_answer_is_that(outcome: float) -> None:
    X, _ = table(20, 2)
    assert (Logistic().predict(X, np.full(20, outcome), Folds(20)) == outcome).all()


def test_a_fold_whose_people_are_all_alike() -> None:
    """One person repaid: the fold that holds her out learns from people of whom nobody did."""
    X, _ = table(20, 2)
    y = np.zeros(20)
    y[4] = 1.0
    folds = Folds(20)
    predicted = Logistic().predict(X, y, folds)
    with_her = next(held_out for _, held_out in folds if 4 in held_out)
    assert (predicted[with_her] == 0).all()
    others = np.setdiff1d(np.arange(20), with_her)
    assert (predicted[others] > 0).all()


def test_the_penalty_must_be_positive() -> None:
    with pytest.raises(ValueError, match=r"C = -1.0 is outside \(0, inf\)"):
        Logistic(-1.0)

"""Ridge from Gram matrices is scikit-learn's, fold by fold."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Slow

from targetdp._core import Floats
from targetdp.programs import Folds, Ridge


def slow(X: Floats, y: Floats, folds: Folds, alpha: float, weights: Floats | None = None) -> Floats:
    predicted = np.empty(len(X))
    for fitted, held_out in folds:
        model = Slow(alpha=alpha).fit(
            X[fitted], y[fitted], sample_weight=None if weights is None else weights[fitted]
        )
        predicted[held_out] = model.predict(X[held_out])
    return predicted


def table(n: int, d: int, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, 5 + X @ rng.standard_normal(d) + rng.standard_normal(n)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize(("n", "d", "k"), [(300, 10, 5), (40, 1, 7), (20, 50, 5), (2, 3, 2)])
def test_predictions_are_scikit_learns(n: int, d: int, k: int, alpha: float) -> None:
    X, y = table(n, d)
    folds = Folds(n, k)
    assert Ridge(alpha).predict(X, y, folds) == pytest.approx(slow(X, y, folds, alpha), abs=1e-8)


def test_weights_count_as_in_scikit_learn() -> None:
    X, y = table(200, 6)
    weights = np.random.default_rng(1).uniform(0.1, 5, 200)
    folds = Folds(200)
    assert Ridge().predict(X, y, folds, weights) == pytest.approx(slow(X, y, folds, 1.0, weights), abs=1e-8)
    assert np.abs(Ridge().predict(X, y, folds, weights) - Ridge().predict(X, y, folds)).max() > 1e-3


def test_columns_far_from_zero_keep_their_digits() -> None:
    X, y = table(500, 4)
    folds = Folds(500)
    far = X + np.array([1e6, -1e5, 0, 1e4])
    assert Ridge().predict(far, y + 1e6, folds) == pytest.approx(slow(X, y, folds, 1.0) + 1e6, abs=1e-6)


def test_constant_and_repeated_columns() -> None:
    X, y = table(60, 3)
    X = np.column_stack([X, np.full(60, 7.0), X[:, 0]])
    folds = Folds(60)
    assert Ridge().predict(X, y, folds) == pytest.approx(slow(X, y, folds, 1.0), abs=1e-8)


def test_features_without_information_predict_the_mean_of_the_others() -> None:
    y = np.arange(10.0)
    folds = Folds(10)
    predicted = Ridge().predict(np.zeros((10, 2)), y, folds)
    for fitted, held_out in folds:
        assert predicted[held_out] == pytest.approx(y[fitted].mean())


def test_the_penalty_must_be_positive() -> None:
    with pytest.raises(ValueError, match=r"alpha = 0.0 is outside \(0, inf\)"):
        Ridge(0.0)

"""Estimators by their path, and clear words about what is none; whose code may run: test_foreign_code.py."""

import importlib
import pickle
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from targetdp._core import Floats
from targetdp.programs import (
    Aid,
    Folds,
    Imported,
    Lending,
    Logistic,
    Ridge,
    Task,
    loans_at_rates,
    model_of,
    software_of,
)


def table(n: int = 120) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    y = X[:, 0] ** 2 + X[:, 1] + 0.1 * rng.standard_normal(n)
    return X, y, (y > 0.5).astype(np.float64)


def test_a_regressor_is_scikit_learns_with_the_folds_seed() -> None:
    X, y, _ = table()
    folds = Folds(len(X), seed=7)
    path, settings = "sklearn.ensemble.GradientBoostingRegressor", {"n_estimators": 5, "subsample": 0.5}
    expected = cross_val_predict(
        GradientBoostingRegressor(**settings, random_state=7), X, y, cv=list(folds)
    )  # fmt: skip
    assert (Imported(path, "regression", settings).predict(X, y, folds) == expected).all()
    other = Imported(path, "regression", settings | {"random_state": 8}).predict(X, y, folds)
    assert (other != expected).any()


def test_a_classifiers_probability() -> None:
    X, _, repaid = table()
    folds = Folds(len(X))
    expected = cross_val_predict(GaussianNB(), X, repaid, cv=list(folds), method="predict_proba")[:, 1]
    found = Imported("sklearn.naive_bayes.GaussianNB", "classification").predict(X, repaid, folds)
    assert found == pytest.approx(expected)


def test_programs_take_them() -> None:
    X, y, repaid = table()
    folds = Folds(len(X))
    trees = model_of("sklearn.tree.DecisionTreeRegressor", {"max_depth": 2}, "regression")
    result = Aid(np.exp(y), model=trees).evaluate(X, folds, np.random.default_rng(0))
    assert result.ties > 0  # a small tree gives many people the same prediction
    bayes = model_of("sklearn.naive_bayes.GaussianNB", {}, "classification")
    money = loans_at_rates(np.ones(len(X)), revenue=0.1, interest=0.0)
    assert Lending(repaid, money, model=bayes).evaluate(X, folds)["accuracy"] > 0.6


def test_weights_go_where_they_are_taken() -> None:
    X, y, _ = table()
    weights = np.random.default_rng(1).uniform(0.1, 5, len(X))
    folds = Folds(len(X))
    tree = Imported("sklearn.tree.DecisionTreeRegressor", "regression", {"max_depth": 2})
    assert (tree.predict(X, y, folds, weights) != tree.predict(X, y, folds)).any()
    neighbors = Imported("sklearn.neighbors.KNeighborsRegressor", "regression")
    with pytest.raises(ValueError, match="takes no weights: leave weights out"):
        neighbors.predict(X, y, folds, weights)


def test_folds_of_one_class_are_that_class() -> None:
    X, _, _ = table(20)
    y = np.ones(20)
    found = Imported("sklearn.naive_bayes.GaussianNB", "classification").predict(X, y, Folds(20))
    assert (found == 1).all()


def test_built_in_names() -> None:
    assert model_of("ridge", {"alpha": 2.0}, "regression") == Ridge(2.0)
    assert model_of("logistic", {}, "classification") == Logistic()
    assert model_of("ridge", {}, "regression").record() == {"estimator": "ridge", "alpha": 1.0}
    forest = model_of("sklearn.ensemble.RandomForestRegressor", {"n_estimators": 3}, "regression")
    assert forest.record() == {"estimator": "sklearn.ensemble.RandomForestRegressor", "n_estimators": 3}
    assert pickle.loads(pickle.dumps(forest)) == forest  # noqa: S301 (our own bytes)


@pytest.mark.parametrize(
    ("path", "task", "settings", "message"),
    [
        ("forest", "regression", {}, "estimator = 'forest' is no import path: give a path such as sklearn"),
        (".ensemble.X", "regression", {}, "is no import path"),
        ("sklearn.no_such_module.Model", "regression", {}, "cannot be imported .*no_such_module"),
        ("sklearn.ensemble.Missing", "regression", {}, "sklearn.ensemble has no Missing"),
        ("sklearn.base.BaseEstimator", "regression", {}, "is not a regressor"),
        ("sklearn.metrics.r2_score", "regression", {}, "is not a scikit-learn estimator"),
        ("sklearn.naive_bayes.GaussianNB", "regression", {}, "is not a regressor: this program needs one"),
        ("sklearn.linear_model.Ridge", "classification", {}, "is not a classifier"),
        ("sklearn.pipeline.Pipeline", "regression", {}, "cannot be made with these .* argument: 'steps'"),
        ("sklearn.svm.LinearSVC", "classification", {}, "has no probabilities"),
        ("sklearn.linear_model.RANSACRegressor", "regression", {"estimator": "ridge"}, "is not a regressor"),
        (
            "sklearn.linear_model.Lasso",
            "regression",
            {"beta": 1},
            "names beta: sklearn.linear_model.Lasso knows",
        ),
        ("ridge", "regression", {"beta": 1}, "estimator_settings names beta: ridge knows alpha"),
        (
            "ridge",
            "classification",
            {},
            "'ridge' is for regression: this program needs classification, such as",
        ),
        ("ridge", "regression", {"alpha": -1.0}, r"alpha = -1.0 is outside \(0, inf\)"),
    ],
)
def test_what_is_no_estimator(path: str, task: Task, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_of(path, settings, task)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(:\n", r"cannot be imported \(SyntaxError"),
        ("1 / 0\n", r"cannot be imported \(ZeroDivisionError: division by zero\)"),
    ],
)
def test_a_module_that_fails_is_named(
    source: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "failing_models.py").write_text(source)
    with pytest.raises(ValueError, match=message):
        model_of("failing_models.Mine", {}, "regression", allow_code=True)


def test_what_a_model_depends_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package counts by its version, a file of one's own by what is in it."""
    assert software_of(Ridge()) == software_of(Logistic()) == {}
    forest = Imported("sklearn.ensemble.RandomForestRegressor", "regression")
    assert software_of(forest) == {"scikit-learn": version("scikit-learn")}
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = []
    for note in ("one", "another", "one"):
        (tmp_path / "own_models.py").write_text(
            f"# {note}\nfrom sklearn.linear_model import Ridge\nclass Mine(Ridge):\n    pass\n"
        )
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, "own_models", raising=False)
        found.append(software_of(Imported("own_models.Mine", "regression", allow_code=True)))
    monkeypatch.delitem(sys.modules, "own_models")
    assert list(found[0]) == ["own_models"]
    assert found[0] == found[2] != found[1]

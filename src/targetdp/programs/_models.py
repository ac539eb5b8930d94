"""Models that predict an outcome: ridge and logistic regression, and any estimator of scikit-learn."""

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.metadata import distribution, packages_distributions, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from scipy.special import expit

from targetdp._core import Floats, Integers, check
from targetdp.programs._base import Model, Task
from targetdp.programs._people import Folds, set_fields

_USUAL = "1 is scikit-learn's default"

# Cross-validated ridge regression from Gram matrices: one pass over the table for all folds.
#
# Each part's share of XᵀX and Xᵀy is computed once; what a fold is fitted on is the sum less its own share.


@dataclass(frozen=True)
class Ridge:
    """Least squares with a penalty α‖w‖² on the weights and none on the intercept.

    The minimum of Σᵢ cᵢ(yᵢ − ⟨w, xᵢ⟩ − b)² + α‖w‖², cᵢ being person i's weight: scikit-learn's
    ``Ridge(alpha)``, equal to 1e-8 of the target's size. Columns are taken as they are: the original rows
    were scaled before (`normalize`), and a private table must be treated exactly as the original one is.

    Args:
        alpha: α, above 0.

    Raises:
        ValueError: ``alpha`` is not above 0.

    Example:
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> predicted = Ridge().predict(X, X @ [1.0, 2.0], Folds(100))
        >>> bool(np.corrcoef(predicted, X @ [1.0, 2.0])[0, 1] > 0.999)
        True
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        set_fields(self, alpha=check.number("alpha", self.alpha, above=0, remedy=_USUAL))

    def record(self) -> dict[str, object]:
        """Plain data."""
        return {"estimator": "ridge", "alpha": self.alpha}

    def predict(self, X: Floats, y: Floats, folds: Folds, weights: Floats | None = None) -> Floats:
        """Each person's prediction by the model that was fitted without her part."""
        d = X.shape[1]
        middle, level = X.mean(axis=0), float(y.mean())
        table = np.empty((len(X), d + 2))  # features, target and ones: one product holds every sum there is
        table[:, :d] = X[folds.order]
        table[:, :d] -= middle  # columns far from zero would lose digits in their squares
        table[:, d] = y[folds.order] - level
        table[:, d + 1] = 1.0
        counted = table if weights is None else table * weights[folds.order, None]
        shares = np.stack([table[a:b].T @ counted[a:b] for a, b in folds.ranges()])
        fitted_on = shares.sum(axis=0) - shares
        total = fitted_on[:, -1, -1][:, None, None]
        sums = fitted_on[:, :-1, -1:]
        centered = fitted_on[:, :-1, :-1] - sums @ sums.transpose(0, 2, 1) / total
        slopes = np.linalg.solve(centered[:, :d, :d] + self.alpha * np.eye(d), centered[:, :d, d:])[:, :, 0]
        means = sums[:, :, 0] / total[:, 0]
        intercepts = means[:, d] - np.einsum("fj,fj->f", means[:, :d], slopes)
        predicted = np.empty(len(X))
        for (begin, end), slope, intercept in zip(folds.ranges(), slopes, intercepts, strict=True):
            predicted[folds.order[begin:end]] = table[begin:end, :d] @ slope + (intercept + level)
        return predicted


# Cross-validated logistic regression by Newton's method, with what the folds share computed once.
#
# The fit to all people comes first, roughly. There, one pass gives each part's share of gradient and Hessian,
# so that every fold's first Newton step costs nothing more; then each fold walks the short rest alone.

_STEPS = 100
_NEAR, _ENOUGH = 1e-2, 2e-4
"""Largest change of anyone's log-odds in the last step, for the shared start and at the end.

While log-odds change by m, the curvature changes by a factor of at most e^m, so that what is left after a
Newton step of m is about m²: 4e-8 in log-odds.
"""


@dataclass(frozen=True)
class Logistic:
    """Logistic regression with scikit-learn's penalty: the minimum of ½‖w‖² + C·Σᵢ cᵢ·lossᵢ.

    cᵢ is person i's weight; the intercept is free. Probabilities equal those of ``LogisticRegression(C)`` to
    1e-6, if that is run to convergence (by default it stops earlier).

    Args:
        C: What the losses count against the penalty, above 0.

    Raises:
        ValueError: ``C`` is not above 0.

    Edges: where everybody (or nobody) of a fold's people repaid, there is no finite intercept; the limit is
    taken, a probability of 1 (or 0) for all.

    Example:
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> repaid = (X[:, 0] > 0).astype(float)
        >>> chances = Logistic().predict(X, repaid, Folds(100))
        >>> bool(((chances > 0.5) == (repaid == 1)).mean() > 0.9)
        True
    """

    C: float = 1.0

    def __post_init__(self) -> None:
        set_fields(self, C=check.number("C", self.C, above=0, remedy=_USUAL))

    def record(self) -> dict[str, object]:
        """Plain data."""
        return {"estimator": "logistic", "C": self.C}

    def predict(self, X: Floats, y: Floats, folds: Folds, weights: Floats | None = None) -> Floats:
        """Each person's probability by the model that was fitted without her part."""
        n, d = X.shape
        if y.min() == y.max():
            return np.full(n, float(y[0]))
        table = np.ones((n, d + 1))
        table[:, :d] = X[folds.order]
        signs = 2 * y[folds.order] - 1
        counts = np.full(n, self.C) if weights is None else self.C * weights[folds.order]
        start = _State(table, signs, counts, np.zeros(d + 1), np.zeros(n)).settled(_NEAR)
        shares = [start.of(slice(a, b)).slopes() for a, b in folds.ranges()]
        gradient = np.sum([g for g, _ in shares], axis=0)
        hessian = np.sum([h for _, h in shares], axis=0)
        predicted = np.empty(n)
        for (begin, end), (own_gradient, own_hessian) in zip(folds.ranges(), shares, strict=True):
            rest = start.of(np.r_[:begin, end:n])
            if abs(rest.signs.sum()) == len(rest.signs):
                chances = np.full(end - begin, float(rest.signs[0] > 0))
            else:
                step = start.newton(gradient - own_gradient, hessian - own_hessian)
                chances = expit(table[begin:end] @ rest.settled(_ENOUGH, step).weight)
            predicted[folds.order[begin:end]] = chances
        return predicted


@dataclass(frozen=True)
class _State:
    """Where a fit stands: the weights so far and the log-odds that they give.

    Rows have a last column of ones; ``signs`` is ±1 for the outcome, ``counts`` what a person's loss counts.
    """

    table: Floats
    signs: Floats
    counts: Floats
    weight: Floats
    odds: Floats

    def of(self, rows: slice | Integers) -> Self:
        """The same for some of the people."""
        table, signs = self.table[rows], self.signs[rows]
        return replace(self, table=table, signs=signs, counts=self.counts[rows], odds=self.odds[rows])

    def settled(self, enough: float, step: Floats | None = None) -> Self:
        """The minimum, by Newton's method; ``step`` is the first one, if it is known already."""
        here, loss = self, None
        for _ in range(_STEPS):
            step = here.newton(*here.slopes()) if step is None else step
            moves = here.table @ step
            moved = float(np.abs(moves).max())
            there = here._moved(step, moves)
            if moved > 1:  # far from the minimum: only go where it gets better
                loss = here.loss() if loss is None else loss
                while (better := there.loss()) > loss and moved > enough:
                    step, moves, moved = step / 2, moves / 2, moved / 2
                    there = here._moved(step, moves)
                loss = better
            else:
                loss = None
            if moved <= enough:
                return there
            here, step = there, None
        raise ValueError(
            f"logistic regression found no minimum in {_STEPS} steps: scale the features first, or lower C"
        )

    def newton(self, gradient: Floats, hessian: Floats) -> Floats:
        """Newton's step for slopes of the losses: the penalty is added here."""
        penalty = np.ones(len(self.weight))
        penalty[-1] = 0.0
        return np.asarray(-np.linalg.solve(hessian + np.diag(penalty), gradient + penalty * self.weight))

    def slopes(self) -> tuple[Floats, Floats]:
        """Gradient and Hessian of the losses."""
        wrong = expit(-self.signs * self.odds)
        pull = self.counts * wrong
        curvature = (pull * (1 - wrong))[:, None]
        return -((pull * self.signs) @ self.table), self.table.T @ (self.table * curvature)

    def loss(self) -> float:
        """What is minimized."""
        losses = np.logaddexp(0.0, -self.signs * self.odds)
        return 0.5 * float(self.weight[:-1] @ self.weight[:-1]) + float(self.counts @ losses)

    def _moved(self, step: Floats, moves: Floats) -> Self:
        return replace(self, weight=self.weight + step, odds=self.odds + moves)


# Any scikit-learn estimator, by the path that it is imported from.

BUILT_IN: Mapping[str, tuple[Task, type[Ridge] | type[Logistic]]] = MappingProxyType(
    {"ridge": ("regression", Ridge), "logistic": ("classification", Logistic)}
)
"""The paper's two, by name; much faster than scikit-learn's own, with the same predictions."""


@dataclass(frozen=True)
class Imported:
    """A scikit-learn estimator: a regressor's prediction, or a classifier's probability of the higher class.

    A setting ``random_state`` that is left out is the folds' seed: every release meets the same model.

    Args:
        path: What it is imported from, such as ``"sklearn.svm.SVR"``.
        task: ``"regression"`` or ``"classification"``.
        settings: Its keyword settings.

    Raises:
        ValueError: There is no such estimator, it is for another task, or it does not know a setting.

    Example:
        >>> Imported("sklearn.svm.SVR", "regression", {"C": 2.0}).record()
        {'estimator': 'sklearn.svm.SVR', 'C': 2.0}
    """

    path: str
    task: Task
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check.choice("task", self.task, ("regression", "classification"))
        kind = _class_at(self.path)
        _check_settings(self.path, kind, self.settings)
        try:
            model = kind(**self.settings)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"estimator = {self.path!r} cannot be made with these estimator_settings: {error}"
            ) from error
        _must_do(self.path, model, self.task)
        set_fields(self, settings=dict(self.settings))

    def record(self) -> dict[str, object]:
        """Plain data."""
        return {"estimator": self.path, **self.settings}

    def predict(self, X: Floats, y: Floats, folds: Folds, weights: Floats | None = None) -> Floats:
        """Each person's score by a model that was fitted without her part."""
        kind = _class_at(self.path)
        takes_weights = "sample_weight" in inspect.signature(kind.fit).parameters
        if weights is not None and not takes_weights:
            raise ValueError(
                f"estimator = {self.path!r} takes no weights: leave weights out, or use another one"
            )
        seeded = {"random_state": folds.seed} if "random_state" in inspect.signature(kind).parameters else {}
        predicted = np.empty(len(X))
        for fitted, held_out in folds:
            if self.task == "classification" and len(set(y[fitted].tolist())) == 1:
                predicted[held_out] = y[fitted[0]]  # nothing to tell apart: an estimator would refuse
                continue
            model = kind(**(seeded | dict(self.settings)))
            extra = {} if weights is None else {"sample_weight": weights[fitted]}
            model.fit(X[fitted], y[fitted], **extra)
            predicted[held_out] = (
                model.predict_proba(X[held_out])[:, 1]
                if self.task == "classification"
                else np.reshape(model.predict(X[held_out]), -1)
            )
        return predicted


def model_of(estimator: str, settings: Mapping[str, Any], task: Task) -> Model:
    """The model that a program file names.

    Args:
        estimator: ``"ridge"``, ``"logistic"``, or the path of a scikit-learn estimator.
        settings: Its keyword settings.
        task: ``"regression"`` or ``"classification"``.

    Returns:
        The model.

    Raises:
        ValueError: There is no such estimator, it is for another task, or it does not know a setting.

    Example:
        >>> model_of("ridge", {"alpha": 2.0}, "regression")
        Ridge(alpha=2.0)
    """
    if estimator not in BUILT_IN:
        return Imported(estimator, task, settings)
    made_for, kind = BUILT_IN[estimator]
    if made_for != task:
        other = next(name for name, (fits, _) in BUILT_IN.items() if fits == task)
        raise ValueError(
            f"estimator = {estimator!r} is for {made_for}: this program needs {task}, such as {other}"
        )
    _check_settings(estimator, kind, settings)
    return kind(**settings)


def _check_settings(estimator: str, kind: type, settings: Mapping[str, Any]) -> None:
    known = list(inspect.signature(kind).parameters)
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise ValueError(
            f"estimator_settings names {', '.join(unknown)}: {estimator} knows "
            f"{', '.join(known) or 'no settings'}"
        )


def software_of(model: Model) -> dict[str, str]:
    """What a model's predictions depend on beside this package.

    Args:
        model: Any model.

    Returns:
        For each package its version or, of a module of one's own, the hash of its source.

    Example:
        >>> software_of(Ridge())
        {}
        >>> list(software_of(Imported("sklearn.svm.SVR", "regression")))
        ['scikit-learn']

    Edges: of a module that belongs to no installed package its own file counts, not what that imports.
    """
    kind = _class_at(model.path) if isinstance(model, Imported) else type(model)
    module = (model.path if isinstance(model, Imported) else kind.__module__).partition(".")[0]
    if module == __name__.partition(".")[0]:
        return {}
    try:
        file = Path(inspect.getfile(kind)).resolve()
        # A module of one's own may have the name of an installed one, and an editable package has no version
        # that says what is in it: only what lies among the installed packages counts by its version.
        packages = [
            name for name in packages_distributions().get(module, ())
            if file.is_relative_to(Path(str(distribution(name).locate_file(""))).resolve())
        ]  # fmt: skip
        if packages:
            return {name: version(name) for name in packages}
        return {module: f"sha256 {hashlib.sha256(file.read_bytes()).hexdigest()}"}
    except (OSError, TypeError):  # typed at a prompt
        return {module: "unknown"}


def _class_at(path: str) -> Any:
    module, _, name = path.rpartition(".")
    example = "give a path such as sklearn.ensemble.GradientBoostingRegressor, or ridge or logistic"
    if not (module and all(part.isidentifier() for part in path.split("."))):
        raise ValueError(f"estimator = {path!r} is no import path: {example}")
    try:
        estimator = getattr(import_module(module), name, None)
    except Exception as error:  # importing runs somebody's code, which may fail in any way
        raise ValueError(
            f"estimator = {path!r} cannot be imported ({type(error).__name__}: {error}): {example}"
        ) from error
    if estimator is None:
        raise ValueError(f"estimator = {path!r}: {module} has no {name}; {example}")
    from sklearn.base import BaseEstimator  # noqa: PLC0415 (a second to import, and often not needed)

    if not (isinstance(estimator, type) and issubclass(estimator, BaseEstimator)):
        raise ValueError(f"estimator = {path!r} is not a scikit-learn estimator: {example}")  # noqa: TRY004
    return estimator


def _must_do(path: str, model: Any, task: Task) -> None:
    from sklearn.base import is_classifier, is_regressor  # noqa: PLC0415

    fits = is_regressor(model) if task == "regression" else is_classifier(model)
    if not fits:
        other = "regressor" if task == "regression" else "classifier"
        raise ValueError(f"estimator = {path!r} is not a {other}: this program needs one")
    if task == "classification" and not hasattr(model, "predict_proba"):
        raise ValueError(
            f"estimator = {path!r} has no probabilities (predict_proba) with these settings: this program "
            "needs them"
        )

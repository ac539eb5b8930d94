"""Any scikit-learn estimator, by the path that it is imported from."""

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import distribution, packages_distributions, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from targetdp._core import Floats, check
from targetdp.programs._base import Model, Task
from targetdp.programs._models import Logistic, Ridge
from targetdp.programs._people import Folds

BUILT_IN: Mapping[str, tuple[Task, type[Ridge] | type[Logistic]]] = MappingProxyType(
    {"ridge": ("regression", Ridge), "logistic": ("classification", Logistic)}
)
"""The paper's two, by name; much faster than scikit-learn's own, with the same predictions."""


@dataclass(frozen=True)
class Imported:
    """A scikit-learn estimator: a regressor's prediction, or a classifier's probability of the higher class.

    A setting ``random_state`` that is left out is the folds' seed: every release meets the same model.
    """

    path: str
    task: Task
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check.choice("task", self.task, ("regression", "classification"))
        kind = _class_at(self.path)
        known = list(inspect.signature(kind).parameters)
        unknown = sorted(set(self.settings) - set(known))
        if unknown:
            raise ValueError(
                f"estimator_settings names {', '.join(unknown)}: {self.path} knows "
                f"{', '.join(known) or 'no settings'}"
            )
        try:
            model = kind(**self.settings)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"estimator = {self.path!r} cannot be made with these estimator_settings: {error}"
            ) from error
        _must_do(self.path, model, self.task)
        object.__setattr__(self, "settings", dict(self.settings))

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
    """The model that a program file names: ``ridge``, ``logistic``, or a path such as sklearn.svm.SVR."""
    if estimator not in BUILT_IN:
        return Imported(estimator, task, settings)
    made_for, kind = BUILT_IN[estimator]
    if made_for != task:
        other = next(name for name, (fits, _) in BUILT_IN.items() if fits == task)
        raise ValueError(
            f"estimator = {estimator!r} is for {made_for}: this program needs {task}, such as {other}"
        )
    known = list(inspect.signature(kind).parameters)
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise ValueError(
            f"estimator_settings names {', '.join(unknown)}: {estimator} knows {', '.join(known)}"
        )
    return kind(**settings)


def software_of(model: Model) -> dict[str, str]:
    """What a model's predictions depend on beside this package: a package's version, or its own source.

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
        found = getattr(import_module(module), name, None)
    except Exception as error:  # importing runs somebody's code, which may fail in any way
        raise ValueError(
            f"estimator = {path!r} cannot be imported ({type(error).__name__}: {error}): {example}"
        ) from error
    if found is None:
        raise ValueError(f"estimator = {path!r}: {module} has no {name}; {example}")
    from sklearn.base import BaseEstimator  # noqa: PLC0415 (a second to import, and often not needed)

    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        raise ValueError(f"estimator = {path!r} is not a scikit-learn estimator: {example}")  # noqa: TRY004
    return found


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

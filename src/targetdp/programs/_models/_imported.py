"""Estimators that a program file names: ours, and those of scikit-learn and LightGBM by their path.

A program file may come from anybody, and importing a module runs it. So a path is held against the packages
that are known here before anything is imported, and the file itself cannot change that: whoever runs it can
(``allow_code``). Settings are held to plain words, since LightGBM puts all of its own into one line, in which
a space begins another setting: one that names a file to read, or a machine to talk to.
"""

import hashlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from targetdp._core import Floats, check
from targetdp._files import shown
from targetdp.programs._base import Model, Task
from targetdp.programs._models._linear import Logistic, Ridge
from targetdp.programs._people import Folds, set_fields

BUILT_IN: Mapping[str, tuple[Task, type[Ridge] | type[Logistic]]] = MappingProxyType(
    {"ridge": ("regression", Ridge), "logistic": ("classification", Logistic)}
)
"""The paper's two, by name; much faster than scikit-learn's own, with the same predictions."""

PACKAGES: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {"sklearn": ("scikit-learn", {}), "lightgbm": ("lightgbm", {"verbosity": -1})}
)
"""Whose estimators a program file may name: what the package is installed as, and what keeps it quiet."""

_EXAMPLE = "give a path such as sklearn.ensemble.GradientBoostingRegressor, or ridge or logistic"
_ALLOW = "read that code and, if you trust it, allow it with --allow-code (in Python: allow_code=True)"
_WORD = re.compile(r"[A-Za-z0-9_+-]{1,60}")


@dataclass(frozen=True)
class Imported:
    """An estimator by its path: a regressor's prediction, or a classifier's probability of the higher class.

    A setting ``random_state`` that is left out is the folds' seed: every release meets the same model.

    Args:
        path: What it is imported from, such as ``"sklearn.svm.SVR"``.
        task: ``"regression"`` or ``"classification"``.
        settings: Its keyword settings.
        allow_code: Whether it may be of another package than scikit-learn and LightGBM; importing it runs
            that code. Its settings may be any text then.

    Raises:
        ValueError: There is no such estimator, it is for another task, it does not know a setting, or it
            would run code that nobody allowed.

    Guarantees: without ``allow_code`` nothing is imported but scikit-learn and LightGBM, as installed.

    Example:
        >>> Imported("sklearn.svm.SVR", "regression", {"C": 2.0}).record()
        {'estimator': 'sklearn.svm.SVR', 'C': 2.0}
    """

    path: str
    task: Task
    settings: Mapping[str, Any] = field(default_factory=dict)
    allow_code: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check.choice("task", self.task, ("regression", "classification"))
        kind = self.estimator_class()
        _check_settings(self.path, kind, self.settings)
        if not self.allow_code:
            _must_be_words(self.path, self.settings)
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

    def estimator_class(self) -> Any:
        """The class at the path, imported."""
        return _class_at(self.path, allow_code=self.allow_code)

    def predict(self, X: Floats, y: Floats, folds: Folds, weights: Floats | None = None) -> Floats:
        """Each person's score by a model that was fitted without her part."""
        kind = self.estimator_class()
        takes_weights = "sample_weight" in inspect.signature(kind.fit).parameters
        if weights is not None and not takes_weights:
            raise ValueError(
                f"estimator = {self.path!r} takes no weights: leave weights out, or use another one"
            )
        seeded = {"random_state": folds.seed} if "random_state" in inspect.signature(kind).parameters else {}
        _, quiet = PACKAGES.get(_package(self.path), ("", {}))
        predicted = np.empty(len(X))
        for fitted, held_out in folds:
            if self.task == "classification" and len(set(y[fitted].tolist())) == 1:
                predicted[held_out] = y[fitted[0]]  # nothing to tell apart: an estimator would refuse
                continue
            model = kind(**(seeded | dict(quiet) | dict(self.settings)))
            extra = {} if weights is None else {"sample_weight": weights[fitted]}
            model.fit(X[fitted], y[fitted], **extra)
            predicted[held_out] = (
                model.predict_proba(X[held_out])[:, 1]
                if self.task == "classification"
                else np.reshape(model.predict(X[held_out]), -1)
            )
        return predicted


def model_of(estimator: str, settings: Mapping[str, Any], task: Task, *, allow_code: bool = False) -> Model:
    """The model that a program file names.

    Args:
        estimator: ``"ridge"``, ``"logistic"``, or the path of an estimator of scikit-learn or LightGBM.
        settings: Its keyword settings.
        task: ``"regression"`` or ``"classification"``.
        allow_code: Whether it may be any other estimator, too; importing it runs its code.

    Returns:
        The model.

    Raises:
        ValueError: There is no such estimator, it is for another task, it does not know a setting, or it
            would run code that nobody allowed.

    Example:
        >>> model_of("ridge", {"alpha": 2.0}, "regression")
        Ridge(alpha=2.0)
    """
    if estimator not in BUILT_IN:
        return Imported(estimator, task, settings, allow_code=allow_code)
    made_for, kind = BUILT_IN[estimator]
    if made_for != task:
        raise ValueError(
            f"estimator = {estimator!r} is for {made_for}: this program needs {task}, such as "
            f"{usual_estimator(task)}"
        )
    _check_settings(estimator, kind, settings)
    return kind(**settings)


def usual_estimator(task: Task) -> str:
    """Our own estimator for a task, by its name."""
    return next(name for name, (fits, _) in BUILT_IN.items() if fits == task)


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
    kind = model.estimator_class() if isinstance(model, Imported) else type(model)
    module = _package(model.path if isinstance(model, Imported) else kind.__module__)
    if module == _package(__name__):
        return {}
    try:
        file = Path(inspect.getfile(kind)).resolve()
        # A module of one's own may have the name of an installed one, and an editable package has no version
        # that says what is in it: only what lies among the installed packages counts by its version.
        packages = [
            name for name in packages_distributions().get(module, ()) if file.is_relative_to(_home_of(name))
        ]
        if packages:
            return {name: version(name) for name in packages}
        return {module: f"sha256 {hashlib.sha256(file.read_bytes()).hexdigest()}"}
    except (OSError, TypeError):  # typed at a prompt
        return {module: "unknown"}


# Whose code may run: decided by the name alone, before anything is imported.


def _class_at(path: str, *, allow_code: bool) -> Any:
    module, _, name = path.rpartition(".")
    if not (module and all(part.isidentifier() for part in path.split("."))):
        raise ValueError(f"estimator = {path!r} is no import path: {_EXAMPLE}")
    if not allow_code:
        _must_be_known(path)
    try:
        estimator = getattr(import_module(module), name, None)
    except Exception as error:  # importing runs somebody's code, which may fail in any way
        raise ValueError(
            f"estimator = {path!r} cannot be imported ({type(error).__name__}: {error}): {_EXAMPLE}"
        ) from error
    if estimator is None:
        raise ValueError(f"estimator = {path!r}: {module} has no {name}; {_EXAMPLE}")
    from sklearn.base import BaseEstimator  # noqa: PLC0415 (a second to import, and often not needed)

    if not (isinstance(estimator, type) and issubclass(estimator, BaseEstimator)):
        raise ValueError(f"estimator = {path!r} is not a scikit-learn estimator: {_EXAMPLE}")  # noqa: TRY004
    if not allow_code and _package(estimator.__module__) != _package(path):
        raise ValueError(f"estimator = {path!r} is of {estimator.__module__}: name it there; {_EXAMPLE}")
    return estimator


def _must_be_known(path: str) -> None:
    """Refuse a path into any other package, and a file that only has the name of a known one."""
    package = _package(path)
    if package not in PACKAGES:
        raise ValueError(
            f"estimator = {path!r} would run code that came with the program file: unless told otherwise, "
            f"only estimators of scikit-learn (sklearn.…) and LightGBM (lightgbm.…) are loaded; {_ALLOW}"
        )
    spec = find_spec(package)
    if spec is None:
        return  # there is nothing of that name, as the next step will say
    installed_as, _ = PACKAGES[package]
    try:
        home = _home_of(installed_as)
    except PackageNotFoundError:
        home = None
    # A folder without an __init__.py has no origin, and is no package that anybody installed.
    if home is None or spec.origin is None or not Path(spec.origin).resolve().is_relative_to(home):
        raise ValueError(
            f"estimator = {path!r} would run {spec.origin or package}, which is not {installed_as} as it is "
            f"installed: it may be code that came with the program file; {_ALLOW}"
        )


def _package(path: str) -> str:
    return path.partition(".")[0]


def _home_of(installed_as: str) -> Path:
    """The folder that a package was installed into."""
    return Path(str(distribution(installed_as).locate_file(""))).resolve()


def _check_settings(estimator: str, kind: type, settings: Mapping[str, Any]) -> None:
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    known = [name for name, one in inspect.signature(kind).parameters.items() if one.kind not in several]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise ValueError(
            f"estimator_settings names {', '.join(unknown)}: {estimator} knows "
            f"{', '.join(known) or 'no settings'}"
        )


def _must_be_words(path: str, settings: Mapping[str, Any]) -> None:
    """Refuse text that could be more than the name of a choice."""
    for name, value in settings.items():
        if isinstance(value, str) and not _WORD.fullmatch(value):
            raise ValueError(
                f"estimator_settings.{name} = {shown(value)} is not one word of at most 60 letters, digits, "
                f"_, + or -: {path} needs no other, and other text could name files, machines or code; "
                "correct it, or allow any text with --allow-code (in Python: allow_code=True)"
            )


def _must_do(path: str, model: Any, task: Task) -> None:
    from sklearn.base import is_classifier, is_regressor  # noqa: PLC0415

    try:
        fits = is_regressor(model) if task == "regression" else is_classifier(model)
    except AttributeError:  # it asks an estimator inside it, which is none
        fits = False
    if not fits:
        other = "regressor" if task == "regression" else "classifier"
        raise ValueError(f"estimator = {path!r} is not a {other}: this program needs one")
    if task == "classification" and not hasattr(model, "predict_proba"):
        raise ValueError(
            f"estimator = {path!r} has no probabilities (predict_proba) with these settings: this program "
            "needs them"
        )

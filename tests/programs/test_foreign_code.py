"""A program file runs nobody's code: estimators are of known packages, unless whoever runs it allows more."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils import all_estimators
from sklearn.utils._param_validation import StrOptions

from support.release import cli, words
from support.tradeoff import files
from targetdp.programs import (
    Folds,
    model_of,
    open_program,
    read_decision_rule,
    read_program_file,
)
from targetdp.programs._models._imported import PACKAGES, _must_be_words
from targetdp.programs._settings import make_program_settings
from targetdp.tradeoff import find_sweep

MODEL = """
from pathlib import Path
from sklearn.linear_model import Ridge
Path({mark!r}).touch()
class Model(Ridge):
    def __init__(self, alpha=1.0, note=""):
        super().__init__(alpha)
        self.note = note
"""


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a module leaves behind that is imported; it lies beside the program file, ready to be found."""
    found = tmp_path / "imported"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "beside_the_file.py").write_text(MODEL.format(mark=str(found)), encoding="utf-8")
    monkeypatch.delitem(sys.modules, "beside_the_file", raising=False)
    return found


def program(folder: Path, **more: Any) -> Path:
    return files(folder, estimator="beside_the_file.Model", **more)


READERS: dict[str, Callable[[Path], Any]] = {
    "read": read_program_file,
    "open": open_program,
    "sweep": lambda path: find_sweep(str(path)),
}


@pytest.mark.parametrize("reader", READERS)
def test_nothing_that_a_file_names_is_imported(reader: str, tmp_path: Path, mark: Path) -> None:
    with pytest.raises(
        ValueError, match=r"estimator = 'beside_the_file\.Model' would run code that came wi"
    ) as no:
        READERS[reader](program(tmp_path))
    assert "allow it with --allow-code (in Python: allow_code=True)" in str(no.value)
    assert str(tmp_path / "program.toml") in str(no.value)
    assert not mark.exists()
    assert "beside_the_file" not in sys.modules


def test_whoever_runs_it_can_allow_it(tmp_path: Path, mark: Path) -> None:
    own: dict[str, Any] = {
        "estimator_settings.alpha": 2.0,
        "estimator_settings.note": "any text = /may/be.here",
    }
    path = program(tmp_path, **own)
    opened = open_program(path, allow_code=True)
    assert mark.exists()
    alike: dict[str, Any] = {"estimator_settings.alpha": 2.0}
    ridge = open_program(files(tmp_path, estimator="ridge", **alike))
    found, expected = (
        one.program.model.predict(one.rows, one.program.outcomes, one.folds) for one in (opened, ridge)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    sweep = find_sweep(str(program(tmp_path)), allow_code=True)
    assert "beside_the_file" in sweep.made_of["software"]


@pytest.mark.parametrize("said", ["allow_code", "_allow_code", "allow-code", "context.allow_code"])
def test_a_file_cannot_allow_itself(said: str, tmp_path: Path, mark: Path) -> None:
    with pytest.raises(ValueError, match="is no field"):
        read_program_file(program(tmp_path, **{said: True}))
    assert not mark.exists()


def test_learning_and_allocating_look_at_no_estimator(tmp_path: Path, mark: Path) -> None:
    settings = read_decision_rule(program(tmp_path, **{"estimator_settings.whatever": 1}))
    assert settings.model().record() == {"estimator": "ridge", "alpha": 1.0}
    assert not mark.exists()


def test_the_command_asks_for_the_flag(tmp_path: Path, mark: Path) -> None:
    given = (program(tmp_path), "--out", tmp_path / "results", "--quick", "--simulations", "1", "--jobs", "1")
    refused = cli("tradeoff", *given)
    assert refused.code == 2
    assert "would run code that came with the program file" in words(refused.err)
    assert "allow it with --allow-code" in words(refused.err)
    assert not mark.exists()
    assert not (tmp_path / "results").exists()
    allowed = cli("tradeoff", *given, "--allow-code")
    assert allowed.code == 0, allowed.err
    assert mark.exists()


@pytest.mark.parametrize("path", ["this.Model", "antigravity.Model", "os.path.Model", "sklearnex.svm.SVR"])
def test_a_path_is_refused_before_anything_is_imported(path: str) -> None:
    """In a process of its own: what another test has imported says nothing."""
    script = (
        "import sys\n"
        "from targetdp.programs import model_of\n"
        f"before = set(sys.modules)\n"
        f"try:\n    model_of({path!r}, {{}}, 'regression')\n"
        "except ValueError as error:\n    print(error)\n"
        "print(sorted(set(sys.modules) - before))"
    )
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    said, imported = run.stdout.splitlines()
    assert f"estimator = {path!r} would run code" in said
    assert imported == "[]"


# LightGBM, which need not be installed: a package of that name, made here

LIGHTGBM = """
from pathlib import Path
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
Path({mark!r}).touch()
class LGBMRegressor(RegressorMixin, BaseEstimator):
    def __init__(self, *, boosting_type="gbdt", random_state=None, **kwargs):
        self.boosting_type, self.random_state, self.others = boosting_type, random_state, kwargs
    def fit(self, X, y):
        assert self.others == {{"verbosity": -1}}, "it would print beside our own figures"
        self.model_ = Ridge().fit(X, y)
        return self
    def predict(self, X):
        return self.model_.predict(X)
"""


@pytest.fixture
def lightgbm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are found in, with a module of LightGBM's name, and nothing installed there."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in [name for name in sys.modules if name.partition(".")[0] == "lightgbm"]:
        monkeypatch.delitem(sys.modules, name)
    package = tmp_path / "lightgbm"
    package.mkdir()
    (package / "__init__.py").write_text(LIGHTGBM.format(mark=str(tmp_path / "imported")), encoding="utf-8")
    yield tmp_path
    sys.modules.pop("lightgbm", None)


def install(folder: Path) -> None:
    facts = folder / "lightgbm-4.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: lightgbm\nVersion: 4.0\n", encoding="utf-8")


def test_lightgbm_as_it_is_installed(lightgbm: Path) -> None:
    install(lightgbm)
    model = model_of("lightgbm.LGBMRegressor", {"boosting_type": "dart"}, "regression")
    X = np.random.default_rng(0).standard_normal((40, 2))
    assert np.corrcoef(model.predict(X, X[:, 0], Folds(40)), X[:, 0])[0, 1] > 0.9
    for name in ("kwargs", "others", "verbosity", "machines"):
        with pytest.raises(
            ValueError, match=f"names {name}: lightgbm.LGBMRegressor knows boosting_type, ran"
        ):
            model_of("lightgbm.LGBMRegressor", {name: "x"}, "regression")
    with pytest.raises(ValueError, match=r"is of sklearn\.\S+: name it there"):
        model_of("lightgbm.Ridge", {}, "regression")


@pytest.mark.parametrize("shape", ["package", "module", "folder"])
def test_a_file_with_a_known_name_is_not_the_installed_package(lightgbm: Path, shape: str) -> None:
    package, path = lightgbm / "lightgbm", "lightgbm.LGBMRegressor"
    if shape == "module":
        (package / "__init__.py").rename(lightgbm / "lightgbm.py")
        package.rmdir()
    elif shape == "folder":
        (package / "__init__.py").rename(package / "hidden.py")
        path = "lightgbm.hidden.LGBMRegressor"
    refused = r"would run .*lightgbm.*, which is not lightgbm as it is installed"
    # Where LightGBM itself is installed, it has no such part.
    with pytest.raises(ValueError, match=rf"{refused}|No module named 'lightgbm\.hidden'"):
        model_of(path, {}, "regression")
    assert not (lightgbm / "imported").exists()


# Settings are no way around

SMUGGLED = (
    "gbdt machines=192.0.2.1:1 num_machines=2", "gbdt\tforcedsplits_filename=x", "gbdt\nverbosity=1", "a=b",
    "os.system", "/etc/passwd", "..", "file:x", "lambda: 0", "__import__('os')", "", "é", "x" * 61, "gbdt\n",
)  # fmt: skip
"""Text that is more than a word. LightGBM 4.7 takes the first for three settings; the second reads a file."""


@pytest.mark.parametrize("text", SMUGGLED)
def test_settings_are_words(text: str, lightgbm: Path) -> None:
    install(lightgbm)
    for path, name in (("lightgbm.LGBMRegressor", "boosting_type"), ("sklearn.svm.SVR", "kernel")):
        with pytest.raises(ValueError, match=rf"estimator_settings\.{name} = .* is not one word") as caught:
            model_of(path, {name: text}, "regression")
        assert "--allow-code" in str(caught.value)
        assert len(str(caught.value)) < 1_000


def test_every_word_that_scikit_learn_knows_is_one() -> None:
    """And no regressor or classifier takes text that it would look up elsewhere: it is a choice or a label.

    Scorers are looked up in scikit-learn's own list; one solver's two words are those of an old SciPy.
    """
    labels = {"scoring", "constant", "pos_label", "outlier_label"}
    checked = 0
    for _, kind in [*all_estimators("regressor"), *all_estimators("classifier")]:
        for name, allowed in kind._parameter_constraints.items():
            assert allowed != "no_validation", f"{kind.__name__}.{name} may be anything"
            assert not any(one is str for one in allowed) or name in labels, f"{kind.__name__}.{name}"
            for one in allowed:
                options = one.options if isinstance(one, StrOptions) else set()
                for word in options - {"revised simplex"}:
                    _must_be_words(kind.__name__, {name: word})
                    checked += 1
    assert checked > 200


@pytest.mark.parametrize("value", [["a"], {"a": 1}, None, [["sklearn.svm.SVR"]]])
def test_settings_in_a_file_are_numbers_truths_and_words(value: Any) -> None:
    given = {
        "kind": "aid", "table": "t.csv", "source": "public", "features": ["a"], "target": "y", "quota": 0.3,
        "estimator": "sklearn.svm.SVR", "estimator_settings": {"kernel": value},
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"estimator_settings\.kernel"):
        make_program_settings(given)


def test_what_may_be_named_is_in_the_documents() -> None:
    text = (Path(__file__).parents[2] / "docs" / "programs.md").read_text(encoding="utf-8")
    assert all(f"`{package}.…`" in text for package in PACKAGES)
    assert "--allow-code" in text

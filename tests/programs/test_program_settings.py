"""Program files: what they may say, and what is said of those that are wrong."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from targetdp.programs import MARK, Ridge, program_file, read_program_file
from targetdp.programs._aid_settings import AidSettings
from targetdp.programs._lending_settings import LendingSettings
from targetdp.programs._settings import make_program_settings

AID: dict[str, Any] = {
    "kind": "aid", "table": "people.parquet", "source": "public", "features": ["calls", "texts"],
    "target": "y", "quota": 0.29,
}  # fmt: skip
LENDING: dict[str, Any] = {
    "kind": "lending", "table": "people.parquet", "source": "public", "features": ["calls", "texts"],
    "target": "y", "loans": {"amount": "amount", "revenue": 0.15, "interest": "i"},
}  # fmt: skip


def test_defaults_are_the_papers() -> None:
    settings = make_program_settings(AID)
    assert isinstance(settings, AidSettings)
    assert settings.model() == Ridge(1.0)
    assert (settings.folds, settings.simulations, settings.parts, settings.scales) == (5, 50, 1, "data")
    assert settings.grid.model_dump() == {
        "B": (0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0),
        "epsilon1": (2.0, 3.0),
        "epsilon2": (0.5, 0.9999),
        "k": (10_000,),
        "mechanisms": ("projection", "least-noise", "score", "score-laplace"),
        "group_sizes": tuple(range(2, 11)),
    }


def test_a_lending_file() -> None:
    settings = make_program_settings(LENDING | {"repaid": "good", "threshold": 0.6})
    assert isinstance(settings, LendingSettings)
    assert (settings.loans.amount, settings.loans.revenue, settings.loans.interest) == ("amount", 0.15, "i")
    assert (settings.repaid, settings.threshold, settings.estimator) == ("good", 0.6, "logistic")


def test_an_amount_may_be_a_feature_and_revenue_and_interest_one_column() -> None:
    """The amount is asked for before the decision."""
    loans = {"amount": "calls", "revenue": "r", "interest": "r"}
    assert make_program_settings(LENDING | {"loans": loans}).features == ("calls", "texts")


def test_only_confidential_rows_carry_the_mark() -> None:
    marks = {name: make_program_settings(AID | {"source": name}).mark for name in ("public", "synthetic")}
    assert marks == {"public": None, "synthetic": None}
    assert make_program_settings(AID | {"source": "confidential"}).mark == MARK


def test_a_file_is_read_with_paths_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "program.toml"
    path.write_text(
        'kind = "aid"\nid = "name"\ntarget = "y"\nquota = 0.29\ntable = "people.parquet"\n'
        'source = "synthetic"\nfeatures = ["calls"]\nscales = "scales.toml"\n'
        'estimator = "sklearn.tree.DecisionTreeRegressor"\n'
        "estimator_settings = { max_depth = 3 }\n[grid]\nB = [0.1, 2]\n",
        encoding="utf-8",
    )
    settings = read_program_file(path)
    assert settings.table == tmp_path / "people.parquet"
    assert settings.scales == str(tmp_path / "scales.toml")
    assert settings.grid.B == (0.1, 2.0)
    assert settings.grid.epsilon1 == (2.0, 3.0)
    assert settings.model().record() == {"estimator": "sklearn.tree.DecisionTreeRegressor", "max_depth": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "charity"}, "kind = 'charity' is not one of aid, lending"),
        ({"kind": None}, "kind = None is not one of aid, lending"),
        ({"source": None}, "source"),
        ({"source": "secret"}, "source = 'secret': must be 'public', 'synthetic' or 'confidential'"),
        ({"quota": "0.29"}, "quota = '0.29': must be a valid number"),
        ({"quota": True}, "quota = True: must be a valid number"),
        ({"quota": 1.0}, "quota = 1.0: must be less than 1"),
        ({"quota": float("nan")}, "quota"),
        ({"features": []}, "features"),
        ({"features": [1]}, "features.0 = 1: must be a valid string"),
        ({"features": "calls"}, "features = 'calls'"),
        ({"features": ["calls", "calls"]}, "column 'calls' is named twice"),
        ({"features": ["calls", "y"]}, "features names 'y', which the program uses as id, outcome"),
        ({"id": "y"}, "column 'y' is named twice"),
        ({"weights": "calls"}, "features names 'calls'"),
        ({"groups": ["sex", "sex"]}, "column 'sex' is named twice"),
        ({"groups": ["y"]}, "groups names 'y', which is the id or the target"),
        ({"id": "who", "groups": ["sex", "who"]}, "groups names 'who', which is the id or the target"),
        ({"groups": ["sex=f"]}, "groups names 'sex=f': figures are told by column=group"),
        ({"quotas": 0.3}, "quotas = 0.3: Extra inputs are not permitted"),
        ({"loans": {"amount": 1}}, "loans"),
        ({"population": 0}, "population = 0: must be greater than or equal to 1"),
        ({"folds": 1}, "folds = 1"),
        ({"folds": 5.0}, "folds = 5.0: must be a valid integer"),
        ({"folds": 2_000}, "more than 1,000 folds"),
        ({"seed": -1}, "seed = -1"),
        ({"simulations": 0}, "simulations = 0"),
        ({"parts": 0}, "parts = 0"),
        ({"impute": {"income": 0.0}}, "impute names income, which are not among the features"),
        ({"estimator": "logistic"}, "'logistic' is for classification: this program needs regression"),
        ({"estimator": "nowhere.Model"}, "cannot be imported"),
        ({"estimator_settings": {"beta": 1}}, "estimator_settings names beta: ridge knows alpha"),
        ({"welfare": {"aversion": 3.0}}, "welfare.transfer must be given"),
        ({"grid": {"B": [0.1, 3]}}, "grid.B.1 = 3: must be less than or equal to 2"),
        ({"grid": {"B": []}}, "grid.B"),
        ({"grid": {"B": [0.1, 0.1]}}, "names a value twice"),
        ({"grid": {"epsilon2": [1.0]}}, "grid.epsilon2.0 = 1.0: must be less than 1"),
        ({"grid": {"group_sizes": [1]}}, "grid.group_sizes.0 = 1"),
        ({"grid": {"k": [0]}}, "grid.k.0 = 0"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    given = {key: value for key, value in (AID | change).items() if value is not None}
    with pytest.raises(ValueError, match=r".") as caught:
        make_program_settings(given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loans": {"amount": "amount", "revenue": 0.1}}, "loans.interest must be given"),
        ({"loans": {"amount": -1, "revenue": 0.1, "interest": 0.1}}, "loans.amount"),
        ({"threshold": 0}, "threshold = 0"),
        (
            {"features": ["calls", "i"]},
            "features names 'i', which the program uses as id, outcome, weight or",
        ),
        (
            {"features": ["r"], "loans": {"amount": "calls", "revenue": "r", "interest": 0.1}},
            "features names 'r'",
        ),
        ({"quota": 0.3}, "quota = 0.3: Extra inputs are not permitted"),
        ({"estimator": "ridge"}, "'ridge' is for regression"),
    ],
)
def test_what_is_wrong_with_lending_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        make_program_settings(LENDING | change)
    assert message in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "program.toml"
    with pytest.raises(ValueError, match=r"program file .*program.toml cannot be read"):
        read_program_file(path)
    path.write_text("kind = aid", encoding="utf-8")
    with pytest.raises(ValueError, match="cannot be read: Invalid value"):
        read_program_file(path)
    path.write_text('kind = "aid"\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"program file .*program.toml: table must be given; source must"):
        read_program_file(path)


def test_the_documents_example_is_one() -> None:
    text = (Path(__file__).parents[2] / "docs" / "programs.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    settings = make_program_settings(tomllib.loads(example))
    assert settings.grid.B == (0.1, 0.25, 2.0)
    jsonschema.validate(tomllib.loads(example), program_file().model_json_schema())


def test_the_schema_agrees() -> None:
    schema = program_file().model_json_schema()
    for good in (AID, LENDING, AID | {"grid": {"B": [0.1]}, "welfare": {"transfer": 1.5}}):
        jsonschema.validate(json.loads(json.dumps(good)), schema)
    for bad in (
        AID | {"kind": "charity"},
        AID | {"quota": 1.5},
        AID | {"features": []},
        AID | {"extra": 1},
        {key: value for key, value in AID.items() if key != "source"},
        LENDING | {"loans": {"amount": "a"}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schema)

"""Program files: what they may say, and what is said of those that are wrong."""

import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from targetdp._core import Silent
from targetdp.programs import (
    MARK,
    Ridge,
    load_program,
    open_program,
    program_file,
    read_columns,
    read_decision_rule,
    read_program_file,
)
from targetdp.programs._aid_settings import AidSettings
from targetdp.programs._lending_settings import LendingSettings
from targetdp.programs._settings import make_program_settings

AID: dict[str, Any] = {
    "kind": "aid", "table": "people.parquet", "source": "public", "features": ["calls", "texts"],
    "target": "y", "quota": 0.29,
}  # fmt: skip
LENDING: dict[str, Any] = {
    "kind": "lending", "table": "people.parquet", "source": "public", "features": ["calls", "texts"],
    "target": "y", "loans": {"amount": "amount", "revenue": 0.15, "interest": "i"}, "currency": "NGN",
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
        "mechanisms": ("projection", "least-noise", "score", "score-laplace", "decision", "decision-agreed"),
        "group_sizes": tuple(range(2, 11)),
    }


def test_a_lending_file() -> None:
    settings = make_program_settings(LENDING | {"repaid": "good", "threshold": 0.6})
    assert isinstance(settings, LendingSettings)
    assert settings.loans is not None
    assert (settings.loans.amount, settings.loans.revenue, settings.loans.interest) == ("amount", 0.15, "i")
    assert (settings.repaid, settings.threshold, settings.estimator) == ("good", 0.6, "logistic")


def test_money_has_its_currency() -> None:
    assert (make_program_settings(LENDING).unit, make_program_settings(LENDING).money) == ("NGN", "NGN")
    given = {name: value for name, value in LENDING.items() if name != "currency"}
    for whole in (True, False):
        with pytest.raises(ValueError, match=r"^currency must be given: .* write it: currency = \"\$\", or"):
            make_program_settings(given, whole=whole)
    del given["loans"]
    rule = make_program_settings(given, whole=False)
    assert (rule.unit, rule.money) == ("people", None), "without loans there is no money"
    aid = make_program_settings(AID | {"transfer": {"cost": 12, "currency": "XOF"}, "counted": "households"})
    assert (aid.unit, aid.money) == ("households", "XOF")
    assert (make_program_settings(AID).unit, make_program_settings(AID).money) == ("people", None)


def test_all_that_is_wrong_with_money_is_told_at_once() -> None:
    wrong = {"transfer": {"cost": -1, "currency": "a b"}, "title": "\t", "counted": ""}
    with pytest.raises(ValueError, match=r"title = .*counted = .*transfer.cost = .*transfer.currency = "):
        make_program_settings(AID | wrong)


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
        ({"quotas": 0.3}, "quotas is no field"),
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
        ({"estimator": "nowhere.Model"}, "estimator = 'nowhere.Model' would run code that came with"),
        ({"allow_code": True}, "allow_code is no field"),
        ({"_allow_code": True}, "_allow_code is no field"),
        ({"estimator_settings": {"beta": 1}}, "estimator_settings names beta: ridge knows alpha"),
        ({"welfare": {"aversion": 3.0}}, "welfare.transfer must be given"),
        ({"transfer": {"cost": 12}}, "transfer.currency must be given"),
        ({"transfer": {"currency": "$"}}, "transfer.cost must be given"),
        ({"transfer": {"cost": 0, "currency": "$"}}, "transfer.cost = 0: must be greater than 0"),
        ({"transfer": {"cost": math.inf, "currency": "$"}}, "transfer.cost = inf: must be a finite number"),
        ({"transfer": {"cost": 1e16, "currency": "$"}}, "transfer.cost = 1e+16: must be less than or equal"),
        ({"transfer": {"cost": "12", "currency": "$"}}, "transfer.cost = '12': must be a valid number"),
        ({"transfer": {"cost": 1, "currency": "two words"}}, "transfer.currency = 'two words': must be one"),
        ({"transfer": {"cost": 1, "currency": "€\u200b"}}, ": must be one word of 1 to 12 characters"),
        ({"currency": "$"}, "currency is no field"),
        ({"title": ""}, "title = ''"),
        ({"title": " Aid"}, "title = ' Aid': must be words in one line, with no space at either end"),
        ({"title": "Aid\nfor all"}, "must be words in one line"),
        ({"title": "a" * 101}, "title = "),
        ({"counted": "house\tholds"}, "must be words in one line"),
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
        ({"quota": 0.3}, "quota is no field"),
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
    with pytest.raises(
        ValueError, match=r"program file .*program.toml: target must be given: .*; quota must"
    ):
        read_program_file(path)


# A program that is not tried on a table: what learn and allocate need

RULES: dict[str, dict[str, Any]] = {
    "aid": {"kind": "aid", "target": "y", "quota": 0.29},
    "lending": {"kind": "lending", "target": "y", "threshold": 0.6},
}
NEEDED = {
    "aid": "table, source and features must be",
    "lending": "table, source, features, loans and currency must be",
}


def write(path: Path, given: dict[str, Any]) -> Path:
    lines = (f"{name} = {json.dumps(value)}" for name, value in given.items())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", RULES)
def test_a_decision_rule_needs_no_table(kind: str, tmp_path: Path) -> None:
    settings = read_decision_rule(write(tmp_path / "rule.toml", RULES[kind]))
    assert (settings.kind, settings.target, settings.table, settings.features) == (kind, "y", None, ())
    assert settings.mark == MARK, "where nobody says where rows come from, they are taken for confidential"
    jsonschema.validate(RULES[kind], program_file().model_json_schema())


@pytest.mark.parametrize("kind", RULES)
def test_what_a_table_needs_is_named_at_once_with_the_remedy(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rule.toml", RULES[kind])
    for read in (read_program_file, open_program):
        with pytest.raises(ValueError, match=rf"program file .*rule.toml: {NEEDED[kind]} given") as caught:
            read(path)
        assert "add what is missing, or have a file proposed by targetdp program init" in str(caught.value)
    with pytest.raises(ValueError, match=f"^{NEEDED[kind]} given"):
        load_program(read_decision_rule(path))
    with pytest.raises(ValueError, match=f"^{NEEDED[kind]} given"):
        read_columns(read_decision_rule(path), Silent())


def test_what_is_missing_is_told_with_what_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path / "rule.toml", {"kind": "aid", "quota": 2, "source": "public", "table": "t.csv"})
    with pytest.raises(
        ValueError, match=r"target must be given: .*; quota = 2: .*; features must be given: a"
    ):
        read_program_file(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quota": 1.5}, "quota = 1.5: must be less than 1"),
        ({"quotas": 0.3}, "quotas is no field"),
        ({"features": []}, "features"),
        ({"source": "secret"}, "source = 'secret'"),
        ({"id": "y"}, "column 'y' is named twice"),
    ],
)
def test_what_is_wrong_with_a_rule_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rule.toml", RULES["aid"] | change)
    with pytest.raises(ValueError, match=rf"program file .*rule.toml: .*{re.escape(message)}"):
        read_decision_rule(path)


def test_the_documents_examples_are_what_they_say() -> None:
    text = (Path(__file__).parents[2] / "docs" / "programs.md").read_text(encoding="utf-8")
    whole, rule = map(tomllib.loads, re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL))
    assert make_program_settings(whole).grid.B == (0.1, 0.25, 2.0)
    assert make_program_settings(rule, whole=False).missing == ["table", "source", "features"]
    for example in (whole, rule):
        jsonschema.validate(example, program_file().model_json_schema())


def test_the_schema_agrees() -> None:
    schema = program_file().model_json_schema()
    named = {"title": "Aid", "counted": "households", "transfer": {"cost": 12.5, "currency": "€"}}
    for good in (AID, LENDING, AID | named | {"grid": {"B": [0.1]}, "welfare": {"transfer": 1.5}}):
        jsonschema.validate(json.loads(json.dumps(good)), schema)
    for bad in (
        AID | {"kind": "charity"},
        AID | {"quota": 1.5},
        AID | {"features": []},
        AID | {"extra": 1},
        {key: value for key, value in AID.items() if key != "target"},
        LENDING | {"loans": {"amount": "a"}},
        LENDING | {"currency": "two words"},
        AID | {"transfer": {"cost": 0, "currency": "$"}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schema)

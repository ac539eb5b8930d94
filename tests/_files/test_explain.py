"""What is wrong with a file, in a line: unknown fields name the nearest that there is."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from targetdp._files import did_you_mean, explain, one_line
from targetdp.release import Policy, Request

POLICY: dict[str, Any] = {
    "name": "x", "id": {"column": "id"}, "columns": {"release": ["a"]},
    "limit": {"B": 0.25, "epsilon": 8, "delta": 1e-6}, "release": {"epsilon": 4, "delta": 1e-6},
}  # fmt: skip


def told(model: type[BaseModel], given: dict[str, Any], *, knows: bool = True) -> str:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(given)
    return explain(refused.value, model if knows else None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"colums": {}}, "colums is no field: did you mean 'columns'?"),
        (
            {"columns": {"release": ["a"], "relese": ["b"]}},
            "columns.relese is no field: did you mean 'release'?",
        ),
        (
            {"id": {"column": "id", "spelling": {"cas": "lower"}}},
            "id.spelling.cas is no field: did you mean 'case'?",
        ),
        ({"kinds": {"a": {"kind": "catgory"}}}, "kinds.a.kind = 'catgory': did you mean 'category'?"),
        (
            {"kinds": {"a": {"levels": ["x"]}}},
            "kinds.a.kind must be given: it may be number, yes-or-no, category, ordered, date",
        ),
        (
            {"kinds": {"a": {"kind": "date", "day_from": "2026-01-01", "days": 3}}},
            "kinds.a.days_from must be given: the day that days are counted from, as in 2026-01-01; "
            "kinds.a.day_from is no field: did you mean 'days_from'?",
        ),
        (
            {"plan": [{"release": "rows", "columns": 3, "B": 0.25, "epsilon": 1, "dleta": 1}]},
            "plan.0.dleta is no field: did you mean 'delta'?",
        ),
        ({"nonsense": 1}, "nonsense is no field: it may be name, id, columns, kinds, gaps, scales"),
    ],
)  # fmt: skip
def test_an_unknown_field_of_a_policy_names_the_nearest(given: dict[str, Any], said: str) -> None:
    assert said in told(Policy, POLICY | given)


def test_an_unknown_field_of_a_request_names_the_nearest() -> None:
    decisions = [{"weigths": {"a": 1}, "cut": 1}]
    said = told(
        Request, {"B": 0.25, "epsilon": 1, "delat": 1, "release": "decisions", "decisions": decisions}
    )
    assert "decisions.0.weigths is no field: did you mean 'weights'?" in said
    assert "delat is no field: did you mean 'delta'?" in said


def test_without_a_model_the_field_is_named_all_the_same() -> None:
    assert (
        told(Request, {"B": 0.25, "epsilon": 1, "delat": 1}, knows=False) == "delat is no field: leave it out"
    )


def test_a_name_of_megabytes_is_compared_in_no_time() -> None:
    assert did_you_mean("x" * 5_000_000, ["release"]) == ""
    assert did_you_mean("RELEASE", ["release"]) == "did you mean 'release'?"


def test_a_text_stays_on_its_line() -> None:
    assert one_line("a\nb\u2028c\td") == "a b c d"

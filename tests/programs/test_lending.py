"""Lending: the paper's four cases by hand, and the edges."""

import json

import numpy as np
import pytest

from targetdp._core import Floats
from targetdp.programs import Folds, Lending, LendingResult, Loans, loans_at_rates

REPAID = np.array([0.0, 1.0, 0.0, 1.0])
MONEY = Loans(
    np.array([100.0, 200, 300, 400]), np.array([10.0, 20, 30, 40]), np.array([1.0, 2, 3, 4])
)  # fmt: skip
ONE_OF_EACH = np.array([0.2, 0.9, 0.8, 0.1])
"""Refused and bad; lent and good; lent and bad; refused and good."""


def four(**settings: object) -> Lending:
    return Lending(REPAID, MONEY, **settings)  # type: ignore[arg-type]


def test_the_four_cases() -> None:
    result = four().judge(ONE_OF_EACH)
    assert result.parts["profit"].values.tolist() == [0, 20, -303, -40]
    assert result["profit"] == -323
    assert result["cash"] == 20 - 300
    assert np.isnan(result["break_even_revenue"])  # 20 is let in, 40 turned away


def test_every_metric_by_hand() -> None:
    result = four(population=400).judge(np.array([0.2, 0.9, 0.8, 0.7]))
    expected = {
        "people": 4, "population": 400, "low_risk": 200, "approvals": 300,
        "accuracy": 0.75, "false_positive_rate": 0.5, "precision": 2 / 3, "recall": 1.0, "refusal_rate": 0.0,
        "auc": 0.75, "wrong_approvals": 100, "wrong_refusals": 0, "lent": 90_000,
        "profit": 100 * (20 - 303 + 40), "cash": 100 * (20 - 300 + 40), "break_even_revenue": 0.505,
    }  # fmt: skip
    assert result.metrics == pytest.approx(expected)


def test_at_the_break_even_revenue_the_profit_is_nothing() -> None:
    rng = np.random.default_rng(0)
    repaid = (rng.random(500) < 0.8).astype(np.float64)
    scores = np.clip(0.3 * repaid + rng.random(500) * 0.7, 0, 1)
    amount = rng.uniform(10, 1_000, 500)
    at = loans_at_rates(amount, revenue=0.1, interest=0.02)
    even = Lending(repaid, at).judge(scores)["break_even_revenue"]
    same = Lending(repaid, loans_at_rates(amount, revenue=even, interest=0.02)).judge(scores)
    assert same["profit"] == pytest.approx(0, abs=1e-6)
    assert same["break_even_revenue"] == pytest.approx(even)
    more = Lending(repaid, loans_at_rates(amount, revenue=even * 1.01, interest=0.02)).judge(scores)
    assert more["profit"] > 0


def test_where_no_loan_has_any_revenue_a_rate_of_the_amount_breaks_even() -> None:
    """There is nothing to multiply: it is the limit of small rates, which all break even at the same one."""
    rng = np.random.default_rng(5)
    repaid = (rng.random(300) < 0.8).astype(np.float64)
    scores, amount = np.clip(0.3 * repaid + 0.7 * rng.random(300), 0, 1), rng.uniform(10, 1_000, 300)
    groups = {"sex": ["f", "m"] * 150}

    def at(revenue: float) -> LendingResult:
        return Lending(repaid, loans_at_rates(amount, revenue=revenue, interest=0.02), groups=groups).judge(
            scores
        )

    nothing, little = at(0.0), at(1e-9)
    even = nothing["break_even_revenue"]
    assert 0 < even < 1
    assert nothing.figures["break_even_revenue"] == pytest.approx(little.figures["break_even_revenue"])
    assert at(even)["profit"] == pytest.approx(0, abs=1e-6)
    assert f"breaks even at a revenue of {even:.1%}" in nothing.summary
    refused = Lending(repaid, loans_at_rates(amount, revenue=0.0, interest=0.02)).judge(np.zeros(300))
    assert np.isnan(refused["break_even_revenue"]), "who lends to nobody makes no profit at any rate"
    assert "no revenue would make a profit" in refused.summary


def test_rates_or_columns() -> None:
    rates = loans_at_rates([100.0, 200.0], revenue=0.1, interest=0.02)
    columns = loans_at_rates([100.0, 200.0], revenue=[10.0, 20.0], interest=[2.0, 4.0])
    for name in ("amount", "revenue", "interest"):
        assert getattr(rates, name) == pytest.approx(getattr(columns, name))


def test_relative_profit_is_undefined_for_a_status_quo_without_profit() -> None:
    good, bad = four().judge(REPAID), four().judge(ONE_OF_EACH)
    assert good["profit"] == 60
    assert bad.against(good)["relative_profit"][0] == pytest.approx(-323 / 60)
    assert bad.against(good)["extra_profit"][0] == -383
    assert np.isnan(good.against(bad)["relative_profit"][0])
    assert good.against(bad)["extra_profit"][0] == 383


def test_groups_add_up() -> None:
    result = four(groups={"sex": ["f", "f", "m", "m"]}).judge(ONE_OF_EACH)
    women, men = result.by_group["sex"]["f"], result.by_group["sex"]["m"]
    assert (women["profit"], men["profit"]) == (20, -343)
    assert (women["approvals"], men["approvals"]) == (1, 1)
    assert women["break_even_revenue"] == 0  # nobody failed to repay
    assert np.isnan(men["break_even_revenue"])


@pytest.mark.parametrize(("outcome", "profit"), [(1.0, 100.0), (0.0, 0.0)])
def test_everybody_or_nobody_repays(outcome: float, profit: float) -> None:
    rng = np.random.default_rng(1)
    program = Lending(np.full(4, outcome), MONEY)
    result = program.evaluate(rng.standard_normal((4, 2)), Folds(4, 2), rng)
    assert result["accuracy"] == 1
    assert result["profit"] == profit
    assert result["approvals"] == 4 * outcome
    assert program.chance == 1
    assert np.isnan(result["auc"])
    json.dumps(result.record(), allow_nan=False)


def test_who_is_exactly_at_the_threshold_is_refused_and_counted() -> None:
    result = four().judge(np.array([0.5, 0.5, 0.6, 0.4]))
    assert result.decisions.tolist() == [False, False, True, False]
    assert result.ties == 2
    assert four(threshold=0.55).judge(np.array([0.5, 0.56, 0.6, 0.4])).decisions.sum() == 2


def test_evaluate_predicts_then_judges() -> None:
    rng = np.random.default_rng(3)
    X: Floats = rng.standard_normal((400, 3))
    repaid = (X[:, 0] + 0.3 * rng.standard_normal(400) > -0.3).astype(np.float64)
    program = Lending(repaid, loans_at_rates(np.full(400, 100.0), revenue=0.1, interest=0.0))
    good, noise = (program.evaluate(rows, Folds(400), rng) for rows in (X, rng.standard_normal((400, 3))))
    assert good["accuracy"] > 0.85
    assert noise["accuracy"] < 0.7
    assert good["profit"] > noise["profit"]
    assert good["auc"] > 0.95


def test_the_summary_says_people_and_money() -> None:
    assert four().judge(ONE_OF_EACH).summary == (
        "Loans for 2 of 4 applicants: 1 of them do not repay, and 1 who would repay get none (accuracy "
        "0.500); profit -323, no revenue would make a profit."
    )
    assert "breaks even at a revenue of 50.5%" in four().judge(np.array([0.2, 0.9, 0.8, 0.7])).summary


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"repaid": [0.0, 1, 2, 1]},
            "repaid has the value 2.0: give 1 for people who repaid, 0 for the others",
        ),
        ({"repaid": [0.0, 1]}, "loans has 4 entries: repaid has 2 people"),
        ({"threshold": 1.0}, r"threshold = 1.0 is outside \(0, 1\)"),
    ],
)
def test_bad_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Lending(**({"repaid": REPAID, "loans": MONEY} | settings))  # type: ignore[arg-type]


def test_bad_money() -> None:
    with pytest.raises(ValueError, match=r"amount\[1\] = -5.0 is below 0"):
        Loans(np.array([1.0, -5.0]), np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="revenue has 3 entries: there are 2 people"):
        Loans(np.ones(2), np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match=r"interest rate = -0.1 is outside \[0, inf\)"):
        loans_at_rates([1.0], revenue=0.1, interest=-0.1)
    with pytest.raises(TypeError, match="loans = 3 is not a Loans"):
        Lending(REPAID, 3)  # type: ignore[arg-type]

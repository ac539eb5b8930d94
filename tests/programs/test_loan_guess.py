"""What `program init` finds out about loans: money from columns, and which value means repaid."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from targetdp.populations import write
from targetdp.programs import ProgramTerms, open_program, program_template, propose
from targetdp.programs._lending_settings import LendingGuess
from targetdp.programs._proposal import Proposal
from targetdp.table import profile_table

ROWS = 40
ONES = [0, 1, 1, 1] * (ROWS // 4)


def proposed(folder: Path, table: dict[str, Any] | None = None, **given: Any) -> Proposal:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {"calls": rng.random(ROWS), "amount": rng.integers(50, 900, ROWS)}
    path = folder / "loans.parquet"
    pq.write_table(pa.table(columns | (table or {"repaid": ONES})), path)
    return propose(profile_table(path), "lending", **given)


def loans_of(found: Proposal) -> LendingGuess:
    assert isinstance(found.guess, LendingGuess)
    return found.guess


def terms(found: Proposal) -> tuple[str, float | str | None, float | str | None]:
    loans = loans_of(found)
    return loans.amount, loans.revenue, loans.interest


def money(**more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {"repaid": ONES, "Revenue": rng.uniform(10, 90, ROWS), "interest": rng.uniform(1, 9, ROWS)} | more


def test_columns_of_revenue_and_interest_are_used_and_are_no_features(tmp_path: Path) -> None:
    found = proposed(tmp_path, money())
    assert terms(found) == ("amount", "Revenue", "interest")
    assert found.features == ("calls",)
    assert (found.left_out["Revenue"], found.left_out["interest"]) == ("the revenue", "the interest")
    text = program_template(found, None, Path("loans.parquet"), ProgramTerms("public", currency="$"))
    assert 'revenue = "Revenue"  # a column of money: what the lender makes if the loan is repaid' in text
    assert 'interest = "interest"  # a column of money: what the amount would earn elsewhere' in text
    assert "ASSUMPTION" not in text


def test_the_invented_loans_of_nigeria(tmp_path: Path) -> None:
    path = tmp_path / "nigeria.parquet"
    write("nigeria", path, rows=500)
    assert terms(propose(profile_table(path), "lending")) == ("loan_amount", "revenue", "interest")


def test_what_is_given_wins_be_it_a_column_or_a_rate(tmp_path: Path) -> None:
    assert terms(proposed(tmp_path, money(), revenue="0.4")) == ("amount", 0.4, "interest")
    found = proposed(tmp_path, money(), revenue="calls", interest="0", amount="interest")
    assert terms(found) == ("interest", "calls", 0.0)
    with pytest.raises(ValueError, match="features could not be guessed"):
        proposed(tmp_path, {"repaid": ONES}, revenue="calls")


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"Revenue": np.linspace(0, 0.4, ROWS)}, "looks like rates, not like money"),
        ({"Revenue": np.linspace(-1, 40, ROWS)}, "has values below 0"),
        ({"Revenue": [None, *range(ROWS - 1)]}, "by its name it is known only after the decision"),
        ({"Revenue": ["a"] * ROWS}, "by its name it is known only after the decision"),
    ],
)
def test_a_column_that_is_no_money_is_not_taken_for_it(
    tmp_path: Path, table: dict[str, Any], reason: str
) -> None:
    found = proposed(tmp_path, money(**table))
    assert terms(found) == ("amount", None, "interest")
    assert reason in found.left_out["Revenue"]
    text = program_template(found, None, Path("loans.parquet"), ProgramTerms("public", currency="$"))
    assert "\nrevenue = 0.15  # AN ASSUMPTION" in text


def test_a_feature_that_somebody_names_is_not_taken_away(tmp_path: Path) -> None:
    found = proposed(tmp_path, money(), features=["calls", "interest"])
    assert terms(found) == ("amount", "Revenue", None)
    assert found.features == ("calls", "interest")


@pytest.mark.parametrize(
    ("name", "repaid"),
    [("repaid", 1), ("no_default", 1), ("low_risk", 1), ("default", 0), ("delinquent", 0), ("bad", 0),
     ("arrears", 0), ("unpaid", 0)],
)  # fmt: skip
def test_the_name_of_the_target_tells_what_means_repaid(tmp_path: Path, name: str, repaid: int) -> None:
    found = proposed(tmp_path, {name: ONES})
    assert (found.target, loans_of(found).repaid, loans_of(found).repaid_is_guessed) == (name, repaid, True)
    sure = loans_of(proposed(tmp_path, {name: ONES}, repaid="1"))
    assert (sure.repaid, sure.repaid_is_guessed) == (1, False)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"status": ONES},
            r"target 'status': its name does not tell what a 1 means; say .*\(--repaid\)",
        ),
        ({"y": ONES}, "target 'y': its name does not tell what a 1 means"),
        ({"repaid": [1, 2] * (ROWS // 2)}, "target 'repaid' has other values than 0 and 1: say which value"),
        ({"default": ["yes", "no"] * (ROWS // 2)}, "target 'default' is text: say which value means"),
    ],
)
def test_where_it_is_not_sure_it_asks(tmp_path: Path, table: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        proposed(tmp_path, table)
    value = str(next(iter(table.values()))[0])
    assert str(loans_of(proposed(tmp_path, table, repaid=value)).repaid).startswith(value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"revenue": "margin"},
            "revenue = 'margin' is neither a column nor a rate of 0 or more: 0.15",
        ),
        ({"interest": "-0.1"}, "interest = '-0.1' is neither a column nor a rate"),
        ({"interest": "nan"}, "interest = 'nan' is neither"),
        ({"revenue": "word"}, "revenue = 'word' is a column of text"),
    ],
)
def test_money_that_cannot_be_meant(tmp_path: Path, given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        proposed(tmp_path, {"repaid": ONES, "word": ["a", "b"] * (ROWS // 2)}, **given)


@pytest.mark.parametrize(("given", "repaid"), [(None, 1), ("1", 1.0), ("True", "true"), ("0", 0.0)])
def test_a_target_that_is_true_or_false_needs_no_text(tmp_path: Path, given: str | None, repaid: Any) -> None:
    truth = [bool(one) for one in ONES]
    found = proposed(tmp_path, {"repaid": truth, "owns_phone": [True, False] * (ROWS // 2)}, repaid=given)
    assert loans_of(found).repaid == repaid
    assert found.features == ("calls", "owns_phone")
    text = program_template(found, None, Path("loans.parquet"), ProgramTerms("public", currency="$"))
    (tmp_path / "lending.toml").write_text(text, encoding="utf-8")
    program: Any = open_program(tmp_path / "lending.toml").program
    assert program.repaid.tolist() == [float(one) if given != "0" else 1.0 - one for one in ONES]

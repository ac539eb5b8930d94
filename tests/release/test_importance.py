"""What a decision looks at, for the data holder's eyes."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from targetdp._core import Floats
from targetdp.release._look._importance import MOST_PEOPLE, importance


def sample(people: int = 800) -> pa.Table:
    rng = np.random.default_rng(3)
    age, income = rng.uniform(0, 100, people), rng.normal(size=people)
    return pa.table({"age": age, "income": income, "region": rng.choice(["north", "south"], people)})


def age_and_a_little_income(rows: pa.Table) -> Floats:
    return np.asarray(rows["age"].to_numpy() / 100 + 0.02 * rows["income"].to_numpy())


def found(cut: float = 0.6, score: Any = age_and_a_little_income, rows: pa.Table | None = None) -> Any:
    rows = sample() if rows is None else rows
    return importance(score, rows, rows.column_names, cut=cut, rng=np.random.default_rng(0))


def test_columns_come_by_how_many_answers_they_change() -> None:
    shares = dict(found().columns)
    assert [name for name, _ in found().columns] == ["age", "income", "region"]
    # With somebody else's age, a person above 60 (4 in 10) is below with chance 0.6, and the other way round.
    assert shares["age"] == pytest.approx(0.48, abs=0.05)
    assert 0 < shares["income"] < 0.1
    assert shares["region"] == 0


def test_who_is_at_the_cut_gets_a_yes_and_who_has_no_score_a_no() -> None:
    assert found(score=lambda rows: np.full(rows.num_rows, 0.6)).yes == 800

    def half(rows: pa.Table) -> Floats:
        return np.asarray(np.where(np.arange(rows.num_rows) % 2, np.nan, 0.0))

    assert found(score=half).yes == 400


def test_a_thousand_people_are_enough() -> None:
    assert found(rows=sample(3_000)).people == MOST_PEOPLE


def test_words_for_the_data_holder() -> None:
    lines = list(found().in_words("aid"))
    assert lines[0].startswith("for you only: aid looks at age 4")
    assert "told by 800 of your rows" in lines[0]
    assert f"{100 * found().yes / 800:.0f}% of these people would get a yes" in lines[1]
    many = pa.table({f"c{i}": np.arange(50.0) for i in range(14)})
    words = list(found(cut=25, score=lambda rows: rows["c0"].to_numpy(), rows=many).in_words("aid"))
    assert "and 4 other columns at most 0 each" in words[0]

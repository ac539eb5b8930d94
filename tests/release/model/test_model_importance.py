"""What a decision looks at, for the data holder's eyes."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from targetdp._core import Floats
from targetdp.release._model._importance import MOST_PEOPLE, importance


def sample(people: int = 800) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "age": rng.uniform(0, 100, people),
            "income": rng.normal(size=people),
            "region": rng.choice(["north", "south"], people),
        }
    )


def age_and_a_little_income(rows: pa.Table) -> Floats:
    return np.asarray(rows["age"].to_numpy() / 100 + 0.02 * rows["income"].to_numpy())


def found(cut: float = 0.6, yes: Any = "above", score: Any = age_and_a_little_income, **changed: Any) -> Any:
    rows = changed.get("sample", sample())
    columns = changed.get("columns", rows.column_names)
    return importance(score, rows, columns, cut=cut, yes=yes, rng=np.random.default_rng(0))


def test_columns_come_by_how_many_answers_they_change() -> None:
    shares = dict(found().columns)
    assert [name for name, _ in found().columns] == ["age", "income", "region"]
    # With somebody else's age, a person above 60 (4 in 10) is below with chance 0.6, and the other way round.
    assert shares["age"] == pytest.approx(0.48, abs=0.05)
    assert 0 < shares["income"] < 0.1
    assert shares["region"] == 0


def test_both_sides_of_a_cut() -> None:
    above, below = found(), found(yes="below")
    assert above.yes + below.yes == 800
    assert above.columns == below.columns
    equal = found(score=lambda rows: np.full(rows.num_rows, 0.6), yes="below")
    assert equal.yes == 800  # at the cut is below


def test_rows_without_a_score_get_a_no() -> None:
    def half(rows: pa.Table) -> Floats:
        return np.asarray(np.where(np.arange(rows.num_rows) % 2, np.nan, 0.0))

    for yes in ("above", "below"):
        got = found(cut=0.0 if yes == "below" else -1.0, yes=yes, score=half)
        assert (got.yes, got.without_answer, got.people) == (400, 400, 800)


def test_a_thousand_people_are_enough() -> None:
    assert found(sample=sample(3_000)).people == MOST_PEOPLE


def test_words_for_the_data_holder() -> None:
    lines = found().in_words()
    assert "on 800 of your own rows (for your eyes only)" in lines[0]
    assert lines[1].split()[0] == "age"
    assert f"{found().yes:,} of 800 would get a yes" in "\n".join(lines)
    assert "'age > 60' is one, too" in lines[-1]
    assert "purpose in the request" in lines[-1]
    many = pa.table({f"c{i}": np.arange(50.0) for i in range(14)})
    words = found(cut=25, score=lambda rows: rows["c0"].to_numpy(), sample=many).in_words()
    assert any("4 other columns: 0.0 or less each" in line for line in words)


def test_what_cannot_be_looked_at_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a column and a row"):
        found(columns=[])
    with pytest.raises(ValueError, match="needs a column and a row"):
        found(sample=sample().slice(0, 0))
    with pytest.raises(ValueError, match="yes"):
        found(yes="beside")

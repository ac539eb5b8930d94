"""From a program file and a table to a program with its people."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from targetdp import data_scales, normalize
from targetdp.programs import Aid, Lending, OpenProgram, Welfare, load_program, open_program
from targetdp.programs._settings import make_program_settings
from targetdp.tradeoff._programs import sweep_of


def columns(n: int = 30) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "name": [f"p{i:03}" for i in range(n)],
        "calls": rng.poisson(20, n).astype(np.float64),
        "texts": rng.random(n),
        "y": np.round(rng.random(n), 3) + 0.001,
        "sex": ["f", "m", None] * (n // 3),
        "district": rng.integers(1, 4, n),
        "weight": rng.uniform(0.5, 2, n),
        "amount": np.full(n, 100.0),
        "paid": (rng.random(n) < 0.7).astype(np.int64),
    }


def written(folder: Path, file: str = "people.parquet", **change: Any) -> Path:
    table = pa.table({key: value for key, value in (columns() | change).items() if value is not None})
    path = folder / file
    if file.endswith(".csv"):
        pacsv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    return path


def aid(table: Path, **change: Any) -> OpenProgram:
    given = {
        "kind": "aid", "table": table, "source": "synthetic", "id": "name", "features": ["calls", "texts"],
        "target": "y", "quota": 0.3, "seed": 3,
    }  # fmt: skip
    return load_program(make_program_settings(given | change))


def lending(table: Path, **change: Any) -> Lending:
    given = {
        "kind": "lending", "table": table, "source": "synthetic", "features": ["calls", "texts"],
        "target": "paid", "loans": {"amount": "amount", "revenue": 0.15, "interest": 0.02},
        "currency": "$",
    }  # fmt: skip
    program = load_program(make_program_settings(given | change)).program
    assert isinstance(program, Lending)
    return program


def test_a_file_becomes_a_program(tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / "program.toml"
    path.write_text(
        'kind = "aid"\nid = "name"\ntarget = "y"\nquota = 0.3\ntable = "people.parquet"\nsource = "public"\n'
        'features = ["calls", "texts"]\ngroups = ["sex", "district"]\nweights = "weight"\npopulation = 3000\n'
        "[welfare]\ntransfer = 0.1\n",
        encoding="utf-8",
    )
    found = open_program(path)
    data = columns()
    X = np.column_stack([data["calls"], data["texts"]])
    assert found.ids is not None
    assert found.ids.to_pylist() == data["name"]
    assert found.rows == pytest.approx(normalize(X, data_scales(X)).X)
    assert (found.raw == X).all()
    assert found.folds.people == 30
    program = found.program
    assert isinstance(program, Aid)
    assert (program.consumption == data["y"]).all()
    assert program.people.weights == pytest.approx(data["weight"] / data["weight"].mean())
    assert program.people.population == 3_000
    assert program.people.groups.columns == ("sex", "district")
    assert program.people.groups.labels == (("(missing)", "f", "m"), ("1", "2", "3"))
    assert program.welfare == Welfare(0.1)
    assert program.evaluate(found.rows, found.folds)["eligible"] > 0


def test_csv_and_parquet_are_the_same_program(tmp_path: Path) -> None:
    one, other = (aid(written(tmp_path, file), groups=["sex"]) for file in ("a.parquet", "b.csv"))
    assert (one.rows == other.rows).all()
    assert one.program.people.same_as(other.program.people)
    rng = np.random.default_rng(0)
    first, second = (found.program.evaluate(found.rows, found.folds, rng).record() for found in (one, other))
    assert first == second


def test_no_id_is_allowed(tmp_path: Path) -> None:
    assert aid(written(tmp_path), id=None).ids is None


def test_a_feature_may_be_a_group_and_an_amount(tmp_path: Path) -> None:
    found = aid(written(tmp_path), features=["calls", "district"], groups=["district"])
    assert found.program.people.groups.labels == (("1", "2", "3"),)
    program = lending(written(tmp_path), loans={"amount": "calls", "revenue": "weight", "interest": 0.5})
    assert (program.money.amount == columns()["calls"]).all()
    assert (program.money.revenue == columns()["weight"]).all()
    assert program.money.interest == pytest.approx(columns()["calls"] / 2)


@pytest.mark.parametrize("file", ["people.parquet", "people.csv"])
@pytest.mark.parametrize("unknown", [None, "", "  "])
def test_an_outcome_that_is_not_known_is_not_taken_for_a_default(
    tmp_path: Path, file: str, unknown: str | None
) -> None:
    """Whoever has no outcome neither repaid nor failed to."""
    paid = ["yes" if i % 3 else unknown for i in range(30)]
    said = r"target 'paid' is missing in 10 rows \(first in row 1, 4, 7\): leave out people whose outcome"
    with pytest.raises(ValueError, match=said):
        lending(written(tmp_path, file, paid=paid), repaid="yes")
    whole = ["yes" if i % 3 else "no" for i in range(30)]
    assert lending(written(tmp_path, file, paid=whole), repaid="yes").repaid.sum() == 20
    coded = pa.array(paid).dictionary_encode()
    if file.endswith("parquet"):
        with pytest.raises(ValueError, match="target 'paid' is missing in 10 rows"):
            lending(written(tmp_path, file, paid=coded), repaid="yes")


def test_scales_from_a_file_and_declared_constants(tmp_path: Path) -> None:
    scales = tmp_path / "scales.toml"
    scales.write_text(
        'source = "public"\nreason = "a census"\n[features]\ncalls = { center = 20.0, scale = 40.0 }\n'
        "texts = { center = 0.0, scale = 2.0 }\n",
        encoding="utf-8",
    )
    calls = columns()["calls"].tolist()
    calls[4] = None
    found = aid(written(tmp_path, calls=calls), scales=str(scales), impute={"calls": 60.0})
    assert found.raw[4, 0] == 60
    assert found.rows[4, 0] == pytest.approx(min(1, 1 / np.hypot(1, found.raw[4, 1] / 2)))


@pytest.mark.parametrize(
    ("values", "repaid"),
    [
        ([0, 1] * 15, 1),
        ([1, 0] * 15, 0),
        ([False, True] * 15, 1),
        (["bad", "good"] * 15, "good"),
        ([2.0, 7.0] * 15, 7),
    ],
)
def test_what_means_repaid(tmp_path: Path, values: list[object], repaid: object) -> None:
    program = lending(written(tmp_path, paid=values), repaid=repaid)
    assert program.repaid.tolist() == [0.0, 1.0] * 15


def test_one_amount_for_all(tmp_path: Path) -> None:
    program = lending(written(tmp_path), loans={"amount": 50, "revenue": 0.1, "interest": 0.0})
    assert set(program.money.amount.tolist()) == {50.0}
    assert program.money.revenue == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        ({}, {"features": ["calls", "income"]}, "features names 'income': no such column in table"),
        ({}, {"target": "income"}, "target names 'income'"),
        ({}, {"groups": ["region"]}, "groups names 'region'"),
        ({}, {"weights": "w"}, "weights or loans names 'w'"),
        ({}, {"id": "nobody"}, "id names 'nobody'"),
        ({}, {"features": ["sex"]}, r"column 'sex' has 30 text values \(first in row 1, 2, 3\)"),
        ({"name": ["same"] * 30}, {}, "29 rows have an id that occurs before: one row for each person"),
        (
            {"y": [None] * 30},
            {},
            r"target 'y' is missing in 30 rows \(first in row 1, 2, 3\): leave out people whose outcome",
        ),
        (
            {"calls": [None] * 2 + [1.0] * 28},
            {},
            r"column 'calls' has 2 missing values \(first in row 1, 2\): declare a constant for them in the "
            r"program file \(impute\), take the column out",
        ),
        ({"y": [float("inf")] + [1.0] * 29}, {}, r"column 'y' has 1 infinite value \(.*\): correct them, or"),
        (
            {"weight": [None] + [1.0] * 29},
            {"weights": "weight"},
            "column 'weight' has 1 missing value .*: the program needs it of everybody",
        ),
        ({"name": [None] + ["p"] * 29}, {}, "has 1 missing or empty id value .*: every row needs an id"),
        ({"weight": [0.0] * 30}, {"weights": "weight"}, r"weights\[0\] = 0.0 is not above 0"),
        ({"y": [0.0] * 30}, {"welfare": {"transfer": 1.0}}, "30 values that are not above 0: CRRA"),
        ({"sex": [{"a": 1}] * 30}, {"groups": ["sex"]}, "group column 'sex' has type struct"),
    ],
)
def test_tables_that_do_not_fit(
    tmp_path: Path, table: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    if table.get("y") == [None] * 30:
        table = {"y": pa.array([None] * 30, pa.float64())}
    with pytest.raises(ValueError, match=message) as caught:
        aid(written(tmp_path, **table), **settings)
    for word in ("--impute", "published"):
        assert word not in str(caught.value), "words of a release"


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    calls, y = columns()["calls"].tolist(), columns()["y"].tolist()
    calls[3] = y[5] = None
    with pytest.raises(
        ValueError, match=r"column 'calls' has 1 missing value .*; target 'y' is missing in 1 row "
    ):
        aid(written(tmp_path, calls=calls, y=y))


@pytest.mark.parametrize(("rows", "most"), [(30, 23), (2_100, 1_600)])
def test_every_part_needs_a_person_also_when_some_are_held_out(tmp_path: Path, rows: int, most: int) -> None:
    """Said when the sweep is put together, not in the middle of it."""
    table = tmp_path / "people.parquet"
    pq.write_table(pa.table(columns(rows)), table)
    said = (
        f"parts = {most + 1} is outside 1 to {most}: table .*people.parquet has {rows:,} people, a trade-off"
    )
    with pytest.raises(ValueError, match=said):
        sweep_of(aid(table, parts=most + 1), "more")
    found = aid(table, parts=most)
    study = sweep_of(found, "most").study
    assert study.people - study.holdout == most, "so many are left where attribute inference is measured"


def test_a_target_with_other_values(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"target 'paid' has the values 0.0, 1.0, 2.0: it must have two"):
        lending(written(tmp_path, paid=[0, 1, 2] * 10))
    with pytest.raises(ValueError, match="one of them repaid = 5; say which value means repaid"):
        lending(written(tmp_path), repaid=5)
    with pytest.raises(ValueError, match="one of them repaid = 'yes'"):
        lending(written(tmp_path, paid=["good", "bad"] * 15), repaid="yes")


def test_a_table_without_people(tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    pq.write_table(
        pa.table({key: pa.array([], pa.float64()) for key in ("name", "calls", "texts", "y")}), path
    )
    with pytest.raises(ValueError, match=r"id column 'name' has type double|has no rows"):
        aid(path)
    with pytest.raises(ValueError, match="it has no rows: there is nobody to decide about"):
        aid(path, id=None)

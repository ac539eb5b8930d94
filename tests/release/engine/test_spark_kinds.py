"""Columns that are no plain numbers on Spark: the same bits as the same table written in numbers."""

import sys
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import holds, make_desk, read_back, release, table_of, write_csv, write_parquet
from support.spark import frame_of, session_for, skip_without_java
from targetdp.release import Refused
from targetdp.release._draws import Draws
from targetdp.table import Encoding, Tally

skip_without_java()

# PySpark warns of pandas 3, which this engine does not use.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

KNOWN = bytes(range(32)), bytes(range(100, 132))
ROWS = 60
KINDS: dict[str, dict[str, Any]] = {
    "region": {"kind": "category", "levels": ["north", "south"], "other": "else", "distance": 0.5},
    "code": {"kind": "category", "levels": ["0", "1"], "distance": 0.5},
    "school": {"kind": "ordered", "levels": ["none", "some", "all"], "distance": 0.1},
    "roams": {"kind": "yes-or-no", "yes": "oui", "no": "non", "distance": 0.3, "gap_distance": 0.2},
    "active": {"kind": "yes-or-no", "yes": "true", "no": "false", "distance": 0.3},
    "seen": {"kind": "date", "days_from": "2026-01-01", "days": 28},
    "moment": {"kind": "date", "days_from": "2026-01-01", "days": 28},
    "wrote": {"kind": "date", "days_from": "2026-01-01", "days": 28, "format": "%d/%m/%Y"},
    "topups": {"kind": "number", "gap_distance": 0.1},
}
GAPS = {"region": "north", "roams": "non", "topups": 2.0}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with session_for(sys.modules[__name__], tmp_path_factory.mktemp("events")) as session:
        yield session


def mixed() -> pa.Table:
    rng = np.random.default_rng(5)
    days = [date(2026, 1, 1) + timedelta(days=int(d)) for d in rng.integers(-40, 40, ROWS)]
    table = table_of(ROWS).select(["name", "calls"])
    columns: dict[str, Any] = {
        "region": [(None, "north", "south", "west")[i] for i in rng.integers(0, 4, ROWS)],
        "code": rng.integers(0, 2, ROWS),
        "school": [("none", "some", "all")[i] for i in rng.integers(0, 3, ROWS)],
        "roams": [("oui", "non", None)[i] for i in rng.integers(0, 3, ROWS)],
        "active": rng.integers(0, 2, ROWS) == 1,
        "seen": days,
        "moment": pa.array(
            [datetime(d.year, d.month, d.day, 23, 59) for d in days], pa.timestamp("us", "UTC")
        ),
        "wrote": [f"{d:%d/%m/%Y}" for d in days],
        "topups": [None if i % 9 == 0 else float(i) for i in range(ROWS)],
    }
    for name, values in columns.items():
        table = table.append_column(name, values if isinstance(values, pa.Array) else pa.array(values))
    return table


def in_numbers(folder: Path, ours: Any) -> pa.Table:
    """The same table with what its columns become, and a desk with these scales."""
    table = mixed()
    encoding = Encoding(ours.kinds, ours.gaps)
    features = encoding.expanded(["calls", *KINDS])
    numbers = encoding.numbers(table.combine_chunks().to_batches()[0], features, Tally(), 0)
    plain = table.select(["name"])
    for name, row in zip(features, numbers, strict=True):
        plain = plain.append_column(name, pa.array(row))
    scales = {"calls": (10.0, 8.0), "topups": (1.0, 2.0)} | encoding.scales(features)
    write_scales(folder, scales)
    make_desk(folder, features)
    return plain


def write_scales(folder: Path, scales: dict[str, tuple[float, float]]) -> None:
    lines = ['source = "public"', 'reason = "a census"', "[features]"]
    lines += [f'"{name}" = {{ center = {c!r}, scale = {s!r} }}' for name, (c, s) in scales.items()]
    (folder / "scales.toml").write_text("\n".join(lines), encoding="utf-8")


def test_spark_reads_kinds_as_the_local_engine_does(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Draws, "for_rows", lambda _: KNOWN)
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    write_scales(one, {"calls": (10.0, 8.0), "topups": (1.0, 2.0)})
    desk = make_desk(one, ("calls", *KINDS), kinds=KINDS, gaps=GAPS)
    plain = in_numbers(other, desk.policy.encoding)
    release(other, table=frame_of(spark, plain))
    expected = read_back(other / "out.parquet")
    write_parquet(one / "in.parquet", mixed())
    write_csv(one / "in.csv", mixed())
    tables = {"frame": frame_of(spark, mixed()), "parquet": "in.parquet", "csv": "in.csv"}
    for name, table in tables.items():
        release(one, f"{name}.parquet", table=table, engine="spark", new_people="a test")
        found = read_back(one / f"{name}.parquet")
        assert found.equals(expected), name
        assert holds(one / f"{name}.parquet")


def test_spark_refuses_what_is_not_declared(spark: Any, tmp_path: Path) -> None:
    kinds = {"region": {"kind": "category", "levels": ["north", "south"], "distance": 0.5}}
    make_desk(tmp_path, ("calls", "region"), kinds=kinds, scales="private")
    with pytest.raises(Refused) as refused:
        release(tmp_path, table=frame_of(spark, mixed()), engine="spark")
    told = str(refused.value)
    assert "values that are none of those declared" in told
    assert "west" not in told

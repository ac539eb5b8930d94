"""Scales learned from a table: its means and deviations, widened until enough rows fit."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from targetdp._core import Floats, Silent
from targetdp.normalization import ColumnScales
from targetdp.release import learn_scales
from targetdp.table import batch_rows

NAMES = ("a", "b", "c")


@pytest.fixture
def values() -> Floats:
    return np.random.default_rng(5).gamma(2.0, 3.0, size=(4_000, 3))


@pytest.fixture
def table(tmp_path: Path, values: Floats) -> Path:
    path = tmp_path / "census.parquet"
    pq.write_table(pa.table(dict(zip(NAMES, values.T, strict=True))), path)
    return path


def learn(table: Path, fit: float | None = None, impute: float | None = None) -> ColumnScales:
    return learn_scales(table, NAMES, id_column=None, impute=impute, fit=fit, progress=Silent())


def test_they_are_the_tables_means_and_deviations(
    table: Path, values: Floats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.release._public_scales.batch_rows", lambda _: 300)
    learned = learn(table)
    assert learned.center == pytest.approx(values.mean(axis=0), rel=1e-12)
    assert learned.scale == pytest.approx(values.std(axis=0), rel=1e-12)


@pytest.mark.parametrize("fit", [0.1, 0.5, 0.9, 1.0])
def test_the_share_that_was_asked_for_fits_in_the_unit_ball(table: Path, values: Floats, fit: float) -> None:
    learned = learn(table, fit)
    inside = np.linalg.norm((values - learned.center) / learned.scale, axis=1) <= 1 + 1e-12
    assert fit <= inside.mean() <= fit + 1 / len(values)
    plain = learn(table)
    assert np.ptp(learned.scale / plain.scale) < 1e-12, "all columns are widened alike"


@pytest.mark.parametrize("fit", [0.0, -1.0, 1.5, float("nan")])
def test_a_share_outside_0_to_1_is_refused(table: Path, fit: float) -> None:
    with pytest.raises(ValueError, match=r"fit = .* is outside \(0, 1\]"):
        learn(table, fit)


def test_gaps_are_refused_or_filled(tmp_path: Path) -> None:
    path = tmp_path / "gaps.parquet"
    pq.write_table(pa.table({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0], "c": [3.0, 2.0, 1.0]}), path)
    with pytest.raises(ValueError, match="a  1 gap, in row 2"):
        learn(path)
    assert learn(path, impute=2.0).center == pytest.approx([2.0, 2.0, 2.0])


def test_a_constant_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flat.parquet"
    pq.write_table(pa.table({"a": [1.0, 1.0], "b": [1.0, 2.0], "c": [3.0, 2.0]}), path)
    with pytest.raises(ValueError, match="constant columns among the features: 'a'"):
        learn(path)


def test_a_batch_is_never_empty() -> None:
    assert batch_rows(1) > batch_rows(10) > batch_rows(16_384) >= 64

"""The engine for one machine: what a look finds, in however many batches, and where noise is added."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    CENTERS,
    FEATURES,
    SCALES,
    holds,
    make_desk,
    normalized,
    place_with,
    read_back,
    release,
    table_of,
    values_of,
    write_parquet,
)
from support.statistics import means_agree
from targetdp._core import Silent
from targetdp.mechanisms import noise_law_of
from targetdp.normalization import ColumnScales, count_distances, count_values, declared_scales
from targetdp.release import Spelling
from targetdp.release._engine._base import Inspection
from targetdp.release._engine._local import LocalEngine, TableInMemory
from targetdp.release._engine._rows import look_at, noisy_rows, nothing_seen
from targetdp.release._ids import Names, person_tags
from targetdp.release._prepare import Recipe
from targetdp.table import Encoding

KEY = bytes(range(32))
PUBLIC = declared_scales(CENTERS, SCALES)


def recipe(
    scales: ColumnScales | None = PUBLIC, left_out: Any = (), gaps: dict[str, float] | None = None
) -> Recipe:
    estimated = () if scales is not None else (0, 2)
    names = Names("name", Spelling(), KEY, None)
    tags = np.sort(person_tags(pa.array(list(left_out), pa.string()), KEY))
    return Recipe(names, FEATURES, FEATURES, (), Encoding({}, gaps or {}), tags, estimated, scales)


def inspected(table: pa.Table, of: Recipe) -> Inspection:
    return LocalEngine(TableInMemory(table), "the frame").inspect(of, Silent())


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_a_look_finds_the_same_in_however_many_batches(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targetdp.release._engine._local.batch_rows", lambda _: batch)
    table = table_of(200)
    left_out = table["name"].to_pylist()[:30]
    found = inspected(table, recipe(left_out=left_out))
    rest = table.slice(30)
    assert (found.rows, found.left_out, found.repeated, found.counts) == (170, 30, 0, None)
    assert found.people.tolist() == sorted(person_tags(rest["name"].combine_chunks(), KEY).tolist())
    values = values_of(rest)
    assert (found.lowest < found.highest).all(), "no column is constant"
    lengths = np.linalg.norm((values - CENTERS) / SCALES, axis=1)
    assert found.clipped == np.count_nonzero(lengths > 1)
    assert found.tally.counts == {}


@pytest.mark.parametrize("batch", [7, 1000])
@pytest.mark.parametrize("left_out", [0, 30, 200])
def test_counts_for_private_scales_are_of_the_columns_that_need_them(
    batch: int, left_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.release._engine._local.batch_rows", lambda _: batch)
    table = table_of(200)
    of = recipe(None, table["name"].to_pylist()[:left_out])
    columns = np.ascontiguousarray(values_of(table.slice(left_out))[:, [0, 2]].T)
    found = inspected(table, of)
    assert found.clipped is None, "nothing about scales that are not drawn yet"
    counts = LocalEngine(TableInMemory(table), "the frame").count(of, np.array([9.5, -1.0]), Silent())
    if left_out == 200:
        assert found.counts is None
        assert counts.shape == (2, 0)
        return
    assert found.counts is not None
    assert found.counts.tolist() == count_values(columns).tolist()
    assert counts.tolist() == count_distances(columns, np.array([9.5, -1.0])).tolist()


def test_gaps_are_filled_before_columns_are_counted() -> None:
    plain = table_of(50).to_pydict()
    plain["calls"][3] = None
    table, of, centers = pa.table(plain), recipe(None, gaps={"calls": 4.0}), np.array([4.0, 0.0])
    assert LocalEngine(TableInMemory(table), "the frame").count(of, centers, Silent())[0, 0] == 1
    gone = recipe(None)
    with pytest.raises(ValueError, match="the table changed while it was read"):
        LocalEngine(TableInMemory(table), "the frame").count(gone, centers, Silent())


def test_what_is_wrong_is_counted_with_its_rows() -> None:
    plain = table_of(50).to_pydict()
    plain["calls"][3] = plain["calls"][40] = None
    plain["texts"][7] = float("nan")
    plain["name"][5] = plain["name"][6]
    plain["name"][8] = " odd"
    found = inspected(pa.table(plain), recipe(gaps={"texts": 0.0}))
    assert found.tally.counts == {("missing", "calls"): 2, ("odd id", "name"): 1}
    assert found.tally.first["missing", "calls"] == [4, 41]
    assert found.tally.first["odd id", "name"] == [9]
    assert (found.rows, found.repeated) == (50, 1)


@pytest.mark.parametrize("batch", [1, 7, 1000])
@pytest.mark.parametrize("odd", [None, 0, 6, 7, 99])
def test_a_column_is_constant_if_no_value_differs(
    batch: int, odd: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.release._engine._local.batch_rows", lambda _: batch)
    flat = np.full(100, 7.0)
    if odd is not None:
        flat[odd] = np.nextafter(7.0, 8.0)
    found = inspected(table_of(100).set_column(2, "texts", [flat]), recipe())
    assert (found.lowest == found.highest).tolist() == [False, odd is None, False]


def test_looks_add_up() -> None:
    table, of = table_of(60), recipe()
    whole, _ = look_at(table.to_batches()[0], of, 0)
    parts = [look_at(table.slice(s, 20).to_batches()[0], of, s)[0] for s in (0, 20, 40)]
    total = nothing_seen(of)
    for part in parts:
        total += part
    assert (total.rows, total.clipped, total.left_out) == (whole.rows, whole.clipped, 0)
    assert sorted(np.concatenate(total.people)) == sorted(whole.people[0])


def test_rows_are_scaled_clipped_and_then_get_noise() -> None:
    class NoNoise:
        """Adds nothing, so that what it was added to can be seen."""

        linear = None

        def add_to(self, rows: Any, words: Any) -> Any:
            return rows

    table = table_of(300)
    law: Any = NoNoise()
    words: Any = None
    rows, clipped = noisy_rows(np.ascontiguousarray(values_of(table).T), PUBLIC, law, words)
    np.testing.assert_allclose(rows, normalized(table), atol=1e-12)
    lengths = np.linalg.norm((values_of(table) - CENTERS) / SCALES, axis=1)
    assert clipped == np.count_nonzero(lengths > 1)


@pytest.mark.parametrize("batch", [97, 5000])
def test_noise_has_its_size_on_every_row(tmp_path: Path, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deviation within 3% (six standard errors of 15,000 draws): 0.9 or 1.1 of it would be found."""
    monkeypatch.setattr("targetdp.release._engine._local.batch_rows", lambda _: batch)
    folder = place_with(tmp_path, 5000)
    done = release(folder, mechanism="gaussian", epsilon=1.0, delta=1e-4)
    added = values_of(read_back(folder / "out.parquet")) - normalized(table_of(5000).sort_by("name"))
    deviation = noise_law_of(done.certificate.mechanism.law).deviation_per_column
    assert added.std() == pytest.approx(deviation, rel=0.03)
    assert abs(added.mean()) < 5 * deviation / np.sqrt(15_000)
    assert len(np.unique(added)) == added.size, "no two values have the same noise"


def test_private_scales_of_a_release_are_those_of_its_values(tmp_path: Path) -> None:
    folder = place_with(tmp_path, 20_000, scales="private", share=0.5)
    c = release(folder, epsilon=50.0).certificate
    values = values_of(table_of(20_000))
    for j, name in enumerate(FEATURES):
        center, scale = c.scales.values[name].center, c.scales.values[name].scale
        assert center == pytest.approx(np.median(values[:, j]), abs=0.2)
        assert scale == pytest.approx(np.quantile(np.abs(values[:, j] - center), 0.975), rel=0.3)


def test_two_engines_of_one_table_agree(tmp_path: Path) -> None:
    """A file and a table in memory: the same distribution of noise."""
    folder, table = place_with(tmp_path, 4000), table_of(4000)
    release(folder, "a.parquet")
    release(folder, "b.parquet", table=table)
    exact = normalized(table.sort_by("name"))
    one, two = (values_of(read_back(folder / f"{name}.parquet")) - exact for name in "ab")
    assert means_agree(one, two)
    assert not means_agree(1.1 * one, two)


def test_many_ranges_are_written_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targetdp.release._engine._base.group_rows", lambda _: 64)
    for name in ("plain", "hidden"):
        (tmp_path / name).mkdir()
        write_parquet(tmp_path / name / "in.parquet", table_of(1000))
        make_desk(tmp_path / name, pseudonyms=name == "hidden")
        release(tmp_path / name, new_people="both are compared")
        ids = read_back(tmp_path / name / "out.parquet")["name"].to_pylist()
        assert ids == sorted(set(ids))
        assert len(ids) == 1000
        assert holds(tmp_path / name / "out.parquet")

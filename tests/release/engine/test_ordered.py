"""What is written depends on the released rows alone, not on how the input was ordered or cut."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import FEATURES, settings
from targetdp._core import Silent
from targetdp.release._engine._base import output_schema, write_in_order
from targetdp.table import Sink, Spill, regrouped

ROWS = 1_000
KEPT = {"region": pa.string()}


def written(folder: Path, name: str, order: Any, cuts: list[str], batch: int, **more: Any) -> bytes:
    """The bytes of a release whose rows came in some order, in batches, and were cut at some ids."""
    rng = np.random.default_rng(3)
    ids = np.array([f"{i:05d}" for i in range(ROWS)])
    rows = rng.integers(-(2**30), 2**30, size=(ROWS, 3)) * 2.0**-27
    asked = settings(scales="given", **more)
    kept = KEPT if asked.keep else {}
    spill = Spill(None, pa.array(cuts, pa.string()), 3, kept)
    for start in range(0, ROWS, batch):
        some = order[start : start + batch]
        others = {"region": pa.array([f"r{i % 7}" for i in some])} if kept else {}
        spill.add(pa.array(ids[some].tolist()), np.ascontiguousarray(rows[some]), others)
    kind = "csv" if more else "parquet"
    path = folder / name
    with Sink(path, "csv" if kind == "csv" else "parquet", output_schema(asked, kept)) as sink:
        write_in_order(
            spill.sorted_bucket, spill.buckets, ROWS, output_schema(asked, kept), asked, sink, Silent()
        )
        sink.finish()
    spill.close()
    return path.read_bytes()


@pytest.mark.parametrize("more", [{}, {"for": "cider"}], ids=["parquet", "cider"])
def test_not_a_byte_tells_how_the_input_was_ordered_or_cut(
    tmp_path: Path, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.release._engine._base.group_rows", lambda _: 300)
    rng = np.random.default_rng(1)
    plain = written(tmp_path, "a", np.arange(ROWS), [], ROWS, **more)
    for number in range(4):
        cuts = sorted({f"{i:05d}" for i in rng.integers(0, ROWS, 5)})
        again = written(
            tmp_path, f"b{number}", rng.permutation(ROWS), cuts, int(rng.integers(50, 500)), **more
        )
        assert again == plain


def test_row_groups_have_a_fixed_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targetdp.release._engine._base.group_rows", lambda _: 300)
    written(tmp_path, "a.parquet", np.arange(ROWS)[::-1], ["00123", "00124", "00900"], 77)
    found = pq.ParquetFile(tmp_path / "a.parquet").metadata
    assert [found.row_group(i).num_rows for i in range(found.num_row_groups)] == [300, 300, 300, 100]


@pytest.mark.parametrize("sizes", [[], [0], [5], [3, 4], [10, 10], [1] * 25, [7, 0, 30]])
def test_regrouped_keeps_rows_and_their_order(sizes: list[int]) -> None:
    numbers = iter(range(sum(sizes)))
    tables = [pa.table({"x": pa.array([next(numbers) for _ in range(n)], pa.int64())}) for n in sizes]
    groups = list(regrouped(tables, 10))
    assert [v for g in groups for v in g["x"].to_pylist()] == list(range(sum(sizes)))
    assert all(g.num_rows == 10 for g in groups[:-1])
    assert all(g["x"].num_chunks == 1 for g in groups)


def test_rows_that_are_lost_are_noticed(tmp_path: Path) -> None:
    asked = settings(scales="given")
    spill = Spill(None, pa.array([], pa.string()), len(FEATURES))
    spill.add(pa.array(["a", "b"]), np.zeros((2, 3)), {})
    schema = output_schema(asked, {})
    with (
        Sink(tmp_path / "t.parquet", "parquet", schema) as sink,
        pytest.raises(RuntimeError, match="3 rows got noise, and 2 were found again"),
    ):
        write_in_order(spill.sorted_bucket, spill.buckets, 3, schema, asked, sink, Silent())
    spill.close()

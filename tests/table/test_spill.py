"""Sorting through disk: all rows come back once, sorted, whole, from any number of threads."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from targetdp._core import Floats
from targetdp.table import Spill


def collected(spill: Spill) -> tuple[list[str], Floats, dict[str, list[object]], int]:
    ids: list[str] = []
    others: dict[str, list[object]] = {}
    columns, duplicates = [], 0
    for number in range(spill.buckets):
        found, values, more, done = spill.sorted_bucket(number)
        ids += found.to_pylist()
        columns.append(values)
        for name, column in more.items():
            others.setdefault(name, []).extend(column.to_pylist())
        duplicates += done.duplicates
    return ids, np.concatenate(columns, axis=1), others, duplicates


@pytest.mark.parametrize("cuts", [[], ["00500"], ["00100", "00200", "00900"]])
@pytest.mark.parametrize("d", [1, 3])
def test_rows_come_back_sorted_with_all_that_is_theirs(tmp_path: Path, cuts: list[str], d: int) -> None:
    rng = np.random.default_rng(0)
    order = rng.permutation(1000)
    ids = [f"{i:05d}" for i in order]
    rows = rng.normal(size=(1000, d))
    kept = [None if i % 7 == 0 else f"kept {i}" for i in order]
    spill = Spill(tmp_path, pa.array(cuts, pa.string()), d, {"other k": pa.string()})
    batches = [slice(start, start + 90) for start in range(0, 1000, 90)]

    def add(where: slice) -> None:
        spill.add(pa.array(ids[where]), rows[where], {"other k": pa.array(kept[where], pa.string())})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, batches))
    found, columns, others, duplicates = collected(spill)
    back = np.argsort(order)
    assert found == sorted(ids)
    assert (columns == rows[back].T).all()
    assert others == {"other k": [kept[i] for i in back]}
    assert duplicates == 0
    assert spill.buckets == len(cuts) + 1
    spill.close()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=50))
def test_duplicates_are_counted_across_batches(ids: list[str]) -> None:
    spill = Spill(None, pa.array(sorted({ids[0], "m"}, key=str.encode)), 1)
    for name in ids:
        spill.add(pa.array([name], pa.string()), np.array([[1.0]]), {})
    found, _, _, duplicates = collected(spill)
    assert found == sorted(ids, key=str.encode)
    assert duplicates == len(ids) - len(set(ids))
    spill.close()


def test_ids_alone_can_be_spilled(tmp_path: Path) -> None:
    spill = Spill(tmp_path, pa.array(["b"]), 0)
    spill.add(pa.array(["c", "a"]), np.empty((2, 0)), {})
    spill.add(pa.array(["c"]), np.empty((1, 0)), {})
    found, columns, _, duplicates = collected(spill)
    assert (found, columns.shape, duplicates) == (["a", "c", "c"], (0, 3), 1)
    spill.close()


def test_an_empty_range_is_empty(tmp_path: Path) -> None:
    spill = Spill(tmp_path, pa.array(["b", "c"]), 2)
    spill.add(pa.array(["z"]), np.array([[1.0, 2.0]]), {})
    ids, columns, _, done = spill.sorted_bucket(0)
    assert (len(ids), columns.shape, done.duplicates) == (0, (2, 0), 0)
    assert spill.sorted_bucket(2)[0].to_pylist() == ["z"]
    spill.close()


def test_nothing_has_a_name_on_disk(tmp_path: Path) -> None:
    spill = Spill(tmp_path, pa.array([], pa.string()), 1)
    spill.add(pa.array(["a"]), np.array([[1.0]]), {})
    assert list(tmp_path.iterdir()) == []
    spill.close()


def test_slices_are_spilled_as_themselves(tmp_path: Path) -> None:
    ids = pa.array(["x", "b", "a", "y"])
    kept = pa.array([1, 2, None, 4])
    spill = Spill(tmp_path, pa.array(["b"]), 1, {"k": pa.int64()})
    spill.add(ids.slice(1, 2), np.array([[2.0], [3.0]]), {"k": kept.slice(1, 2)})
    found, columns, others, _ = collected(spill)
    assert (found, columns.tolist(), others) == (["a", "b"], [[3.0, 2.0]], {"k": [None, 2]})
    spill.close()


def test_columns_whose_type_changes_are_not_taken_for_what_they_are_not(tmp_path: Path) -> None:
    spill = Spill(tmp_path, pa.array([], pa.string()), 1, {"k": pa.int64()})
    kinds = [pa.int64(), pa.float64(), pa.int64()]

    def add_and_collect() -> dict[str, list[object]]:
        for i, kind in enumerate(kinds):
            spill.add(pa.array([f"{i}"]), np.array([[1.0]]), {"k": pa.array([i + 1]).cast(kind)})
        return collected(spill)[2]

    with closing(spill), suppress(ValueError, TypeError):
        assert add_and_collect() == {"k": [1, 2, 3]}

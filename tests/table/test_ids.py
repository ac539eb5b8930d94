"""Ids in the order of their bytes, against Python's own sorting and searching."""

import bisect

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from targetdp.table import Splitters, buckets_of, sort_ids

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ALIKE = st.builds(
    lambda shared, own: "shared-prefix-longer-than-eight" + shared + own,
    st.sampled_from(["", "0000000", "00000000", "000000000"]),
    st.text("01\x00é", max_size=4),
)


def expected(ids: list[str]) -> tuple[list[str], int]:
    return sorted(ids, key=str.encode), len(ids) - len(set(ids))


@given(st.lists(TEXT | ALIKE, min_size=1, max_size=60))
@example([""])
@example(["", ""])
@example(["a", "a\x00", "a\x00\x00", "a"])
@example(["12345678", "123456789", "1234567", "12345678\x00"])
@example(["é", "z", "e\u0301", "\U0001f642", "\uffff"])
def test_sorting_is_that_of_python_and_counts_duplicates(ids: list[str]) -> None:
    done = sort_ids(pa.array(ids, pa.string()))
    ordered, duplicates = expected(ids)
    assert [ids[i] for i in done.order] == ordered
    assert sorted(done.order) == list(range(len(ids)))
    assert done.duplicates == duplicates
    if duplicates:
        assert done.first_duplicate is not None
        assert ids.count(done.first_duplicate) > 1
    else:
        assert done.first_duplicate is None


@given(st.lists(ALIKE, min_size=1, max_size=200))
def test_long_common_prefixes_are_sorted_too(ids: list[str]) -> None:
    done = sort_ids(pa.array(ids, pa.string()))
    assert ([ids[i] for i in done.order], done.duplicates) == expected(ids)


@given(st.lists(TEXT, min_size=3, max_size=30), st.data())
def test_a_slice_is_sorted_as_itself(ids: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(ids) - 1))
    length = data.draw(st.integers(1, len(ids) - start))
    done = sort_ids(pa.array(ids, pa.string()).slice(start, length))
    part = ids[start : start + length]
    assert ([part[i] for i in done.order], done.duplicates) == expected(part)


def test_many_ids_with_ties_in_their_first_bytes() -> None:
    rng = np.random.default_rng(0)
    ids = [f"2547{n:08d}" for n in rng.integers(0, 50_000, 60_000)]
    done = sort_ids(pa.array(ids))
    assert ([ids[i] for i in done.order], done.duplicates) == expected(ids)


def test_no_ids_are_in_order() -> None:
    done = sort_ids(pa.array([], pa.string()))
    assert (len(done.order), done.duplicates, done.first_duplicate) == (0, 0, None)


@given(st.lists(TEXT, min_size=1, max_size=40), st.lists(TEXT, max_size=20, unique=True))
def test_buckets_are_those_of_bisection(ids: list[str], cuts: list[str]) -> None:
    cuts = sorted(cuts, key=str.encode)
    found = buckets_of(pa.array(ids, pa.string()), pa.array(cuts, pa.string()))
    keys = [cut.encode() for cut in cuts]
    assert found.tolist() == [bisect.bisect_right(keys, name.encode()) for name in ids]


NEAR = st.text(st.sampled_from("\0ab"), max_size=12)
"""Texts that differ late, or in length only: eight bytes rarely tell them apart."""


@given(st.lists(NEAR, min_size=1, max_size=40), st.lists(NEAR, max_size=20, unique=True), st.booleans())
def test_buckets_of_ids_that_begin_alike(ids: list[str], cuts: list[str], prefixed: bool) -> None:
    before = "+2547000" if prefixed else ""
    cuts = sorted((before + cut for cut in cuts), key=str.encode)
    ids = [*(before + name for name in ids), *ids, before[:3], "~"]
    found = buckets_of(pa.array(ids, pa.string()), pa.array(cuts, pa.string()))
    keys = [cut.encode() for cut in cuts]
    assert found.tolist() == [bisect.bisect_right(keys, name.encode()) for name in ids]


def test_equal_ids_are_in_one_bucket_however_they_are_sliced() -> None:
    ids = pa.array(["m", "a", "m", "z", "m"])
    cuts = pa.array(["?", "b", "m", "n"]).slice(1)
    assert buckets_of(ids, cuts).tolist() == [2, 0, 2, 3, 2]
    assert buckets_of(ids.slice(2, 2), cuts).tolist() == [2, 3]


def stream(ids: list[str], size: int, keep: int = 64) -> Splitters:
    splitters = Splitters(keep=keep)
    for start in range(0, len(ids), size):
        splitters.add(pa.array(ids[start : start + size], pa.string()))
    return splitters


@pytest.mark.parametrize("size", [1, 7, 1000, 100_000])
@pytest.mark.parametrize("order", ["sorted", "reversed", "random"])
def test_ranges_are_even_whatever_the_order_and_the_batches(order: str, size: int) -> None:
    ids = [f"{i:06d}" for i in range(20_000 if size > 1 else 3000)]
    if order == "reversed":
        ids.reverse()
    if order == "random":
        ids = [ids[i] for i in np.random.default_rng(4).permutation(len(ids))]
    cuts = stream(ids, size, keep=512).cut(8)
    assert cuts.to_pylist() == sorted(set(cuts.to_pylist()))
    sizes = np.bincount(buckets_of(pa.array(ids), cuts), minlength=8)
    even = len(ids) / 8
    assert len(sizes) == 8
    # Sorted streams are cut exactly but for the stride; of 512 random ids a range has 64, give or take 8.
    assert sizes.max() < (1.1 if order != "random" else 1.6) * even
    assert sizes.min() > (0.9 if order != "random" else 0.5) * even


def test_memory_for_splitters_is_bounded_and_their_distances_even() -> None:
    splitters = stream([f"{i:06d}" for i in range(50_000)], 999, keep=64)
    seen = [int(name) for chunk in splitters._seen for name in chunk.to_pylist()]
    assert 64 <= len(seen) <= 128
    assert set(np.diff(seen)) == {splitters._stride}


def test_long_ids_are_thinned_before_they_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One array of text has room for 2³¹ bytes."""
    long = [f"{i:04d}" + "x" * 1000 for i in range(600)]
    monkeypatch.setattr("targetdp.table._ids._MOST_BYTES", 50_000)
    cuts = [int(name[:4]) for name in stream(long, 50, keep=2000).cut(4).to_pylist()]
    np.testing.assert_allclose(cuts, [150, 300, 450], atol=20)
    assert stream(["x" * 100_000], 1).cut(4).to_pylist() == ["x" * 100_000]


def test_few_or_no_ids_give_few_or_no_cuts() -> None:
    assert Splitters().cut(8).to_pylist() == []
    assert stream(["a"], 1).cut(8).to_pylist() == ["a"]
    assert stream(["b", "a", "a", "a"], 4).cut(2).to_pylist() == ["a"]
    assert stream(["b", "a"], 2).cut(1).to_pylist() == []

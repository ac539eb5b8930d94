"""Ids in the order of their bytes: fast, exact, and finding duplicates on the way.

Comparing strings one by one takes ten times as long as sorting numbers. So ids are sorted by eight of
their bytes as one number, the first eight behind what all of them share, and only ties are compared.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from targetdp._core import Words, kernel

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int32]
Places = NDArray[np.int64]

_MOST_BYTES = 1 << 30
"""Of ids that are sorted to find where to cut: one array holds no more than twice as many."""


@dataclass(frozen=True)
class SortedIds:
    """The order of some ids, and how often an id is equal to the one before it in that order.

    Args:
        order: The place of each id, in the order of their bytes.
        duplicates: How many ids are equal to the one before.
        first_duplicate: One that occurs twice, for a message; None if there is none.

    Example:
        >>> sort_ids(pa.array(["b", "a", "b"])).duplicates
        1
    """

    order: Places
    duplicates: int
    first_duplicate: str | None


def sort_ids(ids: pa.StringArray) -> SortedIds:
    """Sort ids by their UTF-8 bytes, which is also the order of their code points.

    Args:
        ids: Texts, none of them null.

    Returns:
        Their order, and what occurs twice.

    Example:
        >>> sort_ids(pa.array(["b", "a", "c"])).order
        array([1, 0, 2])
    """
    if len(ids) == 0:
        return SortedIds(np.empty(0, dtype=np.int64), 0, None)
    data, offsets = text_buffers(ids)
    skip = _common_prefix(data, offsets)
    keys = _keys(data, offsets, skip)
    order = np.argsort(keys).astype(np.int64, copy=False)
    same = np.diff(keys[order]) == 0
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    # Ids of different keys are in order already: tied ones that are sorted together stay among their own.
    texts = ids.take(pa.array(order[tied]))
    by_text = pc.sort_indices(texts)
    order[tied] = order[tied][by_text.to_numpy()]
    texts = texts.take(by_text)
    again = texts[1:].filter(pc.equal(texts[1:], texts[:-1]))
    return SortedIds(order, len(again), again[0].as_py() if len(again) else None)


def buckets_of(ids: pa.StringArray, splitters: pa.StringArray) -> NDArray[np.uint16]:
    """The range that each id belongs to.

    Args:
        ids: Texts, none of them null.
        splitters: Where ranges begin: sorted, and fewer than 2¹⁶.

    Returns:
        For each id, how many splitters are at or below it.

    Example:
        >>> buckets_of(pa.array(["a", "m", "z"]), pa.array(["m"]))
        array([0, 1, 1], dtype=uint16)
    """
    if len(splitters) == 0:
        return np.zeros(len(ids), dtype=np.uint16)
    return np.asarray(_search(*text_buffers(ids), *text_buffers(splitters)))


class Splitters:
    """Ids at regular distances from a stream of unknown length, to cut it into even ranges.

    Every ``stride``-th id is kept; when there are too many, every second of them goes and the stride doubles.

    Args:
        keep: How many ids are kept, up to twice as many.

    Example:
        >>> splitters = Splitters()
        >>> splitters.add(pa.array(["a", "b", "c", "d"]))
        >>> splitters.cut(2).to_pylist()
        ['c']
    """

    def __init__(self, keep: int = 1 << 16) -> None:
        self._keep, self._stride, self._next = keep, 1, 0
        self._seen: list[pa.StringArray] = []
        self._count = 0

    def add(self, ids: pa.StringArray) -> None:
        """Take the next ids of the stream."""
        while self._next < len(ids):
            room = 2 * self._keep - self._count
            places = np.arange(self._next, len(ids), self._stride)[:room]
            self._seen.append(ids.take(pa.array(places)))
            self._count += len(places)
            self._next = int(places[-1]) + self._stride
            if self._count >= 2 * self._keep:
                self._thin()
                self._stride *= 2
        self._next -= len(ids)

    def cut(self, buckets: int) -> pa.StringArray:
        """Choose ids that cut the stream into nearly equal parts.

        Args:
            buckets: How many parts.

        Returns:
            At most one id fewer than parts, sorted and all different.
        """
        while sum(chunk.nbytes for chunk in self._seen) > _MOST_BYTES and self._count > 1:
            self._thin()  # ids of many kilobytes each
        if self._count == 0:
            return pa.array([], pa.string())
        seen = pa.concat_arrays(self._seen)
        places = len(seen) * np.arange(1, buckets) // buckets
        return seen.take(pa.array(sort_ids(seen).order[places])).unique()  # which keeps their order

    def _thin(self) -> None:
        """Drop every second id of those that were kept."""
        thinned = pa.chunked_array(self._seen).take(pa.array(np.arange(0, self._count, 2)))
        self._seen, self._count = thinned.chunks, len(thinned)


def text_buffers(ids: pa.StringArray) -> tuple[Bytes, Offsets]:
    """The bytes of all ids and where each begins; no id may be null."""
    _, offsets, data = ids.buffers()
    starts = np.frombuffer(offsets, dtype=np.int32)[ids.offset : ids.offset + len(ids) + 1]
    return np.frombuffer(data, dtype=np.uint8) if data else np.empty(0, dtype=np.uint8), starts


@kernel
def _common_prefix(data: Bytes, offsets: Offsets) -> int:
    """How many leading bytes all ids share."""
    start = np.int64(offsets[0])
    shared = np.int64(offsets[1]) - start
    for i in range(1, len(offsets) - 1):
        a, b = np.int64(offsets[i]), np.int64(offsets[i + 1])
        shared = min(shared, b - a)
        for k in range(shared):
            if data[a + k] != data[start + k]:
                shared = np.int64(k)
                break
    return int(shared)


@kernel
def _keys(data: Bytes, offsets: Offsets, skip: int) -> Words:
    """Eight bytes of each id from ``skip`` on as one number, the first byte the most significant."""
    keys = np.zeros(len(offsets) - 1, dtype=np.uint64)
    for i in range(len(keys)):
        keys[i] = _key(data, np.int64(offsets[i]) + skip, np.int64(offsets[i + 1]))
    return keys


@kernel
def _key(data: Bytes, start: Any, end: Any) -> Any:
    """Up to eight bytes as one number; what is missing counts as zero."""
    key = np.uint64(0)
    for k in range(8):
        key = (key << np.uint64(8)) | (np.uint64(data[start + k]) if start + k < end else np.uint64(0))
    return key


@kernel
def _compare(data: Bytes, a: Any, a_end: Any, other: Bytes, b: Any, b_end: Any) -> int:
    """Compare bytes: negative, zero or positive as a comes before b, equals it, or comes after it."""
    for k in range(min(a_end - a, b_end - b)):
        if data[a + k] != other[b + k]:
            return int(np.int64(data[a + k]) - np.int64(other[b + k]))
    return int((a_end - a) - (b_end - b))


@kernel
def _search(data: Bytes, offsets: Offsets, split_data: Bytes, split_offsets: Offsets) -> NDArray[np.uint16]:
    """Binary search of every id among the splitters: by eight bytes, and by all of them where these tie."""
    out = np.empty(len(offsets) - 1, dtype=np.uint16)
    last = len(split_offsets) - 1
    shared = _common_prefix(split_data, split_offsets)
    start = np.int64(split_offsets[0])
    split_keys = _keys(split_data, split_offsets, shared)
    for i in range(len(out)):
        a, a_end = np.int64(offsets[i]), np.int64(offsets[i + 1])
        beside = _compare(data, a, min(a_end, a + shared), split_data, start, start + shared)
        if beside != 0:
            out[i] = 0 if beside < 0 else last
            continue
        key = _key(data, a + shared, a_end)
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            at_or_below = split_keys[middle] < key
            if split_keys[middle] == key:
                b, b_end = np.int64(split_offsets[middle]), np.int64(split_offsets[middle + 1])
                at_or_below = _compare(split_data, b, b_end, data, a, a_end) <= 0
            if at_or_below:
                low = middle + 1
            else:
                high = middle
        out[i] = low
    return out

"""The people index: who was in which release, as sorted keyed tags, and who has what in common.

A tag is 64 bits of a keyed hash of an id. Two people who share a tag count as one, who was in all releases
that either was in: more is spent then, never less.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from targetdp._core import Words, kernel
from targetdp._files import sync_folder, write_whole

_BITS = 64
MOST_GROUPS = 200
"""Groups of people whose releases are composed one by one; beyond it, groups are united."""


def write_people(folder: Path, release: str, tags: Words) -> str:
    """Keep who is in a release, for the owner's eyes, on disk when it returns; the file's SHA-256."""
    data = np.ascontiguousarray(tags, dtype="<u8").data.cast("B")
    folder.mkdir(mode=0o700, exist_ok=True)
    write_whole(folder / f"{release}.tags", data, private=True)
    sync_folder(folder)
    return hashlib.sha256(data).hexdigest()


def forget_people(folder: Path, release: str) -> None:
    """Remove who would have been in a release that was not reserved."""
    (folder / f"{release}.tags").unlink(missing_ok=True)


def read_people(folder: Path, release: str, sha256: str) -> Words:
    """Who was in a release; a ValueError unless the file is the one on record."""
    path = folder / f"{release}.tags"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error.strerror}): without it nobody knows who was in release "
            f"{release[:12]}, so nothing more is released; bring it back from your backup"
        ) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError(
            f"{path} is not the file that the ledger has on record: bring the right one back from your backup"
        )
    return np.frombuffer(data, dtype="<u8")


def common(tags: Words, others: Words) -> int:
    """How many people two releases share."""
    marks = np.zeros(len(tags), dtype=np.uint64)
    _mark(tags, others, marks, np.uint64(1))
    return int(np.count_nonzero(marks))


def groups_of(tags: Words, others: Sequence[Words]) -> Iterator[tuple[frozenset[int], int]]:
    """People grouped by which of the other releases they are in: their places, and how many people."""
    words = -(-len(others) // _BITS) or 1
    marks = np.zeros((len(tags), words), dtype=np.uint64)
    for place, other in enumerate(others):
        _mark(tags, other, marks[:, place // _BITS], np.uint64(1) << np.uint64(place % _BITS))
    if words == 1:
        kinds, counts = np.unique(marks[:, 0], return_counts=True)
        kinds = kinds[:, None]
    else:
        kinds, counts = np.unique(marks, axis=0, return_counts=True)
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        yield (
            frozenset(p for p in range(len(others)) if kind[p // _BITS] >> (p % _BITS) & 1),
            int(count),
        )


@kernel
def _mark(tags: Words, others: Words, marks: Words, bit: np.uint64) -> None:
    """Set a bit for each tag that is among the others; both are sorted, so one walk along both is enough."""
    place = 0
    for i in range(len(tags)):
        while place < len(others) and others[place] < tags[i]:
            place += 1
        if place == len(others):
            return
        if others[place] == tags[i]:
            marks[i] |= bit

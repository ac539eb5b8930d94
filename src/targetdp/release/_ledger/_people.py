"""The people index: who was in which release, as sorted keyed tags, and what that cost them.

A tag is 64 bits of a keyed hash of an id. Two people who share a tag count as one, who was in all releases
that either was in: more is spent then, never less. The one exception is an ordinary person with the tag of
one who agreed to be handed over, of probability n·2⁻⁶⁴ where n people agreed (`AgreedPeople`).
"""

import hashlib
import re
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Words, kernel
from targetdp._files import sync_folder, write_whole


class Listed(Protocol):
    """What has a list of people: a release, or an agreement."""

    @property
    def name(self) -> str:
        """Its id, as entries name it."""

    @property
    def list_name(self) -> str:
        """What the list is called."""

    @property
    def people(self) -> str:
        """The SHA-256 of the list."""

    @property
    def list_changed(self) -> bool:
        """Whether somebody was erased from it."""

    @property
    def title(self) -> Mapping[str, Any]:
        """What else is on record."""


def people_path(folder: Path, release: str, sha256: str, *, erased: bool) -> Path:
    """Where the list of a release is.

    A list that somebody was erased from lies beside the one before it until it is on record, so that one of
    them always is.
    """
    return folder / (f"{release}-{sha256[:16]}.tags" if erased else f"{release}.tags")


def write_people(folder: Path, release: str, tags: Words, *, erased: bool = False) -> str:
    """Keep who is in a release, for the owner's eyes, on disk when it returns; the file's SHA-256."""
    data = np.ascontiguousarray(tags, dtype="<u8").data.cast("B")
    sha256 = hashlib.sha256(data).hexdigest()
    folder.mkdir(mode=0o700, exist_ok=True)
    write_whole(people_path(folder, release, sha256, erased=erased), data, private=True)
    sync_folder(folder)
    return sha256


def forget_people(folder: Path, release: str, but: Path | None = None) -> None:
    """Remove the lists of a release that are not on record, and what killed runs have left of any.

    The caller makes sure that nobody is writing one.
    """
    own = re.compile(rf"\.?{re.escape(release)}(-[0-9a-f]{{16}})?\.tags(\.[0-9a-f]+\.new)?")
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        if own.fullmatch(path.name) and path != but:
            path.unlink(missing_ok=True)


def forget_unknown(folder: Path, prefix: str, known: Container[Path]) -> None:
    """Remove lists whose names begin so and that are not on record, of killed runs; under the lock."""
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        if path.name.lstrip(".").startswith(prefix) and path not in known:
            path.unlink(missing_ok=True)


def read_people(path: Path, release: str, sha256: str) -> Words:
    """Who was in a release; a ValueError unless the file is the one on record."""
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


class Sums:
    """What people have spent: sorted tags, and some sums for each of them."""

    def __init__(self, tags: Words, amounts: int) -> None:
        self.tags = tags
        self._each, self._all = np.zeros((amounts, len(tags))), np.zeros(amounts)

    @property
    def amounts(self) -> Floats:
        """What each person has spent, a row each."""
        return np.asarray(self._each.T + self._all)

    def add(self, others: Words, amounts: Floats) -> int:
        """Charge those who are among the others; how many they are."""
        if self._are(others):  # table after table of the same people: the usual case
            self._all += amounts
            return len(others)
        return int(_add(self.tags, others, self._each, amounts))

    def known(self, others: Words) -> int:
        """How many of the others are here."""
        return len(others) if self._are(others) else int(_add(self.tags, others, self._each, np.zeros(0)))

    def _are(self, others: Words) -> bool:
        return len(self.tags) > 0 and np.array_equal(self.tags, others)

    def united_with(self, others: Words) -> "Sums":
        """The same for everybody who is here or there; who is new has spent nothing."""
        wide = Sums(np.union1d(self.tags, others), len(self._all))
        wide._each[:, np.searchsorted(wide.tags, self.tags)] = self.amounts.T
        return wide

    def most(self, among: NDArray[np.bool_] | None = None) -> Floats:
        """The most that anybody has spent, or anybody of some, of each amount."""
        each = self._each if among is None or among.all() else self._each[:, among]
        return np.asarray(each.max(axis=1, initial=0.0) + self._all)


@kernel
def _add(tags: Words, others: Words, sums: Floats, amounts: Floats) -> int:
    """Add to the sums of each tag that is among the others; both are sorted, so one walk is enough."""
    place = found = 0
    for i in range(len(tags)):
        while place < len(others) and others[place] < tags[i]:
            place += 1
        if place == len(others):
            break
        if others[place] == tags[i]:
            found += 1
            for j in range(len(amounts)):
                sums[j, i] += amounts[j]
    return found

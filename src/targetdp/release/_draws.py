"""The draws of one reservation: a secret from which all its noise follows, so that a re-run repeats it.

A run that dies after its first draw has drawn noise that nobody has seen. If the next run drew again, whoever
looks at what a run left behind could choose between draws. So the secret stays with the desk until the
release is settled, and the same release gets the same noise, on the same rows: of whatever noise was drawn
for, a keyed fingerprint was written down before. With the secret all noise could be taken off the release: it
is erased at settlement, and its folder tells backups to leave it out.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from targetdp._core import Floats, Integers, Words
from targetdp._files import sync_folder, write_whole
from targetdp.noise import SecretWords, derived_key, fresh_keys
from targetdp.release._ids import text_buffers
from targetdp.release._trust._keys import wipe

_SECRET, _DRAWN, _LOCK, _ANSWERS = "secret", "drawn", "lock", "answers"
_KEY_BYTES = 32
_TAG = 16
_RECORD = 8 + _TAG
_MOST_SEALED = 1 << 30
"""Bytes: AES-GCM takes less than 2³¹, and all people's scores may be more."""
_CACHEDIR = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Secrets of releases that are being made. Backups must leave this folder out: with such a secret the\n"
    "# noise could be taken off a release.\n"
)
_DECISIONS = (1 << 63) - 3
_SCALES = {"centers": (1 << 63) - 1, "scales": (1 << 63) - 2}
"""The numbers under which fingerprints of what was drawn for are kept; batches have small ones."""
_ANY_ORDER = frozenset({_DECISIONS, *_SCALES.values()})
"""What any run repeats, in whichever order rows come."""


class TableChangedError(ValueError):
    """A run that goes on with earlier draws met other rows than these were drawn for."""

    def __init__(self) -> None:
        super().__init__(
            "the table is not the one that this release was begun with: its noise was drawn for other rows. "
            "The earlier attempt stays charged, and its draws were erased; run again for a new release, "
            "which is charged anew"
        )


class Draws:
    """The secret of a reservation, and for what noise was drawn with it.

    Guarantees: of several processes one has it at a time. Words for a batch of rows are the same each time,
    and are never given for other rows than the first time.
    """

    def __init__(self, folder: Path, lock: int, key: bytes) -> None:
        self._folder, self._key = folder, key
        self._lock: int | None = lock
        self._seal = AESGCM(derived_key(self._key, "fingerprints"))
        self._known = _read(folder / _DRAWN)
        self._file: int | None = None
        self._mutex = threading.Lock()

    @classmethod
    def create(cls, drafts: Path, release: str, bound: str) -> "Draws":
        """A new secret, on disk when this returns; ``bound`` is a hash of what must stay the same."""
        folder = made_drafts(drafts) / release
        folder.mkdir(mode=0o700)
        lock = _locked(folder)
        if lock is None:
            raise RuntimeError(f"{folder} was taken by another process: run again")
        (key,) = fresh_keys(1)
        # Empty: nothing was drawn. Where it is missing, somebody has removed it, and noise may have been.
        write_whole(folder / _DRAWN, b"", private=True)
        write_whole(folder / _SECRET, f"{key.hex()} {bound}\n", private=True)
        sync_folder(drafts)
        return cls(folder, lock, key)

    @classmethod
    def reopen(cls, drafts: Path, release: str, bound: str) -> "Draws | None":
        """The secret that an earlier run has left for the same release; None if none is, or it is busy."""
        folder = drafts / release
        found = _secret(folder)
        lock = _locked(folder) if found is not None and found[1] == bound else None
        return None if lock is None or found is None else cls(folder, lock, found[0])

    @property
    def begun(self) -> bool:
        """Whether any noise was drawn."""
        return _size(self._folder / _DRAWN) != 0

    @property
    def in_any_order(self) -> bool:
        """Whether nothing was drawn but what any run repeats, in whichever order rows come."""
        return in_any_order(self._folder)

    def for_scales(self, step: Literal["centers", "scales"], counts: Integers) -> SecretWords:
        """Words for the centers, or then the scales, of a table with these counts."""
        self._note(_SCALES[step], counts)
        return SecretWords(derived_key(self._key, step))

    def for_batch(self, number: int, ids: pa.StringArray, columns: Floats | Integers) -> SecretWords:
        """Words for the rows of a batch, their values or scores, for the thread that asks."""
        texts, starts = text_buffers(ids)
        # Of these rows alone: they may be a slice of a larger table.
        self._note(number, columns, starts - starts[0], texts[starts[0] : starts[-1]])
        return SecretWords(derived_key(self._key, f"batch {number}"))

    def answers(self, number: int, rows: pa.RecordBatch, make: Callable[[], Integers]) -> Integers:
        """What models made of a batch of rows: made once, and kept until the release is settled.

        A model may answer otherwise another time, when time or memory is short. What is kept is sealed under
        the secret: whoever erases that has erased it.
        """
        place, nonce = self._folder / f"{_ANSWERS} {number}", number.to_bytes(12, "big")
        about = hashlib.sha256()
        # A batch by itself does not hold the values of its dictionaries.
        for column in rows.columns:
            values = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            about.update(pa.record_batch([values], ["values"]).serialize())
        seal = AESGCM(derived_key(self._key, _ANSWERS))
        if place.exists():
            try:
                kept = seal.decrypt(nonce, place.read_bytes(), about.digest())
            except InvalidTag as error:
                raise TableChangedError from error
            return np.frombuffer(kept, dtype=np.int64).reshape(rows.num_rows, -1).copy()
        made = np.ascontiguousarray(make(), dtype=np.int64)
        write_whole(place, seal.encrypt(nonce, made.tobytes(), about.digest()), private=True)
        return made

    def for_decisions(self, tags: Words, scores: Integers) -> SecretWords:
        """Words for the bits of people with these tags and scores, in this order: the same each time."""
        self._note(_DECISIONS, tags, scores)
        return SecretWords(derived_key(self._key, "decisions"))

    def for_rows(self) -> tuple[bytes, bytes]:
        """Keys for words that belong to rows: of their tags, and of their noise."""
        self._note(0, np.zeros(1))
        return derived_key(self._key, "row tags"), derived_key(self._key, "row noise")

    def _note(self, number: int, *parts: Any) -> None:
        """Write down, before words are given, for what they are; refuse another thing than the first time."""
        mark = number.to_bytes(8, "big")
        tags = (
            self._seal.encrypt(mark + place.to_bytes(4, "big"), b"", piece)
            for place, piece in enumerate(piece for part in parts for piece in _pieces(part))
        )
        tag = self._seal.encrypt(mark + b"\xff" * 4, b"", b"".join(tags))[:_TAG]
        with self._mutex:
            if (known := self._known.get(number)) is not None:
                if known != tag:
                    raise TableChangedError
                return
            self._known[number] = tag
            first = self._file is None
            if self._file is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
                self._file = os.open(self._folder / _DRAWN, flags, 0o600)
                # Half a record, that a kill has left, was never acted on.
                os.ftruncate(self._file, _RECORD * (len(self._known) - 1))
            if os.write(self._file, mark + tag) != _RECORD:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._folder))
            # From now on the disk knows that noise was drawn; what scales tell, a refusal may tell at once;
            # and the words of decisions must never meet other scores, also when the power fails.
            if first or number in _ANY_ORDER:
                os.fsync(self._file)

    def close(self) -> None:
        """Let go of it: another run may go on. The second time, nothing happens."""
        handles, self._file, self._lock = (self._file, self._lock), None, None
        for handle in handles:
            if handle is not None:
                os.close(handle)

    def erase(self) -> None:
        """Forget the secret for good."""
        erase(self._folder)


def made_drafts(drafts: Path) -> Path:
    """The folder of what is being made, made if there is none; backups leave it out."""
    if not drafts.exists():
        drafts.mkdir(mode=0o700, exist_ok=True)
    if not (drafts / "CACHEDIR.TAG").exists():
        write_whole(drafts / "CACHEDIR.TAG", _CACHEDIR, private=True)
    return drafts


def erase(folder: Path) -> None:
    """Forget the secret of a release for good, where there is one."""
    wipe(folder / _SECRET)
    if folder.is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        sync_folder(folder.parent)


def _pieces(part: Any) -> Iterator[memoryview]:
    """The bytes of anything, no more at once than can be sealed."""
    whole = memoryview(np.ascontiguousarray(part).view(np.uint8).ravel().data)
    yield from (whole[start : start + _MOST_SEALED] for start in range(0, max(1, len(whole)), _MOST_SEALED))


def drafts_in(drafts: Path) -> list[str]:
    """The releases whose draws are there, whole."""
    # `Draws.create` writes this file last: before, its folder may not be locked yet, and is left alone.
    return sorted(place.parent.name for place in drafts.glob(f"*/{_SECRET}"))


@contextmanager
def kept_from_others(drafts: Path, release: str) -> Iterator[bool]:
    """Within, no other process makes a release, or goes on with it; false if one is at it."""
    try:
        lock = _locked(drafts / release)
    except FileNotFoundError:  # another process has erased it just now
        lock = None
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


def nothing_was_drawn(drafts: Path, release: str) -> bool:
    """Whether it is known that no noise was drawn for a release. The caller keeps others from it."""
    folder = drafts / release
    # A secret that is not whole any more is being erased: noise may have been drawn with it.
    return _secret(folder) is not None and _size(folder / _DRAWN) == 0


def can_go_on(drafts: Path, release: str, bound: str, *, any_order: bool) -> bool:
    """Whether an earlier run has left its draws for the same release, and is gone.

    Rows that come in ``any_order`` get no noise a second time: then only what does not depend on their order
    may have been drawn.
    """
    folder = drafts / release
    found = _secret(folder)
    if found is None or found[1] != bound or is_at_work(drafts, release):
        return False
    return not any_order or in_any_order(folder)


def is_at_work(drafts: Path, release: str) -> bool:
    """Whether a process is making a release right now."""
    folder = drafts / release
    if not folder.is_dir():
        return False
    lock = _locked(folder)
    if lock is not None:
        os.close(lock)
    return lock is None


def _secret(folder: Path) -> tuple[bytes, str] | None:
    """The secret in a folder of draws, and what it is bound to; None if there is none, whole.

    Without the list of what noise was drawn for, it must not be drawn with again: other rows might get it.
    """
    try:
        (folder / _DRAWN).stat()
        key, bound = (folder / _SECRET).read_text(encoding="utf-8").split()
        secret = bytes.fromhex(key)
    except (OSError, ValueError):
        return None
    return (secret, bound) if len(secret) == _KEY_BYTES else None


def _locked(folder: Path) -> int | None:
    """Lock a folder of draws for this process alone, until the handle is closed; None if another has it."""
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def in_any_order(folder: Path) -> bool:
    """Whether nothing was drawn in a folder of draws but scales and decisions, if anything."""
    return _read(folder / _DRAWN).keys() <= _ANY_ORDER


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _read(path: Path) -> dict[int, bytes]:
    """What noise was drawn for; a record that was cut short by a kill was never acted on."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    whole = len(data) - len(data) % _RECORD
    records = (data[at : at + _RECORD] for at in range(0, whole, _RECORD))
    return {int.from_bytes(record[:8], "big"): record[8:] for record in records}

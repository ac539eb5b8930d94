"""A desk's signing key is changed, or replaced where it is lost: on record, and whole if a run is killed.

The new key is written beside the old one, then the ledger is told, then it takes the old one's name. Whoever
opens the desk next finishes what a killed run has begun: the ledger says which of both keys signs.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from targetdp._files import remove_drafts, sync_folder
from targetdp.release._draws import drafts_in, is_at_work
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._entries import Reading
from targetdp.release._trust._keys import KeyDamagedError, SigningKey, wipe

if TYPE_CHECKING:
    from targetdp.release._desk import Desk

SIGNING, NEXT = "signing.pem", "signing.next.pem"


def rotate_key(desk: "Desk", reason: str) -> SigningKey:
    """Let a new key sign for a desk, on the word of the one that has signed so far, which is destroyed.

    Args:
        desk: The desk.
        reason: Why; it goes on record.

    Returns:
        The new key.

    Raises:
        ValueError: A release is being made, or the ledger cannot be believed.

    Guarantees: killed at any moment, the desk signs with the old key or with the new one, and its ledger says
    so. Certificates carry the step from now on, so that whoever trusts the old key can follow.
    Does not guarantee: anything against whoever has a copy of the old key. He can still sign certificates
    that those believe who trust it, and name a successor of his own: tell them the new key. At the desk he
    can settle what was reserved before the change, and claim releases that never were, which are then
    charged; he can free nothing, and add no entry. A copy in a backup is not destroyed.
    """
    keys = desk.path / "keys"
    with _alone(keys), desk.ledger() as ledger:
        new = _next_key(keys, ledger.reading)
        ledger.change_key(new, reason, look=lambda: _must_be_idle(desk))
        _take_place(keys, ledger.reading)
    desk.__dict__.pop("key", None)
    return new


def replace_key(desk: "Desk", reason: str) -> SigningKey:
    """Let a new key sign for a desk whose key is lost, without its word; that stays on record.

    Args:
        desk: The desk.
        reason: How it was lost.

    Returns:
        The new key.

    Raises:
        ValueError: The key is there, or another one is; or the ledger's entries cannot be believed.

    Guarantees: as for `rotate_key`; what marks and certificates say against the ledger stays to be looked at.
    Does not guarantee: that whoever trusts the old key can tell the new one from a stranger's. Certificates
    carry no step across this point: tell people the new fingerprint by another way.
    """
    keys = desk.path / "keys"
    keys.mkdir(mode=0o700, exist_ok=True)
    with _alone(keys), desk.ledger(without_key=True) as ledger:
        present = _present(keys / SIGNING)
        if present is not None and present.public == ledger.reading.key:
            raise ValueError("the key of this desk is there, and fits: targetdp key rotate changes it")
        if present is not None:
            raise ValueError(
                f"{keys / SIGNING} is key {present.fingerprint}, which is not that of this desk's ledger: "
                "bring the right one back from a backup; if that is lost, move this one away first"
            )
        _must_be_idle(desk)
        new = _next_key(keys, ledger.reading)
        ledger.replace_lost_key(new, reason)
        _take_place(keys, ledger.reading)
    desk.__dict__.pop("key", None)
    return new


def finish_change(desk: Path) -> None:
    """Give the new key its name, where a run was killed after it had told the ledger."""
    keys = desk / "keys"
    if not (keys / NEXT).exists():
        return
    # What cannot be read is told by whoever needs it.
    with _alone(keys), suppress(ValueError, FileNotFoundError), Ledger(desk / "ledger.db") as ledger:
        _take_place(keys, ledger.reading)


def _take_place(keys: Path, reading: Reading) -> None:
    """Put the new key in place of the old one, if the ledger says so. The caller keeps others away."""
    new = _present(keys / NEXT)
    if reading.chain_problems or new is None or new.public != reading.key:
        return
    if reading.signers[-1].lost is None:
        wipe(keys / SIGNING)
    (keys / NEXT).replace(keys / SIGNING)
    sync_folder(keys)


def _next_key(keys: Path, reading: Reading) -> SigningKey:
    """A new key in its own file; one that a killed run has left, and nobody has used, will do."""
    remove_drafts(keys, NEXT)
    found = _present(keys / NEXT)
    if found is None or found.public in {one.public for one in reading.signers}:
        if (keys / NEXT).exists():
            wipe(keys / NEXT)
            (keys / NEXT).unlink()
        found = SigningKey.open(keys / NEXT)
    return found


def _present(path: Path) -> SigningKey | None:
    """The key in a file; None if it is gone or damaged. One that others can read is an error."""
    try:
        return SigningKey.open(path, create=False) if path.exists() else None
    except KeyDamagedError:
        return None


def _must_be_idle(desk: "Desk") -> None:
    """A release that is being made would end with a key that signs no longer."""
    for release in drafts_in(desk.drafts):
        if is_at_work(desk.drafts, release):
            raise ValueError(f"release {release[:12]} is being made right now: wait for it, then run again")


@contextmanager
def _alone(keys: Path) -> Iterator[None]:
    """Within, no other process changes the keys in a folder; one that does is waited for."""
    handle = os.open(keys, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)

"""Signed entries that each hold the hash of the one before, and what shows that they were tampered with.

Nobody without the key can edit, insert, reorder or remove an entry without being found out, except at the
end. For the end there is the *mark*, the file ``<ledger>.head``: number and hash of the newest entry, signed.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from targetdp._files import canonical
from targetdp.release._trust._keys import is_signed

GENESIS = "targetdp ledger, format 2"
"""What the first entry follows; its body holds an id drawn at random, so that no two chains are alike."""

OPENED = "opened"
LONGEST_REASON = 2000
"""Characters of why something was done."""


@dataclass(frozen=True)
class Head:
    """An entry of a ledger, named so that it cannot be mistaken: certificates carry one."""

    ledger_id: str
    number: int
    hash: str

    def fields(self) -> dict[str, Any]:
        """What a mark says of it."""
        return {"ledger": self.ledger_id, "number": self.number, "hash": self.hash}

    def message(self) -> bytes:
        """What is signed of a mark. The words keep a signature from passing for one of something else."""
        return f"targetdp ledger head {canonical(self.fields())}".encode()


@dataclass(frozen=True)
class Witness:
    """Somebody who has seen an entry of a ledger: a certificate, or the user's own list.

    A certificate also tells of its release: ``charge``, ``space`` and ``title``, as the ledger has them,
    the SHA-256 of its ``policy``, and what it has ``stated`` of all releases, near and at distance 2.
    """

    name: str
    head: Head
    release: str | None = None
    charge: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, str] = field(default_factory=dict)
    title: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""
    scales: Mapping[str, Any] | None = None
    policy: str = ""
    stated: Sequence[Mapping[str, float]] = ()


@dataclass(frozen=True)
class Entry:
    """One entry; ``hash`` covers all before it in this list, ``previous`` is the hash of the one before."""

    number: int
    time: str
    kind: str
    release: str
    body: str
    previous: str
    hash: str = ""
    key: str = ""
    signature: str = ""

    def digest(self) -> str:
        """SHA-256 of everything but hash and signature; the key is in it, so that nobody can sign anew."""
        return hashlib.sha256(canonical([*astuple(self)[:6], self.key]).encode()).hexdigest()

    def message(self) -> bytes:
        """What is signed of an entry."""
        return f"targetdp ledger entry {self.hash}".encode()

    def is_well_formed(self) -> bool:
        """Whether every field has its type: another program may have written others."""
        number, *texts = astuple(self)
        return type(number) is int and all(isinstance(text, str) for text in texts)


@dataclass(frozen=True)
class Reading:
    """A chain and its mark as they were found on disk."""

    path: Path
    entries: tuple[Entry, ...]
    mark: str | None

    @property
    def ledger_id(self) -> str:
        """The id that entry 1 holds, or nothing if there is no such entry."""
        try:
            return str(json.loads(self.entries[0].body)["ledger"])
        except (IndexError, KeyError, TypeError, ValueError, RecursionError):
            return ""

    @property
    def key(self) -> str:
        """The public key that signs this chain: that of its first entry."""
        return self.entries[0].key if self.entries else ""

    def head(self, number: int | None = None) -> Head:
        """The newest entry, or one by its number."""
        entry = self.entries[-1 if number is None else number - 1]
        return Head(self.ledger_id, entry.number, entry.hash)

    @cached_property
    def chain_problems(self) -> list[str]:
        """Entries that were edited, reordered, removed or signed by someone else."""
        if not self.entries:
            return ["it has no entries: all of them were removed"]
        first = self.entries[0]
        found = problems_after(GENESIS, 0, self.entries, first.key)
        if first.kind != OPENED or not self.ledger_id:
            found.append("its first entry is not the one that opened it")
        return found

    def mark_problems(self) -> list[str]:
        """What the mark says against the chain. A mark that lags behind is no problem: see `Chain`."""
        name = mark_path(self.path).name
        if self.mark is None:
            if len(self.entries) <= 1:  # the very first append may have been interrupted
                return []
            return [f"{name} is missing: without it, nobody can tell whether the newest entries were cut"]
        try:
            fields = json.loads(self.mark)
            head = Head(str(fields["ledger"]), int(fields["number"]), str(fields["hash"]))
            signature = fields["signature"]
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            return [f"{name} is malformed"]
        if not is_signed(self.key, signature, head.message()):
            return [f"{name} is not signed by the key of entry 1"]
        return self.head_problems(head, name)

    def head_problems(self, head: Head, witness: str) -> list[str]:
        """Whether an entry that a witness (the mark, a certificate) has seen is still there."""
        if head.ledger_id != self.ledger_id:
            return [f"{witness} belongs to another ledger ({head.ledger_id}; this is {self.ledger_id})"]
        last = self.entries[-1].number if self.entries else 0
        if head.number > last:
            return [f"the tail was cut: {witness} has seen entry {head.number}, the last is {last}"]
        if not any(entry.number == head.number and entry.hash == head.hash for entry in self.entries):
            return [f"the history was replaced: {witness} has seen another entry {head.number}"]
        return []


def problems_after(before: str, number: int, entries: Sequence[Entry], key: str) -> list[str]:
    """What is wrong with entries that follow one with this hash and number, in a chain of this key."""
    found: list[str] = []
    for entry in entries:
        if not entry.is_well_formed():
            found.append(f"entry {entry.number!r} is malformed")
            continue
        if entry.number != number + 1:
            found.append(f"between entries {number} and {entry.number} some are missing")
        elif entry.previous != before:
            found.append(f"entry {entry.number} does not follow the entry before it")
        if entry.hash != entry.digest():
            found.append(f"entry {entry.number} was edited: its hash does not fit what it says")
        if entry.key != key:
            found.append(
                f"entry {entry.number} names another key than entry 1: a ledger has one key, "
                "changes are not supported"
            )
        elif not is_signed(entry.key, entry.signature, entry.message()):
            found.append(f"entry {entry.number} is not signed by the key of entry 1")
        before, number = entry.hash, entry.number
    return found


def mark_path(path: Path) -> Path:
    """Where the mark of a ledger is."""
    return path.with_name(f"{path.name}.head")

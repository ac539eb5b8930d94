"""Signed entries that each hold the hash of the one before, and what shows that they were tampered with.

Nobody without the key can edit, insert, reorder or remove an entry without being found out, except at the
end. For the end there is the *mark*, the file ``<ledger>.head``: number and hash of the newest entry, signed.

The key may change: an entry of kind ``key`` names the next one, and is signed by the one before it. Where
that one is lost, the new key signs the entry itself, which anybody could do: it says so for good, and whoever
knows the old key, or the new one by another way, can tell.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from targetdp._files import canonical
from targetdp.release._trust._keys import Succession, fingerprint_of, is_signed

GENESIS = "targetdp ledger, format 2"
"""What the first entry follows; its body holds an id drawn at random, so that no two chains are alike."""

OPENED, KEY = "opened", "key"
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

    @classmethod
    def signed_in(cls, mark: str | bytes) -> "tuple[Head, str] | None":
        """What a mark says, and the key that signed it; None if it is malformed, or its signature is."""
        try:
            record = json.loads(mark)
            head = cls(str(record["ledger"]), int(record["number"]), str(record["hash"]))
            key = str(record["key"])
            return (head, key) if is_signed(key, record["signature"], head.message()) else None
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            return None


@dataclass(frozen=True)
class Witness:
    """Somebody who has seen an entry of a ledger: a certificate, or the user's own list.

    A certificate also tells of its release: ``charge``, ``space`` and ``title``, as the ledger has them,
    the SHA-256 of its ``policy``, and what it has ``stated`` of all releases, near and at distance 2; ``key``
    is the one that signed it.
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
    key: str = ""
    agreed: int = 0
    """How many people the desk had handed over as they are, as it says."""


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
class Signer:
    """A key that signs a chain, and the first entry that it has signed.

    ``succession`` is the word of the key before it. The first key has none, nor has one that came in place of
    a ``lost`` key. ``time`` and ``reason`` are those of the change.
    """

    public: str
    since: int
    time: str
    reason: str = ""
    succession: Succession | None = None
    lost: str | None = None

    def __str__(self) -> str:
        """The change in words."""
        new, date = fingerprint_of(self.public), self.time[:10]
        if self.lost is not None:
            return (
                f"key {new} came {date} in place of {fingerprint_of(self.lost)}, which was lost, and without "
                f"its word ({self.reason}): whoever was not told of it by you cannot know it"
            )
        before = "" if self.succession is None else f", signed by {fingerprint_of(self.succession.older)}"
        return f"key {new} signs since {date}{before}" + (f" ({self.reason})" if self.reason else "")


@dataclass(frozen=True)
class Reading:
    """A chain and its mark as they were found on disk."""

    path: Path
    entries: tuple[Entry, ...]
    mark: str | None

    @property
    def ledger_id(self) -> str:
        """The id that entry 1 holds, or nothing if there is no such entry."""
        return self._opened("ledger")

    @property
    def desk(self) -> str:
        """The desk that the ledger was made for, as its signed first entry says."""
        return self._opened("desk")

    def _opened(self, name: str) -> str:
        try:
            return str(json.loads(self.entries[0].body)[name])
        except (IndexError, KeyError, TypeError, ValueError, RecursionError):
            return ""

    @cached_property
    def walked(self) -> tuple[list[str], tuple[Signer, ...]]:
        """What is wrong with the entries, and the keys that have signed them, the newest last."""
        return walk(GENESIS, 0, self.entries, self.desk, ())

    @property
    def signers(self) -> tuple[Signer, ...]:
        """The keys that have signed this chain, the newest last."""
        return self.walked[1]

    @property
    def key(self) -> str:
        """The public key that signs this chain now."""
        return self.signers[-1].public if self.signers else ""

    def keys_since(self, number: int) -> tuple[str, ...]:
        """The keys that may have signed what was made when an entry was the newest, or later."""
        ends = [after.since - 1 for after in self.signers[1:]]
        return tuple(
            one.public for one, end in zip(self.signers, [*ends, None], strict=False)
            if end is None or number <= end
        )  # fmt: skip

    @property
    def successions(self) -> tuple[Succession, ...]:
        """The steps by which the key of now follows from earlier ones, each on the word of the one before."""
        steps: list[Succession] = []
        for one in self.signers:
            steps = [] if one.succession is None else [*steps, one.succession]
        return tuple(steps)

    def head(self, number: int | None = None) -> Head:
        """The newest entry, or one by its number."""
        entry = self.entries[-1 if number is None else number - 1]
        return Head(self.ledger_id, entry.number, entry.hash)

    @property
    def chain_problems(self) -> list[str]:
        """Entries that were edited, reordered, removed or signed by someone else."""
        if not self.entries:
            return ["it has no entries: all of them were removed"]
        found = list(self.walked[0])
        if self.entries[0].kind != OPENED or not self.ledger_id:
            found.append("its first entry is not the one that opened it")
        return found

    def mark_problems(self) -> list[str]:
        """What the mark says against the chain. A mark that lags behind is no problem: see `Chain`."""
        name = mark_path(self.path).name
        if self.mark is None:
            if len(self.entries) <= 1:  # the very first append may have been interrupted
                return []
            return [f"{name} is missing: without it, nobody can tell whether the newest entries were cut"]
        found = Head.signed_in(self.mark)
        if found is None:
            return [f"{name} is malformed, or not signed by the key that it names"]
        # A process that changed the key may have died before its mark; `Chain` writes one before it goes on.
        changed = bool(self.entries) and self.entries[-1].kind == KEY
        if found[1] not in {one.public for one in self.signers[-2 if changed else -1 :]}:
            return [f"{name} is not signed by the key of this ledger"]
        return self.head_problems(found[0], name)

    def key_problems(self, public_key: str) -> list[str]:
        """Whether whoever knows a key has its word for this chain: it signs it now, or named who does."""
        known = [place for place, one in enumerate(self.signers) if one.public == public_key]
        if not known:
            return [f"it is not signed by the key {fingerprint_of(public_key)}"]
        return [
            f"the key {fingerprint_of(public_key)} does not vouch for it any more: {one}"
            for one in self.signers[known[0] + 1 :]
            if one.lost is not None
        ]

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


def walk(
    before: str, number: int, entries: Sequence[Entry], desk: str, signers: tuple[Signer, ...]
) -> tuple[list[str], tuple[Signer, ...]]:
    """What is wrong with entries that follow one with this hash and number, and who has signed so far."""
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
        signers = signers or (Signer(entry.key, 1, entry.time),)
        key, after = signers[-1].public, signers
        if entry.kind == KEY:
            try:
                after = (*signers, _next_signer(entry, signers, desk))
            except (KeyError, TypeError, ValueError, RecursionError) as error:
                found.append(f"entry {entry.number} does not change the key: {error}")
            key = after[-1].public if after[-1].lost and after is not signers else key
        if entry.key != key:
            found.append(f"entry {entry.number} names another key than the one that signs by then")
        elif not is_signed(key, entry.signature, entry.message()):
            found.append(f"entry {entry.number} is not signed by the key that it names")
        before, number, signers = entry.hash, entry.number, after
    return found, signers


def _next_signer(entry: Entry, signers: Sequence[Signer], desk: str) -> Signer:
    """The key that an entry names, or a ValueError if nothing makes it the next one."""
    body = json.loads(entry.body)
    step = Succession(older=body["older"], newer=body["newer"], value=body["succession"] or "")
    fingerprint_of(step.newer)
    if step.older != signers[-1].public:
        raise ValueError("it speaks of another key than the one that signs by then")
    if step.newer in {one.public for one in signers}:
        raise ValueError("a key serves once")
    changed = partial(Signer, step.newer, time=entry.time, reason=str(body["reason"]))
    if body["succession"] is None:
        return changed(since=entry.number, lost=step.older)
    if not step.holds(desk):
        raise ValueError("the older key has not signed that the newer one follows it")
    if not is_signed(step.newer, body["possession"], step.message(desk)):
        raise ValueError("nobody has shown that he has the newer key")
    return changed(since=entry.number + 1, succession=step)


def mark_path(path: Path) -> Path:
    """Where the mark of a ledger is."""
    return path.with_name(f"{path.name}.head")

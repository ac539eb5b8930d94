"""The desk: the folder with the data holder's policy, ledger, keys and log. Without one, no release."""

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from targetdp._core import Words, __version__
from targetdp._files import (
    DRAFT,
    append_line,
    draft_folder,
    must_be_local,
    must_hold_locks,
    sync_folder,
    write_new,
)
from targetdp.release._draws import (
    drafts_in,
    erase,
    in_any_order,
    is_at_work,
    kept_from_others,
    nothing_was_drawn,
)
from targetdp.release._ids import Names
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._elsewhere import (
    DeskElsewhere,
    known_desks,
    known_elsewhere,
    noted_head,
    remember_desk,
    second_mark,
    shared_tag_key,
)
from targetdp.release._ledger._entries import Witness
from targetdp.release._ledger._history import History
from targetdp.release._policy import Policy, read_policy
from targetdp.release._public_scales import PublicScales, must_be_public
from targetdp.release._trust._keys import SigningKey, secret_key
from targetdp.release._trust._loosened import loosened
from targetdp.release._trust._rotation import SIGNING, finish_change

FOLDER = "desk"
"""What a desk's folder is called, unless its owner says otherwise."""
MARK, _FORMAT = "desk.json", "targetdp desk 1"
_SECRETS = ("tags.key", "pseudonyms.key")


class NoDeskError(ValueError):
    """There is no desk where one was looked for."""


@dataclass(frozen=True)
class Desk:
    """A data holder's desk.

    Args:
        path: Its folder, for its owner alone.
        id: Drawn at random when it was made; certificates carry it.
        was_known: Whether the user's list of desks had it before it was opened.

    Example:
        >>> import tempfile
        >>> policy = '''
        ... name = "subscribers"
        ... id = { column = "msisdn" }
        ... columns = { release = ["calls", "texts"] }
        ... limit = { B = 0.25, epsilon = 8, delta = 1e-6 }
        ... release = { epsilon = 4, delta = 1e-6 }'''
        >>> desk = Desk.create(Path(tempfile.mkdtemp()) / "desk", policy)
        >>> Desk.open(desk.path).policy.limit.epsilon
        8.0
    """

    path: Path
    id: str
    was_known: bool = field(default=True, compare=False)

    # Making and finding one

    @classmethod
    def create(cls, path: str | Path, policy: str, *, scales: Path | None = None) -> "Desk":
        """Make a desk, whole or not at all.

        Args:
            path: Its folder, which does not exist yet.
            policy: The text of its policy.toml.
            scales: A file of public scales to keep in it.

        Raises:
            ValueError: Another desk is above or beside it, the folder exists, it is on a network, or the
                policy is none.
        """
        place = Path(path).absolute()
        place = place.parent.resolve() / place.name  # a link leads below another desk, too
        near = find_desk(place.parent) or _beside(place)
        if near is not None:
            raise ValueError(
                f"there is a desk already ({near}): one desk keeps the budget of its people, and two would "
                "keep two; use that one, or make this one in another folder"
            )
        if place.exists():
            raise ValueError(f"{place} exists: name a folder that does not")
        if not place.parent.is_dir():
            raise ValueError(f"{place.parent} does not exist: create it first")
        must_be_local(place.parent)
        with draft_folder(place) as draft:
            must_hold_locks(draft)
            write_new(draft / "policy.toml", policy, private=True)
            _must_be_a_policy(draft / "policy.toml", place / "policy.toml")
            if scales is not None:
                must_be_public(scales)
                write_new(draft / "scales.toml", scales.read_bytes(), private=True)
            (draft / "keys").mkdir(mode=0o700)
            key = SigningKey.open(draft / "keys" / SIGNING)
            with suppress(OSError):  # where the user can keep nothing, the desk has a key of its own
                write_new(draft / "keys" / "tags.key", f"{shared_tag_key().hex()}\n", private=True)
            keys = {name: secret_key(draft / "keys" / name, create=True) for name in _SECRETS}
            marks = {name: hashlib.sha256(one).hexdigest() for name, one in keys.items()}
            own = secrets.token_hex(16)
            Ledger(draft / "ledger.db", key, create=True, desk=own).close()
            record = {"format": _FORMAT, "id": own, "made": _now(), "library": __version__, "keys": marks}
            write_new(draft / MARK, json.dumps(record, indent=2) + "\n", private=True)
            sync_folder(draft)
            draft.rename(place)
            sync_folder(place.parent)
        desk = cls(place, own)
        desk.remember()
        desk.log("made")
        return desk

    @classmethod
    def open(cls, path: str | Path | None = None) -> "Desk":
        """The desk in a folder, or the one that is found as git finds its folder.

        Args:
            path: Its folder; by default that in ``TARGETDP_DESK``, else the nearest one above.

        Raises:
            NoDeskError: There is none.
            ValueError: Others can read it, it is on a network, or it is a copy of another one.
        """
        chosen = path or os.environ.get("TARGETDP_DESK") or None
        place = Path(chosen).absolute() if chosen else find_desk(Path.cwd())
        if place is not None and not _is_desk(place) and _is_desk(place / FOLDER):
            place /= FOLDER
        if place is None or not _is_desk(place):
            where = "here or above" if place is None else f"at {place}"
            known = "".join(f"\n  {other}" for _, other in known_desks() if _is_desk(other))
            raise NoDeskError(
                f"there is no desk {where}, and nothing is released without one: targetdp init TABLE makes "
                "one; --desk or TARGETDP_DESK names one" + (f". Desks of yours:{known}" if known else "")
            )
        own = str(_record(place)["id"])
        if place.stat().st_uid != os.getuid():
            raise ValueError(
                f"desk {place} belongs to another user: its owner releases from it, and nobody else"
            )
        mode = stat.S_IMODE(place.stat().st_mode)
        if mode & 0o077:
            raise ValueError(
                f"desk {place} has permission {mode:04o}, so others than its owner can get at it: if nobody "
                f"did, run chmod 700 '{place}'"
            )
        must_be_local(place)
        finish_change(place)
        return cls(place, own, cls(place, own)._is_in_the_list())

    def _is_in_the_list(self) -> bool:
        """Whether the user's list has it. A copy is refused: each would keep a budget for the same people."""
        listed = [other for known, other in known_desks() if known == self.id]
        for other in listed:
            if not _is_same(other, self.path) and _id_of(other) == self.id:
                raise ValueError(
                    f"desk {self.path} is a copy of {other}, or the other way round: each would keep a "
                    "budget of its own for the same people; remove the one that is behind"
                )
        return any(_is_same(other, self.path) for other in listed)

    def remember(self) -> None:
        """Name this desk in the user's list."""
        remember_desk(self.id, self.path)

    # What is in it

    @cached_property
    def policy(self) -> Policy:
        """What the data holder allows, as it stood in policy.toml (and scales.toml) when it was read."""
        return self._read_policy()

    def _read_policy(self) -> Policy:
        policy, scales = read_policy(self.path / "policy.toml"), self.path / "scales.toml"
        if policy.scales.source != "public" or not scales.exists():
            return policy
        # So that another scales.toml is another policy: on record, and with a reason.
        digest = hashlib.sha256(scales.read_bytes()).hexdigest()
        filled = policy.scales.model_copy(update={"sha256": digest})
        return policy.model_copy(update={"scales": filled})

    def check_unchanged(self) -> None:
        """Refuse to go on if the policy is another one than was looked at."""
        if self._read_policy() != self.policy:
            raise ValueError(f"the policy of {self.path} was changed meanwhile: run again, under the new one")

    @property
    def name(self) -> str:
        """What the desk is called."""
        return self.policy.name

    @cached_property
    def key(self) -> SigningKey:
        """The key that signs its certificates and its ledger."""
        path = self.path / "keys" / SIGNING
        if not path.exists():
            raise ValueError(
                f"{path} is gone: bring it back from a backup; if it is lost for good, targetdp key replace "
                "makes a new one, on record"
            )
        return SigningKey.open(path, create=False)

    def names(self) -> Names:
        """How its people are named."""
        policy = self.policy.id
        hidden = self.pseudonym_key if policy.pseudonyms else None
        return Names(policy.column, policy.spelling, self._secret("tags.key"), hidden)

    @property
    def pseudonym_key(self) -> bytes:
        """The key of its pseudonyms."""
        return self._secret("pseudonyms.key")

    def _secret(self, name: str) -> bytes:
        """One of its keys. Under another one the ledger would know nobody again, and nobody have spent."""
        path = self.path / "keys" / name
        key = secret_key(path)
        if _record(self.path)["keys"][name] != hashlib.sha256(key).hexdigest():
            raise ValueError(
                f"{path} is not the key that this desk was made with: bring it back from a backup"
            )
        return key

    @cached_property
    def scales(self) -> PublicScales:
        """The scales that its owner has called public."""
        return PublicScales(self.path, lambda: self._secret("tags.key"))

    @property
    def drafts(self) -> Path:
        """Where the secrets of releases are that are being made."""
        return self.path / "drafts"

    def ledger(self, *, without_key: bool = False) -> Ledger:
        """Its ledger, to be closed by the caller; without the key, for reading."""
        path = self.path / "ledger.db"
        if not path.exists():
            raise ValueError(
                f"desk {self.path} has no ledger: without it nobody knows what was spent; bring it back from "
                "a backup"
            )
        noted = noted_head(self.id)
        seen = () if noted is None else (Witness("your own list of desks", noted),)
        key = None if without_key else self.key
        ledger = Ledger(path, key, witnesses=seen, second_mark=second_mark(self.id))
        if ledger.reading.desk != self.id:
            ledger.close()
            raise ValueError(
                f"{self.path / MARK} names another desk than its ledger: bring it back from a backup"
            )
        return ledger

    def known_elsewhere(self, people: Words) -> list[DeskElsewhere]:
        """Other desks of the user that have released something about some people, or cannot be asked."""
        spelling = self.policy.id.spelling
        found = known_elsewhere(self.id, self._secret("tags.key"), spelling, people)
        return [other for other in found if other.known or other.problem]

    def loosened_without_reason(self, history: History) -> tuple[str, ...]:
        """In which ways the policy allows more than the one on record, unless it says why."""
        before, now = history.policy, self.policy
        if before is None or before == now or (now.reason is not None and now.reason not in history.reasons):
            return ()
        return tuple(loosened(before, now))

    def free_what_was_not_drawn(self, ledger: Ledger) -> tuple[str, ...]:
        """Free reservations of killed runs that never drew noise; erase draws and lists that nobody needs.

        Returns:
            The releases that were freed.
        """
        freed = []
        for release in drafts_in(self.drafts):
            with kept_from_others(self.drafts, release) as nobody_is_at_it:
                if not nobody_is_at_it:
                    continue
                ledger.refresh()  # whoever was at it may have told the ledger since it was read
                row = ledger.history.releases.get(release)
                if row is not None and row.state == "reserved":
                    if not nothing_was_drawn(self.drafts, release):
                        folder = self.drafts / release
                        if row.title.get("engine") == "spark" and not in_any_order(folder):
                            erase(folder)  # noise on its rows cannot be repeated
                        continue
                    ledger.free(release, "a run ended before any noise was drawn")
                    freed.append(release)
                if row is None:
                    ledger.forget(release)
                erase(self.drafts / release)
        return tuple(freed)

    def is_at_work(self, release: str) -> bool:
        """Whether a process is making a release right now."""
        return is_at_work(self.drafts, release)

    def logged(self) -> Iterator[dict[str, Any]]:
        """What the desk's log says, line by line; lines that are damaged are left out."""
        with suppress(OSError):
            for line in (self.path / "log.jsonl").read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError, RecursionError):
                    found = json.loads(line)
                    if isinstance(found, dict) and {"time", "event"} <= found.keys():
                        yield found

    def log(self, event: str, **facts: Any) -> None:
        """Add a line to the desk's log."""
        line = {"time": _now(), "event": event} | {n: v for n, v in facts.items() if v is not None}
        append_line(self.path / "log.jsonl", json.dumps(line, ensure_ascii=False))

    def _repr_html_(self) -> str:
        name, path, limit = map(escape, (self.name, str(self.path), str(self.policy.limit.value())))
        return f"<p>desk <b>{name}</b> ({path}), limit {limit}</p>"


def find_desk(start: Path) -> Path | None:
    """The nearest desk: a folder that is one, or that has one, from here upwards."""
    for folder in (start.absolute(), *start.absolute().parents):
        for place in (folder, folder / FOLDER):
            if _is_desk(place):
                return place
    return None


def _is_desk(place: Path) -> bool:
    """Whether there is a desk that can be seen: another user's folder may be closed."""
    try:
        return (place / MARK).exists()
    except OSError:
        return False


def _beside(place: Path) -> Path | None:
    """A desk in the same folder, whatever it is called."""
    with suppress(OSError):
        beside = (one for one in sorted(place.parent.iterdir()) if one.suffix != DRAFT)
        return next((one for one in beside if _is_desk(one)), None)
    return None


def _must_be_a_policy(draft: Path, path: Path) -> None:
    """Refuse a text that is no policy, under the name that it would have had."""
    try:
        read_policy(draft)
    except ValueError as error:
        raise ValueError(str(error).replace(str(draft), str(path))) from error


def _record(place: Path) -> dict[str, Any]:
    """What a desk's own file says, or a ValueError."""
    try:
        record: dict[str, Any] = json.loads((place / MARK).read_text(encoding="utf-8"))
        if (made := record["format"]) == _FORMAT:
            _ = record["id"], [record["keys"][name] for name in _SECRETS]
            return record
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{place / MARK} cannot be read ({error}): bring it back from a backup") from error
    raise ValueError(f"desk {place} was made by another version of targetdp ({made}): use that one")


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)  # of a link to itself, too


def _id_of(place: Path) -> str | None:
    with suppress(ValueError):
        return str(_record(place)["id"])
    return None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

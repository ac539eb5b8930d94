"""A chain of signed entries in one SQLite file that only grows, with its mark beside it."""

import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from targetdp._files import canonical, remove_drafts, write_whole
from targetdp.release._ledger._entries import GENESIS, KEY, OPENED, Entry, Head, Reading, mark_path, walk
from targetdp.release._trust._keys import SigningKey, Succession, fingerprint_of

_APPLICATION, _BY_POPULATIONS = 0x74647032, 0x74647031
_BUSY_SECONDS = 60.0

_SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION}",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL,"
    " release TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL,"
    " hash TEXT NOT NULL, key TEXT NOT NULL, signature TEXT NOT NULL)",
    # Against mistakes, not malice: whoever means to edit drops the trigger, and the hashes tell.
    "CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    # For whoever looks with a database tool: one row for each release.
    "CREATE VIEW releases AS SELECT first.release, last.kind AS state,"
    " first.time AS reserved, last.time AS since, first.body, last.body AS outcome"
    " FROM entries AS first JOIN entries AS last ON last.number ="
    " (SELECT max(number) FROM entries WHERE release = first.release) WHERE first.kind = 'reserved'",
)
_COLUMNS = "number, time, kind, release, body, previous, hash, key, signature"


class LedgerDamaged(ValueError):  # noqa: N818 (it is what happened, and reads as such)
    """A ledger is not as it was left: nothing may be read from it or added before someone has looked."""

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(
            f"the ledger {path} is damaged: {problems[0]}{more}; "
            "`targetdp ledger verify` lists what was found; bring back its newest copy, or, where that is "
            "lost, go on with `targetdp ledger resume`, on record"
        )


class Pen:
    """Appends to a chain within the one transaction that read it."""

    def __init__(self, reading: Reading, connection: sqlite3.Connection, key: SigningKey) -> None:
        self.reading, self.key = reading, key
        self.marks = True
        """Whether marks are written after it; otherwise what they say stays to be looked at."""
        self._connection = connection

    def append(self, kind: str, release: str, body: Mapping[str, Any]) -> Head:
        """Sign an entry and add it to the end."""
        last = self.reading.entries[-1] if self.reading.entries else None
        draft = Entry(
            number=1 if last is None else last.number + 1,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            kind=kind,
            release=release,
            body=canonical(body),
            previous=GENESIS if last is None else last.hash,
            key=self.key.public,
        )
        unsigned = replace(draft, hash=draft.digest())
        entry = replace(unsigned, signature=self.key.sign(unsigned.message()))
        self._connection.execute(
            f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 (constants)
            astuple(entry),
        )
        self.reading = Reading(self.reading.path, (*self.reading.entries, entry), self.reading.mark)
        return self.reading.head()

    def change_key(self, new: SigningKey, reason: str) -> None:
        """Let another key sign from now on, on the word of the one that has signed so far."""
        step = Succession.between(self.reading.desk, self.key, new.public)
        shown = new.sign(step.message(self.reading.desk))
        self._append_key(step, {"succession": step.value, "possession": shown, "reason": reason})
        self.key = new

    def replace_lost_key(self, reason: str) -> None:
        """Let the pen's own key sign from now on, although the one that has signed so far is lost."""
        step = Succession(older=self.reading.key, newer=self.key.public, value="")
        self._append_key(step, {"succession": None, "possession": None, "reason": reason})

    def _append_key(self, step: Succession, body: Mapping[str, Any]) -> None:
        if step.newer in {one.public for one in self.reading.signers}:
            raise ValueError(
                f"key {fingerprint_of(step.newer)} has signed this ledger before: make a new one"
            )
        self.append(KEY, "", {"older": step.older, "newer": step.newer, **body})


class Chain:
    """The file of a chain: reading it, and appending to it safely beside other processes.

    One object is one connection. All entries are verified when it is opened, later ones as they come.

    Guarantees: an append is in the file, on disk, and whole when it returns, or not at all; of several
    processes one appends at a time, to what it has read. The mark is never ahead of the chain and never
    goes back.
    Edges: a process that dies between an append and its mark leaves a mark that lags; the next append
    catches up. A rollback journal rather than a write-ahead log, so that between appends a ledger is one
    file that can be copied.
    """

    def __init__(
        self, path: str | Path, key: SigningKey | None, *, create: bool = False,
        second_mark: Path | None = None, desk: str = "",
    ) -> None:  # fmt: skip
        self.path, self._key, self._second_mark, self._desk = Path(path), key, second_mark, desk
        if self.path.is_dir() or (create and not self.path.absolute().parent.is_dir()):
            raise ValueError(f"{self.path} cannot be a ledger: give a file's path in a folder that exists")
        if not create and not self.path.exists():
            raise FileNotFoundError(f"there is no ledger at {self.path}: targetdp init makes one, in a desk")
        if create:
            # What was released about whom is nobody else's business, and SQLite alone would let others read.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
        with self._explained():
            # Readers open "rw", too: whoever comes first after a crash rolls back what was left half-written.
            self._connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=_BUSY_SECONDS,
                isolation_level=None,
            )  # fmt: skip
        try:
            with self._explained():
                self._connection.execute("PRAGMA synchronous = EXTRA")
                if create:
                    self._create()
            self.reading = self._read()
            self._must_be_of(key)
        except BaseException:
            self.close()
            raise

    def _must_be_of(self, key: SigningKey | None) -> None:
        if key is not None and self.reading.entries and self.reading.key != key.public:
            raise ValueError(
                f"the ledger {self.path} is signed by the key {_shown(self.reading.key)}, not by "
                f"{key.fingerprint}: bring that key back from a backup; if it is lost for good, targetdp key "
                "replace goes on with a new one, on record"
            )

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _read(self) -> Reading:
        """What is there now, not checked."""
        # The mark first: entries that are read later cannot be behind it. Only the first mark of all may
        # appear in between; then once more.
        for _ in range(2):
            mark = self._read_mark()
            with self._explained():
                entries = self._entries(0)
            if mark is not None or len(entries) <= 1:
                break
        return Reading(self.path, entries, mark)

    def refresh(self) -> None:
        """Take in what other processes have appended; it is verified, and what came before it was."""
        known = self.reading
        new = self._entries(known.entries[-1].number if known.entries else 0)
        reading = Reading(self.path, (*known.entries, *new), self._read_mark())
        if known.entries:
            last = known.entries[-1]
            # Kept where a cached property keeps its value: only what is new is checked.
            found, signers = walk(last.hash, last.number, new, known.desk, known.signers)
            reading.__dict__["walked"] = ([*known.walked[0], *found], signers)
        self.reading = reading

    @contextmanager
    def writing(
        self, *, despite_mark: bool = False, in_place_of_lost: SigningKey | None = None
    ) -> Iterator[Pen]:
        """One transaction: what it reads stays true until what it appends is in the file.

        Args:
            despite_mark: Whether to go on although the mark contradicts the chain.
            in_place_of_lost: A key for the pen, where that of the chain is lost.
        """
        key = in_place_of_lost or self._key
        if key is None:
            raise ValueError(f"the ledger {self.path} was opened for reading: open it with its signing key")
        with self._explained(), self._locked() as connection:
            self.refresh()
            problems = self.reading.chain_problems + ([] if despite_mark else self.reading.mark_problems())
            if problems:
                raise LedgerDamaged(self.path, problems)
            if in_place_of_lost is None and self.reading.key != key.public:
                raise ValueError("the key of this desk was changed meanwhile: run again, with the new one")
            # So that only the first entry, and a change of keys, may have no mark of the chain's key.
            if (self.reading.mark is None or self.reading.entries[-1].kind == KEY) and not despite_mark:
                self._write_mark(self.reading.head(), key)
            pen = Pen(self.reading, connection, key)
            yield pen
            connection.execute("COMMIT")
            self._key = pen.key
            # Under the lock again, so that a slower process cannot put an older mark over a newer one.
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return  # whoever keeps it busy is appending, and marks this entry with his own
            self.refresh()
            if pen.marks and self.reading.key == pen.key.public:
                self._write_mark(self.reading.head(), pen.key)
                self.reading = replace_mark(self.reading, self._read_mark())

    def _create(self) -> None:
        """Open the chain with its first entry, unless another process has."""
        key = self._key
        if key is None:
            raise ValueError(f"a new ledger at {self.path} needs the data holder's signing key: give key=")
        # Asked of the database, not of the file's size: a killed process may have left half of a start.
        if not _is_empty(self._connection):
            return
        with self._locked() as connection:
            if not _is_empty(connection):
                return  # another process was first
            if self._read_mark() is not None:
                raise LedgerDamaged(
                    self.path, [f"it is empty, but {mark_path(self.path).name} has seen entries"]
                )
            for statement in _SCHEMA:
                connection.execute(statement)
            Pen(Reading(self.path, (), None), connection, key).append(
                OPENED, "", {"ledger": secrets.token_hex(16), "desk": self._desk}
            )
            connection.execute("COMMIT")

    @contextmanager
    def _locked(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other process writes in; what was not committed in it is undone."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what a failing database means."""
        try:
            yield
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None:  # Python's own complaint, which shows the whole text that it could not decode
                raise ValueError(
                    f"{self.path} is not a ledger, or is broken (its text is not UTF-8): name another file"
                ) from error
            if (code & 0xFF) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise TimeoutError(
                    f"the ledger {self.path} is busy: another process has held it for {_BUSY_SECONDS:g} s; "
                    "try again when it is done"
                ) from error
            if code & 0xFF == sqlite3.SQLITE_ERROR:  # what is in it is wrong, not the disk
                raise self._broken(error) from error
            raise OSError(f"the ledger {self.path} cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise self._broken(error) from error

    def _broken(self, error: sqlite3.Error) -> ValueError:
        return ValueError(f"{self.path} is not a ledger, or is broken ({error}): name another file")

    def _entries(self, after: int) -> tuple[Entry, ...]:
        """The entries behind a number."""
        application = self._connection.execute("PRAGMA application_id").fetchone()[0]
        if application == _BY_POPULATIONS:
            raise ValueError(
                f"{self.path} is a ledger of an older targetdp, which kept budgets by declared populations: "
                "it cannot be gone on with; keep it for the record, and begin a desk (targetdp init)"
            )
        if application != _APPLICATION:
            raise ValueError(f"{self.path} is not a ledger: name a file that targetdp made")
        query = f"SELECT {_COLUMNS} FROM entries WHERE number > ? ORDER BY number"  # noqa: S608 (constants)
        rows = self._connection.execute(query, (after,)) if after else self._connection.execute(
            f"SELECT {_COLUMNS} FROM entries ORDER BY number"  # noqa: S608 (constants)
        )  # fmt: skip
        return tuple(Entry(*row) for row in rows)

    def _read_mark(self) -> str | None:
        try:
            return mark_path(self.path).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def _write_mark(self, head: Head, key: SigningKey) -> None:
        """Replace the mark whole."""
        place = mark_path(self.path)
        fields = head.fields() | {"key": key.public, "signature": key.sign(head.message())}
        remove_drafts(place.parent, place.name)  # the caller holds the lock
        # Whoever may read the ledger may read its mark.
        mode = stat.S_IMODE(self.path.stat().st_mode)
        write_whole(place, canonical(fields) + "\n", mode=mode)
        if self._second_mark is not None:
            with suppress(OSError):  # what cannot be kept elsewhere helps nobody, and stops nobody
                self._second_mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                remove_drafts(self._second_mark.parent, self._second_mark.name)
                write_whole(self._second_mark, canonical(fields) + "\n", private=True)


def replace_mark(reading: Reading, mark: str | None) -> Reading:
    """The same entries, with another mark."""
    again = Reading(reading.path, reading.entries, mark)
    again.__dict__["walked"] = reading.walked
    return again


def _is_empty(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0)


def _shown(public: str) -> str:
    try:
        return fingerprint_of(public)
    except ValueError:
        return repr(public)

"""All or nothing: a release is built out of sight and appears, with its certificate, in one step.

Beside the output lies a hidden folder while a run works. The order of steps makes every moment safe:

1. everything is written and synced in the folder;
2. the journal says that publishing begins (an older release of that name steps aside, into the folder);
3. the certificate and its page take their names, then, in one rename, the table;
4. the ledger is told; the folder goes.

A run that dies before the table's rename published nothing, and the next run puts everything back. A run
that dies after it published all of it, and the next run tells the ledger. If only the certificate could be
read by then, it is taken away again: the release is charged, and its re-run makes the same one.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from targetdp._core import NotYetError
from targetdp._files import sync_folder, write_whole
from targetdp.release._agreed._record import AGREEMENT_SUFFIX, AgreementRecord
from targetdp.release._certificate._certificate import PAGE_SUFFIX, SUFFIX, Certificate
from targetdp.release._certificate._page import page

_TABLE, _OLD, _JOURNAL = "table", "old", "journal.json"
_PROOFS = {"page": PAGE_SUFFIX, "certificate": SUFFIX, "agreement": AGREEMENT_SUFFIX}
"""What is built in the folder beside a table, in the order in which it takes its name."""
_CHECK = "check"
"""Where a journal says the hash of the rest of it: what it says goes into a ledger that only grows."""


class OutputExistsError(ValueError):
    """Under the output's name there is something that may not be replaced."""


class Staging:
    """The hidden folder of one output; one run at a time.

    Guarantees: under the output's name there is nothing, an older complete release, or the new complete
    one, at every moment, whenever the process is killed.
    """

    def __init__(self, output: Path, *, force: bool) -> None:
        self.output, self.name, self._force = output, str(output), force
        self.folder = output.parent / f".{output.name}.targetdp"
        self._lock_path = output.parent / f"{self.folder.name}.lock"
        self._lock: int | None = None

    @property
    def place(self) -> str:
        """The output, as the ledger remembers it."""
        return str(self.output.absolute())

    @property
    def table(self) -> Path:
        """Where the table is built."""
        return self.folder / _TABLE

    @property
    def published(self) -> bool:
        """Whether the table has taken its name."""
        return (self.folder / _JOURNAL).exists() and not self.table.exists()

    def __enter__(self) -> Self:
        if not self.output.parent.is_dir():
            raise ValueError(f"output folder {self.output.parent} does not exist: create it first")
        lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_ino != self._lock_path.stat().st_ino:
                raise BlockingIOError("the lock was let go of just now")
        except OSError as error:
            os.close(lock)
            raise NotYetError(
                f"another run is writing {self.name}: wait for it, or choose another name"
            ) from error
        self._lock = lock
        return self

    def begin(self, settle: Callable[[dict[str, Any]], None]) -> None:
        """Finish or undo what an earlier run left; then refuse an output that exists, unless forced.

        ``settle`` is told the journal of a release that was published before its run could say so.
        """
        self._recover(settle)
        self.folder.mkdir(mode=0o700)
        if not self._force:
            self._must_be_free()
        elif self.output.exists() and not _is_release(self.output):
            raise ValueError(
                f"output {self.output} is not a release with a certificate: --force replaces nothing else"
            )

    def publish(self, proof: Certificate | AgreementRecord, journal: dict[str, Any]) -> None:
        """Make the release, or the rows of people who agreed, visible, whole."""
        for path in (*(self.table.iterdir() if self.table.is_dir() else ()), self.table):
            os.utime(path)  # when a table was written tells how long it took, and that may tell of rows
        for name, text in _texts(proof).items():
            write_whole(self.folder / name, text)
        write_whole(self.folder / _JOURNAL, json.dumps({**journal, _CHECK: digest_of(journal)}))
        sync_folder(self.folder)
        if self._force:
            self._step_aside()
        self._must_be_free()
        for name in _texts(proof):
            (self.folder / name).rename(self._companions()[name])
        self.table.rename(self.output)
        sync_folder(self.output.parent)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is None:
            return
        try:
            if kind is None or not self.published:
                # The ledger knows, or there is nothing that it should know: put everything back.
                # Otherwise leave the journal, so that the next run tells the ledger.
                self._recover(lambda _: None)
        except OSError:
            if error is None:
                raise
            # The first error, and what was noted of the release, must not be lost by a second one.
            error.add_note(f"{self.folder} could not be tidied up: the next run to {self.name} does that")
        finally:
            with suppress(OSError):
                self._lock_path.unlink()
            os.close(self._lock)
            self._lock = None

    def _must_be_free(self) -> None:
        for path in (self.output, *self._companions().values()):
            if path.exists() or path.is_symlink():
                raise OutputExistsError(
                    f"output {path} exists: choose another name, or replace it with --force"
                )

    def _companions(self) -> dict[str, Path]:
        return {name: self.output.with_name(self.output.name + end) for name, end in _PROOFS.items()}

    def _step_aside(self) -> None:
        old = self.folder / _OLD
        old.mkdir(mode=0o700)
        for path in (self.output, *self._companions().values()):
            if path.exists() or path.is_symlink():
                path.rename(old / path.name)

    def _recover(self, settle: Callable[[dict[str, Any]], None]) -> None:
        """Bring whatever state an earlier run died in to one of the two good ones."""
        journal = read_journal(self.folder / _JOURNAL)
        if journal is None and self._was_acted_on():
            raise ValueError(
                f"{self.folder / _JOURNAL} is damaged, and a run was publishing when it died: what is left "
                f"is in {self.folder} and beside it; bring the journal back, or move that folder away"
            )
        if journal is not None and self.published:
            settle(journal)
        if journal is not None and self.table.exists():
            self._put_back(journal)
            # Without a journal nobody takes the folder, half emptied, for that of a published release.
            (self.folder / _JOURNAL).unlink()
            sync_folder(self.folder)
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def _put_back(self, journal: dict[str, Any]) -> None:
        """Take away what can be read of a release that has no table; an older one takes its names again."""
        for path in self._companions().values():
            if belongs(path, str(journal.get("release"))):
                path.unlink()
        old = self.folder / _OLD
        for path in (*self._companions().values(), self.output):  # a table never without its certificate
            if (old / path.name).exists():
                (old / path.name).rename(path)

    def _was_acted_on(self) -> bool:
        """Whether publishing had begun: with a journal that cannot be read, nobody knows of which release."""
        there = (self.folder / _JOURNAL).exists()
        first = any((self.folder / name).exists() for name in ("page", "agreement"))
        return there and ((self.folder / _OLD).exists() or not first)


def _is_release(output: Path) -> bool:
    """Whether an output is what its certificate names, or an empty folder: nothing else may be replaced.

    The rows of people who agreed are, by their record.
    """
    if output.is_dir() and not any(output.iterdir()):
        return True
    proof = _read(certificate_path(output)) or _read(agreement_path(output))
    try:
        named = {file["name"] for file in (proof or {})["output"]["files"]}
    except (KeyError, TypeError):
        return False
    return named == ({path.name for path in output.iterdir()} if output.is_dir() else {output.name})


def certificate_path(output: Path) -> Path:
    """Where the certificate of an output lies."""
    return output.with_name(output.name + SUFFIX)


def page_path(output: Path) -> Path:
    """Where the certificate's page of an output lies."""
    return output.with_name(output.name + PAGE_SUFFIX)


def agreement_path(output: Path) -> Path:
    """Where the record of people who agreed lies, beside their rows."""
    return output.with_name(output.name + AGREEMENT_SUFFIX)


def _texts(proof: Certificate | AgreementRecord) -> dict[str, str]:
    """What is written beside a table, in the order in which it takes its name."""
    if isinstance(proof, AgreementRecord):
        return {"agreement": proof.text()}
    return {"page": page(proof), "certificate": proof.text()}


def belongs(path: Path, release: str) -> bool:
    """Whether a certificate or a page is of that release."""
    try:
        return release.encode() in path.read_bytes()
    except OSError:
        return False


def digest_of(journal: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(journal, sort_keys=True).encode()).hexdigest()


def read_journal(path: Path) -> dict[str, Any] | None:
    """A journal; one that was cut short was never acted on, so it counts as none."""
    found = _read(path) or {}
    return found if found.pop(_CHECK, None) == digest_of(found) else None


def _read(path: Path) -> dict[str, Any] | None:
    """A record in JSON; None if it cannot be read as one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None

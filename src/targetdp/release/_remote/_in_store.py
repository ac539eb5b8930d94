"""A release in an object store: built on this disk, then published in steps that make every moment safe.

A store moves one file at a time, so what tells a release from anything else is its certificate, which comes
last: without it there is no release, and readers refuse what is there.

1. everything is written in the desk, and uploaded under names that begin with a dot;
2. the journal, in the desk, says that publishing begins (an older release steps aside, certificate first);
3. the table takes its name, then the page, then the certificate;
4. the ledger is told; what lies under names with a dot goes, and so does the folder in the desk.

A run that dies before the certificate has its name published nothing: the next run to this output puts
everything back. A run that dies after it published all of it, and the next run tells the ledger. Where nobody
can tell, since the store does not answer, it counts as published.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self

import pyarrow.fs as pafs

from targetdp._core import NotYetError
from targetdp._files import draft_folder, sync_folder, write_whole
from targetdp.release._agreed._record import AGREEMENT_SUFFIX, AgreementRecord
from targetdp.release._certificate._certificate import PAGE_SUFFIX, SUFFIX, Certificate
from targetdp.release._certificate._page import page
from targetdp.release._desk import MARK
from targetdp.release._draws import made_drafts
from targetdp.release._engine._tables import spool_folder
from targetdp.release._staging import OutputExistsError, Staging, digest_of, read_journal
from targetdp.table import StoredTable, explained, is_stored, local_path, open_store

_JOURNAL, _CHECK = "journal.json", "check"
_NEW, _OLD = "new", "old"
_PIECE = 1 << 24
_FLAT = {"s3", "gcs", "abfs"}
"""Stores without folders: a name may hold a slash."""


class StoreStaging(Staging):
    """The staging of a release that goes to a store; one run of a desk at a time.

    Guarantees: what can be read with a certificate under the output's name is an older complete release, or
    the new complete one, at every moment, whenever the process is killed.
    Does not guarantee: that other desks do not publish under the same name at the same time.
    """

    def __init__(self, uri: str, desk: Path, *, force: bool) -> None:
        with explained(f"output {uri.partition('?')[0]} cannot be written"):
            self._store, path = open_store(uri)
        self._there = PurePosixPath(path)
        if len(self._there.parts) < 2:
            raise ValueError(f"output {uri.partition('?')[0]} names no file or folder below a bucket")
        self._uri, self._visible = uri.partition("?")[0].rstrip("/"), False
        # The same wherever the desk is moved to, and another one for each desk.
        self._mark = hashlib.sha256((desk / MARK).read_bytes() + self._uri.encode()).hexdigest()[:16]
        self._hidden = self._there.with_name(f".{self._there.name}.targetdp-{self._mark}")
        home = made_drafts(desk / "drafts") / f"to-{self._mark}"
        home.mkdir(mode=0o700, exist_ok=True)
        super().__init__(home / self._there.name, force=force)
        self.name = self._uri

    @property
    def place(self) -> str:
        """The output, as the ledger remembers it."""
        return self._uri

    @property
    def published(self) -> bool:
        """Whether the certificate has its name, or may have."""
        return self._visible

    def __enter__(self) -> Self:
        """As on a disk; an earlier run may have taken the folder away since this one asked for it."""
        self.output.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            return super().__enter__()
        except FileNotFoundError as error:
            raise NotYetError(f"another run is writing {self.name}: wait for it") from error

    def begin(self, settle: Callable[[dict[str, Any]], None]) -> None:
        """As on a disk: finish or undo what an earlier run left; then refuse an output that is taken."""
        super().begin(settle)
        if self._force:
            self._must_be_a_release()

    def publish(self, proof: Certificate | AgreementRecord, journal: dict[str, Any]) -> None:
        """Upload the release, then give it its name, certificate last."""
        if not isinstance(proof, Certificate):
            raise TypeError("rows of people who agreed go to no store: please report this")
        proofs = {SUFFIX: proof.text(), PAGE_SUFFIX: page(proof)}
        for end, text in proofs.items():
            write_whole(self.folder / f"proof{end}", text)
        files = self._files()
        new = [*files, *proofs]
        for name in files:
            self._upload(Path(f"{self.table}{name}"), self._hidden / _NEW / f"table{name}")
        for end in proofs:
            self._upload(self.folder / f"proof{end}", self._hidden / _NEW / f"proof{end}")
        if self._force:
            self._must_be_a_release()  # whoever wrote there since the run began wrote it for others
        old = self._names_there() if self._force else []
        noted = {**journal, "files": new, "old": old}
        if not self._force:
            self._must_be_free()  # before the journal: what is there now is nobody's to undo
        write_whole(self.folder / _JOURNAL, json.dumps({**noted, _CHECK: digest_of(noted)}))
        sync_folder(self.folder)
        for name in sorted(old, key=lambda name: name != SUFFIX):  # a certificate never without its table
            self._move(self._named(name), self._hidden / _OLD / self._key(name))
        self._must_be_free()
        for name in [*files, PAGE_SUFFIX]:
            self._move(self._hidden / _NEW / self._key(name), self._named(name))
        self._visible = True
        try:
            self._move(self._hidden / _NEW / self._key(SUFFIX), self._named(SUFFIX))
        except OSError:
            self._visible = self._may_be_there(str(journal["release"]))
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As on a disk; then the folder in the desk goes."""
        super().__exit__(kind, error, trace)
        with suppress(OSError):
            self.output.parent.rmdir()

    # What is under which name: a table of one file is called "", its parts "/part-00000.parquet"

    def _files(self) -> list[str]:
        return sorted(f"/{path.name}" for path in self.table.iterdir()) if self.table.is_dir() else [""]

    def _named(self, name: str) -> PurePosixPath:
        """Where what a name stands for can be read."""
        return PurePosixPath(f"{self._there}{name}")

    def _key(self, name: str) -> str:
        """What it is called under the hidden name: nothing there is beside its certificate."""
        return f"proof{name}" if name in {SUFFIX, PAGE_SUFFIX} else f"table{name}"

    def _names_there(self) -> list[str]:
        """What is there under the output's name, certificate included."""
        found = [end for end in (SUFFIX, PAGE_SUFFIX) if self._is_there(self._named(end))]
        info = self._store.get_file_info(str(self._there))
        if info.type is pafs.FileType.File:
            found.append("")
        below = pafs.FileSelector(str(self._there), recursive=True, allow_not_found=True)
        if info.type is pafs.FileType.Directory:
            files = [one.path for one in self._store.get_file_info(below) if one.type is pafs.FileType.File]
            found += [f"/{PurePosixPath(path).relative_to(self._there)}" for path in files]
        return found

    def _must_be_free(self) -> None:
        if names := self._names_there():
            raise OutputExistsError(
                f"output {self._uri}{names[-1]} exists: choose another name, or replace it with --force"
            )

    def _must_be_a_release(self) -> None:
        tables = {name for name in self._names_there() if name not in {SUFFIX, PAGE_SUFFIX}}
        proof = self._read(self._named(SUFFIX)) or {}
        try:
            named = {file["name"] for file in proof["output"]["files"]}
        except (KeyError, TypeError):
            named = set()
        if tables and {name.removeprefix("/") or self._there.name for name in tables} != named:
            raise ValueError(
                f"output {self._uri} is not a release with a certificate: --force replaces nothing else"
            )

    # After a run that died

    def _recover(self, settle: Callable[[dict[str, Any]], None]) -> None:
        journal = read_journal(self.folder / _JOURNAL)
        if journal is None and (self.folder / _JOURNAL).exists():
            raise ValueError(
                f"{self.folder / _JOURNAL} is damaged, and a run was publishing when it died: bring the "
                f"journal back, or move that folder away and look after {self._uri} yourself"
            )
        files, old = (list((journal or {}).get(name, [])) for name in ("files", "old"))
        told = {name: one for name, one in (journal or {}).items() if name not in {"files", "old"}}
        if journal is not None and self._is_of(str(journal["release"])):
            settle(told)
        elif journal is not None:
            self._undo(files, old)
        with suppress(FileNotFoundError):
            self._store.delete_dir(str(self._hidden))
        (self.folder / _JOURNAL).unlink(missing_ok=True)
        super()._recover(settle)

    def _undo(self, files: list[str], old: list[str]) -> None:
        """Take away what has its name without a certificate; an older release takes its names again."""
        kept = [
            name for name in old if name != SUFFIX and self._is_there(self._hidden / _OLD / self._key(name))
        ]
        if self._is_there(self._named(SUFFIX)):
            if kept:
                raise ValueError(
                    f"an older release lies under {self._hidden / _OLD}, and somebody wrote "
                    f"{self._uri}{SUFFIX} since a run died: nothing was deleted; move that certificate away, "
                    "and run the same command again"
                )
            return  # it steps aside first, and comes back last: all that belongs to it is there
        for name in files:
            if name not in old and self._is_ours(name):
                self._store.delete_file(str(self._named(name)))
        for name in sorted(old, key=lambda name: name == SUFFIX):
            aside = self._hidden / _OLD / self._key(name)
            if self._is_there(aside):
                self._move(aside, self._named(name))

    def _is_ours(self, name: str) -> bool:
        """Whether what has a name there is what this run gave it: byte for byte what lies in the desk."""
        own = self.folder / f"proof{name}" if name in {SUFFIX, PAGE_SUFFIX} else Path(f"{self.table}{name}")
        try:
            with self._store.open_input_stream(str(self._named(name))) as there, own.open("rb") as here:
                while piece := here.read(_PIECE):
                    if there.read(len(piece)) != piece:
                        return False
                return not there.read(1)
        except FileNotFoundError:
            return False

    def _may_be_there(self, release: str) -> bool:
        """Whether the certificate has its name; true where nobody can tell."""
        try:
            return self._is_of(release)
        except OSError:
            return True

    def _is_of(self, release: str) -> bool:
        """Whether the certificate that can be read is that of a release."""
        return (self._read(self._named(SUFFIX)) or {}).get("release") == release

    # The store

    def _read(self, path: PurePosixPath) -> dict[str, Any] | None:
        try:
            with self._store.open_input_stream(str(path)) as file:
                found = json.loads(file.read())
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def _is_there(self, path: PurePosixPath) -> bool:
        return bool(self._store.get_file_info(str(path)).type is pafs.FileType.File)

    def _upload(self, source: Path, path: PurePosixPath) -> None:
        self._make_folder(path)
        with source.open("rb") as file, self._store.open_output_stream(str(path)) as copy:
            while piece := file.read(_PIECE):
                copy.write(piece)

    def _move(self, source: PurePosixPath, path: PurePosixPath) -> None:
        self._make_folder(path)
        self._store.move(str(source), str(path))

    def _make_folder(self, path: PurePosixPath) -> None:
        if self._store.type_name not in _FLAT:
            self._store.create_dir(str(path.parent), recursive=True)


@contextmanager
def fetched(release: str | Path) -> Iterator[Path]:
    """A release, with what lies beside it, on this disk: as it is, or copied from a store meanwhile.

    Args:
        release: Its path, or its address in a store.

    Returns:
        A context manager that gives the path.

    Raises:
        ValueError: It is not there, or the store does not answer.

    Example:
        >>> with fetched("out.parquet") as path:
        ...     path
        PosixPath('out.parquet')
    """
    if not is_stored(str(release)):
        yield local_path(str(release))
        return
    table = StoredTable(str(release))
    with draft_folder(spool_folder() / "targetdp-spool") as folder:
        yield table.fetch(folder, SUFFIX, PAGE_SUFFIX, AGREEMENT_SUFFIX)

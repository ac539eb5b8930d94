"""The one writer of files: a file appears whole, synced and with its permissions, or not at all.

Content goes to a *draft* beside the file: a name of its own that did not exist, never reached through a link,
with its permissions from the first moment (O_EXCL, O_NOFOLLOW, mode at creation). It is synced, takes the
file's name in one step, and the folder is synced. A killed run leaves a hidden draft, never half a file.
"""

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import string
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

DRAFT = ".new"
"""How the names of drafts end."""
_TOKEN = 12
"""Hex digits in the name of a draft."""
_LONGEST_NAME, _LONGEST_STEM = 255, 200
"""Bytes of a file's name, and of it in the name of its draft, which is longer."""

_CLOSED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOSED
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}
_NO_SYNC = {errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP}


def create_new(path: Path, *, private: bool = False) -> int:
    """Open a file that must not be there yet, for writing.

    Args:
        path: Its name. Whatever is there already, a dangling link included, is an error.
        private: Whether its owner alone may read it; otherwise the process's umask decides.

    Returns:
        The file's descriptor, which the caller closes.

    Raises:
        FileExistsError: Something has this name.

    Example:
        >>> import tempfile
        >>> os.close(create_new(Path(tempfile.mkdtemp()) / "new", private=True))
    """
    return os.open(path, _NEW, 0o600 if private else 0o666)


def write_new(
    path: Path, content: bytes | memoryview | str, *, private: bool = False, mode: int | None = None
) -> None:
    """Write and sync a file that must not be there yet. Its folder is the caller's to sync.

    Args:
        path: Its name.
        content: All of it; text is written as UTF-8.
        private: As for `create_new`.
        mode: Its exact permissions, in place of ``private``.

    Raises:
        FileExistsError: Something has this name.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "new"
        >>> write_new(path, "text")
        >>> path.read_text()
        'text'
    """
    with os.fdopen(create_new(path, private=private or mode is not None), "wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def write_whole(
    path: Path,
    content: bytes | memoryview | str,
    *,
    private: bool = False,
    replace: bool = True,
    mode: int | None = None,
) -> None:
    """Write a file, all of it or nothing.

    Args:
        path: Its name.
        content: All of it; text is written as UTF-8.
        private: Whether its owner alone may read it, also if an older file was open to others.
        replace: Whether an older file of this name is replaced.
        mode: Its exact permissions, in place of ``private``.

    Raises:
        FileExistsError: ``replace`` is false, and something has this name.

    Guarantees: at every moment, also after a kill or a loss of power, there is the older file or the whole
    new one under this name. A link of this name is replaced, not followed.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "scales.toml"
        >>> write_whole(path, "scale = 2", private=True)
        >>> path.read_text(), oct(path.stat().st_mode & 0o777)
        ('scale = 2', '0o600')
    """
    with draft_of(path) as draft:
        write_new(draft, content, private=private, mode=mode)
        take_name(draft, path, replace=replace)


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A name beside a file for its draft; what is left of it when the block ends is removed.

    Args:
        path: The file that the draft is for.
    """
    draft = path.with_name(f"{_before_token(path.name)}{secrets.token_hex(_TOKEN // 2)}.new")
    try:
        yield draft
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def remove_drafts(folder: Path, *names: str) -> None:
    """Remove what killed runs have left of drafts. The caller makes sure that nobody is writing.

    Args:
        folder: Where the files are.
        names: Of which files; all, if none is named.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_new(folder / ".table.csv.0123456789ab.new", "half")
        >>> remove_drafts(folder)
        >>> list(folder.iterdir())
        []
    """
    wanted = {_before_token(name) for name in names}
    for path in list(folder.iterdir()):
        rest = path.name.removesuffix(".new")
        before, token = rest[:-_TOKEN], rest[-_TOKEN:]
        is_draft = rest != path.name and len(before) > 2 and before[0] == before[-1] == "."
        if is_draft and set(token) <= set(string.hexdigits.lower()) and (not names or before in wanted):
            with suppress(OSError):  # somebody else's, or a folder: it is in nobody's way
                path.unlink()


def _before_token(name: str) -> str:
    """How the names of a file's drafts begin; a name that leaves no room for more stands by its hash."""
    if len(os.fsencode(name)) + _TOKEN + len("...new") > _LONGEST_NAME:
        stem = os.fsencode(name)[:_LONGEST_STEM].decode(errors="ignore")
        name = f"{stem}.{hashlib.sha256(os.fsencode(name)).hexdigest()[:_TOKEN]}"
    return f".{name}."


def take_name(draft: Path, path: Path, *, replace: bool = True) -> None:
    """Give a finished draft its name in one step, and make the name durable.

    Args:
        draft: A whole and synced file in the same folder.
        path: The name that it takes.
        replace: Whether an older file of this name is replaced.

    Raises:
        FileExistsError: ``replace`` is false, and something has this name.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_new(folder / "draft", "text")
        >>> take_name(folder / "draft", folder / "file")
        >>> (folder / "file").read_text()
        'text'
    """
    if not replace:
        try:
            path.hardlink_to(draft)  # unlike a rename, it fails where there is a file already
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.close(create_new(path, private=True))  # the file system knows no links: claim the name first
            replace = True
    if replace:
        draft.replace(path)
    sync_folder(path.parent)


def append_line(path: Path, line: str) -> None:
    """Add a line to a file for its owner's eyes, which is made if there is none; synced.

    Args:
        path: Its name; a link is not followed.
        line: Without the newline.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "list"
        >>> append_line(path, "one")
        >>> append_line(path, "two")
        >>> path.read_text().split()
        ['one', 'two']
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _CLOSED, 0o600)
    with os.fdopen(handle, "rb+") as file:
        os.fchmod(handle, 0o600)
        end = file.seek(0, os.SEEK_END)
        whole = end == 0 or os.pread(handle, 1, end - 1) == b"\n"  # or a killed run left half a line
        file.write(f"{'' if whole else chr(10)}{line}\n".encode())
        file.flush()
        os.fsync(handle)
    sync_folder(path.parent)


@contextmanager
def draft_folder(place: Path) -> Iterator[Path]:
    """A hidden folder to make a folder in, for its owner alone; the caller renames it when it is whole.

    Args:
        place: The folder that it will be.

    Returns:
        A context manager that gives the hidden folder. What is left of it when the block ends is removed, and
        so is what killed runs have left.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "desk"
        >>> with draft_folder(place) as draft:
        ...     _ = draft.rename(place)
        >>> [path.name for path in place.parent.iterdir()]
        ['desk']
    """
    remove_draft_folders(place)
    draft = place.with_name(f".{place.name}.{secrets.token_hex(_TOKEN // 2)}{DRAFT}")
    draft.mkdir(mode=0o700)
    try:
        with _at_work(draft):
            yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove_draft_folders(place: Path) -> None:
    """Remove the hidden folders that killed runs have left, and nobody is at work in.

    Args:
        place: The folder that they would have been.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "desk"
        >>> place.with_name(".desk.0123456789ab.new").mkdir()
        >>> remove_draft_folders(place)
        >>> list(place.parent.iterdir())
        []
    """
    for left in place.parent.glob(f".{escape(place.name)}.*{DRAFT}"):
        with suppress(OSError), _at_work(left):
            shutil.rmtree(left)


@contextmanager
def _at_work(folder: Path) -> Iterator[None]:
    """Within, no other process has the folder; an OSError if one has."""
    handle = os.open(folder, os.O_RDONLY | _CLOSED)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable: after a loss of power they are still there.

    Where permissions or the file system do not let us, nothing happens.

    Args:
        folder: Where files were made, renamed or removed.

    Example:
        >>> import tempfile
        >>> sync_folder(Path(tempfile.mkdtemp()))
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


# A file that a library writes itself, a table for instance: it is built in a hidden place.


@contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[Path]:
    """A hidden place to build a file; it takes its name when the block ends without an error.

    Args:
        path: The name that the file will take.
        force: Whether a file of that name is replaced.

    Returns:
        A context manager that gives the hidden place.

    Raises:
        ValueError: Its folder does not exist, the name is taken, or another run is writing it.

    Guarantees: under ``path`` there is nothing, an older file, or the whole new one, at every moment.
    After an error nothing else is left.
    Edges: a run that was killed leaves a hidden folder; the next run for the same name takes it away.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "list.txt"
        >>> with whole_file(path, force=False) as place:
        ...     _ = place.write_text("whole")
        >>> path.read_text()
        'whole'
    """
    if not path.parent.is_dir():
        raise ValueError(f"output folder {path.parent} does not exist: create it first")
    must_be_free(path, force=force)
    folder = path.parent / f".{path.name}.example"
    lock = _locked(folder, path)
    try:
        place = folder / "table"
        place.unlink(missing_ok=True)  # of a run that was killed
        yield place
        must_be_free(path, force=force)
        take_name(place, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def must_be_free(path: Path, *, force: bool) -> None:
    """Refuse a name that a file cannot take.

    Args:
        path: The name.
        force: Whether a file of that name may be replaced.

    Raises:
        ValueError: A folder has it, or a file that ``force`` does not replace.

    Example:
        >>> import tempfile
        >>> must_be_free(Path(tempfile.mkdtemp()) / "list.txt", force=False)
    """
    if path.is_dir():
        raise ValueError(f"output {path} is a folder: give the name of a file")
    if not force and (path.exists() or path.is_symlink()):
        raise ValueError(f"output {path} exists: choose another name, or replace it with --force")


def _locked(folder: Path, path: Path) -> int:
    """Lock a folder for this run alone, until the handle is closed."""
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0))
    if (reason := _why_not_ours(folder, lock)) is not None:
        os.close(lock)
        raise ValueError(f"{path} cannot be written: {reason}")
    return lock


def _why_not_ours(folder: Path, handle: int) -> str | None:
    """Why this run may not write in a hidden folder; None if it holds it alone now."""
    status = os.fstat(handle)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        return f"{folder} is somebody else's or open to others; remove it, or choose another folder"
    with suppress(OSError):  # somebody holds it, or has just ended and taken it away
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if status.st_ino == folder.stat().st_ino:
            return None
    return "another run is writing it; wait for it, or choose another name"

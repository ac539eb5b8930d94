"""The one writer of files: a file appears whole, synced and with its permissions, or not at all.

Content goes to a *draft* beside the file: a name of its own that did not exist, never reached through a link,
with its permissions from the first moment (O_EXCL, O_NOFOLLOW, mode at creation). It is synced, takes the
file's name in one step, and the folder is synced. A killed run leaves a hidden draft, never half a file.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TOKEN = 12
"""Hex digits in the name of a draft."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


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


def write_new(path: Path, content: bytes | str, *, private: bool = False) -> None:
    """Write and sync a file that must not be there yet. Its folder is the caller's to sync.

    Args:
        path: Its name.
        content: All of it; text is written as UTF-8.
        private: As for `create_new`.

    Raises:
        FileExistsError: Something has this name.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "new"
        >>> write_new(path, "text")
        >>> path.read_text()
        'text'
    """
    with os.fdopen(create_new(path, private=private), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, content: bytes | str, *, private: bool = False, replace: bool = True) -> None:
    """Write a file, all of it or nothing.

    Args:
        path: Its name.
        content: All of it; text is written as UTF-8.
        private: Whether its owner alone may read it, also if an older file was open to others.
        replace: Whether an older file of this name is replaced.

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
        write_new(draft, content, private=private)
        take_name(draft, path, replace=replace)


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A name beside a file for its draft; what is left of it when the block ends is removed.

    Args:
        path: The file that the draft is for.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(_TOKEN // 2)}.new")
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
    for path in list(folder.iterdir()):
        hidden, _, rest = path.name.removeprefix(".").rpartition(".")
        name, _, token = hidden.rpartition(".")
        ours = path.name.startswith(".") and rest == "new" and len(token) == _TOKEN and name
        if ours and (not names or name in names):
            path.unlink(missing_ok=True)


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
    if replace:
        draft.replace(path)
    else:
        path.hardlink_to(draft)  # unlike a rename, it fails where there is a file already
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
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(f"{line}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable: after a loss of power they are still there.

    Args:
        folder: Where files were made, renamed or removed.

    Example:
        >>> import tempfile
        >>> sync_folder(Path(tempfile.mkdtemp()))
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

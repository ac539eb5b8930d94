"""A file that appears whole or not at all."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from targetdp.table.sink import sync_folder


@contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[Path]:
    """A hidden place to build a file; it takes its name when the block ends without an error.

    Guarantees: under ``path`` there is nothing, an older file, or the whole new one, at every moment.
    After an error nothing else is left.
    Edges: a run that was killed leaves a hidden folder; the next run for the same name takes it away.
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
        place.replace(path)
        sync_folder(path.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def must_be_free(path: Path, *, force: bool) -> None:
    """A name that a file may take: nothing has it yet, or ``force`` replaces the file that does."""
    if path.is_dir():
        raise ValueError(f"output {path} is a folder: give the name of a file")
    if not force and (path.exists() or path.is_symlink()):
        raise ValueError(f"output {path} exists: choose another name, or replace it with --force")


def _locked(folder: Path, path: Path) -> int:
    """The folder, held by this run alone until the handle is closed."""
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_ino != folder.stat().st_ino:
            raise BlockingIOError("another run just ended and took its folder away")
    except OSError as error:
        os.close(lock)
        raise ValueError(f"another run is writing {path}: wait for it, or choose another name") from error
    return lock

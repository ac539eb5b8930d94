"""Object stores and other filesystems that pyarrow knows (``s3://…``): their tables are copied, then read."""

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

from targetdp._core import Progress
from targetdp._files import create_new
from targetdp.table._dialect import TableError
from targetdp.table._elsewhere._secrets import explained, refuse_secrets, scheme_of
from targetdp.table._elsewhere._spool import Elsewhere
from targetdp.table._paths import NoTableError

_PIECE = 1 << 24


@dataclass(frozen=True)
class StoredTable(Elsewhere):
    """A table in an object store, or on another filesystem that pyarrow knows.

    Args:
        uri: Of a file, or of a folder of part files: ``s3://bucket/people.parquet``; never a key or password.

    Raises:
        ValueError: The address holds a password or key.

    Example:
        >>> str(StoredTable("s3://operator/people.parquet?region=eu-west-1"))
        's3://operator/people.parquet'
    """

    uri: str

    def __post_init__(self) -> None:
        refuse_secrets(self.uri)

    def __str__(self) -> str:
        return self.uri.partition("?")[0]

    def spool(self, folder: Path, order: str | None, progress: Progress) -> Path:  # noqa: ARG002 (files have one)
        """See `Elsewhere`."""
        progress.phase(f"copying {self}", None)
        return self.fetch(folder)

    def fetch(self, folder: Path, *endings: str) -> Path:
        """Copy it into a folder, with those files beside it whose names have one of these endings more.

        Args:
            folder: For its owner alone.
            endings: Such as ``.certificate.json``; what is not there is left out.

        Returns:
            The copy's path: a file, or a folder of files.
        """
        with explained(f"input {self} cannot be read"):
            store, path = open_store(self.uri)
            place = folder / PurePosixPath(path).name
            if store.get_file_info(path).type is pafs.FileType.NotFound:
                raise NoTableError(f"input {self} does not exist: check the name")
            beside = [f"{path.rstrip('/')}{end}" for end in endings]
            below = pafs.FileSelector(path, recursive=True, allow_not_found=True)
            is_file = store.get_file_info(path).type is pafs.FileType.File
            inside = [store.get_file_info(path)] if is_file else store.get_file_info(below)
            for found in (*inside, *(store.get_file_info(beside) if beside else ())):
                if found.type is pafs.FileType.File:
                    inner = PurePosixPath(found.path).relative_to(PurePosixPath(path).parent)
                    if ".." in inner.parts:  # a key may say anything; whoever may write there wrote it
                        raise TableError(f"input {self} holds a name with '..' in it, which leads elsewhere")
                    copy = folder / inner
                    copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    _download(store, found.path, copy)
            return place


def is_stored(text: str) -> bool:
    """Whether a text is the address of a store: ``s3://…``, but not ``file://…``.

    Args:
        text: A path or an address.

    Returns:
        Whether it is.

    Example:
        >>> is_stored("s3://bucket/people.parquet"), is_stored("people.parquet")
        (True, False)
    """
    return "://" in text and scheme_of(text) != "file"


def local_path(text: str) -> Path:
    """The path that a text names, also as ``file://…``.

    Args:
        text: A path or an address of this disk.

    Returns:
        The path.

    Raises:
        ValueError: There is none, and the text looks like an address with a password.

    Example:
        >>> local_path("file:///data/people.parquet"), local_path("people.parquet")
        (PosixPath('/data/people.parquet'), PosixPath('people.parquet'))
    """
    path = Path(unquote(urlsplit(text).path)) if text.startswith("file://") else Path(text)
    if not os.path.lexists(path):  # s3:/… with one slash is a name of nothing, and messages repeat names
        refuse_secrets(text.partition("?")[0])
    return path


def open_store(uri: str) -> tuple[pafs.FileSystem, str]:
    """The filesystem of an address, and the path on it.

    Args:
        uri: The address.

    Returns:
        Both.

    Raises:
        ValueError: pyarrow knows no such filesystem, or the address holds a password.

    Example:
        >>> open_store("file:///data/people.parquet")[1]
        '/data/people.parquet'
    """
    refuse_secrets(uri)
    with explained(f"{scheme_of(uri)}://… cannot be opened", ImportError):
        store, path = pafs.FileSystem.from_uri(uri)
    return store, path


def _download(store: pafs.FileSystem, path: str, place: Path) -> None:
    """Copy a file from a store; its owner alone can read the copy."""
    with store.open_input_stream(path) as source, os.fdopen(create_new(place, private=True), "wb") as copy:
        while piece := source.read(_PIECE):
            copy.write(piece)

"""Object stores and other filesystems that pyarrow knows (``s3://…``): their tables are copied, then read."""

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pyarrow.fs as pafs

from targetdp._core import Progress
from targetdp._files import create_new
from targetdp.table._elsewhere._secrets import explained, refuse_secrets, scheme_of
from targetdp.table._elsewhere._spool import Elsewhere
from targetdp.table._source import TableError

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
        with explained(f"input {self} cannot be read"):
            store, path = open_store(self.uri)
            top = store.get_file_info(path)
            if top.type is pafs.FileType.NotFound:
                raise TableError(f"input {self} does not exist: check the name")
            name = PurePosixPath(path).name
            if top.type is pafs.FileType.File:
                download(store, path, folder / name)
                return folder / name
            for found in store.get_file_info(pafs.FileSelector(path, recursive=True)):
                if found.type is pafs.FileType.File:
                    below = PurePosixPath(found.path).relative_to(path)
                    (folder / name / below).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    download(store, found.path, folder / name / below)
            return folder / name


def is_stored(text: str) -> bool:
    """Whether a text is the address of a store."""
    return "://" in text


def open_store(uri: str) -> tuple[pafs.FileSystem, str]:
    """The filesystem of an address, and the path on it."""
    refuse_secrets(uri)
    with explained(f"{scheme_of(uri)}://… cannot be opened", ImportError):
        store, path = pafs.FileSystem.from_uri(uri)
    return store, path


def download(store: pafs.FileSystem, path: str, place: Path) -> None:
    """Copy a file from a store; its owner alone can read the copy."""
    with store.open_input_stream(path) as source, os.fdopen(create_new(place, private=True), "wb") as copy:
        while piece := source.read(_PIECE):
            copy.write(piece)

"""Which files a table is: a file, a folder of parts, a pattern, or several of them; and columns of folders.

A folder that is named ``region=north`` (hive's way to part a table) gives the files in it a column. Which
folders count does not depend on how the table is named: those between what all names share and the file.
"""

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import pyarrow as pa

from targetdp._core import NotYetError
from targetdp.table._dialect import TableError

Format = Literal["parquet", "csv"]
"""The formats of tables that are read and written."""

TablePath = str | Path | Sequence[str | Path]
"""What names a table: a file, a folder of part files, a pattern such as ``part-*.csv``, or several."""

SUFFIXES: dict[str, Format] = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv"}
_NULL = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")
_SHOWN = 3


class NoTableError(TableError, NotYetError):
    """There is no table, or none yet."""


@dataclass(frozen=True)
class TableFiles:
    r"""The files of a table.

    Args:
        name: What messages call it.
        places: What was named, or found by a pattern.
        files: The files, in order.
        folders: For each column that folders give: its value in each file, None where it is missing.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "region=north"
        >>> folder.mkdir()
        >>> _ = (folder / "people.csv").write_text("id\n007\n")
        >>> find_files(folder.parent).folders
        {'region': ('north',)}
    """

    name: str
    places: tuple[Path, ...]
    files: tuple[Path, ...]
    folders: dict[str, tuple[str | None, ...]] = field(default_factory=dict)

    @property
    def format(self) -> Format:
        """The one format of all files."""
        kinds = {_format(file) for file in self.files}
        if len(kinds) > 1:
            raise TableError(f"input {self.name} mixes Parquet and CSV files: keep one format in a table")
        return kinds.pop()


def find_files(table: TablePath) -> TableFiles:
    """Find the files of a table.

    Args:
        table: What names it. What exists under a name is not taken for a pattern.

    Returns:
        Its files; of a folder or a pattern in the order of their names.

    Raises:
        TableError: Something is not there, or is there twice, or folders name different columns.

    Example:
        >>> find_files("absent.csv")
        Traceback (most recent call last):
        targetdp.table._paths.NoTableError: input absent.csv does not exist: check the name
    """
    named = [Path(table)] if isinstance(table, str | os.PathLike) else [Path(one) for one in table]
    if not named:
        raise TableError("table = []: no input was named; give at least one file, folder or pattern")
    places, files, bases = list[Path](), list[Path](), list[Path]()
    for path in named:
        base, found = _named(path)
        parts = [part for place in found for part in (_parts(place) if place.is_dir() else (place,))]
        if not parts:
            raise NoTableError(f"input {path} holds no part files: it needs some with {', '.join(SUFFIXES)}")
        places += found
        files += parts
        bases.append(base)
    if empty := [file for file in files if format_of(file) == "csv" and not file.stat().st_size]:
        raise TableError(f"input {empty[0]} is empty or has no rows: there is nothing to read")
    _must_differ(files)
    first = ", ".join(str(path) for path in named[:_SHOWN])
    more = f" and {len(named) - _SHOWN:,} more" if len(named) > _SHOWN else ""
    base = bases[0] if len(bases) == 1 else Path(os.path.commonpath([path.absolute() for path in bases]))
    return TableFiles(f"{first}{more}", tuple(places), tuple(files), _folders(files, base.absolute()))


def _named(path: Path) -> tuple[Path, list[Path]]:
    """Where folders begin to count, and what a name stands for: itself, or whatever fits a pattern."""
    if path.exists():
        return (path if path.is_dir() else path.parent), [path]
    if not glob.has_magic(str(path)):
        raise NoTableError(f"input {path} does not exist: check the name")
    fixed = Path(*path.parts[: next(i for i, part in enumerate(path.parts) if glob.has_magic(part))])
    found = [Path(one) for one in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207 (any path)
    if not found:
        raise NoTableError(f"input {path} does not exist, and as a pattern it fits nothing: check the name")
    # As in a folder: what is no table, or hidden, is not data.
    seen = [one for one in found if not any(map(_is_hidden, one.relative_to(fixed).parts))]
    tables = [one for one in seen if one.is_dir() or format_of(one)]
    if not tables:
        raise TableError(
            f"input {path} fits {len(found):,} name{'s' * (len(found) > 1)}, and none is a table: it needs "
            f"some with {', '.join(SUFFIXES)}"
        )
    inside = [one for one in tables if not any(other in one.parents for other in tables)]
    return fixed, inside


def _parts(folder: Path) -> tuple[Path, ...]:
    """All part files below a folder, sorted; names that begin with '.' or '_' are not data."""
    return tuple(
        sorted(
            file
            for file in folder.rglob("*")
            if file.is_file() and format_of(file)
            and not any(map(_is_hidden, file.relative_to(folder).parts))
        )
    )  # fmt: skip


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _must_differ(files: Sequence[Path]) -> None:
    """A TableError if two names are those of one file: its people would be there twice."""
    known: dict[tuple[int, int], Path] = {}
    for file in files if len(files) > 1 else ():
        found = file.stat()
        same = known.setdefault((found.st_dev, found.st_ino), file)
        if same is not file:
            twice = "is named twice" if same == file else f"is the same file as {same}"
            raise TableError(f"input {file} {twice}: name each file once, and no folder beside what is in it")


def _folders(files: Sequence[Path], base: Path) -> dict[str, tuple[str | None, ...]]:
    """The columns that folders give, and their values."""
    rows = []
    for file in files:
        parts = file.absolute().relative_to(base).parts[:-1]
        pairs = [part.split("=", 1) for part in parts if "=" in part[1:]]
        rows.append([(_decoded(name, file), _decoded(value, file)) for name, value in pairs])
    names = [name for name, _ in rows[0]]
    if len(set(names)) < len(names):
        raise TableError(f"input {files[0]}: two of its folders name one column; keep one of them")
    for file, row in zip(files, rows, strict=True):
        if [name for name, _ in row] != names:
            raise TableError(
                f"the folders of input {file} name {_listed([name for name, _ in row])}, and those of "
                f"{files[0]} name {_listed(names)}: all parts must have the same columns"
            )
    values = zip(*([None if v in {"", _NULL} else v for _, v in row] for row in rows), strict=True)
    return dict(zip(names, values, strict=True)) if names else {}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "no column"


def _decoded(text: str, file: Path) -> str:
    """What a folder's name stands for: signs that no name can have are written as %2F."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise TableError(
            f"input {file}: the folder's name {text!r} is no text in UTF-8: rename it"
        ) from error


def folder_type(values: Sequence[str | None]) -> pa.DataType:
    """The type of a column that folders give: whole numbers if all values are, as people write them.

    Args:
        values: The values, None where one is missing.

    Returns:
        int64 or text; ``01`` is text.

    Example:
        >>> folder_type(["1", None, "12"]), folder_type(["1", "01"])
        (DataType(int64), DataType(string))
    """
    present = [value for value in values if value is not None]
    whole = present and all(_WHOLE.fullmatch(value) for value in present)
    return pa.int64() if whole else pa.string()


def format_of(path: Path) -> Format | None:
    """The format that a file's name promises.

    Args:
        path: The name.

    Returns:
        The format, or None if the suffix is not known.

    Example:
        >>> format_of(Path("people.csv.gz"))
        'csv'
    """
    name = path.name.lower()
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)


def _format(path: Path) -> Format:
    kind = format_of(path)
    if kind is None:
        raise TableError(
            f"input {path} has no known suffix: use {', '.join(SUFFIXES)} or a folder of such files"
        )
    return kind

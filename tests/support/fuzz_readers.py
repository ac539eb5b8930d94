"""Everything that reads a file, by name, and what must hold whatever the file is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.release import FEATURES
from targetdp.normalization import read_bounds, read_scales
from targetdp.programs import read_program_file
from targetdp.release import Ledger, make_settings, read_certificate, read_release_file
from targetdp.release._weights_file import read_weights
from targetdp.table import check_columns, open_source
from targetdp.tradeoff import read_run

Reader = Callable[[Path], Any]


def _read_table(path: Path) -> list[Any]:
    """As every command does."""
    source = open_source(path)
    check_columns(source.columns, f"input {path}", id=["name"])
    return [*source.batches(["name"], {}, 100)]


TOML_READERS: dict[str, Reader] = {
    "release": lambda path: make_settings(read_release_file(path)),
    "program": read_program_file,
    "scales": lambda path: read_scales(path, FEATURES),
    "bounds": lambda path: read_bounds(path, FEATURES),
    "weights": read_weights,
}
READERS: dict[str, Reader] = TOML_READERS | {
    "certificate": read_certificate,
    "ledger": lambda path: Ledger.existing(path).releases(),
    "sweep": lambda path: read_run(path.parent),
    "CSV": _read_table,
    "Parquet": _read_table,
}
_FILES = {"sweep": "run.json", "CSV": "table.csv", "Parquet": "table.parquet", "ledger": "ledger.db"}


def file_of(name: str) -> str:
    """What a reader's file is called."""
    return _FILES.get(name, "file.json" if name == "certificate" else "file.toml")


def only_value_errors(read: Reader, path: Path) -> None:
    """A value comes back, or a ValueError that says something, and not the whole file."""
    try:
        read(path)
    except ValueError as error:
        said = str(error)
        assert said, "an error says something"
        assert len(said) < 20_000, "and not the whole file"

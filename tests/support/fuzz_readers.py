"""Everything that reads a file, by name, and what must hold whatever the file is."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.release import FEATURES, policy_text
from targetdp.normalization import read_scales
from targetdp.programs import read_program_file
from targetdp.release import (
    Desk,
    Ledger,
    SigningKey,
    read_agreement,
    read_certificate,
    read_policy,
    read_proposal,
    read_request,
    secret_key,
)
from targetdp.release._draws import Draws
from targetdp.release._ledger._people import read_people
from targetdp.table import check_columns, dialect_of, open_source
from targetdp.tradeoff import read_run

Reader = Callable[[Path], Any]
SECRET = f"{bytes(range(32)).hex()} bound\n"
"""What a desk keeps of a reservation: a key, and a hash of what must stay the same."""


def _read_table(path: Path) -> list[Any]:
    """As every command does."""
    source = open_source(path)
    check_columns(source.columns, f"input {path}", id=["name"])
    return [*source.batches(["name"], {}, 100)]


def _read_declared(path: Path) -> list[Any]:
    """As a release does, in a dialect that Arrow does not read by itself; words among numbers are kept."""
    csv = "separator=; decimal=, thousands=space encoding=cp1252"
    source = open_source(path, csv=csv, keep_words=True)
    return [*source.batches(source.columns, dict.fromkeys(source.columns[1:], pa.float64()), 100)]


def _read_dialect(path: Path) -> str:
    return dialect_of(path.read_text(encoding="utf-8")).text


def _read_ledger(path: Path) -> list[str]:
    with Ledger(path) as ledger:
        assert ledger.history.policy_version >= 0
        return ledger.verify()


def _read_mark(path: Path) -> None:
    """Beside a sound ledger."""
    ledger = path.with_name("ledger.db")
    if not ledger.exists():
        path.parent.mkdir(exist_ok=True)
        made = ledger.parent / "made"
        made.mkdir()
        (made / "policy.toml").write_text(policy_text(), encoding="utf-8")
        # Without releases: composing them would compile kernels, which instrumented code cannot.
        with Ledger(made / ledger.name, SigningKey.open(made / "signing.pem"), create=True) as new:
            new.record_policy(read_policy(made / "policy.toml"), 1)
        (made / ledger.name).rename(ledger)
    _read_ledger(ledger)


def _read_desk(path: Path) -> str:
    path.parent.chmod(0o700)
    return Desk.open(path.parent).id


def _read_secret(path: Path) -> None:
    """Whoever finds none that is whole begins anew."""
    if path.is_file():
        path.with_name("drawn").touch()
    draws = Draws.reopen(path.parent.parent, path.parent.name, "bound")
    if draws is None:
        raise ValueError("it is no secret")
    draws.close()


def _read_drawn(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.with_name("secret").write_text(SECRET, encoding="utf-8")
    _read_secret(path.with_name("secret"))


def _read_people(path: Path) -> int:
    """Of the right hash: any other one is refused before it is looked at."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "0" * 64
    return len(read_people(path, path.stem, sha256))


def _owned(read: Reader) -> Reader:
    """Of a file that is its owner's alone, as a key must be."""

    def reader(path: Path) -> Any:
        path.chmod(0o600)
        return read(path)

    return reader


TOML_READERS: dict[str, Reader] = {
    "policy": read_policy,
    "request": read_request,
    "program": read_program_file,
    "scales": lambda path: read_scales(path, FEATURES),
}
JSON_READERS: dict[str, Reader] = {
    "agreement": read_agreement,
    "certificate": read_certificate,
    "desk": _read_desk,
    "mark": _read_mark,
    "proposal": lambda path: read_proposal(path).lines(),
    "sweep": lambda path: read_run(path.parent),
}
READERS: dict[str, Reader] = (
    TOML_READERS
    | JSON_READERS
    | {
        "ledger": _read_ledger,
        "people": _read_people,
        "secret": _read_secret,
        "drawn": _read_drawn,
        "signing key": _owned(lambda path: SigningKey.open(path, create=False)),
        "secret key": _owned(secret_key),
        "CSV": _read_table,
        "declared CSV": _read_declared,
        "dialect": _read_dialect,
        "Parquet": _read_table,
    }
)
MAY_BE_MISSING = ("drawn",)
"""Before the first draw there is none."""
_FILES = {
    "agreement": "file.json", "certificate": "file.json", "proposal": "file.json", "desk": "desk.json",
    "mark": "ledger.db.head",
    "sweep": "run.json", "ledger": "ledger.db", "people": "release.tags", "secret": "secret",
    "drawn": "drawn", "signing key": "signing.pem", "secret key": "tags.key", "CSV": "table.csv",
    "declared CSV": "table.csv", "Parquet": "table.parquet",
}  # fmt: skip


def file_of(name: str) -> str:
    """What a reader's file is called."""
    return _FILES.get(name, "file.toml")


def only_value_errors(read: Reader, path: Path) -> None:
    """A value comes back, or a ValueError that says something, and not the whole file."""
    try:
        read(path)
    except ValueError as error:
        said = str(error)
        assert said, "an error says something"
        assert len(said) < 20_000, "and not the whole file"

"""The folder of a sweep: what run it belongs to, parts as they come, results at the end.

Guarantees: every file appears whole, by a rename after it was synced, so a run that is killed leaves nothing
half-written under a name that counts. One run at a time works in a folder, and only one sweep ever does.
Every table carries the hash of its own file: what a disk or a copy has changed is never taken for figures.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from targetdp._files import remove_drafts, write_whole
from targetdp.tradeoff._study import FINGERPRINT, FIRST_LOOK, MARK, SOURCE, metadata
from targetdp.tradeoff._sweep import FORMAT, Sweep, Unit

RUN, PARTS = "run.json", "parts"
RESULTS, SUMMARY, TIMING = "results.parquet", "summary.parquet", "timing.parquet"
"""Files of a finished sweep."""

_REQUIRED = {
    FINGERPRINT: str, SOURCE: str, MARK: bool, "program": str, "title": str, "kind": str, "objective": dict,
    "people": int, "counted": str, "alike_groups": list, "rows": str, "features": list, FIRST_LOOK: list,
    "made_of": dict, "cells": list,
}  # fmt: skip
"""What a run's record must say, for whoever reads it."""

_SEAL, _NO_SEAL = "targetdp.sha256", "0" * 64
_BEFORE_SEAL = _SEAL.encode() + b"\x18\x40"
"""How a Parquet footer writes that key, and that a text of 64 bytes follows."""


@contextmanager
def open_folder(folder: Path, sweep: Sweep) -> Iterator["SweepFolder"]:
    """The folder of a sweep, made if it has to be, and locked while a run works in it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out = {folder} is a file: give the name of a folder")
    opened = SweepFolder(folder, sweep)
    folder.mkdir(parents=True, exist_ok=True, mode=opened.mode)
    lock = os.open(folder, os.O_RDONLY)
    try:
        opened.take(lock)
        yield opened
    finally:
        os.close(lock)


class SweepFolder:
    """A folder that belongs to one sweep.

    Figures of confidential rows are for their owner's eyes: nobody else may look into the folder, even if
    it was there before, nor read a file that is copied out of it.
    """

    def __init__(self, folder: Path, sweep: Sweep) -> None:
        self.folder, self._sweep = folder, sweep
        self._metadata = metadata(sweep.study.source, sweep.fingerprint)
        self._private = sweep.study.for_the_data_holder_only
        self.mode = 0o700 if self._private else 0o777

    def take(self, lock: int) -> None:
        """Lock the folder, see whose it is, and tidy up after a run that was killed."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"out = {self.folder}: another run is at work there; wait for it to end"
            ) from error
        self._must_be_ours()
        if self._private:
            self._close_to_others(lock)
        (self.folder / PARTS).mkdir(exist_ok=True, mode=self.mode)
        record, path = self._sweep.record(), self.folder / RUN
        if path.exists():  # drafts in a folder that is not known to be ours may be somebody's own
            remove_drafts(self.folder, RUN, RESULTS, SUMMARY, TIMING)
            remove_drafts(self.folder / PARTS)
        # A record that differs is known to be of this sweep: something in it was damaged.
        if not path.exists() or json.loads(path.read_bytes()) != record:
            self._write(path, (json.dumps(record, indent=2) + "\n").encode())

    def _close_to_others(self, lock: int) -> None:
        try:
            os.fchmod(lock, 0o700)
            files = [self.folder / name for name in (RUN, RESULTS, SUMMARY, TIMING)]
            parts = self.folder / PARTS
            for path in (parts, *files, *parts.glob("*.parquet")):
                if path.exists():
                    path.chmod(0o700 if path.is_dir() else 0o600)
        except PermissionError as error:
            raise ValueError(
                f"out = {self.folder} belongs to somebody else, and these figures are for the data holder "
                "only: choose a folder of your own"
            ) from error

    def part(self, unit: Unit) -> pa.Table | None:
        """The finished part of a unit; None if it is not there, or not whole."""
        with suppress(pa.ArrowException, OSError):
            content = (self.folder / part_name(unit)).read_bytes()
            if is_sealed(content):
                table = pq.read_table(pa.BufferReader(content))
                carried = table.schema.metadata or {}
                if carried.get(f"targetdp.{FINGERPRINT}".encode()) == self._sweep.fingerprint.encode():
                    return table
        return None

    def keep(self, name: str, table: pa.Table) -> None:
        """Write a finished part, or one of the files at the end."""
        marked = table.replace_schema_metadata({**(table.schema.metadata or {}), **self._metadata})
        self._write(self.folder / name, sealed(marked.combine_chunks()))

    def _write(self, path: Path, content: bytes) -> None:
        write_whole(path, content, private=self._private)

    def _must_be_ours(self) -> None:
        if not (self.folder / RUN).exists():
            if any(path.name != PARTS and not path.name.startswith(".") for path in self.folder.iterdir()):
                raise ValueError(
                    f"out = {self.folder} holds other files and no {RUN}: choose a new or an empty folder"
                )
            return
        record = _record_of(self.folder)
        if record[FINGERPRINT] == self._sweep.fingerprint:
            return
        theirs, ours = (_without_first_look(made_of) for made_of in (record["made_of"], self._sweep.made_of))
        differing = [name for name in ours if theirs.get(name) != ours[name]]
        if not differing:
            raise ValueError(
                f"{self.folder / RUN} is damaged (its fingerprint is not that of what it says): run the "
                "sweep again in a new folder"
            )
        raise ValueError(
            f"out = {self.folder} holds another sweep: it differs in {_list(differing, theirs, ours)}. "
            "Choose another folder, or go back to the program, table, seed and software it was begun with"
        )


def _without_first_look(made_of: dict[str, Any]) -> dict[str, Any]:
    """What decides a sweep: whether it is a quick look follows from the rest."""
    said = made_of.get("public_record") or {}
    return made_of | {"public_record": {name: said[name] for name in said if name != FIRST_LOOK}}


def part_name(unit: Unit) -> str:
    """The file of a unit's figures, in the folder of its sweep."""
    return f"{PARTS}/{unit.name}.parquet"


def sealed(table: pa.Table) -> bytes:
    """A table as a Parquet file that carries its own hash: SHA-256 of the file with zeros in that place.

    Nothing in it depends on the clock, the machine or how the table came together.
    """
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, table.schema, compression="zstd", compression_level=3, version="2.6", data_page_version="1.0",
        store_schema=True,
    ) as writer:  # fmt: skip
        writer.write_table(table, row_group_size=1 << 20)
        writer.add_key_value_metadata({_SEAL: _NO_SEAL})
    content: bytes = sink.getvalue().to_pybytes()
    return _with_seal(content, hashlib.sha256(content).hexdigest())


def is_sealed(content: bytes) -> bool:
    """Whether a file is, to the last bit, what `sealed` made."""
    place = content.rfind(_BEFORE_SEAL)
    if place < 0:
        return False
    begin = place + len(_BEFORE_SEAL)
    digest = hashlib.sha256(_with_seal(content, _NO_SEAL)).hexdigest()
    return content[begin : begin + len(_NO_SEAL)] == digest.encode()


def _with_seal(content: bytes, seal: str) -> bytes:
    begin = content.rindex(_BEFORE_SEAL) + len(_BEFORE_SEAL)
    return content[:begin] + seal.encode() + content[begin + len(seal) :]


def read_run(folder: Path) -> dict[str, Any]:
    """What `run.json` of a sweep's folder says, for whoever reads its figures.

    Args:
        folder: Of a sweep, finished or not.

    Returns:
        The record, as `Sweep.record` made it.

    Raises:
        ValueError: The folder is no sweep's, or its record or its figures are damaged.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     read_run(Path(folder) / "sweep")
        Traceback (most recent call last):
        ...
        ValueError: ...sweep is no folder of a sweep (run.json cannot be read): check the name
    """
    record, summary = _record_of(folder), folder / SUMMARY
    if summary.is_file() and not is_sealed(summary.read_bytes()):
        raise ValueError(
            f"{summary} is damaged: it is not, to the last bit, what the sweep wrote. Run the sweep again in "
            "this folder: finished simulations are kept, and the file is written anew"
        )
    return record


def _record_of(folder: Path) -> dict[str, Any]:
    path = folder / RUN
    try:
        record: dict[str, Any] = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(
            f"{folder} is no folder of a sweep ({RUN} cannot be read): check the name"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}): run the sweep again in a new folder") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT or MARK not in record:
        raise ValueError(
            f"{path} is not of the format {FORMAT!r}: it was made by another version, or by hand"
        )
    lacking = [name for name, kind in _REQUIRED.items() if not isinstance(record.get(name), kind)]
    if "objective" not in lacking and set(record["objective"]) != {"metric", "best"}:
        lacking.append("objective")
    if lacking:
        raise ValueError(f"{path} is damaged (no {', '.join(lacking)}): run the sweep again in a new folder")
    return record


def _list(names: list[str], theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    differences = []
    for name in names:
        before, now = theirs.get(name), ours[name]
        if isinstance(now, dict) and isinstance(before, dict):
            inner = [
                f"{key} {before.get(key)} → {now.get(key)}"
                for key in dict.fromkeys([*now, *before]) if before.get(key) != now.get(key)
            ]  # fmt: skip
            differences.append(f"{name} ({', '.join(inner)})")
        elif isinstance(now, int):
            differences.append(f"{name} ({before} → {now})")
        else:
            differences.append(name)
    return ", ".join(differences)

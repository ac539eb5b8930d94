"""The folder of a sweep: what run it belongs to, parts as they come, results at the end.

Guarantees: every file appears whole, by a rename after it was synced, so a run that is killed leaves nothing
half-written under a name that counts. One run at a time works in a folder, and only one sweep ever does.
"""

import fcntl
import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from targetdp.table.sink import sync_folder
from targetdp.tradeoff.mark import FINGERPRINT, MARK, SOURCE, mark_of, metadata
from targetdp.tradeoff.sweep import Sweep, Unit

FORMAT = "targetdp tradeoff 1"
RUN, PARTS = "run.json", "parts"
RESULTS, SUMMARY, TIMING = "results.parquet", "summary.parquet", "timing.parquet"

_SAID = {
    FINGERPRINT: str, SOURCE: str, MARK: bool, "program": str, "kind": str, "objective": dict, "people": int,
    "features": list, "release": dict, "made_of": dict, "cells": list,
}  # fmt: skip
"""What a run's record must say, for whoever reads it."""


class Place:
    """A folder that belongs to one sweep, locked while a run works in it.

    Figures of confidential rows are for their owner's eyes: nobody else may look into the folder, even if
    it was there before, nor read a file that is copied out of it.
    """

    def __init__(self, folder: Path, sweep: Sweep) -> None:
        self.folder, self._sweep = folder, sweep
        self._metadata = metadata(sweep.study.source, sweep.fingerprint)
        self._private = sweep.study.for_the_data_holder_only
        self._lock: int | None = None

    def __enter__(self) -> Self:
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"out = {self.folder} is a file: give the name of a folder")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700 if self._private else 0o777)
        self._lock = os.open(self.folder, os.O_RDONLY)
        try:
            self._take(self._lock)
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            os.close(self._lock)

    def _take(self, lock: int) -> None:
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
        (self.folder / PARTS).mkdir(exist_ok=True, mode=0o700 if self._private else 0o777)
        if (self.folder / RUN).exists():
            drafts = [self.folder / f".{name}.new" for name in (RUN, RESULTS, SUMMARY, TIMING)]
            for draft in (*drafts, *(self.folder / PARTS).glob(".*.parquet.new")):
                draft.unlink(missing_ok=True)
        else:  # drafts in a folder that is not known to be ours may be somebody's own
            self._write(self.folder / RUN, (json.dumps(self.record(), indent=2) + "\n").encode())

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

    def record(self) -> dict[str, Any]:
        """What `run.json` says."""
        sweep, study = self._sweep, self._sweep.study
        return {
            "format": FORMAT,
            **mark_of(study.source),
            FINGERPRINT: sweep.fingerprint,
            **sweep.told,
            "release": dict(study.release),
            "made_of": sweep.made_of,
            "cells": [asdict(cell) for cell in sweep.cells],
        }

    def part(self, unit: Unit) -> pa.Table | None:
        """The finished part of a unit; None if it is not there, or not whole."""
        path = self.folder / PARTS / f"{unit.name}.parquet"
        if not path.exists():
            return None
        with suppress(pa.ArrowException, OSError):
            table = pq.read_table(path, memory_map=False)
            found = table.schema.metadata or {}
            if found.get(f"targetdp.{FINGERPRINT}".encode()) == self._sweep.fingerprint.encode():
                return table
        return None

    def keep_part(self, unit: Unit, table: pa.Table) -> None:
        """Write a finished unit."""
        self._write_table(self.folder / PARTS / f"{unit.name}.parquet", table)

    def keep(self, name: str, table: pa.Table) -> None:
        """Write one of the files at the end."""
        self._write_table(self.folder / name, table)

    def _write_table(self, path: Path, table: pa.Table) -> None:
        marked = table.replace_schema_metadata({**(table.schema.metadata or {}), **self._metadata})
        sink = pa.BufferOutputStream()
        # Nothing here depends on the clock, the machine or how the table came together.
        pq.write_table(
            marked.combine_chunks(), sink, compression="zstd", compression_level=3, row_group_size=1 << 20,
            version="2.6", data_page_version="1.0", store_schema=True,
        )  # fmt: skip
        self._write(path, sink.getvalue().to_pybytes())

    def _write(self, path: Path, content: bytes) -> None:
        draft = path.with_name(f".{path.name}.new")
        draft.unlink(missing_ok=True)  # one that was left by a killed run keeps its permissions
        mode = 0o600 if self._private else 0o666
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_folder(path.parent)

    def _must_be_ours(self) -> None:
        if not (self.folder / RUN).exists():
            if any(path.name != PARTS and not path.name.startswith(".") for path in self.folder.iterdir()):
                raise ValueError(
                    f"out = {self.folder} holds other files and no {RUN}: choose a new or an empty folder"
                )
            return
        there = read_run(self.folder)
        if there[FINGERPRINT] == self._sweep.fingerprint:
            return
        theirs, ours = there["made_of"], self._sweep.made_of
        differing = [name for name in ours if theirs.get(name) != ours[name]]
        raise ValueError(
            f"out = {self.folder} holds another sweep: it differs in {_list(differing, theirs, ours)}. "
            "Choose another folder, or go back to the program, table, seed and software it was begun with"
        )


def read_run(folder: Path) -> dict[str, Any]:
    """What `run.json` of a sweep's folder says."""
    path = folder / RUN
    try:
        record: dict[str, Any] = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(
            f"{folder} is no folder of a sweep ({RUN} cannot be read): check the name"
        ) from error
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}): run the sweep again in a new folder") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT or MARK not in record:
        raise ValueError(
            f"{path} is not of the format {FORMAT!r}: it was made by another version, or by hand"
        )
    lacking = [name for name, kind in _SAID.items() if not isinstance(record.get(name), kind)]
    if "objective" not in lacking and set(record["objective"]) != {"metric", "best"}:
        lacking.append("objective")
    if lacking:
        raise ValueError(f"{path} is damaged (no {', '.join(lacking)}): run the sweep again in a new folder")
    return record


def _list(names: list[str], theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    told = []
    for name in names:
        before, now = theirs.get(name), ours[name]
        if isinstance(now, dict) and isinstance(before, dict):
            inner = [
                f"{key} {before.get(key)} → {now.get(key)}"
                for key in dict.fromkeys([*now, *before]) if before.get(key) != now.get(key)
            ]  # fmt: skip
            told.append(f"{name} ({', '.join(inner)})")
        elif isinstance(now, int):
            told.append(f"{name} ({before} → {now})")
        else:
            told.append(name)
    return ", ".join(told)

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
from targetdp.tradeoff.mark import FINGERPRINT, MARK, mark_of, metadata
from targetdp.tradeoff.sweep import Sweep, Unit

FORMAT = "targetdp tradeoff 1"
RUN, PARTS = "run.json", "parts"
RESULTS, SUMMARY, TIMING = "results.parquet", "summary.parquet", "timing.parquet"


class Place:
    """A folder that belongs to one sweep, locked while a run works in it."""

    def __init__(self, folder: Path, sweep: Sweep) -> None:
        self.folder, self._sweep = folder, sweep
        self._metadata = metadata(sweep.study.source, sweep.fingerprint)
        self._lock: int | None = None

    def __enter__(self) -> Self:
        private = self._sweep.study.for_the_data_holder_only
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"out = {self.folder} is a file: give the name of a folder")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700 if private else 0o777)
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
        (self.folder / PARTS).mkdir(exist_ok=True)
        for draft in (*self.folder.glob(".*.new"), *(self.folder / PARTS).glob(".*.new")):
            draft.unlink()
        if not (self.folder / RUN).exists():
            self._write(self.folder / RUN, (json.dumps(self.record(), indent=2) + "\n").encode())

    def record(self) -> dict[str, Any]:
        """What `run.json` says."""
        sweep, study = self._sweep, self._sweep.study
        return {
            "format": FORMAT,
            **mark_of(study.source),
            FINGERPRINT: sweep.fingerprint,
            "program": study.name,
            "kind": study.program.kind,
            "objective": study.objective,
            "people": study.people,
            "features": list(study.features),
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
        with draft.open("wb") as file:
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
    return record


def _list(names: list[str], theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    told = []
    for name in names:
        before, now = theirs.get(name), ours[name]
        if isinstance(now, dict) and isinstance(before, dict):
            inner = [f"{key} {before.get(key)} → {now[key]}" for key in now if before.get(key) != now[key]]
            told.append(f"{name} ({', '.join(inner)})")
        elif isinstance(now, int):
            told.append(f"{name} ({before} → {now})")
        else:
            told.append(name)
    return ", ".join(told)

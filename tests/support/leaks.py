"""What tests of leaks share: tables that differ in one person, and what every release has of its own."""

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from support.release import CENTERS, FEATURES, SCALES, cli, people, snapshot, write_parquet
from targetdp.release import Desk, Request, certificate_path
from targetdp.release._staging import page_path
from targetdp.release._trust._keys import config_folder

OWN = ("time", "hash", "previous", "signature", "size")
"""Fields of certificates, entries and logs that differ between any two releases, of one table too."""


def tables(rows: int = 60, *, gap: bool = False) -> dict[str, pa.Table]:
    """One person's row, in the middle, is moved: by less than B, to where nobody is, and beyond the ball."""
    values = people(rows)
    for name, center in zip(FEATURES, CENTERS, strict=True):
        values[name][0] = center

    def with_first(calls: float | None) -> pa.Table:
        return pa.table(values | {"calls": pa.array([calls, *values["calls"][1:]], pa.float64())})

    return {
        "as it is": with_first(CENTERS[0]),
        "a neighbor": with_first(CENTERS[0] + 0.2 * SCALES[0]),
        "extreme": with_first(1e12),
        "denormal": with_first(5e-324),
    } | ({"a gap": with_first(None)} if gap else {})


class Twins:
    """Releases of several tables at one desk, each as if it were the next one there: same keys, same ledger.

    ``folder`` has in.parquet, request.toml and desk/ for whichever of them is being made.
    """

    def __init__(self, folder: Path, request: Request) -> None:
        self.folder = folder
        (folder / "request.toml").write_text(request.text(), encoding="utf-8")
        shutil.copytree(folder / "desk", folder / "as it was")

    def release(self, table: pa.Table, output: str = "out.parquet") -> "Told":
        """Release one of the tables; what was released of another one is taken back."""
        for place in (self.folder / "desk", self.folder / output, certificate_path(self.folder / output)):
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        page_path(self.folder / output).unlink(missing_ok=True)
        shutil.copytree(self.folder / "as it was", self.folder / "desk")
        # An older copy of a desk would be found by what its user has seen of it.
        shutil.rmtree(config_folder() / "heads", ignore_errors=True)
        source = write_parquet(self.folder / "in.parquet", table)
        os.utime(source, ns=(1, 1))  # when a table was written goes on record, and nothing else of its file
        ran = cli(
            "privatize", source, self.folder / output, "--request", self.folder / "request.toml",
            "--desk", self.folder / "desk", "--yes", "--quiet",
        )  # fmt: skip
        assert ran.code == 0, ran.err
        return Told(self.folder, output)


class Told:
    """What a release tells besides its table: to whoever gets it, and to whoever sees the desk."""

    def __init__(self, folder: Path, output: str) -> None:
        place = folder / output
        certificate = json.loads(certificate_path(place).read_text(encoding="utf-8"))
        self._own = {
            certificate["release"]: "RELEASE", certificate["time"]: "TIME",
            certificate["output"]["sha256"]: "SHA256", certificate["ledger"]["hash"]: "HASH",
        } | {file["sha256"]: "SHA256" for file in certificate["output"]["files"]}  # fmt: skip
        self.certificate = self._without_own(certificate)
        self.page = self._masked(page_path(place).read_text(encoding="utf-8"))
        desk = Desk.open(folder / "desk")
        with desk.ledger() as ledger:
            self.ledger = [
                self._without_own(asdict(entry) | {"body": json.loads(entry.body)})
                for entry in ledger.entries
            ]
        log = (desk.path / "log.jsonl").read_text(encoding="utf-8").splitlines()
        self.log = [self._without_own(json.loads(line)) for line in log]
        # Ledger and log, which have times, are compared by their entries.
        apart = ("ledger.db", "ledger.db.head", "log.jsonl")
        kept = snapshot(desk.path).items()
        self.files = {self._masked(name): content for name, content in kept if name not in apart}

    def pop_scales(self) -> list[Any]:
        """Take out the values of scales that the release has estimated and paid for."""
        values = self.certificate["scales"].pop("values")
        published = self.ledger[-1]["body"].pop("scales")
        # Of the page, the lines of their table.
        lines = self.page.splitlines()
        self.page = "\n".join(
            line for line in lines if not line.startswith(tuple(f"| {n} |" for n in values))
        )
        return [values, published]

    def _masked(self, text: str) -> str:
        for own, word in self._own.items():
            text = text.replace(own, word)
        return text

    def _without_own(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._without_own(part) for name, part in value.items() if name not in OWN}
        if isinstance(value, list):
            return [self._without_own(part) for part in value]
        return self._masked(value) if isinstance(value, str) else value


def must_be_alike(told: list[Told]) -> None:
    first, *others = told
    for other in others:
        for part in ("certificate", "page", "ledger", "log", "files"):
            assert getattr(other, part) == getattr(first, part), part


def numbers_of(table: pa.Table) -> set[str]:
    """How the numbers of a table could be written, to look for them in a text."""
    values = np.concatenate([np.asarray(column) for column in table.columns if column.type == pa.float64()])
    return {form for v in values.tolist() for form in (repr(v), f"{v:.6g}", f"{v:.3f}")}

"""What tests of people who agreed share: a desk that lets them be handed over, and a list of some of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.release import FEATURES, certificate_of, place_with, read_back, write_csv
from targetdp.release import AgreementRecord, Desk, HandedOver, SigningKey, agreement_path, hand_over

TO = "the survey of 2026, matched to their records"
AGREED: dict[str, Any] = {"to": TO, "columns": FEATURES, "at_most": 40}


def place_of_agreed(folder: Path, rows: int = 60, count: int = 20, **policy: Any) -> Path:
    """A folder with in.parquet, a desk, and agreed.csv with the first so many people of the table."""
    place_with(folder, rows, **({"agreed": AGREED} | policy))
    list_people(folder, count)
    return folder


def list_people(folder: Path, stop: int, start: int = 0, name: str = "agreed.csv") -> Path:
    """A list of people of the table, from one place in it to another."""
    ids = read_back(folder / "in.parquet")["name"].to_pylist()[start:stop]
    return write_csv(folder / name, pa.table({"name": ids}))


def handed_over(
    folder: Path, output: str = "agreed.parquet", *, people: str = "agreed.csv", force: bool = False,
    table: str = "in.parquet", column: str | None = None,
) -> HandedOver:  # fmt: skip
    return hand_over(
        folder / table, folder / people, folder / output, desk=folder / "desk", force=force, column=column
    )


def agreements(folder: Path) -> list[tuple[str, int]]:
    """Id and number of people of all agreements, of a ledger that is sound."""
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.verify() == []
        return [(row.agreement, row.rows) for row in ledger.history.agreements.values()]


def forged(
    folder: Path, change: Callable[[dict[str, Any]], None], key: SigningKey | None = None
) -> AgreementRecord:
    """The record beside agreed.parquet after somebody changed it, signed anew where she has a key."""
    place = agreement_path(folder / "agreed.parquet")
    plain = json.loads(place.read_text(encoding="utf-8"))
    change(plain)
    record = AgreementRecord.model_validate(plain)
    if key is not None:
        record = record.signed(key)
    place.write_text(record.text(), encoding="utf-8")
    return record


def without_promise(output: Path) -> dict[str, int]:
    """How many people of a release have no promise, by agreement, as its certificate says."""
    return {one.agreement: one.people for one in certificate_of(output).agreed}

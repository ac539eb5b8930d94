"""What tests of leaks share: tables that differ in one person, and what every release has of its own."""

import re
from typing import Any

import numpy as np
import pyarrow as pa

from support.release import SCALES, table_of

OWN = ("release", "time", "signature", "output", "ledger_id", "hash")
"""Fields of a certificate that differ between any two releases, of one table too."""


def tables(rows: int = 60) -> dict[str, pa.Table]:
    """One person's row is moved: by less than B, to where nobody is, and far beyond the ball."""
    first = table_of(rows)
    calls = np.asarray(first.column("calls"))

    def with_first(value: float) -> pa.Table:
        moved = calls.copy()
        moved[0] = value
        return first.set_column(1, "calls", pa.array(moved))

    return {
        "as it is": first,
        "a neighbor": with_first(calls[0] + 0.2 * SCALES[0]),
        "extreme": with_first(1e12),
        "denormal": with_first(5e-324),
    }


def without_own(value: Any) -> Any:
    """A certificate without what is its own; that of its desk is the desk's id."""
    if isinstance(value, dict):
        kept = {name: without_own(part) for name, part in value.items() if name not in OWN}
        if "policy_sha256" in kept:
            del kept["id"]
        return kept
    return [without_own(part) for part in value] if isinstance(value, list) else value


def masked(text: str) -> str:
    """Words with what every release has of its own taken out: names, hashes, times, sizes of files."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "RELEASE", text)
    text = re.sub(r"\b[0-9a-f]{4}(-[0-9a-f]{4}){3}\b", "FINGERPRINT", text)
    text = re.sub(r"\b[0-9a-f]{12,}\b|[A-Za-z0-9+/]{40,}=*", "HASH", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?[^\s|\"]*", "TIME", text)
    return re.sub(r"\b[0-9,.]+ (kB|MB|bytes)\b", "SIZE", text)

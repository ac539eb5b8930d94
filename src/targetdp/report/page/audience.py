"""Who may read a page: figures of confidential rows are for the data holder, unless it decides otherwise."""

import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path

from targetdp.programs.file import MARK as FOR_THE_HOLDER
from targetdp.tradeoff.mark import MARK
from targetdp.tradeoff.place import read_run

OVERRIDES = "overrides.jsonl"
"""In the folder of a sweep: every page of confidential rows that was made for others, with the reason."""


def check_audience(folder: Path, audience: str | None, override: str | None) -> None:
    """Refuse a page that its reader must not see, before any work is done."""
    marked = bool(read_run(folder)[MARK])
    if override is not None and not marked:
        raise ValueError("show-confidential was given, but these rows are not confidential: leave it out")
    if override is not None and not override.strip():
        raise ValueError("show-confidential = '' gives no reason: say who decided, and why")
    if override is not None and audience == "data-holder":
        raise ValueError("show-confidential is for a page that others see: leave it out for the data holder")
    if audience == "official" and marked and override is None:
        raise ValueError(
            f"for = official: {FOR_THE_HOLDER[0].lower()}{FOR_THE_HOLDER[1:]} Run the sweep on a public or "
            "older survey, an invented population or people who agreed; or, if the data holder decides to "
            "show them all the same, give the reason with --show-confidential"
        )


def record_override(folder: Path, reason: str, page: str) -> None:
    """Put on record that a page of confidential rows was made for others: when, why, and which."""
    line = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "reason": reason,
        "sha256": hashlib.sha256(page.encode()).hexdigest(),
    }
    handle = os.open(folder / OVERRIDES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())

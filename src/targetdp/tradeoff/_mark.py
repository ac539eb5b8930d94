"""The mark of figures that were made from confidential rows; whatever is made from them carries it on."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MARK, SOURCE, FINGERPRINT = "for_the_data_holder_only", "source", "fingerprint"


def mark_of(source: str) -> dict[str, Any]:
    """The mark, as plain data."""
    return {SOURCE: source, MARK: source == "confidential"}


def metadata(source: str, fingerprint: str) -> dict[str, str]:
    """What the schema of every Parquet file of a sweep carries."""
    return {
        f"targetdp.{SOURCE}": source,
        f"targetdp.{MARK}": "true" if source == "confidential" else "false",
        f"targetdp.{FINGERPRINT}": fingerprint,
    }


def fingerprint_of(made_of: Mapping[str, Any]) -> str:
    """The hash of all that decides a sweep's figures, where they come from included."""
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


def must_agree(run: Mapping[str, Any], found: Mapping[bytes, bytes], folder: Path) -> None:
    """Refuse figures if `run.json` and the file they are in tell another source, mark or sweep.

    Does not guarantee: anything against somebody who writes a whole folder anew.
    """
    source = run["made_of"].get(SOURCE)
    told = {SOURCE: run[SOURCE], MARK: run[MARK]}
    wanted = metadata(str(source), run[FINGERPRINT])
    differs = [
        name.partition(".")[2]
        for name, value in wanted.items() if found.get(name.encode()) != value.encode()
    ]  # fmt: skip
    if told != mark_of(str(source)) or fingerprint_of(run["made_of"]) != run[FINGERPRINT]:
        differs.append("what run.json itself says")
    if differs:
        raise ValueError(
            f"{folder}: run.json and the figures beside it do not agree ({', '.join(differs)}): it was "
            "changed by hand, or files of two sweeps were mixed; run the sweep again in a new folder"
        )

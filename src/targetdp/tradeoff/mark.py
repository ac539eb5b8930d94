"""The mark of figures that were made from confidential rows; whatever is made from them carries it on."""

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

"""What a check found."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that was checked. ``holds`` is None where it could not be."""

    what: str
    holds: bool | None
    detail: str

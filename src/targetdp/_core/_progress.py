"""How long work tells how far it is, without knowing who watches."""

from typing import Protocol


class Progress(Protocol):
    """Somebody who is told how far things are; called from one thread at a time."""

    def phase(self, name: str, rows: int | None) -> None:
        """A new phase begins; it has so many rows, if that is known."""

    def advance(self, rows: int) -> None:
        """So many more rows are done."""


class Silent:
    """Progress that nobody watches."""

    def phase(self, name: str, rows: int | None) -> None:
        """Say nothing."""

    def advance(self, rows: int) -> None:
        """Say nothing."""

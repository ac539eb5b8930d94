"""What a benchmark hands back: tables for people, bars that must be met, and figures for a file."""

from dataclasses import dataclass
from typing import Any, Literal

from rich.table import Table

Verdict = Literal["met", "missed", "not measured", "reported only"]


@dataclass(frozen=True)
class Effort:
    """How hard to try: ``rounds`` of ``seconds`` for each side; ``quick`` also takes smaller tables."""

    quick: bool
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Bar:
    """A ratio that must be reached. ``measured`` is None if the other side did not run.

    A bar that is not ``binding`` is reported only: it was set for a larger table than was measured.
    """

    name: str
    measured: float | None
    bar: float
    side: Literal["at least", "at most"]
    binding: bool = True

    @property
    def verdict(self) -> Verdict:
        """Judged before rounding."""
        if self.measured is None:
            return "not measured"
        if not self.binding:
            return "reported only"
        reached = self.measured >= self.bar if self.side == "at least" else self.measured <= self.bar
        return "met" if reached else "missed"


@dataclass(frozen=True)
class Section:
    """One benchmark's result."""

    tables: list[Table]
    bars: list[Bar]
    figures: dict[str, Any]


def new_table(title: str, first: str, *others: str, caption: str | None = None) -> Table:
    """A table whose first column holds names and whose others hold numbers."""
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="right")
    return table

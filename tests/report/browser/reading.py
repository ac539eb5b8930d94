"""What tests do with a page, and read from it."""

from decimal import Decimal
from typing import Any

from playwright.sync_api import Page

from targetdp.tradeoff import Cell

from .pages import Made

SET = """([id, value]) => {
  const field = document.getElementById(id);
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}"""
"""As `fill` does, without waiting for the field to come into view."""

OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
"""Nothing stays folded."""

STEPS = ("options", "protect", "afford", "bear", "check", "send", "annex")
"""The sections of a page."""


def text(page: Page, query: str) -> str:
    """What is seen of an element."""
    return page.locator(query).inner_text().replace("\u00a0", " ").replace("\u2060", "")


def unreadable(page: Page) -> str:
    """What steps say of numbers that they cannot read."""
    return " ".join(filter(None, page.locator("[data-unreadable]").all_inner_texts()))


def fitting(page: Page) -> list[str]:
    """Names of the settings that meet the limits."""
    found: list[str] = page.evaluate("targetdpPage.fitting()")
    return found


def chosen(page: Page) -> str | None:
    """The name of the setting that is chosen."""
    found: str | None = page.evaluate("targetdpPage.chosen()")
    return found


def numbers(made: Made) -> dict[str, int]:
    """By its name, the number of a setting on the page."""
    return {name: i for i, name in enumerate(made.cells)}


def take(page: Page, number: int) -> None:
    """Take a setting in the table of all, which may be folded."""
    page.locator(f'input[name=setting][value="{number}"]').dispatch_event("click")


def limit(page: Page, **limits: str) -> None:
    """Type limits into their fields."""
    for metric, typed in limits.items():
        page.evaluate(SET, [f"n-{metric}", typed])


def of_100(share: float) -> str:
    """A share as somebody types it, with all its digits."""
    return f"{Decimal(repr(share)) * 100:f}"


def read_of_100(typed: str) -> float:
    """The share that a page makes of what somebody typed."""
    return float(f"{float(typed.replace(',', '.'))!r}e-2")


def columns(page: Page) -> dict[str, list[str]]:
    """By its heading, what a column of the table of options says, row by row; only those that are shown."""
    found: list[list[str]] = page.evaluate("""() => {
      const rows = [...document.querySelectorAll("#options table.grid tr")];
      const seen = (at) => (at.checkVisibility() ? at.innerText.trim().replaceAll("\u2060", "") : null);
      return rows[0].cells.length ? [...rows[0].cells].slice(1).map((head, i) =>
        [head.querySelector("b").innerText, ...rows.map((row) => seen(row.cells[i + 1]))])
        .filter((column) => column[1] !== null) : [];
    }""")
    return {head.removesuffix(" ✓"): said for head, *said in found}


def released(cells: dict[str, Cell]) -> dict[str, Any]:
    """The settings that a request can ask for."""
    return {name: cell for name, cell in cells.items() if cell.why_not is None}

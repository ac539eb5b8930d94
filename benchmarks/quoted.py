"""Figures that other pages quote: copied from the page of benchmarks by `make bench`, never by hand.

Between `<!-- bench: TITLE -->` and `<!-- /bench -->` stands that table of the page; `side by side` stands for
the summary below. A test compares: what is stale fails.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.page import BARS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
SUMMARY = "side by side"

FASTER = {
    "Algorithm 1 to the letter, 4,201 × 10": "projection 4,201 × 10, literal / fast",
    "anonypy's Mondrian, 4,201 × 10": "Mondrian, anonypy / ours, 4,201 × 10",
    "Anonymeter's attribute inference, 20,788 × 15, half of the columns known": (
        "attribute inference 20,788 × 15, ⌈d/2⌉ known, Anonymeter / ours"
    ),
    "numpy's net attack, 20,788 × 15": ("Net attack, numpy / ours, 20,788 × 15, spherical Laplace, B = 0.25"),
    "scipy's cKDTree, net attack, 100,000 × 10": (
        "Net attack, cKDTree / ours, 100,000 × 10, spherical Laplace, B = 0.25"
    ),
    "the paper's whole grid with all of these, Nigeria": "whole paper grid, nigeria, naive / ours",
    "OpenDP's Gaussian noise, for each value": "Gaussian noise for each value, OpenDP / ours",
    "diffprivlib's Gaussian noise, for each value": "Gaussian noise for each value, diffprivlib / ours",
    "scikit-learn fold by fold, ridge, 4,201 × 10": "five folds of ridge, 4,201 × 10, scikit-learn / ours",
}
"""How many times as long others take for the same work: what, and the bar's name on the page."""

SLOWER = {
    "a plain pyarrow copy, 5,000,000 × 10: a certified release": (
        "release 5,000,000 × 10, sorted / plain copy"
    ),
    "a plain read and write, 5,000,000 × 10: certified scores": "score 5,000,000 × 10 / plain",
    "our own engine, 5,000,000 × 10: Spark, local[2]": (
        "release, Spark local[2] / local engine, 5,000,000 × 10"
    ),
}
"""How many times as long we take as something that does less."""

_BLOCK = re.compile(r"<!-- bench: (?P<title>.+?) -->\n.*?<!-- /bench -->", re.DOTALL)


def pages() -> Iterator[Path]:
    """Pages that may quote."""
    yield ROOT / "README.md"
    yield from sorted(path for path in (ROOT / "docs").rglob("*.md") if path != PAGE)


def refreshed(text: str, page: str) -> str:
    """A page with every quoted table as the page of benchmarks has it now."""
    known = _tables(page)

    def block(found: re.Match[str]) -> str:
        title = found["title"]
        if title != SUMMARY and title not in known:
            raise ValueError(f"bench: {title!r} is no table of {PAGE.name}: it has {', '.join(known)}")
        table = _summary(known[BARS]) if title == SUMMARY else known[title]
        return f"<!-- bench: {title} -->\n{table}\n<!-- /bench -->"

    return _BLOCK.sub(block, text)


def refresh(page: str) -> list[Path]:
    """Bring every page that quotes up to date; those that changed."""
    changed = []
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (new := refreshed(text, page)) != text:
            path.write_text(new, encoding="utf-8")
            changed.append(path)
    return changed


def _tables(page: str) -> dict[str, str]:
    """Every table of the page by its title, without caption."""
    found = {}
    for block in page.split("\n## ")[1:]:
        title, _, rest = block.partition("\n")
        found[title.strip()] = "\n".join(line for line in rest.splitlines() if line.startswith("|"))
    return found


def _summary(bars: str) -> str:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in bars.splitlines()[2:]]
    measured = {row[0]: row[1] for row in rows}
    lines = ["| beside | |", "| --- | ---: |"]
    lines += [f"| {what} | {measured.get(bar, '–')} times our time |" for what, bar in FASTER.items()]
    lines += [f"| {what} | {measured.get(bar, '–')} times its time |" for what, bar in SLOWER.items()]
    return "\n".join(lines)

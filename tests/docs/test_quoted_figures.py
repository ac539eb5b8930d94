"""Benchmark figures that docs quote are those of the last run: what is stale fails."""

import re
from pathlib import Path

import pytest

from benchmarks.quoted import FASTER, PAGE, SLOWER, pages, refreshed

QUOTING = [path for path in pages() if "<!-- bench: " in path.read_text(encoding="utf-8")]


def test_somebody_quotes() -> None:
    assert {"mechanisms.md", "scores.md"} <= {path.name for path in QUOTING}


@pytest.mark.parametrize("path", QUOTING, ids=lambda path: path.name)
def test_quoted_figures_are_those_of_the_last_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert refreshed(text, PAGE.read_text(encoding="utf-8")) == text, "make bench brings it up to date"


def test_every_figure_of_the_summary_was_measured() -> None:
    bars = PAGE.read_text(encoding="utf-8").split("\n## Bars\n")[1].split("\n## ")[0]
    for name in (*FASTER.values(), *SLOWER.values()):
        assert f"| {name} | " in bars, name


def test_a_stale_figure_is_found() -> None:
    text = (PAGE.parent / "mechanisms.md").read_text(encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    name = next(iter(FASTER.values()))
    stale = re.sub(rf"\| {re.escape(name)} \| [^|]+ \|", f"| {name} | 3.14 |", page)
    assert stale != page
    assert refreshed(text, stale) != text


KNOWN = {"Net attack, cKDTree / ours, 100,000 × 10, spherical Laplace, B = 0.05": 1.25}
"""Bars that the last run may have missed, and by what factor at most; whatever else is missed fails."""


def test_no_other_bar_of_the_last_run_was_missed() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.endswith("| missed |")]
    missed = {}
    for line in lines:
        name, measured, bar = (cell.strip() for cell in line.split("|")[1:4])
        by = float(bar.split(" ")[-1].replace(",", "")) / float(measured.replace(",", ""))
        missed[name] = by if bar.startswith("at least") else 1 / by
    assert set(missed) <= set(KNOWN)
    assert all(by <= KNOWN[name] for name, by in missed.items())
    assert "| not measured |" not in PAGE.read_text(encoding="utf-8")

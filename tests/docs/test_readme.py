"""What the documents show is what the code does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.kinds import COLUMNS
from examples.tour.comparison import ADULTS, cells
from support.demo import compared
from support.docs import DOCS, blocks

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


KINDS = ["table", "B, ε", *COLUMNS]
"""What the README's own table compares; `python -m examples.kinds` measures and writes it."""


def table_between(path: Path, mark: str) -> list[list[str]]:
    """Cells of the one table between a pair of marks, its heading first."""
    text = path.read_text(encoding="utf-8")
    lines = text[text.index(f"<!-- {mark} -->") : text.index(f"<!-- /{mark} -->")].splitlines()[1:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


def test_the_readme_fits_on_two_screens_and_leads_with_what_is_released() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    assert len(text.split()) <= 1_100
    assert table_between(ROOT / "README.md", "kinds")[0] == KINDS
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings == [
        "Two commands",
        "The same promise, three kinds of release",
        "Three users",
        "What is measured",
        "Read on",
    ]


def test_the_table_of_mechanisms_is_the_demos() -> None:
    """Labels and noise to the digit; what simulations average may differ by a little between processors."""
    _, *shown = table_between(DOCS / "mechanisms.md", "demo")
    lines = compared()
    assert len(shown) == len(lines)
    for row, line in zip(shown, lines, strict=True):
        *labels, accuracy, missed = row
        assert labels == cells(line)[:-2]
        assert float(accuracy) == pytest.approx(line.accuracy, abs=0.005)
        assert float(missed.replace(",", "")) == pytest.approx(line.missed * ADULTS, abs=0.0025 * ADULTS)
    assert f"{ADULTS / 1e6:.2f} million adults" in (DOCS / "mechanisms.md").read_text(encoding="utf-8")
    (printed,) = (line for line in lines if line.name == "private projection, as printed")
    assert printed.true_epsilon is not None
    for path in (ROOT / "README.md", DOCS / "mechanisms.md"):
        said = f"spends ε = {printed.true_epsilon:.2f} where it states 3.9999"
        assert said in path.read_text(encoding="utf-8")


def test_the_python_of_mechanisms_runs() -> None:
    (block,) = blocks("mechanisms.md", "python")
    command = [sys.executable, "-c", block.text]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("4.595")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_named_files_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (document.parent / target).exists(), target
    for path in re.findall(r"`((?:tests|docs|src|benchmarks)/[\w/.]+)", text):
        assert (ROOT / path.rstrip("/.")).exists(), path


@pytest.mark.parametrize("target", ["demo", "test", "lint", "bench", "docs"])
def test_makefile_has_the_targets_that_documents_name(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)

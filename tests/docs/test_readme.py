"""What the documents show is what the code does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.tour.comparison import ADULTS, cells
from support.demo import compared

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_readmes_table_is_the_demos() -> None:
    """Labels and noise to the digit; what simulations average may differ by a little between processors."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text[text.index("<!-- demo -->") : text.index("<!-- /demo -->")].splitlines()[3:]
    lines = compared()
    assert len(shown) == len(lines)
    for row, line in zip(shown, lines, strict=True):
        *labels, accuracy, missed = (cell.strip() for cell in row.strip("|").split("|"))
        assert labels == cells(line)[:-2]
        assert float(accuracy) == pytest.approx(line.accuracy, abs=0.005)
        assert float(missed.replace(",", "")) == pytest.approx(line.missed * ADULTS, abs=0.0025 * ADULTS)
    assert f"{ADULTS / 1e6:.2f} million adults" in text


def test_the_readmes_python_runs() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
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

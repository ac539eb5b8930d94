"""docs/paper_map.md is complete, and everything it points to exists."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from support.outside import PAPER, needs, outside

ROOT = Path(__file__).parents[2]
SOURCE = outside(PAPER, "paper.tex")

ITEMS = (
    [f"Definition {i}" for i in (1, 2)]
    + [f"Lemma {i}" for i in range(1, 8)]
    + [f"Proposition {i}" for i in (1, 2)]
    + [f"Theorem {i}" for i in (1, 2)]
    + ["Example 1"]
    + [f"Step {i}" for i in range(1, 7)]
    + ["Table S1"]
)
"""All numbered items of the paper (its two definitions appear twice, in Methods and in the Supplement)."""


def rows() -> list[list[str]]:
    text = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("|") and "`" in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_item_of_the_paper_is_listed_once() -> None:
    listed = [row[0] for row in rows()]
    assert [item for item in ITEMS if listed.count(item) != 1] == []


@needs(SOURCE)
def test_the_list_of_items_is_the_papers() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    count = {
        name: len(re.findall(rf"\\begin\{{{name}\}}", text)) for name in ("defn", "lem", "prop", "thm", "ex")
    }
    assert count == {"defn": 4, "lem": 7, "prop": 2, "thm": 2, "ex": 1}
    algorithm = text[text.index(r"\KwOut") : text.index(r"\end{algorithm}")]
    assert algorithm.count(r"\\") == 5  # six steps, five line ends
    assert text.count(r"\begin{table}") == 1


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_function_and_test_exist(row: list[str]) -> None:
    _, _, function, test = row
    parts = function.strip("`").split(".")
    for cut in range(len(parts), 0, -1):
        try:
            target = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            target = getattr(target, name)
        break
    path, _, name = test.strip("`").partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert names
    assert not name or name in names

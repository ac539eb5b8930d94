"""docs/tutorial.md runs from the first block to the last, and prints what it shows."""

import re
from typing import Any

import pytest

import targetdp
from support.docs import DOCS, blocks, differences, printed_by

TUTORIAL = "tutorial.md"
ONE_PERSON = 4_950_000 / 1_500
"""What one of the tutorial's people counts for."""


def test_every_block_prints_what_is_shown() -> None:
    found, names = blocks(TUTORIAL, "python"), dict[str, Any](__name__="tutorial")
    assert len(found) > 10
    for place, block in enumerate(found):
        printed = printed_by(block, names)
        assert bool(printed) == (block.shown is not None), f"block {place}: {printed}"
        assert differences(block.shown or "", printed, people=ONE_PERSON) == [], f"block {place}"


def test_it_uses_the_public_names() -> None:
    """What is imported from the package itself is what the package offers."""
    text = (DOCS / TUTORIAL).read_text(encoding="utf-8")
    lists = re.findall(r"^from targetdp import (?:\(([^)]+)\)|(.+))$", text, flags=re.MULTILINE)
    names = {name.strip() for several in lists for part in several for name in part.split(",")} - {""}
    assert len(names) > 15
    assert names <= set(dir(targetdp))


def test_no_printed_block_stands_alone() -> None:
    """A block of output belongs to the block of Python above it; a gap between them would hide it."""
    text = (DOCS / TUTORIAL).read_text(encoding="utf-8")
    assert text.count("```output") == sum(block.shown is not None for block in blocks(TUTORIAL, "python"))


@pytest.mark.parametrize("printed", ["ε = 1.62, 3 people", "ε = 1.60, 4 people", "ε = 1.60, 3 persons", ""])
def test_a_wrong_number_or_word_would_be_noticed(printed: str) -> None:
    assert differences("ε = 1.60, 3 people", "ε = 1.60,  3 people") == []
    assert differences("ε = 1.60, 3 people", printed)

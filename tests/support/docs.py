"""What tests of documents share: their blocks, and whether what is shown is what was printed."""

import contextlib
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_RULES = re.compile(r"[ ─━┏┓┗┛┡┩┳┻╇┃│└┘┴┌┐├┤┬┼╈╋]+")


@dataclass(frozen=True)
class Block:
    """A fenced block of a document: its language, its text, and the printed block right behind it."""

    language: str
    text: str
    shown: str | None


def blocks(name: str, language: str) -> list[Block]:
    """All blocks of one language in a document, in order."""
    text = (DOCS / name).read_text(encoding="utf-8")
    pattern = r"^```(\w+)\n(.*?)^```\n(?:\n```output\n(.*?)^```\n)?"
    found = re.findall(pattern, text, flags=re.DOTALL | re.MULTILINE)
    return [Block(kind, code, shown or None) for kind, code, shown in found if kind == language]


def printed_by(block: Block, names: dict[str, Any]) -> str:
    """Run a block of Python in a namespace that blocks of one document share."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block.text, "document", "exec"), names)  # noqa: S102
    return out.getvalue()


def differences(shown: str, printed: str, *, people: float = 0.0) -> list[str]:
    """Where two outputs differ: in words at all, or in a number by more than a hundredth of it.

    Simulated figures may differ a little between processors: small numbers by 0.006, and counts of people (a
    thousand or more) by ``people``. Spaces and the lines of tables do not count.
    """
    ours, theirs = _lines(shown), _lines(printed)
    if len(ours) != len(theirs):
        return [f"{len(ours)} lines are shown, {len(theirs)} were printed"]
    return [
        f"shown: {one} | printed: {other}"
        for one, other in zip(ours, theirs, strict=True)
        if not _alike(one, other, people)
    ]


def _lines(text: str) -> list[str]:
    return [line for line in (_RULES.sub(" ", line).strip() for line in text.splitlines()) if line]


def _alike(shown: str, printed: str, people: float) -> bool:
    if _NUMBER.sub("#", shown) != _NUMBER.sub("#", printed):
        return False
    pairs = zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=True)
    return all(_close(_value(one), _value(other), people) for one, other in pairs)


def _close(one: float, other: float, people: float) -> bool:
    least = people if min(one, other) >= 1000 else 0.006
    return math.isclose(one, other, rel_tol=0.01, abs_tol=least)


def _value(number: str) -> float:
    return float(number.replace(",", ""))

"""A page's data made small: what settings share is written once. `templates/unfold.js` is the inverse.

A thousand settings must still fit into an e-mail. Their sentences and release files differ in numbers only,
so that each is kept as its pattern and the numbers that go into it; what depends on B alone is kept once for
each B; and of curves, which share most of their distances, the heights are kept.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

Data = dict[str, Any]

_NUMBER = re.compile(r"([0-9][0-9.,]*)")
_TEXTS = ("cost", "derived", "promise_told", "toml")
_BY_B = ("crowd", "profiles")


def packed(data: Mapping[str, Any]) -> Data:
    """The data as a page carries them."""
    choosable = [cell for cell in data["cells"] if cell["choosable"]]
    patterns: dict[tuple[str, ...], int] = {}
    places: dict[float, int] = {}
    by_B: list[Data] = []
    for cell in choosable:
        if cell["B"] not in places:
            places[cell["B"]] = len(by_B)
            by_B.append({name: cell[name] for name in _BY_B})
    everywhere = [{at[0] for at in cell["curve"]} for cell in choosable]
    shared = sorted(set.intersection(*everywhere)) if everywhere else []
    cells = []
    for cell in data["cells"]:
        small = cell | {"label": _text(cell["label"], patterns)}
        if cell["choosable"]:
            small |= {name: _text(cell[name], patterns) for name in _TEXTS}
            small |= {
                "exchange": [_text(line, patterns) for line in cell["exchange"]],
                "curve": _curve(cell["curve"], shared),
                "by_B": places[cell["B"]],
            }
        cells.append({name: value for name, value in small.items() if name not in _BY_B})
    return {**data, "cells": cells, "patterns": list(patterns), "by_B": by_B, "distances": shared}


def _text(text: str, patterns: dict[tuple[str, ...], int]) -> tuple[int, str]:
    """The number of the text's pattern (all that is no number), and its numbers."""
    pieces = _NUMBER.split(text)
    return patterns.setdefault(tuple(pieces[::2]), len(patterns)), " ".join(pieces[1::2])


def _curve(curve: Sequence[Sequence[float | None]], shared: Sequence[float]) -> Data:
    """At shared distances the best guess, and ε where it is known; all of the others."""
    known = {at[0]: at for at in curve}
    return {
        "guess": [known[r][2] for r in shared],
        "epsilon": {i: known[r][1] for i, r in enumerate(shared) if known[r][1] is not None},
        "own": [at for at in curve if at[0] not in set(shared)],
    }

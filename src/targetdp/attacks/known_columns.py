"""Which columns an adversary knows, and which are then the secrets.

One draw for a number h of known columns: the columns are put in random order, as on a circle, and each
window of d-h neighbors on it is missing once, one window after the other, until every column has been
missing. So ⌈d/(d-h)⌉ searches make every column a secret, where one search for each would need d.
If the last window reaches around to columns that were secrets already, they do not count again.
The order is uniform, and what a column's own place says about the others is symmetric in them, so each
secret's known columns are a uniform h-subset of the other columns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from targetdp import check


@dataclass(frozen=True)
class Window:
    """The ``known`` columns, in ascending order, and the ``secrets`` that they are used to guess."""

    known: tuple[int, ...]
    secrets: tuple[int, ...]


def known_counts(values: Sequence[int] | None, columns: int) -> tuple[int, ...]:
    """The numbers of known columns: what the caller asks for, or the paper's 1, ⌈d/2⌉ and d-1."""
    if columns < 2:
        raise ValueError(
            f"X has {columns} column: attribute inference needs at least 2, one that the adversary knows "
            "and one that is guessed"
        )
    if values is None:
        return tuple(sorted({1, -(-columns // 2), columns - 1}))
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise TypeError(f"known = {values!r} is not a list: give numbers of known columns, such as [1, 5]")
    given: list[Any] = list(values)
    counts = [check.integer(f"known[{i}]", h, at_least=1, at_most=columns - 1) for i, h in enumerate(given)]
    if not counts or len(set(counts)) < len(counts):
        raise ValueError(f"known = {given!r} is not a list of distinct numbers: give each of them once")
    return tuple(counts)


def one_draw(columns: int, h: int, rng: np.random.Generator) -> Iterator[Window]:
    """The windows of one draw: each column is a secret in exactly one of them."""
    missing = columns - h
    circle = rng.permutation(columns)
    for begin in range(0, columns, missing):
        window = circle[np.arange(begin, begin + missing) % columns]
        known = np.setdiff1d(circle, window)
        yield Window(tuple(known.tolist()), tuple(window[: columns - begin].tolist()))


def searches(columns: int, h: int, draws: int, rng: np.random.Generator) -> list[Window]:
    """The windows of several draws, those with the same known columns joined: one search serves them all.

    A column that is the secret for the same known columns in several draws is listed as often. With all
    columns known but one there is nothing to draw: one draw stands for all.
    """
    secrets: dict[tuple[int, ...], list[int]] = {}
    for _ in range(1 if h == columns - 1 else draws):
        for window in one_draw(columns, h, rng):
            secrets.setdefault(window.known, []).extend(window.secrets)
    return [Window(known, tuple(found)) for known, found in secrets.items()]

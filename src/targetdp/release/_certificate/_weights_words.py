"""What weights tell, in words: how much of a score is which column."""

import numpy as np

from targetdp._core import Floats

SINGLED_OUT = 0.9
"""Share from which on a score is hardly more than one column under another name."""
SHOWN = 8
"""Columns named for a score."""
_RANK = 1e-9
"""Directions shorter than this share of the longest are no directions of their own."""


def singled_out(features: tuple[str, ...], weights: Floats) -> dict[str, float]:
    """The columns that scores nearly give by themselves, and how nearly (1: exactly).

    For one score it is the column's share of the squared weights. For several it is how much of the column
    lies in the space that the scores span: what one could work out of all of them, were there no noise.
    """
    scaled = weights / np.abs(weights).max(axis=1, keepdims=True)
    _, lengths, directions = np.linalg.svd(scaled, full_matrices=False)
    spanned = directions[lengths > _RANK * lengths[0]]
    shares = np.minimum(1.0, (spanned**2).sum(axis=0))
    return {name: float(share) for name, share in zip(features, shares, strict=True) if share > SINGLED_OUT}


def in_words(features: tuple[str, ...], weights: Floats) -> str:
    """One score: its columns by their share of the squared weights, the largest first."""
    with np.errstate(all="ignore"):  # a certificate may hold anything
        scaled = weights / np.abs(weights).max()
        shares = scaled**2 / np.sum(scaled**2)
    order = np.argsort(-shares, kind="stable")
    used = int(np.count_nonzero(weights))
    named = [j for j in order if weights[j] != 0][:SHOWN]
    parts = [
        f"{_percent(shares[j])} {features[j]} ({'raises' if weights[j] > 0 else 'lowers'} it)" for j in named
    ]
    rest = used - len(named)
    if rest:
        left = float(np.sum(shares[order[len(named) :]]))
        parts.append(f"{_percent(left)} {rest:,} other column{'s' if rest > 1 else ''}")
    if unused := len(features) - used:
        parts.append(f"nothing of {unused:,} column{'s' if unused > 1 else ''}")
    return ", ".join(parts)


def _percent(share: float) -> str:
    if share < 0.01:
        return "under 1%"
    return "over 99%" if 0.99 < share < 1 else f"{share:.0%}"

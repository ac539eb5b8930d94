"""What the scores of a weights file would tell, for the data holder, who decides whether that is meant."""

import numpy as np

from targetdp._core import Floats
from targetdp.release._settings import Settings


class SingledOutError(ValueError):
    """Weights nearly give a column by itself, and the data holder has not said that this is meant."""

    def __init__(self, columns: dict[str, float], settings: Settings) -> None:
        self.columns = columns
        names = ", ".join(f"{name!r} ({share:.0%})" for name, share in columns.items())
        super().__init__(
            f"the weights single out {names}: {weights_in_words(settings)}. Whoever gets the scores learns "
            "nearly that column of everybody, with noise; if that is meant, say so (--yes, or accept_weights)"
        )


def must_be_meant(settings: Settings) -> None:
    """Weights that single out a column need the data holder's word."""
    if settings.asked is None or settings.accept_weights:
        return
    columns = singled_out(settings.features, settings.asked.in_order_of(settings.features))
    if columns:
        raise SingledOutError(columns, settings)


def weights_in_words(settings: Settings) -> str:
    """What each score is made of."""
    if settings.asked is None:
        return ""
    matrix = settings.asked.in_order_of(settings.features)
    return "; ".join(
        f"{name}: {in_words(settings.features, row)}"
        for name, row in zip(settings.asked.scores, matrix, strict=True)
    )


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
    told = np.minimum(1.0, (spanned**2).sum(axis=0))
    return {name: float(share) for name, share in zip(features, told, strict=True) if share > SINGLED_OUT}


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

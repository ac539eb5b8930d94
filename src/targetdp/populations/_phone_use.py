"""What phone use looks like: counts with long tails and zeros, shares, entropies, amounts in steps.

Each function turns a latent (about standard normal) into values as coarse as such records are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats


@dataclass(frozen=True)
class Latent:
    """What moves one feature; whatever the first two leave of a variance of 1 is the feature's own.

    Args:
        standing: The weight of a person's standing.
        habit: The weight of a person's habit of using the phone at all.
        women: By how much women's use is shifted.
    """

    standing: float
    habit: float
    women: float = 0.0


def latents(
    weights: Mapping[str, Latent],
    standing: Floats,
    habit: Floats,
    women: NDArray[np.bool_],
    own: Sequence[Floats],
) -> dict[str, Floats]:
    """The latent of each feature, for each person.

    Args:
        weights: What moves each feature.
        standing: Each person's standing.
        habit: Each person's habit.
        women: Who is a woman.
        own: What is each feature's own; it is overwritten.

    Returns:
        The latents by feature.
    """
    by_feature = dict(zip(weights, own, strict=True))
    for name, latent in by_feature.items():
        weight = weights[name]
        np.multiply(latent, np.sqrt(1 - weight.standing**2 - weight.habit**2), out=latent)
        for part, share_of_it in ((standing, weight.standing), (habit, weight.habit), (women, weight.women)):
            np.add(latent, share_of_it * part, out=latent)
    return by_feature


def mixed(weight: float, one: Floats, other: Floats) -> Floats:
    """A standard normal number that has this correlation with the first of two independent ones."""
    return weight * one + float(np.sqrt(1 - weight**2)) * other


def ordered(latent: Floats, shares: Mapping[str, float]) -> NDArray[np.uint8]:
    """Sort people into categories: the lowest latents have the first, and so on.

    Args:
        latent: A standard normal number for each person.
        shares: The categories in order, each with its share of people.

    Returns:
        The place of each person's category.
    """
    from scipy.special import ndtri  # noqa: PLC0415 (slow to import)

    borders = ndtri(np.cumsum(list(shares.values()))[:-1])
    return np.searchsorted(borders, latent).astype(np.uint8)


def count(latent: Floats, middle: float, spread: float, most: int | None = None) -> NDArray[np.int32]:
    """Whole numbers with a long tail; ``middle`` is their median before the fraction is dropped."""
    value = _long_tail(latent, middle, spread)
    if most is not None:
        np.minimum(value, most, out=value)
    return value.astype(np.int32)


def amount(latent: Floats, middle: float, spread: float, step: int) -> Floats:
    """Money in whole steps, with a long tail."""
    value = _long_tail(latent, middle / step, spread)
    np.rint(value, out=value)
    value *= step
    return value


def seconds(latent: Floats, middle: float, spread: float) -> Floats:
    """Durations to a tenth, with a long tail."""
    return _rounded(_long_tail(latent, middle, spread), 10)


def share(latent: Floats, middle: float | Floats, spread: float) -> Floats:
    """Shares to a thousandth, around the logit ``middle``; where that is far out, many are 0 or 1."""
    return _rounded(_logistic(latent, middle, spread), 1_000)


def days(latent: Floats, middle: float, spread: float) -> NDArray[np.int32]:
    """Days of a month of 30, around the logit ``middle``."""
    return np.rint(30 * _logistic(latent, middle, spread)).astype(np.int32)


def entropy(latent: Floats, middle: float, spread: float) -> Floats:
    """Bits to a thousandth; 0 for everybody who has one contact or none."""
    value = spread * latent
    value += middle
    return _rounded(np.maximum(value, 0, out=value), 1_000)


def _long_tail(latent: Floats, middle: float, spread: float) -> Floats:
    value = spread * latent
    np.exp(value, out=value)
    value *= middle
    return value


def _logistic(latent: Floats, middle: float | Floats, spread: float) -> Floats:
    value = -spread * latent
    value -= middle
    np.exp(value, out=value)
    value += 1
    return np.reciprocal(value, out=value)


def _rounded(value: Floats, parts: int) -> Floats:
    """Round to a whole number of parts of one, in place."""
    value *= parts
    np.rint(value, out=value)
    value /= parts
    return value

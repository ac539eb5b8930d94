"""Invented phone users, as in the paper's two tables: subscribers of Togo, applicants for a loan in Nigeria.

Nobody here is real. `docs/populations.md` says how closely each follows the paper's Table S1. How features
are distributed, and how they relate to each other, to sex and to region, is invented, with nothing to match.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats
from targetdp.populations._population import Columns, Population, border, declare

# What phone use looks like: counts with long tails and zeros, shares, entropies, amounts in steps.
# Each function turns a latent (about standard normal) into values as coarse as such records are.


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


# A feature: what moves its latent, and the values that the latent becomes.


@dataclass(frozen=True)
class Feature:
    """One feature of phone use; whatever the first two leave of a variance of 1 is the feature's own.

    Args:
        standing: The weight of a person's standing.
        habit: The weight of a person's habit of using the phone at all.
        women: By how much women's use is shifted.
        values: Turns latents into values; None where a population works them out itself.
    """

    standing: float
    habit: float
    women: float
    values: Callable[[Floats], NDArray[Any]] | None


def latents(
    features: Mapping[str, Feature],
    standing: Floats,
    habit: Floats,
    women: NDArray[np.bool_],
    own: Sequence[Floats],
) -> dict[str, Floats]:
    """The latent of each feature, for each person.

    Args:
        features: The features by name.
        standing: Each person's standing.
        habit: Each person's habit.
        women: Who is a woman.
        own: What is each feature's own; it is overwritten.

    Returns:
        The latents by feature.
    """
    by_feature = dict(zip(features, own, strict=True))
    for name, latent in by_feature.items():
        weight = features[name]
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


def _values(features: Mapping[str, Feature], latents_of: Mapping[str, Floats]) -> dict[str, NDArray[Any]]:
    return {
        name: feature.values(latents_of[name])
        for name, feature in features.items()
        if feature.values is not None
    }


# Togo, for an aid program: 10 features, and consumption. Matched to Table S1: 4,201 people, consumption in
# [0.005, 1] with its mean, deviation and skew. Tuned: a ridge regression finds the poorest 29% with an
# accuracy near 0.69, about what the paper implies.

SUBSCRIBERS = 4_201
LOWEST, HIGHEST = 0.005, 1.0

LOG_CONSUMPTION = (-2.91813, 0.69810, 0.02919, 0.00474)
"""Coefficients of 1, z, z² and z³ for a standing z.

They solve four equations for a batch: mean 0.073, deviation 0.068, skew 4.207, and a consumption of 0.0055
where the lowest stratum ends, so that the lowest of all is no outlier.
"""

REGIONS = {"Savanes": 0.13, "Kara": 0.12, "Centrale": 0.10, "Plateaux": 0.21, "Maritime": 0.20, "Lomé": 0.24}
"""From the poorest to the richest, with their shares of subscribers."""

_CALLS_IN = {
    "share_calls_in_lome": np.array([-5.0, -4.5, -4.0, -3.2, -1.5, 1.8]),
    "share_calls_in_savanes": np.array([2.0, -2.5, -4.0, -5.5, -6.0, -4.5]),
}
"""Logits of the usual share of calls made there, for people of each region."""

_REGION_FOLLOWS_STANDING = 0.22
_WOMEN, _WOMEN_BY_STANDING = -0.05, -0.15
"""Women are those whose own number lies below a line that falls with the standing."""

_OF_SUBSCRIBERS = {
    "night_calls": Feature(0.17, 0.60, -0.25, partial(count, middle=14, spread=0.9)),
    "weekday_text_entropy": Feature(0.22, 0.40, -0.15, partial(entropy, middle=1.5, spread=1.0)),
    "contacts": Feature(0.25, 0.65, -0.30, partial(count, middle=42, spread=0.65)),
    "top_up_total": Feature(0.31, 0.55, -0.20, partial(amount, middle=2_400, spread=0.8, step=50)),
    "international_calls": Feature(0.20, 0.30, 0.0, partial(count, middle=0.9, spread=1.2)),
    "days_active": Feature(0.13, 0.65, -0.15, partial(days, middle=1.6, spread=1.2)),
    "incoming_share": Feature(-0.17, -0.35, 0.20, partial(share, middle=0.3, spread=0.6)),
    "mean_call_seconds": Feature(0.07, 0.15, 0.15, partial(seconds, middle=70, spread=0.5)),
    "share_calls_in_lome": Feature(0.08, 0.05, 0.0, None),
    "share_calls_in_savanes": Feature(-0.05, 0.05, 0.0, None),
}


def _subscribers(standing: Floats, normals: Floats) -> Columns:
    of_region, of_sex, habit, *own = normals
    region = ordered(mixed(_REGION_FOLLOWS_STANDING, standing, of_region), REGIONS)
    women = of_sex < _WOMEN + _WOMEN_BY_STANDING * standing
    of = latents(_OF_SUBSCRIBERS, standing, habit, women, own)
    return {
        **_values(_OF_SUBSCRIBERS, of),
        **{name: share(of[name], logits[region], 1.4) for name, logits in _CALLS_IN.items()},
        "consumption": consumption(standing),
        "sex": women.astype(np.uint8),
        "region": region,
    }


def consumption(standing: Floats) -> Floats:
    """Consumption as a share of the largest; a batch's lowest and highest are exactly at the ends."""
    value: Floats = np.polynomial.Polynomial(LOG_CONSUMPTION)(standing)
    np.exp(value, out=value)
    np.clip(value, LOWEST, HIGHEST, out=value)
    end = border(1, SUBSCRIBERS)
    value[standing < end] = LOWEST
    value[standing > -end] = HIGHEST
    return value


declare(
    Population(
        name="togo",
        size=SUBSCRIBERS,
        stream=1,
        features=tuple(_OF_SUBSCRIBERS),
        target="consumption",
        groups={"sex": ("male", "female"), "region": tuple(REGIONS)},
        money=(),
        normals_each=3 + len(_OF_SUBSCRIBERS),
        make=_subscribers,
    )
)


# Nigeria, for lending: 15 features, and who is a low risk. Matched to Table S1: 20,788 people, 63.3% at low
# risk (which settles deviation and skew). Loans are around $10, as the paper says. Tuned: a logistic
# regression is right about 0.79 of the time, and revenue is such that lending to everyone, about what classic
# differential privacy leaves, turns today's profit into a loss some three and a half times as large, as the
# paper reports.

APPLICANTS = 20_788
LOW_RISKS = 13_155
"""Of 20,788: the mean, the deviation and the skew of Table S1, each to its three digits."""

ZONES = {
    "North East": 0.08, "North West": 0.14, "North Central": 0.16,
    "South East": 0.14, "South South": 0.18, "South West": 0.30,
}  # fmt: skip
"""From the highest risks to the lowest, with their shares of applicants."""

_ZONE_FOLLOWS_STANDING = 0.20
_WOMEN_APPLY, _WOMEN_APPLY_BY_STANDING = -0.60, 0.10
"""Women are those whose own number lies below a line that rises with the standing."""

_ONE_MONTH = -0.13
"""Loans whose own number is below it run for one month (45% of them), the others for two."""

SMALLEST_LOAN, LARGEST_LOAN = 2.0, 100.0
FEE, FEE_PER_MONTH = 0.10, 0.10
INTEREST_PER_MONTH = 0.01
"""Parts of the loan: what the lender earns if it is repaid, and what the money would earn elsewhere."""

_OF_APPLICANTS = {
    "calls_made": Feature(0.30, 0.65, -0.15, partial(count, middle=90, spread=0.8)),
    "incoming_share": Feature(-0.27, -0.35, 0.20, partial(share, middle=0.2, spread=0.6)),
    "night_call_share": Feature(-0.32, 0.10, -0.15, partial(share, middle=-1.8, spread=0.8)),
    "international_calls": Feature(0.37, 0.20, 0.05, partial(count, middle=0.9, spread=1.3)),
    "mean_call_seconds": Feature(0.15, 0.05, 0.20, partial(seconds, middle=65, spread=0.5)),
    "texts_sent": Feature(0.25, 0.45, 0.0, partial(count, middle=12, spread=1.1)),
    "contacts": Feature(0.45, 0.60, -0.20, partial(count, middle=60, spread=0.65)),
    "contact_entropy": Feature(0.42, 0.45, -0.15, partial(entropy, middle=3.2, spread=0.9)),
    "top_up_total": Feature(0.57, 0.45, -0.10, partial(amount, middle=2_000, spread=0.8, step=50)),
    "top_up_count": Feature(0.27, 0.50, 0.0, partial(count, middle=9, spread=0.7)),
    "days_without_balance": Feature(-0.60, -0.15, 0.05, partial(days, middle=-1.2, spread=1.0)),
    "data_megabytes": Feature(0.37, 0.30, -0.10, partial(count, middle=300, spread=1.4)),
    "days_active": Feature(0.35, 0.55, -0.05, partial(days, middle=1.8, spread=1.1)),
    "sim_age_months": Feature(0.50, 0.10, -0.10, partial(count, middle=22, spread=0.8, most=180)),
    "places_visited": Feature(0.30, 0.45, -0.35, partial(count, middle=9, spread=0.7)),
}


def _applicants(standing: Floats, normals: Floats) -> Columns:
    of_zone, of_sex, habit, of_loan, of_term, *own = normals
    women = of_sex < _WOMEN_APPLY + _WOMEN_APPLY_BY_STANDING * standing
    of = latents(_OF_APPLICANTS, standing, habit, women, own)
    loan = amount(0.25 * standing + 0.3 * of["top_up_total"] + 0.9 * of_loan, 18, 0.5, step=1) / 2
    np.clip(loan, SMALLEST_LOAN, LARGEST_LOAN, out=loan)
    months = 1.0 + (of_term > _ONE_MONTH)
    return {
        **_values(_OF_APPLICANTS, of),
        "low_risk": (standing > border(APPLICANTS - LOW_RISKS, APPLICANTS)).astype(np.int32),
        "loan_amount": loan,
        "revenue": np.round((FEE + FEE_PER_MONTH * months) * loan, 2),
        "interest": np.round(INTEREST_PER_MONTH * months * loan, 3),
        "sex": women.astype(np.uint8),
        "region": ordered(mixed(_ZONE_FOLLOWS_STANDING, standing, of_zone), ZONES),
    }


declare(
    Population(
        name="nigeria",
        size=APPLICANTS,
        stream=2,
        features=tuple(_OF_APPLICANTS),
        target="low_risk",
        groups={"sex": ("male", "female"), "region": tuple(ZONES)},
        money=("loan_amount", "revenue", "interest"),
        normals_each=5 + len(_OF_APPLICANTS),
        make=_applicants,
    )
)

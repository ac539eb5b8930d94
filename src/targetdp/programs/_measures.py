"""Who comes first by a score, how well it puts people in order, and how much good a transfer does."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, check, kernel
from targetdp.programs._people import People, set_fields

_SAME_BITS = 40
"""Scores that agree to 2⁻⁴⁰ of the farthest one's distance from the middle are one score: the order in which
a product is added up moves the last bits of a prediction, also between people with the same row."""

_LEAST_NEAR = 5
"""People on either side of a cut who are near it: so many, or √n."""

Truths = NDArray[np.bool_]
"""True or false for each person."""


def settled(scores: Floats) -> Floats:
    """Scores without the noise of rounding, so that equal people are tied."""
    low, high = float(scores.min()), float(scores.max())
    # Where all are nearly equal, what differs may be rounding of the level itself.
    size = max(high / 2 - low / 2, abs(high / 2 + low / 2) / 64)
    grain = math.ldexp(1.0, math.frexp(size)[1] - _SAME_BITS)
    if size < 1e-290 or not math.isfinite(size):
        return scores
    return np.asarray(np.round(scores / grain) * grain)


@dataclass(frozen=True, eq=False)
class Selection:
    """Who was chosen, how many were tied for the last places, and those on either side of the cut."""

    who: Truths
    ties: int
    near: Integers


def lowest(
    scores: Floats, order: Integers, quota: float, people: People, rng: np.random.Generator
) -> Selection:
    """The share ``quota`` of people with the lowest scores; ``order`` is from the lowest to the highest.

    Exactly round(quota·n) people; where people have weights, as many as come nearest to the quota's weight.
    Of those tied at the cut, who is in is drawn at random: 0 are tied if all of them, or none, fit.
    """
    ranked = scores[order]
    level = ranked[_at_cut(order, quota, people)]
    begin, end = int(np.searchsorted(ranked, level, "left")), int(np.searchsorted(ranked, level, "right"))
    if end - begin > 1 and (people.weighted or _seats(order, quota, people) < end):
        # How a sort leaves equal scores differs between processors: start from the table's order.
        drawn = rng.permutation(np.sort(order[begin:end]))
        order = np.concatenate([order[:begin], drawn, order[end:]])
    # With weights it matters who of the tied was drawn.
    seats = _seats(order, quota, people)
    ties = end - begin if begin < seats < end else 0
    reach = max(_LEAST_NEAR, math.isqrt(len(order)))
    return Selection(_first(order, seats), ties, order[max(0, seats - reach) : seats + reach])


def highest(chances: Floats, places: int, rng: np.random.Generator) -> Truths:
    """Exactly so many people with the highest chances; of those who are tied at the cut, some at random."""
    check.integer("places", places, at_least=0, at_most=len(chances))
    return _first(np.lexsort((rng.permutation(len(chances)), -chances)), places)


def _first(order: Integers, places: int) -> Truths:
    """Who is among the first so many of an order."""
    chosen = np.zeros(len(order), dtype=np.bool_)
    chosen[order[:places]] = True
    return chosen


def at_or_below(values: Floats, quota: float, people: People) -> Truths:
    """Those whose value is at or below the quota's: all who are tied there, for truth is not drawn."""
    order = np.argsort(values, kind="stable")
    seats = _seats(order, quota, people)
    if seats == 0:
        return np.zeros(len(values), dtype=np.bool_)
    return np.asarray(values <= values[order[seats - 1]])


def _seats(order: Integers, quota: float, people: People) -> int:
    if not people.weighted:
        return round(quota * len(order))
    reached = np.cumsum(people.weights[order])
    wanted = quota * reached[-1]
    at = int(np.searchsorted(reached, wanted))
    before = reached[at - 1] if at else 0.0
    return at + int(at < len(order) and reached[at] - wanted <= wanted - before)


def _at_cut(order: Integers, quota: float, people: People) -> int:
    """Where in the order the quota is reached: among people who are tied, it does not matter at whom."""
    if not people.weighted:
        return max(0, round(quota * len(order)) - 1)
    reached = np.cumsum(people.weights[order])
    return min(int(np.searchsorted(reached, quota * reached[-1])), len(order) - 1)


def places(values: Floats, people: People) -> Floats:
    """People's ranks among everybody and in each group column's groups, centered; ties share the middle."""
    groups = people.groups
    places_of = np.empty(groups.codes.shape)
    for codes, ranks in zip(groups.codes, places_of, strict=True):
        for group in np.unique(codes):
            inside = np.flatnonzero(codes == group)
            _, level = np.unique(values[inside], return_inverse=True)
            weight = np.bincount(level, weights=people.weights[inside])
            ranks[inside] = (np.cumsum(weight) - weight / 2 - weight.sum() / 2)[level]
    return places_of


def rank_agreement(
    scores: Floats, order: Integers, truth: Truths, ranks: Floats, people: People
) -> tuple[Floats, Floats]:
    """AUC and Spearman's correlation, of everybody and of each group; NaN where undefined.

    AUC is the chance that someone of whom ``truth`` holds has a higher score than someone else, an equal
    score counting half. The correlation is that of the scores' ranks with ``ranks`` (from `places`).
    """
    groups, totals = people.groups, people.totals
    sums = np.zeros((groups.count, 5))
    _walk(order, scores, truth, people.weights, groups.codes, ranks, totals, sums)
    area, cross, square, spread, ours = sums.T
    # Weights add up with rounding, so whether there is anybody on a side is counted in people.
    counted = groups.sums(truth.astype(np.float64))
    pairs = np.where((counted > 0) & (counted < people.counts), ours * (totals - ours), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(area / pairs), np.asarray(cross / np.sqrt(square * spread))


@kernel
def _walk(
    order: Integers, scores: Floats, truth: Truths, weights: Floats, codes: Integers, ranks: Floats,
    totals: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Add up what both measures need for all groups, in one walk up the scores.

    ``sums`` of a group: area, cross product of ranks, squares of either, weight of those who are true.
    ``state`` of a group: below (others), below (all), then of those at the level reached: others, ours, all,
    their ranks' sum.
    """
    columns, groups = codes.shape[0], len(totals)
    state = np.zeros((groups, 6))
    level = np.full(groups, np.nan)
    for t in range(len(order) + 1):
        i = order[min(t, len(order) - 1)]
        for c in range(columns if t < len(order) else groups):
            g = codes[c, i] if t < len(order) else c
            if t == len(order) or scores[i] != level[g]:
                here = state[g]
                sums[g, 0] += here[3] * (here[0] + here[2] / 2)
                rank = here[1] + here[4] / 2 - totals[g] / 2
                sums[g, 1] += rank * here[5]
                sums[g, 2] += here[4] * rank * rank
                here[0] += here[2]
                here[1] += here[4]
                here[2:] = 0.0
                level[g] = scores[i]
            if t < len(order):
                w = weights[i]
                state[g, 3 if truth[i] else 2] += w
                state[g, 4] += w
                state[g, 5] += w * ranks[c, i]
                sums[g, 3] += w * ranks[c, i] * ranks[c, i]
                sums[g, 4] += w if truth[i] else 0.0


# How much good a transfer does to whom: utility with constant relative risk aversion.


@dataclass(frozen=True)
class Welfare:
    """How much good a transfer does: constant relative risk aversion (CRRA).

    Someone who consumes c has utility u(c) = c^(1−ρ)/(1−ρ), or ln c for ρ = 1.

    Args:
        transfer: What everyone who is eligible gets, in the units of consumption; above 0.
        aversion: ρ, from 0 to 20. It says how fast an additional unit loses its value to richer people: at
            ρ = 3, common in studies of targeting, it is worth 8 times less to someone with twice the
            consumption; at ρ = 0 it is worth the same to all.

    Raises:
        ValueError: ``transfer`` or ``aversion`` is outside its range.

    Example:
        >>> Welfare(transfer=1.0, aversion=0.0).gains(np.array([1.0, 5.0]))
        array([1., 1.])
        >>> Welfare(transfer=1.0, aversion=1.0).gains(np.array([1.0, 5.0])).round(2)
        array([0.69, 0.18])
    """

    transfer: float
    aversion: float = 3.0

    def __post_init__(self) -> None:
        transfer = check.number("transfer", self.transfer, above=0, remedy="in the units of consumption")
        aversion = check.number("aversion", self.aversion, at_least=0, at_most=20)
        set_fields(self, transfer=transfer, aversion=aversion)

    def gains(self, consumption: Floats) -> Floats:
        """u(c + transfer) − u(c) of each person."""
        if not (consumption > 0).all():
            raise ValueError(
                f"consumption has {int((consumption <= 0).sum()):,} values that are not above 0: CRRA "
                "utility needs positive consumption; leave welfare out, or correct them"
            )
        power = 1 - self.aversion
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond all floats is refused below
            ratio = self.transfer / consumption
            far = math.log(self.transfer) - np.log(consumption)  # ln(1 + ratio), where ratio is no float
            grown = np.where(np.isinf(ratio), far, np.log1p(ratio))
            # In units of the poorest person's: c^(1−ρ) alone may be larger than any float.
            size = np.exp(power * (np.log(consumption) - math.log(consumption.min())))
            gains = grown if power == 0 else size * np.expm1(power * grown) / power
            countable = np.isfinite(gains.max() * len(gains) ** 2)  # weighted sums stay finite, too
        if not countable:
            raise ValueError(
                f"transfer = {self.transfer!r} is too large for aversion = {self.aversion!r}: with such "
                "consumption the gain in utility is larger than any number here; give what one person gets, "
                "in the units of consumption"
            )
        return np.asarray(gains)

"""How well a statistic tells members from outsiders: area under the curve, and true positives at few alarms.

Intervals take both groups as samples of people. They are tested to cover on separated, mixed, tied and
alike groups.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, ndtri

from targetdp.attacks.intervals import highest_share, lowest_share
from targetdp.attacks.protection import Interval
from targetdp.typing import Floats

ALARMS = 10
"""Outsiders above the threshold: with fewer, the rate that they stand for would be too uncertain."""


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval."""

    value: float
    interval: Interval


def area_under_curve(members: Floats, outsiders: Floats, doubt: float) -> Estimate:
    """The chance that a member's statistic is above an outsider's (ties count half).

    The interval is the wider, at either end, of two: DeLong, DeLong and Clarke-Pearson's (1988) on the logit
    scale, which holds for groups of any shape but collapses where they are almost separated; and
    Newcombe's (2006, method 5), whose variance depends on the hypothesis, which holds there.
    """
    m, n = len(members), len(outsiders)
    above, below = _share_below(members, outsiders), 1 - _share_below(outsiders, members)
    area = float(above.mean())
    variance = float(above.var(ddof=1)) / m + float(below.var(ddof=1)) / n
    z = float(-ndtri(doubt / 2))
    ends = [_hypothesis(area, m, n, z)]
    if 0 < area < 1:
        reach = z * math.sqrt(variance) / (area * (1 - area))
        center = math.log(area / (1 - area))
        ends.append((_expit(center - reach), _expit(center + reach)))
    return Estimate(area, (min(low for low, _ in ends), max(high for _, high in ends)))


def _share_below(values: Floats, others: Floats) -> Floats:
    """For each value the share of others below it, ties by half."""
    ordered = np.sort(others)
    places = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(places / (2 * len(others)))


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _hypothesis(area: float, m: int, n: int, z: float) -> Interval:
    """The areas from which the one found is no farther than z of their own deviations."""
    pairs, more = m * n, (m + n) / 2 - 1

    def gap(theta: float) -> float:
        spread = theta * (1 - theta) * (1 + more * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / pairs
        return abs(theta - area) - z * math.sqrt(max(0.0, spread))

    inside = min(max(area, 1e-12), 1 - 1e-12)  # at 0 and 1 themselves nothing varies
    low = float(brentq(gap, 0.0, inside)) if gap(0.0) > 0 else 0.0
    high = float(brentq(gap, inside, 1.0)) if gap(1.0) > 0 else 1.0
    return low, high


def true_positives(members: Floats, outsiders: Floats, doubt: float) -> Estimate:
    """The share of members above the threshold that a share of 10/|H| of outsiders is above.

    The threshold is the outsiders' tenth value from above (and for 10/|H| of its weight the eleventh: the
    chance of another outsider to be above the k-th of m is k/(m + 1), so that the mean rate is 10/m exactly).
    Chosen so it neither flatters nor harms: if both groups are alike, the mean of the share is that rate.
    The interval knows that the threshold is uncertain too: half of the doubt goes to the rank at which the
    true quantile lies, half to the count of members above it. It is exact, and a little wide.
    """
    m = len(outsiders)
    rate = false_alarms(m)
    share = ALARMS / m
    value = (1 - share) * _above(members, outsiders, ALARMS) + share * _above(members, outsiders, ALARMS + 1)
    fewest, most = _quantile_ranks(m, rate, doubt / 2)
    low = lowest_share(len(members) * _above(members, outsiders, fewest), len(members), doubt / 4)
    high = highest_share(len(members) * _above(members, outsiders, most), len(members), doubt / 4)
    return Estimate(value, (float(low), float(high)))


def false_alarms(outsiders: int) -> float:
    """The smallest rate of false alarms that so many outsiders can resolve."""
    return ALARMS / outsiders


def _above(members: Floats, outsiders: Floats, rank: int) -> float:
    """The share of members above the outsiders' ``rank``-th value from above, ties in random order.

    Of members tied with e outsiders each is above the r-th of these with a chance of r/(e + 1).
    """
    if rank < 1:
        return 0.0
    if rank > len(outsiders):
        return 1.0
    threshold = np.sort(outsiders)[-rank]
    first = rank - int((outsiders > threshold).sum())
    tied = int((outsiders == threshold).sum())
    equal = float((members == threshold).mean())
    return float((members > threshold).mean()) + equal * first / (tied + 1)


def _quantile_ranks(m: int, rate: float, doubt: float) -> tuple[int, int]:
    """Ranks between whose values the threshold with this true rate lies, but for a doubt.

    How many of m outsiders are above it is binomial: it lies below the k-th value if at least k are.
    """
    ranks = np.arange(0, m + 1)
    at_most = bdtr(ranks, m, rate)  # P(count ≤ k)
    fewest = int(np.searchsorted(at_most, doubt / 2, side="right"))
    most = int(np.searchsorted(at_most, 1 - doubt / 2, side="left")) + 1
    return fewest, most

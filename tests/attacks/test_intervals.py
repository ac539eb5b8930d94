"""Exact intervals: the textbook's, between whole counts monotone, and covering as often as they say."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from targetdp._core import Floats
from targetdp.attacks import share_interval
from targetdp.attacks._protection import Interval, highest_share, lowest_share, ratio_interval

TOTALS = (1, 2, 7, 50, 500, 20_788)


# The textbook


@pytest.mark.parametrize("total", TOTALS)
@pytest.mark.parametrize("doubt", [0.3, 0.05, 1e-3, 1e-9])
def test_share_interval_is_clopper_and_pearsons(total: int, doubt: float) -> None:
    for count in sorted({0, 1, total // 3, total // 2, total - 1, total}):
        exact = stats.binomtest(count, total).proportion_ci(1 - doubt, method="exact")
        found = share_interval(count, total, doubt)
        assert found == pytest.approx((exact.low, exact.high), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("total", TOTALS)
def test_one_sided_ends_have_the_doubt_that_is_asked_for(total: int) -> None:
    """At the lowest share, so many hits or more have a chance of exactly the doubt; and mirrored."""
    for count in sorted({1, total // 2, total} - {0}):
        low = float(lowest_share(count, total, 0.01))
        assert stats.binom.sf(count - 1, total, low) == pytest.approx(0.01, rel=1e-6)
        assert highest_share(total - count, total, 0.01) == pytest.approx(1 - low, rel=1e-12)


def test_nobody_and_everybody() -> None:
    for total in TOTALS:
        assert share_interval(0, total, 0.05)[0] == 0.0
        assert share_interval(total, total, 0.05)[1] == 1.0
        # Three in n, the rule of three, for a one-sided 95%.
        assert float(highest_share(0, total, 0.05)) == pytest.approx(1 - 0.05 ** (1 / total), rel=1e-9)


def test_many_counts_at_once() -> None:
    counts = np.arange(11)
    assert lowest_share(counts, 10, 0.05) == pytest.approx([float(lowest_share(c, 10, 0.05)) for c in counts])
    assert lowest_share(counts, 10, 0.05).shape == (11,)


# Fractions


@pytest.mark.parametrize("total", [1, 5, 60])
def test_fractional_counts_lie_between_their_neighbors(total: int) -> None:
    counts = np.linspace(0, total, 40 * total + 1)
    for ends in (lowest_share(counts, total, 0.02), highest_share(counts, total, 0.02)):
        assert (np.diff(ends) >= 0).all()
        assert ((ends >= 0) & (ends <= 1)).all()
    assert (lowest_share(counts, total, 0.02) <= counts / total).all()
    assert (highest_share(counts, total, 0.02) >= counts / total).all()


def test_the_smallest_fractions_are_numbers() -> None:
    for count in (5e-324, 1e-300, 1e-9):
        low, high = share_interval(count, 100, 0.05)
        assert 0 <= low < 1e-9
        assert high == pytest.approx(share_interval(0, 100, 0.05)[1], rel=1e-6)


def missed_below(lows: Floats, chances: Floats, truth: float) -> float:
    """The chance that the lower end is above the truth."""
    return float(chances[lows > truth].sum())


@pytest.mark.parametrize("total", [1, 4, 30, 200])
def test_fractional_counts_cover(total: int) -> None:
    """Each person's part has two values a < b, as a mean of several tries may: worse than any smoother one.

    The chance to miss is summed exactly. A lower end for doubt 3α instead of α fails the same check.
    """
    doubt, hits = 0.02, np.arange(total + 1)
    worst, worst_of_narrow = 0.0, 0.0
    for a, b in itertools.combinations([0.0, 0.05, 0.3, 0.5, 0.75, 0.97, 1.0], 2):
        counts = total * a + (b - a) * hits
        lows, narrow = lowest_share(counts, total, doubt), lowest_share(counts, total, 3 * doubt)
        for chance in np.concatenate([np.geomspace(1e-3, 0.5, 25), 1 - np.geomspace(1e-3, 0.5, 25)]):
            truth, chances = a + (b - a) * chance, stats.binom.pmf(hits, total, chance)
            worst = max(worst, missed_below(lows, chances, truth))
            worst_of_narrow = max(worst_of_narrow, missed_below(narrow, chances, truth))
    assert worst <= doubt
    assert worst_of_narrow > doubt


# Coverage


def wald(count: float, total: int, doubt: float) -> Interval:
    """The textbook's interval for large numbers: too narrow for small ones."""
    share = count / total
    reach = stats.norm.isf(doubt / 2) * math.sqrt(share * (1 - share) / total)
    return share - reach, share + reach


def narrower(count: float, total: int, doubt: float) -> Interval:
    return share_interval(count, total, 2 * doubt)


def misses(
    interval: Callable[[float, int, float], Interval], share: float, total: int, doubt: float, tries: int
) -> int:
    rng = np.random.default_rng(3)
    ends = [interval(count, total, doubt) for count in range(total + 1)]
    return sum(not ends[c][0] <= share <= ends[c][1] for c in rng.binomial(total, share, size=tries))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.97])
def test_share_intervals_cover_in_simulations(share: float) -> None:
    tries, doubt = 20_000, 0.1
    limit = stats.binom.isf(1e-6, tries, doubt)
    assert misses(share_interval, share, 60, doubt, tries) <= limit
    if share in {0.02, 0.97}:
        assert misses(wald, share, 60, doubt, tries) > limit
    if share == 0.5:
        assert misses(narrower, share, 60, doubt, tries) > limit


def ratio_misses(p: float, n: int, base: float, base_n: int, ends: Callable[[int, int], Interval]) -> float:
    """The chance that an interval for p/base misses it, summed over all pairs of counts."""
    hits, base_hits = np.arange(n + 1), np.arange(base_n + 1)
    chances = np.outer(stats.binom.pmf(hits, n, p), stats.binom.pmf(base_hits, base_n, base))
    missed = 0.0
    for i, j in itertools.product(hits, base_hits):
        if chances[i, j] > 1e-9:
            low, high = ends(int(i), int(j))
            missed += float(chances[i, j]) * (not low <= p / base <= high)
    return missed


@pytest.mark.parametrize("base_n", [1, 2, 5, 25])
@pytest.mark.parametrize(("p", "base"), [(0.5, 0.5), (0.2, 0.9), (0.9, 0.2), (0.95, 0.99)])
def test_ratio_intervals_cover_with_a_small_holdout(p: float, base: float, base_n: int) -> None:
    n, doubt = 40, 0.1
    assert ratio_misses(p, n, base, base_n, lambda i, j: ratio_interval(i, n, j, base_n, doubt)) <= doubt


def test_ratio_intervals_that_forget_the_holdouts_doubt_do_not_cover() -> None:
    """Dividing by the holdout's share as if it were known fails the same check."""
    n, base_n, doubt = 40, 25, 0.1

    def forgetful(i: int, j: int) -> Interval:
        low, high = share_interval(i, n, doubt)
        share = max(j, 0.5) / base_n
        return low / share, high / share

    assert ratio_misses(0.5, n, 0.5, base_n, forgetful) > doubt


def test_ratio_intervals_by_hand_and_at_the_ends() -> None:
    low, high = share_interval(30, 40, 0.05)
    base_low, base_high = share_interval(20, 25, 0.05)
    assert ratio_interval(30, 40, 20, 25, 0.1) == (low / base_high, high / base_low)
    assert low / base_high < (30 / 40) / (20 / 25) < high / base_low
    assert ratio_interval(30, 40, 0, 25, 0.1)[1] == math.inf
    assert ratio_interval(0, 40, 20, 25, 0.1)[0] == 0.0
    assert ratio_interval(0, 40, 0, 25, 0.1) == (0.0, math.inf)

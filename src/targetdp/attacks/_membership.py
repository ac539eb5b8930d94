"""Membership: whether a person was in the table at all.

Targeted differential privacy promises nothing here: it hides which of the rows within B a person has, not
that there is one. So a score near 0 breaks no promise; it says what the promise leaves open.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, ndtri

from targetdp._core import Floats, Progress, Silent, check
from targetdp.attacks._declaration import Answer, Case, attack, share_up, strongest_of
from targetdp.attacks._match._known_noise import Noise, check_in_unit_ball, density_of
from targetdp.attacks._match._pairs import check_squares, log_sums, over_pairs, shared_note, units_of
from targetdp.attacks._protection import (
    CONFIDENCE,
    Interval,
    Protection,
    Setting,
    highest_share,
    lowest_share,
    worst,
)
from targetdp.mechanisms import NoiseDensity

# How well a statistic tells members from outsiders: area under the curve, and true positives at few alarms.
#
# Intervals take both groups as samples of people. They are tested to cover on separated, mixed, tied and
# alike groups.

ALARMS = 10
"""Outsiders above the threshold: with fewer, the rate that they stand for would be too uncertain."""


@dataclass(frozen=True)
class IntervalEstimate:
    """A figure and its interval."""

    value: float
    interval: Interval


def area_under_curve(members: Floats, outsiders: Floats, error_rate: float) -> IntervalEstimate:
    """The chance that a member's statistic is above an outsider's (ties count half).

    The interval is the wider, at either end, of two: DeLong, DeLong and Clarke-Pearson's (1988) on the logit
    scale, which holds for groups of any shape but collapses where they are almost separated; and
    Newcombe's (2006, method 5), whose variance depends on the hypothesis, which holds there.
    """
    m, n = len(members), len(outsiders)
    above, below = _share_below(members, outsiders), 1 - _share_below(outsiders, members)
    area = float(above.mean())
    variance = float(above.var(ddof=1)) / m + float(below.var(ddof=1)) / n
    z = float(-ndtri(error_rate / 2))
    ends = [_interval_by_hypotheses(area, m, n, z)]
    if 0 < area < 1:
        reach = z * math.sqrt(variance) / (area * (1 - area))
        center = math.log(area / (1 - area))
        ends.append((_expit(center - reach), _expit(center + reach)))
    return IntervalEstimate(area, (min(low for low, _ in ends), max(high for _, high in ends)))


def _share_below(values: Floats, compared: Floats) -> Floats:
    """For each value the share of those compared that are below it, ties by half."""
    ordered = np.sort(compared)
    places = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(places / (2 * len(compared)))


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _interval_by_hypotheses(area: float, m: int, n: int, z: float) -> Interval:
    """The areas from which the one found is no farther than z of their own deviations."""
    pairs, more = m * n, (m + n) / 2 - 1

    def gap(theta: float) -> float:
        spread = theta * (1 - theta) * (1 + more * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / pairs
        return abs(theta - area) - z * math.sqrt(max(0.0, spread))

    inside = min(max(area, 1e-12), 1 - 1e-12)  # at 0 and 1 themselves nothing varies
    low = float(brentq(gap, 0.0, inside)) if gap(0.0) > 0 else 0.0
    high = float(brentq(gap, inside, 1.0)) if gap(1.0) > 0 else 1.0
    return low, high


def true_positives(members: Floats, outsiders: Floats, error_rate: float) -> IntervalEstimate:
    """The share of members above the threshold that a share of 10/|H| of outsiders is above.

    The threshold is the outsiders' tenth value from above (and for 10/|H| of its weight the eleventh: the
    chance of another outsider to be above the k-th of m is k/(m + 1), so that the mean rate is 10/m exactly).
    Chosen so it neither flatters nor harms: if both groups are alike, the mean of the share is that rate.
    The interval knows that the threshold is uncertain too: half of the error rate goes to the rank at which
    the true quantile lies, half to the count of members above it. It is exact, and a little wide.
    """
    rate = false_alarms(len(outsiders))
    value = (1 - rate) * _above(members, outsiders, ALARMS) + rate * _above(members, outsiders, ALARMS + 1)
    fewest, most = _quantile_ranks(len(outsiders), rate, error_rate / 2)
    low = lowest_share(len(members) * _above(members, outsiders, fewest), len(members), error_rate / 4)
    high = highest_share(len(members) * _above(members, outsiders, most), len(members), error_rate / 4)
    return IntervalEstimate(value, (float(low), float(high)))


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


def _quantile_ranks(m: int, rate: float, error_rate: float) -> tuple[int, int]:
    """Ranks between whose values the threshold with this true rate lies, but for an error rate.

    How many of m outsiders are above it is binomial: it lies below the k-th value if at least k are.
    """
    ranks = np.arange(0, m + 1)
    at_most = bdtr(ranks, m, rate)  # P(count ≤ k)
    fewest = int(np.searchsorted(at_most, error_rate / 2, side="right"))
    most = int(np.searchsorted(at_most, 1 - error_rate / 2, side="left")) + 1
    return fewest, most


NEAREST = "distance to the nearest released row"
LIKELIHOOD = "likelihood under the release"
EXPLAINED = "released rows that the person explains"

FEWEST_OUTSIDERS = 20
_RESOLVES = 100
"""Outsiders from which on the rate of false alarms is a tenth or less."""

NO_PROMISE = "Targeted differential privacy promises nothing about membership: a low score breaks no promise."


def _headline(p: Protection) -> str:
    by = strongest_of(p, "ways")
    if p.score >= 1:
        return f"Whether someone is in the table could be told no better than by guessing ({by})."
    if p.score <= 0:
        return f"Whether someone is in the table could be told with certainty ({by})."
    way = share_up(1 - p.score)
    return (
        f"Whether someone is in the table could be told {way} of the way from guessing to certainty ({by})."
    )


def _on_tables(case: Case) -> Protection:
    t = case.tables
    outside = case.require(t.holdout, "Not run: it needs people who are not in the release (--holdout).")
    return membership(t.original, t.released, outside, t.law, **case.options)


@attack(
    place=5,
    answers=Answer(
        criteria=(),
        adversary="Has the released table, and the exact rows of all candidates.",
        reaches="Whether it can be told that the person is in the table at all. The opinion does not "
        "name this question, and the guarantee makes no promise about it.",
        does_not_reach="Anything about the values of people who are known to be in the table.",
    ),
    headline=_headline,
    on_tables=_on_tables,
)
def membership(
    X: Any,
    X_priv: Any,
    holdout: Any,
    noise: Noise | None = None,
    *,
    most_pairs: int = 1_000_000_000,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Protection:
    """How little a release tells members (rows of X) from outsiders of the same population (the holdout).

    Three statistics of a person compete: the distance to the nearest released row; with known noise the
    likelihood, log Σⱼ p(zⱼ | x); and how many released rows the person explains, Σⱼ p(zⱼ | x) / Σᵢ p(zⱼ | xᵢ)
    over all candidates i, members and outsiders alike. The last one's adversary holds a list of candidates
    with everybody on it, and does not know who of them were in the table.

    Each gives two settings: 1 − (2·AUC − 1), from the area under the curve; and 1 − (TPR − FPR)/(1 − FPR),
    from the share of members above the threshold that FPR = 10/|holdout| of the outsiders are above. 1 means
    no better than chance.

    Args:
        X: Rows of the people in the release, in the unit ball where the noise is known.
        X_priv: Released rows.
        holdout: At least 20 people of the same population who are not in the release.
        noise: The mechanism that made the release, or its law; None if it is not known.
        most_pairs: Every person meets every released row; where that is more than this, a random sample of
            members and outsiders is attacked instead, and a note says so.
        confidence: Of the intervals.
        rng: Randomness of the attack; fresh unless given.
        progress: Is told how far the attack is.

    Returns:
        Protection, an upper bound; ``detail["statistics"]`` has the areas and rates themselves.

    Raises:
        TypeError: ``noise`` is neither a mechanism nor a law.
        ValueError: There are too few people, or tables do not fit each other.

    Does not guarantee: anything if the holdout is of another population: then the two are told apart whatever
    was released. Take it at random from the table before the release, as `attribute_inference` does.

    Example:
        >>> import numpy as np
        >>> from targetdp import SphericalLaplace
        >>> rng = np.random.default_rng(1)
        >>> X = rng.uniform(-0.5, 0.5, size=(200, 3))
        >>> noise = SphericalLaplace(B=0.25, epsilon=4)
        >>> X_priv = noise.privatize(X, rng)
        >>> round(membership(X[:150], X_priv[:150], X[150:], noise, rng=rng).score, 2)
        0.8
    """
    table = check.table(X)
    released = check.table(X_priv, "X_priv", columns=table.shape[1])
    outside = check.table(holdout, "holdout", columns=table.shape[1])
    if len(outside) < FEWEST_OUTSIDERS:
        raise ValueError(
            f"holdout has {len(outside)} rows: at least {FEWEST_OUTSIDERS} are needed to tell a rate of "
            "false alarms; hold out 500 people before the release"
        )
    if len(table) < 2:
        raise ValueError("X has 1 row: at least 2 members are needed to compare them with outsiders")
    check_squares(table, released, outside)
    most_pairs = check.integer("most_pairs", most_pairs, at_least=1)
    confidence = check.number("confidence", confidence, above=0, below=1)
    density = density_of(noise, table.shape[1])
    if density is not None:
        check_in_unit_ball(table, "X")
        check_in_unit_ball(outside, "holdout")
    rng = check.generator(rng) or np.random.default_rng()
    progress = progress or Silent()

    table, outside, sampled = _sample(table, outside, most_pairs // len(released), rng)
    notes = [NO_PROMISE, *_resolution(len(outside)), *sampled, *shared_note(table, outside)]
    if density is None:
        units = units_of(released)  # no column may count for its unit alone
        table, released, outside = table / units, released / units, outside / units
        notes.append("The noise is not known: only distances were used.")
    elif density.note:
        notes.append(density.note)
    m = len(table)
    statistics = _statistics(np.concatenate([table, outside]), released, density, progress)
    settings: dict[str, Setting] = {}
    details: dict[str, Any] = {}
    error_rate = (1 - confidence) / (2 * len(statistics))
    for name, values in statistics.items():
        area = area_under_curve(values[:m], values[m:], error_rate)
        positives = true_positives(values[:m], values[m:], error_rate)
        rate = false_alarms(len(outside))
        settings[f"{name}: area under the curve"] = _setting(area, 0.5)
        settings[f"{name}: true positives"] = _setting(positives, rate)
        details[name] = {"area_under_curve": area, "true_positives": positives, "false_positives": rate}
    return worst(
        settings, "upper", confidence=confidence,
        members=m, outsiders=len(outside), statistics=details, notes=tuple(notes),
    )  # fmt: skip


def _setting(estimate: IntervalEstimate, guessing: float) -> Setting:
    """1 where the figure is what guessing gives, 0 where it is 1."""

    def score(value: float) -> float:
        return 1 - (value - guessing) / (1 - guessing)

    low, high = estimate.interval
    return Setting(score(estimate.value), (score(high), score(low)))


def _resolution(outsiders: int) -> list[str]:
    if outsiders >= _RESOLVES:
        return []
    return [
        f"{outsiders} outsiders cannot resolve false alarms below {ALARMS}/{outsiders} = "
        f"{false_alarms(outsiders):.2g}: nothing is said about an adversary who is more careful."
    ]


def _sample(
    table: Floats, outside: Floats, most: int, rng: np.random.Generator
) -> tuple[Floats, Floats, list[str]]:
    """As many members and outsiders as may be compared, at random."""
    if len(table) + len(outside) <= most:
        return table, outside, []
    # Outsiders are kept first, to a half: their number limits how small a rate can be resolved.
    kept = max(FEWEST_OUTSIDERS, min(len(outside), most // 2))
    members = min(len(table), max(FEWEST_OUTSIDERS, most - kept))
    note = (
        f"{members} of {len(table)} members and {kept} of {len(outside)} outsiders were attacked, drawn at "
        "random (most_pairs). An adversary whose list has everybody may tell more."
    )
    return (
        rng.choice(table, members, replace=False),
        rng.choice(outside, kept, replace=False),
        [note],
    )


def _statistics(
    people: Floats, released: Floats, density: NoiseDensity | None, progress: Progress
) -> dict[str, Floats]:
    """Each person's statistics: the higher, the more likely a member."""
    progress.phase(NEAREST, len(people))
    statistics = {NEAREST: -_nearest(people, released, progress)}
    if density is not None:
        white, rows = density.whitened(people), density.whitened(released)
        progress.phase(LIKELIHOOD, len(people))
        statistics[LIKELIHOOD] = _without_last_digits(log_sums(white, rows, density, None, progress))
        progress.phase(EXPLAINED, len(rows) + len(people))
        everybody = log_sums(rows, white, density, None, progress)
        statistics[EXPLAINED] = _without_last_digits(log_sums(white, rows, density, -everybody, progress))
    return statistics


def _without_last_digits(logs: Floats) -> Floats:
    """Without the last digits: equal people must not be told apart by how sums were rounded."""
    return np.round(logs, 9)


def _nearest(people: Floats, released: Floats, progress: Progress) -> Floats:
    """Squared distance to the nearest released row."""
    nearest = np.full(len(people), math.inf)

    def keep_nearest(queries: slice, points: slice, squared: Floats) -> None:  # noqa: ARG001
        np.minimum(nearest[queries], squared.min(axis=1), out=nearest[queries])

    over_pairs(people, released, keep_nearest, progress)
    return nearest

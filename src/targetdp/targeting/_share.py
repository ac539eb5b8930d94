"""Which share of people should get a yes, so that the list that lots make of it is right most often."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from targetdp._core import Floats, Integers, check
from targetdp.mechanisms import DecisionLaw, steps_of

_CANDIDATES = 399


@dataclass(frozen=True)
class ShareOfYes:
    """A share of yes to ask for.

    Args:
        share: Of people whose score is on the yes side of the cut.
        accuracy: How many people are expected to be rightly on or off the list, as a share.
        at_quota: The same where the share is the quota itself.
    """

    share: float
    accuracy: float
    at_quota: float


def best_share(scores: Any, wanted: Any, law: DecisionLaw, *, quota: float) -> ShareOfYes:
    """The share of yes with the highest expected accuracy after lots, on a sample.

    A program with a quota ends with exactly that: lots among the yes if there are too many, among the no if
    too few. Wrong bits and lots both cost accuracy, and which share loses least is computed, person by
    person: P(on the list) = P(yes)·P(lot).

    Args:
        scores: Of people of a sample; low is a yes. Below B = 2 they are those of the law's own score, from
            −1 to 1.
        wanted: For each of them, whether the program wants her on the list.
        law: The chances of bits.
        quota: The share of people who are on the list.

    Returns:
        The share to ask for, and what to expect of it in this sample.

    Raises:
        ValueError: Lengths differ, there is nobody, or the quota is not between 0 and 1.

    Edges: of equally good shares the one nearest to the quota is taken. What holds in a sample is an estimate
    for everybody else.

    Example:
        >>> from targetdp.mechanisms import Decision
        >>> scores = np.linspace(-1, 1, 1001)
        >>> found = best_share(scores, scores < -0.4, Decision(B=2, epsilon=4).law(), quota=0.3)
        >>> round(found.share, 3), round(found.accuracy, 3)
        (0.3, 0.976)
    """
    quota = check.number("quota", quota, above=0, below=1)
    right = np.asarray(wanted)
    given = check.vector("scores", scores, length=len(scores))
    if right.dtype != np.bool_ or right.shape != given.shape:
        raise ValueError(
            f"wanted has shape {right.shape} and type {right.dtype}: give a boolean for each score"
        )
    order = np.argsort(given, kind="stable")
    even = np.full(len(given), 1 / len(given))
    return best_share_of(given[order], even, right[order].astype(np.float64), law, quota)


def best_share_of(
    ranked: Floats, shares: Floats, wanted: Floats, law: DecisionLaw, quota: float
) -> ShareOfYes:
    """The same of people at some scores, where it is a matter of chance whom the program wants.

    Args:
        ranked: Scores, rising; low is a yes.
        shares: The share of people at each; they add up to 1.
        wanted: The chance of people there to be wanted on the list.
        law: The chances of bits.
        quota: The share of people who are on the list.

    Returns:
        As `best_share`.
    """
    tried = np.unique(np.append(np.linspace(0, 1, _CANDIDATES + 2)[1:-1], quota))
    reached = np.cumsum(shares)
    middles = reached - np.diff(reached, prepend=0.0) / 2
    steps = None if law.cells is None else steps_of(ranked)
    found = np.array([
        _accuracy(_cells(steps, middles, law, share), shares, wanted, law, quota) for share in tried
    ])  # fmt: skip
    best = np.flatnonzero(found >= found.max() - 1e-12)
    chosen = int(best[np.argmin(np.abs(tried[best] - quota))])
    at_quota = float(found[int(np.argmin(np.abs(tried - quota)))])
    return ShareOfYes(float(tried[chosen]), float(found[chosen]), at_quota)


def _accuracy(cells: Integers, shares: Floats, wanted: Floats, law: DecisionLaw, quota: float) -> float:
    """Expected accuracy after lots, where people are in these cells."""
    yes = law.chance_of_yes(cells)
    total = float(shares @ yes)
    listed = yes * (quota / total) if total >= quota else yes + (1 - yes) * (quota - total) / (1 - total)
    return float(shares @ (wanted * listed + (1 - wanted) * (1 - listed)))


def _cells(steps: Integers | None, middles: Floats, law: DecisionLaw, share: float) -> Integers:
    """Yes for those who are at or below the share, to the nearest person.

    ``steps`` are scores, rising, in whole steps; None where only the side of the cut matters. Half of the
    people at a score, and all below it, are the share in ``middles``.
    """
    first_no = int(np.searchsorted(middles, share))
    if law.cells is None or steps is None:
        return np.where(np.arange(len(middles)) < first_no, 0, -1)
    return law.cells.of_steps(steps, int(steps[min(max(first_no - 1, 0), len(steps) - 1)]))

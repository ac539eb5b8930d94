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
    ranked, right = given[order], right[order]
    shares = np.unique(np.append(np.linspace(0, 1, _CANDIDATES + 2)[1:-1], quota))
    found = np.array([_accuracy(ranked, right, law, share, quota) for share in shares])
    best = np.flatnonzero(found >= found.max() - 1e-12)
    chosen = int(best[np.argmin(np.abs(shares[best] - quota))])
    at_quota = float(found[int(np.argmin(np.abs(shares - quota)))])
    return ShareOfYes(float(shares[chosen]), float(found[chosen]), at_quota)


def _accuracy(
    ranked: Floats, right: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], law: DecisionLaw,
    share: float, quota: float,
) -> float:  # fmt: skip
    """Expected accuracy after lots, where so many of the ranked people are on the yes side."""
    people = len(ranked)
    yes = law.chance_of_yes(_cells(ranked, law, share))
    total, places = float(yes.sum()), quota * people
    listed = (
        yes * (places / total) if total >= places else yes + (1 - yes) * (places - total) / (people - total)
    )
    return float(np.where(right, listed, 1 - listed).mean())


def _cells(ranked: Floats, law: DecisionLaw, share: float) -> Integers:
    first_no = round(share * len(ranked))
    if law.cells is None:
        return np.where(np.arange(len(ranked)) < first_no, 0, -1)
    cut = ranked[min(max(first_no - 1, 0), len(ranked) - 1)]
    return law.cells.of_steps(steps_of(ranked), int(steps_of(np.array([cut]))[0]))

"""An empirical audit: run a mechanism many times on two neighbors and bound its ε from below.

The adversary knows the mechanism and both tables, and has to tell from the output which one was used. It
picks an event on one half of the runs and counts it on the other half; exact (Clopper and Pearson 1934)
intervals turn the counts into a lower bound on ε that is wrong with a stated probability only.
An audit can refute a claim. It can never prove one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from targetdp import check
from targetdp.attacks.intervals import highest_share, lowest_share
from targetdp.typing import Floats

Privatize = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Audit:
    """What an audit found: with ``confidence``, the mechanism's ε at ``delta`` is at least ``epsilon``.

    ``hits`` and ``misses`` are how often the chosen event happened on either table in the counting half.
    """

    epsilon: float
    delta: float
    confidence: float
    runs: int
    hits: int
    misses: int

    def refutes(self, epsilon: float) -> bool:
        """Whether a claim of this ε (at the same δ) is refuted."""
        return self.epsilon > epsilon


def audit_rows(
    privatize: Privatize, x: Any, neighbor: Any, *, runs: int, delta: float = 0.0, confidence: float = 0.999
) -> Audit:
    """Audit with many copies of one row in one table, each row's noise a run of its own.

    Two scores compete, both of them how much closer the output is to ``x`` than to ``neighbor``: in distance,
    which orders outputs by likelihood for spherical Laplace noise, and in squared distance, for normal noise.
    Edges: it rests on rows getting independent noise; `audit_tables` does not.
    """
    own = check.table(np.atleast_2d(x), "x")
    other = check.table(np.atleast_2d(neighbor), "neighbor", columns=own.shape[1])
    runs = check.integer("runs", runs, at_least=1000)

    def scores(Z: Floats) -> Floats:
        to_other, to_own = np.linalg.norm(Z - other, axis=1), np.linalg.norm(Z - own, axis=1)
        return np.stack([to_other - to_own, to_other**2 - to_own**2])

    return lower_bound(
        scores(privatize(np.repeat(own, runs, axis=0))),
        scores(privatize(np.repeat(other, runs, axis=0))),
        delta=delta,
        confidence=confidence,
    )


def audit_tables(
    privatize: Privatize,
    X: Any,
    neighbor: Any,
    score: Callable[[Floats], float],
    *,
    runs: int,
    delta: float = 0.0,
    confidence: float = 0.999,
) -> Audit:
    """Audit whole tables, one call of the mechanism for each run, with a score of the adversary's choice."""
    own = check.table(X)
    other = check.table(neighbor, "neighbor", columns=own.shape[1])
    runs = check.integer("runs", runs, at_least=1000)
    return lower_bound(
        np.array([score(privatize(own)) for _ in range(runs)]),
        np.array([score(privatize(other)) for _ in range(runs)]),
        delta=delta,
        confidence=confidence,
    )


def lower_bound(own: Floats, other: Floats, *, delta: float, confidence: float) -> Audit:
    """The largest ε that the scores of runs on two neighbors prove, in either direction.

    One row of scores for each way of scoring. Score, threshold and direction are chosen on the first half of
    the runs; only the second half is counted.
    """
    check.number("delta", delta, at_least=0, below=1)
    check.number("confidence", confidence, above=0.5, below=1)
    own, other = np.atleast_2d(own), np.atleast_2d(other)
    half = own.shape[1] // 2
    doubt = (1 - confidence) / 2  # shared by the two intervals
    best, chosen = -math.inf, (0.0, own[0], other[0])
    for a, b in zip(own, other, strict=True):
        # High or low scores, more likely on the one table or on the other.
        for likely, unlikely in ((a, b), (b, a), (-a, -b), (-b, -a)):
            threshold, gain = _best_threshold(likely[:half], unlikely[:half], delta, doubt)
            if gain > best:
                best, chosen = gain, (threshold, likely[half:], unlikely[half:])
    threshold, likely, unlikely = chosen
    hits, misses = int((likely >= threshold).sum()), int((unlikely >= threshold).sum())
    epsilon = float(_proven(np.array([hits]), np.array([misses]), len(likely), delta, doubt)[0])
    return Audit(max(0.0, epsilon), delta, confidence, own.shape[1], hits, misses)


def _best_threshold(a: Floats, b: Floats, delta: float, doubt: float) -> tuple[float, float]:
    """The threshold t whose event {score ≥ t} would prove the most, and how much."""
    tails = np.geomspace(5 / len(a), 0.5, 1000)  # far events often prove the most
    grid = np.unique(np.quantile(np.concatenate([a, b]), np.concatenate([tails, 1 - tails])))
    hits = len(a) - np.searchsorted(np.sort(a), grid)
    misses = len(b) - np.searchsorted(np.sort(b), grid)
    proven = _proven(hits, misses, len(a), delta, doubt)
    best = int(np.argmax(proven))
    return float(grid[best]), float(proven[best])


def _proven(hits: Any, misses: Any, runs: int, delta: float, doubt: float) -> Floats:
    """ln((p₋ − δ)/q₊) with p₋ and q₊ the ends of one-sided exact intervals; −∞ where p₋ ≤ δ."""
    low, high = lowest_share(hits, runs, doubt), highest_share(misses, runs, doubt)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -math.inf)

"""An empirical audit: run a mechanism many times on two neighbors and bound its ε from below.

The adversary knows the mechanism and both tables, and has to tell from the output which one was used. It
picks an event on one half of the runs and counts it on the other half; exact (Clopper and Pearson 1934)
intervals turn the counts into a lower bound on ε that is wrong with a stated probability only.
An audit can refute a claim. It can never prove one.

`audit` is for users: it takes a mechanism, finds the rows, and holds what it saw against the claim and the
accounting. It hands back an `Audit`, not a `Protection`: an ε is no share of people and has no score from 0
to 1, and an ε that no audit could find is no protection.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from targetdp._core import Floats, Progress, Silent, check
from targetdp.attacks._protection import highest_share, lowest_share, plain_data
from targetdp.mechanisms import NoiseMechanism
from targetdp.noise import word_stream

Privatize = Callable[[Floats], Floats]

_FARTHEST = 1e100
"""Outputs beyond it have no squares that could be told apart."""

MOST_RUNS = 50_000_000
"""Their scores are held in memory."""

_VALUES_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class Audit:
    """What an audit found: with ``confidence``, the mechanism's ε at ``delta`` is at least ``epsilon``.

    Args:
        epsilon: The lower bound on ε.
        delta: The δ for which it holds.
        confidence: With which it holds.
        runs: Runs on each of the two tables.
        hits: How often the chosen event happened on the one table, in the half of the runs that is counted.
        misses: How often it happened on the other table.
        distance: Between the two rows; None where it is not known.
        claimed: The ε that the mechanism promises at ``distance`` and ``delta``; None if nothing.
        exact: The ε that its accounting gives; only `audit` fills these three in.

    Example:
        >>> Audit(1.5, 1e-6, 0.999, 1000, 300, 50).refutes(1.0)
        True
    """

    epsilon: float
    delta: float
    confidence: float
    runs: int
    hits: int
    misses: int
    distance: float | None = None
    claimed: float | None = None
    exact: float | None = None

    def refutes(self, epsilon: float) -> bool:
        """Whether a claim of this ε (at the same δ) is refuted."""
        return self.epsilon > epsilon

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the claim: neither these runs nor the accounting.

        Does not guarantee: that the claim is true; another event or another pair of rows might refute it.
        """
        stated = [epsilon for epsilon in (self.claimed, self.exact) if epsilon is not None]
        if self.claimed is not None and self.exact is not None and self.exact > self.claimed:
            return False
        return not any(self.refutes(epsilon) for epsilon in stated)

    @property
    def sentence(self) -> str:
        """What was found, in plain words."""
        rows = "two rows" if self.distance is None else f"two rows {self.distance:g} apart"
        sentence = (
            f"From {self.runs:,} runs on each of {rows}, with {100 * self.confidence:.10g}% confidence: the "
            f"true ε at δ = {self.delta:.3g} is at least {_rounded_down(self.epsilon)}"
        )
        against = [
            f"{name} {_rounded_up(epsilon)}"
            for name, epsilon in (("the claim of", self.claimed), ("the accounting's", self.exact))
            if epsilon is not None and self.refutes(epsilon)
        ]
        if against:
            return f"{sentence}, which refutes {' and '.join(against)}: do not use this mechanism."
        stated = "" if self.exact is None else f"; the accounting gives {_rounded_up(self.exact)}"
        if self.claimed is not None:
            stated += f", the claim is {_rounded_up(self.claimed)}"
        elif self.exact is not None:
            stated += ", and nothing is claimed at this distance and δ"
        if not self.holds:
            return f"{sentence}{stated}, which is less: do not use this mechanism."
        return f"{sentence}{stated}. Nothing was refuted, which is not a proof."

    def record(self) -> dict[str, Any]:
        """Plain data, ready for JSON: what is not finite comes as null."""
        return {**plain_data(self), "holds": self.holds, "sentence": self.sentence}


def audit(
    mechanism: NoiseMechanism,
    *,
    dimensions: int,
    distance: float | None = None,
    delta: float | None = None,
    runs: int = 200_000,
    confidence: float = 0.999,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Run a mechanism many times on two rows, and hold what can be told apart against what it promises.

    The rows lie where telling them apart is easiest: on a diameter, one of them at its end; for a projection
    or scores along the direction that is stretched most.

    Args:
        mechanism: The noise mechanism.
        dimensions: Number of columns.
        distance: Between the two rows; the guarantee's B unless given.
        delta: The guarantee's own unless given.
        runs: Runs on each of the two rows.
        confidence: Of the lower bound on ε.
        rng: Without it the noise is that of a release; with it the runs can be repeated, and a projection
            keeps its public R all the same.
        progress: Is told how far the audit is.

    Returns:
        The lower bound, beside the claim and the accounting.

    Raises:
        TypeError: ``mechanism`` is not a noise mechanism.
        ValueError: An argument is out of range, or the mechanism puts out something else than finite rows.

    Guarantees: `Audit.epsilon` is above the true ε with probability at most 1 − ``confidence``.
    Does not guarantee: that a mechanism is private; whether rows are clipped, or their noise shared, is not
    looked at (`audit_rows`, `audit_tables`).
    Edges: a part of a `Partitioned` is audited on its own. Where rows depend on each other (rank < d) each
    run is a table of one row and takes most of a millisecond: give fewer runs.

    Example:
        >>> from targetdp import SphericalLaplace
        >>> rng = np.random.default_rng(1)
        >>> result = audit(SphericalLaplace(B=0.25, epsilon=2), dimensions=3, runs=20_000, rng=rng)
        >>> result.holds, result.claimed, round(result.epsilon, 1)
        (True, 2.0, 1.5)
    """
    check.instance("mechanism", mechanism, NoiseMechanism)
    d = check.dimensions(dimensions)
    promise = mechanism.guarantee
    r = promise.B if distance is None else check.distance(distance)
    delta = promise.delta if delta is None else check.number("delta", delta, at_least=0, below=1)
    runs = check.integer("runs", runs, at_least=1000, at_most=MOST_RUNS)
    confidence = check.number("confidence", confidence, above=0.5, below=1)
    rng, progress = check.generator(rng), progress or Silent()

    there = promise.at_distance(r)
    exact = mechanism.epsilon(distance=r, delta=delta, dimensions=d)
    whole = mechanism.on_whole_tables
    own = whole.exposed_direction(d)[None, :]
    other = (1 - r) * own  # straight below, where their covariances differ the most as well
    at_once = max(1, _VALUES_AT_ONCE // d) if _draws_row_by_row(whole, d) else 1
    progress.phase("audit", 2 * runs)

    def privatize(rows: Floats) -> Floats:
        if rng is None:
            return whole.privatize(rows)
        # What a release does, from words that can be repeated; `privatize` would draw another R.
        return whole._privatize(rows, word_stream(rng), fresh=False)

    centers = whole.without_noise(own), whole.without_noise(other)
    scores = [_scores_of_runs(privatize, row, centers, runs, at_once, progress) for row in (own, other)]
    return replace(
        lower_bound(*scores, delta=delta, confidence=confidence),
        distance=r,
        claimed=there.epsilon if there.delta <= delta else None,
        exact=exact,
    )


def _rounded_up(epsilon: float) -> str:
    """An ε that is promised, rounded up."""
    return f"{math.ceil(epsilon * 1e4 - 1e-6) / 1e4:.10g}" if math.isfinite(epsilon) else "no finite ε"


def _rounded_down(epsilon: float) -> str:
    """An ε that was found, rounded down; to more digits than a promise, so that it is seen to exceed one."""
    return f"{math.floor(epsilon * 1e5) / 1e5:.10g}"


def _draws_row_by_row(mechanism: NoiseMechanism, d: int) -> bool:
    try:
        mechanism.law(d)
    except ValueError:
        return False
    return True


def _scores_of_runs(
    privatize: Privatize,
    row: Floats,
    centers: tuple[Floats, Floats],
    runs: int,
    at_once: int,
    progress: Progress,
) -> Floats:
    """The scores of so many runs on one row, privatized in tables of at most ``at_once`` rows."""
    alone = at_once == 1  # rows that must be, since directions are learned from a whole table
    scores = np.empty((3 if alone else 2, runs))
    for begin in range(0, runs, at_once):
        rows = np.repeat(row, min(at_once, runs - begin), axis=0)
        scores[:, begin : begin + len(rows)] = _closeness(privatize(rows), *centers, directions=alone)
        progress.advance(len(rows))
    return scores


def _closeness(Z: Floats, own: Floats, other: Floats, *, directions: bool = False) -> Floats:
    """How much closer outputs are to one row than to the other, in distance and in squared distance.

    The first orders outputs by likelihood for spherical Laplace noise, the second for normal noise. A third
    is for ``directions`` that were learned from the rows: how well an output points along them.
    """
    if Z.ndim != 2 or Z.shape[1] != own.shape[1] or not (np.abs(Z) < _FARTHEST).all():
        raise ValueError(
            f"the output of the mechanism has shape {Z.shape} or values that are not finite or beyond "
            f"{_FARTHEST:g}: it must have the columns of its input and finite values"
        )
    to_other, to_own = np.linalg.norm(Z - other, axis=1), np.linalg.norm(Z - own, axis=1)
    scores = [to_other - to_own, to_other**2 - to_own**2]
    if directions:
        scores.append(np.abs(Z @ own[0]) / np.maximum(np.linalg.norm(Z, axis=1), np.finfo(np.float64).tiny))
    return np.stack(scores)


def audit_rows(
    privatize: Privatize, x: Any, neighbor: Any, *, runs: int, delta: float = 0.0, confidence: float = 0.999
) -> Audit:
    """Audit with many copies of one row in one table, each row's noise a run of its own.

    Two scores compete, both of them how much closer an output is to ``x`` than to ``neighbor``.

    Args:
        privatize: From a table to a private one of the same shape.
        x: One row.
        neighbor: The other row.
        runs: Runs on each of them.
        delta: The δ of the claim.
        confidence: Of the lower bound on ε.

    Returns:
        The lower bound on ε.

    Raises:
        ValueError: An argument is out of range, or ``privatize`` puts out something else than finite rows.

    Edges: it rests on rows getting independent noise; `audit_tables` does not.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> def too_quiet(rows):  # Laplace noise that keeps ε = 2 at distance 1, and not 1
        ...     return rows + rng.laplace(scale=0.5, size=rows.shape)
        >>> audit_rows(too_quiet, [1.0], [0.0], runs=20_000).refutes(1.0)
        True
    """
    own = check.table(np.atleast_2d(x), "x")
    other = check.table(np.atleast_2d(neighbor), "neighbor", columns=own.shape[1])
    runs = check.integer("runs", runs, at_least=1000)
    return lower_bound(
        _closeness(privatize(np.repeat(own, runs, axis=0)), own, other),
        _closeness(privatize(np.repeat(other, runs, axis=0)), own, other),
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
    """Audit whole tables, one call of the mechanism for each run, with a score of the adversary's choice.

    Args:
        privatize: From a table to a private one of the same shape.
        X: One table.
        neighbor: The other table.
        score: A number for each private table, by which the adversary tells the two apart.
        runs: Calls on each table.
        delta: The δ of the claim.
        confidence: Of the lower bound on ε.

    Returns:
        The lower bound on ε.

    Raises:
        ValueError: An argument is out of range, or scores are not finite.

    Example:
        >>> result = audit_tables(lambda X: X, [[1.0]], [[0.0]], lambda X: float(X[0, 0]), runs=1000)
        >>> result.refutes(4.0)  # no noise at all
        True
    """
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
    if own.shape != other.shape or own.shape[1] < 4 or not (np.isfinite(own) & np.isfinite(other)).all():
        raise ValueError(
            f"scores have shapes {own.shape} and {other.shape}: give equally many finite scores, at least 4, "
            "for runs on either table"
        )
    half = own.shape[1] // 2
    error_rate = (1 - confidence) / 2  # shared by the two intervals
    best, chosen = -math.inf, (0.0, own[0], other[0])
    for a, b in zip(own, other, strict=True):
        for sign in (1, -1):  # high scores or low ones
            first, second = np.sort(sign * a[:half]), np.sort(sign * b[:half])
            thresholds = _candidates(first, second)
            hits, misses = (half - np.searchsorted(scores, thresholds) for scores in (first, second))
            # More likely on the one table or on the other.
            for likely, unlikely, counts in ((a, b, (hits, misses)), (b, a, (misses, hits))):
                proven = _epsilon_proven(*counts, half, delta, error_rate)
                at = int(np.argmax(proven))
                if proven[at] > best:
                    best = float(proven[at])
                    chosen = (float(thresholds[at]), sign * likely[half:], sign * unlikely[half:])
    threshold, likely, unlikely = chosen
    hits, misses = int((likely >= threshold).sum()), int((unlikely >= threshold).sum())
    epsilon = float(_epsilon_proven(np.array([hits]), np.array([misses]), len(likely), delta, error_rate)[0])
    return Audit(max(0.0, epsilon), delta, confidence, own.shape[1], hits, misses)


def _candidates(first: Floats, second: Floats) -> Floats:
    """Thresholds to try, from sorted scores: many in the tails, since far events often prove the most."""
    pooled = np.sort(np.concatenate([first, second]), kind="stable")  # merges the two
    tails = np.geomspace(5 / len(first), 0.5, 1000)
    at = np.concatenate([tails, 1 - tails]) * (len(pooled) - 1)
    return np.unique(pooled[np.rint(at).astype(np.intp)])


def _epsilon_proven(hits: Any, misses: Any, runs: int, delta: float, error_rate: float) -> Floats:
    """ln((p₋ − δ)/q₊) with p₋ and q₊ the ends of one-sided exact intervals; −∞ where p₋ ≤ δ."""
    low, high = lowest_share(hits, runs, error_rate), highest_share(misses, runs, error_rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -math.inf)

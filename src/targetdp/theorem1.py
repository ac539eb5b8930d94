"""Theorem 1 and a sharper one: how often decisions on private data can agree with today's.

γ is agreement in the worst case: for *every* table, the probability that a person's eligibility decided on
the private table is the one decided on the original table. It compares with the original decision, not with
the truth: a program's accuracy is another number.

The paper's Theorem 1 (``theorem="printed"``) is true, and far from tight. The default here is a sharper one:

    γ ≤ (e^ε + δ)/(1 + e^ε), whatever B is.

*Proof.* A decision that depends on rows at all differs between two tables that agree on all rows but one, x
in the first and x′ in the second (the paper calls this minimally responsive). The unit ball is convex, so
every row on the segment from x to x′ may be somebody's. Divide the segment into steps of at most B. The
decisions at its two ends differ, so they differ at the two ends of at least one step: on tables X and Y that
are B-neighbors. Let E be that the private decision is the one of X: P(E | X) ≥ γ, and P(E | Y) ≤ 1 − γ, since
Y's is the other one. The guarantee says P(E | X) ≤ e^ε·P(E | Y) + δ, hence γ ≤ e^ε(1 − γ) + δ. ∎

*It is reached*, for every decision and every B: publish the decision alone, and the wrong one with
probability (1 − δ)/(1 + e^ε). That is (ε, δ)-private for any two tables. For all people at once it is reached
where each decision depends on the person's own row; with a quota, say, it is still a ceiling.

*What it does not speak of.* A decision that is the same for all rows agrees always. A decision with lots is
compared for lots that are fixed beforehand, and ties belong to the decision, however they are broken.

The paper walks the whole way, s = ⌈2/B⌉ steps, and bounds γ ≤ e^{sε}(1 − γ) + δ(e^{sε} − 1)/(e^ε − 1). At
B = 2 the two theorems are the same.
"""

import math
from collections.abc import Iterable
from typing import Literal, get_args

from targetdp._core import check
from targetdp.guarantee import Guarantee, steps

Theorem = Literal["sharper", "printed"]
"""The sharper theorem, or the paper's Theorem 1 as it is printed."""

_SAFE = 2.0**-50
"""Eight roundings of a float: more than any formula here has."""


def accuracy_ceiling(guarantee: Guarantee, *, theorem: Theorem = "sharper") -> float:
    """The highest γ that any algorithm with a guarantee can have: (e^ε + δ)/(1 + e^ε), whatever B is.

    If a decision changes anywhere, it changes between two rows that are closer than B: one step of the
    guarantee has to carry it, γ ≤ e^ε(1 − γ) + δ. Publishing the decision alone, wrong with probability
    (1 − δ)/(1 + e^ε), reaches it (the proofs are at the top of this module). The paper's Theorem 1 allows
    ⌈2/B⌉ steps, and so more.

    Args:
        guarantee: What is promised.
        theorem: ``"printed"`` for the paper's Theorem 1.

    Returns:
        A share from 1/2 to 1, rounded up.

    Example:
        >>> round(accuracy_ceiling(Guarantee(B=0.25, epsilon=1)), 4)
        0.7311
        >>> round(accuracy_ceiling(Guarantee(B=0.25, epsilon=1), theorem="printed"), 4)
        0.9997
    """
    check.instance("guarantee", guarantee, Guarantee)
    return _ceiling(_steps(guarantee, theorem), guarantee.epsilon, guarantee.delta)


def is_ruled_out(guarantee: Guarantee, accuracy: float, *, theorem: Theorem = "sharper") -> bool:
    """Whether no algorithm with this guarantee is γ-accurate: γ is above `accuracy_ceiling`.

    Args:
        guarantee: What is promised.
        accuracy: γ, from 1/2 to below 1.
        theorem: ``"printed"`` for the paper's Theorem 1, ⌈2/B⌉ < ⌈ln(Q)/ε⌉.

    Returns:
        Whether it is impossible. What is not ruled out by the sharper theorem can be reached, by publishing
        nothing but the decision; rows and scores seldom reach it. What the printed one does not rule out may
        be impossible.

    Raises:
        ValueError: The accuracy is outside its range.

    Example:
        >>> is_ruled_out(Guarantee(B=0.4, epsilon=1), accuracy=0.99)
        True
        >>> is_ruled_out(Guarantee(B=0.4, epsilon=1), accuracy=0.99, theorem="printed")
        False
    """
    check.instance("guarantee", guarantee, Guarantee)
    s = _steps(guarantee, theorem)
    return _accuracy(accuracy) > _ceiling(s, guarantee.epsilon, guarantee.delta)


def largest_B(
    *, accuracy: float, epsilon: float, delta: float = 0.0, theorem: Theorem = "sharper"
) -> float | None:
    """The largest B with which an algorithm can be γ-accurate: 2, or None if no B will do.

    B plays no part in the sharper theorem, so that a smaller one does not help: `smallest_epsilon` says what
    would. The paper's Example 1 has B ≤ 0.4 for γ = 0.99, ε = 1 and δ = 10⁻⁴ (``theorem="printed"``), and no
    algorithm is that accurate at any of these B.

    Args:
        accuracy: γ, from 1/2 to below 1.
        epsilon: ε, above 0.
        delta: δ, from 0 to 1.
        theorem: ``"printed"`` for the paper's Theorem 1: the largest B = 2/m with B ≤ 2/⌈ln(Q)/ε⌉,
            Q = (δ + γ(e^ε − 1)) / (δ + (1 − γ)(e^ε − 1)).

    Returns:
        B; never None with the printed theorem.

    Raises:
        ValueError: One of them is outside its range.

    Example:
        >>> largest_B(accuracy=0.9, epsilon=4)
        2.0
        >>> print(largest_B(accuracy=0.9, epsilon=1))
        None
        >>> largest_B(accuracy=0.9, epsilon=1, theorem="printed")
        0.6666666666666666
    """
    gamma = _accuracy(accuracy)
    epsilon = check.number("epsilon", epsilon, at_least=1e-300)
    delta = check.number("delta", delta, at_least=0, at_most=1)
    if _is_sharper(theorem):
        return None if gamma > _ceiling(1, epsilon, delta) else 2.0
    # ln(Q)/ε may round to the wrong whole number, and for a tiny ε to one very many steps away:
    # bisect with the ceiling itself. Theorem 1 rules out 2/low, and leaves 2/high possible.
    low, high = 0, 1
    while gamma > _ceiling(high, epsilon, delta):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if gamma > _ceiling(middle, epsilon, delta):
            low = middle
        else:
            high = middle
    return 2.0 / high


def smallest_epsilon(*, accuracy: float, delta: float = 0.0) -> float:
    """The smallest ε with which an algorithm can be γ-accurate, at any B: ln((γ − δ)/(1 − γ)).

    Args:
        accuracy: γ, from 1/2 to below 1.
        delta: δ, from 0 to 1.

    Returns:
        ε; 0 where δ alone leaves room for γ.

    Raises:
        ValueError: One of them is outside its range.

    Example:
        >>> round(smallest_epsilon(accuracy=0.99), 2)
        4.6
    """
    gamma = _accuracy(accuracy)
    delta = check.number("delta", delta, at_least=0, at_most=1)
    return math.log1p(max(0.0, (2 * gamma - 1 - delta) / (1 - gamma)))


def agreement_by_distance(guarantee: Guarantee, distances: Iterable[float]) -> tuple[float, ...]:
    """What B buys: how often decisions can agree with today's at a distance from the cut.

    A person's distance from the cut is how far the nearest row is that is decided otherwise. At distances
    from k·B to below (k + 1)·B the agreement is at most 1 − q_k, where q₀ = (1 − δ)/(1 + e^ε) and
    q_{k+1} = e^{−ε}·(q_k − δ), or 0 once that is negative.

    *For whom it is a bound:* for every algorithm that is as good as any can be next to the cut, on both sides
    of it (`accuracy_ceiling`). *Proof.* k + 1 steps of at most B lead from her row x across the cut, to a row
    where her decision is wrong and the other one comes out with probability γ or more, γ = 1 − q₀. Each step
    back to x takes at most "minus δ, divided by e^ε" off that probability, so at x the wrong decision has at
    least q_k: the recursion from γ, since e^{−ε}(γ − δ) = q₀. ∎ (An algorithm that keeps only γ′ < γ for
    everybody has 1 − q_k computed from γ′ as its bound, which is higher: near the cut it gave some up.)

    *It is reached*, at all distances at once, by one bit for each person that is wrong with probability q_k
    in the k-th cell of width B on either side of the cut. For any decision the distance, with its side as
    sign, changes by no more than the row moves (the segment between two rows of different decisions crosses
    the cut), so that rows within B are in the same or in adjacent cells, and one cell is one step of (ε, δ).

    Args:
        guarantee: What is promised.
        distances: From 0, next to the cut, to 2.

    Returns:
        For each distance a share from 1/2 to 1, rounded up.

    Raises:
        ValueError: A distance is outside its range.

    Example:
        >>> near, farther = agreement_by_distance(Guarantee(B=0.25, epsilon=2), (0, 0.25))
        >>> round(near, 4), round(farther, 4)
        (0.8808, 0.9839)
    """
    check.instance("guarantee", guarantee, Guarantee)
    given = check.several("distances", distances, "give distances from the cut, from 0 to 2")
    return tuple(
        _at_cell(_cell(check.number("distances", r, at_least=0, at_most=2), guarantee.B), guarantee)
        for r in given
    )


def _cell(distance: float, B: float) -> int:
    """⌊distance/B⌋, and m where the quotient of two floats is only just below m: the higher bound holds."""
    quotient, above = distance / B, steps(distance, B)
    return above if above - quotient < 4 * math.ulp(quotient) else above - 1


def _at_cell(k: int, guarantee: Guarantee) -> float:
    shrink, slack = _shrink_and_slack(k, guarantee.epsilon, guarantee.delta)
    error = _least_error(1, guarantee.epsilon, guarantee.delta)
    return _without(error * shrink * (1 - _SAFE) - slack if k else error)


def _steps(guarantee: Guarantee, theorem: Theorem) -> int:
    """How many steps of the guarantee a theorem walks between two decisions."""
    return 1 if _is_sharper(theorem) else steps(2.0, guarantee.B)


def _is_sharper(theorem: Theorem) -> bool:
    return check.choice("theorem", theorem, get_args(Theorem)) == "sharper"


def _ceiling(s: int, epsilon: float, delta: float) -> float:
    """What solves γ = e^{sε}(1 − γ) + δ(e^{sε} − 1)/(e^ε − 1); at most 1, and never below the truth."""
    return _without(_least_error(s, epsilon, delta))


def _without(error: float) -> float:
    """1 − error, rounded up."""
    return min(1.0, math.nextafter(1.0 - error, math.inf))


def _least_error(s: int, epsilon: float, delta: float) -> float:
    """1 − γ of the ceiling, never above the truth: seen from 1, since near 1 only 1 − γ keeps its digits."""
    shrink, slack = _shrink_and_slack(s, epsilon, delta)
    return (shrink * (1 - _SAFE) - slack) / (1.0 + shrink)


def _shrink_and_slack(s: int, epsilon: float, delta: float) -> tuple[float, float]:
    """e^{−sε}, with an exponent that is not too small, and δ·(1 − e^{−sε})/(e^ε − 1), not too small."""
    total = s * epsilon if s <= 1 else math.nextafter(s * epsilon, math.inf)
    share = -math.expm1(-total) / math.expm1(epsilon) if epsilon < 700 else math.exp(-epsilon)
    return math.exp(-total), delta * share * (1 + _SAFE)


def _accuracy(accuracy: float) -> float:
    return check.number(
        "accuracy", accuracy, at_least=0.5, below=1, remedy="Theorem 1 speaks of γ from 1/2 to below 1"
    )

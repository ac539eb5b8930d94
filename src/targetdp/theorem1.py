"""Theorem 1: what accuracy any targeted differential privacy algorithm can still reach.

Accuracy here is γ: for *every* table, the probability that a person's eligibility decided on the
private table agrees with the one decided on the original table. It is a worst case over tables, and
it compares with the original decision, not with the truth: a program's accuracy is another number.
The theorem is a *necessary* condition; it never says that an accuracy can be reached.
"""

import math

from targetdp._core import check
from targetdp.guarantee import Guarantee, steps


def accuracy_ceiling(guarantee: Guarantee) -> float:
    """The highest γ that Theorem 1 leaves possible under a guarantee.

    Its proof bounds γ ≤ e^{sε}(1 − γ) + δ(e^{sε} − 1)/(e^ε − 1), s = ⌈2/B⌉, which is
    γ ≤ (1 + δ·(1 − e^{−sε})/(e^ε − 1)) / (1 + e^{−sε}).

    Args:
        guarantee: What is promised.

    Returns:
        A share of people, from 1/2 to 1.

    Example:
        >>> round(accuracy_ceiling(Guarantee(B=2, epsilon=1)), 3)
        0.731
    """
    check.instance("guarantee", guarantee, Guarantee)
    s = steps(2.0, guarantee.B)
    return _ceiling(s, guarantee.epsilon, guarantee.delta)


def is_ruled_out(guarantee: Guarantee, accuracy: float) -> bool:
    """Whether Theorem 1 proves that no algorithm with this guarantee is γ-accurate.

    The same as ⌈2/B⌉ < ⌈ln(Q)/ε⌉, written as a comparison with the ceiling so that the two always
    agree. False does not mean that the accuracy can be reached.

    Args:
        guarantee: What is promised.
        accuracy: γ, from 1/2 to below 1.

    Returns:
        Whether it is impossible.

    Raises:
        ValueError: The accuracy is outside its range.

    Example:
        >>> is_ruled_out(Guarantee(B=2, epsilon=1), accuracy=0.9)
        True
    """
    check.instance("guarantee", guarantee, Guarantee)
    s = steps(2.0, guarantee.B)
    return _exceeds(_accuracy(accuracy), s, guarantee.epsilon, guarantee.delta)


def largest_B(*, accuracy: float, epsilon: float, delta: float = 0.0) -> float:
    """The largest B = 2/m that Theorem 1 leaves possible: B ≤ 2/⌈ln(Q)/ε⌉ (Example 1).

    Q = (δ + γ(e^ε − 1)) / (δ + (1 − γ)(e^ε − 1)); it is the smallest m whose ceiling is not below γ, so
    that it agrees with `is_ruled_out`.

    Args:
        accuracy: γ, from 1/2 to below 1.
        epsilon: ε, above 0.
        delta: δ, from 0 to 1.

    Returns:
        B, at most 2.

    Raises:
        ValueError: One of them is outside its range.

    Example:
        >>> largest_B(accuracy=0.9, epsilon=1)
        0.6666666666666666
    """
    gamma = _accuracy(accuracy)
    epsilon = check.number("epsilon", epsilon, at_least=1e-300)
    delta = check.number("delta", delta, at_least=0, at_most=1)
    # ln(Q)/ε may round to the wrong whole number, and for a tiny ε to one very many steps away:
    # bisect with the ceiling itself. Theorem 1 rules out 2/low, and leaves 2/high possible.
    low, high = 0, 1
    while _exceeds(gamma, high, epsilon, delta):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _exceeds(gamma, middle, epsilon, delta):
            low = middle
        else:
            high = middle
    return 2.0 / high


def _exceeds(gamma: float, s: int, epsilon: float, delta: float) -> bool:
    """Whether γ is above the ceiling, seen from 0 and from 1: near 1 only 1 − γ keeps its digits."""
    if gamma <= _ceiling(s, epsilon, delta):
        return False
    shrink, slack = _shrink_and_slack(s, epsilon, delta)
    return 1.0 - gamma < (shrink - slack) / (1.0 + shrink)


def _ceiling(s: int, epsilon: float, delta: float) -> float:
    shrink, slack = _shrink_and_slack(s, epsilon, delta)
    return min(1.0, (1.0 + slack) / (1.0 + shrink))


def _shrink_and_slack(s: int, epsilon: float, delta: float) -> tuple[float, float]:
    """e^{−sε}, and δ·(1 − e^{−sε})/(e^ε − 1)."""
    total = s * epsilon
    share = -math.expm1(-total) / math.expm1(epsilon) if epsilon < 700 else math.exp(-epsilon)
    return math.exp(-total), delta * share


def _accuracy(accuracy: float) -> float:
    return check.number(
        "accuracy", accuracy, at_least=0.5, below=1, remedy="Theorem 1 speaks of γ from 1/2 to below 1"
    )

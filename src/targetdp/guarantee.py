"""A targeted differential privacy guarantee as a value, with the paper's algebra.

Post-processing (Lemma 1) needs no function: whatever is computed from a release keeps its guarantee.
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from targetdp._core import check

_LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Guarantee:
    """(B, ε, δ)-targeted differential privacy (Definition 2); B = 2 is classic (Definition 1).

    P(A(X) ∈ E) ≤ e^ε · P(A(X′) ∈ E) + δ for all events E and all B-neighbors X, X′: tables of the
    unit ball that agree on all rows but one, which moves by at most B.

    Args:
        B: The distance that is hidden, in (0, 2].
        epsilon: ε, above 0.
        delta: δ, from 0 to 1.

    Raises:
        ValueError: One of them is outside its range.

    Guarantees: what the inequality says, for one row, against any adversary.
    Does not guarantee: anything about rows farther apart than B beyond `at_distance`; anything
    about whether a person is in the table; anything for a person with several rows beyond group
    privacy.
    Edges: δ = 1 promises nothing (`is_vacuous`).

    Example:
        >>> promise = Guarantee(B=0.25, epsilon=4, delta=1e-5)
        >>> print(promise)
        (B=0.25, ε=4, δ=1e-05)-TDP
        >>> promise.at_distance(0.5).epsilon
        8.0
    """

    B: float
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "B", check.distance(self.B, "B"))
        object.__setattr__(self, "epsilon", check.number("epsilon", self.epsilon, above=0))
        object.__setattr__(self, "delta", check.number("delta", self.delta, at_least=0, at_most=1))

    def __str__(self) -> str:
        return f"(B={self.B:g}, ε={self.epsilon:g}, δ={self.delta:.3g})-TDP"

    @property
    def is_vacuous(self) -> bool:
        """Whether it promises nothing, since every event may fail."""
        return self.delta >= 1

    def is_at_least(self, other: "Guarantee") -> bool:
        """Whether this one implies the other at a glance: no smaller B, no larger ε or δ.

        Args:
            other: The guarantee that it is compared with.

        Returns:
            Whether all three hold; False does not mean that it does not imply the other.
        """
        check.instance("other", other, Guarantee)
        return self.B >= other.B and self.epsilon <= other.epsilon and self.delta <= other.delta

    def at_distance(self, distance: float) -> "Guarantee":
        """Lemma 4 (switch lemma): what remains for rows at another distance.

        With s = ⌈r/B⌉ the pair (sε, min(1, δ·(e^{sε} − 1)/(e^ε − 1))), computed without overflow.

        Args:
            distance: How far apart two rows are, in (0, 2].

        Returns:
            The guarantee with that distance as its B.
        """
        r = check.distance(distance)
        s = steps(r, self.B)
        if s == 1:
            return Guarantee(r, self.epsilon, self.delta)
        return _capped(r, s * self.epsilon, min(1.0, math.exp(self._log_delta_after(s))))

    def classic(self) -> "Guarantee":
        """The classic differential privacy guarantee that this one implies (Lemma 4 at distance 2)."""
        return self.at_distance(2.0)

    def _log_delta_after(self, s: int) -> float:
        """Logarithm of δ·(e^{sε} − 1)/(e^ε − 1), capped at 0."""
        if self.delta == 0:
            return -math.inf
        return min(0.0, math.log(self.delta) + log_expm1(s * self.epsilon) - log_expm1(self.epsilon))


def sequential(*guarantees: Guarantee) -> Guarantee:
    """Compose algorithms on the same rows (Lemma 2): (min B, Σε, Σδ).

    Args:
        guarantees: One for each algorithm, at least one.

    Returns:
        The guarantee of everything together.

    Raises:
        ValueError: None was given.

    Example:
        >>> sequential(Guarantee(0.25, 1, 1e-5), Guarantee(0.5, 2, 1e-5)).epsilon
        3.0
    """
    _some(guarantees)
    return _capped(
        min(g.B for g in guarantees),
        _total(g.epsilon for g in guarantees),
        min(1.0, _total(g.delta for g in guarantees)),
    )


def parallel(*guarantees: Guarantee) -> Guarantee:
    """Compose algorithms on disjoint sets of rows (Lemma 3): (min B, max ε, max δ).

    Args:
        guarantees: One for each algorithm, at least one.

    Returns:
        The guarantee of everything together.

    Raises:
        ValueError: None was given.

    Edges: which rows go to which algorithm must not depend on the data.

    Example:
        >>> parallel(Guarantee(0.25, 1, 1e-5), Guarantee(0.5, 2, 1e-5)).epsilon
        2.0
    """
    _some(guarantees)
    return Guarantee(
        B=min(g.B for g in guarantees),
        epsilon=max(g.epsilon for g in guarantees),
        delta=max(g.delta for g in guarantees),
    )


def steps(distance: float, B: float) -> int:
    """⌈distance/B⌉, right also where the quotient of two floats is not: ⌈2/B⌉ = m for B = 2/m.

    A quotient less than four units in the last place off a whole number counts as it. The
    chain of s rows then has steps of at most B·(1 + 2⁻⁵⁰), which every mechanism here covers, since
    it is calibrated for rows a little farther apart than B (`targetdp.noise.row_growth`).

    Args:
        distance: How far apart two rows are.
        B: The length of a step.

    Returns:
        How many steps lead from one row to the other.

    Raises:
        ValueError: B is so small that the quotient leaves the range of floats.

    Example:
        >>> steps(2.0, 2 / 49)
        49
    """
    quotient = distance / B
    if not math.isfinite(quotient):
        raise ValueError(f"B = {B!r} is too small for distance {distance!r}: use a B above 1e-300")
    nearest = round(quotient)
    if nearest >= 1 and abs(quotient - nearest) < 4 * math.ulp(quotient):
        return nearest
    return math.ceil(quotient)


def log_expm1(x: float) -> float:
    """ln(e^x − 1), without overflow.

    Args:
        x: A number above 0.

    Returns:
        The logarithm.

    Example:
        >>> log_expm1(1000.0)
        1000.0
    """
    return x + math.log(-math.expm1(-x))


def _total(values: Iterable[float]) -> float:
    """A sum that is right to the last digit, or infinite."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _capped(B: float, epsilon: float, delta: float) -> Guarantee:
    """A guarantee whose ε may have left the range of floats: it then promises nothing, and says so."""
    return Guarantee(B, epsilon, delta) if math.isfinite(epsilon) else Guarantee(B, _LARGEST, 1.0)


def _some(guarantees: tuple[Guarantee, ...]) -> None:
    for guarantee in guarantees:
        check.instance("guarantees", guarantee, Guarantee)
    if not guarantees:
        raise ValueError("no guarantees were given: compose at least one")

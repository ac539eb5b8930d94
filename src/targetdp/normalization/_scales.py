"""Column scales: what is subtracted from each column and what it is divided by.

Scales that come from the data are a statistic of the data. So each set of scales knows where it came
from, what was paid for it, and which condition a guarantee that rests on it must carry.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from targetdp._core import Floats, Integers, check
from targetdp.guarantee import Guarantee
from targetdp.noise import (
    WordStream,
    add_spherical_laplace,
    grid_for,
    row_growth,
    spherical_laplace_imperfection,
    word_stream,
)
from targetdp.normalization._moments import ColumnMoments

ReleaseSource = Literal["declared", "private", "earlier"]
"""Where the scales of a release may come from."""
Source = Literal[ReleaseSource, "confidential", "data", "simulated"]

CONDITIONS: dict[str, tuple[str, ...]] = {
    "declared": ("Column scales were declared public: they were not learned from these people.",),
    "private": (
        "Column scales were estimated from the data under classic differential privacy and paid for: the "
        "guarantee holds for pairs within B under the released scales, and the bounds were public.",
    ),
    "earlier": (
        "Column scales were estimated by an earlier release of this desk, under classic differential privacy "
        "with public bounds, and paid for there by the people who were in it; they cost nobody anything "
        "here. The guarantee holds for pairs within B under them.",
    ),
    "confidential": (
        "Column scales were learned from other data about the same people, which no one paid for: the "
        "guarantee holds only given these scales, and says nothing about what they tell of those people.",
    ),
    "data": (
        "Column scales are the data's own mean and deviation, which no one paid for: the guarantee holds "
        "only between tables that have the same column scales.",
    ),
    "simulated": (
        "Column scales are a simulation of private ones, with noise that can be drawn again: no guarantee "
        "holds.",
    ),
}
"""What must be said beside a guarantee, by where its column scales came from."""

PUBLISHED = frozenset({"declared", "private", "earlier"})
"""Sources whose values tell nothing that was not public or paid for, here or in an earlier release."""

_FIXED_POINT = 2**30
_NARROWEST = 1e-290
"""Half-range below which a mapping to [−1, 1] or a scale would underflow."""
_WARN, _REFUSE = 0.02, 0.25
"""Deviation of the noise on a column's mean, as a share of its half-range, that is warned of or refused."""


@dataclass(frozen=True)
class ColumnScales:
    """A center and a scale for each column.

    Args:
        center: What is subtracted from each column.
        scale: What each column is divided by; above 0.
        source: Where the values come from; it decides the `conditions` of a guarantee.
        spent: The classic differential privacy guarantee of having released them, if they were paid for.

    Raises:
        ValueError: Lengths differ, a scale is not above 0, or ``spent`` does not belong to the source.

    Example:
        >>> declared_scales([50, 5], [30, 4]).may_be_published
        True
    """

    center: Floats
    scale: Floats
    source: Source
    spent: Guarantee | None = None

    def __post_init__(self) -> None:
        length = _length(self.center)
        object.__setattr__(self, "center", check.vector("center", self.center, length=length))
        object.__setattr__(self, "scale", check.vector("scale", self.scale, length=length, above=0))
        check.choice("source", self.source, CONDITIONS)
        if isinstance(self.spent, Guarantee) != (self.source == "private"):
            raise ValueError(
                f"spent = {self.spent!r} does not belong to source = {self.source!r}: private scales carry "
                "the guarantee that was paid for them, others None"
            )

    @property
    def may_be_published(self) -> bool:
        """Whether the values themselves tell nothing that was not public or paid for."""
        return self.source in PUBLISHED

    @property
    def conditions(self) -> tuple[str, ...]:
        """What must be said beside a guarantee that rests on these scales."""
        return CONDITIONS[self.source]


def declared_scales(center: Any, scale: Any) -> ColumnScales:
    """Public scales: from common knowledge, a census, another population. They cost nothing.

    Args:
        center: What is subtracted from each column.
        scale: What each column is divided by; above 0.

    Returns:
        Scales whose guarantee says that they were declared public.

    Edges: scales of last year's table *of the same people* are `confidential_scales`, not public.

    Example:
        >>> declared_scales([50, 5], [30, 4]).source
        'declared'
    """
    return ColumnScales(center, scale, "declared")


def confidential_scales(center: Any, scale: Any) -> ColumnScales:
    """Scales learned from other data about the same people, such as last year's table.

    Args:
        center: What is subtracted from each column.
        scale: What each column is divided by; above 0.

    Returns:
        Scales whose guarantee is conditional on them.

    Does not guarantee: anything about those data. The guarantee becomes conditional, and says so; the
    values must not be published.

    Example:
        >>> confidential_scales([50, 5], [30, 4]).may_be_published
        False
    """
    return ColumnScales(center, scale, "confidential")


def data_scales(X: Any) -> ColumnScales:
    """The data's own means and deviations, as in the paper; a constant column keeps its unit.

    Args:
        X: Table of n people by d columns; finite numbers.

    Returns:
        Scales whose guarantee is conditional on them.

    Does not guarantee: any privacy of its own. One person's row moves everyone's scaled row, so the
    guarantee becomes conditional, and says so.

    Example:
        >>> data_scales([[1.0], [3.0]]).center
        array([2.])
    """
    return scales_of(ColumnMoments.of(np.ascontiguousarray(check.table(X).T)), "data")


def scales_of(moments: ColumnMoments, source: Source, names: Sequence[str] | None = None) -> ColumnScales:
    """Means and deviations as scales, for a source that costs nothing or is a condition.

    Args:
        moments: What is known of the columns.
        source: Where the rows come from.
        names: What messages call the columns; by default their places in X.

    Returns:
        The scales; a column that is constant up to rounding has scale 1.

    Raises:
        ValueError: A column's values are too large for a mean and a deviation.

    Example:
        >>> scales_of(ColumnMoments.of(np.array([[1.0, 3.0]])), "data").scale
        array([1.])
    """
    center, deviation = moments.mean, moments.deviation
    wrong = np.flatnonzero(~(np.isfinite(center) & np.isfinite(deviation)))
    if len(wrong):
        which = f"column {wrong[0]} of X" if names is None else f"column {names[wrong[0]]!r}"
        raise ValueError(f"{which} has values too large for a mean and a deviation: rescale it first")
    # A column that is constant up to rounding has no deviation to divide by.
    flat = deviation <= 1e-12 * np.maximum(np.abs(center), 1e-300)
    return ColumnScales(center, np.where(flat, 1.0, deviation), source)


@dataclass(frozen=True)
class Bounds:
    """Public bounds of every column: what lies outside counts as the bound itself.

    Args:
        lower: The lower bound of each column.
        upper: The upper bound of each column.

    Raises:
        ValueError: A lower bound is not below its upper bound, or there are too many columns.

    Example:
        >>> Bounds([0, 0], [10, 100]).middle
        array([ 5., 50.])
    """

    lower: Floats
    upper: Floats

    def __post_init__(self) -> None:
        length = _length(self.lower)
        object.__setattr__(self, "lower", check.vector("lower", self.lower, length=length))
        object.__setattr__(self, "upper", check.vector("upper", self.upper, length=length))
        if 2 * length > check.MAX_COLUMNS:
            raise ValueError(f"X has {length} columns: private scales take at most {check.MAX_COLUMNS // 2}")
        half = self.half
        if not (half >= _NARROWEST).all():
            at = int(np.argmin(half))
            raise ValueError(
                f"upper[{at}] = {float(self.upper[at])!r} is not above lower[{at}] = "
                f"{float(self.lower[at])!r} by at least {2 * _NARROWEST:g}: give bounds lower < upper"
            )

    @property
    def half(self) -> Floats:
        """Half of each column's range."""
        return np.asarray(self.upper / 2 - self.lower / 2)

    @property
    def middle(self) -> Floats:
        """The middle of each column's range."""
        return np.asarray(self.upper / 2 + self.lower / 2)

    def sums(self, X: Floats) -> Integers:
        """Sums over rows of u and of u², u ∈ [−1, 1] by the bounds, in whole numbers of 2⁻³⁰.

        They are exact, so batches may be added up in any order.
        """
        with np.errstate(over="ignore"):  # what overflows is far outside the bounds and is clipped
            u = np.clip((X - self.middle) / self.half, -1.0, 1.0)
        whole = [np.rint(values * _FIXED_POINT).astype(np.int64).sum(axis=0) for values in (u, u * u)]
        return np.concatenate(whole)


def private_scales(
    X: Any, *, lower: Any, upper: Any, epsilon: float, rng: np.random.Generator | None = None
) -> ColumnScales:
    """Means and deviations under classic ε-differential privacy, given public bounds for each column.

    Each value is mapped to u ∈ [−1, 1] by its bounds. The sums of u and of u² over all rows, 2d numbers,
    move by at most 2√d when one row changes, since (u − w)² + (u² − w²)² ≤ 4 on [−1, 1]. Spherical
    Laplace noise in 2d dimensions hides that. Sums are taken in fixed point, so that the order of
    addition cannot leak.

    Args:
        X: Table of n people by d columns; finite numbers.
        lower: A public lower bound for each column.
        upper: A public upper bound for each column.
        epsilon: ε that is spent on the scales, from 0.0001 to 100.
        rng: None for a release; a generator for a simulation, which promises nothing.

    Returns:
        Scales, with the guarantee that was spent on them.

    Raises:
        ValueError: A bound is wrong, or the noise would drown the scales.

    Guarantees: (2, ε, δ)-TDP with δ at most 2⁻⁹⁰, whatever the data.
    Edges: warned where the noise on a mean exceeds 2% of a column's half-range, refused beyond 25%;
    both depend on n, d and ε only.

    Example:
        >>> X = np.full((10_000, 1), 3.0)
        >>> scales = private_scales(X, lower=[0], upper=[10], epsilon=1)
        >>> scales.spent.epsilon, bool(abs(scales.center[0] - 3) < 0.1)
        (1.0, True)
    """
    table = check.table(X)
    d = table.shape[1]
    bounds = Bounds(check.vector("lower", lower, length=d), check.vector("upper", upper, length=d))
    epsilon = check.number("epsilon", epsilon, at_least=1e-4, at_most=100)
    plan = PrivateScalesPlan(len(table), bounds, epsilon)
    if plan.warning is not None:
        warnings.warn(plan.warning, stacklevel=2)
    return plan.draw(bounds.sums(table), word_stream(rng), "private" if rng is None else "simulated")


@dataclass(frozen=True)
class PrivateScalesPlan:
    """How private scales will be estimated: everything about it that depends on public numbers only.

    Args:
        rows: How many people they are estimated from.
        bounds: Public bounds of each column.
        epsilon: ε that is spent on them, from 0.0001 to 100.

    Raises:
        ValueError: The noise would drown the scales.

    Example:
        >>> plan = PrivateScalesPlan(10_000, Bounds([0], [10]), 1.0)
        >>> plan.spent.epsilon
        1.0
    """

    rows: int
    bounds: Bounds
    epsilon: float

    def __post_init__(self) -> None:
        check.integer("rows", self.rows, at_least=1, at_most=2**31)
        check.number("epsilon", self.epsilon, at_least=1e-4, at_most=100)
        d, scale = len(self.bounds.lower), self._noise()[0]
        deviation = scale * math.sqrt(2 * d + 1) / self.rows
        if deviation > _REFUSE:
            raise ValueError(self._advice(deviation))

    @property
    def warning(self) -> str | None:
        """What to know of the noise on the scales, where it is large."""
        deviation = self._noise()[0] * math.sqrt(2 * len(self.bounds.lower) + 1) / self.rows
        return self._advice(deviation) if deviation > _WARN else None

    @property
    def spent(self) -> Guarantee:
        """What they will have cost: classic differential privacy."""
        imperfection = spherical_laplace_imperfection(2 * len(self.bounds.lower))
        return Guarantee(B=2, epsilon=self.epsilon, delta=imperfection.tail)

    def _noise(self) -> tuple[float, float]:
        """Scale and grid of the noise on the 2d sums."""
        n, d = self.rows, len(self.bounds.lower)
        ideal_epsilon = self.epsilon - 2 * spherical_laplace_imperfection(2 * d).log_error
        first_scale = 2 * math.sqrt(d) / ideal_epsilon
        grid = grid_for(first_scale * math.sqrt(2 * d + 1))
        # Rounding u and u² to fixed point moves each of the 2d sums of a row by at most one unit, and sums
        # of more than 2²³ rows are rounded again when they become floats.
        rounding = math.sqrt(2 * d) * (2 / _FIXED_POINT + math.ulp(float(n)))
        movement = 2 * math.sqrt(d) + rounding + row_growth(2 * d, grid)
        return movement / ideal_epsilon, grid

    def draw(self, sums: Integers, words: WordStream, source: Source = "private") -> ColumnScales:
        """Draw the scales. One call is one release.

        Args:
            sums: The total of `Bounds.sums` over all rows.
            words: Where random bits come from.
            source: ``"private"``, or ``"simulated"`` for words that can be drawn again.

        Returns:
            Scales, with the guarantee that was spent on them.
        """
        n, d, bounds = self.rows, len(self.bounds.lower), self.bounds
        scale, grid = self._noise()
        exact = (sums / _FIXED_POINT)[None, :]
        noisy = add_spherical_laplace(exact, scale, grid, words, bound=float(n))[0] / n
        mean = np.clip(noisy[:d], -1.0, 1.0)
        # Below the noise's own size a variance is not told from zero: do not divide by less.
        floor = (2 * scale * math.sqrt(2 * d + 1) / n) ** 2
        variance = np.clip(noisy[d:] - mean * mean, min(floor, 1.0), 1.0)
        center, spread = bounds.middle + bounds.half * mean, bounds.half * np.sqrt(variance)
        return ColumnScales(center, spread, source, self.spent if source == "private" else None)

    def _advice(self, deviation: float) -> str:
        d = len(self.bounds.lower)
        return (
            f"epsilon = {self.epsilon:g} for the scales of {d} columns and {self.rows} rows gives every mean "
            f"a noise of {deviation:.1%} of its column's half-range: use fewer columns, a larger epsilon "
            f"(about {self.epsilon * deviation / _WARN:.2g}) or declared scales"
        )


def _length(values: Any) -> int:
    """How many columns a list is for; what has no length is left to `check.vector` to refuse."""
    try:
        return max(1, len(values))
    except TypeError:
        return 1

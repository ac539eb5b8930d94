"""Column scales: what is subtracted from each column and what it is divided by.

Scales that come from the data are a statistic of the data. So each set of scales knows where it came
from, what was paid for it, and which condition a guarantee that rests on it must carry.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from targetdp import check
from targetdp.guarantee import Guarantee
from targetdp.noise import add_spherical_laplace, grid_for, row_growth, spherical_laplace_imperfection
from targetdp.typing import Floats
from targetdp.words import word_stream

Source = Literal["declared", "private", "data", "simulated"]

_CONDITIONS: dict[str, tuple[str, ...]] = {
    "declared": ("Column scales were declared public: they were not learned from these people.",),
    "private": (
        "Column scales were estimated from the data under classic differential privacy and paid for: the "
        "guarantee holds for pairs within B under the released scales, and the bounds were public.",
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

_FIXED_POINT = 2**30
_NARROWEST = 1e-290
"""Half-range below which a mapping to [−1, 1] or a scale would underflow."""
_WARN, _REFUSE = 0.02, 0.25
"""Deviation of the noise on a column's mean, as a share of its half-range, that is warned of or refused."""


@dataclass(frozen=True)
class ColumnScales:
    """A center and a scale for each column.

    ``spent`` is the classic differential privacy guarantee of having released them, if they were paid for.
    """

    center: Floats
    scale: Floats
    source: Source
    spent: Guarantee | None = None

    def __post_init__(self) -> None:
        length = _length(self.center)
        object.__setattr__(self, "center", check.vector("center", self.center, length=length))
        object.__setattr__(self, "scale", check.vector("scale", self.scale, length=length, above=0))
        check.choice("source", self.source, _CONDITIONS)
        if isinstance(self.spent, Guarantee) != (self.source == "private"):
            raise ValueError(
                f"spent = {self.spent!r} does not belong to source = {self.source!r}: private scales carry "
                "the guarantee that was paid for them, others None"
            )

    @property
    def conditions(self) -> tuple[str, ...]:
        """What must be said beside a guarantee that rests on these scales."""
        return _CONDITIONS[self.source]


def declared_scales(center: Any, scale: Any) -> ColumnScales:
    """Public scales: from common knowledge, a census, another population. They cost nothing.

    Edges: scales of last year's table *of the same people* are confidential, not public.
    """
    return ColumnScales(center, scale, "declared")


def data_scales(X: Any) -> ColumnScales:
    """The data's own means and deviations, as in the paper; a constant column keeps its unit.

    Does not guarantee: any privacy of its own. One person's row moves everyone's scaled row, so the
    guarantee becomes conditional, and says so.
    """
    table = check.table(X)
    with np.errstate(over="ignore", invalid="ignore"):
        center, deviation = table.mean(axis=0), table.std(axis=0)
    if not (np.isfinite(center).all() and np.isfinite(deviation).all()):
        raise ValueError("X has values too large for a mean and a deviation: rescale its columns first")
    # A column that is constant up to rounding has no deviation to divide by.
    flat = deviation <= 1e-12 * np.maximum(np.abs(center), 1e-300)
    return ColumnScales(center, np.where(flat, 1.0, deviation), "data")


def private_scales(
    X: Any, *, lower: Any, upper: Any, epsilon: float, rng: np.random.Generator | None = None
) -> ColumnScales:
    """Means and deviations under classic ε-differential privacy, given public bounds for each column.

    Each value is mapped to u ∈ [−1, 1] by its bounds. The sums of u and of u² over all rows, 2d numbers,
    move by at most 2√d when one row changes, since (u − w)² + (u² − w²)² ≤ 4 on [−1, 1]. Spherical
    Laplace noise in 2d dimensions hides that. Sums are taken in fixed point, so that the order of
    addition cannot leak.

    Guarantees: (2, ε, δ)-TDP with δ at most 2⁻⁹⁰, whatever the data.
    Edges: warned where the noise on a mean exceeds 2% of a column's half-range, refused beyond 25%;
    both depend on n, d and ε only.
    """
    table = check.table(X)
    n, d = table.shape
    low = check.vector("lower", lower, length=d)
    high = check.vector("upper", upper, length=d)
    half, middle = (high / 2 - low / 2), (high / 2 + low / 2)
    if not (half >= _NARROWEST).all():
        at = int(np.argmin(half))
        raise ValueError(
            f"upper[{at}] = {float(high[at])!r} is not above lower[{at}] = {float(low[at])!r} by at least "
            f"{2 * _NARROWEST:g}: give bounds lower < upper"
        )
    if 2 * d > check.MAX_COLUMNS:
        raise ValueError(f"X has {d} columns: private scales take at most {check.MAX_COLUMNS // 2}")
    if n > 2**31:
        raise ValueError(f"X has {n} rows: private scales take at most {2**31}")
    epsilon = check.number("epsilon", epsilon, at_least=1e-4, at_most=100)
    words = word_stream(rng)

    imperfection = spherical_laplace_imperfection(2 * d)
    ideal_epsilon = epsilon - 2 * imperfection.log_error
    first_scale = 2 * math.sqrt(d) / ideal_epsilon
    grid = grid_for(first_scale * math.sqrt(2 * d + 1))
    # Rounding u and u² to fixed point moves each of the 2d sums of a row by at most one unit, and sums of
    # more than 2²³ rows are rounded again when they become floats.
    rounding = math.sqrt(2 * d) * (2 / _FIXED_POINT + math.ulp(float(n)))
    movement = 2 * math.sqrt(d) + rounding + row_growth(2 * d, grid)
    scale = movement / ideal_epsilon
    _enough_budget(scale * math.sqrt(2 * d + 1) / n, n, d, epsilon)

    with np.errstate(over="ignore"):  # what overflows is far outside the bounds and is clipped
        u = np.clip((table - middle) / half, -1.0, 1.0)
    sums = np.concatenate([_fixed_sum(u), _fixed_sum(u * u)])[None, :]
    noisy = add_spherical_laplace(sums, scale, grid, words, bound=float(n))[0] / n
    mean = np.clip(noisy[:d], -1.0, 1.0)
    # Below the noise's own size a variance is not told from zero: do not divide by less.
    floor = (2 * scale * math.sqrt(2 * d + 1) / n) ** 2
    variance = np.clip(noisy[d:] - mean * mean, min(floor, 1.0), 1.0)
    center, spread = middle + half * mean, half * np.sqrt(variance)
    if rng is not None:
        return ColumnScales(center, spread, "simulated")
    return ColumnScales(center, spread, "private", Guarantee(B=2, epsilon=epsilon, delta=imperfection.tail))


def _fixed_sum(values: Floats) -> Floats:
    """Column sums of values in [−1, 1] as exact whole numbers of 2⁻³⁰."""
    whole = np.rint(values * _FIXED_POINT).astype(np.int64)
    return np.asarray(whole.sum(axis=0) / _FIXED_POINT)


def _enough_budget(deviation: float, n: int, d: int, epsilon: float) -> None:
    """Refuse or warn where the noise would drown the scales. Depends on public numbers only."""
    advice = (
        f"epsilon = {epsilon:g} for the scales of {d} columns and {n} rows gives every mean a noise of "
        f"{deviation:.1%} of its column's half-range: use fewer columns, a larger epsilon "
        f"(about {epsilon * deviation / _WARN:.2g}) or declared scales"
    )
    if deviation > _REFUSE:
        raise ValueError(advice)
    if deviation > _WARN:
        warnings.warn(advice, stacklevel=3)


def _length(values: Any) -> int:
    """How many columns a list is for; what has no length is left to `check.vector` to refuse."""
    try:
        return max(1, len(values))
    except TypeError:
        return 1

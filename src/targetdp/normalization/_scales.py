"""Column scales: what is subtracted from each column and what it is divided by.

Scales that come from the data are a statistic of the data. So each set of scales knows where it came
from, what was paid for it, and which condition a guarantee that rests on it must carry.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from targetdp._core import Floats, check
from targetdp.guarantee import Guarantee
from targetdp.noise import word_stream
from targetdp.normalization._moments import ColumnMoments
from targetdp.normalization._quantiles import PrivateScales, count_distances, count_values

ReleaseSource = Literal["declared", "private", "earlier"]
"""Where the scales of a release may come from."""
Source = Literal[ReleaseSource, "confidential", "data", "simulated"]

CONDITIONS: dict[str, tuple[str, ...]] = {
    "declared": ("Column scales were declared public: they were not learned from these people.",),
    "private": (
        "Column scales were estimated from the data under classic differential privacy and paid for: the "
        "guarantee holds for pairs within B under the released scales.",
    ),
    "earlier": (
        "Column scales were estimated by an earlier release of this desk, under classic differential "
        "privacy, and paid for there by the people who were in it; they cost nobody anything here. The "
        "guarantee holds for pairs within B under them.",
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


def private_scales(X: Any, *, epsilon: float, rng: np.random.Generator | None = None) -> ColumnScales:
    """Robust scales under classic ε-differential privacy: medians, and the distances 97.5% are within.

    Both are drawn among the cells of a grid that is the same for all tables, with chances that one row can
    change by a factor of at most e^ε. Long tails and many zeros do not move them, and no bounds are needed.

    Args:
        X: Table of n people by d columns; finite numbers.
        epsilon: ε that is spent on the scales, from 0.0001 to 100.
        rng: None for a release; a generator for a simulation, which promises nothing.

    Returns:
        Scales, with the guarantee that was spent on them.

    Raises:
        ValueError: Noise would drown the scales: fewer than about 950·d/ε rows. Nothing is spent.
        UntoldScalesError: By what was drawn, a column has no scale that could be used, since nearly all
            people have the same value. This is spent.

    Guarantees: (2, ε, δ)-TDP with δ at most 2⁻¹⁰⁰, whatever the data, between tables of as many rows.
    Edges: scales are on a grid with steps of 12.5% or less, from 10⁻⁹ to 10¹²; a column whose values differ
    by less than a small part of their size (0.2% for up to 14 columns, more for many) is refused.

    Example:
        >>> X = np.random.default_rng(0).lognormal(size=(10_000, 1))
        >>> scales = private_scales(X, epsilon=1)
        >>> scales.spent.epsilon, bool(3 < scales.scale[0] < 12)
        (1.0, True)
    """
    columns = np.ascontiguousarray(check.table(X).T)
    plan = PrivateScales(columns.shape[1], len(columns), epsilon)
    words = word_stream(rng)
    center = plan.draw_centers(count_values(columns), words)
    scale = plan.draw_scales(center, count_distances(columns, center), words)
    if rng is not None:
        return ColumnScales(center, scale, "simulated")
    return ColumnScales(center, scale, "private", plan.spent)


def _length(values: Any) -> int:
    """How many columns a list is for; what has no length is left to `check.vector` to refuse."""
    try:
        return max(1, len(values))
    except TypeError:
        return 1

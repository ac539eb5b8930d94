"""From a raw table to rows in the unit ball, with the conditions that the way there imposes."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from targetdp._core import Floats, check
from targetdp.guarantee import Guarantee
from targetdp.normalization._scales import ColumnScales

RowRule = Literal["clip", "unit", "largest"]
"""How rows longer than 1 are shortened; `normalize` says what each rule does."""

ROW_CONDITIONS: dict[str, tuple[str, ...]] = {
    "clip": (),
    "unit": (
        "Each row was divided by its own length: distance B is measured between directions, and two "
        "short rows that were close can be far apart.",
    ),
    "largest": (
        "All rows were divided by the largest length in the table, which is a statistic of the data: the "
        "guarantee holds only between tables with the same largest length.",
    ),
}

_SHRINK = 2.0**-64
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Normalized:
    """A table of rows in the unit ball, and what must be said beside any guarantee about it.

    Args:
        X: The rows, each of length at most 1.
        scales: What the columns were centered and scaled by.
        rows: How rows were shortened.

    Example:
        >>> from targetdp import confidential_scales
        >>> table = normalize([[40.0, 3.0]], confidential_scales([50, 5], [30, 4]))
        >>> len(table.conditions)
        1
    """

    X: Floats = field(repr=False)
    scales: ColumnScales
    rows: RowRule

    @property
    def conditions(self) -> tuple[str, ...]:
        """What must be said beside a guarantee about these rows."""
        return self.scales.conditions + ROW_CONDITIONS[self.rows]

    @property
    def spent(self) -> Guarantee | None:
        """What was already paid for the column scales (classic differential privacy)."""
        return self.scales.spent


@dataclass(frozen=True)
class Privatized:
    """A private table with the guarantee of everything that was done, and its conditions.

    Args:
        X: The private rows.
        guarantee: None if there is none: for k-anonymity, and for every simulation.
        conditions: What must be said beside the guarantee.

    Example:
        >>> from targetdp import GaussianNoise, declared_scales
        >>> table = normalize([[40.0, 3.0]], declared_scales([50, 5], [30, 4]))
        >>> private = GaussianNoise(B=0.25, epsilon=1, delta=1e-5).privatize(table)
        >>> private.X.shape, str(private.guarantee)
        ((1, 2), '(B=0.25, ε=1, δ=1e-05)-TDP')
    """

    X: Floats = field(repr=False)
    guarantee: Guarantee | None
    conditions: tuple[str, ...]


def normalize(X: Any, scales: ColumnScales, rows: RowRule = "clip") -> Normalized:
    """Center and scale the columns, then bring every row into the unit ball (Methods, "Case Studies").

    Args:
        X: Table of n people by d columns; finite numbers.
        scales: Center and scale of each column, from `declared_scales`, `private_scales` or `data_scales`.
        rows: How rows longer than 1 are shortened: ``"clip"`` (each by its own length, if longer than 1),
            ``"unit"`` (every row to length 1) or ``"largest"`` (all by the longest row of the table).

    Returns:
        Rows of length at most 1, with the conditions that scales and rule impose on a guarantee.

    Raises:
        TypeError: ``scales`` is not a `ColumnScales`.
        ValueError: ``X`` has another number of columns than ``scales``, or a value that is not finite.

    Guarantees: every row of the result has length at most 1; with ``rows="clip"`` and public scales no
    two rows are farther apart than their scaled originals, so B-neighbors stay B-neighbors.
    Does not guarantee: anything for scales or a rule that depend on the data, beyond the conditions that
    the result carries.

    Example:
        >>> from targetdp import declared_scales
        >>> table = normalize([[40.0, 3.0]], declared_scales([50, 5], [30, 4]))
        >>> table.X.round(2)
        array([[-0.33, -0.5 ]])
    """
    if not isinstance(scales, ColumnScales):
        raise TypeError(
            f"scales = {scales!r} is not a ColumnScales: make one with declared_scales, private_scales or "
            "data_scales"
        )
    table = check.table(X, columns=len(scales.center))
    check.choice("rows", rows, ROW_CONDITIONS)
    with np.errstate(all="ignore"):
        scaled = (table - scales.center) / scales.scale
    # Rows that leave the range of floats keep their direction. Refusing them would tell a row from one that
    # is clipped to the same point; the largest float in place of a value would turn it away from that point.
    endless = ~np.isfinite(scaled).all(axis=1)
    if endless.any():
        scaled[endless] = _directions(table[endless], scales)
    ball = {"clip": clip_rows, "unit": unit_rows, "largest": shrink_rows}[rows](scaled)
    return Normalized(ball, scales, rows)


def _directions(table: Floats, scales: ColumnScales) -> Floats:
    """Scaled rows that are too long for floats, shortened until the largest value is the largest float."""
    # Halves, so that no difference overflows; then numbers and powers of two apart.
    parts, powers = np.frexp(table * 0.5 - scales.center * 0.5)
    widths, power = np.frexp(scales.scale)
    powers = powers - power
    highest = np.where(parts != 0, powers, np.iinfo(powers.dtype).min).max(axis=1, keepdims=True)
    with np.errstate(under="ignore"):
        near_one = np.ldexp(parts / widths, np.maximum(powers - highest, -2_000))
    return np.asarray(near_one / np.abs(near_one).max(axis=1, keepdims=True) * _LARGEST)


def clip_rows(X: Floats) -> Floats:
    """Move rows outside the unit ball to its surface; the others stay. No distance grows.

    Args:
        X: n rows of d columns.

    Returns:
        Rows of length at most 1.

    Example:
        >>> clip_rows(np.array([[3.0, 4.0], [0.5, 0.0]]))
        array([[0.6, 0.8],
               [0.5, 0. ]])
    """
    X, lengths = _measured(X)
    return np.asarray(X / np.maximum(lengths, 1.0)[:, None])


def unit_rows(X: Floats) -> Floats:
    """Every row that is not zero moves to the surface of the unit ball."""
    X, lengths = _measured(X)
    return clip_rows(X / np.where(lengths > 0, lengths, 1.0)[:, None])


def shrink_rows(X: Floats) -> Floats:
    """All rows are divided by the largest length (if any is above zero)."""
    largest = float(_lengths(X).max())
    if math.isinf(largest):
        return shrink_rows(X * _SHRINK)
    return clip_rows(X / largest) if largest > 0 else X.copy()


def _measured(X: Floats) -> tuple[Floats, Floats]:
    """Rows and their lengths; a row too long for a float is replaced by a small, exact share of itself."""
    lengths = _lengths(X)
    endless = np.isinf(lengths)
    if endless.any():
        X = np.where(endless[:, None], X * _SHRINK, X)
        lengths[endless] = _lengths(X[endless])
    return X, lengths


def _lengths(X: Floats) -> Floats:
    """Euclidean lengths of the rows, without overflow or underflow."""
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    odd = ~((lengths > 1e-140) & (lengths < 1e140))
    if odd.any():
        rest = X[odd]
        largest = np.abs(rest).max(axis=1)
        unit = rest / np.where(largest > 0, largest, 1.0)[:, None]
        with np.errstate(over="ignore"):
            lengths[odd] = largest * np.sqrt(np.einsum("ij,ij->i", unit, unit))
    return np.asarray(lengths)

"""Means, deviations and ranges of columns that come in batches, in any order, from any worker."""

from dataclasses import dataclass

import numpy as np

from targetdp._core import Floats


@dataclass(frozen=True)
class ColumnMoments:
    """What is known of the columns of some rows; ``+`` joins two sets of rows (Chan, Golub and LeVeque).

    Args:
        rows: How many rows.
        mean: The mean of each column.
        squares: Sums of squared differences from the mean.
        lowest: The lowest value of each column.
        highest: The highest value of each column.

    Example:
        >>> both = ColumnMoments.of(np.array([[1.0, 2.0]])) + ColumnMoments.of(np.array([[6.0]]))
        >>> both.rows, both.mean
        (3, array([3.]))
    """

    rows: int
    mean: Floats
    squares: Floats
    lowest: Floats
    highest: Floats

    @classmethod
    def of(cls, columns: Floats) -> "ColumnMoments":
        """The moments of a batch of at least one row, given column by column (d×n)."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = columns.mean(axis=1)
            apart = columns - mean[:, None]
            squares = np.einsum("ij,ij->i", apart, apart)
        return cls(columns.shape[1], mean, squares, columns.min(axis=1), columns.max(axis=1))

    def __add__(self, other: "ColumnMoments") -> "ColumnMoments":
        rows = self.rows + other.rows
        with np.errstate(over="ignore", invalid="ignore"):
            gap = other.mean - self.mean
            mean = self.mean + gap * (other.rows / rows)
            squares = self.squares + other.squares + gap * gap * (self.rows * other.rows / rows)
        return ColumnMoments(
            rows, mean, squares,
            np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest),
        )  # fmt: skip

    @property
    def deviation(self) -> Floats:
        """Deviations (of the rows themselves, not an estimate for others)."""
        return np.asarray(np.sqrt(self.squares / self.rows))

    @property
    def constant(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which columns have one value only."""
        return np.asarray(self.lowest == self.highest)

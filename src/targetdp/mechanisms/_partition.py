"""The paper's Nigerian strategy: privatize random parts of the table one by one."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from targetdp._core import Floats, check
from targetdp.accounting import PrivacyLoss
from targetdp.guarantee import Guarantee, parallel
from targetdp.mechanisms._base import NoiseMechanism
from targetdp.mechanisms._law import NoiseLaw
from targetdp.noise import WordStream

MAX_ROWS = 10**15


@dataclass(frozen=True)
class Partitioned(NoiseMechanism):
    """Cut the rows at random into parts of nearly equal size and privatize each (Lemma 3).

    Args:
        mechanism: What privatizes each part.
        parts: How many parts there are.
        rows: The table's number of rows, a public number: δ is then set per part as in the paper,
            1/(⌈rows/parts⌉ + 1). Without it the mechanism keeps its own δ.

    Raises:
        TypeError: The mechanism adds no noise of a known law, or has no δ to set.
        ValueError: There are fewer rows than parts.

    Guarantees: the mechanism's own guarantee: parts are drawn at random, never from the data, so a row
    is in one part only and parallel composition holds.
    Does not guarantee: any gain from the cutting itself. What shrinks the noise is the larger δ that the
    paper then allows, about ``parts`` times larger: a weaker promise to each person. The same δ without
    parts gives the same noise.

    Example:
        >>> from targetdp.mechanisms import GaussianNoise
        >>> Partitioned(GaussianNoise(B=0.25, epsilon=1, delta=1e-5), parts=6, rows=594).guarantee.delta
        0.01
    """

    mechanism: NoiseMechanism
    parts: int = 6
    rows: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, NoiseMechanism):
            raise TypeError(
                f"mechanism = {self.mechanism!r} is not a noise mechanism: give one, such as GaussianNoise"
            )
        object.__setattr__(self, "parts", check.integer("parts", self.parts, at_least=1))
        if self.rows is not None:
            rows = check.integer(
                "rows", self.rows, at_least=self.parts, at_most=MAX_ROWS, remedy="every part needs a row"
            )
            object.__setattr__(self, "rows", rows)
            with_delta = getattr(self.mechanism, "with_delta", None)
            if with_delta is None:
                raise TypeError(f"{type(self.mechanism).__name__} has no δ to set per part: leave rows out")
            object.__setattr__(self, "mechanism", with_delta(delta_per_part(rows, self.parts)))

    @property
    def guarantee(self) -> Guarantee:
        """Lemma 3: the parts' guarantees in parallel; all are the mechanism's, so one stands for them."""
        return parallel(self.mechanism.guarantee)

    def law(self, dimensions: int) -> NoiseLaw:
        """The mechanism's own: a row is in one part only, so cutting changes nobody's noise."""
        return self.mechanism.law(dimensions)

    def privacy_loss(self, *, distance: float, dimensions: int) -> PrivacyLoss:
        """A row is in one part only, so its loss is that part's."""
        return self.mechanism.privacy_loss(distance=distance, dimensions=dimensions)

    def noise_covariance(self, dimensions: int) -> Floats:
        """The covariance of the mechanism's own noise."""
        return self.mechanism.noise_covariance(dimensions)

    def noise_sd(self, dimensions: int) -> float:
        """The deviation of the mechanism's own noise."""
        return self.mechanism.noise_sd(dimensions)

    @property
    def on_whole_tables(self) -> NoiseMechanism:
        """The mechanism of each part."""
        return self.mechanism.on_whole_tables

    def _dimensions(self, dimensions: int | None) -> int:
        return self.mechanism._dimensions(dimensions)

    def _privatize(self, rows: Floats, words: WordStream, *, fresh: bool) -> Floats:
        n = len(rows)
        if self.rows is not None and n != self.rows:
            raise ValueError(
                f"X has {n} rows, but δ was set for rows = {self.rows}: give the table's own number"
            )
        if n < self.parts:
            raise ValueError(f"parts = {self.parts} is more than the {n} rows of X: every part needs a row")
        out = np.empty_like(rows)
        for part in np.array_split(random_order(n, words), self.parts):
            out[part] = self.mechanism._privatize(rows[part], words, fresh=fresh)
        return out


def delta_per_part(rows: int, parts: int) -> float:
    """The paper's δ for each part: 1/(⌈rows/parts⌉ + 1).

    Args:
        rows: How many rows the table has.
        parts: How many parts it is cut into.

    Returns:
        δ.

    Example:
        >>> delta_per_part(594, 6)
        0.01
    """
    return 1 / (-(-rows // parts) + 1)


def random_order(n: int, words: WordStream) -> np.ndarray[Any, np.dtype[np.intp]]:
    """A uniformly random order of n rows: sort by random words (two equal ones: 1 in 2⁶⁴/n²)."""
    keys = np.empty(n, dtype=np.uint64)
    words.fill(keys)
    return np.argsort(keys)

"""A public linear map of norm at most 1 before the noise: one or a few scores in place of all columns.

A map of norm at most 1 moves no two rows apart, so B-neighbors stay B-neighbors, and noise that is calibrated
for B hides them from each other; but it is noise in as many dimensions as there are scores. Whoever asks for
the scores gives the weights. They are never trusted: they are divided by their norm here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from targetdp._core import Floats, check, row_product
from targetdp.accounting import PrivacyLoss
from targetdp.guarantee import Guarantee
from targetdp.mechanisms._base import NoiseMechanism
from targetdp.mechanisms._law import NoiseDensity, NoiseLaw, noise_law_of
from targetdp.mechanisms._weights import norm_bound, score_rounding, unit_map, weights_matrix
from targetdp.noise import WordSource
from targetdp.normalization import clip_rows


@dataclass(frozen=True)
class LinearLaw(NoiseLaw):
    """Noise on the scores that weights make of rows of the unit ball.

    Args:
        dimensions: How many columns go in; the noise's own dimensions are the scores that come out.
        grid: The noise's own grid.
        weights: A row for each score, with a number for each column; their norm is at most 1.
        noise: The law of the noise on the scores.

    Raises:
        ValueError: These do not fit each other, or the norm is above 1.

    Example:
        >>> from targetdp.mechanisms import GaussianLaw
        >>> law = LinearLaw(2, 2.0**-21, ((0.6, 0.7),), GaussianLaw(1, 2.0**-21, 0.5))
        >>> law.scores, law.makes_scores
        (1, True)
    """

    family = "linear"
    makes_scores = True
    weights: tuple[tuple[float, ...], ...]
    noise: NoiseLaw

    def __post_init__(self) -> None:
        super().__post_init__()
        check.instance("noise", self.noise, NoiseLaw)
        given = weights_matrix(self.weights)
        scores, columns = given.shape
        if columns != self.dimensions:
            raise ValueError(
                f"weights are for {columns} columns, dimensions = {self.dimensions}: they must agree"
            )
        if scores != self.noise.dimensions:
            raise ValueError(
                f"weights make {scores} scores, the noise has {self.noise.dimensions}: they must agree"
            )
        if self.noise.makes_scores:
            raise TypeError("noise is itself a linear map: multiply the two maps, and give one")
        if self.grid != self.noise.grid:
            raise ValueError(f"grid = {self.grid!r} is not the noise's {self.noise.grid!r}: they must agree")
        if norm_bound(given) > 1:
            raise ValueError(
                "weights have a norm above 1: rows would move apart, and nothing would be promised"
            )
        object.__setattr__(self, "weights", tuple(map(tuple, given.tolist())))

    @property
    def stretch(self) -> float:
        """How much farther apart two rows can be afterwards: at most 1."""
        return norm_bound(np.array(self.weights))

    @property
    def scores(self) -> int:
        """How many numbers come out for each row."""
        return self.noise.dimensions

    def loss_at(self, distance: float) -> PrivacyLoss:
        """The noise's own loss at the distance that the map leaves."""
        return self.noise.loss_at(self.distance_after(distance))

    def distance_after(self, distance: float) -> float:
        """How far apart the scores of two rows at a distance are at most, rounding included."""
        return distance * self.stretch + score_rounding(self.dimensions, self.scores)

    @property
    def deviation_per_column(self) -> float:
        """The deviation of the noise on each score."""
        return self.noise.deviation_per_column

    @property
    def covariance(self) -> Floats:
        """The covariance of the noise on the scores."""
        return self.noise.covariance

    @property
    def density(self) -> NoiseDensity:
        """The density of the noise on the scores."""
        return self.noise.density

    @property
    def added(self) -> NoiseLaw:
        """The noise on the scores."""
        return self.noise

    def kept_directions(self) -> Floats:
        """The weights, which make scores of rows."""
        return np.array(self.weights)

    @property
    def linear(self) -> "LinearLaw":
        """The law itself."""
        return self

    @property
    def steps(self) -> float:
        """The grid of the noise on the scores."""
        return self.noise.steps

    def add_to(self, rows: Floats, words: WordSource) -> Floats:
        """Scores of rows of the unit ball, with noise."""
        return self.noise_on(row_product(rows, np.array(self.weights).T), words)

    def noise_on(self, scores: Floats, words: WordSource) -> Floats:
        """Add noise to scores.

        Args:
            scores: Sums as `row_product` takes them, of rows as `clip_rows` leaves them.
            words: Where random bits come from.

        Returns:
            As many private scores.
        """
        return self.noise.add_to(clip_rows(scores), words)

    @classmethod
    def from_record(cls, fields: dict[str, Any]) -> Self:
        """See `NoiseLaw.from_record`; the noise has a record of its own."""
        if isinstance(fields.get("noise"), Mapping):
            if fields["noise"].get("family") == cls.family:
                raise ValueError("noise is itself a linear map: no release has that")
            fields["noise"] = noise_law_of(fields["noise"])
        return cls(**fields)

    def record(self) -> dict[str, Any]:
        """See `NoiseLaw.record`; the noise has a record of its own."""
        weights = [list(row) for row in self.weights]
        return super().record() | {"weights": weights, "noise": self.noise.record()}


@dataclass(frozen=True)
class Scores(NoiseMechanism):
    """Noise on weighted sums of the columns, in place of the columns themselves.

    Args:
        weights: A row for each score and a column for each feature. Only directions count: they are divided
            by their norm, so that whoever chooses them cannot make the noise look small.
        noise: The mechanism that adds noise to the scores.

    Raises:
        ValueError: A row of weights is zero, or there are more scores than columns or than `MOST_SCORES`.

    Guarantees: what ``noise`` does, floating point included, for whatever weights.
    Does not guarantee: anything about how the weights were learned. Weights that were learned from another
    release about the same people are no new cost (post-processing); the two releases add up for them.

    Example:
        >>> from targetdp.mechanisms import SphericalLaplace
        >>> mechanism = Scores([1.0, 2.0, 2.0], SphericalLaplace(B=0.25, epsilon=1))
        >>> mechanism.privatize([[0.1, 0.2, 0.3]]).shape
        (1, 1)
    """

    makes_scores = True
    weights: Any = field(repr=False)
    noise: NoiseMechanism

    def __post_init__(self) -> None:
        check.instance("noise", self.noise, NoiseMechanism)
        if self.noise.makes_scores:
            raise TypeError("noise makes scores itself: multiply the two maps, and give one")
        given = unit_map(self.weights, self.noise.guarantee.B)
        object.__setattr__(self, "weights", tuple(map(tuple, given.tolist())))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the noise: the map moves no two rows apart."""
        return self.noise.guarantee

    def law(self, dimensions: int) -> LinearLaw:
        """The map and the law of the noise on the scores."""
        columns, noise = len(self.weights[0]), self.noise.law(len(self.weights))
        if check.dimensions(dimensions) != columns:
            raise ValueError(f"X has {dimensions} columns, weights are for {columns}: give the same columns")
        return LinearLaw(columns, noise.grid, self.weights, noise)

    @property
    def added(self) -> NoiseMechanism:
        """The noise on the scores."""
        return self.noise

    def exposed_direction(self, dimensions: int) -> Floats:  # noqa: ARG002 (the weights know)
        """The direction in which the map stretches rows the most."""
        return np.asarray(np.linalg.svd(np.array(self.weights))[2][0])

    def without_noise(self, rows: Floats) -> Floats:
        """The exact scores."""
        return np.asarray(rows @ np.array(self.weights).T)

"""The law of what a mechanism draws: numbers that can be printed, and checked by anyone.

A mechanism is a claim (B, ε, δ) and the calibration that turns it into noise, or into chances of answers; its
*law* is that alone. What was promised is derived from the law again, without believing the claim: so a
certificate carries a law, and whoever reads it can do the derivation.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from targetdp._core import Floats, check, import_all
from targetdp.accounting import PrivacyLoss
from targetdp.noise import WordSource, grid_for

if TYPE_CHECKING:
    from targetdp.mechanisms._decide._decision import DecisionLaw
    from targetdp.mechanisms._linear import LinearLaw

_LAWS: dict[str, type["RowLaw"]] = {}


@dataclass(frozen=True)
class RowLaw(ABC):
    """What is drawn for each row on its own, so that rows may be released in any batches.

    Example:
        >>> law: RowLaw = law_of({"family": "decision", "level": 4.0, "programs": 1, "cells": None})
        >>> law.privacy_loss(0.25).epsilon(0.0)
        4.0
        >>> law_of(law.record()) == law
        True
    """

    family: ClassVar[str]
    """What a record of the law calls it; naming it declares the law (`law_of`)."""

    guarantee: ClassVar[None] = None
    """A law makes no claim of its own: what it promises is derived from it at any distance."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "family" in cls.__dict__:
            _LAWS[cls.family] = cls

    def privacy_loss(self, distance: float) -> PrivacyLoss:
        """The exact loss between two tables whose one different row moves by ``distance``."""
        return self.loss_at(check.distance(distance))

    @abstractmethod
    def loss_at(self, distance: float) -> PrivacyLoss:
        """As `privacy_loss`, for a distance that may exceed 2 by the rounding of whatever came before."""

    @property
    def added(self) -> "RowLaw":
        """What is drawn, without what is done to rows before."""
        return self

    @property
    def linear(self) -> "LinearLaw | None":
        """The law with its weights, if rows come out as scores with noise; otherwise None."""
        return None

    @property
    def noisy(self) -> "NoiseLaw | None":
        """The law itself, if it is one of noise that is added; otherwise None."""
        return None

    @property
    def decision(self) -> "DecisionLaw | None":
        """The law itself, if rows come out as decisions; otherwise None."""
        return None

    def record(self) -> dict[str, Any]:
        """The law as plain data; `law_of` reads it back."""
        return {"family": self.family} | asdict(self)

    @classmethod
    def from_record(cls, fields: dict[str, Any]) -> Self:
        """The law of a record's fields (without its family)."""
        return cls(**fields)


class NoiseDensity(ABC):
    """The density of known noise, as a function of distance.

    An adversary knows the mechanism (Kerckhoffs), and so the density of z − x. It depends on a distance only,
    once rows are *whitened*: for most laws as they are, for a projection after undoing what R did to the
    noise. So a density is a whitening and a function of the squared distance.

    Example:
        >>> density: NoiseDensity = NormalDensity(1.0)
        >>> density.nearer_is_likelier
        True
    """

    nearer_is_likelier = True
    """Whether rows are ordered by likelihood exactly as they are by Euclidean distance."""
    note = ""
    """What the caller should be told about it."""
    normal_mixture = False
    """Whether the noise is normal, or normal of a random variance (`variance_shape`), on whitened rows."""

    def whitened(self, rows: Floats) -> Floats:
        """Rows between which the density depends on the distance only."""
        return rows

    @abstractmethod
    def log_density(self, squared: Floats) -> Floats:
        """Log-density at squared distances between whitened rows, up to a constant; may overwrite them."""

    def variance_shape(self, dimensions: int) -> float | None:  # noqa: ARG002 (some densities use it)
        """The shape of the Gamma distribution of a normal mixture's variance; None where it is fixed."""
        return None

    def plateau(self, distances: Floats) -> tuple[Floats, Floats] | None:  # noqa: ARG002
        """The distances between which the density is what it is at these; None where it falls all the way."""
        return None

    def share_within(self, distances: Floats) -> Floats | None:  # noqa: ARG002
        """The probability that the noise is no longer than each distance, for densities that state it."""
        return None


@dataclass(frozen=True)
class NormalDensity(NoiseDensity):
    """The density of normal noise of one deviation in all directions.

    Args:
        deviation: The noise's standard deviation.
        note: What the caller should know about it.

    Example:
        >>> NormalDensity(0.5).log_density(np.array([1.0]))
        array([-2.])
    """

    deviation: float
    note: str = ""

    @property
    def normal_mixture(self) -> bool:  # type: ignore[override]
        """It is, unless it stands for noise of another density, as its note then says."""
        return not self.note

    def log_density(self, squared: Floats) -> Floats:
        """−r²/(2σ²)."""
        squared *= -0.5 / self.deviation**2
        return squared


class HasLaw(ABC):
    """Noise of a known law: a mechanism's, or the law itself."""

    makes_scores: ClassVar[bool] = False
    """Whether rows come out as scores, in dimensions of their own."""

    @abstractmethod
    def law(self, dimensions: int) -> "NoiseLaw":
        """The noise itself, where each row's is drawn on its own.

        Args:
            dimensions: How many columns the table has.

        Returns:
            The law, from which anyone can derive the guarantee again.

        Raises:
            ValueError: The mechanism treats rows together, or the law is for another number of columns.
        """

    def noise_covariance(self, dimensions: int) -> Floats:
        """Covariance of the noise on one row, on the scale of the rows."""
        return self.law(dimensions).covariance


@dataclass(frozen=True)
class NoiseLaw(RowLaw, HasLaw):
    """Noise that is drawn for each row on its own, so that rows may be privatized in any batches.

    Args:
        dimensions: How many columns a row has.
        grid: The step of the grid that values lie on, a power of two.

    Example:
        >>> from targetdp.mechanisms import GaussianLaw
        >>> law: NoiseLaw = GaussianLaw(10, 2.0**-21, 0.5)
        >>> law.privacy_loss(0.25).epsilon(1e-5) < 3
        True
        >>> law_of(law.record()) == law
        True
    """

    dimensions: int
    grid: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimensions", check.dimensions(self.dimensions))
        grid = check.number("grid", self.grid, above=0)
        if math.frexp(grid)[0] != 0.5:
            raise ValueError(f"grid = {grid!r} is not a power of two: another grid would tell of the data")

    @property
    @abstractmethod
    def deviation_per_column(self) -> float:
        """Deviation of the noise per column (root mean square over columns)."""

    @property
    def covariance(self) -> Floats:
        """Covariance of the noise on one row: the same in all directions, unless a law says otherwise."""
        return np.asarray(np.eye(self.dimensions) * self.deviation_per_column**2)

    @property
    def noisy(self) -> "NoiseLaw":
        """The law itself."""
        return self

    def law(self, dimensions: int) -> "NoiseLaw":
        """The law itself; a ValueError for another number of columns."""
        if dimensions != self.dimensions:
            raise ValueError(
                f"dimensions = {dimensions} does not fit a law of noise on {self.dimensions} columns: "
                "give the number of columns that were released"
            )
        return self

    def loss_between(self, distance: float, dimensions: int) -> PrivacyLoss:
        """See `Mechanism.loss_between`."""
        return self.law(dimensions).privacy_loss(distance)

    def known_density(self, dimensions: int) -> NoiseDensity:
        """See `NoiseMechanism.known_density`."""
        return self.law(dimensions).density

    def known_map(self, dimensions: int) -> Floats:
        """See `NoiseMechanism.known_map`."""
        return self.law(dimensions).kept_directions()

    @property
    @abstractmethod
    def density(self) -> NoiseDensity:
        """The density of the noise, as anyone knows it who reads the law."""

    @property
    def density_of_a_simulation(self) -> NoiseDensity:
        """The density for a simulation, which may draw anew what a release keeps public."""
        return self.density

    def density_along(self, deviation: float) -> NoiseDensity | None:  # noqa: ARG002 (some laws use it)
        """The density of the noise along one direction; None where it is taken for normal.

        Args:
            deviation: Of the noise along the direction.

        Returns:
            A density in one dimension.
        """
        return None

    @property
    def reaches_all_directions(self) -> bool:
        """Whether the noise has a density in every direction of a row."""
        return True

    def kept_directions(self) -> Floats:
        """The matrix that rows are multiplied by, on average: the unit matrix, unless directions are lost."""
        return np.eye(self.dimensions)

    @property
    def added(self) -> "NoiseLaw":
        """The noise itself, without what is done to rows before it is added."""
        return self

    @property
    def steps(self) -> float:
        """What every released value is a whole multiple of; 0 where rows are transformed after the noise."""
        return self.grid

    @abstractmethod
    def add_to(self, rows: Floats, words: WordSource) -> Floats:
        """Add noise to rows of the unit ball.

        Args:
            rows: Rows of length at most 1.
            words: Where random bits come from.

        Returns:
            As many private rows.
        """

    def _fine_enough(self, deviation: float) -> None:
        """Refuse a grid coarser than 2⁻²⁰ of the deviation, where `docs/noise.md` proves nothing."""
        if self.grid > grid_for(deviation):
            raise ValueError(
                f"grid = {self.grid!r} is too coarse for noise of deviation {deviation!r}: "
                f"at most {grid_for(deviation)!r}"
            )


def all_laws() -> Mapping[str, type[RowLaw]]:
    """Every law by its family."""
    import_all("targetdp.mechanisms", r"^class \w+\((Noise|Row)Law\)")
    return dict(sorted(_LAWS.items()))


def law_of(record: Mapping[str, Any]) -> RowLaw:
    """Read the law that `RowLaw.record` wrote.

    Args:
        record: Plain data: the law's ``family``, and its fields.

    Returns:
        The law.

    Raises:
        ValueError: Something is missing, unknown or out of range.

    Example:
        >>> law_of({"family": "gaussian", "dimensions": 10, "grid": 2.0**-21, "deviation": 0.5}).family
        'gaussian'
    """
    fields = dict(record)
    family = fields.pop("family", None)
    known = isinstance(family, str) and family in _LAWS  # the usual ones need no look at every file
    laws = _LAWS if known else all_laws()
    try:
        return laws[check.choice("family", family, laws)].from_record(fields)
    except TypeError as error:
        raise ValueError(f"the record of {family} is not complete: {error}") from error


def noise_law_of(record: Mapping[str, Any]) -> NoiseLaw:
    """Read the law of noise that `NoiseLaw.record` wrote.

    Args:
        record: Plain data: the law's ``family``, and its fields.

    Returns:
        The law.

    Raises:
        ValueError: As `law_of`; or it is the law of something else than noise on rows or scores.

    Example:
        >>> record = {"family": "gaussian", "dimensions": 10, "grid": 2.0**-21, "deviation": 0.5}
        >>> noise_law_of(record).deviation_per_column
        0.5
    """
    law = law_of(record)
    if law.noisy is None:
        raise ValueError(f"family = {law.family!r} has no noise on rows: give a release of rows or scores")
    return law.noisy

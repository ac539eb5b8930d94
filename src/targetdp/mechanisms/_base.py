"""What all mechanisms share: validation, clipping, where words come from, and passing conditions on."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from targetdp._core import Floats, check, declared, import_all
from targetdp.accounting import Imperfection, PrivacyLoss
from targetdp.guarantee import Guarantee, sequential
from targetdp.mechanisms._law import HasLaw, NoiseDensity, NormalDensity
from targetdp.noise import WordStream, word_stream
from targetdp.normalization import Normalized, Privatized, clip_rows

SIMULATION = "This is a simulation: its noise can be drawn again, so no guarantee holds."

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-4, 100.0
"""Of a noise mechanism: less would hide everything, more nothing."""

SMALLEST_B = 1e-9
SMALLEST_DELTA = 1e-20
"""Below it the sampler's own tail and float error would no longer be negligible beside δ."""


_TAKEN_AS_NORMAL = "The noise's law is not known row by row: it was taken as normal noise of the same size."


class Mechanism(ABC):
    """Turns a table into a private one of the same shape.

    Guarantees: rows are clipped to the unit ball here, so that no guarantee rests on the caller.

    Example:
        >>> from targetdp.mechanisms import Mondrian
        >>> mechanism: Mechanism = Mondrian(group_size=2)
        >>> mechanism.privatize([[0.1], [0.3]]).round(2)
        array([[0.2],
               [0.2]])
    """

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee | None:
        """What one call of `privatize` without ``rng`` guarantees; None if nothing."""

    def loss_between(self, distance: float, dimensions: int) -> PrivacyLoss | None:  # noqa: ARG002
        """The privacy loss between two rows at a distance; None where no noise of a known law is added."""
        return None

    @property
    def known_noise(self) -> "NoiseMechanism | None":
        """The mechanism itself, if it adds noise, whose law anyone may know; else None."""
        return None

    @overload
    def privatize(self, X: Normalized, rng: np.random.Generator | None = None) -> Privatized: ...

    @overload
    def privatize(self, X: Any, rng: np.random.Generator | None = None) -> Floats: ...

    def privatize(self, X: Any, rng: np.random.Generator | None = None) -> Floats | Privatized:
        """Make a private version of X on the scale of its rows in the unit ball.

        An array in gives an array out. A `Normalized` table in gives a `Privatized` one out, with the
        guarantee and conditions of scales and mechanism together.
        Without ``rng`` this is a release: noise from the operating system's entropy, which cannot be
        repeated; each call is a release of its own and costs its guarantee again. With ``rng`` it is
        a simulation, repeatable and therefore *not* private.

        Args:
            X: n rows of d columns, or what `normalize` made of them.
            rng: None for a release; a generator for a simulation.

        Returns:
            As many private rows.

        Raises:
            ValueError: X is empty, or has a value that is not finite.
        """
        rng = check.generator(rng)
        if isinstance(X, Normalized):
            simulated = rng is not None or X.scales.source == "simulated"
            return Privatized(
                X=self.privatize(X.X, rng),
                guarantee=None if simulated else self._together_with(X.spent),
                conditions=self._conditions(X) + ((SIMULATION,) if rng is not None else ()),
            )
        table = check.table(X)
        # Whatever the caller made of floating-point events: none may stop a release, since data cause them.
        with np.errstate(all="ignore"):
            return self._privatize(clip_rows(table), word_stream(rng), fresh=rng is not None)

    @abstractmethod
    def _privatize(self, rows: Floats, words: WordStream, *, fresh: bool) -> Floats:
        """Privatize rows of the unit ball. ``fresh``: also redraw what a release keeps public."""

    def _conditions(self, X: Normalized) -> tuple[str, ...]:
        """What must be said beside the guarantee."""
        return X.conditions

    def _together_with(self, spent: Guarantee | None) -> Guarantee | None:
        own = self.guarantee
        return own if own is None or spent is None else sequential(spent, own)


class NoiseMechanism(Mechanism, HasLaw):
    """A mechanism that adds noise of a known distribution, so that its privacy loss is known exactly.

    Example:
        >>> from targetdp.mechanisms import GaussianNoise
        >>> mechanism: NoiseMechanism = GaussianNoise(B=0.25, epsilon=1, delta=1e-5)
        >>> mechanism.epsilon(distance=0.125, delta=1e-5, dimensions=10) < 0.5
        True
    """

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What one call of `privatize` without ``rng`` guarantees."""

    @property
    def known_noise(self) -> "NoiseMechanism | None":
        """See `Mechanism.known_noise`."""
        return self

    def privacy_loss(self, *, distance: float, dimensions: int) -> PrivacyLoss:
        """The exact privacy loss between two tables whose one different row moves by a distance.

        Args:
            distance: How far the row moves, in (0, 2].
            dimensions: How many columns the table has.

        Returns:
            The loss, from which ε follows for every δ.
        """
        return self.law(dimensions).privacy_loss(distance)

    def loss_between(self, distance: float, dimensions: int) -> PrivacyLoss:
        """See `Mechanism.loss_between`."""
        return self.privacy_loss(distance=distance, dimensions=dimensions)

    def known_density(self, dimensions: int) -> NoiseDensity:
        """The density of the noise on one row, as an adversary knows it who was told the mechanism.

        Where rows have no law of their own (a truncated projection) it is a normal one of the same size.
        """
        try:
            return self.law(dimensions).density_of_a_simulation
        except ValueError:  # what it cannot do at all is said by its covariance
            variance = float(np.trace(self.noise_covariance(dimensions))) / dimensions
        return NormalDensity(math.sqrt(variance), _TAKEN_AS_NORMAL)

    def known_map(self, dimensions: int) -> Floats:
        """The matrix that rows are multiplied by in the mean, as far as an adversary knows it: none."""
        return np.eye(dimensions)

    @property
    def added(self) -> "NoiseMechanism":
        """The mechanism that adds the noise, without what is done to rows before it."""
        return self

    @property
    def on_whole_tables(self) -> "NoiseMechanism":
        """The mechanism itself; for one that cuts the table into parts, the mechanism of each part."""
        return self

    def exposed_direction(self, dimensions: int) -> Floats:
        """A unit vector along which two rows are the easiest to tell apart."""
        return np.asarray(np.eye(dimensions)[0])

    def without_noise(self, rows: Floats) -> Floats:
        """What rows of the unit ball become, but for the noise."""
        return rows

    def noise_sd(self, dimensions: int) -> float:
        """Deviation of the noise per coordinate (root mean square over coordinates)."""
        return self.law(dimensions).deviation_per_column

    def epsilon(self, *, distance: float, delta: float, dimensions: int | None = None) -> float:
        """The true ε at any distance and δ, not just the label at B; never below the truth.

        Args:
            distance: How far apart two rows are, in (0, 2].
            delta: δ, from 0 to below 1.
            dimensions: How many columns the table has; only one-dimensional mechanisms need not be given it.

        Returns:
            ε.
        """
        r = check.distance(distance)
        d = self._dimensions(dimensions)
        return self.privacy_loss(distance=r, dimensions=d).epsilon(delta)

    def _privatize(self, rows: Floats, words: WordStream, *, fresh: bool) -> Floats:  # noqa: ARG002
        return self.law(rows.shape[1]).add_to(rows, words)

    def _dimensions(self, dimensions: int | None) -> int:
        if dimensions is None:
            raise ValueError(
                "dimensions = None: the true ε depends on the number of columns; pass dimensions=X.shape[1]"
            )
        return check.dimensions(dimensions)


Builder: TypeAlias = Callable[[Guarantee], NoiseMechanism]
"""From a guarantee to the mechanism that keeps it."""

_BUILDERS: dict[str, Builder] = {}
NEVER_QUIETEST: set[str] = set()
"""Mechanisms that another one always beats: `least_noise` need not build them for wide tables."""

_Build = TypeVar("_Build", bound=Builder)


def named(name: str, *, never_quietest: bool = False) -> Callable[[_Build], _Build]:
    """Declare a noise mechanism: the decorated function builds it from a guarantee.

    From then on it can be released, swept, audited and compared by its name.

    Args:
        name: What commands and files call it.
        never_quietest: Whether some other mechanism needs less noise for every guarantee.

    Returns:
        A decorator, which returns the function as it was.

    Example:
        >>> from targetdp.mechanisms import GaussianNoise, noise_mechanisms
        >>> build = noise_mechanisms()["gaussian"]
        >>> build(Guarantee(B=0.25, epsilon=1, delta=1e-5)).guarantee.epsilon
        1.0
    """

    def declare(build: _Build) -> _Build:
        _BUILDERS[name] = build
        if never_quietest:
            NEVER_QUIETEST.add(name)
        return build

    return declare


def noise_mechanisms() -> Mapping[str, Builder]:
    """Every noise mechanism by its name.

    Returns:
        For each name, the function that builds the mechanism from a guarantee.

    Example:
        >>> "spherical-laplace" in noise_mechanisms()
        True
    """
    import_all("targetdp.mechanisms", r"^@named\(")
    return dict(sorted(_BUILDERS.items()))


def mechanism_names() -> tuple[str, ...]:
    """The names of all noise mechanisms; our own are read off the files, so that nothing is imported.

    Returns:
        The names, sorted.

    Example:
        >>> mechanism_names()[0]
        'gaussian'
    """
    return tuple(sorted({*declared("targetdp.mechanisms"), *_BUILDERS}))


def claim(B: float, epsilon: float, delta: float, *, pure: bool) -> Guarantee:
    """The validated (B, ε, δ) that a noise mechanism is calibrated to; δ = 0 only if it can be ``pure``."""
    epsilon = check.number(
        "epsilon",
        epsilon,
        at_least=SMALLEST_EPSILON,
        at_most=LARGEST_EPSILON,
        remedy="other values hide nothing or everything",
    )
    if pure and type(delta) in (int, float) and delta == 0:
        return Guarantee(noise_distance(B), epsilon, 0.0)
    remedy = "or exactly 0 for a pure mechanism" if pure else "Gaussian noise needs δ > 0"
    delta = check.number("delta", delta, at_least=SMALLEST_DELTA, below=1, remedy=remedy)
    return Guarantee(noise_distance(B), epsilon, delta)


def noise_distance(B: float) -> float:
    """A distance B that noise on a grid of doubles can hide in rows of length 1."""
    B = check.distance(B, "B")
    if B < SMALLEST_B:
        raise ValueError(
            f"B = {B!r} is below {SMALLEST_B:g}: rounding would swallow its noise; use a larger B"
        )
    return B


# What of a claimed (ε, δ) is left for ideal noise once the sampler's imperfection is paid.

_ROUNDING = 1e-12
"""Relative part of ε, and twice of δ, kept back: no later rounding can lift the truth over the claim."""


def ideal_budget(epsilon: float, delta: float, imperfection: Imperfection) -> tuple[float, float]:
    """(ε − 2η, e^−η·(δ − τ)): the inverse of `ImperfectLoss.delta`. A δ of zero stays zero."""
    eta, tail = imperfection.log_error, imperfection.tail
    return epsilon * (1 - _ROUNDING) - 2 * eta, max(0.0, delta - tail) * math.exp(-eta) * (1 - 2 * _ROUNDING)

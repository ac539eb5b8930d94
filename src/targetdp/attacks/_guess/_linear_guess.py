"""The best linear guess at a value, from columns that are known and from what a release shows of the row.

A release shows z = A·x + noise: A is the identity where the whole row is released, and the weights where it
is scores. With the mean and covariance of people in general, Gaussian algebra gives the mean and variance of
what is not known. It first takes the known columns into account, then z. Where only a few values are
possible, the same belief says which of them is the likeliest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from targetdp._core import Floats
from targetdp.attacks._match._known_noise import Noise, check_noise
from targetdp.mechanisms import NoiseDensity, NormalDensity

_NOTHING = 1e-12
"""Share of the largest variance (columns in units of their own) below which a direction holds nothing."""
_EXACT = 1e-6
"""Deviation, on the scale of the unit ball, that stands for none at all: it leaves room for rounding."""
_NO_NOISE = NormalDensity(_EXACT)


@dataclass(frozen=True)
class Moments:
    """What somebody knows of people in general: their ``mean`` and their ``covariance``."""

    mean: Floats
    covariance: Floats

    @classmethod
    def of(cls, rows: Floats) -> "Moments":
        """The mean and covariance of a table's rows."""
        mean = rows.mean(axis=0)
        apart = rows - mean
        return cls(mean, apart.T @ apart / len(rows))


@dataclass(frozen=True)
class Observation:
    """What a release shows of a row x: ``map``·x (m×d), and noise of this ``covariance`` and ``density``."""

    map: Floats
    covariance: Floats
    density: NoiseDensity = _NO_NOISE
    note: str = ""

    @classmethod
    def of(cls, weights: Floats | None, noise: Noise | None, columns: int) -> "Observation":
        """Scores by their weights or (None) whole rows, with the noise of a mechanism or law; None: as is."""
        seen = np.eye(columns) if weights is None else weights
        if noise is None:
            return cls(seen, np.zeros((len(seen), len(seen))))
        if getattr(noise, "makes_scores", False):
            noise = _noise_on_scores(noise, weights, columns)
        scores = len(seen)
        noise = check_noise(noise, scores, "noise")
        density = noise.known_density(scores)
        return cls(noise.known_map(scores) @ seen, noise.noise_covariance(scores), density, density.note)

    def log_density(self, rows: Floats, released: Floats, secret: int, values: Floats) -> Floats:
        """How likely each person's released values are for each of some ``values`` of one column (n×K).

        By the noise's own density, up to a constant, for somebody who knows all other columns of ``rows``.
        """
        known = [j for j in range(self.map.shape[1]) if j != secret]
        left = self.density.whitened(released - rows[:, known] @ self.map[:, known].T)
        step = self.density.whitened(np.ascontiguousarray(self.map[:, [secret]].T))[0]
        length = float(step @ step)
        # Along the step and across it: so nothing large cancels where the noise is small.
        best = left @ step / length if length > 0 else np.zeros(len(left))
        across = np.square(left - best[:, None] * step).sum(axis=1)
        return self.density.log_density(across[:, None] + length * np.square(values - best[:, None]))


def _noise_on_scores(noise: Noise, weights: Floats | None, columns: int) -> Noise:
    """The noise on scores, if these are the weights that make them."""
    if weights is None:
        raise ValueError("noise is that of scores, and rows are attacked: give the noise of the rows")
    own = noise.law(columns).kept_directions()
    if own.shape != weights.shape or not np.allclose(own, weights, rtol=1e-6, atol=1e-9):
        raise ValueError("weights are not those of the noise's own scores: give noise.weights")
    return noise.added


@dataclass(frozen=True)
class Belief:
    """What is believed of the ``columns`` that are not known: ``means`` by person, ``variances`` for all."""

    columns: tuple[int, ...]
    means: Floats
    variances: Floats

    def guesses(self, place: int) -> tuple[Floats, Floats]:
        """Two guesses at one of the columns: its mean, and the mean drawn outward.

        A value a allows for an error in proportion to |a|. So the guess g that is likeliest to be right has
        the largest |g|·φ(g), φ being the normal density of mean m and variance v: g = (m ± √(m² + 4v))/2,
        with the sign of m.
        """
        m = self.means[:, place]
        reach = np.sqrt(np.square(m) + 4 * self.variances[place])
        return m, np.asarray((m + np.where(m < 0, -reach, reach)) / 2)

    def likeliest(self, place: int, values: Floats, log_odds: Floats | float = 0.0) -> Floats:
        """For each person the likeliest of a few ``values`` (K, or n×K) of one of the columns.

        ``log_odds`` (the same shape) is what else speaks for each of them. Of several that are equally likely
        the first is taken.
        """
        m, v = self.means[:, [place]], max(float(self.variances[place]), _EXACT**2)
        likely = log_odds - np.square(values - m) / (2 * v)
        each = np.broadcast_to(values, likely.shape)
        return np.asarray(np.take_along_axis(each, likely.argmax(axis=1)[:, None], axis=1)[:, 0])


@dataclass(frozen=True)
class KnownColumns:
    """Somebody who knows the ``known`` columns of a person, and what people are like in general."""

    known: tuple[int, ...]
    rest: tuple[int, ...]
    center: Floats
    slopes: Floats
    """By which the others follow from the known columns; ``left`` is the covariance that this leaves."""
    left: Floats

    @classmethod
    def of(cls, moments: Moments, known: Sequence[int]) -> "KnownColumns":
        """What follows from knowing these columns, by the moments of people in general."""
        given, C = list(known), moments.covariance
        rest = [j for j in range(len(C)) if j not in set(given)]
        slopes = _inverse(C[np.ix_(given, given)]) @ C[np.ix_(given, rest)]
        left = C[np.ix_(rest, rest)] - C[np.ix_(rest, given)] @ slopes
        # A column that follows from the known ones leaves a rounding error, which must not be believed in.
        follows = np.diag(left) <= _NOTHING * np.diag(C)[rest]
        left[follows, :] = left[:, follows] = 0.0
        return cls(tuple(given), tuple(rest), moments.mean, slopes, left)

    def alone(self, rows: Floats) -> Belief:
        """What the known columns of ``rows`` tell of the others."""
        given = list(self.known)
        means = self.center[list(self.rest)] + (rows[:, given] - self.center[given]) @ self.slopes
        return Belief(self.rest, means, np.diag(self.left))

    def with_release(self, rows: Floats, released: Floats, observation: Observation) -> Belief:
        """What they tell together with the released values."""
        before, given = self.alone(rows), list(self.known)
        A = observation.map[:, list(self.rest)]
        about = A @ self.left
        gains = _inverse(about @ A.T + observation.covariance) @ about
        news = released - rows[:, given] @ observation.map[:, given].T - before.means @ A.T
        variances = np.maximum(0.0, before.variances - np.einsum("ij,ij->j", about, gains))
        return Belief(self.rest, before.means + news @ gains, variances)


def _inverse(covariance: Floats) -> Floats:
    """The (pseudo-)inverse of a covariance, taken with each column in units of its own."""
    units = np.sqrt(np.diag(covariance))
    units = np.where(units > 0, units, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(units, units))
    kept = values > _NOTHING * max(float(values[-1]), 0.0)
    own = vectors[:, kept] / units[:, None]
    return np.asarray((own / values[kept]) @ own.T)

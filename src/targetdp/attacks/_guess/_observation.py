"""What a release shows of a row, or several releases together: a linear map of it, and noise.

A release shows z = A·x + noise: A is the identity where the whole row is released, and the weights where it
is scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from targetdp._core import Floats
from targetdp.attacks._match._known_noise import Noise, check_noise
from targetdp.mechanisms import NoiseDensity, NormalDensity

EXACT = 1e-6
"""Deviation, on the scale of the unit ball, that stands for none at all: it leaves room for rounding."""
_NO_NOISE = NormalDensity(EXACT)


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


@dataclass(frozen=True)
class JointObservation(Observation):
    """What several releases show of one row, side by side: their noises are independent of each other."""

    parts: tuple[Observation, ...] = ()

    @classmethod
    def of_parts(cls, parts: Sequence[Observation]) -> Observation:
        """All of them as one; a single one as it is."""
        if len(parts) == 1:
            return parts[0]
        notes = dict.fromkeys(part.note for part in parts if part.note)
        covariance = block_diag(*(part.covariance for part in parts))
        shown = np.concatenate([part.map for part in parts])
        return cls(shown, covariance, note=" ".join(notes), parts=tuple(parts))

    def log_density(self, rows: Floats, released: Floats, secret: int, values: Floats) -> Floats:
        """The sum over releases, each by the density of its own noise."""
        ends = np.cumsum([len(part.map) for part in self.parts])
        shown = np.split(released, ends[:-1], axis=1)
        of_parts = (
            part.log_density(rows, own, secret, values) for part, own in zip(self.parts, shown, strict=True)
        )
        return np.asarray(sum(of_parts))


def _noise_on_scores(noise: Noise, weights: Floats | None, columns: int) -> Noise:
    """The noise on scores, if these are the weights that make them."""
    if weights is None:
        raise ValueError("noise is that of scores, and rows are attacked: give the noise of the rows")
    own = noise.law(columns).kept_directions()
    if own.shape != weights.shape or not np.allclose(own, weights, rtol=1e-6, atol=1e-9):
        raise ValueError("weights are not those of the noise's own scores: give noise.weights")
    return noise.added

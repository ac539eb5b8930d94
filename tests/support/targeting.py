"""What tests of learning and scores share: invented people in the unit ball, whose true moments are known."""

from dataclasses import dataclass

import numpy as np

from targetdp import Guarantee, least_noise
from targetdp._core import Floats
from targetdp.mechanisms import NoiseMechanism

SLOPES = np.array([1.0, -0.5, 0.25, 0.0])
DEVIATIONS = np.array([0.15, 0.12, 0.1, 0.08])
RESIDUAL = 0.15


@dataclass(frozen=True)
class Crowd:
    """Rows inside the unit ball, and a target that is a straight line of them plus normal noise."""

    X: Floats
    y: Floats


def covariance() -> Floats:
    """Of the rows: correlated columns of unlike size."""
    mixed = 0.4 + 0.6 * np.eye(len(DEVIATIONS))
    return np.asarray(mixed * np.outer(DEVIATIONS, DEVIATIONS))


def crowd(people: int, seed: int = 0) -> Crowd:
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(np.zeros(len(DEVIATIONS)), covariance(), size=people)
    X = X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return Crowd(X, X @ SLOPES + RESIDUAL * rng.standard_normal(people))


def noisy(promise: Guarantee, columns: int = len(SLOPES)) -> tuple[NoiseMechanism, Floats]:
    """The least noise for a guarantee, and its covariance."""
    mechanism = least_noise(promise, columns).mechanism
    return mechanism, mechanism.noise_covariance(columns)


def unit(w: Floats) -> Floats:
    return np.asarray(w / np.linalg.norm(w))


def best_direction(variance: float) -> Floats:
    """(C + v₂I)⁻¹c from the true moments."""
    C = covariance()
    return unit(np.linalg.solve(C + variance * np.eye(len(C)), C @ SLOPES))


def true_correlation(w: Floats, variance: float) -> float:
    """Of scores along w with noise, and the target."""
    C, w = covariance(), unit(w)
    target = float(SLOPES @ C @ SLOPES) + RESIDUAL**2
    return float(w @ C @ SLOPES / np.sqrt((w @ C @ w + variance) * target))

"""Two tables that should differ by known noise: a true release passes, anything else is found out."""

from typing import Any

import numpy as np
import pytest

from targetdp import GaussianNoise, SphericalLaplace, Staircase
from targetdp.attacks import density_of
from targetdp.attacks._match._known_noise import FEWEST_TO_JUDGE, check_differs_by_noise
from targetdp.mechanisms import StaircaseDensity

NOISES = [
    *((Staircase(B=0.25, epsilon=epsilon), 1) for epsilon in (0.5, 4, 8, 14)),
    (SphericalLaplace(B=0.25, epsilon=4), 1),
    (SphericalLaplace(B=0.25, epsilon=4), 5),
    (GaussianNoise(B=0.25, epsilon=4, delta=1e-6), 3),
]


@pytest.mark.parametrize(("mechanism", "d"), NOISES)
def test_a_true_release_passes_and_other_noise_does_not(mechanism: Any, d: int) -> None:
    """Few people, too: far steps of a staircase may not have been drawn at all (ε = 8 and more)."""
    law = mechanism.law(d)
    for n in (FEWEST_TO_JUDGE, 60, 1_000):
        for seed in range(40):
            rng = np.random.default_rng([n, seed])
            X = rng.uniform(-0.4, 0.4, (n, d))
            check_differs_by_noise(X, mechanism.privatize(X, rng), law)
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.4, 0.4, (2_000, d))
    noise = mechanism.privatize(X, rng) - X
    for wrong in (0.6 * noise, 1.6 * noise, noise + 3 * noise.std(), np.zeros_like(noise)):
        with pytest.raises(ValueError, match="not by the noise of the certificate"):
            check_differs_by_noise(X, X + wrong, law)


def test_too_few_people_or_no_law_are_not_judged() -> None:
    X = np.zeros((FEWEST_TO_JUDGE - 1, 1))
    check_differs_by_noise(X, X + 1, Staircase(B=0.25, epsilon=4).law(1))
    check_differs_by_noise(np.zeros((99, 1)), np.ones((99, 1)), None)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 9.0])
def test_shares_of_the_staircase_are_its_integral(epsilon: float) -> None:
    shape = density_of(Staircase(B=0.3, epsilon=epsilon), 1)
    assert isinstance(shape, StaircaseDensity)
    grid = np.linspace(0, 40 * shape.period / min(1, epsilon), 2_000_001)
    density = np.exp(shape.log_density(np.square(grid)))
    integral = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    at = np.arange(0, len(grid), 1_000)
    assert shape.share_within(grid[at]) == pytest.approx(integral[at] / integral[-1], abs=5e-4)

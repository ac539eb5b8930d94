"""ε at a δ: found fast, and the same as by halving; whatever the curve does, the δ holds there."""

import math
from typing import Any

import pytest

from targetdp.accounting import PrivacyLoss
from targetdp.accounting._loss import last_true
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import least_noise, noise_mechanisms


def by_halving(loss: PrivacyLoss, delta: float) -> float:
    """The slow twin."""
    high = max(1e-6, loss.reach())
    while loss.delta(high) > delta:
        high *= 2
    return last_true(lambda epsilon: loss.delta(epsilon) <= delta, high, 0.0)


@pytest.mark.parametrize("dimensions", [1, 2, 40])
@pytest.mark.parametrize("name", ["gaussian", "spherical-laplace", "least-noise"])
def test_it_is_what_halving_finds(name: str, dimensions: int) -> None:
    asked = Guarantee(0.25, 4.0, 1e-5)
    made = (
        least_noise(asked, dimensions).mechanism if name == "least-noise" else noise_mechanisms()[name](asked)
    )
    law = made.law(dimensions)
    for distance in (0.01, 0.25, 2.0):
        loss = law.privacy_loss(distance)
        for delta in (1e-12, 1e-5, 0.01):
            if loss.delta(0.0) <= delta:
                assert loss.epsilon(delta) == 0.0
                continue
            found = loss.epsilon(delta)
            assert loss.delta(found) <= delta
            assert found == pytest.approx(by_halving(loss, delta), rel=2e-13)


class Odd(PrivacyLoss):
    """A curve that no search for a root expects: steps, or a wall."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def delta(self, epsilon: float) -> float:
        return max(0.0, 1 - math.ceil(epsilon * self.steps) / self.steps / 3)

    def reach(self) -> float:
        return 3.0

    def expected(self) -> float:
        raise NotImplementedError

    def distribution(self, interval: float) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("steps", [1, 2, 7, 1000])
@pytest.mark.parametrize("delta", [1e-9, 0.1, 0.5, 0.9])
def test_of_a_curve_with_steps_it_is_still_a_point_where_it_holds(steps: int, delta: float) -> None:
    loss = Odd(steps)
    found = loss.epsilon(delta)
    assert loss.delta(found) <= delta
    assert found == pytest.approx(by_halving(loss, delta), rel=2e-13)

"""The quietest mechanism for a guarantee, and why."""

import numpy as np
import pytest

from targetdp import Guarantee, SphericalLaplace, Staircase, least_noise
from targetdp.accounting import ImperfectLoss
from targetdp.mechanisms import COMPARED_COLUMNS, noise_mechanisms

DELTA = 1 / 4202


@pytest.mark.parametrize(("d", "bar"), [(10, 0.715), (100, 0.89)])
def test_the_bar_for_noise(d: int, bar: float) -> None:
    choice = least_noise(Guarantee(1, 3.9999, DELTA), d)
    assert choice.mechanism.noise_sd(d) <= bar
    assert choice.name == "spherical-laplace"


@pytest.mark.parametrize("d", [1, 2, 10, 300])
@pytest.mark.parametrize("delta", [0.0, 1e-8, 1e-3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_choice_is_the_smallest_and_keeps_the_guarantee(d: int, delta: float, epsilon: float) -> None:
    asked = Guarantee(0.5, epsilon, delta)
    choice = least_noise(asked, d)
    assert choice.noise[choice.name] == min(choice.noise.values()) == choice.mechanism.noise_sd(d)
    assert set(choice.noise) | set(choice.refused) == set(noise_mechanisms())
    given = choice.mechanism.guarantee
    assert given.B == asked.B
    assert given.epsilon <= asked.epsilon
    assert given.delta <= max(asked.delta, 2.0**-90)


def test_one_column_without_delta_takes_the_staircase_and_says_why() -> None:
    choice = least_noise(Guarantee(0.25, 3.9999), 1)
    assert isinstance(choice.mechanism, Staircase)
    assert "staircase needs the least noise" in choice.why
    assert "spherical-laplace 1.39×" in choice.why
    assert "Gaussian noise needs δ > 0" in choice.why


def test_very_wide_tables_get_an_answer_at_once() -> None:
    choice = least_noise(Guarantee(0.25, 4, 1e-6), 16_384)
    assert isinstance(choice.mechanism, SphericalLaplace)
    assert "never quieter than gaussian" in choice.refused["projection"]


def test_a_guarantee_that_nothing_can_keep_is_refused() -> None:
    with pytest.raises(ValueError, match="no mechanism can give"):
        least_noise(Guarantee(0.25, 1000.0, 1e-6), 3)


def test_a_pure_promise_that_no_sampler_keeps_is_said_to_be_weaker() -> None:
    assert "Asked was δ = 0; the sampler's tail allows 8.08e-28" in least_noise(Guarantee(1, 1), 3).why
    assert "Asked was" not in least_noise(Guarantee(1, 1, 1e-6), 3).why


@pytest.mark.parametrize("name", ["projection", "projection-exact"])
def test_shares_never_add_up_to_more_than_was_asked(name: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(2000):
        asked = Guarantee(0.5, float(10 ** rng.uniform(-2, 1.5)), float(10 ** rng.uniform(-12, -1)))
        assert noise_mechanisms()[name](asked).guarantee.is_at_least(asked)


@pytest.mark.parametrize("epsilon", [1e-4, 0.5, 1.5, 2.0, 10.0, 30.0])
def test_a_staircase_is_calibrated_for_more_error_than_its_neighbors_need(epsilon: float) -> None:
    mechanism = Staircase(B=0.25, epsilon=epsilon)
    loss = mechanism.privacy_loss(distance=0.25)
    assert isinstance(loss, ImperfectLoss)
    level = mechanism.law().level
    assert level + 2 * loss.imperfection.log_error <= epsilon * (1 - 0.9e-12)


def test_projections_are_indeed_never_quieter_than_gaussian_noise() -> None:
    """Which is why wide tables are not compared."""
    for d in (1, 2, 10, 60, COMPARED_COLUMNS):
        noise = least_noise(Guarantee(0.25, 4.0, 1e-6), d).noise
        assert noise["projection-exact"] > noise["gaussian"]
        assert noise["projection"] > noise["gaussian"]

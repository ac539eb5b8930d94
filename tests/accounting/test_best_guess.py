"""How often the best guess is right, against closed forms and by playing the game."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from targetdp.accounting import GaussianLoss, PrivacyLoss, StaircaseLoss, StatedLoss
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import least_noise, noise_mechanisms
from targetdp.mechanisms._staircase import best_step

PAPER = Guarantee(B=0.25, epsilon=3.9999, delta=1 / 4202)


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
def test_gaussian_is_phi_of_half_mu(mu: float) -> None:
    assert GaussianLoss(mu).best_guess() == pytest.approx(float(ndtr(mu / 2)), abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.9999, 8.0])
def test_staircase_is_the_mass_within_half_a_step(epsilon: float) -> None:
    """Noise that falls off from 0 and is even: the best guess is the nearer row, wrong beyond the middle."""
    gamma, fall = best_step(epsilon), math.exp(-epsilon)
    top = (1 - fall) / (2 * (gamma + fall * (1 - gamma)))
    assert gamma < 0.5
    within = 2 * top * (gamma + fall * (0.5 - gamma))
    truth = (1 + within) / 2
    guess = StaircaseLoss(shift=1.0, level=epsilon, gamma=gamma).best_guess()
    assert truth - 1e-12 <= guess <= truth + 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.9999, 8.0])
def test_laplace_in_one_column_is_one_minus_half_the_root(epsilon: float) -> None:
    law = noise_mechanisms()["spherical-laplace"](Guarantee(0.25, epsilon, 0.0))
    guess = law.privacy_loss(distance=0.25, dimensions=1).best_guess()
    truth = 1 - math.exp(-epsilon / 2) / 2
    assert truth - 1e-9 <= guess <= truth + 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (1.0, 0.1), (50.0, 0.0), (0.0, 1.0)])
def test_a_stated_promise_is_randomized_response(epsilon: float, delta: float) -> None:
    """Right with e^ε/(1 + e^ε), and always where it fails."""
    truth = delta + (1 - delta) / (1 + math.exp(-epsilon))
    assert StatedLoss(epsilon, delta).best_guess() == pytest.approx(truth, abs=1e-12)


def test_never_more_than_certain() -> None:
    class Sloppy(StatedLoss):
        def delta(self, epsilon: float) -> float:
            return 1.0 + 1e-9

    loss: PrivacyLoss = Sloppy(1.0, 0.0)
    assert loss.best_guess() == 1.0


@pytest.mark.parametrize(
    ("name", "columns", "of_100"),
    [
        ("staircase", 1, 97),
        ("spherical-laplace", 1, 93),
        ("spherical-laplace", 10, 77),
        ("projection", 10, 54),
    ],
)
def test_one_promise_leaves_very_different_guesses(name: str, columns: int, of_100: int) -> None:
    """The figures of the issue, at one and the same (B, ε, δ)."""
    choice = least_noise(PAPER, columns)
    assert round(100 * choice.best_guess[name]) == of_100
    loss = noise_mechanisms()[name](PAPER).privacy_loss(distance=0.25, dimensions=columns)
    assert choice.best_guess[name] == loss.best_guess()


def test_a_choice_for_scores_offers_the_laplace_too() -> None:
    why = least_noise(PAPER, 1).why
    assert "best guess of any attacker is right in 97.0% of cases; with spherical-laplace in 93.3%" in why
    assert "staircase in" not in why


def test_the_game_is_won_as_often_as_that() -> None:
    """Playing it: 200,000 rounds, each with one of two rows a distance B apart; the nearer one is guessed."""
    mechanism, rng = noise_mechanisms()["staircase"](PAPER), np.random.default_rng(1)
    truth = rng.integers(0, 2, 200_000)
    seen = mechanism.privatize(truth[:, None] * 0.25, rng)[:, 0]
    right = float(np.mean((seen > 0.125) == (truth == 1)))
    guess = mechanism.privacy_loss(distance=0.25, dimensions=1).best_guess()
    assert abs(right - guess) < 4 * math.sqrt(guess * (1 - guess) / 200_000)

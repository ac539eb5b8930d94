"""Mironov's attack (2012): low bits of a float tell which value the noise was added to.

A naive Laplace sampler adds b·ln(u) to a value, for one of 2⁵³ numbers u. Given an output, an attacker goes
through the few u that could have led to it from either value, and rules a value out that none leads from. The
noise may be as loud as it likes. Against a release of ours the same attack finds nothing: outputs lie on a
public grid, and every point of it can be reached from everywhere.
"""

import numpy as np
import pytest
from scipy.stats import binomtest

from targetdp import Guarantee
from targetdp._core import Floats
from targetdp.mechanisms import NoiseMechanism, noise_mechanisms

LOUD = 100.0
"""Scale of the naive noise: by the theory the two values below differ by ε = 0.005, next to nothing."""
VALUES = (0.0, 0.5)
RUNS = 2_000
_NEAR = 8
"""Uniform numbers that are tried on either side of the likeliest."""


def naive(value: float, scale: float, count: int, rng: np.random.Generator) -> Floats:
    """What a textbook does."""
    uniform = rng.integers(1, 2**53, count) * 2.0**-53
    return np.asarray(value + rng.choice((-1.0, 1.0), count) * scale * np.log(uniform))


def could_come_from(output: float, value: float, scale: float) -> bool:
    """Whether the naive sampler could have made this output from this value."""
    likely = np.exp(-abs(output - value) / scale) * 2.0**53
    # Near u = 1 many neighbors lead to one float, and near 0 it takes few to find the one.
    steps = np.arange(-_NEAR, _NEAR + 1) + np.rint(likely)
    uniform = steps[(steps >= 1) & (steps < 2**53)] * 2.0**-53
    noise = scale * np.log(uniform)
    return bool(np.any((value + noise == output) | (value - noise == output)))


def told_apart(outputs: Floats, scale: float) -> float:
    """How often the attacker who rules values out, and tosses a coin otherwise, names the right value.

    Outputs come from the first value and from the second, in two rows.
    """
    right = 0.0
    for truth, row in enumerate(outputs):
        for output in row:
            possible = [could_come_from(output, value, scale) for value in VALUES]
            right += 0.5 if possible[0] == possible[1] else float(possible[truth])
    return right / outputs.size


def test_it_succeeds_against_a_textbook_sampler() -> None:
    rng = np.random.default_rng(1)
    outputs = np.array([naive(value, LOUD, RUNS, rng) for value in VALUES])
    assert all(could_come_from(y, VALUES[0], LOUD) for y in outputs[0][:200])
    allowed = 0.5 + (1 - np.exp(-VALUES[1] / LOUD)) / 2
    assert allowed < 0.503  # what differential privacy leaves to anybody
    assert told_apart(outputs, LOUD) > 0.6


@pytest.mark.parametrize("name", sorted(noise_mechanisms()))
def test_it_fails_against_every_mechanism_of_ours(name: str) -> None:
    """The textbook's attack, with the true scale of the noise, is a coin within what the guarantee allows."""
    mechanism: NoiseMechanism = noise_mechanisms()[name](Guarantee(B=0.5, epsilon=0.05, delta=1e-3))
    outputs = np.array([mechanism.privatize(np.full((RUNS, 1), value))[:, 0] for value in VALUES])
    scale = mechanism.law(1).deviation_per_column / np.sqrt(2)
    found = told_apart(outputs, scale)
    allowed = (1 + mechanism.privacy_loss(distance=0.5, dimensions=1).delta(0.0)) / 2
    assert binomtest(round(found * outputs.size), outputs.size, allowed, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize("name", sorted(set(noise_mechanisms()) - {"projection", "projection-exact"}))
def test_every_output_lies_on_one_public_grid_whatever_the_value(name: str) -> None:
    """So no output rules a value out: the grid depends on the guarantee alone.

    A projection multiplies such points by its public matrix: which float comes out depends on the point only.
    """
    mechanism: NoiseMechanism = noise_mechanisms()[name](Guarantee(B=0.5, epsilon=0.05, delta=1e-3))
    grid = mechanism.law(1).grid
    for value in (0.0, 0.5, 1 / 3, -0.999_999_999, 5e-324):
        steps = mechanism.privatize(np.full((500, 1), value)) / grid
        np.testing.assert_array_equal(steps, np.rint(steps))
        assert len(np.unique(np.rint(steps) % 2)) == 2

"""The grid, and the driver that feeds kernels with words."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from targetdp import GaussianNoise, PrivateProjection, SphericalLaplace, Staircase
from targetdp._core import Words
from targetdp.mechanisms import NoiseMechanism
from targetdp.noise import _sampler as noise
from targetdp.noise._random_words import SimulatedWords

MECHANISMS: list[NoiseMechanism] = [
    GaussianNoise(B=0.25, epsilon=4, delta=1e-5),
    SphericalLaplace(B=0.25, epsilon=4, delta=1e-5),
    SphericalLaplace(B=0.25, epsilon=4),
    Staircase(B=0.25, epsilon=4),
]


@settings(derandomize=True, deadline=None)
@given(st.floats(1e-12, 1e12))
def test_the_grid_is_a_power_of_two_about_a_millionth_of_the_noise(deviation: float) -> None:
    grid = noise.grid_for(deviation)
    assert math.frexp(grid)[0] == 0.5
    assert 2.0**-21 < grid / deviation <= 2.0**-20


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("path", ["simulation", "release"])
def test_every_output_lies_on_the_public_grid(mechanism: NoiseMechanism, path: str) -> None:
    """Whatever digits the data have: the output's low bits tell nothing (Mironov 2012)."""
    d = 1 if isinstance(mechanism, Staircase) else 7
    X = np.random.default_rng(1).standard_normal((2000, d)) / 3 + math.pi * 1e-9
    out = mechanism.privatize(X, np.random.default_rng(2) if path == "simulation" else None)
    grid = noise.grid_for(mechanism.noise_sd(d) * (1 - 1e-6))
    steps = out / grid
    np.testing.assert_array_equal(steps, np.rint(steps))


def test_output_is_rounded_data_plus_noise_that_does_not_depend_on_the_data() -> None:
    """The post-processing argument, literally: same words, other data, same whole steps of noise."""
    mechanism = SphericalLaplace(B=0.25, epsilon=4, delta=1e-5)
    law = mechanism.law(5)
    scale, grid = law.scale, law.grid
    rng = np.random.default_rng(4)
    X = rng.standard_normal((500, 5)) / 5
    zero = noise.add_spherical_laplace(
        np.zeros_like(X), scale, grid, SimulatedWords(np.random.default_rng(9))
    )
    moved = noise.add_spherical_laplace(X, scale, grid, SimulatedWords(np.random.default_rng(9)))
    np.testing.assert_array_equal(moved - zero, np.floor(X / grid + 0.5) * grid)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.integers(1, 40), st.floats(1e-3, 2), st.integers(0, 2**32))
def test_rounded_rows_are_not_farther_apart_than_row_growth_says(d: int, B: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    grid = noise.grid_for(B)
    x = rng.standard_normal((200, d))
    step = rng.standard_normal((200, d))
    step *= B / np.linalg.norm(step, axis=1)[:, None]
    a, b = (np.floor(rows / grid + 0.5) * grid for rows in (x, x + step))
    assert (np.linalg.norm(a - b, axis=1) <= B + noise.row_growth(d, grid)).all()


class Counted:
    """Words from a fixed array, in pieces: what a kernel sees must not depend on the pieces."""

    def __init__(self, words: Words) -> None:
        self.words, self.at = words, 0

    def fill(self, out: Words) -> None:
        out[:] = self.words[self.at : self.at + len(out)]
        self.at += len(out)


@pytest.mark.parametrize("columns", [1, 3, 10, 500])
def test_where_a_buffer_ends_never_matters(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.random.default_rng(5).integers(0, 2**64, size=1 << 20, dtype=np.uint64)
    signal = np.zeros((100_000 // columns, columns))
    results = []
    for size in (1 << 10, 1 << 12, 1 << 17):
        monkeypatch.setattr(noise, "_BUFFER", size)
        results.append(noise.add_spherical_laplace(signal, 0.1, 2.0**-24, Counted(words)))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_a_row_wider_than_the_buffer_gets_a_larger_one() -> None:
    mechanism = GaussianNoise(B=0.25, epsilon=4, delta=1e-5)
    out = mechanism.privatize(np.zeros((3, 16_384)), np.random.default_rng(1))
    assert out.std() == pytest.approx(mechanism.noise_sd(16_384), rel=0.03)


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.5, 1.0])
def test_noise_too_small_for_its_bound_is_refused_whatever_the_data(value: float) -> None:
    """A refusal that depended on the data would tell neighbors apart with certainty."""
    words = SimulatedWords(np.random.default_rng(0))
    table = np.full((2, 2), value)
    with pytest.raises(ValueError, match="cannot be added exactly to values of up to 1e"):
        noise.add_gaussian(table, 1e-6, noise.grid_for(1e-6), words, bound=1e12)
    with pytest.raises(ValueError, match="use a larger B"):
        SphericalLaplace(B=1e-9, epsilon=100).privatize(table)
    assert noise.add_gaussian(table, 1e-6, noise.grid_for(1e-6), words, bound=1.0).shape == (2, 2)


def test_fortran_and_strided_signals_are_served_too() -> None:
    X = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    words = SimulatedWords(np.random.default_rng(1))
    out = noise.add_gaussian(X, 1e-3, noise.grid_for(1e-3), words)
    np.testing.assert_allclose(out, X, atol=0.01)


def test_projection_rounds_the_mapped_signal() -> None:
    """Data that differ by less than the grid give the same release for the same words."""
    mechanism = PrivateProjection(B=0.25, epsilon1=3, epsilon2=0.5, delta1=1e-4, delta2=1e-4, k=500)
    X = np.random.default_rng(2).standard_normal((50, 4)) / 4
    a = mechanism.privatize(X, np.random.default_rng(3))
    b = mechanism.privatize(X + 1e-13, np.random.default_rng(3))
    assert (a == b).mean() > 0.99

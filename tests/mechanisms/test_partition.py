"""Random parts, the paper's δ, and rows in their own order."""

import numpy as np
import pytest

from targetdp import GaussianNoise, Mondrian, Partitioned, PrivateProjection, SphericalLaplace, Staircase
from targetdp.mechanisms._partition import random_order
from targetdp.noise import SecretWords
from targetdp.noise._random_words import SimulatedWords

QUIET = GaussianNoise(B=1e-4, epsilon=4, delta=1e-5)


def test_rows_come_back_in_their_own_order() -> None:
    X = np.random.default_rng(1).uniform(-0.5, 0.5, size=(1001, 3))
    assert np.abs(Partitioned(QUIET, parts=6).privatize(X) - X).max() < 0.01


def test_parts_are_random_nearly_equal_and_cover_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = GaussianNoise._privatize

    def counting(self: GaussianNoise, rows: object, *args: object, **kwargs: object) -> object:
        sizes.append(len(rows))  # type: ignore[arg-type]
        return original(self, rows, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(GaussianNoise, "_privatize", counting)
    Partitioned(QUIET, parts=6).privatize(np.zeros((20, 2)))
    assert sorted(sizes) == [3, 3, 3, 3, 4, 4]


def test_orders_are_uniform_permutations() -> None:
    words = SimulatedWords(np.random.default_rng(2))
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(6000):
        order = tuple(int(i) for i in random_order(3, words))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert max(abs(c - 1000) for c in counts.values()) < 6 * np.sqrt(1000)  # six deviations
    assert not np.array_equal(random_order(50, SecretWords()), random_order(50, SecretWords()))


def test_delta_is_set_per_part_from_the_number_of_rows() -> None:
    whole = PrivateProjection(B=0.1, epsilon1=2, epsilon2=0.9999, delta1=2e-5, delta2=1e-5)
    parts = Partitioned(whole, parts=6, rows=20_788)
    assert parts.guarantee.delta == pytest.approx(1 / 3466)
    inner = parts.mechanism
    assert isinstance(inner, PrivateProjection)
    assert inner.delta1 / inner.delta2 == pytest.approx(2.0)
    assert parts.noise_sd(15) < whole.noise_sd(15)


def test_the_gain_is_only_the_larger_delta() -> None:
    """The same δ without parts gives the same noise."""
    parts = Partitioned(SphericalLaplace(B=0.1, epsilon=3, delta=1e-5), parts=6, rows=20_788)
    whole = SphericalLaplace(B=0.1, epsilon=3, delta=1 / 3466)
    assert parts.noise_sd(15) == whole.noise_sd(15)
    assert parts.guarantee == whole.guarantee
    assert parts.epsilon(distance=2, delta=1e-6, dimensions=15) == whole.epsilon(
        distance=2, delta=1e-6, dimensions=15
    )


def test_bad_parts() -> None:
    with pytest.raises(ValueError, match="parts = 0"):
        Partitioned(QUIET, parts=0)
    with pytest.raises(TypeError, match="not a noise mechanism"):
        Partitioned(Mondrian(2))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no δ to set"):
        Partitioned(Staircase(B=1, epsilon=1), rows=100)
    with pytest.raises(ValueError, match="parts = 6 is more than the 5 rows"):
        Partitioned(QUIET).privatize(np.zeros((5, 1)))
    with pytest.raises(ValueError, match="X has 7 rows, but δ was set for rows = 100"):
        Partitioned(QUIET, rows=100).privatize(np.zeros((7, 1)))

"""The fast private projection has the distribution of the literal one: mean, covariance, two-sample test."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from support.statistics import means_agree, same_distribution
from targetdp import PrivateProjection
from targetdp._core import Floats
from targetdp.mechanisms import literal_private_projection

SPLIT: dict[str, Any] = {"B": 1.0, "epsilon1": 3.0, "epsilon2": 0.9, "delta1": 1e-2, "delta2": 1e-2}

SETTINGS = [  # d, k, rank
    (1, 1, None),
    (1, 30, None),
    (2, 1, None),
    (2, 40, None),
    (2, 40, 1),
    (10, 3, None),
    (10, 3, 2),
    (10, 60, None),
    (10, 60, 4),
    (50, 10, None),
    (50, 200, None),
    (50, 200, 12),
]


def table(d: int) -> Floats:
    """Few rows, spread unevenly over directions, one of them outside the unit ball."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6, d)) * np.linspace(1.0, 0.1, d) * 0.4
    X[-1] *= 20
    return X


@cache
def runs(d: int, k: int, rank: int | None) -> tuple[Floats, Floats]:
    """Many runs of both versions: the rows of a table side by side, so that their joint law is compared.

    As many as power needs (below): the more columns there are, the fewer runs.
    """
    mechanism = PrivateProjection(**SPLIT, k=k, rank=rank)
    X, rng = table(d), np.random.default_rng(4)
    picked = slice(None) if d < 10 else [0, -1]
    count = {1: 1_500, 2: 1_500, 10: 800, 50: 500}[d]
    fast = [mechanism.privatize(X, rng)[picked].ravel() for _ in range(count)]
    literal = [literal_private_projection(mechanism, X, rng)[picked].ravel() for _ in range(count)]
    return np.array(fast), np.array(literal)


@pytest.mark.parametrize(("d", "k", "rank"), SETTINGS)
def test_fast_and_literal_agree(d: int, k: int, rank: int | None) -> None:
    fast, literal = runs(d, k, rank)
    assert means_agree(fast, literal)
    assert same_distribution(fast, literal, np.random.default_rng(6))


@pytest.mark.parametrize(
    ("d", "k", "rank"), [(1, 30, None), (2, 40, 1), (10, 60, None), (10, 60, 4), (50, 200, 12)]
)
def test_another_noise_would_be_noticed(d: int, k: int, rank: int | None) -> None:
    """Power of the same runs: noise that is 10% too small or too large is rejected."""
    fast, literal = runs(d, k, rank)
    for factor in (0.9, 1.1):
        wrong = fast.mean(axis=0) + factor * (fast - fast.mean(axis=0))
        assert not means_agree(wrong, literal)


def test_the_literal_algorithm_is_a_printed_simulation_only() -> None:
    X = table(2)
    exact = PrivateProjection(**SPLIT, k=5, calibration="exact")
    with pytest.raises(ValueError, match="calibration = 'exact'"):
        literal_private_projection(exact, X, np.random.default_rng(0))
    with pytest.raises(TypeError, match="rng = None"):
        literal_private_projection(PrivateProjection(**SPLIT, k=5), X, None)  # type: ignore[arg-type]


def test_row_batches_do_not_change_what_the_literal_algorithm_draws_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from targetdp.mechanisms import _projection as literal

    mechanism = PrivateProjection(**SPLIT, k=7)
    X = np.random.default_rng(1).standard_normal((40, 3))
    whole = literal_private_projection(mechanism, X, np.random.default_rng(2))
    monkeypatch.setattr(literal, "_BATCH_VALUES", 7 * 11)
    batched = literal_private_projection(mechanism, X, np.random.default_rng(2))
    np.testing.assert_allclose(batched, whole, rtol=1e-12, atol=1e-12)

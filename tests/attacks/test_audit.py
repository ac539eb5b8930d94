"""The audit stays under every true claim, and refutes mechanisms that are broken.

Each audit is wrong with probability at most 10⁻⁵ (confidence); releases cannot be seeded, so that is
also the chance that a true claim fails here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from targetdp import GaussianNoise, Partitioned, PrivateProjection, SphericalLaplace, Staircase
from targetdp.attacks.audit import audit_rows, audit_tables, lower_bound
from targetdp.mechanisms.base import NoiseMechanism
from targetdp.normalization import clip_rows
from targetdp.typing import Floats

CONFIDENCE = 1 - 1e-5
RUNS = 200_000
SPLIT: dict[str, Any] = {"epsilon1": 1.2, "epsilon2": 0.8, "delta1": 5e-4, "delta2": 5e-4}

BUILDERS: dict[str, Callable[[float], NoiseMechanism]] = {
    "gaussian": lambda B: GaussianNoise(B=B, epsilon=2, delta=1e-3),
    "laplace": lambda B: SphericalLaplace(B=B, epsilon=2, delta=1e-3),
    "pure laplace": lambda B: SphericalLaplace(B=B, epsilon=2),
    "projection": lambda B: PrivateProjection(B=B, k=300, **SPLIT),
    "exact projection": lambda B: PrivateProjection(B=B, k=300, calibration="exact", **SPLIT),
    "narrow projection": lambda B: PrivateProjection(B=B, k=2, calibration="exact", **SPLIT),
    "partitioned": lambda B: Partitioned(SphericalLaplace(B=B, epsilon=2, delta=1e-3)),
}
CLAIMS: list[tuple[str, NoiseMechanism, int]] = [
    (f"{name} B={B} d={d}", build(B), d)
    for B in (0.25, 2.0)
    for d in (1, 3, 10)
    for name, build in BUILDERS.items()
]
CLAIMS += [(f"staircase B={B}", Staircase(B=B, epsilon=2), 1) for B in (0.25, 2.0)]


def diameter(B: float, d: int) -> tuple[Floats, Floats]:
    """Two rows B apart on a diameter of the ball."""
    x = np.zeros(d)
    x[0] = B / 2
    return x, -x


@pytest.mark.parametrize(("mechanism", "d"), [c[1:] for c in CLAIMS], ids=[c[0] for c in CLAIMS])
def test_no_claim_is_refuted(mechanism: NoiseMechanism, d: int) -> None:
    g = mechanism.guarantee
    x, neighbor = diameter(g.B, d)
    if isinstance(mechanism, PrivateProjection):  # the worst place: along R's longest direction
        x = mechanism.public_projection(d).directions[:, -1] * g.B / 2
        neighbor = -x
    found = audit_rows(mechanism.privatize, x, neighbor, runs=RUNS, delta=g.delta, confidence=CONFIDENCE)
    truth = mechanism.epsilon(distance=g.B, delta=g.delta, dimensions=d)
    assert not found.refutes(truth)
    assert truth <= g.epsilon


@pytest.mark.parametrize(
    ("mechanism", "d", "least"),
    [
        (SphericalLaplace(B=0.25, epsilon=2), 1, 1.9),
        (SphericalLaplace(B=0.25, epsilon=2), 3, 1.6),
        (SphericalLaplace(B=0.25, epsilon=2, delta=1e-3), 3, 1.6),
        (Staircase(B=0.25, epsilon=2), 1, 1.9),
        (GaussianNoise(B=0.25, epsilon=2, delta=1e-2), 3, 1.2),
    ],
)
def test_the_audit_comes_close_to_the_truth(mechanism: NoiseMechanism, d: int, least: float) -> None:
    """An audit that never finds anything proves nothing: most of a tight claim must be found.

    With a fixed seed: how much an audit finds varies, and now and then it picks a poor event.
    """
    x, neighbor = diameter(0.25, d)
    rng = np.random.default_rng(11)
    found = audit_rows(
        lambda X: mechanism.privatize(X, rng), x, neighbor, runs=RUNS, delta=mechanism.guarantee.delta,
        confidence=CONFIDENCE,
    )  # fmt: skip
    assert found.epsilon > least


BROKEN = GaussianNoise(B=0.25, epsilon=2, delta=1e-3)


def no_noise(X: Floats) -> Floats:
    return clip_rows(X)


def a_twentieth_of_the_noise(X: Floats) -> Floats:
    rows = clip_rows(X)
    return rows + (BROKEN.privatize(X) - rows) / 20


def half_of_the_noise(X: Floats) -> Floats:
    rows = clip_rows(X)
    return rows + (BROKEN.privatize(X) - rows) / 2


@pytest.mark.parametrize("broken", [no_noise, a_twentieth_of_the_noise, half_of_the_noise])
def test_too_little_noise_is_caught(broken: Callable[[Floats], Floats]) -> None:
    x, neighbor = diameter(0.25, 3)
    found = audit_rows(broken, x, neighbor, runs=RUNS, delta=1e-3, confidence=CONFIDENCE)
    assert found.refutes(BROKEN.guarantee.epsilon)


def test_rows_that_are_not_clipped_are_caught_by_a_neighbor_outside_the_ball() -> None:
    mechanism = GaussianNoise(B=2, epsilon=2, delta=1e-3)
    x, outside = np.zeros(3), np.array([9.0, 0.0, 0.0])
    deviation = mechanism.noise_sd(3)
    rng = np.random.default_rng(1)

    def unclipped(X: Floats) -> Floats:
        return X + deviation * rng.standard_normal(X.shape)

    caught = audit_rows(unclipped, x, outside, runs=RUNS, delta=1e-3, confidence=CONFIDENCE)
    assert caught.refutes(2)
    clipped = audit_rows(mechanism.privatize, x, outside, runs=RUNS, delta=1e-3, confidence=CONFIDENCE)
    assert not clipped.refutes(2)


def test_the_same_noise_for_every_row_is_caught_by_a_difference_of_rows() -> None:
    mechanism = SphericalLaplace(B=0.25, epsilon=1)

    def shared(X: Floats) -> Floats:
        return clip_rows(X) + mechanism.privatize(np.zeros((1, X.shape[1])))

    known = np.zeros(2)
    X, neighbor = np.array([known, [0.1, 0.0]]), np.array([known, [-0.1, 0.0]])

    def difference(Z: Floats) -> float:
        return float(Z[1, 0] - Z[0, 0])

    found = audit_tables(shared, X, neighbor, difference, runs=2000, confidence=CONFIDENCE)
    assert found.refutes(1)
    honest = audit_tables(mechanism.privatize, X, neighbor, difference, runs=2000, confidence=CONFIDENCE)
    assert not honest.refutes(1)


def test_rank_truncation_is_audited_with_its_covariance() -> None:
    """Whole tables: with rank < d the output also depends on the private covariance of all rows."""
    mechanism = PrivateProjection(B=2, k=50, rank=1, calibration="exact", **SPLIT)
    rest = np.zeros((3, 2))
    X, neighbor = np.vstack([rest, [1.0, 0.0]]), np.vstack([rest, [0.0, 1.0]])

    def score(Z: Floats) -> float:
        return float((Z[:, 0] ** 2 - Z[:, 1] ** 2).sum())

    found = audit_tables(
        mechanism.privatize, X, neighbor, score, runs=4000, delta=1e-3, confidence=CONFIDENCE
    )
    assert not found.refutes(mechanism.guarantee.epsilon)


def test_lower_bounds_hold_with_their_confidence() -> None:
    """Randomized response with ε = 1, audited 400 times at 90%: too high no oftener than luck allows."""
    rng = np.random.default_rng(3)
    p = np.e / (1 + np.e)
    too_high = 0
    for _ in range(400):
        own, other = (rng.random(2000) < p).astype(float), (rng.random(2000) >= p).astype(float)
        too_high += lower_bound(own, other, delta=0.0, confidence=0.9).epsilon > 1
    assert too_high <= binom.isf(1e-6, 400, 0.1)


def test_both_directions_are_looked_at() -> None:
    """An event that is likely on the neighbor only counts as well."""
    rng = np.random.default_rng(4)
    own, other = (
        rng.standard_normal(20_000),
        rng.standard_normal(20_000) + np.where(rng.random(20_000) < 0.3, 9, 0),
    )
    assert lower_bound(own, other, delta=0.0, confidence=0.99).epsilon > 5
    assert lower_bound(other, own, delta=0.0, confidence=0.99).epsilon > 5

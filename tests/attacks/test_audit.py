"""The audit stays under every true claim, and refutes mechanisms that are broken.

Each audit is wrong with probability at most 10⁻⁵ (confidence); releases cannot be seeded, so that is
also the chance that a true claim fails here.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from targetdp import (
    GaussianNoise,
    Guarantee,
    Mondrian,
    Partitioned,
    PrivateProjection,
    SphericalLaplace,
    Staircase,
)
from targetdp._core import Floats, Silent
from targetdp.attacks import Audit, audit, audit_rows, audit_tables
from targetdp.attacks._audit import lower_bound
from targetdp.mechanisms import GaussianLaw, NoiseMechanism
from targetdp.noise import WordStream
from targetdp.normalization import clip_rows

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
    p = math.e / (1 + math.e)
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


# The audit for users


class Counted(Silent):
    """Progress that adds up."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, int | None]] = []
        self.rows = 0

    def phase(self, name: str, rows: int | None) -> None:
        self.phases.append((name, rows))

    def advance(self, rows: int) -> None:
        self.rows += rows


@pytest.mark.parametrize(
    ("mechanism", "d", "least"),
    [
        (GaussianNoise(B=0.25, epsilon=2, delta=1e-2), 3, 1.2),
        (SphericalLaplace(B=0.25, epsilon=2), 3, 1.6),
        (Staircase(B=0.25, epsilon=2), 1, 1.9),
        (PrivateProjection(B=0.25, k=300, calibration="exact", **SPLIT), 10, 0.7),
        (PrivateProjection(B=0.25, k=2, calibration="exact", **SPLIT), 10, 0.7),
        (Partitioned(SphericalLaplace(B=0.25, epsilon=2, delta=1e-3), rows=5000), 3, 1.5),
    ],
)
def test_a_true_claim_holds_and_most_of_it_is_found(mechanism: NoiseMechanism, d: int, least: float) -> None:
    found = audit(mechanism, dimensions=d, confidence=CONFIDENCE, rng=np.random.default_rng(11))
    assert found.holds
    assert found.claimed == mechanism.guarantee.epsilon
    assert found.exact == mechanism.epsilon(distance=0.25, delta=mechanism.guarantee.delta, dimensions=d)
    assert (found.distance, found.delta) == (0.25, mechanism.guarantee.delta)
    assert least < found.epsilon < found.exact


def test_a_release_is_audited_with_its_own_noise_and_a_simulation_can_be_repeated() -> None:
    mechanism = PrivateProjection(B=0.25, k=300, calibration="exact", **SPLIT)
    once, again = (
        audit(mechanism, dimensions=4, runs=20_000, rng=np.random.default_rng(2)) for _ in range(2)
    )
    assert once == again
    real, real_again = (audit(mechanism, dimensions=4, runs=20_000) for _ in range(2))
    assert (real.hits, real.misses) != (real_again.hits, real_again.misses)
    assert real.holds


def test_a_simulated_audit_keeps_the_public_projection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another R for each of the two tables would itself tell them apart."""
    mechanism = PrivateProjection(B=0.25, k=5, calibration="exact", **SPLIT)
    mechanism.public_projection(4)

    def another(*_: object) -> None:
        raise AssertionError("a fresh R was drawn")

    monkeypatch.setattr("targetdp.mechanisms._projection.draw_projection", another)
    assert audit(mechanism, dimensions=4, runs=2000, rng=np.random.default_rng(2)).holds
    with pytest.raises(AssertionError, match="a fresh R"):
        mechanism.privatize(np.zeros((1, 4)), np.random.default_rng(2))


def test_a_truncated_rank_is_audited_in_tables_of_one_row() -> None:
    mechanism = PrivateProjection(
        B=2, k=50, rank=1, calibration="exact", epsilon1=4, epsilon2=1, delta1=1e-3, delta2=1e-3
    )
    counted = Counted()
    found = audit(mechanism, dimensions=2, runs=1000, rng=np.random.default_rng(3), progress=counted)
    assert found.holds
    assert found.epsilon > 0.2
    assert (counted.phases, counted.rows) == ([("audit", 2000)], 2000)


def test_the_learned_directions_are_looked_at() -> None:
    """Nearly all of the loss in Step 4: a score of distances alone would miss it."""
    mechanism = PrivateProjection(
        B=0.6, k=50, rank=1, calibration="exact", epsilon1=0.01, epsilon2=8, delta1=1e-3, delta2=1e-3
    )
    found = audit(mechanism, dimensions=2, runs=1500, rng=np.random.default_rng(4))
    assert found.holds
    assert found.epsilon > 0.8


@dataclass(frozen=True, init=False)
class ATwentieth(GaussianNoise):
    """Gaussian noise that is lost on the way, but for a twentieth."""

    def _privatize(self, rows: Floats, words: WordStream, *, fresh: bool) -> Floats:
        return rows + (super()._privatize(rows, words, fresh=fresh) - rows) / 20


@dataclass(frozen=True, init=False)
class LiesAboutB(GaussianNoise):
    """Noise for people within 0.05 that is said to hide people within 0.25."""

    @property
    def guarantee(self) -> Guarantee:
        return replace(self.claimed, B=0.25)


@dataclass(frozen=True, init=False)
class LittleNoise(GaussianNoise):
    """Accounted for as it is, and claimed as if it were more: too little for a short audit to see."""

    def law(self, dimensions: int) -> GaussianLaw:
        law = super().law(dimensions)
        return replace(law, deviation=law.deviation * 0.95, grid=law.grid / 2)


@pytest.mark.parametrize("rng", [None, np.random.PCG64(5)])
def test_a_twentieth_of_the_noise_is_caught_although_the_accounting_is_right(rng: Any) -> None:
    mechanism = ATwentieth(B=0.25, epsilon=2, delta=1e-3)
    found = audit(mechanism, dimensions=3, runs=20_000, rng=None if rng is None else np.random.Generator(rng))
    assert not found.holds
    assert found.refutes(2)
    assert "refutes the claim of 2 and the accounting's 2: do not use this mechanism" in found.sentence


def test_a_lie_about_b_is_caught() -> None:
    found = audit(LiesAboutB(B=0.05, epsilon=2, delta=1e-3), dimensions=3, runs=20_000)
    assert not found.holds
    assert found.refutes(2)
    assert found.exact is not None
    assert found.exact > 10
    assert "refutes the claim of 2: do not use this mechanism" in found.sentence
    honest = audit(LiesAboutB(B=0.05, epsilon=2, delta=1e-3), dimensions=3, runs=20_000, distance=0.05)
    assert honest.holds


def test_a_claim_below_the_accounting_does_not_hold_even_where_no_run_shows_it() -> None:
    found = audit(LittleNoise(B=0.25, epsilon=2, delta=1e-3), dimensions=3, runs=1000)
    assert not found.refutes(2)
    assert not found.holds
    assert "the claim is 2, which is less: do not use this mechanism" in found.sentence


def test_what_is_claimed_depends_on_distance_and_delta() -> None:
    pure = SphericalLaplace(B=0.25, epsilon=0.5)
    few: dict[str, Any] = {"dimensions": 2, "runs": 1000, "rng": np.random.default_rng(6)}
    assert audit(pure, distance=0.1, **few).claimed == 0.5
    assert audit(pure, distance=0.5, **few).claimed is None, "the switch lemma asks for a larger δ"
    assert audit(pure, distance=0.5, delta=1e-9, **few).claimed == 1.0
    assert audit(pure, delta=0.0, **few).claimed is None
    found = audit(pure, delta=0.0, **few)
    assert found.exact == math.inf
    assert found.holds
    assert "the accounting gives no finite ε, and nothing is claimed at this distance and δ" in found.sentence


def test_what_was_found_can_be_read_and_written() -> None:
    found = audit(SphericalLaplace(B=0.25, epsilon=2), dimensions=2, runs=5000, rng=np.random.default_rng(7))
    assert found.sentence.startswith(
        "From 5,000 runs on each of two rows 0.25 apart, with 99.9% confidence: the true ε at δ = "
    )
    assert found.sentence.endswith(
        "the accounting gives 2, the claim is 2. Nothing was refuted, which is not a proof."
    )
    record = json.loads(json.dumps(found.record(), allow_nan=False))
    assert (record["epsilon"], record["holds"], record["sentence"]) == (found.epsilon, True, found.sentence)
    infinite = replace(found, exact=math.inf)
    assert json.loads(json.dumps(infinite.record(), allow_nan=False))["exact"] is None
    bare = Audit(1.0, 0.0, 0.999, 1000, 500, 10)
    assert bare.holds
    assert "on each of two rows, with" in bare.sentence


def test_memory_is_bounded_and_every_run_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targetdp.attacks._audit._VALUES_AT_ONCE", 3 * 700)
    counted, sizes = Counted(), []

    @dataclass(frozen=True, init=False)
    class Watched(GaussianNoise):
        def _privatize(self, rows: Floats, words: WordStream, *, fresh: bool) -> Floats:
            sizes.append(len(rows))
            return super()._privatize(rows, words, fresh=fresh)

    found = audit(Watched(B=0.25, epsilon=2, delta=1e-3), dimensions=3, runs=1500, progress=counted)
    assert sizes == [700, 700, 100] * 2
    assert counted.rows == 3000
    assert found.runs == 1500


def test_bad_input_is_refused() -> None:
    mechanism: Any = GaussianNoise(B=0.5, epsilon=1, delta=1e-3)
    other: Any = Mondrian(5)
    with pytest.raises(TypeError, match="is not a NoiseMechanism"):
        audit(other, dimensions=3)
    with pytest.raises(ValueError, match="dimensions = 0"):
        audit(mechanism, dimensions=0)
    with pytest.raises(ValueError, match="distance = 3"):
        audit(mechanism, dimensions=3, distance=3)
    with pytest.raises(ValueError, match="delta = 1"):
        audit(mechanism, dimensions=3, delta=1)
    with pytest.raises(ValueError, match="runs = 999"):
        audit(mechanism, dimensions=3, runs=999)
    with pytest.raises(ValueError, match="confidence = 1"):
        audit(mechanism, dimensions=3, confidence=1)
    with pytest.raises(TypeError, match="rng = 5 is not a numpy Generator"):
        audit(mechanism, dimensions=3, rng=5)  # type: ignore[arg-type]


def test_what_is_not_finite_or_not_equally_many_is_refused() -> None:
    x, neighbor = diameter(0.5, 2)
    broken: list[Callable[[Floats], Floats]] = [
        lambda X: X * 1e200,
        lambda X: np.full_like(X, np.nan),
        lambda X: X[:, :1],
        lambda X: X[0],
    ]
    for mechanism in broken:
        with pytest.raises(ValueError, match="the output of the mechanism"):
            audit_rows(mechanism, x, neighbor, runs=1000)
    with pytest.raises(ValueError, match="equally many finite scores"):
        lower_bound(np.zeros(2000), np.zeros(1200), delta=0.0, confidence=0.999)
    with pytest.raises(ValueError, match="equally many finite scores"):
        audit_tables(lambda X: X, x[None], neighbor[None], lambda Z: np.inf, runs=1000)
    with pytest.raises(ValueError, match="equally many finite scores"):
        audit_rows(lambda X: X[: len(X) // 2] if X[0, 0] > 0 else X, x, neighbor, runs=1000)

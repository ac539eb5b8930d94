"""The label is never below the truth: every mechanism keeps the (B, ε, δ) that it claims.

Twice: by the mechanism's own curve, and from nothing but the deviation of its noise, by curves written here.
"""

import itertools
import math

import mpmath  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from targetdp import GaussianNoise, Guarantee, PrivateProjection, SphericalLaplace, Staircase, least_noise
from targetdp.mechanisms import Calibration, NoiseMechanism, printed_step3_sigma, printed_step4_sigma

steady = settings(derandomize=True, deadline=None, max_examples=80)
DIGITS = 40
PAPER = {"epsilon": 3.9999, "delta": 1 / 4202}

Bs = st.floats(math.log(0.0101), math.log(2.0)).map(math.exp)
epsilons = st.floats(math.log(0.05), math.log(20.0)).map(math.exp)
deltas = st.floats(math.log(1e-10), math.log(0.1)).map(math.exp)
columns = st.sampled_from([1, 2, 3, 10, 50, 200])
shares = st.floats(0.001, 1.0)
"""Where a distance lies between 0 and the largest that is looked at."""


# Curves from first principles


def gaussian_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(DIGITS):
        m, e, root = mpmath.mpf(mu), mpmath.mpf(epsilon), mpmath.sqrt(2)
        return (mpmath.erfc((e / m - m / 2) / root) - mpmath.exp(e) * mpmath.erfc((e / m + m / 2) / root)) / 2


def laplace_delta(shift: float, epsilon: float, d: int) -> float:
    """E[(1 − e^{ε−L})₊] by the density of L in prolate spheroidal coordinates (head of `test_laplace`)."""
    if epsilon >= shift:
        return 0.0
    if d == 1:
        return -math.expm1((epsilon - shift) / 2)
    with mpmath.workdps(DIGITS):
        a, half = mpmath.mpf(shift) / 2, mpmath.mpf(1) / 2
        if d % 2:
            order, lower = half, mpmath.sqrt(mpmath.pi / (2 * a)) * mpmath.exp(-a)
            upper = lower
        else:
            order, lower, upper = mpmath.mpf(1), mpmath.besselk(0, a), mpmath.besselk(1, a)
        h = mpmath.mpf(d) / 2
        while order < h:
            lower, upper, order = upper, lower + 2 * order / a * upper, order + 1
        # Both Bessel terms with the constant in front, and e^a moved from one factor to the other.
        front = (
            mpmath.exp(a) * a**d * mpmath.gamma(h) / (mpmath.pi * mpmath.gamma(h - half) * mpmath.gamma(d))
        )
        flat = float(front * mpmath.gamma(h - half) * (2 / a) ** (h - 1) * lower)
        steep = float(front * mpmath.gamma(h + half) * (2 / a) ** h * upper)
    start = math.acos(epsilon / shift)  # L = shift·cos(t), t from 0: near 0 nothing cancels
    x, w = np.polynomial.legendre.leggauss(40)
    edges = start * np.linspace(0, 1, 17)
    t = (edges[:-1, None] + (1 + x) / 2 * (edges[1:] - edges[:-1])[:, None]).ravel()
    weight = (w / 2 * (edges[1:] - edges[:-1])[:, None]).ravel()
    sine, below = np.sin(t), 2 * np.sin(t / 2) ** 2  # below = 1 − cos(t)
    density = sine ** (d - 2) * np.exp(-shift / 2 * below) * (steep + sine**2 * flat)
    return float((weight * density * -np.expm1(epsilon - shift + shift * below)).sum())


@pytest.mark.parametrize(("shift", "epsilon", "d"), [(4.6, 4.0, 2), (9.0, 4.0, 3), (30.0, 2.0, 200)])
def test_the_laplace_oracle_against_a_dense_grid(shift: float, epsilon: float, d: int) -> None:
    middles = (np.arange(1500) + 0.5) / 1500
    radius, angle = (d + 12 * math.sqrt(d) + 30) * middles[:, None], math.pi * middles[None, :]
    weight = np.exp((d - 1) * np.log(radius / d) - radius + d) * np.sin(angle) ** (d - 2)
    loss = np.sqrt(radius**2 - 2 * radius * shift * np.cos(angle) + shift**2) - radius
    brute = (weight * np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - loss)))).sum() / weight.sum()
    assert laplace_delta(shift, epsilon, d) == pytest.approx(brute, rel=1e-3)


# What every noise mechanism must keep


def assert_keeps_its_label(mechanism: NoiseMechanism, d: int, largest: float, share: float) -> None:
    """``largest``: how far to look; the guarantee at other distances follows by the switch lemma."""
    g = mechanism.guarantee
    assert mechanism.privacy_loss(distance=g.B, dimensions=d).delta(g.epsilon) <= g.delta
    at_label = mechanism.epsilon(distance=g.B, delta=g.delta, dimensions=d)
    assert at_label <= g.epsilon
    distance = share * largest
    elsewhere = mechanism.epsilon(distance=distance, delta=g.delta, dimensions=d)
    order = (elsewhere, at_label) if distance <= g.B else (at_label, elsewhere)
    assert order[0] <= order[1] * (1 + 1e-12)
    switched = g.at_distance(distance)
    assert mechanism.privacy_loss(distance=distance, dimensions=d).delta(switched.epsilon) <= switched.delta


@steady
@example(B=0.25, epsilon=3.9999, delta=1 / 4202, d=10, share=1.0)
@example(B=0.01, epsilon=20.0, delta=0.1, d=200, share=1.0)
@example(B=2.0, epsilon=0.05, delta=1e-10, d=1, share=0.5)
@given(B=Bs, epsilon=epsilons, delta=deltas, d=columns, share=shares)
def test_gaussian_noise(B: float, epsilon: float, delta: float, d: int, share: float) -> None:
    mechanism = GaussianNoise(B=B, epsilon=epsilon, delta=delta)
    assert mechanism.guarantee == Guarantee(B, epsilon, delta)
    assert_keeps_its_label(mechanism, d, 2.0, share)
    sd = mechanism.noise_sd(d)
    assert gaussian_delta(B / sd, epsilon) <= delta
    assert gaussian_delta(B / sd * (1 + 1e-3), epsilon) > delta  # and no noise is wasted


@steady
@example(B=0.25, epsilon=3.9999, delta=1 / 4202, d=10, share=1.0)
@example(B=0.01, epsilon=20.0, delta=0.1, d=200, share=1.0)
@example(B=2.0, epsilon=0.05, delta=1e-10, d=2, share=0.5)
@given(B=Bs, epsilon=epsilons, delta=deltas, d=columns, share=shares)
def test_spherical_laplace_with_delta(B: float, epsilon: float, delta: float, d: int, share: float) -> None:
    mechanism = SphericalLaplace(B=B, epsilon=epsilon, delta=delta)
    assert mechanism.guarantee == Guarantee(B, epsilon, delta)
    scale = mechanism.noise_sd(d) / math.sqrt(d + 1)
    # Up to shifts of 600: beyond 709 the curve overflows, see `test_laplace`.
    assert_keeps_its_label(mechanism, d, max(B, min(2.0, 600 * scale)), share)
    assert laplace_delta(B / scale, epsilon, d) <= delta
    assert laplace_delta(B / scale * (1 + 1e-3), epsilon, d) > delta


@steady
@example(B=0.01, epsilon=20.0, d=200, share=1.0)
@example(B=1.0, epsilon=0.05, d=200, share=1.0)
@given(B=Bs, epsilon=epsilons, d=columns, share=shares)
def test_spherical_laplace_without_delta(B: float, epsilon: float, d: int, share: float) -> None:
    mechanism = SphericalLaplace(B=B, epsilon=epsilon)
    assert mechanism.guarantee == Guarantee(B, epsilon, 2.0**-90)
    scale = mechanism.noise_sd(d) / math.sqrt(d + 1)
    assert_keeps_its_label(mechanism, d, max(B, min(2.0, 600 * scale)), share)
    # Little noise is wasted: the grid takes of ε what it adds to a distance, which shows where ε is small.
    assert B / scale <= epsilon <= B / scale * (1 + 1e-3) + 2.0**-20 * (d + 1)
    # Metric privacy: at any distance r, ε·r/B and the sampler's tail (the grid adds √d·2⁻²⁰ deviations).
    r = share * min(2.0, 600 * scale)
    grown = (r + 2.0**-20 * math.sqrt(d * (d + 1)) * scale) / scale + 1e-9
    assert mechanism.privacy_loss(distance=r, dimensions=d).delta(grown) <= 2.0**-90


@steady
@example(B=2.0, epsilon=0.05, share=1.0)
@example(B=0.02, epsilon=20.0, share=0.5)
@given(B=Bs, epsilon=epsilons, share=shares)
def test_staircase(B: float, epsilon: float, share: float) -> None:
    mechanism = Staircase(B=B, epsilon=epsilon)
    assert mechanism.guarantee == Guarantee(B, epsilon, 2.0**-90)
    g = mechanism.guarantee
    for distance in (B, share * B):
        assert mechanism.epsilon(distance=distance, delta=g.delta) <= epsilon
        assert mechanism.privacy_loss(distance=distance).delta(epsilon) <= g.delta
    further = share * 2.0
    loss, switched = mechanism.privacy_loss(distance=further), g.at_distance(further)
    # Beyond one period the far tail is counted in full, which alone is more than 2⁻⁹⁰: safe, not exact.
    # Where pieces of the density coincide but for rounding, slivers of 10⁻¹⁴ are counted, too.
    assert loss.delta(switched.epsilon) <= switched.delta + 1e-12
    assert mechanism.noise_sd(1) <= SphericalLaplace(B=B, epsilon=epsilon).noise_sd(1)


@steady
@example(B=0.25, epsilon=3.9999, delta=1 / 4202, d=10, share=1.0, k=1000, rank=None, calibration="printed")
@given(
    B=Bs, epsilon=epsilons, delta=deltas, d=columns, share=shares, k=st.sampled_from([1, 5, 50, 1000]),
    rank=st.sampled_from([None, 1, 2, 9]), calibration=st.sampled_from(["printed", "exact"]),
)  # fmt: skip
def test_private_projection(
    B: float, epsilon: float, delta: float, d: int, share: float, k: int,
    rank: int | None, calibration: Calibration,
) -> None:  # fmt: skip
    assume(rank is None or rank < d)
    epsilon2 = min(0.9999, epsilon / 4)
    mechanism = PrivateProjection(
        B=B, epsilon1=epsilon - epsilon2, epsilon2=epsilon2, delta1=delta * 2 / 3, delta2=delta / 3,
        k=k, rank=rank, calibration=calibration,
    )  # fmt: skip
    assert mechanism.guarantee.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert mechanism.guarantee.delta == pytest.approx(delta, rel=1e-12)
    assert_keeps_its_label(mechanism, d, 2.0, share)


@steady
@given(
    B=Bs, epsilon=epsilons, delta=deltas, d=st.sampled_from([1, 2, 3, 10, 50]),
    k=st.sampled_from([1, 5, 50, 1000]), calibration=st.sampled_from(["printed", "exact"]),
)  # fmt: skip
def test_private_projection_from_its_noise_alone(
    B: float, epsilon: float, delta: float, d: int, k: int, calibration: Calibration
) -> None:
    """Of the output, only what anyone can measure: its noise, and that it is X itself on R's directions."""
    epsilon2 = min(0.9999, epsilon / 4)
    mechanism = PrivateProjection(
        B=B, epsilon1=epsilon - epsilon2, epsilon2=epsilon2, delta1=delta * 2 / 3, delta2=delta / 3,
        k=k, calibration=calibration,
    )  # fmt: skip
    projection = mechanism.public_projection(d)
    u = projection.directions[:, projection.lengths > 1e-9]
    if u.shape[1] == 0:
        return  # R = 0: nothing but noise is published
    precision = np.linalg.inv(u.T @ mechanism.noise_covariance(d) @ u)
    mu = B * math.sqrt(float(np.linalg.eigvalsh(precision).max()))
    assert gaussian_delta(mu, epsilon - epsilon2) <= delta * 2 / 3
    if calibration == "printed":  # Steps 3 and 4 together, which a rank below d publishes
        covariance_mu = moved_gram(B) / printed_step4_sigma(B, epsilon2, delta / 3)
        assert gaussian_delta(covariance_mu, epsilon2) <= delta / 3
        assert gaussian_delta(math.hypot(mu, covariance_mu), epsilon) <= delta


@pytest.mark.parametrize("calibration", ["printed", "exact"])
@pytest.mark.parametrize("B", [0.1, 0.6, 0.9, 2.0])
def test_learned_directions_are_charged_for(B: float, calibration: Calibration) -> None:
    """A rank below d costs what XᵀX moves by, against the noise on it, besides what full rank costs."""
    full, cut = (
        PrivateProjection(
            B=B,
            epsilon1=2.0,
            epsilon2=0.9,
            delta1=1e-5,
            delta2=1e-5,
            k=50,
            rank=rank,
            calibration=calibration,
        )
        for rank in (None, 3)
    )
    for distance in (B / 2, B):
        rows_mu = gaussian_mu(full.epsilon(distance=distance, delta=1e-5, dimensions=10), 1e-5)
        if calibration == "printed":
            sigma = printed_step4_sigma(B, 0.9, 1e-5)
        else:  # both noises are as small as their shares allow
            assert rows_mu == pytest.approx(distance / B * gaussian_mu(2.0, 1e-5), rel=1e-4)
            sigma = moved_gram(B) / gaussian_mu(0.9, 1e-5)
        both = math.hypot(rows_mu, moved_gram(distance) / sigma)
        together = cut.epsilon(distance=distance, delta=1e-5, dimensions=10)
        assert gaussian_delta(both * (1 - 1e-4), together) <= 1e-5
        assert gaussian_delta(both * (1 + 1e-3), together) > 1e-5


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The shift whose δ at this ε is this δ."""
    low, high = 1e-9, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, epsilon) <= delta else (low, middle)
    return low


def moved_gram(B: float) -> float:
    """The largest ‖xxᵀ − zzᵀ‖_F for ‖x − z‖ ≤ B in the unit ball, by search in the plane that they span."""
    lengths = np.linspace(max(0.0, 1 - B), 1, 2001)
    # x = (1, 0) without loss: the difference grows with both lengths at a fixed distance and angle.
    cosine = np.clip((1 + lengths**2 - B**2) / (2 * np.maximum(lengths, 1e-9)), -1, 1)
    squared = 1 + lengths**4 - 2 * np.where(cosine < 0, 0.0, lengths * cosine) ** 2
    return math.sqrt(float(squared.max()))


@steady
@given(B=Bs, epsilon1=st.floats(0.05, 20), delta1=deltas, d=st.integers(1, 200), k=st.integers(1, 10_000))
def test_printed_noise_of_step_3_covers_its_own_lemmas(
    B: float, epsilon1: float, delta1: float, d: int, k: int
) -> None:
    """Proposition 1 spends δ₁/2 on R, Lemma 6 the other half on the noise: σ is Lemma 6 at δ₁/2."""
    sigma = printed_step3_sigma(B, d, k, epsilon1, delta1)
    lemma_6 = math.sqrt(2 * (math.log(1 / delta1) + epsilon1)) / epsilon1
    norm = B / math.sqrt(k) * math.sqrt(d * math.log((2 / 3) * (math.e - 1) + 1) + math.log(2 / delta1) / k)
    assert sigma == pytest.approx(lemma_6 * norm, rel=1e-12)
    assert gaussian_delta(norm / sigma, epsilon1) <= delta1 / 2


# Distances


@pytest.mark.parametrize(
    "mechanism",
    [
        GaussianNoise(B=0.25, **PAPER),
        SphericalLaplace(B=0.25, **PAPER),
        SphericalLaplace(B=0.25, epsilon=1.0),
        PrivateProjection(B=0.25, epsilon1=3, epsilon2=0.9999, delta1=1e-4, delta2=1e-4, k=50),
        PrivateProjection(B=0.25, epsilon1=3, epsilon2=0.9999, delta1=1e-4, delta2=1e-4, k=50, rank=3),
    ],
    ids=["gaussian", "laplace", "pure laplace", "projection", "projection of rank 3"],
)
@pytest.mark.parametrize("d", [5, 10])
def test_epsilon_never_falls_with_distance(mechanism: NoiseMechanism, d: int) -> None:
    distances = [1e-6, 1e-3, 0.05, 0.1, 0.2499, 0.25, 0.2501, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0]
    found = [mechanism.epsilon(distance=r, delta=mechanism.guarantee.delta, dimensions=d) for r in distances]
    assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(found))
    assert found[distances.index(0.25)] <= mechanism.guarantee.epsilon


def test_staircase_epsilon_never_falls_with_distance() -> None:
    mechanism = Staircase(B=0.25, epsilon=2.0)
    found = [mechanism.epsilon(distance=r, delta=1e-9) for r in (1e-6, 0.1, 0.25, 0.2501, 0.5, 0.7, 1.0, 2.0)]
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(found))


def test_epsilon_far_beyond_the_label_in_many_dimensions() -> None:
    mechanism = SphericalLaplace(B=0.05, epsilon=20.0, delta=1e-6)
    scale = mechanism.noise_sd(1000) / math.sqrt(1001)
    epsilon = mechanism.epsilon(distance=0.5, delta=1e-6, dimensions=1000)
    assert epsilon < 0.9 * 0.5 / scale


# Golden numbers


@pytest.mark.parametrize("B", [0.1, 0.25, 1.0])
def test_noise_for_the_papers_claim(B: float) -> None:
    g = Guarantee(B, **PAPER)
    assert least_noise(g, 10).mechanism.noise_sd(10) <= 0.715 * B
    assert least_noise(g, 100).mechanism.noise_sd(100) <= 0.89 * B
    assert GaussianNoise(B=B, **PAPER).noise_sd(10) == pytest.approx(0.909 * B, rel=1e-3)
    assert SphericalLaplace(B=B, epsilon=3.9999).noise_sd(10) == pytest.approx(0.829 * B, rel=1e-3)


def test_algorithm_1_as_printed_wastes_most_of_its_budget() -> None:
    mechanism = PrivateProjection(
        B=0.25, epsilon1=3, epsilon2=0.9999, delta1=2 / 3 / 4202, delta2=1 / 3 / 4202, k=10_000
    )
    assert mechanism.noise_sd(10) == pytest.approx(5.47 * 0.25, rel=0.01)
    assert mechanism.epsilon(distance=0.25, delta=1 / 4202, dimensions=10) == pytest.approx(0.51, abs=0.01)


def test_odds_exceed_e_to_the_epsilon_more_often_than_delta() -> None:
    """What docs/promise.md warns of: δ is not the chance that the odds exceed e^ε."""
    rng = np.random.default_rng(77)
    mechanism = SphericalLaplace(B=0.25, epsilon=4, delta=1 / 4202)
    b = mechanism.noise_sd(10) / math.sqrt(11)
    z = mechanism.privatize(np.zeros((400_000, 10)), rng) / b
    moved = z.copy()
    moved[:, 0] -= 0.25 / b
    losses = np.linalg.norm(moved, axis=1) - np.linalg.norm(z, axis=1)
    share = float((losses > 4).mean())
    assert 0.0017 < share < 0.0024  # 0.2%; six deviations are 0.0004
    assert share > 6 / 4202

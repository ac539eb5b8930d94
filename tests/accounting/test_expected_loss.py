"""The mean of each privacy loss against computations that know nothing of its formula.

One of them serves every loss: a Kullback-Leibler divergence is an integral of the privacy curve. Where
both directions have one and the same curve, E[L] = ∫ (1 + e^−ε)·δ(ε) dε over ε ≥ 0.
"""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy import integrate, stats

from targetdp._core import Floats
from targetdp.accounting import (
    GaussianLoss,
    Imperfection,
    ImperfectLoss,
    PrivacyLoss,
    SphericalLaplaceLoss,
    StaircaseLoss,
    StatedLoss,
    compose,
)
from targetdp.accounting._loss import NEGLIGIBLE
from targetdp.mechanisms import GaussianNoise, PrivateProjection, SphericalLaplace, Staircase
from targetdp.mechanisms._staircase import best_step

FALSE_ALARM = 1e-6
"""Of each Monte Carlo comparison: the probability, over seeds, that right code is called wrong."""

DISTANCES = (1e-9, 1e-3, 0.1, 0.5, 1.0, 4.6, 20.0, 100.0, 1e3, 1e4)


def mean_by_curve(loss: PrivacyLoss, end: float) -> float:
    """The mean from the privacy curve, by panels of Gauss and Legendre up to where the curve has ended."""
    x, w = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(0, end, 11)
    total = 0.0
    for a, b in itertools.pairwise(edges):
        epsilons = a + (b - a) * (x + 1) / 2
        deltas = np.array([loss.delta(float(epsilon)) for epsilon in epsilons])
        total += (b - a) / 2 * float((w * (1 + np.exp(-epsilons)) * deltas).sum())
    return total


@pytest.mark.parametrize(
    ("loss", "end"),
    [(GaussianLoss(mu), mu * (mu / 2 + 9)) for mu in (0.1, 1.0, 3.0)]
    + [(SphericalLaplaceLoss(shift, d), shift) for shift in (0.3, 5.0, 40.0) for d in (1, 2, 3, 10)]
    + [(StatedLoss(epsilon, 0.0), epsilon) for epsilon in (0.01, 1.0, 7.0)],
)
def test_mean_is_the_integral_of_the_curve(loss: PrivacyLoss, end: float) -> None:
    assert loss.expected() == pytest.approx(mean_by_curve(loss, end), rel=2e-6)


# Gaussian


def test_gaussian_mean_is_half_the_squared_shift() -> None:
    for mu in (1e-200, 1e-9, 0.3, 1.0, 7.0, 1e4):
        mean = GaussianLoss(mu).expected()
        assert mean >= Fraction(mu) ** 2 / 2
        assert mean == pytest.approx(mu * mu / 2, rel=1e-11)
    assert GaussianLoss(0.0).expected() == 0.0


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_gaussian_mean_against_another_library(mu: float) -> None:
    interval = 1e-3
    pld = privacy_loss_distribution.from_gaussian_mechanism(1 / mu, value_discretization_interval=interval)
    assert GaussianLoss(mu).expected() == pytest.approx(pld_mean(pld), abs=1e-6)


def pld_mean(pld: privacy_loss_distribution.PrivacyLossDistribution) -> float:
    pmf = pld._pmf_remove.to_dense_pmf()
    steps = pmf._lower_loss + np.arange(len(pmf._probs))
    return float(pmf._discretization * (steps * pmf._probs).sum())


# Spherical Laplace


def true_laplace_mean(shift: float, d: int) -> mpmath.mpf:
    """The closed form, with Bessel functions to 40 digits."""
    with mpmath.workdps(40):
        a, h = mpmath.mpf(shift) / 2, mpmath.mpf(d) / 2
        return (2 * a * a) * (
            mpmath.besseli(h, a) * mpmath.besselk(h, a) + mpmath.besseli(h + 1, a) * mpmath.besselk(h - 1, a)
        )


@pytest.mark.parametrize("d", [1, 2, 3, 4, 10, 51, 1000, 16384])
def test_laplace_mean_against_bessel_functions_of_many_digits(d: int) -> None:
    for shift in DISTANCES if d < 100 else (1e-9, 4.6, 300.0, 1e4):
        truth, mean = true_laplace_mean(shift, d), SphericalLaplaceLoss(shift, d).expected()
        assert truth <= mean <= truth * (1 + 3e-10), shift


@pytest.mark.parametrize("shift", DISTANCES)
def test_laplace_mean_in_one_dimension(shift: float) -> None:
    """E|z − λ| − E|z| = λ − 1 + e^−λ."""
    with mpmath.workdps(40):
        truth = mpmath.mpf(shift) + mpmath.expm1(-mpmath.mpf(shift))
    assert truth <= SphericalLaplaceLoss(shift, 1).expected() <= truth * (1 + 3e-10)


@pytest.mark.parametrize("shift", [0.5, 3.0, 12.0])
def test_laplace_mean_in_the_plane_by_cartesian_coordinates(shift: float) -> None:
    def integrand(y: float, x: float) -> float:
        near, far = math.hypot(x, y), math.hypot(x - shift, y)
        return (far - near) * math.exp(-near) / math.pi  # twice the upper half

    whole, _ = integrate.nquad(
        integrand, [[0, 45], [-45, 45]], opts=[{"points": [0.0]}, {"points": [0.0, shift], "limit": 200}]
    )
    assert SphericalLaplaceLoss(shift, 2).expected() == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("shift", [0.5, 3.0, 12.0])
def test_laplace_mean_in_space_by_cartesian_coordinates(shift: float) -> None:
    """A grid of middles of cells, 0.2 wide: the integrand is smooth but for two tips."""
    step = 0.2
    x = np.arange(-25, 25 + shift, step) + step / 2
    y = np.arange(0, 25, step) + step / 2
    across = y[:, None] ** 2 + y[None, :] ** 2
    total = 0.0
    for x1 in x:
        near, far = np.sqrt(x1**2 + across), np.sqrt((x1 - shift) ** 2 + across)
        total += 4 * step**3 * float(((far - near) * np.exp(-near)).sum()) / (8 * math.pi)
    assert SphericalLaplaceLoss(shift, 3).expected() == pytest.approx(total, rel=1e-3)


@pytest.mark.parametrize(
    ("d", "shift"), [(2, 4.6), (3, 30.0), (10, 4.657), (10, 37.26), (50, 9.0), (1000, 60.0)]
)
def test_laplace_mean_against_monte_carlo(d: int, shift: float) -> None:
    """E[L] itself, and not 0.97 or 1.03 of it."""
    rng, n = np.random.default_rng(5), 400_000
    radius, along = rng.gamma(d, size=n), rng.standard_normal(n)
    cosine = along / np.sqrt(along**2 + rng.chisquare(d - 1, size=n))
    away = np.sqrt(radius**2 - 2 * radius * cosine * shift + shift**2)
    # L plus an odd function of the direction has the same mean and varies far less.
    losses = away - radius + shift * cosine
    error = stats.norm.isf(FALSE_ALARM / 2) * losses.std() / math.sqrt(n)
    mean = SphericalLaplaceLoss(shift, d).expected()
    assert abs(losses.mean() - mean) < error
    assert error < 0.03 * mean


def test_laplace_mean_of_small_shifts_is_the_fisher_information() -> None:
    """λ²/(2d): a quarter of the loss for half of the distance."""
    for d in (2, 3, 10, 16384):
        assert SphericalLaplaceLoss(1e-6, d).expected() == pytest.approx(1e-12 / (2 * d), rel=1e-5)


@pytest.mark.parametrize(("d", "within"), [(1000, 2e-3), (16384, 2e-4)])
def test_many_dimensions_approach_gaussian_noise_of_the_same_deviation(d: int, within: float) -> None:
    for mu in (0.1, 1.0):
        mean = SphericalLaplaceLoss(mu * math.sqrt(d + 1), d).expected()
        assert mean == pytest.approx(mu**2 / 2, rel=within)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 16384])
def test_laplace_mean_at_the_ends_of_floats(d: int) -> None:
    assert SphericalLaplaceLoss(0.0, d).expected() == 0.0
    assert 0 < SphericalLaplaceLoss(5e-324, d).expected() < 1e-300
    assert SphericalLaplaceLoss(1e12, d).expected() == 1e12
    assert 9.9e7 - d < SphericalLaplaceLoss(9.9e7, d).expected() <= 9.9e7


# Staircase


def true_staircase_mean(loss: StaircaseLoss) -> mpmath.mpf:
    """The sum over pieces with breakpoints that are exact fractions."""
    shift, gamma = Fraction(loss.shift), Fraction(loss.gamma)
    reach = math.ceil(loss.shift) + math.ceil(80 / loss.level) + 2
    steps = [k + gamma for k in range(reach + 1)]
    own = [-step for step in reversed(steps)] + steps
    breaks = sorted({*own, *(step + shift for step in own)})

    def steps_down(z: Fraction) -> int:
        return max(0, math.floor(abs(z) - gamma) + 1)

    with mpmath.workdps(40):
        level, step = mpmath.mpf(loss.level), mpmath.mpf(loss.gamma)
        top = -mpmath.expm1(-level) / (2 * (step + mpmath.exp(-level) * (1 - step)))
        total = mpmath.mpf(0)
        for a, b in itertools.pairwise(breaks):
            middle, width = (a + b) / 2, b - a
            here, there = steps_down(middle), steps_down(middle - shift)
            mass = top * mpmath.exp(-level * here) * width.numerator / width.denominator
            total += level * (there - here) * mass
        return total


@pytest.mark.parametrize("level", [0.5, 4.0, 30.0])
def test_staircase_mean_against_exact_fractions(level: float) -> None:
    for shift in (1e-9, 0.3, 0.999999, 1.0, 1.7, 8.0, 40.0):
        loss = StaircaseLoss(shift, level, best_step(level))
        truth, mean = true_staircase_mean(loss), loss.expected()
        assert truth - mpmath.mpf("1e-30") <= mean <= truth * (1 + 1e-8) + 1e-9 * level, shift
        assert mean <= loss.largest()


def test_staircase_mean_by_brute_force() -> None:
    """The density drawn on a fine grid that its breakpoints lie on."""
    level, gamma, shift, cells = 1.3, 0.4, 1.55, 100
    z = (np.arange(-60 * cells, 60 * cells) + 0.5) / cells

    def log_density(x: Floats) -> Floats:
        return np.asarray(-level * np.maximum(0, np.floor(np.abs(x) - gamma) + 1))

    p = np.exp(log_density(z))
    brute = float((p / p.sum() * (log_density(z) - log_density(z - shift))).sum())
    assert StaircaseLoss(shift, level, gamma).expected() == pytest.approx(brute, rel=1e-9)


def test_far_beyond_the_staircase_the_largest_loss_stands_for_the_mean() -> None:
    loss = StaircaseLoss(3e8, 2.0, 0.3)
    assert loss.expected() == loss.largest()
    near = StaircaseLoss(9e4, 2.0, 0.3)
    assert 0.9999 * near.largest() < near.expected() < near.largest()


# Shape


@pytest.mark.parametrize("d", [1, 2, 10, 1001])
def test_laplace_mean_rises_with_the_shift_and_falls_with_columns(d: int) -> None:
    means = [SphericalLaplaceLoss(shift, d).expected() for shift in np.geomspace(1e-9, 1e9, 150)]
    assert all(a < b for a, b in itertools.pairwise(means))
    for shift in (0.01, 1.0, 30.0):
        assert SphericalLaplaceLoss(shift, d + 1).expected() < SphericalLaplaceLoss(shift, d).expected()
        assert SphericalLaplaceLoss(shift, d).expected() < shift


def test_staircase_mean_rises_with_the_shift() -> None:
    for level in (0.3, 4.0):
        means = [StaircaseLoss(shift, level, best_step(level)).expected() for shift in np.linspace(0, 6, 200)]
        assert all(a <= b * (1 + 1e-11) for a, b in itertools.pairwise(means))
        assert means[-1] > 5 * means[30]


# Stated


def test_no_pure_mechanism_has_a_larger_mean_than_randomized_response() -> None:
    """Of random pairs whose ratios stay within e^±ε none beats ε·tanh(ε/2), which is reached."""
    rng = np.random.default_rng(7)
    for epsilon in (0.1, 1.0, 4.0):
        bound = StatedLoss(epsilon, 0.0).expected()
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        reached = p * epsilon - (1 - p) * epsilon
        assert reached <= bound <= reached * (1 + 1e-12)
        for _ in range(200):
            ratio = np.exp(epsilon * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], size=6))
            if not ratio.min() < 1 < ratio.max():
                continue
            q = rng.dirichlet(np.ones(6))
            # Reweigh so that both sum to one: mix two groups on either side of ratio 1.
            low, high = ratio < 1, ratio >= 1
            up, down = float((q * (ratio - 1))[high].sum()), float((q * (1 - ratio))[low].sum())
            q = np.where(high, q * down, q * up)
            q /= q.sum()
            own = q * ratio
            assert own.sum() == pytest.approx(1)
            assert float((own * np.log(ratio)).sum()) <= bound * (1 + 1e-9)
            assert float((-q * np.log(ratio)).sum()) <= bound * (1 + 1e-9)


def test_a_stated_delta_that_is_not_negligible_has_no_mean() -> None:
    assert StatedLoss(1.0, 1e-12).expected() == math.inf
    assert StatedLoss(1.0, 1.0).expected() == math.inf
    assert StatedLoss(1.0, NEGLIGIBLE).expected() == StatedLoss(1.0, 0.0).expected()
    assert StatedLoss(0.0, 0.0).expected() == 0.0


# Imperfect


def drawn(rng: np.random.Generator, eta: float) -> tuple[Floats, Floats, Floats, Floats]:
    """An ideal pair on 12 outcomes and a drawn one, within e^±η of it as far as they sum to one."""
    p, q = rng.dirichlet(np.full(12, 0.7)) + 1e-9, rng.dirichlet(np.full(12, 0.7)) + 1e-9
    p, q = p / p.sum(), q / q.sum()
    p1, q1 = (x * np.exp(rng.choice([-eta / 2, eta / 2], size=12)) for x in (p, q))
    return p, q, p1 / p1.sum(), q1 / q1.sum()


def divergence(p: Floats, q: Floats) -> float:
    return float((p * np.log(p / q)).sum())


@dataclass(frozen=True)
class Known(GaussianLoss):
    """A loss with a mean that is put in by hand."""

    mean: float = 0.0

    def expected(self) -> float:
        return self.mean


@pytest.mark.parametrize("eta", [1e-6, 0.01, 0.2])
def test_imperfect_mean_covers_all_that_the_imperfection_allows(eta: float) -> None:
    """Random pairs within e^±η. The bound holds for all, and at small η it is close for some."""
    rng = np.random.default_rng(8)
    slack = []
    for _ in range(1000):
        p, q, p1, q1 = drawn(rng, eta)
        assert np.abs(np.log(np.stack([p1 / p, q1 / q]))).max() <= eta * (1 + 1e-9)
        bound = ImperfectLoss(Known(1.0, divergence(p, q)), Imperfection(eta, 0.0)).expected()
        slack.append(bound - divergence(p1, q1))
    assert min(slack) > 0
    assert min(slack) < 12 * eta


def test_imperfect_mean_covers_the_good_event_when_a_tail_is_cut_off() -> None:
    """The drawn pair loses outcomes of the ideal one: what is left is still covered."""
    rng = np.random.default_rng(9)
    for _ in range(500):
        p, q, *_ = drawn(rng, 0.0)
        cut = np.zeros(12, dtype=bool)
        cut[rng.integers(12)] = True
        gone = max(p[cut].sum(), q[cut].sum())
        if gone > 0.2:
            continue
        p1, q1 = (np.where(cut, 0, x) / x[~cut].sum() for x in (p, q))
        eta = -math.log1p(-gone)
        good = divergence(p1[~cut], q1[~cut])
        assert good <= ImperfectLoss(Known(1.0, divergence(p, q)), Imperfection(eta, 0.0)).expected()


def test_imperfect_mean_has_no_bound_where_the_imperfection_is_large() -> None:
    ideal = GaussianLoss(1.0)
    assert ImperfectLoss(ideal, Imperfection(0.0, 1e-18)).expected() == math.inf
    assert ImperfectLoss(ideal, Imperfection(2.0, 0.0)).expected() == math.inf
    perfect = ImperfectLoss(ideal, Imperfection(0.0, 0.0)).expected()
    assert ideal.expected() <= perfect <= ideal.expected() * (1 + 1e-11)


def test_real_samplers_hardly_change_the_mean() -> None:
    mechanisms = [
        (GaussianNoise(B=0.25, epsilon=4, delta=1e-4), 10),
        (SphericalLaplace(B=0.25, epsilon=4, delta=1e-4), 10),
        (SphericalLaplace(B=0.01, epsilon=4), 200),
        (Staircase(B=0.25, epsilon=4), 1),
        (PrivateProjection(B=0.25, epsilon1=3, epsilon2=0.9, delta1=1e-4, delta2=1e-4, k=500, rank=3), 10),
    ]
    for mechanism, d in mechanisms:
        for distance in (mechanism.guarantee.B, 2.0):
            loss = mechanism.privacy_loss(distance=distance, dimensions=d)
            assert isinstance(loss, ImperfectLoss)
            ideal = loss.ideal.expected()
            assert ideal < loss.expected() < ideal * (1 + 1e-6)


# Composed


def test_means_of_several_releases_add_up() -> None:
    parts = [SphericalLaplaceLoss(2.0, 3), StaircaseLoss(1.0, 1.0, 0.4), StatedLoss(0.5, 0.0)]
    total = compose(*parts, GaussianLoss(0.3), GaussianLoss(0.4))
    assert total.expected() >= math.fsum(part.expected() for part in parts) + 0.125
    assert total.expected() == pytest.approx(math.fsum(part.expected() for part in parts) + 0.125, rel=1e-9)
    assert compose(parts[0], StatedLoss(1.0, 1e-5)).expected() == math.inf
    imperfect = compose(ImperfectLoss(parts[0], Imperfection(1e-9, 2.0**-90)), parts[2])
    assert imperfect.expected() == pytest.approx(parts[0].expected() + parts[2].expected(), rel=1e-7)

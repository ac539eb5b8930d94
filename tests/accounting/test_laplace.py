"""The spherical Laplace curve against four other ways to compute it.

The sharpest is a closed form that the code does not know. In prolate spheroidal coordinates with the two
rows as foci, ‖z‖ + ‖z − u‖ = λξ and ‖z − u‖ − ‖z‖ = λη = L, the volume element is a power of
(ξ² − 1)(1 − η²) times (ξ² − η²), and ∫ over ξ is a Bessel function. So L/λ = η has the density

    C·(1 − η²)^{(d−3)/2}·e^{aη}·(J₁ + (1 − η²)·J₀),   a = λ/2,  h = d/2,
    J₀ = Γ(h − ½)/√π·(2/a)^{h−1}·K_{h−1}(a),   J₁ = Γ(h + ½)/√π·(2/a)^h·K_h(a),
    C = a^d·Γ(h)/(√π·Γ(h − ½)·Γ(d)),

and δ(ε) = E[(1 − e^{ε−L})₊] is one smooth integral over η > ε/λ.
"""

import itertools
import math
from collections.abc import Callable

import mpmath  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest
from scipy import special, stats

from targetdp._core import Floats
from targetdp.accounting import GaussianLoss, SphericalLaplaceLoss, largest_shift
from targetdp.accounting._laplace import spherical_laplace_delta

DIGITS = 30
PAPER = (3.9999, 1 / 4202)

FALSE_ALARM = 1e-7
"""Of each Monte Carlo comparison: the probability, over seeds, that right code is called wrong."""


# The closed form


def bessel_k(d: int, a: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    """K_{d/2−1}(a) and K_{d/2}(a), by the recurrence in the order (stable upwards)."""
    if d % 2:
        lower = upper = mpmath.sqrt(mpmath.pi / (2 * a)) * mpmath.exp(-a)  # K_{−½} = K_½
        order = mpmath.mpf(1) / 2
    else:
        order, lower, upper = mpmath.mpf(1), mpmath.besselk(0, a), mpmath.besselk(1, a)
    while order < mpmath.mpf(d) / 2:
        lower, upper = upper, lower + 2 * order / a * upper
        order += 1
    return lower, upper


def integrate(shift: float, d: int, gain: Callable[[mpmath.mpf], mpmath.mpf], above: float) -> mpmath.mpf:
    """E[gain(L); L > above], to about 25 digits."""
    with mpmath.workdps(DIGITS):
        a, h, half = mpmath.mpf(shift) / 2, mpmath.mpf(d) / 2, mpmath.mpf(1) / 2
        lower, upper = bessel_k(d, a)
        j0 = mpmath.gamma(h - half) / mpmath.sqrt(mpmath.pi) * (2 / a) ** (h - 1) * lower
        j1 = mpmath.gamma(h + half) / mpmath.sqrt(mpmath.pi) * (2 / a) ** h * upper
        c = a**d * mpmath.gamma(h) / (mpmath.sqrt(mpmath.pi) * mpmath.gamma(h - half) * mpmath.gamma(d))

        def density(angle: mpmath.mpf) -> mpmath.mpf:  # η = sin(angle) removes the ends' roots
            eta, cosine = mpmath.sin(angle), mpmath.cos(angle)
            weight = c * cosine ** (d - 2) * mpmath.exp(a * eta) * (j1 + cosine * cosine * j0)
            return weight * gain(2 * a * eta)

        start = mpmath.asin(mpmath.mpf(above) / shift)
        panels = 8 if d < 100 else 40
        edges = [start + (mpmath.pi / 2 - start) * i / panels for i in range(panels + 1)]
        return mpmath.quad(density, edges, method="gauss-legendre")  # smooth: few nodes are enough


def true_delta(shift: float, epsilon: float, d: int) -> mpmath.mpf:
    return integrate(shift, d, lambda loss: -mpmath.expm1(epsilon - loss), above=epsilon)


def chance_above(shift: float, epsilon: float, d: int) -> mpmath.mpf:
    return integrate(shift, d, lambda loss: mpmath.mpf(1), above=epsilon)


@pytest.mark.parametrize(("shift", "d"), [(0.1, 2), (4.0, 3), (4.6, 10), (30.0, 51), (33.0, 1000)])
def test_the_oracle_is_a_distribution_with_the_symmetry_of_a_loss(shift: float, d: int) -> None:
    assert chance_above(shift, -shift, d) == pytest.approx(1, rel=1e-20)
    other_row = integrate(shift, d, lambda loss: mpmath.exp(-loss), above=-shift)
    assert other_row == pytest.approx(1, rel=1e-20)


POINTS = [
    (2, 4.6, 4.0), (2, 0.3, 0.0), (2, 0.1, 0.05), (2, 1000.0, 990.0), (3, 186.0, 160.0), (3, 1.0, 0.2),
    (4, 12.0, 3.0), (5, 0.1, 0.05), (5, 6.0, 3.9999), (10, 186.0, 160.0), (10, 4.657, 3.9999), (10, 1.0, 0.0),
    (10, 50.0, 0.5), (10, 30.0, 20.0), (50, 7.0, 3.9999), (50, 1000.0, 900.0), (50, 12.0, 2.0),
    (3, 9.5035, 9.503), (4, 6.0, 5.9995), (5, 0.7, 0.6996), (10, 0.7, 0.6996), (2, 9.5, 9.4),
    (100, 9.0, 1.0), (1000, 33.0, 4.0), (1000, 10.0, 1.0), (16384, 140.0, 4.0), (16384, 500.0, 20.0),
]  # fmt: skip


@pytest.mark.parametrize(("d", "shift", "epsilon"), POINTS)
def test_curve_against_the_closed_form(d: int, shift: float, epsilon: float) -> None:
    truth, delta = true_delta(shift, epsilon, d), SphericalLaplaceLoss(shift, d).delta(epsilon)
    chance = chance_above(shift, epsilon, d)
    assert truth <= delta
    # Margin: 10⁻¹⁰ of each of two probabilities is on purpose; 10 % more is left to rounding.
    assert delta <= truth + 2.2e-10 * chance
    if truth > 0.2 * chance:
        assert delta == pytest.approx(float(truth), rel=1e-9)


def test_curve_is_never_below_the_closed_form_on_random_points() -> None:
    rng = np.random.default_rng(11)
    for _ in range(12):
        d = int(rng.choice([3, 4, 5, 7, 10, 20, 50]))
        shift = float(np.exp(rng.uniform(np.log(0.01), np.log(500))))
        epsilon = shift * float(rng.beta(0.5, 0.5))
        truth, delta = true_delta(shift, epsilon, d), SphericalLaplaceLoss(shift, d).delta(epsilon)
        assert min(truth, 1 - mpmath.mpf("1e-20")) <= delta, (d, shift, epsilon)
        # Below 10⁻³⁰ the mass that is counted in full dominates: safe, and of no use to anyone.
        assert delta <= truth + 2.2e-10 * chance_above(shift, epsilon, d) + 1e-30, (d, shift, epsilon)


@pytest.mark.parametrize(
    ("shift", "epsilon"),
    [(9.50345493906428, 9.502980498507776), (5.983591841088, 5.983147660746138), (0.691044, 0.690604)],
)
def test_curve_is_never_below_the_closed_form_in_the_plane_close_to_the_end(
    shift: float, epsilon: float
) -> None:
    assert true_delta(shift, epsilon, 2) <= SphericalLaplaceLoss(shift, 2).delta(epsilon)


@pytest.mark.parametrize(("d", "shift", "epsilon"), [(1000, 1033.0, 1000.0), (16384, 1250.0, 717.0)])
def test_curve_is_a_number_at_large_epsilon(d: int, shift: float, epsilon: float) -> None:
    delta = SphericalLaplaceLoss(shift, d).delta(epsilon)
    truth = true_delta(shift, epsilon, d)
    assert truth <= delta <= truth + 2.2e-10 * chance_above(shift, epsilon, d) + 1e-30


# One dimension


@pytest.mark.parametrize("shift", [1e-6, 0.1, 1.0, 4.0, 30.0])
def test_one_dimension_is_the_laplace_mechanism(shift: float) -> None:
    for share in (0.0, 0.3, 0.9, 0.999999):
        epsilon = shift * share
        truth = -mpmath.expm1((mpmath.mpf(epsilon) - shift) / 2)
        delta = SphericalLaplaceLoss(shift, 1).delta(epsilon)
        assert truth <= delta <= truth * (1 + 2e-10)


def test_one_dimension_by_brute_force() -> None:
    z = np.linspace(-40.0, 44.0, 2_000_001)
    p, q = np.exp(-np.abs(z - 3.3)) / 2, np.exp(-np.abs(z)) / 2
    for epsilon in (0.0, 1.0, 2.5, 3.2):
        brute = float(np.maximum(0.0, p - math.exp(epsilon) * q).sum() * (z[1] - z[0]))
        assert SphericalLaplaceLoss(3.3, 1).delta(epsilon) == pytest.approx(brute, rel=1e-4)


# Radius and angle on a dense grid


def loss(shift: float, radius: Floats, cosine: Floats) -> Floats:
    """‖z − u‖ − ‖z‖ for ‖u‖ = shift."""
    away = np.sqrt((radius * cosine - shift) ** 2 + radius**2 * (1 - cosine**2))
    return np.asarray(away - radius)


@pytest.mark.parametrize("d", [2, 3, 5, 10, 50])
@pytest.mark.parametrize("share", [0.5, 1.0, 3.0])
def test_curve_against_a_dense_grid_of_radii_and_angles(d: int, share: float) -> None:
    shift = share * (4.0 + math.sqrt(d))
    middles = (np.arange(1000) + 0.5) / 1000
    radius = (d + 12 * math.sqrt(d) + 30) * middles[:, None]
    angle = math.pi * middles[None, :]
    weight = radius ** (d - 1) * np.exp(-radius) * np.sin(angle) ** (d - 2)
    losses = loss(shift, radius, np.cos(angle))
    for epsilon in (0.1 * shift, 0.5 * shift, 0.8 * shift):
        gain = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - losses)))
        brute = float((weight * gain).sum() / weight.sum())
        # Middle rule: off by curvature and kink times step², which is 10⁻⁴ at most.
        assert SphericalLaplaceLoss(shift, d).delta(epsilon) == pytest.approx(brute, rel=1e-3, abs=1e-15)


# A rigorous sandwich


def chance_of_cosine_below(x: Floats, d: int) -> Floats:
    """P(c < x) for the cosine of a uniform direction with a fixed one; P(c > x) is P(c < −x)."""
    half = (d - 1) / 2
    return np.asarray(special.betainc(half, half, np.clip((1 + x) / 2, 0, 1)))


@pytest.mark.parametrize(
    ("d", "shift", "epsilon"),
    [(2, 4.6, 4.0), (3, 9.0, 4.0), (5, 6.5, 3.9999), (10, 4.657, 3.9999), (10, 12.0, 4.0), (10, 1.0, 0.1),
     (50, 15.0, 3.9999), (50, 40.0, 20.0), (10, 186.0, 160.0), (200, 60.0, 10.0)],
)  # fmt: skip
def test_curve_lies_between_lower_and_upper_sums(d: int, shift: float, epsilon: float) -> None:
    """Given the radius ρ, L > ε means c < (λ² − ε² − 2ρε)/(2ρλ), whose chance falls in ρ, and L < −ε means
    c > (λ² − ε² + 2ρε)/(2ρλ), whose chance rises in ρ. So sums over cells of ρ with their worse and better
    ends bound both probabilities, and δ = P(L > ε) − e^ε·P(L < −ε).
    """
    near, far = (shift - epsilon) / 2, (shift + epsilon) / 2  # where either chance begins to change
    ends = np.unique(
        np.concatenate(
            [[0.0], np.linspace(0, d + 12 * math.sqrt(d) + 30, 40_001)[1:],
             near + np.geomspace(1e-6, 300, 20_000), far + np.geomspace(1e-6, 300, 20_000), [math.inf]]
        )
    )  # fmt: skip
    mass = -np.diff(special.gammaincc(d, ends))
    rim = np.full(len(ends), math.inf)
    rim[1:] = (shift**2 - epsilon**2) / (2 * ends[1:] * shift)
    over = chance_of_cosine_below(rim - epsilon / shift, d)
    under = chance_of_cosine_below(-rim - epsilon / shift, d)
    above = (mass * over[1:]).sum(), (mass * over[:-1]).sum()
    below = math.exp(epsilon) * (mass * under[:-1]).sum(), math.exp(epsilon) * (mass * under[1:]).sum()
    delta = SphericalLaplaceLoss(shift, d).delta(epsilon)
    low, high = above[0] - below[1], above[1] - below[0]
    assert low - 1e-9 <= delta <= high + 1e-9
    assert high - low < 0.05 * delta, "the sums are too coarse to say anything"


# Monte Carlo, with exact binomial bounds


@pytest.mark.parametrize(
    ("d", "shift", "epsilons"),
    [
        (2, 4.6, (0.5, 3.0, 4.4)),
        (3, 186.0, (160.0, 170.0, 180.0)),
        (10, 186.0, (160.0, 170.0, 180.0)),
        (10, 8.0, (0.0, 3.9999, 5.0)),
        (50, 20.0, (1.0, 3.9999, 8.0)),
    ],
)
def test_curve_against_monte_carlo(d: int, shift: float, epsilons: tuple[float, ...]) -> None:
    """A coin with heads probability (1 − e^{ε−L})₊ falls heads with probability δ(ε) exactly."""
    rng, n = np.random.default_rng(12), 500_000
    radius = rng.gamma(d, size=n)
    along = rng.standard_normal(n)
    cosine = along / np.sqrt(along**2 + rng.chisquare(d - 1, size=n))
    losses, coin = loss(shift, radius, cosine), rng.random(n)
    for epsilon in epsilons:
        heads = int((coin < -np.expm1(np.minimum(0.0, epsilon - losses))).sum())
        low = stats.beta.ppf(FALSE_ALARM / 2, heads, n - heads + 1) if heads else 0.0
        high = stats.beta.isf(FALSE_ALARM / 2, heads + 1, n - heads) if heads < n else 1.0
        assert low <= SphericalLaplaceLoss(shift, d).delta(epsilon) <= high


# Shape


def test_curve_ends_at_the_shift() -> None:
    for d in (1, 2, 3, 10, 1000, 16384):
        for shift in (1e-3, 1.0, 4.0, 200.0):
            assert SphericalLaplaceLoss(shift, d).delta(shift) == 0.0
            assert SphericalLaplaceLoss(shift, d).delta(shift * 1.5) == 0.0
            assert SphericalLaplaceLoss(shift, d).delta(shift * (1 - 1e-9)) > 0.0
            assert SphericalLaplaceLoss(shift, d).epsilon(0.0) == shift


@pytest.mark.parametrize("d", [1, 2, 3, 10, 50, 1000])
def test_curve_falls_in_epsilon_and_rises_in_the_shift(d: int) -> None:
    # The allowance of 10⁻¹⁰ is itself of the order of rounding; so much rise is no rise.
    slack = 1 + 1e-12
    for shift in (0.5, 5.0, 60.0):
        deltas = spherical_laplace_delta(shift, np.linspace(0, shift, 200), d)
        assert (deltas[1:] <= deltas[:-1] * slack).all()
    for epsilon in (0.05, 1.0, 4.0):
        rising = [
            SphericalLaplaceLoss(float(shift), d).delta(epsilon) for shift in np.geomspace(0.05, 60, 80)
        ]
        assert all(a <= b * slack for a, b in itertools.pairwise(rising))


def test_many_epsilons_at_once_are_the_same_as_one_by_one() -> None:
    epsilons = np.array([0.0, 0.5, 3.0, 4.5, 5.0, 9.0])
    for d in (1, 2, 10):
        together = spherical_laplace_delta(5.0, epsilons, d)
        alone = [SphericalLaplaceLoss(5.0, d).delta(float(epsilon)) for epsilon in epsilons]
        assert together == pytest.approx(np.array(alone), rel=1e-9)


@pytest.mark.parametrize(("d", "within"), [(1000, 0.1), (16384, 0.01)])
def test_many_dimensions_approach_gaussian_noise_of_the_same_deviation(d: int, within: float) -> None:
    for mu, epsilon in ((0.5, 0.5), (1.0, 1.0), (1.1, 3.0), (3.0, 4.0)):
        delta = SphericalLaplaceLoss(mu * math.sqrt(d + 1), d).delta(epsilon)
        assert delta == pytest.approx(GaussianLoss(mu).delta(epsilon), rel=within)


# The largest hidden shift


@pytest.mark.parametrize(
    ("d", "deviation"),
    [(1, 0.354), (2, 0.432), (5, 0.589), (10, 0.712), (15, 0.769), (50, 0.863), (100, 0.886)],
)
def test_smallest_noise_for_the_papers_claim(d: int, deviation: float) -> None:
    shift = largest_shift(*PAPER, d)
    assert math.sqrt(d + 1) / shift == pytest.approx(deviation, abs=5.1e-4)
    assert true_delta(shift, PAPER[0], d) <= PAPER[1] if d > 1 else shift > PAPER[0]


def test_smallest_noise_for_the_papers_claim_in_ten_dimensions() -> None:
    assert largest_shift(*PAPER, 10) == pytest.approx(4.657, abs=5e-4)
    assert true_delta(largest_shift(*PAPER, 10) * (1 + 1e-8), PAPER[0], 10) > PAPER[1]


def test_one_dimension_hides_what_the_closed_form_says() -> None:
    for epsilon, delta in ((0.1, 1e-6), (1.0, 0.01), PAPER, (20.0, 0.3)):
        assert largest_shift(epsilon, delta, 1) == pytest.approx(epsilon - 2 * math.log1p(-delta), rel=1e-9)
        assert largest_shift(epsilon, delta, 1) <= epsilon - 2 * math.log1p(-delta)


@pytest.mark.parametrize("d", [1, 2, 10, 1000])
def test_without_delta_the_shift_is_epsilon(d: int) -> None:
    assert largest_shift(2.5, 0.0, d) == 2.5


@pytest.mark.parametrize("d", [3, 10, 50])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-10), (10.0, 0.05), (20.0, 1e-5)])
def test_hidden_shift_is_hidden_and_no_larger_one_is(d: int, epsilon: float, delta: float) -> None:
    shift = largest_shift(epsilon, delta, d)
    assert shift >= epsilon
    assert true_delta(shift, epsilon, d) <= delta
    assert true_delta(shift * (1 + 1e-5), epsilon, d) > delta

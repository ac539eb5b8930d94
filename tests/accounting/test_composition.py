"""Composition against exact integrals, published formulas, another library, and Monte Carlo.

Truths are written for real ε: δ(ε) = E[(1 − e^{ε−L})₊] of a sum L of independent losses is the curve of one
of them, averaged over the others. So curves that are known in closed form give the composition's, too.
"""

import itertools
import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy import special, stats

from targetdp._core import Floats, Integers
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
from targetdp.guarantee import Guarantee

Curve = Callable[[Floats], Floats]

RESOLUTION = 8000
"""Every part of a composition may be rounded up by the total reach divided by this, and by no more."""

FALSE_ALARM = 1e-7
"""Of each Monte Carlo comparison: the probability, over seeds, that right code is called wrong."""


@cache
def together(*losses: PrivacyLoss) -> PrivacyLoss:
    """`compose`, which takes a second, for those that several tests look at."""
    return compose(*losses)


# Truths


def gaussian_curve(mu: float) -> Curve:
    return lambda e: np.asarray(
        special.ndtr(mu / 2 - e / mu) - np.exp(e + special.log_ndtr(-mu / 2 - e / mu))
    )


def laplace_parts(shift: float, d: int, start: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Values of L above ``start`` and their masses (last axis), from its density in closed form.

    See the head of `test_laplace`: L = shift·sin(angle) and
    density ∝ cos^{d−2}·e^{a·sin}·(J₁ + cos²·J₀) in the angle, a = shift/2.
    """
    a, h = shift / 2, d / 2
    first = np.arcsin(np.clip(start / shift, -1, 1))[..., None]
    x, w = np.polynomial.legendre.leggauss(nodes)
    width = (math.pi / 2 - first) / 2
    angle = first + (1 + x) * width
    j0 = special.gamma(h - 0.5) / math.sqrt(math.pi) * (2 / a) ** (h - 1) * special.kv(h - 1, a)
    j1 = special.gamma(h + 0.5) / math.sqrt(math.pi) * (2 / a) ** h * special.kv(h, a)
    c = a**d * special.gamma(h) / (math.sqrt(math.pi) * special.gamma(h - 0.5) * special.gamma(d))
    cosine, sine = np.cos(angle), np.sin(angle)
    return shift * sine, c * w * width * cosine ** (d - 2) * np.exp(a * sine) * (j1 + cosine**2 * j0)


def laplace_curve(shift: float, d: int) -> Curve:
    def curve(e: Floats) -> Floats:
        values, masses = laplace_parts(shift, d, e, 48)
        return np.asarray((masses * np.maximum(0.0, -np.expm1(e[..., None] - values))).sum(axis=-1))

    return curve


def and_also(curve: Curve, parts: tuple[Floats, Floats]) -> Curve:
    """The curve of one loss together with another of these values and masses; missing mass is infinite."""
    values, masses = parts
    missing = max(0.0, 1 - float(masses.sum()))
    return lambda e: np.asarray((masses * curve(e[..., None] - values)).sum(axis=-1) + missing)


def all_of(shift: float, d: int, nodes: int) -> tuple[Floats, Floats]:
    values, masses = laplace_parts(shift, d, np.array(-shift), nodes)
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    return values, masses


def stated_parts(epsilon: float, delta: float) -> tuple[Floats, Floats]:
    share = (1 - delta) / (1 + math.exp(-epsilon))
    return np.array([epsilon, -epsilon]), np.array([share, share * math.exp(-epsilon)])


def staircase_parts(shift: float, level: float, gamma: float) -> tuple[Floats, Floats]:
    """For a shift and a step that are multiples of 1/20: the density is constant on cells of 1/20."""
    cells = np.arange(-20 * 80, 20 * 80)

    def steps_down(cell: Integers) -> Integers:
        periods, inside = np.divmod(np.where(cell >= 0, cell, -cell - 1), 20)
        return np.asarray(periods + (inside >= round(20 * gamma)))

    here, there = steps_down(cells), steps_down(cells - round(20 * shift))
    down, which = np.unique(there - here, return_inverse=True)
    masses = np.bincount(which, np.exp(-level * here))
    return level * down, masses / masses.sum()


def assert_covers(total: PrivacyLoss, truth: Curve, parts: list[PrivacyLoss], epsilons: list[float]) -> None:
    """Never below the truth, and not above the truth at an ε that is smaller by the resolution."""
    coarse = len(parts) * sum(part.reach() for part in parts) / RESOLUTION
    low, high = truth(np.array(epsilons)), truth(np.array(epsilons) - coarse)
    deltas = np.array([total.delta(epsilon) for epsilon in epsilons])
    assert (deltas >= low - 1e-12).all(), (deltas - low, epsilons)
    assert (deltas <= high * (1 + 1e-6) + 1e-8).all(), (deltas, high)


# Gaussian losses


@pytest.mark.parametrize("mus", [(1.0,), (0.3, 0.4), (0.5, 1.2, 0.01, 2.0), (0.1,) * 16])
def test_gaussians_add_up_in_squares(mus: tuple[float, ...]) -> None:
    merged = compose(*(GaussianLoss(mu) for mu in mus))
    assert isinstance(merged, GaussianLoss)
    assert merged.mu == pytest.approx(math.sqrt(sum(mu * mu for mu in mus)), rel=1e-14)


@pytest.mark.parametrize(("mu", "times"), [(0.5, 4), (0.2, 9), (1.0, 2)])
def test_gaussians_agree_with_dp_accounting(mu: float, times: int) -> None:
    ours = compose(*[GaussianLoss(mu)] * times)
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=1e-3
    ).self_compose(times)
    for epsilon in (0.0, 0.5, 1.0, 3.0):
        # Their curve is pessimistic by their grid, so never below ours, and within 1 %.
        upper = theirs.get_delta_for_epsilon(epsilon)
        assert ours.delta(epsilon) <= upper * (1 + 1e-9) + 1e-11
        assert ours.delta(epsilon) == pytest.approx(upper, rel=1e-2, abs=1e-11)


# Spherical Laplace losses


@pytest.mark.parametrize(("one", "two"), [(4.657, 4.657), (0.5, 0.2)])
def test_two_spherical_laplaces_against_the_exact_integral(one: float, two: float) -> None:
    parts: list[PrivacyLoss] = [SphericalLaplaceLoss(one, 10), SphericalLaplaceLoss(two, 10)]
    truth = and_also(laplace_curve(two, 10), all_of(one, 10, 300))
    epsilons = [share * (one + two) for share in (0.0, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95)]
    assert_covers(together(*parts), truth, parts, epsilons)


def test_three_spherical_laplaces_against_the_exact_integral() -> None:
    parts: list[PrivacyLoss] = [SphericalLaplaceLoss(shift, 10) for shift in (4.657, 2.0, 3.0)]
    truth = and_also(and_also(laplace_curve(3.0, 10), all_of(2.0, 10, 60)), all_of(4.657, 10, 100))
    assert_covers(compose(*parts), truth, parts, [0.0, 1.0, 3.9999, 6.0, 8.0])


def test_in_three_dimensions_and_far_apart() -> None:
    parts: list[PrivacyLoss] = [SphericalLaplaceLoss(40.0, 3), SphericalLaplaceLoss(15.0, 3)]
    truth = and_also(laplace_curve(15.0, 3), all_of(40.0, 3, 600))
    assert_covers(compose(*parts), truth, parts, [0.0, 20.0, 40.0, 48.0, 52.0])


@pytest.mark.parametrize(("shift", "times"), [(1.0, 2), (0.3, 3), (2.0, 4)])
def test_one_dimension_agrees_with_dp_accounting(shift: float, times: int) -> None:
    losses: list[PrivacyLoss] = [SphericalLaplaceLoss(shift, 1)] * times
    ours = compose(*losses)
    theirs = privacy_loss_distribution.from_laplace_mechanism(
        1 / shift, value_discretization_interval=shift / 5000
    ).self_compose(times)
    for epsilon in np.linspace(0, shift * times * 0.98, 12):
        delta = theirs.get_delta_for_epsilon(float(epsilon))
        assert ours.delta(float(epsilon)) == pytest.approx(delta, rel=1e-3, abs=1e-9)


def test_two_laplaces_in_one_dimension_against_the_exact_integral() -> None:
    """Half of L sits at the shift, a part of e^−shift/2 at −shift, the rest has density e^{(L−shift)/2}/4."""
    s = 1.7
    x, w = np.polynomial.legendre.leggauss(2000)
    values = np.concatenate([s * x, [s, -s]])
    masses = np.concatenate([s * w * np.exp((s * x - s) / 2) / 4, [0.5, math.exp(-s) / 2]])
    assert masses.sum() == pytest.approx(1, abs=1e-12)

    def one(e: Floats) -> Floats:
        inside = -np.expm1((np.clip(e, -s, s) - s) / 2)
        return np.asarray(np.where(e < -s, -np.expm1(e), inside))

    parts: list[PrivacyLoss] = [SphericalLaplaceLoss(s, 1), SphericalLaplaceLoss(s, 1)]
    truth = and_also(one, (values, masses))
    coarse = 2 * 2 * s / RESOLUTION
    for epsilon in np.linspace(0, 2 * s, 12):
        delta = together(*parts).delta(float(epsilon))
        low, high = truth(np.array([epsilon, epsilon - coarse]))
        assert low - 1e-6 <= delta <= high + 1e-6  # 10⁻⁶: the kink of the curve on 2000 nodes


# Stated guarantees


def optimal(epsilon: float, times: int, i: int) -> tuple[float, float]:
    """Kairouz, Oh and Viswanath (2015), Theorem 3.3 with δ = 0: the i-th corner of the exact region."""
    delta = (
        sum(
            math.comb(times, j) * (math.exp((times - j) * epsilon) - math.exp((times - 2 * i + j) * epsilon))
            for j in range(i)
        )
        / (1 + math.exp(epsilon)) ** times
    )
    return (times - 2 * i) * epsilon, delta


@pytest.mark.parametrize("times", [2, 3, 4, 5])
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 3.0])
def test_pure_promises_against_the_optimal_theorem(times: int, epsilon: float) -> None:
    total = compose(*[StatedLoss(epsilon, 0.0)] * times)
    for i in range(times // 2 + 1):
        at, delta = optimal(epsilon, times, i)
        coarse = times * times * epsilon / RESOLUTION
        assert total.delta(at) >= delta
        assert total.delta(at) <= delta + (1 - math.exp(-coarse)) + 1e-11
        if i:
            assert total.epsilon(delta + 1e-10) <= at + coarse
            assert total.epsilon(delta - 1e-6 * delta) > at * (1 - 1e-12)


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.2])
def test_stated_deltas_add_up_as_independent_failures(delta: float) -> None:
    total = compose(*[StatedLoss(0.5, delta)] * 3)
    assert total.delta(1.6) == pytest.approx(1 - (1 - delta) ** 3, rel=1e-9, abs=1e-11)
    assert total.delta(1.6) >= -math.expm1(3 * math.log1p(-delta)) * (1 - 1e-15)


def test_stated_loss_is_the_worst_that_the_promise_admits() -> None:
    for epsilon, delta in ((0.5, 0.0), (4.0, 1e-5), (100.0, 0.3), (1e-4, 1e-12)):
        loss = StatedLoss(epsilon, delta)
        values, masses = stated_parts(epsilon, delta)
        for e in (0.0, 0.3 * epsilon, 0.99 * epsilon, epsilon, 2 * epsilon):
            truth = delta + float((masses * np.maximum(0.0, -np.expm1(np.minimum(0.0, e - values)))).sum())
            assert loss.delta(e) == pytest.approx(truth, rel=1e-13, abs=1e-18)
        assert loss.delta(epsilon) == delta
        assert loss.epsilon(delta) == pytest.approx(epsilon, rel=1e-12)
        assert loss.epsilon(delta) >= epsilon * (1 - 1e-13)
        if delta:
            assert loss.epsilon(delta * 0.99) == math.inf


def test_stated_loss_at_another_distance_is_the_switch_lemma() -> None:
    loss = StatedLoss.of(Guarantee(0.25, 1.0, 1e-6), distance=1.0)
    assert loss.stated_epsilon == 4.0
    assert loss.stated_delta == pytest.approx(1e-6 * math.expm1(4) / math.expm1(1), rel=1e-12)


@pytest.mark.parametrize(
    "nothing", [StatedLoss(501.0, 0.0), StatedLoss(1e300, 1e-9), StatedLoss(1.0, 1.0), StatedLoss(1e-9, 1.0)]
)
def test_what_promises_nothing_makes_the_total_promise_nothing(nothing: StatedLoss) -> None:
    for other in (GaussianLoss(0.1), SphericalLaplaceLoss(0.1, 3), StatedLoss(0.1, 0.0)):
        total = compose(other, nothing)
        assert total.epsilon(0.5) == math.inf
        assert total.epsilon(0.999999) == math.inf
        assert total.delta(1e6) == 1.0


def test_large_stated_epsilons_add_up() -> None:
    total = compose(*[StatedLoss(400.0, 0.0)] * 3)
    assert 1199.9 < total.epsilon(1e-9) < 1201
    assert total.delta(1100.0) == pytest.approx(1.0, abs=1e-9)


# Mixed


MIXED: list[PrivacyLoss] = [
    SphericalLaplaceLoss(2.5, 10),
    GaussianLoss(0.6),
    StatedLoss(0.5, 1e-4),
    StaircaseLoss(1.0, 0.8, 0.4),
    GaussianLoss(0.3),
]


def mixed_truth() -> Curve:
    curve = gaussian_curve(math.hypot(0.6, 0.3))
    for parts in (all_of(2.5, 10, 80), stated_parts(0.5, 1e-4), staircase_parts(1.0, 0.8, 0.4)):
        curve = and_also(curve, parts)
    return curve


def test_mixed_losses_against_the_exact_integral() -> None:
    merged = [*MIXED[:1], *MIXED[2:4], GaussianLoss(math.hypot(0.6, 0.3))]
    assert_covers(together(*MIXED), mixed_truth(), merged, [0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])


def test_long_staircase_shift_with_a_laplace_against_the_exact_integral() -> None:
    parts: list[PrivacyLoss] = [StaircaseLoss(2.35, 0.9, 0.25), SphericalLaplaceLoss(3.0, 10)]
    truth = and_also(laplace_curve(3.0, 10), staircase_parts(2.35, 0.9, 0.25))
    assert_covers(compose(*parts), truth, parts, [0.0, 0.9, 1.8, 2.7, 3.5, 5.0])


def draw(loss: PrivacyLoss, n: int, rng: np.random.Generator) -> Floats:
    """The loss of n releases, drawn from the mechanism itself."""
    match loss:
        case SphericalLaplaceLoss(shift, d):
            z = rng.standard_normal((n, d))
            z *= (rng.gamma(d, size=n) / np.linalg.norm(z, axis=1))[:, None]
            norm = np.linalg.norm(z, axis=1)
            z[:, 0] -= shift
            return np.asarray(np.linalg.norm(z, axis=1) - norm)
        case GaussianLoss(mu):
            z = rng.standard_normal(n)
            return np.asarray(((z + mu) ** 2 - z**2) / 2)
        case StatedLoss(epsilon, delta):
            honest = np.where(rng.random(n) < 1 / (1 + math.exp(-epsilon)), epsilon, -epsilon)
            return np.where(rng.random(n) < delta, math.inf, honest)
        case StaircaseLoss(shift, level, gamma):
            periods = rng.geometric(-math.expm1(-level), size=n) - 1
            outer = rng.random(n) < (1 - gamma) * math.exp(-level) / (gamma + (1 - gamma) * math.exp(-level))
            place = np.where(outer, gamma + (1 - gamma) * rng.random(n), gamma * rng.random(n))
            z = (periods + place) * rng.choice([-1.0, 1.0], size=n)

            def level_of(x: Floats) -> Floats:
                whole, inside = np.divmod(np.abs(x), 1.0)
                return np.asarray(whole + (inside >= gamma))

            return np.asarray(level * (level_of(z - shift) - level_of(z)))
    raise TypeError(type(loss))


@pytest.mark.parametrize(
    "losses",
    [
        [SphericalLaplaceLoss(4.657, 10)] * 2,
        [SphericalLaplaceLoss(2.0, 10)] * 3,
        MIXED,
        [StaircaseLoss(1.7, 0.5, 0.4), StatedLoss(1.0, 0.01), SphericalLaplaceLoss(1.5, 2)],
    ],
)
def test_compositions_against_monte_carlo(losses: list[PrivacyLoss]) -> None:
    """A coin with heads probability (1 − e^{ε−L})₊ falls heads with probability δ(ε) exactly."""
    rng, n = np.random.default_rng(21), 400_000
    total, coin = sum(draw(loss, n, rng) for loss in losses), rng.random(n)
    composed = together(*losses)
    coarse = len(losses) * sum(loss.reach() for loss in losses) / RESOLUTION

    def heads(epsilon: float) -> int:
        return int((coin < -np.expm1(np.minimum(0.0, epsilon - total))).sum())

    for epsilon in (0.0, 0.7, 1.5, 3.0):
        fewest, most = heads(epsilon), heads(epsilon - coarse)
        assert composed.delta(epsilon) >= stats.beta.ppf(FALSE_ALARM, fewest, n - fewest + 1)
        assert composed.delta(epsilon) <= stats.beta.isf(FALSE_ALARM, most + 1, n - most)


def test_order_does_not_matter() -> None:
    reference = compose(*MIXED[:4])
    for order in list(itertools.permutations(MIXED[:4]))[5::8]:
        total = compose(*order)
        for epsilon in (0.0, 1.0, 2.5, 5.0):
            assert total.delta(epsilon) == pytest.approx(reference.delta(epsilon), rel=1e-9, abs=1e-13)


def test_a_composition_is_never_below_its_parts() -> None:
    for losses in (MIXED[:3], MIXED[2:], MIXED[::3]):
        total = compose(*losses)
        for part in losses:
            for epsilon in (0.0, 0.4, 1.0, 2.0, 4.0):
                assert total.delta(epsilon) >= part.delta(epsilon) * (1 - 1e-9)


def test_more_releases_never_cost_less() -> None:
    losses: list[PrivacyLoss] = [SphericalLaplaceLoss(1.0, 5), StatedLoss(0.3, 1e-6), StatedLoss(0.1, 0.0)]
    epsilons = [compose(*losses[:n]).epsilon(1e-5) for n in (1, 2, 3)]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] <= 1.4 * (1 + 1e-3)


def test_epsilon_of_a_composition_is_enough_and_hardly_more() -> None:
    total, truth = together(*MIXED), mixed_truth()
    for delta in (1e-3, 0.01, 0.1):
        epsilon = total.epsilon(delta)
        assert truth(np.array([epsilon]))[0] <= delta
        assert truth(np.array([epsilon - 0.01]))[0] > delta
    assert total.epsilon(1e-5) == math.inf  # one of its parts fails with probability 10⁻⁴


def test_one_loss_alone_is_itself() -> None:
    for loss in MIXED:
        assert compose(loss) == loss


def test_nothing_to_compose_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        compose()


def test_composing_a_composition_again_is_refused() -> None:
    with pytest.raises(TypeError, match="one call"):
        compose(together(*MIXED), MIXED[0])


@pytest.mark.parametrize(
    "losses", [[StatedLoss(0.0, 0.1), StatedLoss(0.0, 0.1)], [GaussianLoss(0.0), StatedLoss(1.0, 0.1)]]
)
def test_losses_of_nothing_compose(losses: list[PrivacyLoss]) -> None:
    assert compose(*losses).delta(2.0) >= losses[1].delta(2.0)


def test_far_spherical_laplaces_in_many_dimensions_compose() -> None:
    assert compose(SphericalLaplaceLoss(3500.0, 200), StatedLoss(1.0, 0.0)).delta(3000.0) > 0.9


# Imperfect losses


def test_imperfections_add_up_and_losses_compose() -> None:
    a, b = SphericalLaplaceLoss(1.0, 3), StaircaseLoss(1.0, 0.5, 0.4)
    first, second = Imperfection(0.01, 1e-5), Imperfection(0.002, 1e-7)
    total = compose(ImperfectLoss(a, first), GaussianLoss(0.4), ImperfectLoss(b, second))
    assert isinstance(total, ImperfectLoss)
    assert total.imperfection.log_error == pytest.approx(0.012, rel=1e-14)
    assert total.imperfection.tail == pytest.approx(1.01e-5, rel=1e-14)
    ideal = compose(a, GaussianLoss(0.4), b)
    for epsilon in (0.024, 0.5, 1.0, 2.0):
        expected = math.exp(0.012) * ideal.delta(epsilon - 0.024) + 1.01e-5
        assert total.delta(epsilon) == pytest.approx(expected, rel=1e-12)


def test_imperfect_gaussians_are_still_merged() -> None:
    imperfect = ImperfectLoss(GaussianLoss(0.3), Imperfection(1e-12, 2.0**-90))
    total = compose(imperfect, GaussianLoss(0.4))
    assert isinstance(total, ImperfectLoss)
    assert total.ideal == GaussianLoss(0.5)


def test_perfect_imperfection_changes_nothing() -> None:
    for loss in MIXED:
        for epsilon in (0.0, 0.3, 1.0):
            same = ImperfectLoss(loss, Imperfection(0.0, 0.0)).delta(epsilon)
            assert same == pytest.approx(loss.delta(epsilon), rel=1e-11)


def test_imperfect_curve_covers_every_sampler_that_is_so_imperfect() -> None:
    """Random discrete samplers: P′ ≤ e^η·P but for mass τ, and Q′ ≥ e^−η·Q, as unfavorable as possible."""
    rng = np.random.default_rng(22)
    epsilon0 = 1.3
    for _ in range(2000):
        eta, tail = float(10 ** rng.uniform(-4, -0.5)), float(rng.choice([0.0, 1e-3, 0.05]))
        ratio = np.exp(rng.uniform(-epsilon0, epsilon0, size=6))
        q = rng.dirichlet(np.ones(6))
        p = ratio * q / (ratio * q).sum()
        epsilon = float(rng.uniform(0, 2.0))

        class Known(StatedLoss):
            """The exact curve of this one pair."""

            def delta(self, epsilon: float, p: Floats = p, q: Floats = q) -> float:
                return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())

        up = p - math.exp(epsilon) * q > 0
        drawn_p = np.where(up, p * math.exp(eta), p)
        drawn_q = np.where(up, q * math.exp(-eta), q)
        worst = float(np.maximum(0.0, drawn_p - math.exp(epsilon) * drawn_q).sum()) + tail
        claimed = ImperfectLoss(Known(1.0, 0.0), Imperfection(eta, tail)).delta(epsilon)
        assert min(1.0, worst) <= claimed * (1 + 1e-12)


def test_imperfection_raises_the_curve() -> None:
    loss = SphericalLaplaceLoss(2.0, 3)
    for epsilon in (0.0, 1e-9, 1e-3, 0.5, 1.9, 2.0, 3.0):
        deltas = [
            ImperfectLoss(loss, Imperfection(eta, 1e-6)).delta(epsilon) for eta in (0.0, 1e-4, 0.01, 0.3)
        ]
        assert deltas == sorted(deltas)
        assert deltas[0] >= loss.delta(epsilon) + 1e-6 - 1e-15
    falling = [ImperfectLoss(loss, Imperfection(0.1, 1e-6)).delta(e) for e in np.linspace(0, 3, 100)]
    assert falling == sorted(falling, reverse=True)


def test_a_pure_composition_is_free_only_from_its_largest_loss_on() -> None:
    """The float sum of two largest losses can lie below their sum: δ there is not zero."""
    a, b = 1.8199073273015396, 2.188489682951995
    together = compose(StatedLoss(a, 0.0), StatedLoss(b, 0.0))
    assert together.delta(a + b) > 0
    assert together.delta(math.nextafter(a + b, math.inf)) == 0
    assert together.epsilon(0.0) == pytest.approx(a + b, rel=1e-12)

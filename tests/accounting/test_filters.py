"""Privacy filters: divergences against closed forms, what fits a budget, multiples of distance."""

import math
from collections.abc import Callable
from typing import Any

import mpmath  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest

from targetdp.accounting import (
    FilterKind,
    GaussianLoss,
    Imperfection,
    ImperfectLoss,
    PrivacyFilter,
    PrivacyLoss,
    ResponseLoss,
    SphericalLaplaceLoss,
    StaircaseLoss,
    StatedLoss,
    largest_mu,
)

KINDS: tuple[FilterKind, ...] = ("pure", "gaussian", "renyi")
ORDERS = (1.01, 1.5, 2.0, 5.0, 30.0, 1000.0)
SIZES = (1e-6, 0.01, 0.3, 1.0, 4.0, 20.0)
CLOSE = 0.02


def response(epsilon: float) -> ResponseLoss:
    """Randomized response, the worst that is pure."""
    return ResponseLoss(epsilon)


# Divergences


def response_divergence(epsilon: float, order: float) -> float:
    with mpmath.workdps(50):
        e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
        odds = [1 / (1 + mpmath.exp(-e)), 1 / (1 + mpmath.exp(e))]
        power = sum(p**a * q ** (1 - a) for p, q in zip(odds, odds[::-1], strict=True))
        return float(mpmath.log(power) / (a - 1))


def laplace_divergence(shift: float, order: float) -> float:
    """∫ p^α·q^{1−α} of two Laplace densities in pieces: left of both, between them, right of both."""
    with mpmath.workdps(50):
        x, a = mpmath.mpf(shift), mpmath.mpf(order)
        power = a * mpmath.exp((a - 1) * x) + (a - 1) * mpmath.exp(-a * x)
        return float(mpmath.log(power / (2 * a - 1)) / (a - 1))


def spherical_divergence(shift: float, order: float) -> float:
    """In three dimensions and prolate coordinates around both rows, where r₁ = a(ξ + η), r₂ = a(ξ − η)."""
    with mpmath.workdps(60):
        a = mpmath.mpf(shift) / 2
        b = (2 * mpmath.mpf(order) - 1) * a
        outer, outer_squares = mpmath.exp(-a) / a, mpmath.exp(-a) * (1 / a + 2 / a**2 + 2 / a**3)
        inner = 2 * mpmath.sinh(b) / b
        inner_squares = 2 * (mpmath.sinh(b) * (1 / b + 2 / b**3) - 2 * mpmath.cosh(b) / b**2)
        power = a**3 / 4 * (outer_squares * inner - outer * inner_squares)
        return float(mpmath.log(power) / (mpmath.mpf(order) - 1))


def staircase_divergence(loss: StaircaseLoss, order: float) -> float:
    """E_P[e^{(α−1)L}] over the values of the loss."""
    values, masses = loss.losses()
    with mpmath.workdps(50):
        pairs = zip(values.tolist(), masses.tolist(), strict=True)
        power = mpmath.fsum(mpmath.mpf(mass) * mpmath.exp((order - 1) * value) for value, mass in pairs)
        return float(mpmath.log(power / mpmath.fsum(masses.tolist())) / (order - 1))


STAIRCASES = [StaircaseLoss(*given) for given in ((1.0, 0.5, 0.4), (0.3, 2.0, 0.2), (2.5, 1.0, 0.7))]
DIVERGENCES: list[tuple[PrivacyLoss, Callable[[float], float]]] = [
    *((GaussianLoss(x), lambda a, x=x: a * x * x / 2) for x in SIZES),
    *((response(x), lambda a, x=x: response_divergence(x, a)) for x in SIZES),
    *((SphericalLaplaceLoss(x, 1), lambda a, x=x: laplace_divergence(x, a)) for x in SIZES),
    *((SphericalLaplaceLoss(x, 3), lambda a, x=x: spherical_divergence(x, a)) for x in (0.01, 1.0, 20.0)),
    *((loss, lambda a, loss=loss: staircase_divergence(loss, a)) for loss in STAIRCASES),
]


@pytest.mark.parametrize(("loss", "truth"), DIVERGENCES, ids=lambda of: str(of) if of in SIZES else "")
def test_divergences_are_never_below_the_truth_and_hardly_above(
    loss: PrivacyLoss, truth: Callable[[float], float]
) -> None:
    for order in ORDERS:
        exact, found = truth(order), loss.renyi(order)
        assert exact * (1 - 1e-12) <= found <= exact * (1 + CLOSE), (loss, order)
        assert found <= loss.largest()


def test_the_closed_form_in_three_dimensions_is_that_of_random_draws() -> None:
    rng = np.random.default_rng(5)
    z = rng.standard_normal((400_000, 3))
    z *= (rng.gamma(3, size=len(z)) / np.linalg.norm(z, axis=1))[:, None]
    losses = np.linalg.norm(z - [1.5, 0, 0], axis=1) - np.linalg.norm(z, axis=1)
    for order in (1.5, 3.0):
        drawn = math.log(np.exp((order - 1) * losses).mean()) / (order - 1)
        assert spherical_divergence(1.5, order) == pytest.approx(drawn, rel=0.02)


def test_divergences_at_the_ends() -> None:
    assert response(0.0).renyi(2.0) == GaussianLoss(0.0).renyi(2.0) == 0.0
    assert StatedLoss(1.0, 1e-9).renyi(2.0) == math.inf, "what fails with some probability has none"
    assert response(800.0).renyi(1e6) == pytest.approx(800.0, rel=1e-3)
    assert 0 < response(1e-300).renyi(2.0) <= 1e-300
    assert 0 < response(5e-324).renyi(2.0) <= 5e-324
    for bad in (1.0, 0.5, math.nan, math.inf):
        for loss in (response(1.0), GaussianLoss(1.0)):
            with pytest.raises(ValueError, match="order"):
                loss.renyi(bad)


# Normal noise that tells at least as much


@pytest.mark.parametrize(
    "loss",
    [*(response(x) for x in SIZES), *(SphericalLaplaceLoss(x, 3) for x in (0.3, 4.0)), *STAIRCASES],
    ids=repr,
)
def test_normal_noise_dominates(loss: PrivacyLoss) -> None:
    other = GaussianLoss(loss.gaussian())
    for epsilon in np.linspace(0.0, loss.largest(), 200, endpoint=False).tolist():
        # Where both touch, δ of either is rounded up by its own margin.
        assert loss.delta(epsilon) <= other.delta(epsilon) * (1 + 1e-9) + 1e-13, (loss, epsilon)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-20, 1e-12, 1e-8, 9e-4, 1e-3, 0.1, 1.0, 30.0, 745.0, 1e5])
def test_its_mu_is_never_below_the_truth(epsilon: float) -> None:
    """μ = −2Φ⁻¹(1/(1 + e^ε)), also where that is near Φ⁻¹(1/2), and where e^ε leaves the range of floats."""
    mu = response(epsilon).gaussian()
    with mpmath.workdps(360):  # 1e-300 beside 1/2
        wrong = mpmath.log(mpmath.erfc(mpmath.mpf(mu) / mpmath.sqrt(8)) / 2)
        above = mpmath.log(mpmath.erfc(mpmath.mpf(mu) * (1 - mpmath.mpf(10) ** -6) / mpmath.sqrt(8)) / 2)
        least = -mpmath.log1p(mpmath.exp(mpmath.mpf(epsilon)))
        assert wrong <= least < above


def test_what_has_no_bound_is_dominated_by_nothing() -> None:
    assert StatedLoss(1.0, 1e-9).gaussian() == math.inf
    assert response(0.0).gaussian() == 0.0
    assert GaussianLoss(0.7).gaussian() == 0.7


# Budgets


def most(accepts: Callable[[float], bool], high: float = 8.0) -> float:
    """The largest size that is accepted."""
    low = 0.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return low


def fits(limit: PrivacyFilter, *losses: PrivacyLoss) -> bool:
    costs = [limit.cost(loss) for loss in losses]
    return all(
        math.fsum(part) <= most for part, most in zip(zip(*costs, strict=True), limit.budget, strict=True)
    )


@pytest.mark.parametrize("parts", [1, 3, 7, 10, 49])
def test_a_pure_budget_is_what_its_parts_add_up_to(parts: int) -> None:
    limit = PrivacyFilter("pure", 0.3, 1e-6)
    assert fits(limit, *[response(0.3 / parts)] * parts)
    assert not fits(limit, *[response(0.3 / parts)] * parts, response(0.001))
    assert not fits(limit, GaussianLoss(1e-6)), "it has no bound"
    total = sum(limit.cost(response(0.3 / parts)).amount for _ in range(parts))
    assert total <= limit.budget.amount, "however it is added"


def test_normal_noise_at_the_limit_nearly_fits() -> None:
    limit, mu = PrivacyFilter("gaussian", 4.0, 1e-5), largest_mu(4.0, 1e-5)
    assert not fits(limit, GaussianLoss(mu))
    assert fits(limit, GaussianLoss(0.99 * mu))
    assert fits(limit, *[GaussianLoss(0.99 * mu / 3)] * 9), "squares add up"
    assert not fits(limit, *[GaussianLoss(mu / 3)] * 9)


def test_the_default_order_leaves_three_quarters() -> None:
    for epsilon, delta in ((10.0, 1e-5), (4.0, 1 / 4202), (1.0, 1e-9)):
        limit = PrivacyFilter("renyi", epsilon, delta)
        assert limit.budget.amount == pytest.approx(0.75 * epsilon, rel=0.01)
        assert fits(limit, response(0.75 * epsilon * 0.99))
    assert PrivacyFilter("renyi", 1e-4, 1e-9).budget.amount >= 0, "too little for this δ"


def test_a_budget_makes_its_own_promise() -> None:
    """One release that takes the whole budget, by the conversion of Mironov (2017), which is a weaker one."""
    for order in (2.0, 5.0, 20.0):
        limit = PrivacyFilter("renyi", 4.0, 1e-5, order)
        weaker = 4.0 + math.log(1e-5) / (order - 1)
        assert limit.budget.amount > weaker - 0.01
        # The largest δ of normal noise with that divergence.
        mu = math.sqrt(2 * limit.budget.amount / order)
        assert limit.budget.amount == 0 or GaussianLoss(mu).delta(4.0) <= 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_samplers_that_are_not_ideal_are_charged_for(kind: FilterKind) -> None:
    limit, ideal, own = PrivacyFilter(kind, 4.0, 1e-5), response(0.5), Imperfection(1e-9, 1e-12)
    plain, cost = limit.cost(ideal), limit.cost(ImperfectLoss(ideal, own))
    assert (plain.log_error, plain.tail, cost.tail) == (0.0, 0.0, 1e-12)
    if kind == "pure":
        assert cost.amount == pytest.approx(plain.amount + 2e-9, rel=1e-15)
        assert cost.log_error == 0.0
    else:
        assert (cost.amount, cost.log_error) == (plain.amount, 1e-9)
        assert not fits(limit, ImperfectLoss(ideal, Imperfection(2.0**-13, 0.0)))
    assert fits(limit, ImperfectLoss(ideal, own))
    assert not fits(limit, ImperfectLoss(ideal, Imperfection(0.0, 1e-5)))
    assert limit.cost(ideal, ImperfectLoss(ideal, own)) == pytest.approx(
        tuple(a + b for a, b in zip(plain, cost, strict=True))
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_stated_delta_is_set_aside(kind: FilterKind) -> None:
    limit = PrivacyFilter(kind, 4.0, 1e-5)
    cost = limit.cost(StatedLoss(0.5, 1e-8))
    assert cost.tail == 1e-8
    assert cost.amount == pytest.approx(limit.cost(response(0.5)).amount, rel=1e-6)
    assert fits(limit, StatedLoss(0.5, 1e-8))
    assert not fits(limit, StatedLoss(0.5, 1e-5))
    assert not fits(limit, StatedLoss(0.5, 1.0)), "it promises nothing"


@pytest.mark.parametrize("kind", KINDS)
def test_imperfect_releases_at_the_budget_keep_the_limit(kind: FilterKind) -> None:
    """P′(S) ≤ e^{ε + 2η}·Q′(S) + e^η·δ + τ, with all that was set aside used up."""
    limit = PrivacyFilter(kind, 4.0, 1e-5)
    whole = limit.budget
    eta = 0.0 if kind == "pure" else whole.log_error
    size = most(lambda x: limit.cost(response(x)).amount <= whole.amount)
    losses: list[PrivacyLoss] = [response(size)]
    if kind == "gaussian":
        losses.append(GaussianLoss(math.sqrt(whole.amount)))
    for loss in losses:
        assert ImperfectLoss(loss, Imperfection(eta, whole.tail)).delta(4.0) <= 1e-5 * (1 + 1e-9)


# At a multiple of the distance


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-5), (4.0, 1e-9), (30.0, 1e-5)])
def test_what_fits_at_a_distance_fits_at_a_multiple_of_it(
    kind: FilterKind, epsilon: float, delta: float
) -> None:
    rng = np.random.default_rng(2)
    limit = PrivacyFilter(kind, epsilon, delta)
    makers: list[Callable[[float], PrivacyLoss]] = [response, lambda x: SphericalLaplaceLoss(x, 1)]
    if kind != "pure":
        makers.append(GaussianLoss)
    for times in (2, 3, 8, 200):
        wide = limit.widened(times)
        assert wide.epsilon >= epsilon
        for count in (1, 2, 15):
            shares = rng.dirichlet(np.ones(count)) * (1 - 1e-9)
            chosen = rng.integers(len(makers), size=count)
            made = [(share, makers[k]) for share, k in zip(shares.tolist(), chosen.tolist(), strict=True)]
            sized = [(_largest_of(limit, make, share), make) for share, make in made]
            near = [make(size) for size, make in sized]
            far = [make(times * size) for size, make in sized]
            assert fits(limit, *near)
            assert fits(wide, *far), (times, near)


def _largest_of(limit: PrivacyFilter, make: Callable[[float], PrivacyLoss], share: float) -> float:
    """The largest loss of a kind that takes some share; without the hair that a pure filter has."""
    whole = limit.epsilon if limit.kind == "pure" else limit.budget.amount
    return most(lambda size: limit.cost(make(size)).amount <= share * whole, 2 * limit.epsilon + 1)


def test_a_wider_filter_promises_no_less_than_groups() -> None:
    """Never much more than what pure ε and normal noise become, by themselves."""
    wide = PrivacyFilter("gaussian", 4.0, 1e-5).widened(8)
    assert wide.epsilon == pytest.approx(GaussianLoss(8 * largest_mu(4.0, 1e-5)).epsilon(1e-5), rel=0.02)
    assert PrivacyFilter("pure", 4.0, 1e-5).widened(8) == PrivacyFilter("pure", 32.0, 1e-5)
    for epsilon in (0.5, 1.0, 4.0, 10.0):
        assert PrivacyFilter("renyi", epsilon, 1e-5).widened(8).epsilon <= 20 * epsilon


# Bad arguments


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("exact", 1.0, 1e-5), "kind"),
        (("pure", -1.0, 1e-5), "epsilon"),
        (("pure", math.inf, 1e-5), "epsilon"),
        (("pure", math.nan, 1e-5), "epsilon"),
        (("renyi", 1.0, 0.0), "delta"),
        (("renyi", 1.0, 1.0), "delta"),
        (("pure", 1.0, 1e-5, 2.0), "order = 2.0 belongs to Rényi divergences: leave it out"),
        (("gaussian", 1.0, 1e-5, 2.0), "leave it out"),
        (("renyi", 1.0, 1e-5, 1.0), "order"),
        (("renyi", 1.0, 1e-5, 1e7), "order"),
    ],
)
def test_bad_arguments_are_refused(given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PrivacyFilter(*given)

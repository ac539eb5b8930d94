"""What releases cost together, against other computations: sums of μ², bounds on pure losses, Lemmas."""

import math

import pytest
from scipy import optimize, stats

from targetdp.accounting import StatedLoss, compose
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import GaussianLaw, GaussianNoise, SphericalLaplace, Staircase
from targetdp.release import LimitExceeded, Spending
from targetdp.release._certificate._charge import Charge
from targetdp.release._ledger._spending import measure

LIMIT = Guarantee(0.25, 8.0, 1e-5)
D = 10
CLOSE = 1e-4
"""The grid and the imperfection of the sampler cost a little more than ideal noise."""


def gaussian(B: float = 0.25, epsilon: float = 1.0, delta: float = 1e-5) -> Charge:
    return Charge(law=GaussianNoise(B=B, epsilon=epsilon, delta=delta).law(D))


def laplace(B: float = 0.25, epsilon: float = 1.0, delta: float = 0.0) -> Charge:
    return Charge(law=SphericalLaplace(B=B, epsilon=epsilon, delta=delta).law(D))


UNBOUNDED = Charge(unbounded="k-anonymity")


def gaussian_epsilon(mu: float, delta: float) -> float:
    """ε of normal noise by root finding on Balle and Wang's formula, independent of the package."""

    def excess(e: float) -> float:
        return float(stats.norm.cdf(mu / 2 - e / mu) - math.exp(e) * stats.norm.cdf(-mu / 2 - e / mu) - delta)

    return float(optimize.brentq(excess, 0.0, 100.0, xtol=1e-12))


def mu_of(charge: Charge, distance: float) -> float:
    assert isinstance(charge.law, GaussianLaw)
    return distance / charge.law.deviation


def test_nothing_spent_is_nothing() -> None:
    assert measure([], LIMIT) == Spending(0.0, 0.0, 0.0, 8.0, LIMIT)


def test_normal_noise_adds_its_squares() -> None:
    charges = [gaussian(0.25, 1.0), gaussian(0.1, 0.5, 1e-6), gaussian(1.0, 3.0, 1e-4)]
    spending = measure([(c, None) for c in charges[:2]], LIMIT, charges[2])
    mus = [mu_of(c, 0.25) for c in charges]
    assert spending.requested == pytest.approx(gaussian_epsilon(mus[2], 1e-5), rel=CLOSE)
    assert spending.spent == pytest.approx(gaussian_epsilon(math.hypot(*mus[:2]), 1e-5), rel=CLOSE)
    assert spending.total == pytest.approx(gaussian_epsilon(math.hypot(*mus), 1e-5), rel=CLOSE)
    assert spending.total >= gaussian_epsilon(math.hypot(*mus), 1e-5) * (1 - 1e-12)
    assert spending.remaining == 8.0 - spending.spent


def test_pure_losses_stay_below_their_sum_and_above_each() -> None:
    """ε·r/B adds up as an upper bound: the switch from B = 0.1 to 0.25 multiplies by 2.5."""
    counted = [(laplace(0.1, 0.4), None), (laplace(0.5, 1.0), None)]
    spending = measure(counted, LIMIT, laplace(0.25, 1.0))
    assert spending.spent < 0.4 * 2.5 + 1.0 * 0.5
    assert spending.spent < spending.total < 0.4 * 2.5 + 1.0 * 0.5 + 1.0
    assert spending.total > max(spending.spent, spending.requested)
    # In the limit of no δ, pure losses do add up.
    strict = Guarantee(0.25, 8.0, 2.0**-80)
    exactly = 0.4 * 2.5 + 1.0 * 0.5
    assert measure(counted, strict).spent == pytest.approx(exactly, rel=1e-2)


def test_a_stated_guarantee_is_switched_to_the_limits_distance() -> None:
    stated = Charge(stated=Guarantee(0.1, 0.5, 1e-8))
    expected = Guarantee(0.1, 0.5, 1e-8).at_distance(0.25)  # three steps
    assert expected.epsilon == 1.5
    spent = measure([(stated, None)], LIMIT).spent
    assert 1.5 * 0.99 < spent <= 1.5


def test_scales_that_were_paid_for_are_charged_too() -> None:
    law = gaussian().law
    paid = Charge(law=law, scales=Guarantee(2.0, 0.5))
    with_scales, without = (
        measure([(paid, None)], LIMIT).spent,
        measure([(Charge(law=law), None)], LIMIT).spent,
    )
    assert without < with_scales <= without + 0.5 + 1e-3


def test_a_tiny_B_does_not_sneak_past() -> None:
    """At B = 0.01, ε = 1 pure noise has scale 0.01: at distance 0.25 its loss is up to 25."""
    tiny = laplace(0.01, 1.0)
    spending = measure([], LIMIT, tiny)
    assert 18 < spending.requested <= 25.01
    assert not spending.fits
    normal = measure([], LIMIT, gaussian(0.01, 1.0))
    mu = mu_of(gaussian(0.01, 1.0), 0.25)
    assert normal.requested == pytest.approx(gaussian_epsilon(mu, 1e-5), rel=CLOSE)
    assert not normal.fits
    # By the label alone it would be ε = 1.
    assert measure([], Guarantee(0.01, 1.0, 1e-5), tiny).fits


@pytest.mark.parametrize(
    "charge",
    [
        Charge(law=GaussianNoise(B=0.25, epsilon=2.0, delta=1e-5).law(D)),
        Charge(law=SphericalLaplace(B=0.25, epsilon=2.0, delta=1e-5).law(D)),
        Charge(law=SphericalLaplace(B=0.25, epsilon=2.0).law(D)),
        Charge(law=Staircase(B=0.25, epsilon=2.0).law(1)),
        Charge(stated=Guarantee(0.25, 2.0, 1e-5)),
    ],
)
def test_a_release_at_the_limit_itself_fits_once(charge: Charge) -> None:
    limit = Guarantee(0.25, 2.0, 1e-5)
    once = measure([], limit, charge)
    assert once.fits
    assert once.total <= 2.0
    assert not measure([(charge, None)], limit, charge).fits


def test_parts_cost_as_much_as_the_worst() -> None:
    everybody, north, south = gaussian(epsilon=0.5), gaussian(epsilon=2.0), gaussian(epsilon=1.0)
    counted = [(everybody, None), (north, "north"), (south, "south")]

    def epsilon(*charges: Charge) -> float:
        return gaussian_epsilon(math.hypot(*(mu_of(c, 0.25) for c in charges)), 1e-5)

    spending = measure(counted, LIMIT, south, "south")
    assert spending.spent == pytest.approx(epsilon(everybody, north), rel=CLOSE)
    assert spending.total == pytest.approx(
        max(epsilon(everybody, north), epsilon(everybody, south, south)), rel=CLOSE
    )
    assert measure(counted, LIMIT, north, "south").total == pytest.approx(
        epsilon(everybody, south, north), rel=CLOSE
    )
    assert measure(counted, LIMIT, south, "east").total == spending.spent
    # What is about everybody composes with every part.
    assert measure(counted, LIMIT, south, None).total == pytest.approx(
        epsilon(everybody, north, south), rel=CLOSE
    )


def test_parts_that_are_within_another_are_not_composed_for_nothing() -> None:
    counted = [(gaussian(), "a"), (gaussian(), "b"), (gaussian(), "b"), (gaussian(epsilon=0.1), "c")]
    assert measure(counted, LIMIT).spent == measure([(gaussian(), None)] * 2, LIMIT).spent


def test_what_has_no_bound_makes_everything_infinite() -> None:
    counted = [(UNBOUNDED, "north")]
    spending = measure(counted, LIMIT, gaussian(), "south")
    assert (spending.spent, spending.total, spending.remaining) == (math.inf, math.inf, 0.0)
    assert not spending.fits
    assert measure([], LIMIT, UNBOUNDED).requested == math.inf
    assert not measure(counted, None, gaussian()).fits


def test_a_stated_delta_beyond_the_limits_is_infinite() -> None:
    spending = measure([], LIMIT, Charge(stated=Guarantee(0.25, 0.1, 1e-4)))
    assert spending.requested == spending.total == math.inf
    # Each is below the limit's δ, both together are not.
    half = Charge(stated=Guarantee(0.25, 0.1, 6e-6))
    assert measure([], LIMIT, half).fits
    assert measure([(half, None)], LIMIT, half).total == math.inf


def test_losses_beyond_floating_point_are_infinite() -> None:
    counted = [(laplace(1e-6, 1.0), None), (gaussian(1e-6, 1.0), None)]
    assert measure(counted, Guarantee(2.0, 8.0, 1e-5)).spent > 1e6


def test_without_a_limit_nothing_is_measured() -> None:
    spending = measure([(gaussian(), None)], None, gaussian())
    assert all(
        math.isnan(x) for x in (spending.requested, spending.spent, spending.total, spending.remaining)
    )
    assert spending.fits


def test_stated_losses_compose_like_the_accounting_says() -> None:
    stated = Charge(stated=Guarantee(0.25, 0.3, 1e-9))
    loss = StatedLoss(0.3, 1e-9)
    assert measure([(stated, None)] * 10, LIMIT).spent == compose(*[loss] * 10).epsilon(1e-5)


def test_the_refusal_says_what_is_needed() -> None:
    message = str(LimitExceeded("subscribers", Spending(4.0, 6.5, 9.25, 1.5, LIMIT)))
    for part in ("'subscribers'", "requested ε = 4,", "spent 6.5,", "remaining 1.5,", "together 9.25,"):
        assert part in message
    assert "limit 8 (each ε at distance 0.25 and δ = 1e-05)" in message
    assert "smaller ε" in message
    assert "override" in message
    unbounded = LimitExceeded(
        "s", Spending(math.inf, 0, math.inf, 8, LIMIT), ["it has no bound (k-anonymity)"]
    )
    assert "requested ε = without bound" in str(unbounded)
    assert "k-anonymity" in str(unbounded)
    nothing = LimitExceeded("s", Spending(math.inf, math.nan, math.inf, math.nan, None))
    assert "spent not measured, no limit is set" in str(nothing)

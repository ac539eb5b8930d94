"""What releases cost each person, against other computations: sums of μ², bounds on pure losses, sets."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from support.ledgers import people
from targetdp._core import Words
from targetdp.accounting import compose
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import GaussianLaw, GaussianNoise, Scores, SphericalLaplace, Staircase
from targetdp.release import Charge, LimitExceeded, ReleaseRow, Spending
from targetdp.release._ledger import _spending as spending_module
from targetdp.release._ledger._spending import History, measure, rows_named

LIMIT = Guarantee(0.25, 8.0, 1e-5)
D = 10
CLOSE = 1e-4
"""The grid and the imperfection of the sampler cost a little more than ideal noise."""
EVERYBODY = people(range(10))


def gaussian(B: float = 0.25, epsilon: float = 1.0, delta: float = 1e-5) -> Charge:
    return Charge(GaussianNoise(B=B, epsilon=epsilon, delta=delta).law(D))


def laplace(B: float = 0.25, epsilon: float = 1.0, delta: float = 0.0) -> Charge:
    return Charge(SphericalLaplace(B=B, epsilon=epsilon, delta=delta).law(D))


def measured(
    earlier: Sequence[Charge | tuple[Charge, Words]],
    asked: Charge | None = None,
    who: Words = EVERYBODY,
    limit: Guarantee = LIMIT,
) -> Spending:
    """The budget of some people after releases, of everybody or of those who are named."""
    history, tags = History(), {}
    for number, one in enumerate(earlier):
        charge, whose = one if isinstance(one, tuple) else (one, EVERYBODY)
        name = f"r{number}"
        history.releases[name] = ReleaseRow(name, "published", charge, "", {}, "", number, number)
        tags[name] = whose
    return measure(history, limit, lambda row: tags[row.release], who, asked)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """ε of normal noise by root finding on Balle and Wang's formula, independent of the package."""

    def excess(e: float) -> float:
        return float(stats.norm.cdf(mu / 2 - e / mu) - math.exp(e) * stats.norm.cdf(-mu / 2 - e / mu) - delta)

    return float(optimize.brentq(excess, 0.0, 100.0, xtol=1e-12)) if excess(0.0) > 0 else 0.0


def mu_of(charge: Charge, distance: float = 0.25) -> float:
    assert isinstance(charge.law, GaussianLaw)
    return distance / charge.law.deviation


def epsilon_of(*charges: Charge) -> float:
    return gaussian_epsilon(math.hypot(*map(mu_of, charges)), 1e-5) if charges else 0.0


# Composition


def test_nothing_spent_is_nothing() -> None:
    found = measured([])
    assert (found.requested, found.spent, found.total, found.remaining) == (0.0, 0.0, 0.0, 8.0)
    assert found.fits
    assert found.known == {}


def test_normal_noise_adds_its_squares() -> None:
    charges = [gaussian(0.25, 1.0), gaussian(0.1, 0.5, 1e-6), gaussian(1.0, 3.0, 1e-4)]
    spending = measured(charges[:2], charges[2])
    assert spending.requested == pytest.approx(epsilon_of(charges[2]), rel=CLOSE)
    assert spending.spent == pytest.approx(epsilon_of(*charges[:2]), rel=CLOSE)
    assert spending.total == pytest.approx(epsilon_of(*charges), rel=CLOSE)
    assert spending.total >= epsilon_of(*charges) * (1 - 1e-12)
    assert spending.remaining == 8.0 - spending.spent


def test_pure_losses_stay_below_their_sum_and_above_each() -> None:
    """ε·r/B adds up as an upper bound: the switch from B = 0.1 to 0.25 multiplies by 2.5."""
    counted = [laplace(0.1, 0.4), laplace(0.5, 1.0)]
    spending = measured(counted, laplace(0.25, 1.0))
    assert spending.spent < 0.4 * 2.5 + 1.0 * 0.5
    assert spending.spent < spending.total < 0.4 * 2.5 + 1.0 * 0.5 + 1.0
    assert spending.total > max(spending.spent, spending.requested)
    # In the limit of no δ, pure losses do add up.
    strict = Guarantee(0.25, 8.0, 2.0**-80)
    assert measured(counted, limit=strict).spent == pytest.approx(0.4 * 2.5 + 1.0 * 0.5, rel=1e-2)


def test_scales_that_were_paid_for_are_charged_too() -> None:
    law = gaussian().law
    with_scales, without = measured([Charge(law, Guarantee(2.0, 0.5))]).spent, measured([Charge(law)]).spent
    assert without < with_scales <= without + 0.5 + 1e-3


def test_a_tiny_B_does_not_sneak_past() -> None:
    """At B = 0.01, ε = 1 pure noise has scale 0.01: at distance 0.25 its loss is up to 25."""
    tiny = laplace(0.01, 1.0)
    spending = measured([], tiny)
    assert 18 < spending.requested <= 25.01
    assert not spending.fits
    normal = measured([], gaussian(0.01, 1.0))
    assert normal.requested == pytest.approx(epsilon_of(gaussian(0.01, 1.0)), rel=CLOSE)
    assert not normal.fits
    # By the label alone it would be ε = 1.
    assert measured([], tiny, limit=Guarantee(0.01, 1.0, 1e-5)).fits


@pytest.mark.parametrize(
    "charge",
    [
        Charge(GaussianNoise(B=0.25, epsilon=2.0, delta=1e-5).law(D)),
        Charge(SphericalLaplace(B=0.25, epsilon=2.0, delta=1e-5).law(D)),
        Charge(SphericalLaplace(B=0.25, epsilon=2.0).law(D)),
        Charge(Staircase(B=0.25, epsilon=2.0).law(1)),
        Charge(Scores([[1.0, 2.0]], SphericalLaplace(B=0.25, epsilon=2.0)).law(2)),
    ],
    ids=["gaussian", "spherical-laplace", "pure", "staircase", "scores"],
)
def test_a_release_at_the_limit_itself_fits_once(charge: Charge) -> None:
    limit = Guarantee(0.25, 2.0, 1e-5)
    once = measured([], charge, limit=limit)
    assert once.fits
    assert once.total <= 2.0
    assert not measured([charge], charge, limit=limit).fits


def test_losses_beyond_floating_point_are_infinite() -> None:
    assert measured([laplace(1e-6, 1.0), gaussian(1e-6, 1.0)], limit=Guarantee(2.0, 8.0, 1e-5)).spent > 1e6


def test_another_charge_is_tried_for_those_who_have_spent_most() -> None:
    found = measured([gaussian(epsilon=5.0)], gaussian(epsilon=1.0))
    assert found.with_charge(gaussian(epsilon=1.0)) == found.fits
    assert not found.with_charge(gaussian(epsilon=7.9))


# Person by person


def test_each_person_pays_for_what_she_is_in() -> None:
    everybody, north, south = gaussian(epsilon=0.5), gaussian(epsilon=2.0), gaussian(epsilon=1.0)
    in_north, in_south = people(range(5)), people(range(5, 10))
    counted: list[Charge | tuple[Charge, Words]] = [everybody, (north, in_north), (south, in_south)]

    def total(asked: Charge, *who: int) -> float:
        return measured(counted, asked, people(*who)).total

    assert measured(counted, south, in_south).spent == pytest.approx(epsilon_of(everybody, south), rel=CLOSE)
    assert total(south, 7) == pytest.approx(epsilon_of(everybody, south, south), rel=CLOSE)
    assert total(north, 7) == pytest.approx(epsilon_of(everybody, south, north), rel=CLOSE)
    assert total(south, 2) == pytest.approx(epsilon_of(everybody, north, south), rel=CLOSE)
    assert total(south, 2, 7) == pytest.approx(epsilon_of(everybody, north, south), rel=CLOSE), "the worst"
    assert total(south, 99) == pytest.approx(epsilon_of(south), rel=CLOSE), "a newcomer"
    found = measured(counted, south, people(2, 3, 7, 99))
    assert found.known == {"r0": 3, "r1": 2, "r2": 1}


SIZES = (0.05, 0.3, 1.0, 2.0)
MADE = {size: gaussian(epsilon=size) for size in SIZES}
PERSONS = st.sets(st.integers(0, 11), min_size=1)
HISTORIES = st.lists(st.tuples(st.sampled_from(SIZES), PERSONS), max_size=8)


def slow_twin(
    earlier: list[tuple[float, set[int]]], who: set[int], asked: float | None
) -> tuple[float, float]:
    """What the worst-off of some people has spent before and after, person by person, with sets alone."""
    before = after = 0.0
    for person in who:
        hers = [MADE[size] for size, whose in earlier if person in whose]
        before = max(before, epsilon_of(*hers))
        after = max(after, epsilon_of(*hers, *([] if asked is None else [MADE[asked]])))
    return before, after


@settings(max_examples=80)
@given(HISTORIES, PERSONS, st.sampled_from([None, *SIZES]))
def test_it_is_what_sets_of_people_say(
    earlier: list[tuple[float, set[int]]], who: set[int], asked: float | None
) -> None:
    found = measured(
        [(MADE[size], people(whose)) for size, whose in earlier],
        None if asked is None else MADE[asked], people(who), Guarantee(0.25, 1e3, 1e-5),
    )  # fmt: skip
    before, after = slow_twin(earlier, who, asked)
    assert found.spent == pytest.approx(before, rel=1e-3, abs=1e-6)
    assert found.total == pytest.approx(after, rel=1e-3, abs=1e-6)
    assert found.total >= after * (1 - 1e-9), "never less"
    assert found.known == {
        f"r{n}": len(whose & who) for n, (_, whose) in enumerate(earlier) if whose & who
    }  # fmt: skip


@settings(max_examples=40)
@given(HISTORIES, PERSONS, st.sampled_from(SIZES), st.integers(1, 3))
def test_with_more_groups_than_are_composed_nobody_spends_less(
    earlier: list[tuple[float, set[int]]], who: set[int], asked: float, most: int
) -> None:
    given_ = ([(MADE[size], people(whose)) for size, whose in earlier], MADE[asked], people(who))
    exact = measured(*given_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spending_module, "MOST_GROUPS", most)
        united = measured(*given_)
    assert united.spent >= exact.spent * (1 - 1e-9)
    assert united.total >= exact.total * (1 - 1e-9)
    assert united.known == exact.known


def test_beyond_the_most_groups_the_rest_is_united(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 9 people is in two releases of her own; two groups are composed, the rest as one."""
    monkeypatch.setattr(spending_module, "MOST_GROUPS", 3)
    charges = [gaussian(epsilon=0.1 + 0.01 * n) for n in range(9)]
    found = measured([(charge, people(n)) for n, charge in enumerate(charges)], who=people(range(9)))
    assert found.spent > measured([(c, people(n)) for n, c in enumerate(charges[:3])]).spent
    assert found.spent == pytest.approx(epsilon_of(*sorted(charges, key=mu_of)[:7]), rel=0.3)


@settings(max_examples=60)
@given(HISTORIES, PERSONS, st.sampled_from(SIZES), st.integers(0, 11), st.integers(0, 11))
def test_people_who_share_a_tag_never_spend_less(
    earlier: list[tuple[float, set[int]]], who: set[int], asked: float, one: int, other: int
) -> None:
    def collide(whose: set[int]) -> set[int]:
        return {one if person == other else person for person in whose}

    def total(name: Any) -> float:
        counted = [(MADE[size], people(name(whose))) for size, whose in earlier]
        return measured(counted, MADE[asked], people(name(who))).total

    assert total(collide) >= total(lambda whose: whose) * (1 - 1e-9)


def test_the_same_releases_are_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of people with the same history are one composition; a part of it is none."""
    spending_module._epsilon.cache_clear()
    calls = []

    def counted(*losses: Any) -> Any:
        calls.append(len(losses))
        return compose(*losses)

    monkeypatch.setattr(spending_module, "compose", counted)
    one, two = gaussian(epsilon=0.11), gaussian(epsilon=0.22)
    everybody = people(range(5000))
    measured([(one, everybody), (two, people(range(2500)))], gaussian(epsilon=0.33), everybody)
    # Before, after, and the release alone.
    assert sorted(calls) == [1, 2, 3]


def test_rounding_never_makes_more_cost_less() -> None:
    rng = np.random.default_rng(4)
    counted: list[Charge] = []
    last = 0.0
    for size in rng.choice(SIZES, 12):
        counted.append(MADE[float(size)])
        spent = measured(counted, limit=Guarantee(0.25, 1e3, 1e-5)).spent
        assert spent >= last * (1 - 1e-6)
        last = spent


def test_it_is_what_the_accounting_composes() -> None:
    charges = [laplace(0.25, 0.3), gaussian(epsilon=0.7), Charge(laplace().law, Guarantee(2, 0.2, 1e-9))]
    losses = [loss for charge in charges for loss in charge.losses(0.25)]
    assert measured(charges).spent == pytest.approx(compose(*losses).epsilon(1e-5), rel=1e-6)


# Words


def test_the_refusal_says_what_is_needed() -> None:
    message = str(LimitExceeded(Spending(4.0, 6.5, 9.25, 1.5, LIMIT)))
    for part in ("requested ε = 4,", "spent 6.5,", "remaining 1.5,", "together 9.25,", "limit 8 (each ε at"):
        assert part in message
    assert "distance 0.25 and δ = 1e-05, for the people who have spent most" in message
    assert "together without bound" in str(LimitExceeded(Spending(4.0, 6.5, math.inf, 1.5, LIMIT)))


def test_releases_are_named_by_their_beginnings() -> None:
    rows = [ReleaseRow(name * 32, "published", gaussian(), "", {}, "", 1, 1) for name in "ab"]
    assert rows_named(rows) == f"{'a' * 12}, {'b' * 12}"

"""The limit of a desk: near and at distance 2, its plan, and what holds when it is changed."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.ledgers import EVERYBODY, SHA, certificate_of, gaussian, limit_of, people, policy_of
from targetdp.accounting import GaussianLoss, PrivacyFilter, compose
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import GaussianNoise, SphericalLaplace
from targetdp.release import Charge, Head, Ledger, Limit, LimitExceeded, Policy, SigningKey
from targetdp.release._ledger._limit import all_of, law_of_line


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db", SigningKey.open(tmp_path / "key.pem"), create=True)


def pure(epsilon: float, B: float = 0.25) -> Charge:
    return Charge(SphericalLaplace(B=B, epsilon=epsilon).law(3))


# Near, and at distance 2


@pytest.mark.parametrize("kind", ["pure", "gaussian", "renyi"])
def test_what_follows_at_distance_2_is_stated_with_it(kind: str) -> None:
    limit = limit_of(0.25, 4.0, 1e-5, filter=kind)
    assert limit.stated == Guarantee(0.25, 4.0, 1e-5)
    assert limit.far == limit.near.widened(8)
    assert limit.classic == Guarantee(2.0, limit.far.epsilon, 1e-5)
    assert limit_of(2.0, 4.0, 1e-5, filter=kind).classic == Guarantee(2.0, 4.0, 1e-5)
    assert limit_of(0.3, 4.0, 1e-5, filter=kind).far == limit_of(0.3, 4.0, 1e-5, filter=kind).near.widened(7)


@pytest.mark.parametrize("kind", ["pure", "gaussian", "renyi"])
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_without_a_limit_of_its_own_distance_2_refuses_nothing_that_fits_near(
    kind: str, epsilon: float
) -> None:
    limit = limit_of(0.25, epsilon, 1e-5, filter=kind)
    charges = [pure(epsilon * share) for share in (1.0, 0.74, 0.2, 0.01)]
    charges += [] if kind == "pure" else [gaussian(epsilon * share) for share in (0.9, 0.6, 0.1)]
    for charge in charges:
        cost = limit.cost(charge)
        for times in (1, 3, 40):
            if times * cost[0] <= limit.budget[0]:
                assert limit.holds(times * cost), (charge, times)


def test_a_limit_at_distance_2_holds_by_itself(ledger: Ledger) -> None:
    """Noise that is cheap near and dear far: ε = 1 at 0.25 is ε = 8 at 2."""
    limit = limit_of(0.25, 8.0, 1e-5, filter="pure", classic=20.0)
    assert limit.classic == Guarantee(2.0, 20.0, 1e-5)
    for name in ("r1", "r2"):
        ledger.reserve(name, pure(1.0), limit, EVERYBODY, {})
    found = ledger.measure(limit, EVERYBODY, pure(1.0))
    assert (found.used + found.asked)[0] < limit.budget[0]
    assert found.total == pytest.approx(24 / 20, rel=1e-3)
    with pytest.raises(LimitExceeded):
        ledger.reserve("r3", pure(1.0), limit, EVERYBODY, {})
    ledger.reserve("r3", pure(0.49), limit, EVERYBODY, {})


def test_a_limit_at_distance_2_that_is_below_the_near_one_is_refused() -> None:
    with pytest.raises(ValueError, match="rows far apart are never harder to tell apart than near ones"):
        limit_of(0.25, 8.0, 1e-5, classic=7.0)
    with pytest.raises(ValueError, match="leave it out"):
        limit_of(0.25, 8.0, 1e-5, filter="pure", order=3.0)


def test_scales_that_change_recharge_earlier_releases_at_distance_2(ledger: Ledger) -> None:
    limit = limit_of(0.25, 8.0, 1e-5, filter="pure")
    charge = pure(0.5)
    ledger.reserve("r1", charge, limit, people(1, 2), {}, space={"calls": "a", "texts": "a"})
    ledger.reserve("r2", charge, limit, people(1), {}, space={"topups": "a"})

    def spent(*who: int, **space: str) -> float:
        return float(ledger.measure(limit, people(*who), None, space).used[0])

    assert spent(1) == spent(1, calls="a") == spent(1, other="b") == pytest.approx(1.0, rel=1e-3)
    assert spent(1, calls="b") == pytest.approx(4.0 + 0.5, rel=1e-3)
    assert spent(1, texts="b", topups="b") == pytest.approx(8.0, rel=1e-3)
    assert spent(2, topups="b") == pytest.approx(0.5, rel=1e-3)
    assert spent(2, calls="b") == pytest.approx(4.0, rel=1e-3)
    # Once it is on record, it counts for everybody who comes later, too, and stays so with the old scales.
    ledger.reserve("r3", pure(0.1), limit, people(3), {}, space={"calls": "b"})
    assert spent(2) == pytest.approx(4.0, rel=1e-3)
    assert spent(3, calls="a") == pytest.approx(0.8, rel=1e-3), "now it is the newer that moved"
    assert not ledger.measure(limit, people(1), pure(4.0)).fits
    with pytest.raises(LimitExceeded):
        ledger.reserve("r4", pure(0.1), limit, people(1), {}, space={"topups": "b"})


# The plan

LINE: dict[str, Any] = {
    "release": "rows", "columns": 3, "B": 0.25, "epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian",
}  # fmt: skip
YEAR = limit_of(0.25, 8.0, 1e-5, plan=[LINE | {"times": 12}])


def planned_charge() -> Charge:
    return Charge(GaussianNoise(B=0.25, epsilon=1.0, delta=1e-6).law(3))


def test_a_plan_is_composed_exactly_and_whole() -> None:
    loss = planned_charge().losses(0.25)[0]
    together = compose(*[loss] * 12).epsilon(0.5e-5)
    assert YEAR.near.epsilon == pytest.approx(8.0 - together, rel=1e-9)
    assert YEAR.near.delta == YEAR.far.delta == 0.5e-5
    assert YEAR.stated == Guarantee(0.25, 8.0, 1e-5)
    far = compose(*planned_charge().losses(2.0) * 12).epsilon(0.5e-5)
    assert YEAR.classic == Guarantee(2.0, YEAR.far.epsilon + far, 1e-5)
    mu = math.sqrt(12) * 0.25 / planned_charge().law.record()["deviation"]
    assert together == pytest.approx(GaussianLoss(mu).epsilon(0.5e-5), rel=1e-4), "squares add up"


def test_a_plan_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the plan needs ε = .* which is more than the limit"):
        limit_of(0.25, 8.0, 1e-5, plan=[LINE | {"times": 60}])
    with pytest.raises(ValueError, match="the plan needs"):
        limit_of(0.25, 8.0, 1e-5, classic=10.0, plan=[LINE | {"times": 12}])
    with pytest.raises(ValueError, match="the plan needs"):
        limit_of(0.25, 8.0, 1e-5, plan=[LINE | {"B": 1e-6, "times": 2}])


def test_only_what_the_plan_says_is_planned() -> None:
    assert YEAR.is_planned(0, planned_charge())
    for other in (
        gaussian(1.0), pure(1.0), Charge(GaussianNoise(B=0.25, epsilon=0.9, delta=1e-6).law(3)),
        Charge(planned_charge().law, Guarantee(2.0, 0.1)),
    ):  # fmt: skip
        assert not YEAR.is_planned(0, other)
    assert YEAR.plan_id != limit_of(0.25, 8.0, 1e-5, plan=[LINE | {"times": 11}]).plan_id
    assert limit_of(0.25, 8.0, 1e-5).plan_id is None
    least = limit_of(0.25, 8.0, 1e-5, plan=[LINE | {"mechanism": "least-noise"}])
    assert least.is_planned(0, Charge(law_of_line(least.plan[0])))


def test_planned_releases_cost_nothing_more_and_those_of_an_old_plan_count(ledger: Ledger) -> None:
    for month in range(3):
        ledger.reserve(f"r{month}", planned_charge(), YEAR, EVERYBODY, {}, planned=0)
    assert ledger.release("r0").title == {"planned": 0, "plan": YEAR.plan_id}
    found = ledger.measure(YEAR, EVERYBODY, None)
    assert found.used.tolist() == [0.0] * YEAR.parts
    assert found.known == {"r0": 10, "r1": 10, "r2": 10}, "people are known by them all the same"
    assert ledger.standing(YEAR).spending.spent == 0.0
    for other in (limit_of(0.25, 8.0, 1e-5), limit_of(0.25, 8.0, 1e-5, plan=[LINE | {"times": 2}])):
        assert ledger.measure(other, EVERYBODY, None).used.tolist() == pytest.approx(
            3 * other.cost(planned_charge())
        )
    with pytest.raises(ValueError, match="release 'r9' is not what line 1 of the plan says"):
        ledger.reserve("r9", gaussian(2.0), YEAR, EVERYBODY, {}, planned=0)


def test_what_is_not_planned_is_held_against_the_rest(ledger: Ledger) -> None:
    rest = limit_of(
        0.25, 8.0, 1e-5, filter="pure", plan=[LINE | {"mechanism": "spherical-laplace", "times": 2}]
    )
    assert rest.near.epsilon < 6.5
    ledger.reserve("r1", pure(rest.near.epsilon * 0.99), rest, EVERYBODY, {})
    with pytest.raises(LimitExceeded):
        ledger.reserve("r2", pure(0.5), rest, EVERYBODY, {})
    ledger.reserve("r2", Charge(law_of_line(rest.plan[0])), rest, EVERYBODY, {}, planned=0)


# A limit that is changed

FIRST = policy_of(0.25, 8.0, 1e-5)
SECOND = policy_of(0.5, 6.0, 3e-5, reason="a survey", filter="gaussian")
THIRD = policy_of(0.1, 9.0, 1e-6, reason="another one")


def release(ledger: Ledger, name: str, policy: Policy, version: int) -> None:
    who = people(ord(name))
    ledger.reserve(name, gaussian(0.1, 0.5), Limit.of(policy), who, {}, policy=(policy, version))


def both(limit: Limit) -> tuple[Guarantee, Guarantee]:
    return limit.stated, limit.classic


def stated(ledger: Ledger, now: Policy, *limits: Policy) -> bool:
    """Whether these limits, and no others, are in what is stated."""
    found = ledger.history.stated(Limit.of(now))
    return found[:3] == all_of(both(Limit.of(policy)) for policy in limits)


def test_limits_that_were_in_force_add_their_deltas() -> None:
    one, two, three = (Limit.of(policy) for policy in (FIRST, SECOND, THIRD))
    assert all_of([both(one)]) == (one.stated, one.classic, 1)
    near, far, count = all_of(map(both, (one, two, three)))
    assert (near.B, near.epsilon, count) == (0.1, 9.0, 3)
    assert near.delta == far.delta == pytest.approx(4.1e-5, rel=1e-12)
    assert near.delta >= math.fsum((1e-5, 3e-5, 1e-6)), "never rounded down"
    assert far == Guarantee(2.0, max(limit.classic.epsilon for limit in (one, two, three)), near.delta)
    with pytest.raises(ValueError, match="the δ of the 2 limits that were in force add up to 1: nothing is"):
        all_of([both(limit_of(0.25, 1.0, 0.4)), both(limit_of(0.25, 2.0, 0.6))])


def test_the_statement_names_all_limits_that_releases_were_made_under(ledger: Ledger) -> None:
    assert stated(ledger, FIRST, FIRST)
    release(ledger, "a", FIRST, 1)
    assert "(ε = 8, δ = 1e-05)" in ledger.history.statement(Limit.of(FIRST))
    release(ledger, "b", SECOND, 2)
    assert stated(ledger, SECOND, FIRST, SECOND)
    told = ledger.history.statement(Limit.of(SECOND))
    assert "within distance 0.25 " in told
    assert "beyond (ε = 8, δ = 4" in told
    assert "2 limits were in force, whose δ add up" in told
    # Back to the first: it is the same limit.
    release(ledger, "c", FIRST.model_copy(update={"reason": "back again"}), 3)
    assert stated(ledger, FIRST, FIRST, SECOND)


def test_a_limit_that_nothing_was_released_under_does_not_count(ledger: Ledger) -> None:
    release(ledger, "a", FIRST, 1)
    ledger.record_policy(SECOND, 2)
    release(ledger, "b", THIRD, 3)
    assert stated(ledger, THIRD, FIRST, THIRD)
    ledger.free("b", "nothing was drawn")
    assert stated(ledger, FIRST, FIRST)
    ledger.settle("b", SHA)
    assert stated(ledger, FIRST, FIRST, THIRD), "it became public all the same"


def test_a_lost_release_brings_its_limit(ledger: Ledger) -> None:
    """That of a policy that is on record, or, where that was lost too, what its certificate states."""
    release(ledger, "a", FIRST, 1)
    ledger.record_policy(SECOND, 2)
    assert stated(ledger, FIRST, FIRST)
    number, own = ledger.head().number, ledger.head().ledger_id
    lost = [
        certificate_of(
            Head(own, number + 50 + n, "0" * 64), name, gaussian(0.1), policy=of, limit=Limit.of(THIRD)
        )
        for n, (name, of) in enumerate([("b", SECOND.sha256), ("c", THIRD.sha256), ("d", THIRD.sha256)])
    ]
    ledger.resume("from a backup", lost[:1])
    assert stated(ledger, FIRST, FIRST, SECOND)
    ledger.resume("two more turned up", lost[1:])
    assert stated(ledger, FIRST, FIRST, SECOND, THIRD)


def test_limits_that_promise_nothing_any_more_are_said_so(ledger: Ledger) -> None:
    loose = policy_of(0.25, 1.0, 0.9)
    release(ledger, "a", loose, 1)
    now = limit_of(0.25, 2.0, 0.9)
    assert "nothing is promised" in ledger.history.statement(now)


def test_another_plan_is_another_limit(ledger: Ledger) -> None:
    ledger.reserve("a", gaussian(0.1), Limit.of(FIRST), people(1), {}, policy=(FIRST, 1))
    same = policy_of(0.25, 8.0, 1e-5, plan=[LINE | {"times": 2}])
    assert ledger.history.stated(Limit.of(same))[2] == 2
    renamed = FIRST.model_copy(update={"name": "somebody else"})
    assert ledger.history.stated(Limit.of(renamed))[2] == 1


def test_shares_are_of_whichever_part_is_spent_most() -> None:
    limit = limit_of(0.25, 8.0, 1e-5, filter="pure")
    assert limit.share(np.zeros(limit.parts)) == 0.0
    for part in (0, 1, 3, 5):
        cost = np.zeros(limit.parts)
        cost[part] = 2 * limit.budget[part]
        assert limit.share(cost) == pytest.approx(2.0)
        assert not limit.holds(cost)
        assert limit.holds(cost / 2)
    assert PrivacyFilter("pure", 8.0, 1e-5).budget.log_error == math.inf

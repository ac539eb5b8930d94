"""What releases cost each person, against a slow twin that accounts person by person, by other formulas."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from support.ledgers import EVERYBODY, SHA, certificate_of, gaussian, limit_of, people
from targetdp._core import Words
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import (
    GaussianLaw,
    GaussianNoise,
    Scores,
    SphericalLaplace,
    SphericalLaplaceLaw,
    Staircase,
)
from targetdp.release import (
    Charge,
    Head,
    Ledger,
    Limit,
    LimitExceeded,
    ReleaseRow,
    SigningKey,
    Spending,
)
from targetdp.release._ledger._history import History
from targetdp.release._ledger._spending import measure, percent, standing

CLOSE = 2e-3
"""The grid and the imperfection of a sampler, and the cells of a divergence, cost a little more."""
LINE = {"release": "rows", "columns": 3, "B": 0.25, "epsilon": 0.5, "delta": 1e-6, "mechanism": "gaussian"}
PURE = limit_of(0.25, 8.0, 1e-5, filter="pure")
NORMAL = limit_of(0.25, 8.0, 1e-5, filter="gaussian")
ANY = limit_of(0.25, 8.0, 1e-5)
FAR = limit_of(0.25, 8.0, 1e-5, classic=20.0)
PLANNED = limit_of(0.25, 8.0, 1e-5, plan=[LINE | {"times": 4}])
LIMITS = {"pure": PURE, "gaussian": NORMAL, "renyi": ANY, "classic": FAR, "planned": PLANNED}


def laplace(epsilon: float = 1.0, B: float = 0.25) -> Charge:
    """In one column, where there is a closed form for everything."""
    return Charge(SphericalLaplace(B=B, epsilon=epsilon).law(1))


def in_plan() -> Charge:
    return Charge(GaussianNoise(B=0.25, epsilon=0.5, delta=1e-6).law(3))


def measured(
    earlier: Sequence[Charge | tuple[Charge, Words]],
    asked: Charge | None = None,
    who: Words = EVERYBODY,
    limit: Limit = ANY,
) -> Spending:
    """The budget of some people after releases, of everybody or of those who are named."""
    history, tags = History(), {}
    for number, one in enumerate(earlier):
        charge, whose = one if isinstance(one, tuple) else (one, EVERYBODY)
        name = f"r{number}"
        history.releases[name] = ReleaseRow(name, "published", charge, "sha", {}, "", number, number)
        tags[name] = whose
    return measure(history, limit, lambda row: tags[row.list_name], who, asked)


# The slow twin: plain Python, a person at a time, and formulas instead of losses.


def amount(charge: Charge, distance: float, limit: Limit, *, near: bool) -> float:
    """What a release takes, of the budget at the limit's distance or of that at distance 2."""
    own = limit.near if near else limit.far
    if isinstance(charge.law, GaussianLaw):
        mu = distance / charge.law.deviation
        return {"pure": math.inf, "gaussian": mu * mu, "renyi": (own.order or 0) * mu * mu / 2}[own.kind]
    assert isinstance(charge.law, SphericalLaplaceLaw)
    shift = distance / charge.law.scale
    if own.kind == "pure":
        return shift
    if own.kind == "gaussian":
        return float(2 * stats.norm.isf(1 / (1 + math.exp(shift)))) ** 2
    a = own.order or 0.0
    up, down = math.log(a / (2 * a - 1)) + (a - 1) * shift, math.log((a - 1) / (2 * a - 1)) - a * shift
    return float(np.logaddexp(up, down)) / (a - 1)


@dataclass
class Remembered:
    """A release as the twin knows it."""

    charge: Charge
    who: set[int]
    space: Mapping[str, str]
    planned: bool = False
    counts: bool = True
    everybody: bool = False


@dataclass
class Twin:
    releases: dict[str, Remembered] = field(default_factory=dict)
    space: dict[str, str] = field(default_factory=dict)

    def cost(self, one: Remembered, limit: Limit, space: Mapping[str, str]) -> tuple[float, float]:
        if one.planned and limit.plan and self.distance(one, space) < 2:
            return 0.0, 0.0
        near = amount(one.charge, self.distance(one, space), limit, near=True)
        return near, amount(one.charge, 2.0, limit, near=False)

    def distance(self, one: Remembered, space: Mapping[str, str]) -> float:
        """How far apart rows may have been there that are within 0.25 now."""
        moved = any({**self.space, **space}.get(column) != token for column, token in one.space.items())
        return 2.0 if moved else 0.25

    def spent(self, person: int, limit: Limit, space: Mapping[str, str]) -> tuple[float, float]:
        hers = [one for one in self.releases.values() if one.counts and (one.everybody or person in one.who)]
        costs = [self.cost(one, limit, space) for one in hers]
        return sum(near for near, _ in costs), sum(far for _, far in costs)

    def most(self, who: set[int], limit: Limit, space: Mapping[str, str]) -> tuple[float, float]:
        """Of anybody, of each; of nobody, what counts for all."""
        each = [self.spent(person, limit, space) for person in who or {-1}]
        return max(near for near, _ in each), max(far for _, far in each)

    def known(self, who: set[int]) -> dict[str, int]:
        found = {name: len(who & one.who) for name, one in self.releases.items() if one.counts}
        return {name: count for name, count in found.items() if count}

    def pure(self, person: int) -> float:
        hers = [one for one in self.releases.values() if one.counts and (one.everybody or person in one.who)]
        return sum(amount(one.charge, self.distance(one, {}), PURE, near=True) for one in hers)


CHARGES = [gaussian(0.3), gaussian(1.0), gaussian(0.5, 0.1), laplace(0.2), laplace(0.7), laplace(0.4, 0.5)]
SPACES = [{}, {"calls": "a"}, {"calls": "a", "texts": "b"}, {"calls": "c"}, {"texts": "d"}]
WIDE = limit_of(0.25, 1e6, 0.9, plan=[LINE | {"times": 4}])
"""Everything fits; and it has the plan."""


def random_history(ledger: Ledger, rng: np.random.Generator) -> Twin:
    """Releases, and all that can happen to them."""
    twin = Twin()

    def some() -> set[int]:
        return set(rng.choice(12, rng.integers(1, 12), replace=False).tolist())

    for turn in range(rng.integers(1, 12)):
        name, what = f"r{turn}", rng.choice(["reserve"] * 5 + ["planned", "lost", "erase"])
        space = SPACES[rng.integers(len(SPACES))]
        charge = in_plan() if what == "planned" else CHARGES[rng.integers(len(CHARGES))]
        if what == "erase":
            gone = some() & some()
            ledger.erase(people(gone), "she asked for it")
            for one in twin.releases.values():
                if one.who & gone:
                    one.who, one.everybody = one.who - gone, True
            continue
        if what == "lost":
            head = Head(ledger.head().ledger_id, ledger.head().number + 50, "f" * 63 + f"{turn:x}")
            ledger.resume("from a backup", [certificate_of(head, name, charge, space)])
            twin.releases[name] = Remembered(charge, set(), space, everybody=True)
            twin.space = {**space, **twin.space}
            continue
        planned, who = 0 if what == "planned" else None, some()
        ledger.reserve(name, charge, WIDE, people(who), {}, space=space, planned=planned)
        twin.releases[name] = Remembered(charge, who, space, planned=planned == 0)
        twin.space |= space
        end = rng.choice(["nothing", "publish", "withdraw", "free", "both"])
        if end in {"free", "both"}:
            ledger.free(name, "nothing was drawn")
            twin.releases[name].counts = False
        if end in {"publish", "withdraw", "both"}:
            ledger.settle(name, SHA)
            twin.releases[name].counts = True
        if end == "withdraw":
            ledger.withdraw(name, "it was wrong")
    return twin


def close(found: float, expected: float) -> bool:
    return found == pytest.approx(expected, rel=CLOSE, abs=1e-6) and not found < expected * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(24))
def test_it_is_what_a_slow_twin_says(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    key = SigningKey.open(tmp_path / "key.pem")
    with Ledger(tmp_path / "ledger.db", key, create=True) as ledger:
        twin = random_history(ledger, rng)
        assert ledger.verify() == []
        for name, limit in LIMITS.items():
            who = set(rng.choice(14, 5, replace=False).tolist())
            space = SPACES[rng.integers(len(SPACES))]
            found = ledger.measure(limit, people(who), laplace(0.3), space)
            spent = twin.most(who, limit, space)
            assert close(found.used[0], spent[0]), name
            assert close(found.used[1], spent[1]), name
            assert found.known == twin.known(who)
            asked = amount(laplace(0.3), 0.25, limit, near=True), amount(laplace(0.3), 2.0, limit, near=False)
            shares = [(s + a) / b for s, a, b in zip(spent, asked, limit.budget[:2], strict=True)]
            assert close(found.total, max(shares)) or (math.isinf(found.total) and math.isinf(max(shares)))
            if abs(max(shares) - 1) > CLOSE:
                assert found.fits == (max(shares) <= 1)
            everybody = ledger.standing(limit)
            persons = {person for one in twin.releases.values() if one.counts for person in one.who}
            worst = twin.most(persons, limit, {})
            assert close(everybody.anybody, max(np.array(twin.spent(-1, limit, {})) / limit.budget[:2]))
            assert close(everybody.spending.used[0], worst[0])
            assert close(everybody.spending.used[1], worst[1])
            levels = sorted((twin.spent(p, limit, {})[0] / limit.budget[0] for p in persons), reverse=True)
            told = [share for share, count in everybody.levels for _ in range(count)]
            assert len(told) == len(levels)
            assert all(close(one, other) for one, other in zip(told, levels, strict=True))
            pure = max((twin.pure(person) for person in persons or {-1}), default=0.0)
            assert (everybody.pure is None) == (math.isinf(pure) or bool(ledger.history.left_behind))
            assert everybody.pure is None or close(everybody.pure, pure)


# What is added up


def test_nothing_spent_is_nothing() -> None:
    found = measured([])
    assert (found.requested, found.spent, found.total) == (0.0, 0.0, 0.0)
    assert found.fits
    assert found.known == {}


def test_small_releases_fit_more_often_where_squares_add_up() -> None:
    many = [laplace(0.1)] * 150
    assert not measured(many, limit=PURE).fits
    for limit in (NORMAL, ANY):
        assert measured(many, limit=limit).fits
    assert measured([laplace(0.1)] * 79, laplace(0.1), limit=PURE).fits


def test_pure_releases_at_the_limit_fit_to_the_last() -> None:
    third = Charge(SphericalLaplace(B=0.25, epsilon=8.0 / 3).law(3))
    assert measured([third] * 2, third, limit=PURE).fits
    assert measured([third] * 2, third, limit=PURE).total == pytest.approx(1.0, abs=1e-4)


def test_a_filter_says_what_it_cannot_count() -> None:
    found = measured([], gaussian(0.1), limit=PURE)
    assert not found.fits
    assert "counts only noise whose loss is bounded" in str(LimitExceeded(found))
    assert measured([], gaussian(0.1), limit=NORMAL).fits


def test_scales_that_were_paid_for_are_charged_too() -> None:
    law = laplace(1.0).law
    without = measured([Charge(law)], limit=PURE).spent
    with_scales = measured([Charge(law, Guarantee(0.25, 0.5))], limit=PURE).spent
    assert with_scales == pytest.approx(without + 0.5 / 8, rel=1e-3)
    stated = Charge(law, Guarantee(0.25, 0.5, 1e-9))
    assert measured([stated]).used[3] == pytest.approx(1e-9, rel=1e-6), "its δ is set aside"


def test_a_tiny_B_does_not_sneak_past() -> None:
    """At B = 0.01, ε = 1 pure noise has scale 0.01: at distance 0.25 its loss is up to 25."""
    tiny = Charge(SphericalLaplace(B=0.01, epsilon=1.0).law(10))
    for limit in (PURE, NORMAL, ANY):
        assert not measured([], tiny, limit=limit).fits
    assert measured([], tiny, limit=PURE).requested == pytest.approx(25 / 8, rel=1e-3)
    # By the label alone it would be ε = 1.
    assert measured([], tiny, limit=limit_of(0.01, 1.5, 1e-5)).fits


@pytest.mark.parametrize(
    ("charge", "limit"),
    [
        (Charge(GaussianNoise(B=0.25, epsilon=7.9, delta=1e-5).law(10)), NORMAL),
        (Charge(SphericalLaplace(B=0.25, epsilon=8.0).law(10)), PURE),
        (Charge(Staircase(B=0.25, epsilon=8.0).law(1)), PURE),
        (Charge(Scores([[1.0, 2.0]], SphericalLaplace(B=0.25, epsilon=8.0)).law(2)), PURE),
        (Charge(SphericalLaplace(B=0.25, epsilon=5.8).law(10)), ANY),
    ],
    ids=["gaussian", "pure", "staircase", "scores", "renyi"],
)
def test_a_release_at_the_limit_itself_fits_once(charge: Charge, limit: Limit) -> None:
    assert measured([], charge, limit=limit).fits
    assert not measured([charge], charge, limit=limit).fits


def test_losses_beyond_floating_point_are_refused() -> None:
    huge = [Charge(SphericalLaplace(B=1e-6, epsilon=1.0).law(3)), gaussian(1.0, 1e-6)]
    for limit in (PURE, NORMAL, ANY):
        assert not measured(huge, limit=limit).fits


def test_another_charge_is_tried_for_those_who_have_spent_most() -> None:
    found = measured([gaussian(5.0)], gaussian(1.0))
    assert found.with_charge(gaussian(1.0)) == found.fits
    assert not found.with_charge(gaussian(6.5))


# Person by person


PERSONS = st.sets(st.integers(0, 11), min_size=1)
SIZES = (0.05, 0.3, 1.0, 2.0)
MADE = {size: gaussian(size) for size in SIZES}
HISTORIES = st.lists(st.tuples(st.sampled_from(SIZES), PERSONS), max_size=8)


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


def test_each_person_pays_for_what_she_is_in() -> None:
    everybody, north, south = gaussian(0.5), gaussian(2.0), gaussian(1.0)
    counted = [(everybody, EVERYBODY), (north, people(range(5))), (south, people(range(5, 10)))]

    def total(asked: Charge, *who: int) -> float:
        return measured(counted, asked, people(*who)).total

    def sum_of(*charges: Charge) -> Any:
        return pytest.approx(ANY.share(np.sum([ANY.cost(charge) for charge in charges], axis=0)))

    assert total(south, 7) == sum_of(everybody, south, south)
    assert total(north, 7) == sum_of(everybody, south, north)
    assert total(south, 2) == sum_of(everybody, north, south)
    assert total(south, 2, 7) == sum_of(everybody, north, south), "the worst"
    assert total(south, 99) == sum_of(south), "a newcomer"
    assert measured(counted, south, people(2, 3, 7, 99)).known == {"r0": 3, "r1": 2, "r2": 1}


# Pure sums


def test_a_sum_of_pure_releases_is_told_and_no_other() -> None:
    def pure(*charges: Charge, plan: bool = False) -> float | None:
        history = History()
        for number, charge in enumerate(charges):
            title = {"plan": PLANNED.plan_id} if plan else {}
            history.releases[str(number)] = ReleaseRow(str(number), "published", charge, "x", title, "", 1, 1)
        return standing(history, PLANNED, lambda _: EVERYBODY).pure

    assert pure() == 0.0
    assert pure(laplace(0.5), laplace(0.25)) == pytest.approx(0.75, rel=1e-4)
    assert pure(laplace(0.5), gaussian(0.1)) is None
    assert pure(Charge(laplace(0.5).law, Guarantee(0.25, 0.1))) == pytest.approx(0.6, rel=1e-4)
    assert pure(Charge(laplace(0.5).law, Guarantee(0.25, 0.1, 1e-9))) is None, "it has a δ"
    assert pure(in_plan(), plan=True) is None, "the plan pays for it, and it is not pure"


def test_a_budget_of_nothing_is_passed_by_anything() -> None:
    nothing = limit_of(0.25, 1.0, 1e-5, order=2.0)
    assert nothing.budget[0] == 0.0
    found = measured([gaussian(0.1)], gaussian(0.1), limit=nothing)
    assert (found.fits, found.total) == (False, math.inf)
    history = History()
    history.releases["r"] = ReleaseRow("r", "published", gaussian(0.1), "x", {}, "", 1, 1)
    assert standing(history, nothing, lambda _: EVERYBODY).levels == ((math.inf, 10),)


# Words


def test_the_refusal_says_what_is_needed() -> None:
    found = measured([gaussian(6.0)], gaussian(5.0))
    message = str(LimitExceeded(found))
    for part in ("it takes 57.4% of what one person may spend", "78.2% is spent", "together 135.5%"):
        assert part in message, message
    assert str(ANY.stated) in message


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0%"), (1e-9, "0.1%"), (0.5, "50%"), (0.50001, "50.1%"), (1.0, "100%"), (1.0000001, "100.1%"),
     (math.inf, "more than everything")],
)  # fmt: skip
def test_shares_are_rounded_up(share: float, said: str) -> None:
    assert percent(share) == said

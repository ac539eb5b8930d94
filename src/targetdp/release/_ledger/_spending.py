"""What the releases of a ledger cost each person, held against the limit."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from targetdp._core import Floats, NothingLeftError, Words
from targetdp.accounting import PrivacyFilter
from targetdp.release._certificate._charge import Charge
from targetdp.release._ids import is_among
from targetdp.release._ledger._agreements import NOBODY, AgreedPeople, AgreementRow, features_of
from targetdp.release._ledger._history import History, ReleaseRow
from targetdp.release._ledger._limit import FAR, NEAR, Limit
from targetdp.release._ledger._people import Sums
from targetdp.release._policy import CLASSIC
from targetdp.table import overlapped

PeopleOf = Callable[[ReleaseRow | AgreementRow], Words]
"""Who is in a release of the ledger, or an agreement: sorted tags."""
_AMOUNTS = FAR + 1
"""How many parts of a cost are added up for each person; the others are tiny, and added up for all."""
_MANY = 1000
"""Further releases, at most, that are counted."""
_NO_DELTA = 2.0**-64
"""More than the tail of any sampler; what is stated with a larger δ is not pure."""


@dataclass(frozen=True)
class Spending:
    """The budget of the people of a release, each part as a share of what may be spent.

    ``requested`` is the release alone, ``spent`` what whoever of its people spent most has spent before,
    ``total`` both. ``known`` says how many of its people are in each earlier release. These are no
    guarantees: what is guaranteed is the limit. ``used`` and ``asked`` are the costs themselves.
    """

    limit: Limit
    used: Floats = field(repr=False)
    asked: Floats = field(repr=False)
    known: Mapping[str, int] = field(default_factory=dict)
    for_nobody: bool = False
    """Whether all of its people agreed to be handed over with these columns: it counts for none of them."""

    @property
    def requested(self) -> float:
        """What the release takes of the budget."""
        return self.limit.share(self.asked)

    @property
    def spent(self) -> float:
        """What is spent of it before."""
        return self.limit.share(self.used)

    @property
    def total(self) -> float:
        """What will be spent of it."""
        return self.limit.share(self.used + self.asked)

    @property
    def fits(self) -> bool:
        """Whether the release may be made."""
        return self.limit.holds(self.used + self.asked)

    def times(self, charge: Charge) -> int:
        """How often another charge fits, for whoever of these people has spent most; no more than 1,000."""
        own = _asked_of(self.limit, charge, for_nobody=self.for_nobody)
        fits = (many for many in range(_MANY, 0, -1) if self.limit.holds(self.used + many * own))
        return next(fits, 0)

    def with_charge(self, charge: Charge) -> bool:
        """Whether another charge would fit, for all of them."""
        return self.limit.holds(self.used + _asked_of(self.limit, charge, for_nobody=self.for_nobody))


@dataclass(frozen=True)
class Standing:
    """Where all people of a desk stand: their budget, and how many have spent how much of it.

    ``levels`` are shares of the budget at the limit's distance and how many people have spent that much,
    the most first. ``pure`` is the largest sum of ε of anybody all of whose releases are pure, which is a
    guarantee by itself, planned ones among them; None where somebody's are not. ``anybody`` is the share
    that counts as spent by people who are in no list.
    """

    spending: Spending
    levels: tuple[tuple[float, int], ...]
    pure: float | None
    anybody: float = 0.0


class LimitExceeded(NothingLeftError):  # noqa: N818 (it is what happened, and reads as such)
    """A release was refused: with it, somebody's releases would cost more than the limit."""

    def __init__(self, spending: Spending) -> None:
        self.spending = spending
        super().__init__(over_limit(spending))


def over_limit(s: Spending) -> str:
    """Why a release does not fit."""
    if math.isinf(s.requested):
        kind = {"pure": "only noise whose loss is bounded", "gaussian": "only normal or pure noise"}
        why = kind.get(s.limit.near.kind, "no noise of so large a loss")
        return f'the limit of this desk counts {why} (filter = "{s.limit.near.kind}")'
    return (
        f"it takes {percent(s.requested)} of what one person may spend, {percent(s.spent)} is spent by those "
        f"who have spent most, together {percent(s.total)} (limit {s.limit.stated})"
    )


def percent(share: float) -> str:
    """A share of the budget, rounded up."""
    return "more than everything" if share > 1e4 else f"{math.ceil(share * 1000 - 1e-9) / 10:g}%"


def measure(
    history: History,
    limit: Limit,
    people_of: PeopleOf,
    people: Words,
    asked: Charge | None,
    space: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
) -> Spending:
    """The budget of some people if another release about them is made, of these columns.

    For each person the releases that she is in are added up: neighbors differ in one person's row, so that
    releases without her tell nothing of it. What nobody can tell who was in counts for everybody. Releases of
    nothing but columns that she agreed to hand over as they are do not count for her, and only for her.

    Guarantees: if every release is made only while this `fits`, all of them together keep the limit, at its
    distance and at distance 2, however each was chosen (`targetdp.accounting.PrivacyFilter`). Each charge is
    taken at the limit's distance by its noise, whatever B it asked for, so a tiny B does not make a release
    cheap; and at distance 2 where a column has other scales by now.
    Does not guarantee: anything beyond group privacy to a person with several ids; anything to people who
    agreed, about the columns that they agreed to.
    """
    agreed = AgreedPeople([*history.agreements.values()], people_of)
    inside = ~is_among(people, agreed.outside(features))
    for_nobody = len(people) > 0 and not inside.any()
    sums, everybody, aside = Sums(people, _AMOUNTS), np.zeros(_AMOUNTS), np.zeros(limit.parts - _AMOUNTS)
    known = {}
    for row, cost, who in _with_people(costs_of(history, limit, space or {}), people_of):
        charged = agreed.charged(who, features_of(row))
        found = sums.known(who) if row.everybody or charged is not who else 0
        if row.everybody:
            everybody += cost[:_AMOUNTS]
        else:
            found = max(found, sums.add(charged, cost[:_AMOUNTS]))
        if found:
            known[row.release] = found
        if row.everybody or found:
            aside += cost[_AMOUNTS:]
    most = np.zeros(_AMOUNTS) if for_nobody else sums.most(inside) + everybody
    own = np.zeros(limit.parts) if asked is None else _asked_of(limit, asked, for_nobody=for_nobody)
    return Spending(limit, np.concatenate([most, aside]), own, known, for_nobody)


def _asked_of(limit: Limit, charge: Charge, *, for_nobody: bool) -> Floats:
    """What a release takes of the budget; for people who agreed, what is set aside for samplers at most."""
    cost = limit.cost(charge)
    if for_nobody:
        cost[:_AMOUNTS] = 0
    return cost


def standing(history: History, limit: Limit, people_of: PeopleOf) -> Standing:
    """Where everybody stands who is in a release that counts for her."""
    agreed = AgreedPeople([*history.agreements.values()], people_of)
    width = _AMOUNTS + 1  # beside the amounts, the sum of pure ε
    sums, everybody, aside = Sums(NOBODY, width), np.zeros(width), np.zeros(limit.parts - _AMOUNTS)
    for row, cost, who in _with_people(costs_of(history, limit, {}), people_of):
        aside += cost[_AMOUNTS:]
        distance = CLASSIC if history.moved(row, {}) else limit.stated.B
        amounts = np.append(cost[:_AMOUNTS], _pure(row.charge, limit, distance))
        charged = agreed.charged(who, features_of(row))
        if sums.known(charged) < len(charged):
            sums = sums.united_with(charged)
        if row.everybody:
            everybody += amounts
        else:
            sums.add(charged, amounts)
    most = sums.most() + everybody
    spending = Spending(limit, np.concatenate([most[:_AMOUNTS], aside]), np.zeros(limit.parts))
    amounts, counts = np.unique(sums.amounts[:, NEAR] + everybody[NEAR], return_counts=True)
    with np.errstate(divide="ignore"):  # of a budget of nothing
        shares = np.where(amounts > 0, amounts / limit.budget[NEAR], 0.0)
    levels = tuple(zip(shares.tolist()[::-1], counts.tolist()[::-1], strict=True))
    anybody = limit.share(np.concatenate([everybody[:_AMOUNTS], np.zeros(len(aside))]))
    told = math.isfinite(most[-1]) and not history.forgot
    return Standing(spending, levels, float(most[-1]) if told else None, anybody)


def _with_people(
    costs: Sequence[tuple[ReleaseRow, Floats]], people_of: PeopleOf
) -> Iterator[tuple[ReleaseRow, Floats, Words]]:
    """Releases with their people; the next lists are read, and checked, while the last is added up."""
    lists = overlapped(lambda one: people_of(one[0]) if one[0].people else NOBODY, costs)
    yield from ((row, cost, tags) for (row, cost), tags in zip(costs, lists, strict=True))


def costs_of(history: History, limit: Limit, space: Mapping[str, str]) -> list[tuple[ReleaseRow, Floats]]:
    """What each release counts: nothing if the plan has paid for it, unless its scales are others by now."""
    found = []
    for row in history.counted:
        moved = history.moved(row, space)
        paid = limit.plan and row.title.get("plan") == limit.plan_id and not moved
        found.append((row, np.zeros(limit.parts) if paid else limit.cost(row.charge, moved=moved)))
    return found


def _pure(charge: Charge, limit: Limit, distance: float) -> float:
    """ε of a release that has no δ to speak of."""
    stated = limit.stated
    cost = PrivacyFilter("pure", stated.epsilon, stated.delta).cost(*charge.losses(distance))
    return cost.amount if cost.tail <= _NO_DELTA else math.inf

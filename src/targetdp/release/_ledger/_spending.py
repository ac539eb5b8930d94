"""What the entries of a ledger say, from the first to the last, and what its releases cost one person."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from targetdp._core import Words
from targetdp.accounting import compose
from targetdp.guarantee import Guarantee
from targetdp.release._certificate._charge import Charge, charge_of
from targetdp.release._ledger._entries import OPENED, Entry
from targetdp.release._ledger._people import MOST_GROUPS, groups_of
from targetdp.release._policy import Policy

State = Literal["reserved", "published", "voided"]


@dataclass(frozen=True)
class ReleaseRow:
    """One release as the ledger knows it.

    ``people`` is the SHA-256 of the file that says who is in it. ``reserved`` and ``settled`` are times;
    ``entry`` is the one that reserved it, ``number`` the newest about it; ``sha256`` is that of what was
    published, ``scales`` are those that it estimated, and ``reason`` says why it was freed.
    """

    release: str
    state: State
    charge: Charge
    people: str
    title: dict[str, Any]
    reserved: str
    entry: int
    number: int
    settled: str | None = None
    sha256: str | None = None
    scales: Mapping[str, Any] | None = None
    reason: str | None = None

    @property
    def counts(self) -> bool:
        """Whether it is spent: published, or perhaps published."""
        return self.state != "voided"


@dataclass
class History:
    """Policy and releases after all entries, and the entries that make no sense after those before them."""

    policy: Policy | None = None
    policy_version: int = 0
    reasons: set[str] = field(default_factory=set)
    """Of all policies that were ever on record: a reason serves once."""
    releases: dict[str, ReleaseRow] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "History":
        """The history that entries tell. One that makes no sense is a problem and changes nothing."""
        history = cls()
        for entry in entries:
            if not entry.is_well_formed():
                continue  # the chain's own check speaks of it
            try:
                _tell(history, entry, json.loads(entry.body))
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                history.problems.append(f"entry {entry.number} ({entry.kind}) makes no sense: {error}")
        return history

    @property
    def counted(self) -> list[ReleaseRow]:
        """All releases that are spent."""
        return [row for row in self.releases.values() if row.counts]

    def find(self, prefix: str) -> ReleaseRow:
        """The release whose id begins so; a ValueError unless there is exactly one."""
        found = [row for name, row in self.releases.items() if name.startswith(prefix)] if prefix else []
        if len(found) != 1:
            known = f"{len(found)} releases begin so" if found else "no release of this desk begins so"
            raise ValueError(f"release = {prefix!r}: {known}; `targetdp ledger show` lists them")
        return found[0]

    def scales(self) -> dict[str, dict[str, Any]]:
        """Private scales that published releases have estimated, by column; the newest counts."""
        return {
            name: dict(of) | {"release": row.release}
            for row in self.releases.values()
            if row.state == "published" and row.scales is not None
            for name, of in row.scales.items()
        }


def _tell(history: History, entry: Entry, body: dict[str, Any]) -> None:
    row = history.releases.get(entry.release)
    if entry.kind == OPENED:
        if entry.number != 1:
            raise ValueError("a ledger is opened once")
    elif entry.kind == "resumed":
        _reason(body)
    elif entry.kind == "policy":
        history.policy = Policy.model_validate(body["policy"])
        history.policy_version += 1
        if history.policy.reason is not None:
            history.reasons.add(history.policy.reason)
    elif entry.kind == "reserved":
        if row is not None:
            raise ValueError(f"release {entry.release!r} was reserved before")
        history.releases[entry.release] = ReleaseRow(
            release=entry.release,
            state="reserved",
            charge=charge_of(body["charge"]),
            people=str(body["people"]),
            title=body["title"],
            reserved=entry.time,
            entry=entry.number,
            number=entry.number,
        )
    elif entry.kind in {"published", "voided"}:
        history.releases[entry.release] = _settled(row, entry, body)
    else:
        raise ValueError("a newer targetdp may have written it, or nobody")


def _settled(row: ReleaseRow | None, entry: Entry, body: dict[str, Any]) -> ReleaseRow:
    if row is None:
        raise ValueError(f"release {entry.release!r} was never reserved")
    if row.state == "published":
        raise ValueError(f"release {entry.release!r} was published before")
    row = replace(row, settled=entry.time, number=entry.number)
    if entry.kind == "published":
        # Also after it was freed: what became public counts, whatever was said before.
        return replace(row, state="published", sha256=str(body["sha256"]), scales=body["scales"])
    if row.state == "voided":
        raise ValueError(f"release {entry.release!r} was freed before")
    return replace(row, state="voided", reason=_reason(body))


def _reason(body: dict[str, Any]) -> str:
    reason = body["reason"]
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError("it has no reason")
    return reason


# What they cost one person, held against the limit.

PeopleOf = Callable[[ReleaseRow], Words]
"""Who is in a release of the ledger: sorted tags."""


@dataclass(frozen=True)
class Spending:
    """The budget of the people of a release: each number an ε at the limit's distance and δ.

    ``requested`` is the release alone, ``spent`` what those of its people who spent most have spent before,
    ``total`` the most that anybody will have spent with it, ``remaining`` the limit's ε less what is spent.
    Releases compose more tightly than by adding, and each of these numbers uses the limit's whole δ: only
    ``total`` says whether a release fits. ``known`` says how many of its people are in each earlier release.
    """

    requested: float
    spent: float
    total: float
    remaining: float
    limit: Guarantee
    known: dict[str, int] = field(default_factory=dict)
    groups: tuple[tuple[Charge, ...], ...] = field(default=(), repr=False)
    """What people have spent before, by groups of whom none has spent all that another has."""

    @property
    def fits(self) -> bool:
        """Whether the release may be made."""
        return self.total <= self.limit.epsilon

    def with_charge(self, charge: Charge) -> bool:
        """Whether another charge would fit, for all of them."""
        grown = [Counter([*group, charge]) for group in self.groups]
        return _worst(grown, self.limit)[0] <= self.limit.epsilon


class LimitExceeded(ValueError):  # noqa: N818 (it is what happened, and reads as such)
    """A release was refused: with it, somebody's releases would cost more than the limit."""

    def __init__(self, spending: Spending) -> None:
        self.spending = spending
        super().__init__(over_limit(spending))


def over_limit(s: Spending) -> str:
    """Why a release does not fit."""
    return (
        f"requested ε = {_shown(s.requested)}, spent {_shown(s.spent)}, remaining {_shown(s.remaining)}, "
        f"together {_shown(s.total)}, limit {_shown(s.limit.epsilon)} (each ε at distance {s.limit.B:g} and "
        f"δ = {s.limit.delta:.3g}, for the people who have spent most)"
    )


def measure(
    history: History, limit: Guarantee, people_of: PeopleOf, people: Words, asked: Charge | None
) -> Spending:
    """The budget of some people if another release about them is made.

    For each person the releases that she is in are composed: neighbors differ in one person's row, so that
    releases without her tell nothing of it.

    Guarantees: no person's rows at distance B_L in every release's own scaled space (columns and scales may
    differ between releases) are told apart by more than ε = ``total`` at the limit's δ; each charge is taken
    at B_L, exactly by its noise. So a tiny B does not make a release cheap.
    Does not guarantee: the total, if the next B, ε or δ was chosen after seeing an earlier release
    (`targetdp.accounting.compose`); anything beyond group privacy to a person with several ids.
    """
    rows = history.counted
    tags = [people_of(row) for row in rows]
    groups = list(groups_of(people, tags)) if rows else [(frozenset[int](), len(people))]
    spent, kept = _worst([Counter(rows[p].charge for p in group) for group, _ in groups], limit)
    requested = 0.0 if asked is None else _epsilon((asked,), limit)
    total = spent
    if asked is not None:
        with_it = [Counter([asked, *(rows[p].charge for p in group)]) for group, _ in groups]
        # Rounding up depends on how much is composed, but more releases never cost less.
        total = max(spent, _worst(with_it, limit)[0])
    known = {
        row.release: count
        for place, row in enumerate(rows)
        if (count := sum(size for group, size in groups if place in group))
    }
    return Spending(requested, spent, total, max(0.0, limit.epsilon - spent), limit, known, kept)


def _worst(
    groups: Iterable[Counter[Charge]], limit: Guarantee
) -> tuple[float, tuple[tuple[Charge, ...], ...]]:
    """The ε of the group that lost most, and what all groups have lost that count."""
    # A composition takes a second: a group whose releases another group has, too, cannot be the worst.
    kept: list[Counter[Charge]] = []
    for group in sorted(groups, key=Counter.total, reverse=True):
        if not any(group <= other for other in kept):
            kept.append(group)
    if len(kept) > MOST_GROUPS:
        union: Counter[Charge] = Counter()
        for group in kept[MOST_GROUPS - 1 :]:
            union |= group
        kept = [*kept[: MOST_GROUPS - 1], union]
    composed = tuple(map(_in_order, kept))
    return max((_epsilon(group, limit) for group in composed), default=0.0), composed


def _in_order(charges: Counter[Charge]) -> tuple[Charge, ...]:
    """The same releases in the same order whenever they were made, so that they are composed once."""
    return tuple(sorted(charges.elements(), key=repr))


@lru_cache(maxsize=512)
def _epsilon(charges: tuple[Charge, ...], limit: Guarantee) -> float:
    """ε at the limit's distance and δ of all these releases together."""
    if not charges:
        return 0.0
    losses = {charge: charge.losses(limit.B) for charge in set(charges)}
    try:
        together = compose(*(loss for charge in charges for loss in losses[charge]))
        if together.delta(limit.epsilon) <= limit.delta:
            # The limit itself is reached exactly: searching for ε could end a rounding above it.
            return min(limit.epsilon, together.epsilon(limit.delta))
        return max(together.epsilon(limit.delta), math.nextafter(limit.epsilon, math.inf))
    except OverflowError:  # a loss beyond the range of floats hides nothing
        return math.inf


def _shown(epsilon: float) -> str:
    return "without bound" if math.isinf(epsilon) else f"{epsilon:.6g}"


def rows_named(rows: Sequence[ReleaseRow]) -> str:
    """Releases in a message, by the beginnings of their ids."""
    return ", ".join(row.release[:12] for row in rows)

"""What the entries of a ledger say, from the first to the last, and what its releases cost together."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from targetdp.accounting import compose
from targetdp.guarantee import Guarantee
from targetdp.release._certificate._charge import Charge, charge_of
from targetdp.release._ledger._entries import OPENED, Entry

State = Literal["reserved", "published", "voided"]


@dataclass(frozen=True)
class ReleaseRow:
    """One release of a population as the ledger knows it.

    ``reserved`` and ``settled`` are times; ``entry`` is the one that reserved it, ``number`` the newest about
    it; ``sha256`` is that of what was published and ``reason`` why it was voided.
    """

    release: str
    population: str
    state: State
    charge: Charge
    part: str | None
    override: str | None
    title: dict[str, Any]
    reserved: str
    entry: int
    number: int
    settled: str | None = None
    sha256: str | None = None
    reason: str | None = None

    @property
    def counts(self) -> bool:
        """Whether it is spent: published, or perhaps published."""
        return self.state != "voided"

    @property
    def sample(self) -> str | None:
        """The release that its weights were learned from, if it is known to be of scores after a sample."""
        found = self.title.get("sample")
        return str(found["release"]) if isinstance(found, dict) and "release" in found else None


@dataclass
class History:
    """Limits and releases after all entries, and the entries that make no sense after those before them."""

    limits: dict[str, Guarantee] = field(default_factory=dict)
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
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                history.problems.append(f"entry {entry.number} ({entry.kind}) makes no sense: {error}")
        return history


def _tell(history: History, entry: Entry, body: dict[str, Any]) -> None:
    row = history.releases.get(entry.release)
    if entry.kind == OPENED:
        if entry.number != 1:
            raise ValueError("a ledger is opened once")
    elif entry.kind == "resumed":
        _reason(body)
    elif entry.kind == "limit":
        history.limits[entry.population] = Guarantee(**body["limit"])
    elif entry.kind == "reserved":
        if row is not None:
            raise ValueError(f"release {entry.release!r} was reserved before")
        history.releases[entry.release] = ReleaseRow(
            release=entry.release,
            population=entry.population,
            state="reserved",
            charge=charge_of(body["charge"]),
            part=body["part"],
            override=body["override"],
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
    if row is None or row.population != entry.population:
        raise ValueError(f"release {entry.release!r} was never reserved for {entry.population!r}")
    if row.state == "published":
        raise ValueError(f"release {entry.release!r} was published before")
    if entry.kind == "published":
        # Also after a void: what became public counts, whatever was said before.
        sha256 = str(body["sha256"])
        return replace(row, state="published", settled=entry.time, sha256=sha256, number=entry.number)
    if row.state == "voided":
        raise ValueError(f"release {entry.release!r} was voided before")
    return replace(row, state="voided", settled=entry.time, reason=_reason(body), number=entry.number)


def _reason(body: dict[str, Any]) -> str:
    reason = body["reason"]
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError("it has no reason")
    return reason


# What they cost together, held against the limit of their population.

Counted = tuple[Charge, str | None]
"""A release that counts: its charge, and the disjoint part of the population that it is about, if any."""


@dataclass(frozen=True)
class Spending:
    """A population's budget when a release is asked for: each number an ε at the limit's distance and δ.

    ``requested`` is the release alone, ``spent`` what was released before, ``total`` both together,
    ``remaining`` the limit's ε less what is spent. Releases compose more tightly than by adding, and each of
    these numbers uses the limit's whole δ: only ``total`` says whether a release fits.

    Edges: infinite where nothing bounds it. Without a limit there is no distance to measure at, and what
    is not infinite is NaN.
    """

    requested: float
    spent: float
    total: float
    remaining: float
    limit: Guarantee | None

    @property
    def fits(self) -> bool:
        """Whether the release may be made without an override."""
        if self.limit is None:
            return not math.isinf(self.total)
        return self.total <= self.limit.epsilon


class LimitExceeded(ValueError):  # noqa: N818 (it is what happened, and reads as such)
    """A release was refused: with it, a population's releases would cost more than its limit."""

    def __init__(self, population: str, spending: Spending, reasons: Sequence[str] = ()) -> None:
        self.population, self.spending, self.reasons = population, spending, tuple(reasons)
        s, limit = spending, spending.limit
        parts = [f"population {population!r}: this release is refused"]
        if limit is None:
            parts.append(f"requested ε = {_shown(s.requested)}, spent {_shown(s.spent)}, no limit is set")
        else:
            parts.append(
                f"requested ε = {_shown(s.requested)}, spent {_shown(s.spent)}, "
                f"remaining {_shown(s.remaining)}, together {_shown(s.total)}, limit {_shown(limit.epsilon)} "
                f"(each ε at distance {limit.B:g} and δ = {limit.delta:.3g})"
            )
        parts += reasons
        if math.isinf(s.total):
            remedy = "use a mechanism and scales with a bound, void what was never published,"
        else:
            remedy = "ask for a smaller ε or a larger B, declare a disjoint part if nobody is in two of them,"
        parts.append(f"{remedy} or override the limit with a reason, which goes on record")
        super().__init__("; ".join(parts))


def measure(
    counted: Sequence[Counted], limit: Guarantee | None, asked: Charge | None = None, part: str | None = None
) -> Spending:
    """The budget of a population whose counted releases these are, if another is asked for.

    All releases compose, except those about different parts: a person is in at most one part, so the total
    is the largest over parts of the releases about everybody and those about that part (Lemma 3).

    Guarantees: no person's rows at distance B_L in every release's own normalized space (column scales may
    differ between releases) are told apart by more than ε = ``total`` at the limit's δ; each charge is taken
    at B_L, exactly where its noise is known and by the switch lemma (Lemma 4) where only a guarantee is
    stated. So a tiny B does not make a release cheap.
    Does not guarantee: that a person is in one part only (the data holder declares it); the total, if the
    next B, ε or δ was chosen after seeing an earlier release (`targetdp.accounting.compose`); anything
    beyond group privacy to a person with several rows.
    Edges: one release without a bound makes the whole population's spend infinite. A δ of stated
    guarantees that reaches the limit's δ does, too.
    """
    requested = 0.0 if asked is None else _largest([(asked, None)], limit)
    spent = _largest(counted, limit)
    whole = spent if asked is None else _largest([*counted, (asked, part)], limit)
    # Rounding up depends on how much is composed, but more releases never cost less.
    total = whole if limit is None else max(spent, whole)
    remaining = math.nan if limit is None else max(0.0, limit.epsilon - spent)
    return Spending(requested, spent, total, remaining, limit)


def _largest(counted: Sequence[Counted], limit: Guarantee | None) -> float:
    """The ε of the part that lost most."""
    if any(charge.unbounded is not None for charge, _ in counted):
        return math.inf
    if limit is None:
        return math.nan
    everybody = Counter(charge for charge, part in counted if part is None)
    own: dict[str, Counter[Charge]] = {}
    for charge, part in counted:
        if part is not None:
            own.setdefault(part, Counter())[charge] += 1
    # A composition takes a second: a part whose releases another part has, too, cannot be the worst.
    worst: list[Counter[Charge]] = []
    for releases in sorted(own.values(), key=Counter.total, reverse=True):
        if not any(releases <= other for other in worst):
            worst.append(releases)
    return max(_epsilon(_in_order(everybody + part), limit) for part in worst or [Counter()])


def _in_order(charges: Counter[Charge]) -> tuple[Charge, ...]:
    """The same releases in the same order whenever they were made, so that they are composed once."""
    return tuple(sorted(charges.elements(), key=repr))


@lru_cache(maxsize=256)
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
    if math.isinf(epsilon):
        return "without bound"
    return "not measured" if math.isnan(epsilon) else f"{epsilon:.6g}"

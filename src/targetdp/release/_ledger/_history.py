"""What the entries of a ledger say, told from the first to the last."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

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


def history_of(entries: Iterable[Entry]) -> History:
    """Tell the entries' history. An entry that makes no sense is a problem and changes nothing."""
    history = History()
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

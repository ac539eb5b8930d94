"""What the entries of a ledger say, from the first to the last: policies and releases."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from targetdp._core import check
from targetdp.guarantee import Guarantee
from targetdp.release._certificate._caveats import AllReleases, statement
from targetdp.release._certificate._charge import Charge, charge_of
from targetdp.release._ledger._agreements import SHORT, AgreementRow, agreement_of
from targetdp.release._ledger._entries import KEY, OPENED, Entry, Reading, Witness
from targetdp.release._ledger._limit import Limit, Stated, all_of
from targetdp.release._policy import Policy
from targetdp.release._trust._approval import PolicyChange, must_be_approved

State = Literal["reserved", "published", "voided", "lost"]


@dataclass(frozen=True)
class ReleaseRow:
    """One release as the ledger knows it.

    ``people`` is the SHA-256 of the file that says who is in it; where ``everybody`` holds, that file no
    longer names all of them, and the release is charged to everybody. ``space`` says which scales each column
    was released with, ``policy`` under which version. ``reserved`` and ``settled`` are times; ``entry`` is
    the one that reserved it, ``number`` the newest about it; ``sha256`` is that of what was published,
    ``scales`` are those that it estimated, ``reason`` says why it was freed, ``withdrawn`` why it was
    withdrawn.
    """

    release: str
    state: State
    charge: Charge
    people: str
    title: dict[str, Any]
    reserved: str
    entry: int
    number: int
    policy: int = 0
    space: Mapping[str, str] = field(default_factory=dict)
    everybody: bool = False
    settled: str | None = None
    sha256: str | None = None
    scales: Mapping[str, Any] | None = None
    reason: str | None = None
    withdrawn: str | None = None
    stated: Stated | None = None
    """Of a lost release under a policy that was lost, too: what its certificate says of all together."""

    @property
    def name(self) -> str:
        """Its id, as entries name it."""
        return self.release

    @property
    def list_name(self) -> str:
        """What its list of people is called."""
        return self.release

    @property
    def list_changed(self) -> bool:
        """Whether somebody was erased from its list of people."""
        return self.everybody

    @property
    def counts(self) -> bool:
        """Whether it is spent: published, or perhaps published."""
        return self.state != "voided"


@dataclass
class History:
    """Policies and releases after all entries, and the entries that make no sense after those before them."""

    desk: str = ""
    keys: set[str] = field(default_factory=set)
    """All keys that have signed an entry, or will."""
    policies: list[Policy] = field(default_factory=list)
    plain: list[dict[str, Any]] = field(default_factory=list)
    """The same as plain data, as it was recorded."""
    releases: dict[str, ReleaseRow] = field(default_factory=dict)
    agreements: dict[str, AgreementRow] = field(default_factory=dict)
    """Of people who agreed to be handed over as they are."""
    lost_agreed: int = 0
    """People whose agreements the ledger has lost: they count as everybody, and went out all the same."""
    space: dict[str, str] = field(default_factory=dict)
    """Which scales each column was last released with."""
    left_behind: set[tuple[int, str]] = field(default_factory=set)
    """Numbers and hashes of entries that are known to be lost: the data holder has gone on without them."""
    forgot: bool = False
    """Whether entries were lost, or may have been, and the data holder has gone on."""
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "History":
        """The history that entries tell. One that makes no sense is a problem and changes nothing."""
        history = cls()
        for entry in entries:
            if not entry.is_well_formed():
                continue  # the chain's own check speaks of it
            history.keys.add(entry.key)
            try:
                _tell(history, entry, json.loads(entry.body))
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                history.problems.append(f"entry {entry.number} ({entry.kind}) makes no sense: {error}")
        return history

    def told(self, reading: Reading, witnesses: Sequence[Witness]) -> list[str]:
        """What witnesses say against a ledger, but for what its owner has gone on without.

        A release that nobody knew of then is not left behind with the entry: it was never charged.
        """
        found = [
            problem
            for one in witnesses
            if (one.head.number, one.head.hash) not in self.left_behind
            or one.release not in {None, *self.releases}
            for problem in reading.head_problems(one.head, one.name)
        ]
        for one in witnesses:
            row = self.releases.get(one.release or "")
            if row is not None and not row.counts:
                found.append(f"release {row.release[:12]} is freed, and {one.name} says that it is published")
            elif row is not None and row.charge.record() != one.charge:
                found.append(f"release {row.release[:12]} is charged otherwise than {one.name} says")
        return found

    @property
    def policy(self) -> Policy | None:
        """The newest policy on record."""
        return self.policies[-1] if self.policies else None

    @property
    def policy_version(self) -> int:
        """How many policies were put on record."""
        return len(self.policies)

    def proposal(self, after: Policy | dict[str, Any]) -> PolicyChange:
        """The change from the policy on record to another one, as approvers sign it."""
        plain = after.model_dump(mode="json") if isinstance(after, Policy) else after
        return PolicyChange(desk=self.desk, number=self.policy_version, before=self.plain[-1], after=plain)

    @property
    def reasons(self) -> set[str]:
        """Of all policies that were ever on record: a reason serves once."""
        return {policy.reason for policy in self.policies if policy.reason is not None}

    @property
    def counted(self) -> list[ReleaseRow]:
        """All releases that are spent."""
        return [row for row in self.releases.values() if row.counts]

    @property
    def with_lists(self) -> list[ReleaseRow | AgreementRow]:
        """Whatever has a list of people."""
        return [*(row for row in self.releases.values() if row.people), *self.agreements.values()]

    @property
    def handed_over(self) -> int:
        """How many people were handed over as they are, lost agreements among them."""
        return self.lost_agreed + max((row.in_all for row in self.agreements.values()), default=0)

    def agreements_like(self, prefix: str) -> list[AgreementRow]:
        """The agreements whose id begins so."""
        return [row for name, row in self.agreements.items() if prefix and name.startswith(prefix)]

    def find(self, prefix: str) -> ReleaseRow:
        """The release whose id begins so; a ValueError unless there is exactly one."""
        if agreed := self.agreements_like(prefix):
            raise ValueError(
                f"release = {prefix!r}: {agreed[0].agreement[:SHORT]} is an agreement, and rows that went "
                "out stay out; `targetdp ledger erase` takes people off its list, and what is released of "
                "them later counts as everybody's"
            )
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

    def scale_of(self, row: ReleaseRow, column: str) -> float | None:
        """What a column of a release was divided by; None where that is not known."""
        kind, _, rest = row.space.get(column, "").partition(" ")
        if kind in {"public", "kind"}:
            return float(rest.split()[-1])
        by = self.releases.get(rest)
        scales = None if by is None or by.scales is None else by.scales.get(column)
        return None if scales is None else float(scales["scale"])

    def moved(self, row: ReleaseRow, space: Mapping[str, str]) -> bool:
        """Whether a column of a release has other scales by now, or will have in a new release."""
        now = self.space | dict(space)
        return any(now.get(column) != scales for column, scales in row.space.items())

    def stated(self, now: Limit) -> AllReleases:
        """What holds of all releases together, by every limit that one was made under and the one of now.

        A ValueError if nothing does.
        """
        made_under = sorted({row.policy for row in self.counted if row.policy})
        limits = list(dict.fromkeys([*(Limit.of(self.policies[one - 1]) for one in made_under), now]))
        lost = [row.stated for row in self.counted if row.stated is not None]
        together = all_of([*((one.stated, one.classic) for one in limits), *dict.fromkeys(lost)])
        return AllReleases(*together, forgot=self.forgot, agreed=self.handed_over)

    def together(self, now: Limit) -> Stated | None:
        """The same in numbers; None if nothing holds."""
        try:
            stated = self.stated(now)
        except ValueError:
            return None
        return stated.near, stated.classic

    def statement(self, now: Limit) -> str:
        """What may be said of all releases together."""
        try:
            return statement(*self.stated(now))
        except ValueError as error:
            return str(error)


def _tell(history: History, entry: Entry, body: dict[str, Any]) -> None:
    tell = _TELL.get(entry.kind)
    if tell is None:
        raise ValueError("a newer targetdp may have written it, or nobody")
    tell(history, entry, body)


def _opened(history: History, entry: Entry, body: dict[str, Any]) -> None:
    if entry.number != 1:
        raise ValueError("a ledger is opened once")
    history.desk = str(body.get("desk", ""))


def _key(history: History, _: Entry, body: dict[str, Any]) -> None:
    _reason(body)  # whose key it is, the chain's own check says
    history.keys.add(str(body["newer"]))


def _resumed(history: History, entry: Entry, body: dict[str, Any]) -> None:
    _reason(body)
    history.forgot = True
    history.lost_agreed += check.integer("lost_agreed", body.get("lost_agreed", 0), at_least=0)
    history.left_behind |= {(int(number), str(digest)) for number, digest in body["left_behind"]}
    for lost in body["lost"]:
        row = _lost(history, lost, entry)
        if row.release not in history.releases or not history.releases[row.release].counts:
            history.releases[row.release] = row
            history.space = dict(row.space) | history.space


def _policy(history: History, _: Entry, body: dict[str, Any]) -> None:
    policy = Policy.model_validate(body["policy"])
    if history.policies:
        must_be_approved(history.proposal(body["policy"]), body.get("approval"), history.keys)
    history.policies.append(policy)
    history.plain.append(body["policy"])


def _agreed(history: History, entry: Entry, body: dict[str, Any]) -> None:
    if entry.release in {*history.releases, *history.agreements}:
        raise ValueError(f"agreement {entry.release!r} was made before")
    before = max((row.in_all for row in history.agreements.values()), default=0)
    row = agreement_of(entry.release, body, before, entry.time, entry.number)
    history.agreements[entry.release] = row


def _reserved(history: History, entry: Entry, body: dict[str, Any]) -> None:
    if entry.release in {*history.releases, *history.agreements}:
        raise ValueError(f"release {entry.release!r} was reserved before")
    space = {str(column): str(scales) for column, scales in body["space"].items()}
    history.releases[entry.release] = ReleaseRow(
        release=entry.release, state="reserved", charge=charge_of(body["charge"]),
        people=str(body["people"]), title=body["title"], reserved=entry.time, entry=entry.number,
        number=entry.number, policy=history.policy_version, space=space,
    )  # fmt: skip
    history.space |= space


def _settle(history: History, entry: Entry, body: dict[str, Any]) -> None:
    history.releases[entry.release] = _settled(history.releases.get(entry.release), entry, body)


def _withdrawn(history: History, entry: Entry, body: dict[str, Any]) -> None:
    row = history.releases.get(entry.release)
    if row is None or row.state != "published" or row.withdrawn is not None:
        raise ValueError(f"release {entry.release!r} is not published, or was withdrawn before")
    history.releases[entry.release] = replace(row, withdrawn=_reason(body), number=entry.number)


def _erased(history: History, _: Entry, body: dict[str, Any]) -> None:
    _reason(body)
    lists = {str(name): str(people) for name, people in body["people"].items()}
    agreed = {
        name: replace(history.agreements[name], people=people, list_changed=True)
        for name, people in lists.items()
        if name in history.agreements
    }
    changed = {
        name: replace(history.releases[name], people=people, everybody=True)
        for name, people in lists.items()
        if name not in agreed
    }
    history.agreements |= agreed
    history.releases |= changed


_TELL: dict[str, Callable[[History, Entry, dict[str, Any]], None]] = {
    OPENED: _opened, KEY: _key, "resumed": _resumed, "policy": _policy, "reserved": _reserved,
    "published": _settle, "voided": _settle, "withdrawn": _withdrawn, "erased": _erased, "agreed": _agreed,
}  # fmt: skip


def lost_record(one: Witness) -> dict[str, Any]:
    """What goes on record of a release that only its certificate tells of."""
    return {
        "release": one.release, "charge": dict(one.charge), "space": dict(one.space),
        "title": dict(one.title), "policy": one.policy, "stated": [dict(part) for part in one.stated],
    }  # fmt: skip


def _lost(history: History, lost: dict[str, Any], entry: Entry) -> ReleaseRow:
    """A release that only its certificate tells of: nobody knows who is in it."""
    known = [policy.sha256 for policy in history.policies]
    policy = known.index(lost["policy"]) + 1 if lost["policy"] in known else 0
    charge = charge_of(lost["charge"])
    title = dict(lost["title"]) | (_line_of_plan(history, policy, charge) if policy else {})
    near, classic = (Guarantee(**one) for one in lost["stated"])
    return ReleaseRow(
        release=str(lost["release"]), state="lost", charge=charge, people="",
        title=title, reserved=entry.time, entry=entry.number, number=entry.number, everybody=True,
        space={str(column): str(scales) for column, scales in lost["space"].items()},
        policy=policy, stated=None if policy else (near, classic),
    )  # fmt: skip


def _line_of_plan(history: History, policy: int, charge: Charge) -> dict[str, Any]:
    """The line of the plan that a lost release was, while the ledger knows of fewer than the line has.

    Under a policy with a plan nothing else is released; and a plan is charged whole, for everybody.
    """
    limit = Limit.of(history.policies[policy - 1])
    made = [row.title.get("planned") for row in history.counted if row.title.get("plan") == limit.plan_id]
    for place, line in enumerate(limit.plan):
        if made.count(place) < line.times and limit.is_planned(place, charge):
            return {"plan": limit.plan_id, "planned": place}
    return {}


def _settled(row: ReleaseRow | None, entry: Entry, body: dict[str, Any]) -> ReleaseRow:
    if row is None:
        raise ValueError(f"release {entry.release!r} was never reserved")
    if row.state not in {"reserved", "voided"}:
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

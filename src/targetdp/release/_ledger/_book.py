"""The ledger: what was released about whom, what that costs, and what may still be released."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from targetdp._core import Words, check
from targetdp.release._certificate._charge import Charge
from targetdp.release._ledger._agreements import LISTED
from targetdp.release._ledger._chain import Pen
from targetdp.release._ledger._entries import LONGEST_REASON, Head, Witness
from targetdp.release._ledger._history import History, ReleaseRow
from targetdp.release._ledger._limit import Limit
from targetdp.release._ledger._people import forget_people, forget_unknown, write_people
from targetdp.release._ledger._record import LedgerRecord
from targetdp.release._ledger._spending import LimitExceeded, Spending, Standing, measure, standing
from targetdp.release._policy import Policy
from targetdp.release._trust._approval import Approval, must_be_approved
from targetdp.release._trust._loosened import changes

Ruling = tuple[Policy, int, Approval | None] | tuple[Policy, int]
"""A policy, which version it is, and an approval where it needs one."""


class Ledger(LedgerRecord):
    """The releases of a desk: reserved before anything is drawn, settled after it is published.

    What was reserved counts as spent until it is known that no noise was drawn for it.

    Guarantees: whoever publishes only after `reserve` returned stays within the limit, also with other
    processes at work and if any of them is killed at any moment. Nothing is read from, or added to, a ledger
    that `verify` would find something in.
    Does not guarantee: that what is published was reserved; that an id is one person.
    Edges: one object is one connection, and verifies what is there once; close it, or use ``with``.
    """

    _measured: tuple[tuple[Any, ...], Words, Spending] | None = None

    def settle_what_is_published(self, witnesses: Iterable[Witness]) -> list[str]:
        """Settle releases of which only their certificates tell that they are published; which they are.

        Nothing is freed, or finished with the same draws, that somebody has seen. A key that was changed
        before a release was reserved tells nothing of it.
        """
        found = []
        for one in witnesses:
            row = self.history.releases.get(one.release or "")
            if row is not None and row.state == "reserved" and one.key in self.reading.keys_since(row.entry):
                self.settle(row.release, one.sha256, one.scales)
                found.append(row.release)
        return found

    # Policy

    def record_policy(self, policy: Policy, version: int, approval: Approval | None = None) -> None:
        """Put a policy on record as a version, unless it is there; refuse it if another one came between.

        It is refused, too, if it needs an approval and this is none for it.
        """
        with self._chain.writing() as pen:
            self._record_policy(pen, policy, version, approval)

    def _record_policy(
        self, pen: Pen, policy: Policy, version: int, approval: Approval | None = None
    ) -> None:
        before = self.history.policy
        if before == policy and self.history.policy_version == version:
            return
        if self.history.policy_version + 1 != version:
            raise ValueError(
                "the policy was changed while this release was prepared: run again, under the new one"
            )
        after, changed = policy.model_dump(mode="json"), {}
        said = None if approval is None else approval.model_dump(mode="json")
        if before is not None:
            changed = changes(before.model_dump(mode="json"), after)
            must_be_approved(self.history.proposal(after), said, self.history.keys)
        pen.append("policy", "", {"policy": after, "changed": changed, "approval": said})

    # Releases

    def measure(
        self, limit: Limit, people: Words, charge: Charge | None, space: Mapping[str, str] | None = None,
        features: Sequence[str] | None = None,
    ) -> Spending:  # fmt: skip
        """The budget of some people (sorted tags) if a release of columns, so scaled, is made about them."""
        # A release asks twice, before the lock and under it: the second time nothing has changed, usually.
        asked = (len(self.reading.entries), limit, charge, dict(space or {}), tuple(features or ()))
        last = self._measured
        # The very same array, which is kept: another one may get its place in memory.
        if last is None or last[0] != asked or last[1] is not people:
            spending = measure(self.history, limit, self.people_of, people, charge, space, features)
            self._measured = last = (asked, people, spending)
        return last[2]

    def standing(self, limit: Limit) -> Standing:
        """Where everybody stands."""
        return standing(self.history, limit, self.people_of)

    def reserve(
        self,
        release: str,
        charge: Charge,
        limit: Limit,
        people: Words,
        title: Mapping[str, Any],
        *,
        space: Mapping[str, str] | None = None,
        planned: int | None = None,
        look: Callable[[History], object] = lambda _: None,
        policy: Ruling | None = None,
    ) -> Head:
        """Check a release and count it as spent, in one transaction. Draw only after this returned.

        Args:
            release: Its id.
            charge: What it costs.
            limit: What everybody may spend.
            people: Who is in it: sorted tags.
            title: What the record says besides: public facts such as guarantee, rows, columns.
            space: For each of its columns, which scales it has.
            planned: The line of the limit's plan that it is, where it is one: that is paid for.
            look: Is shown the history in that same transaction, and raises if something speaks against the
                release: nobody can come between.
            policy: The policy that it is made under, which version that is, and an approval where it needs
                one: it goes on record with the charge, and is refused if another one came between.
        """
        check.instance("charge", charge, Charge)
        if release in self.history.releases:
            raise ValueError(f"release {release!r} is in the ledger already: give a new one")
        if planned is not None and not limit.is_planned(planned, charge):
            raise ValueError(f"release {release!r} is not what line {planned + 1} of the plan says")
        sha256 = write_people(self._people, release, people)
        named = dict(title) | {"planned": planned, "plan": None if planned is None else limit.plan_id}
        body = {"charge": charge.record(), "people": sha256, "space": dict(space or {}), "title": named}
        asked = charge if planned is None else None
        with self._chain.writing() as pen:
            try:
                look(self.history)
                self._must_fit(self.measure(limit, people, asked, space, title.get("features")))
                if policy is not None:
                    self._record_policy(pen, *policy)
            except BaseException:
                forget_people(self._people, release)
                raise
            return pen.append("reserved", release, body)

    def agree(
        self, agreement: str, people: Words, at_most: int, record: Mapping[str, Any],
        look: Callable[[History], object], policy: Ruling,
    ) -> Head:  # fmt: skip
        """Put on record that people agreed to be handed over, in one transaction: only then are they.

        Args:
            agreement: Its id.
            people: Who they are: sorted tags.
            at_most: How many people may be handed over, all agreements together.
            record: What the entry says besides: ``columns``, ``to``, ``rows``, ``sha256`` and ``title``.
            look: As for `reserve`.
            policy: As for `reserve`.
        """
        with self._chain.writing() as pen:
            look(self.history)
            in_all = self.agreed.in_all(people)
            if (there := in_all + self.history.lost_agreed) > at_most:
                raise ValueError(f"{there:,} people would be handed over in all, and {at_most:,} may be")
            self._remove_old_lists()
            self._record_policy(pen, *policy)
            sha256 = write_people(self._people, f"{LISTED}{agreement}", people)
            return pen.append("agreed", agreement, dict(record) | {"in_all": in_all, "people": sha256})

    @staticmethod
    def _must_fit(spending: Spending) -> None:
        if not spending.fits:
            raise LimitExceeded(spending)

    def forget(self, release: str) -> None:
        """Remove who would have been in a release that was not reserved: nobody needs to know."""
        if release in {*self.history.releases, *self.history.agreements}:
            raise ValueError(f"release {release!r} is in the ledger: who is in it must be known")
        forget_people(self._people, release)

    def go_on(self, release: str, policy: Policy, version: int, approval: Approval | None = None) -> Head:
        """The entry of a reservation that a run is about to finish, unless it is free or settled by now."""
        self.record_policy(policy, version, approval)
        row = self.release(release)
        if row.state != "reserved":
            raise ValueError(f"release {release[:12]} is {row.state} by now: run again")
        return self.reading.head(row.entry)

    def settle(self, release: str, sha256: str, scales: Mapping[str, Any] | None = None) -> Head:
        """Put on record that a reserved release was published. Again with the same hash, nothing changes.

        Edges: what was freed and became public all the same counts again, whatever the limit.
        """
        if not isinstance(sha256, str) or not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise ValueError(f"sha256 = {sha256!r} is not a SHA-256: give 64 hex digits (lowercase)")
        with self._chain.writing() as pen:
            row = self.release(release)
            if row.state == "published":
                if row.sha256 != sha256:
                    raise ValueError(
                        f"release {release!r} was published as {row.sha256}, not {sha256}: "
                        "another output is another release; reserve it"
                    )
                return pen.reading.head(row.number)
            body = {"sha256": sha256, "scales": None if scales is None else dict(scales)}
            return pen.append("published", release, body)

    def free(self, release: str, reason: str) -> None:
        """Put on record that no noise was drawn for a reserved release: it no longer counts."""
        said = check.text("reason", reason, longest=LONGEST_REASON)
        with self._chain.writing() as pen:
            row = self.release(release)
            if row.state != "reserved":
                raise ValueError(f"release {release!r} is {row.state}: only what is reserved can be freed")
            pen.append("voided", release, {"reason": said})

    def withdraw(self, release: str, reason: str) -> None:
        """Put on record that a published release should no longer be used. It stays charged."""
        said = check.text("reason", reason, longest=LONGEST_REASON)
        with self._chain.writing() as pen:
            row = self.release(release)
            if row.state != "published" or row.withdrawn is not None:
                state = "withdrawn" if row.withdrawn else row.state
                raise ValueError(f"release {release!r} is {state}: only what is published can be withdrawn")
            pen.append("withdrawn", release, {"reason": said})

    def erase(self, people: Words, reason: str) -> dict[str, int]:
        """Remove the tags of some people from all lists of people.

        Guarantees: nothing becomes free. Who was erased and comes back is nobody the ledger knows; so each
        release that somebody was erased from counts for everybody from then on. Whoever was erased from an
        agreement is charged as everybody is, and is still one of those who were handed over.

        Returns:
            From which releases, and agreements, how many were erased.
        """
        said = check.text("reason", reason, longest=LONGEST_REASON)
        with self._chain.writing() as pen:
            self._remove_old_lists()
            erased, hashes = {}, {}
            for row in self.history.with_lists:
                tags = self.people_of(row)
                left = tags[~np.isin(tags, people)]
                if len(left) < len(tags):
                    erased[row.name] = len(tags) - len(left)
                    hashes[row.name] = write_people(self._people, row.list_name, left, erased=True)
            if erased:
                pen.append("erased", "", {"reason": said, "people": hashes})
        with self._chain.writing():  # another erasure may have begun, and written its lists
            self._remove_old_lists()
        return erased

    def _remove_old_lists(self) -> None:
        """Remove lists of people that an erasure has replaced, also one that was killed; under the lock."""
        for row in self.history.with_lists:
            forget_people(self._people, row.list_name, but=self._list(row))
        forget_unknown(self._people, LISTED, [*map(self._list, self.history.agreements.values())])

    def release(self, release: str) -> ReleaseRow:
        """One release by its whole id."""
        row = self.history.releases.get(release)
        if row is None:
            raise ValueError(f"release {release!r} is not in the ledger: `targetdp ledger show` lists them")
        return row

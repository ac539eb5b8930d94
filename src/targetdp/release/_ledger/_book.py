"""The ledger: what was released about whom, what that costs, and what may still be released."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from targetdp._core import Words, check
from targetdp.release._certificate._charge import Charge
from targetdp.release._ledger._chain import Chain, LedgerDamaged, Pen
from targetdp.release._ledger._entries import LONGEST_REASON, Entry, Head, Reading, Witness
from targetdp.release._ledger._history import History, ReleaseRow, lost_record
from targetdp.release._ledger._limit import Limit
from targetdp.release._ledger._people import forget_people, people_path, read_people, write_people
from targetdp.release._ledger._spending import LimitExceeded, Spending, Standing, measure, standing
from targetdp.release._policy import Policy, changes
from targetdp.release._trust._approval import Approval, must_be_approved
from targetdp.release._trust._keys import SigningKey


class Ledger:
    """The releases of a desk: reserved before anything is drawn, settled after it is published.

    What was reserved counts as spent until it is known that no noise was drawn for it.

    Guarantees: whoever publishes only after `reserve` returned stays within the limit, also with other
    processes at work and if any of them is killed at any moment. Nothing is read from, or added to, a ledger
    that `verify` would find something in.
    Does not guarantee: that what is published was reserved; that an id is one person.
    Edges: one object is one connection, and verifies what is there once; close it, or use ``with``.
    """

    def __init__(
        self, path: str | Path, key: SigningKey | None = None, *, create: bool = False,
        witnesses: Sequence[Witness] = (), second_mark: Path | None = None, desk: str = "",
    ) -> None:  # fmt: skip
        if key is not None:
            check.instance("key", key, SigningKey)
        self.path, self._witnesses = Path(path), tuple(witnesses)
        self._people = self.path.parent / "people"
        self._chain = Chain(self.path, key, create=create, second_mark=second_mark, desk=desk)
        self._known: tuple[int, History] | None = None
        self._measured: tuple[tuple[Any, ...], Words, Spending] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._chain.close()

    @property
    def history(self) -> History:
        """What the entries tell that were read last; a `LedgerDamaged` if they cannot be believed."""
        reading = self.reading
        if self._known is None or self._known[0] != len(reading.entries):
            history = History.of(reading.entries)
            problems = reading.chain_problems + reading.mark_problems() + history.problems
            problems += history.told(reading, self._witnesses)
            if problems:
                raise LedgerDamaged(self.path, problems)
            self._known = (len(reading.entries), history)
        return self._known[1]

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

    def must_be_newest(self, witnesses: Sequence[Witness]) -> None:
        """A `LedgerDamaged` if a witness has seen an entry that is not there: an older copy was put back."""
        self.refresh()  # a witness may have been made since the ledger was read
        if problems := self.history.told(self.reading, witnesses):
            raise LedgerDamaged(self.path, problems)

    @property
    def reading(self) -> Reading:
        """The entries as they were read last, which nobody has checked yet, and the keys that signed them."""
        return self._chain.reading

    @property
    def is_watched(self) -> bool:
        """Whether it was opened with the word of somebody outside its folder."""
        return bool(self._witnesses)

    def releases_on_record(self) -> list[ReleaseRow]:
        """All releases that can be read, also of a ledger that is damaged."""
        return list(History.of(self.reading.entries).releases.values())

    def people_of(self, row: ReleaseRow) -> Words:
        """Who is in a release: sorted tags."""
        return read_people(self._list(row), row.release, row.people)

    def _list(self, row: ReleaseRow) -> Path:
        return people_path(self._people, row.release, row.people, erased=row.everybody)

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
        self, limit: Limit, people: Words, charge: Charge | None, space: Mapping[str, str] | None = None
    ) -> Spending:
        """The budget of some people (sorted tags) if a release about them is made, with columns so scaled."""
        # A release asks twice, before the lock and under it: the second time nothing has changed, usually.
        asked = (len(self.reading.entries), limit, charge, dict(space or {}))
        last = self._measured
        # The very same array, which is kept: another one may get its place in memory.
        if last is None or last[0] != asked or last[1] is not people:
            spending = measure(self.history, limit, self.people_of, people, charge, space)
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
        policy: tuple[Policy, int, Approval | None] | tuple[Policy, int] | None = None,
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
        with self._chain.writing() as pen:
            try:
                look(self.history)
                self._must_fit(self.measure(limit, people, charge if planned is None else None, space))
                if policy is not None:
                    self._record_policy(pen, *policy)
            except BaseException:
                forget_people(self._people, release)
                raise
            return pen.append("reserved", release, body)

    @staticmethod
    def _must_fit(spending: Spending) -> None:
        if not spending.fits:
            raise LimitExceeded(spending)

    def forget(self, release: str) -> None:
        """Remove who would have been in a release that was not reserved: nobody needs to know."""
        if release in self.history.releases:
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
        release that somebody was erased from counts for everybody from then on.

        Returns:
            From which releases how many were erased.
        """
        said = check.text("reason", reason, longest=LONGEST_REASON)
        with self._chain.writing() as pen:
            self._remove_old_lists()
            erased, hashes = {}, {}
            for row in (row for row in self.history.releases.values() if row.people):
                tags = self.people_of(row)
                left = tags[~np.isin(tags, people)]
                if len(left) < len(tags):
                    erased[row.release] = len(tags) - len(left)
                    hashes[row.release] = write_people(self._people, row.release, left, erased=True)
            if erased:
                pen.append("erased", "", {"reason": said, "people": hashes})
        with self._chain.writing():  # another erasure may have begun, and written its lists
            self._remove_old_lists()
        return erased

    def _remove_old_lists(self) -> None:
        """Remove lists of people that an erasure has replaced, also one that was killed; under the lock."""
        for row in self.history.releases.values():
            if row.people:
                forget_people(self._people, row.release, but=self._list(row))

    def release(self, release: str) -> ReleaseRow:
        """One release by its whole id."""
        row = self.history.releases.get(release)
        if row is None:
            raise ValueError(f"release {release!r} is not in the ledger: `targetdp ledger show` lists them")
        return row

    def refresh(self) -> None:
        """Take in what other processes have appended."""
        self._chain.refresh()

    # The record itself

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries, as they were read."""
        return self.reading.entries

    def head(self) -> Head:
        """The newest entry."""
        _ = self.history
        return self.reading.head()

    def verify(self, witnesses: Sequence[Witness] = (), public_key: str | None = None) -> list[str]:
        """Whatever shows that the ledger is not as it was left; nothing if nothing does.

        Guarantees: without the signing key nobody edits, reorders, inserts or removes entries before the
        newest ones, or forges any, without being found. A cut tail is found by the mark ``<ledger>.head``,
        by the user's own list, and by any certificate of what was cut or came later. A people index that is
        missing or was altered is found. Whoever gives ``public_key`` is told if that key has not named the
        one that signs now; a change of policy that no approver has signed is found where one had to.
        Does not guarantee: that a ledger is found out that was put back to an older state together with its
        mark, the user's list and all certificates; nor a cut of what a killed process had no time to mark.
        Whoever has the signing key can write a new ledger: only certificates and ``public_key``, kept
        elsewhere, speak against it. Anybody who can write the file can append that the key was lost, and go
        on with a key of his own: the desk's key file does not fit then, ``public_key`` tells, and the entry
        shows it for good.
        Edges: a process that was killed leaves nothing that is reported.
        """
        self.refresh()
        reading = self.reading
        found = list(reading.chain_problems)
        found += [] if public_key is None else reading.key_problems(public_key)
        found += reading.mark_problems()
        history = History.of(reading.entries)
        found += history.told(reading, (*self._witnesses, *witnesses))
        for row in history.counted:
            try:
                _ = self.people_of(row) if row.people else None
            except ValueError as error:
                found.append(str(error))
        return found + history.problems

    def resume(self, reason: str, witnesses: Sequence[Witness] = ()) -> list[str]:
        """Go on although mark or witnesses contradict the ledger; reason and findings stay on record.

        For a ledger that was copied without its mark, or that had to be brought back from a backup. Entries
        themselves must be sound. A release that only a certificate tells of is charged to everybody.

        Returns:
            The releases that were charged so.
        """
        said = check.text("reason", reason, longest=LONGEST_REASON)
        with self._chain.writing(despite_mark=True) as pen:
            history, every = History.of(pen.reading.entries), (*self._witnesses, *witnesses)
            against = [one for one in every if history.told(pen.reading, [one])]
            found = pen.reading.mark_problems() + history.told(pen.reading, against)
            if not found:
                raise ValueError("nothing speaks against the ledger: there is nothing to resume from")
            counted = {row.release for row in history.counted}
            lost = {one.release: one for one in against if one.release not in {None, *counted}}
            left_behind = [[one.head.number, one.head.hash] for one in against]
            told = {"reason": said, "found": found, "left_behind": left_behind}
            pen.append("resumed", "", told | {"lost": [lost_record(one) for one in lost.values()]})
        return [str(name) for name in lost]

    # Keys

    def change_key(self, new: SigningKey, reason: str, look: Callable[[], object] = lambda: None) -> None:
        """Let another key sign from now on, on the word of this one.

        Args:
            new: The key.
            reason: Why.
            look: Is called while nobody else writes, and raises if something speaks against it.
        """
        said = check.text("reason", reason, longest=LONGEST_REASON)
        with self._chain.writing() as pen:
            _ = self.history
            look()
            pen.change_key(new, said)

    def replace_lost_key(self, new: SigningKey, reason: str) -> None:
        """Let another key sign from now on, since this one is lost; that stays on record.

        Guarantees: whatever mark or witnesses say against the ledger stays to be looked at.
        """
        said = check.text("reason", reason, longest=LONGEST_REASON)
        with self._chain.writing(despite_mark=True, in_place_of_lost=new) as pen:
            told = History.of(pen.reading.entries).told(pen.reading, self._witnesses)
            pen.marks = not (pen.reading.mark_problems() or told)
            pen.replace_lost_key(said)

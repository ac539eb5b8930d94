"""The ledger: what was released about whom, what that costs, and what may still be released."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from targetdp._core import Words, check
from targetdp.guarantee import Guarantee
from targetdp.release._certificate._charge import Charge
from targetdp.release._keys import SigningKey, fingerprint_of
from targetdp.release._ledger._chain import Chain, LedgerDamaged, Pen
from targetdp.release._ledger._entries import LONGEST_REASON, Head
from targetdp.release._ledger._people import forget_people, read_people, write_people
from targetdp.release._ledger._spending import History, LimitExceeded, ReleaseRow, Spending, measure
from targetdp.release._policy import Policy, changes


class Ledger:
    """The releases of a desk: reserved before anything is drawn, settled after it is published.

    What was reserved counts as spent until it is known that no noise was drawn for it.

    Guarantees: whoever publishes only after `reserve` returned stays within the limit, also with other
    processes at work and if any of them is killed at any moment. Nothing is read from, or added to, a ledger
    that `verify` would find something in.
    Does not guarantee: that what is published was reserved; that an id is one person.
    Edges: one object is one connection, and verifies what is there once; close it, or use ``with``.
    """

    def __init__(self, path: str | Path, key: SigningKey | None = None, *, create: bool = False) -> None:
        if key is not None:
            check.instance("key", key, SigningKey)
        self.path = Path(path)
        self._people = self.path.parent / "people"
        self._chain = Chain(self.path, key, create=create)
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
        reading = self._chain.reading
        if self._known is None or self._known[0] != len(reading.entries):
            history = History.of(reading.entries)
            problems = reading.chain_problems + reading.mark_problems() + history.problems
            if problems:
                raise LedgerDamaged(self.path, problems)
            self._known = (len(reading.entries), history)
        return self._known[1]

    def people_of(self, row: ReleaseRow) -> Words:
        """Who is in a release: sorted tags."""
        return read_people(self._people, row.release, row.people)

    # Policy

    def record_policy(self, policy: Policy, version: int) -> None:
        """Put a policy on record as a version, unless it is there; refuse it if another one came between."""
        with self._chain.writing() as pen:
            self._record_policy(pen, policy, version)

    def _record_policy(self, pen: Pen, policy: Policy, version: int) -> None:
        before = self.history.policy
        if before == policy and self.history.policy_version == version:
            return
        if self.history.policy_version + 1 != version:
            raise ValueError(
                "the policy was changed while this release was prepared: run again, under the new one"
            )
        after = policy.model_dump(mode="json")
        changed = {} if before is None else changes(before.model_dump(mode="json"), after)
        pen.append("policy", "", {"policy": after, "changed": changed})

    # Releases

    def measure(self, limit: Guarantee, people: Words, charge: Charge | None) -> Spending:
        """The budget of some people (sorted tags) if a release about them is made."""
        # A release asks twice, before the lock and under it: the second time nothing has changed, usually.
        asked, last = (len(self._chain.reading.entries), limit, charge), self._measured
        # The very same array, which is kept: another one may get its place in memory.
        if last is None or last[0] != asked or last[1] is not people:
            spending = measure(self.history, limit, self.people_of, people, charge)
            self._measured = last = (asked, people, spending)
        return last[2]

    def standing(self, limit: Guarantee) -> Spending:
        """The budget of whoever has spent most."""
        everybody = [self.people_of(row) for row in self.history.counted]
        people = np.unique(np.concatenate(everybody)) if everybody else np.empty(0, dtype=np.uint64)
        return self.measure(limit, people, None)

    def reserve(
        self,
        release: str,
        charge: Charge,
        limit: Guarantee,
        people: Words,
        title: Mapping[str, Any],
        look: Callable[[History], object] = lambda _: None,
        policy: tuple[Policy, int] | None = None,
    ) -> Head:
        """Check a release and count it as spent, in one transaction. Draw only after this returned.

        Args:
            release: Its id.
            charge: What it costs.
            limit: What everybody may spend.
            people: Who is in it: sorted tags.
            title: What the record says besides: public facts such as guarantee, rows, columns.
            look: Is shown the history in that same transaction, and raises if something speaks against the
                release: nobody can come between.
            policy: The policy that it is made under, and which version that is: it goes on record with the
                charge, and is refused if another one came between.
        """
        check.instance("charge", charge, Charge)
        if release in self.history.releases:
            raise ValueError(f"release {release!r} is in the ledger already: give a new one")
        sha256 = write_people(self._people, release, people)
        body = {"charge": charge.record(), "people": sha256, "title": dict(title)}
        with self._chain.writing() as pen:
            look(self.history)
            spending = self.measure(limit, people, charge)
            if not spending.fits:
                forget_people(self._people, release)
                raise LimitExceeded(spending)
            if policy is not None:
                self._record_policy(pen, *policy)
            return pen.append("reserved", release, body)

    def go_on(self, release: str, policy: Policy, version: int) -> Head:
        """The entry of a reservation that a run is about to finish, unless it is free or settled by now."""
        self.record_policy(policy, version)
        row = self.release(release)
        if row.state != "reserved":
            raise ValueError(f"release {release[:12]} is {row.state} by now: run again")
        return self._chain.reading.head(row.entry)

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
    def entries(self) -> Sequence[Any]:
        """All entries, as they were read."""
        return self._chain.reading.entries

    def head(self) -> Head:
        """The newest entry."""
        _ = self.history
        return self._chain.reading.head()

    def verify(self, certificate_heads: Sequence[Head] = (), public_key: str | None = None) -> list[str]:
        """Whatever shows that the ledger is not as it was left; nothing if nothing does.

        Guarantees: without the signing key nobody edits, reorders, inserts or removes entries before the
        newest ones, or forges any, without being found. A cut tail is found by the mark ``<ledger>.head``
        and by the head in any certificate of what was cut or came later. A people index that is missing or
        was altered is found.
        Does not guarantee: that a ledger and its mark that were *both* put back to an older state are found
        when no later certificate is at hand; nor a cut of what a killed process had no time to mark.
        Whoever has the signing key can write a new ledger: only certificates and ``public_key``, kept
        elsewhere, speak against it.
        Edges: all entries must be signed by the key of the first; changes of keys are not supported. A
        process that was killed leaves nothing that is reported.
        """
        reading = self._chain.reading
        found = list(reading.chain_problems)
        if public_key is not None and reading.key != public_key:
            found.append(f"it is not signed by the key {fingerprint_of(public_key)}")
        found += reading.mark_problems()
        for head in certificate_heads:
            check.instance("certificate_heads", head, Head)
            found += reading.head_problems(head, f"a certificate (entry {head.number})")
        history = History.of(reading.entries)
        for row in history.counted:
            try:
                self.people_of(row)
            except ValueError as error:
                found.append(str(error))
        return found + history.problems

    def resume(self, reason: str) -> Head:
        """Go on although the mark is lost or contradicts the ledger; reason and findings stay on record.

        For a ledger that was copied without its mark. Entries themselves must be sound.
        """
        said = check.text("reason", reason, longest=LONGEST_REASON)
        with self._chain.writing(despite_mark=True) as pen:
            found = pen.reading.mark_problems()
            if not found:
                raise ValueError("the mark agrees with the ledger: there is nothing to resume from")
            return pen.append("resumed", "", {"reason": said, "found": found})

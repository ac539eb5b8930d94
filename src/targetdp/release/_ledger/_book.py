"""The ledger: what was released about each population, what that costs, and what may still be released."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from targetdp._core import check
from targetdp.guarantee import Guarantee
from targetdp.release._certificate._charge import Charge
from targetdp.release._keys import SigningKey, fingerprint_of
from targetdp.release._ledger._chain import Chain, LedgerDamaged
from targetdp.release._ledger._entries import LONGEST_NAME, LONGEST_REASON, Head, Reading
from targetdp.release._ledger._spending import History, LimitExceeded, ReleaseRow, Spending, measure


class Ledger:
    """The releases of named populations: reserved before anything is visible, settled after.

    What was reserved counts as spent until the data holder says, with a reason on record, that nothing was
    published. `targetdp.release.ledger.spending.measure` says how releases add up.

    Guarantees: whoever publishes only after `reserve` returned stays within a population's limit, also with
    other processes at work and if any of them is killed at any moment, unless an override is on record.
    Nothing is read from, or added to, a ledger that `verify` would find something in.
    Does not guarantee: that what is published was reserved; that populations with different names have no
    one in common, or that someone is in one part only: the data holder declares it.
    Edges: a ledger that is missing is made, for whoever brings a key; `Ledger.existing` makes none.
    """

    def __init__(self, path: str | Path, key: SigningKey | None, *, create: bool = True) -> None:
        if key is not None:
            check.instance("key", key, SigningKey)
        self.path = Path(path)
        self._chain = Chain(self.path, key, create=create)

    @classmethod
    def existing(cls, path: str | Path, key: SigningKey | None = None) -> "Ledger":
        """A ledger that must be there already; without a key, for reading only."""
        return cls(path, key, create=False)

    # Limits

    def set_limit(self, population: str, limit: Guarantee) -> str:
        """Put a limit on record, in place of an earlier one; a note if it is already exceeded, else "".

        Edges: a limit's B, ε and δ must not be chosen by looking at what was released.
        """
        name = _name("population", population)
        check.instance("limit", limit, Guarantee)
        check.number(
            "delta", limit.delta, above=0, below=1,
            remedy="no sampler is exactly pure, so a limit needs some δ; try 1e-9 or below 1/people",
        )  # fmt: skip
        with self._chain.writing() as pen:
            history = self._history(pen.reading)
            pen.append("limit", name, "", {"limit": asdict(limit)})
        spending = measure(_counted(history, name), limit)
        if spending.fits:
            return ""
        spent = "without bound" if math.isinf(spending.spent) else f"ε = {spending.spent:.6g}"
        return (
            f"population {name!r} has already spent more than {limit} ({spent} at this distance and δ): "
            "every new release will be refused without an override"
        )

    def limit(self, population: str) -> Guarantee | None:
        """The limit of a population, None if it has none."""
        return self._now().limits.get(_name("population", population))

    def standing(self, population: str) -> Spending:
        """What a population has spent, with nothing more requested."""
        name, now = _name("population", population), self._now()
        return measure(_counted(now, name), now.limits.get(name))

    def populations(self) -> list[str]:
        """Every population with a limit or a release."""
        now = self._now()
        return sorted({*now.limits, *(row.population for row in now.releases.values())})

    # Releases

    def check(
        self, population: str, charge: Charge, *, part: str | None = None, override: str | None = None
    ) -> Spending:
        """What a release would cost; `LimitExceeded` if it may not be made. Reserves nothing.

        Edges: without a limit only what has no bound is refused. With an override (a reason) nothing is.
        """
        asked = _Request(population, charge, part, override)
        return asked.admitted(self._now())

    def reserve(
        self,
        population: str,
        release_id: str,
        charge: Charge,
        *,
        part: str | None = None,
        override: str | None = None,
        title: Mapping[str, Any] | None = None,
        look: Callable[[list[ReleaseRow]], object] | None = None,
    ) -> Head:
        """Check a release and count it as spent, in one transaction. Publish only after this returned.

        ``title`` is what the record shall say besides: public facts such as guarantee, rows, columns,
        mechanism, kept columns that no guarantee covers, conditions. ``look`` is shown all releases in that
        same transaction, and raises if one of them speaks against this one: nobody can come between.
        """
        release = _name("release_id", release_id)
        asked = _Request(population, charge, part, override)
        if title is not None:
            check.instance("title", title, Mapping)
        body = {
            "charge": charge.record(),
            "part": asked.part,
            "override": asked.override,
            "title": dict(title or {}),
        }
        # Composing takes seconds. Done here first, it is remembered, and others need not wait for the lock.
        asked.admitted(self._now())
        with self._chain.writing() as pen:
            history = self._history(pen.reading)
            if release in history.releases:
                raise ValueError(f"release_id = {release!r} is in the ledger already: give a new one")
            if look is not None:
                look(list(history.releases.values()))
            asked.admitted(history)
            return pen.append("reserved", asked.population, release, body)

    def settle(self, release_id: str, sha256: str) -> Head:
        """Put on record that a reserved release was published. Again with the same hash, nothing changes.

        Edges: what was voided and became public all the same counts again, whatever the limit.
        """
        if not isinstance(sha256, str) or not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise ValueError(f"sha256 = {sha256!r} is not a SHA-256: give 64 hex digits (lowercase)")
        with self._chain.writing() as pen:
            row = _found(self._history(pen.reading), release_id)
            if row.state == "published":
                if row.sha256 != sha256:
                    raise ValueError(
                        f"release {release_id!r} was published as {row.sha256}, not {sha256}: "
                        "another output is another release; reserve it"
                    )
                return pen.reading.head(row.number)
            return pen.append("published", row.population, row.release, {"sha256": sha256})

    def void(self, release_id: str, reason: str) -> Head:
        """Put on record that nothing was published of a reserved release: it no longer counts.

        Edges: scores that name a release as their sample have read it, so that one cannot be voided.
        """
        said = check.text("reason", reason, longest=LONGEST_REASON)
        with self._chain.writing() as pen:
            history = self._history(pen.reading)
            row = _found(history, release_id)
            if row.state != "reserved":
                raise ValueError(
                    f"release {release_id!r} is {row.state}: "
                    "only what is reserved and not published can be voided"
                )
            after = next((o for o in history.releases.values() if o.counts and o.sample == row.release), None)
            if after is not None:
                raise ValueError(
                    f"release {release_id!r} was published: release {after.release!r} (entry {after.entry}) "
                    "names it as its sample; it counts"
                )
            return pen.append("voided", row.population, row.release, {"reason": said})

    def releases(self, population: str | None = None) -> list[ReleaseRow]:
        """Every release, or those of one population, in the order of their reservations."""
        name = None if population is None else _name("population", population)
        return [row for row in self._now().releases.values() if name in {None, row.population}]

    def release(self, release_id: str) -> ReleaseRow:
        """One release: ask right before publishing whether it is still reserved."""
        return _found(self._now(), release_id)

    # The record itself

    def head(self) -> Head:
        """The newest entry."""
        reading = self._chain.read()
        self._history(reading)
        return reading.head()

    def verify(self, certificate_heads: Sequence[Head] = (), public_key: str | None = None) -> list[str]:
        """Whatever shows that the ledger is not as it was left; nothing if nothing does.

        Guarantees: without the signing key nobody edits, reorders, inserts or removes entries before the
        newest ones, or forges any, without being found. A cut tail is found by the mark ``<ledger>.head``
        and by the head in any certificate of what was cut or came later.
        Does not guarantee: that a ledger and its mark that were *both* put back to an older state are found
        when no later certificate is at hand; nor a cut of the one entry that a killed process had no time
        to mark. Whoever has the signing key can write a new ledger: only certificates and ``public_key``,
        kept elsewhere, speak against it.
        Edges: all entries must be signed by the key of the first; changes of keys are not supported. A
        process that was killed leaves nothing that is reported.
        """
        reading = self._chain.read()
        found = list(reading.chain_problems)
        if public_key is not None and reading.key != public_key:
            found.append(f"it is not signed by the key {fingerprint_of(public_key)}")
        found += reading.mark_problems()
        for head in certificate_heads:
            check.instance("certificate_heads", head, Head)
            found += reading.head_problems(head, f"a certificate (entry {head.number})")
        return found + History.of(reading.entries).problems

    def resume(self, reason: str) -> Head:
        """Go on although the mark is lost or contradicts the ledger; reason and findings stay on record.

        For a ledger that was copied without its mark. Entries themselves must be sound.
        """
        said = check.text("reason", reason, longest=LONGEST_REASON)
        with self._chain.writing(despite_mark=True) as pen:
            found = pen.reading.mark_problems()
            if not found:
                raise ValueError("the mark agrees with the ledger: there is nothing to resume from")
            return pen.append("resumed", "", "", {"reason": said, "found": found})

    def _now(self) -> History:
        return self._history(self._chain.read())

    def _history(self, reading: Reading) -> History:
        """The history that a reading tells, if it can be believed."""
        history = History.of(reading.entries)
        problems = reading.chain_problems + reading.mark_problems() + history.problems
        if problems:
            raise LedgerDamaged(self.path, problems)
        return history


def check_first(population: str, charge: Charge, *, part: str | None, override: str | None) -> Spending:
    """`Ledger.check` for the first release of a ledger that is yet to be made."""
    return _Request(population, charge, part, override).admitted(History())


class _Request:
    """A release that is asked for, validated once."""

    def __init__(self, population: str, charge: Charge, part: str | None, override: str | None) -> None:
        self.population = _name("population", population)
        check.instance("charge", charge, Charge)
        self.charge = charge
        self.part = None if part is None else _name("part", part)
        self.override = None if override is None else check.text("override", override, longest=LONGEST_REASON)

    def admitted(self, history: History) -> Spending:
        """What the release costs after a history; `LimitExceeded` if it may not be made."""
        limit = history.limits.get(self.population)
        spending = measure(_counted(history, self.population), limit, self.charge, self.part)
        if spending.fits or self.override is not None:
            return spending
        reasons = [] if self.charge.unbounded is None else [f"it has no bound ({self.charge.unbounded})"]
        reasons += [
            f"release {row.release!r}, which counts, has no bound ({row.charge.unbounded})"
            for row in history.releases.values()
            if row.counts and row.population == self.population and row.charge.unbounded is not None
        ]
        raise LimitExceeded(self.population, spending, reasons)


def _counted(history: History, population: str) -> list[tuple[Charge, str | None]]:
    return [
        (row.charge, row.part)
        for row in history.releases.values()
        if row.counts and row.population == population
    ]


def _found(history: History, release_id: str) -> ReleaseRow:
    row = history.releases.get(_name("release_id", release_id))
    if row is None:
        raise ValueError(
            f"release_id = {release_id!r} is not in the ledger: `targetdp ledger show` lists them"
        )
    return row


def _name(name: str, value: Any) -> str:
    return check.text(name, value, longest=LONGEST_NAME)

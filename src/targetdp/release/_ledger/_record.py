"""The record of a ledger: its entries, what they tell, and whatever shows that it is not as it was left."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from targetdp._core import Words, check
from targetdp.release._ledger._agreements import AgreedPeople, AgreementRow
from targetdp.release._ledger._chain import Chain, LedgerDamaged
from targetdp.release._ledger._entries import LONGEST_REASON, Entry, Head, Reading, Witness
from targetdp.release._ledger._history import History, ReleaseRow, lost_record
from targetdp.release._ledger._people import Listed, people_path, read_people
from targetdp.release._trust._keys import SigningKey


class LedgerRecord:
    """What a ledger has on record, read and verified; `Ledger` adds to it.

    Guarantees: nothing is read from a ledger that `verify` would find something in.
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

    def outputs_on_record(self) -> list[Listed]:
        """All releases and agreements that can be read, also of a ledger that is damaged."""
        history = History.of(self.reading.entries)
        return [*history.releases.values(), *history.agreements.values()]

    def people_of(self, row: Listed) -> Words:
        """Who is in a release, or has agreed: sorted tags."""
        return read_people(self._list(row), row.list_name, row.people)

    @property
    def agreed(self) -> AgreedPeople:
        """The people who agreed to be handed over, by lists that are those on record."""
        return AgreedPeople([*self.history.agreements.values()], self.people_of)

    def _list(self, row: Listed) -> Path:
        return people_path(self._people, row.list_name, row.people, erased=row.list_changed)

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
        for row in history.with_lists:
            try:
                _ = self.people_of(row) if isinstance(row, AgreementRow) or row.counts else None
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
            told: dict[str, Any] = {"reason": said, "found": found, "left_behind": left_behind}
            told["lost_agreed"] = max([0, *(one.agreed - history.handed_over for one in every)])
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

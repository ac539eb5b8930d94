"""Handing over people who agreed: looked at, written out of sight, put on record, and only then readable."""

import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from targetdp._core import Progress, Silent, __version__
from targetdp.release._agreed._look import AgreementLook, NotHandedOver, look_at_people
from targetdp.release._agreed._record import AgreementRecord
from targetdp.release._certificate._agreed import MEANS
from targetdp.release._certificate._parts import DeskRecord, LedgerMark, Output
from targetdp.release._certificate._witnesses import witnesses
from targetdp.release._desk import Desk
from targetdp.release._engine._tables import found_on_disk, spooled
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._entries import Head
from targetdp.release._ledger._history import History
from targetdp.release._ledger._journal import HANDED_OVER, settle_earlier
from targetdp.release._output import PublishedButUnsettledError, open_output
from targetdp.release._trust._approval import write_proposal
from targetdp.table import Elsewhere, Source, TableOnDisk, format_of


@dataclass(frozen=True)
class HandedOver:
    """People who were handed over: where their rows are, what is on record, and the look before."""

    path: Path
    agreement: AgreementRecord
    look: AgreementLook = field(repr=False)


def check_agreed(
    table: TableOnDisk | Elsewhere, people: str | Path, *, desk: Desk | str | Path | None = None,
    column: str | None = None, progress: Progress | None = None,
) -> AgreementLook:  # fmt: skip
    """Look at who would be handed over, and at all that keeps them from it. Nothing changes.

    Args:
        table: As for `hand_over`.
        people: As for `hand_over`.
        desk: As for `hand_over`.
        column: As for `hand_over`.
        progress: Is told how far reading is.

    Returns:
        Who would go out, with which columns, what they agreed to, and all problems.

    Example:
        >>> check_agreed("features.parquet", "agreed.csv").problems  # doctest: +SKIP
        ()
    """
    opened = _opened(desk)
    with opened.ledger() as ledger:
        ledger.must_be_newest(witnesses(opened, ledger))
        with spooled(found_on_disk(table, opened), opened, progress) as source:
            return look_at_people(opened, ledger, source, Path(people), column, progress or Silent())


def hand_over(
    table: TableOnDisk | Elsewhere,
    people: str | Path,
    output: str | Path,
    *,
    desk: Desk | str | Path | None = None,
    column: str | None = None,
    confirm: Callable[[AgreementLook], None] | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> HandedOver:
    """Hand over the rows of people who agreed, as they are, on record.

    Args:
        table: The table with everybody, as for `privatize`: files, an address or a database.
        people: A table with the ids of those who agreed, as ``table`` has them.
        output: Where their rows go: a file (``.parquet``, ``.csv``). Beside it comes a signed record of
            what they agreed to, ``OUTPUT.agreement.json``.
        desk: The data holder's desk, or its folder; by default it is found as git finds its folder.
        column: The column of ids in ``people``; by default its first.
        confirm: Is shown an `AgreementLook` before anything goes on record, and raises to stop.
        force: Whether an output that is a release, or was handed over before, is replaced.
        progress: Is told how far the work is.

    Returns:
        The record, and the look.

    Raises:
        NotHandedOver: Something keeps them from being handed over; the message says all of it.
        ValueError: The table, the desk or the output cannot be used.
        PublishedButUnsettledError: They are handed over, and the run could not tidy up.

    Guarantees: nobody's row can be read under the output's name before an entry of the ledger names them.
    Under it there are all rows with their record, or what was there before. A run that ends earlier leaves
    at most an entry, which the same call finds again.
    Does not guarantee: anything to these people. That they agreed is the data holder's word.

    Example:
        >>> hand_over("features.parquet", "agreed.csv", "agreed.parquet").agreement.rows  # doctest: +SKIP
        2100
        >>> hand_over("features.parquet", "agreed.csv", "folder/")
        Traceback (most recent call last):
        ValueError: output = folder is no table of one file: name a *.parquet or *.csv
    """
    place = Path(output)
    if format_of(place) is None or place.name.lower().endswith(".gz"):
        raise ValueError(f"output = {place} is no table of one file: name a *.parquet or *.csv")
    opened = _opened(desk)
    given = found_on_disk(table, opened)
    with (
        opened.ledger() as ledger,
        open_output(given, place, opened.path, force=force, private=True) as publisher,
        ExitStack() as stack,
    ):
        publisher.begin(lambda journal: settle_earlier(opened, ledger, journal))
        source = stack.enter_context(spooled(given, opened, progress))
        ledger.must_be_newest(witnesses(opened, ledger, place.parent))
        before = source.state()
        seen = look_at_people(opened, ledger, source, Path(people), column, progress or Silent())
        if seen.problems:
            _log_refusal(opened, seen)
            write_proposal(opened, ledger.history)
            raise NotHandedOver(seen)
        if confirm is not None:
            confirm(seen)
        _must_be_unchanged(source, before)
        opened.check_unchanged()
        if seen.agreed is None or seen.found is None:
            raise RuntimeError("people without an agreement: please report this")
        if not opened.was_known:  # before anything goes out: other desks must know whom this one knows
            opened.remember()
        rows = seen.found.rows
        publisher.accept(rows.schema, seen.found.formulas)
        with publisher.sink(rows.schema) as sink:
            sink.write(rows)
            written = publisher.written(sink)
        agreement, head = _put_on_record(opened, ledger, seen, written, publisher.place)
        record = _record_of(opened, ledger, seen, written, agreement, head)
        journal = {"desk": opened.id, "release": agreement, HANDED_OVER: agreement}
        try:
            publisher.publish(record, journal)
            opened.log("handed over", release=agreement, people=rows.num_rows, output=publisher.place)
        except BaseException as error:
            if publisher.published:
                raise PublishedButUnsettledError(publisher.place, error) from error
            raise
    return HandedOver(place, record, seen)


def _opened(desk: Desk | str | Path | None) -> Desk:
    """The desk as it is now: its policy may have changed since somebody opened it."""
    return Desk.open(desk.path if isinstance(desk, Desk) else desk)


def _must_be_unchanged(source: Source, before: object) -> None:
    if source.state() != before:
        raise ValueError(f"input {source} was changed meanwhile: try again when nobody writes to it")


def _put_on_record(
    desk: Desk, ledger: Ledger, seen: AgreementLook, output: Output, place: str
) -> tuple[str, Head]:
    """The entry of these people: that of a run that died after it, or a new one."""
    agreed, found = seen.agreed, seen.found
    if agreed is None or found is None:
        raise RuntimeError("people without an agreement: please report this")
    for row in ledger.history.agreements.values():
        same = (row.sha256, row.to, row.columns) == (output.sha256, agreed.to, agreed.columns)
        # The same rows: the same people, unless somebody was erased, who would have to agree again.
        if same and not row.list_changed:
            ledger.record_policy(*seen.ruling)
            return row.agreement, ledger.reading.head(row.entry)
    agreement = uuid.uuid4().hex
    title = {
        "id": desk.policy.id.column, "pseudonyms": desk.policy.id.pseudonyms, "output": place,
        "known": len(seen.known),
    }  # fmt: skip
    record = {
        "columns": list(agreed.columns), "to": agreed.to, "rows": found.rows.num_rows,
        "sha256": output.sha256, "title": title,
    }  # fmt: skip

    def as_seen(history: History) -> None:
        if history.agreements != seen.history.agreements:
            raise ValueError("agreements were made or changed meanwhile: look again, with --check")

    head = ledger.agree(agreement, found.people, agreed.at_most, record, as_seen, seen.ruling)
    return agreement, head


def _record_of(
    desk: Desk, ledger: Ledger, seen: AgreementLook, output: Output, agreement: str, head: Head
) -> AgreementRecord:
    """What is handed over with the rows, signed."""
    row, (policy, version, _) = ledger.history.agreements[agreement], seen.ruling
    return AgreementRecord(
        agreement=agreement, library=__version__, time=datetime.now(UTC).isoformat(timespec="seconds"),
        desk=DeskRecord(id=desk.id, name=policy.name, policy=version, policy_sha256=policy.sha256),
        to=row.to, means=MEANS, rows=row.rows, in_all=ledger.history.handed_over, id=policy.id.column,
        pseudonyms=policy.id.pseudonyms, columns=row.columns, gaps=seen.gaps, output=output,
        ledger=LedgerMark(ledger_id=head.ledger_id, number=head.number, hash=head.hash), **seen.scales,
    ).signed(desk.key, ledger.reading.successions)  # fmt: skip


def _log_refusal(desk: Desk, seen: AgreementLook) -> None:
    desk.log("refused", kind="people who agreed", why=[problem.what for problem in seen.problems])

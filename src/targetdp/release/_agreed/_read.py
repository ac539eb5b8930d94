"""The rows of people who agreed, as the official gets them: nothing is used before its record holds."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import __version__
from targetdp.normalization import ColumnScales
from targetdp.release._agreed._record import AgreementRecord, read_agreement
from targetdp.release._certificate._agreed import MEANS
from targetdp.release._certificate._contents import Check, same_file
from targetdp.release._certificate._signed import SignedBy, by_a_stranger, signature_checks
from targetdp.release._certificate._verify import Verification
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._entries import Witness
from targetdp.release._staging import agreement_path
from targetdp.release._trust._keys import fingerprint_of
from targetdp.table import Source, batch_rows, open_source

_HASH = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class Agreement:
    """People who agreed to be handed over as they are, as a record says that holds for their rows.

    Args:
        agreement: Its id, as requests name it (``learned_from``, ``leave_out``).
        desk: The id of the desk, as certificates have it.
        desk_name: What the desk is called.
        id: The column of ids.
        pseudonyms: Whether these are keyed hashes.
        columns: The other columns, as they are; what is missing is null.
        rows: How many people.
        to: What they agreed to.
        scales: The scales of all columns, in their order; None unless each has one.
        gaps: Declared constants that stand for missing values.
        sha256: The SHA-256 of the table.
        key: The public key that signed the record.
        record: All that the record says; ``record.scales_of`` has the scales of some columns.
    """

    agreement: str
    desk: str
    desk_name: str
    id: str
    pseudonyms: bool
    columns: tuple[str, ...]
    rows: int
    to: str
    scales: ColumnScales | None
    gaps: Mapping[str, float]
    sha256: str
    key: str
    record: AgreementRecord = field(repr=False)


def agreed_rows(
    path: str | Path, record: str | Path | None = None, public_key: str | None = None
) -> Agreement:
    """Check the rows of people who agreed against their record, and say what it says.

    Args:
        path: Their rows.
        record: Their record; by default the one beside the rows, ``PATH.agreement.json``.
        public_key: The data holder's public key, as she has told it by another way; by default any key that
            the user has named, or that is of a desk of the user's own.

    Returns:
        What the record says, once all of it holds.

    Raises:
        ValueError: There is none, or it does not hold for these rows; the message says what of it.

    Example:
        >>> agreed_rows("agreed.parquet").columns  # doctest: +SKIP
        ('calls', 'texts')
        >>> agreed_rows("private.parquet")
        Traceback (most recent call last):
        ValueError: rows private.parquet have no record of an agreement (private.parquet.agreement.json): ...
    """
    table = Path(path)
    place = agreement_path(table) if record is None else Path(record)
    if not place.exists():
        raise ValueError(
            f"rows {table} have no record of an agreement ({place}): without it nobody knows that these "
            "people agreed; ask the data holder for it"
        )
    found = read_agreement(place)
    checked = verify_agreement(table, found, public_key)
    if checked.only_the_signer_is_unknown:
        raise ValueError(f"rows {table}: {checked.failed[0].detail}")
    if not checked.holds or found.signature is None:
        wrong = "; ".join(f"{check.what}: {check.detail}" for check in checked.failed)
        raise ValueError(
            f"agreement {place} does not hold for rows {table} ({wrong}): run targetdp verify for all checks"
        )
    return Agreement(
        agreement=found.agreement, desk=found.desk.id, desk_name=found.desk.name, id=found.id,
        pseudonyms=found.pseudonyms, columns=found.columns, rows=found.rows, to=found.to,
        scales=found.scales_of(found.columns), gaps=found.gaps, sha256=found.output.sha256,
        key=found.signature.key, record=found,
    )  # fmt: skip


def verify_agreement(
    path: str | Path, record: AgreementRecord | str | Path | None = None, public_key: str | None = None
) -> Verification:
    """Check the rows of people who agreed: who signed their record, and whether it is for this file.

    Args:
        path: Their rows.
        record: Their record, or its file; by default the one beside the rows.
        public_key: As for `agreed_rows`.

    Returns:
        All checks; ``holds`` says whether none of them failed.

    Raises:
        ValueError: There is no record that can be read, or ``public_key`` is none.

    Does not guarantee: that these people agreed; that is the data holder's word.

    Example:
        >>> verify_agreement("agreed.parquet").holds  # doctest: +SKIP
        True
    """
    if public_key is not None:
        fingerprint_of(public_key, "public_key")  # what is no key is bad input, not a bad record
    place = Path(path)
    if not isinstance(record, AgreementRecord):
        record = read_agreement(agreement_path(place) if record is None else record)
    who = SignedBy(record.signature, record.message(), record.desk.id, record.agreement, record.output.sha256)
    signed = tuple(signature_checks(who, public_key))
    checks = (*signed, _meaning(record), *_file_checks(place, record))
    return Verification(checks, by_a_stranger(signed, public_key))


def verify_agreement_in_ledger(record: AgreementRecord, ledger: Ledger) -> Iterator[Check]:
    """Whether a ledger is sound, of the same key or desk, and has these people on record as they are told.

    Args:
        record: Their record.
        ledger: The data holder's ledger.

    Returns:
        What was checked.
    """
    problems = ledger.verify([Witness("the record", record.ledger.head(), agreed=record.in_all)])
    keys = ledger.reading.keys_since(record.ledger.number)
    if record.signature is None or record.signature.key not in keys:
        problems.append("it was not signed with the key of the record, then or later")
    yield Check("ledger", not problems, "; ".join(problems) or "sound, and signed by the same key")
    if problems:
        return
    row = ledger.history.agreements.get(record.agreement)
    if row is None:
        yield Check("agreement in the ledger", False, "this ledger does not know it")
        return
    told = (row.entry, row.sha256, row.columns, row.to, row.rows)
    same = told == (
        record.ledger.number, record.output.sha256, record.columns, record.to, record.rows
    )  # fmt: skip
    yield Check("agreement in the ledger", same, f"entry {row.entry}" if same else "is another one")


def _meaning(record: AgreementRecord) -> Check:
    if record.library != __version__:
        return Check("what it means", None, f"worded by targetdp {record.library}")
    good = record.means == MEANS
    return Check("what it means", good, "said in full" if good else "is not said as it is")


def _file_checks(path: Path, record: AgreementRecord) -> Iterator[Check]:
    """Hash, columns, rows and ids; whatever cannot be read has failed."""
    try:
        if not path.is_file():
            yield Check("file", False, f"{path} is no file")
            return
        yield same_file(path.name, path, record.output.files[0])
        source = open_source(path, csv=record.output.dialect)
        good = source.columns == record.table_columns
        yield Check("columns of the file", good, "as told" if good else "others than are told")
        if good:
            yield from _people(source, record)
    except (OSError, ValueError, pa.ArrowException) as error:
        yield Check("file", False, str(error))


def _people(source: Source, record: AgreementRecord) -> Iterator[Check]:
    rows, last, ordered, hashed = 0, "", True, True
    for batch in source.batches([record.id], {}, batch_rows(1)):
        if not batch.num_rows:
            continue
        rows += batch.num_rows
        ids = pa.concat_arrays([pa.array([last], pa.string()), batch.column(record.id).cast(pa.string())])
        ordered &= bool(pc.all(pc.less(ids.slice(0, len(ids) - 1), ids.slice(1))).as_py())
        hashed &= not record.pseudonyms or all(
            _HASH.fullmatch(name or "") for name in ids.slice(1).to_pylist()
        )
        last = ids[-1].as_py()
    yield Check("rows", rows == record.rows, f"{rows:,}")
    yield Check("order", ordered, "sorted by id, no id twice" if ordered else "ids are not in order")
    if record.pseudonyms:
        yield Check("pseudonyms", hashed, "all ids look like hashes" if hashed else "some ids are no hashes")

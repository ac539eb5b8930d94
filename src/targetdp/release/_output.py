"""Where a release goes: files that appear in one step, or a table in memory that is handed back."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import pyarrow as pa

from targetdp.release._agreed._record import AgreementRecord
from targetdp.release._certificate._certificate import Certificate
from targetdp.release._certificate._contents import arrow_of, frame_hash, output_of
from targetdp.release._certificate._parts import Output
from targetdp.release._engine._base import RowWriter, released_columns
from targetdp.release._policy import Policy
from targetdp.release._remote._in_store import StoreStaging
from targetdp.release._staging import Staging
from targetdp.table import (
    Dialect,
    Elsewhere,
    Format,
    Sink,
    Source,
    StoredTable,
    dialect_of,
    format_of,
    is_stored,
    local_path,
    refuse_formulas,
)

Settle = Callable[[dict[str, Any]], None]
"""Tells a ledger what a journal says."""


class PublishedButUnsettledError(RuntimeError):
    """The release can be read, but its ledger was not told: it must not be taken for unpublished."""

    def __init__(self, place: str, cause: BaseException) -> None:
        super().__init__(
            f"the release IS published ({place}), but the run could not finish "
            f"({type(cause).__name__}: {cause}). It counts. Run the same command again, without --force: it "
            "will finish what is left, tell the ledger, and then say that the output exists"
        )


class Publisher(Protocol):
    """Where a release goes, and how it becomes visible."""

    path: Path | None
    """The output's name; None for a table in memory, or for an output in a store."""
    folder: Path | None
    """Where an engine may keep what is not finished."""

    @property
    def place(self) -> str:
        """What the ledger remembers of where it went."""

    @property
    def published(self) -> bool:
        """Whether it can be read, whole."""

    @property
    def frame(self) -> Any:
        """The private table, of the kind that was given; None for files."""

    def begin(self, settle: Settle) -> None:
        """Finish or undo what an earlier run left, and refuse an output that is taken."""

    def accept(self, schema: pa.Schema, formulas: int) -> None:
        """Refuse columns, or so many ids that are formulas, where this kind of output cannot hold them."""

    def sink(self, schema: pa.Schema) -> AbstractContextManager[RowWriter]:
        """Where rows are written, out of sight."""

    def written(self, sink: Any) -> Output:
        """What was written, once all of it is."""

    def publish(self, certificate: Certificate | AgreementRecord, journal: dict[str, Any]) -> None:
        """Make it visible, whole. The journal is for a run that must finish what this one began."""


@contextmanager
def open_output(
    table: Any, output: str | Path | None, desk: Path, *, force: bool, private: bool = False,
    csv: Dialect | None = None,
) -> Iterator[Publisher]:  # fmt: skip
    """The place of a release: files (for their owner's eyes), or a table in memory where no name is given."""
    if output is None:
        files = isinstance(table, Source) or (isinstance(table, Elsewhere) and not table.gives_back)
        if files or type(table).__module__.startswith("pyspark."):
            raise ValueError("output must be given: where the released files go")
        yield _Frame(table)
        return
    staging = _staging_for(output, desk, force=force, private=private)
    place = local_path(str(output))
    if isinstance(table, StoredTable) and is_stored(str(output)):
        _must_differ("input", Path(unquote(str(table))), Path(unquote(staging.place)))
    for named in table.places if isinstance(table, Source) else ():
        _must_differ("input", named, place)
    _must_differ("desk", desk, place)
    done = False
    try:
        with staging:
            yield _Files(staging, private=private, csv=csv)
            done = True
    except BaseException as error:
        if done:  # only what a run leaves behind could not be tidied up
            raise PublishedButUnsettledError(staging.place, error) from error
        raise


def output_dialect(policy: Policy, table: Any, released: Sequence[str]) -> Dialect | None:
    """How a release as CSV is written; None where that is plainly.

    Raises:
        ValueError: Something that goes out may have no place in the encoding: nothing is drawn for that.
    """
    if policy.csv.output == "plain":
        return None
    source = table if isinstance(table, Source) else None
    read = source.csv if source is not None and source.format == "csv" else dialect_of(policy.csv)
    csv = replace(read, thousands="")  # no mark is written
    if not csv.quote:
        raise ValueError('[csv] output = "same" needs quotes around text that has separators: give a quote')
    if csv.quote != '"':  # what they do not know as a quote, they read as text, and what is inside as cells
        raise ValueError(
            f'[csv] output = "same" with quote = {csv.quote}: spreadsheets know no other than \'"\', and '
            'would run what is quoted; set output = "plain" under [csv]'
        )
    if csv.encoding.startswith("utf"):
        return csv
    remedy = f'may have no place in {csv.encoding}: set output = "plain" under [csv], or encoding = "utf-8"'
    if source is None or source.csv.encoding != csv.encoding:
        raise ValueError(f"text of a table that is no CSV in {csv.encoding} {remedy}")
    if policy.id.spelling.case != "as it is" and not policy.id.pseudonyms:
        raise ValueError(f"letters that [id.spelling] makes {remedy}")
    for text in (*released, *(value for values in source.folders.values() for value in values if value)):
        if text.encode(csv.encoding, "ignore").decode(csv.encoding) != text:
            raise ValueError(f"{text!r} {remedy}")
    return csv


def _staging_for(output: str | Path, desk: Path, *, force: bool, private: bool) -> Staging:
    """How what goes to an output is published."""
    if not is_stored(str(output)):
        return Staging(local_path(str(output)), force=force)
    if private:
        raise ValueError(
            "output is in a store: rows of people who agreed are handed over as a file of this disk"
        )
    return StoreStaging(str(output), desk, force=force)


def _must_differ(what: str, source: Path, output: Path) -> None:
    here, there = source.resolve(), output.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise ValueError(f"output {output} and {what} {source} overlap: choose an output elsewhere")


class _Files:
    """Files that appear in one step, with their certificate."""

    frame = None

    def __init__(self, staging: Staging, *, private: bool, csv: Dialect | None) -> None:
        self._staging, self._private, self._csv = staging, private, csv
        self.path: Path | None = None if isinstance(staging, StoreStaging) else staging.output
        self.folder: Path | None = staging.folder
        self._kind, self._parts = _shape(staging.output)

    @property
    def place(self) -> str:
        """See `Publisher`."""
        return self._staging.place

    @property
    def published(self) -> bool:
        """See `Publisher`."""
        return self._staging.published

    def begin(self, settle: Settle) -> None:
        """See `Publisher`."""
        self._staging.begin(settle)

    def accept(self, schema: pa.Schema, formulas: int) -> None:
        """See `Publisher`."""
        if self._kind == "csv":
            if formulas:
                raise ValueError(
                    f"{formulas:,} ids would be run as formulas where a CSV file is opened in a spreadsheet: "
                    "write Parquet, or set pseudonyms = true in policy.toml"
                )
            nested = [field for field in schema if pa.types.is_nested(field.type)]
            if nested:
                raise ValueError(
                    f"public column {nested[0].name!r} has type {nested[0].type}, which a CSV cannot hold: "
                    "use Parquet"
                )
            refuse_formulas(schema.names)

    @contextmanager
    def sink(self, schema: pa.Schema) -> Iterator[Sink]:
        """See `Publisher`."""
        with Sink(
            self._staging.table, self._kind, schema, ids=schema.names[0], parts=self._parts,
            private=self._private, csv=self._csv,
        ) as sink:  # fmt: skip
            yield sink

    def written(self, sink: Any) -> Output:
        """See `Publisher`."""
        name = None if self._parts else self._staging.output.name
        return output_of(self._kind, sink.finish(), name, self._csv if self._kind == "csv" else None)

    def publish(self, certificate: Certificate | AgreementRecord, journal: dict[str, Any]) -> None:
        """See `Publisher`."""
        self._staging.publish(certificate, journal)


def _shape(output: Path) -> tuple[Format, bool]:
    """The format of the output, and whether it is a directory of parts."""
    if output.name.lower().endswith(".gz"):
        raise ValueError(f"output {output} is compressed text, which is not written: use .csv or .parquet")
    kind = format_of(output)
    if kind is None and output.suffix:
        raise ValueError(
            f"output {output} has no known suffix: use .parquet, .csv, or no suffix for a directory"
        )
    return (kind or "parquet"), kind is None


class _Frame:
    """A table in memory: publishing is returning, and nothing is visible before."""

    path: Path | None = None
    folder: Path | None = None
    place = "a table in memory"
    published = False

    def __init__(self, table: Any) -> None:
        self._back = table.give_back if isinstance(table, Elsewhere) else arrow_of(table)[1]
        self._tables: list[pa.Table] = []
        self.frame: Any = None

    def begin(self, settle: Settle) -> None:
        """Nothing to do."""

    def accept(self, schema: pa.Schema, formulas: int) -> None:
        """Every column fits."""

    @contextmanager
    def sink(self, schema: pa.Schema) -> Iterator["_Frame"]:  # noqa: ARG002 (rows bring theirs)
        """See `Publisher`."""
        self._tables = []
        yield self

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        self._tables.append(table)

    def written(self, sink: Any) -> Output:  # noqa: ARG002 (it is this object)
        """See `Publisher`."""
        private = pa.concat_tables(self._tables)
        digest = frame_hash(private, private.schema.names[0], released_columns(private.schema))
        return Output(format="frame", files=(), sha256=digest)

    def publish(
        self,
        certificate: Certificate | AgreementRecord,  # noqa: ARG002
        journal: dict[str, Any],  # noqa: ARG002
    ) -> None:
        """Make it a table of the kind that was given: what fails here can still be done again."""
        self.frame = self._back(pa.concat_tables(self._tables))

"""The release job for data frames in memory: pandas, polars or pyarrow in, the same kind out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from targetdp._core import Silent
from targetdp.normalization import ColumnScales
from targetdp.release._certificate._certificate import Certificate
from targetdp.release._certificate._contents import arrow_of, frame_hash
from targetdp.release._certificate._parts import Output
from targetdp.release._engine._inspection import inspect
from targetdp.release._engine._local import Outcome, privatize_table
from targetdp.release._holder import Holder
from targetdp.release._settings import make_settings
from targetdp.table import check_columns, plain_type

# What a data frame holds, whatever kind of frame it is: a hash by which its certificate knows it.


@dataclass(frozen=True)
class ReleasedFrame:
    """A private frame of the kind that was given. ``outcome`` and ``warnings`` are the data holder's own."""

    frame: Any
    certificate: Certificate
    outcome: Outcome
    warnings: tuple[str, ...]


def privatize_frame(frame: Any, *, scales: ColumnScales | str, **settings: Any) -> ReleasedFrame:
    """Release a private version of a data frame; ``settings`` are those of a release file.

    ``scales`` is a `ColumnScales` in the order of ``features``, a scales file, "private" or "data".

    Guarantees: what the certificate says. Each call is a release of its own and is charged to the ledger,
    if one is given, before the frame is returned.
    """
    given = scales if isinstance(scales, ColumnScales) else None
    made = make_settings(settings | {"scales": scales if isinstance(scales, str) else "given in Python"})
    if made.engine != "local":
        raise ValueError(f"engine = {made.engine!r}: a frame in memory is privatized where it is")
    table, back = arrow_of(frame)
    check_columns(table.column_names, "the frame", id=[made.id], features=made.features, keep=made.keep)
    holder, sink = Holder(made, given), _Collected()
    source = holder.people(_Table(table))
    inspection = inspect(source, made, holder.bounds, Silent())
    used = holder.scales(inspection)
    terms = holder.terms(used, inspection.rows)
    holder.check(terms, used)
    kept = {name: plain_type(table.schema.field(name).type) for name in made.keep}
    outcome = privatize_table(
        source, sink, None, made, used, terms, inspection, kept, holder.pseudonym_key, Silent()
    )
    private = pa.concat_tables(sink.tables)
    output = Output(format="frame", files=(), sha256=frame_hash(private, made.id, made.released))
    certificate = holder.certify(terms, used, outcome.rows, output, _InMemory())
    return ReleasedFrame(back(private), certificate, outcome, holder.warnings)


@dataclass(frozen=True)
class _Table:
    """A table in memory that can be read in batches."""

    table: pa.Table

    def count(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)

    def batches(
        self,
        columns: list[str],
        types: dict[str, pa.DataType],  # noqa: ARG002 (a table knows its own types)
        rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """The named columns, at most so many rows at a time."""
        yield from self.table.select(columns).to_batches(max_chunksize=rows)


class _Collected:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        self.tables.append(table)


class _InMemory:
    """Publishing is returning: nothing is visible before."""

    place = "a data frame in memory"
    published = visible = settled = False

    def publish(self, certificate: Certificate, journal: dict[str, Any]) -> None:
        """Nothing to do."""

"""The release job for data frames in memory: pandas, polars or pyarrow in, the same kind out."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from targetdp.progress import Silent
from targetdp.release.certificate import Certificate, Output
from targetdp.release.columns import check_columns
from targetdp.release.holder import Holder
from targetdp.release.inspection import inspect
from targetdp.release.local import Outcome, privatize_table
from targetdp.release.settings import make_settings
from targetdp.release.terms import make_terms
from targetdp.scales import ColumnScales
from targetdp.table.source import plain_type


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
    table, back = _arrow(frame)
    check_columns(table.column_names, "the frame", id=[made.id], features=made.features, keep=made.keep)
    holder, source, sink = Holder(made, given), _Table(table), _Collected()
    inspection = inspect(source, made, holder.bounds, Silent())
    used = holder.scales(inspection)
    terms = make_terms(made, used, inspection.rows)
    holder.check(terms, used)
    kept = {name: plain_type(table.schema.field(name).type) for name in made.keep}
    outcome = privatize_table(
        source, sink, None, made, used, terms, inspection, kept, holder.pseudonym_key, Silent()
    )
    private = pa.concat_tables(sink.tables)
    output = Output(format="frame", files=(), sha256=frame_hash(private, made.id, made.features))
    certificate = holder.certify(terms, used, outcome.rows, output, _InMemory())
    return ReleasedFrame(back(private), certificate, outcome, holder.warnings)


def frame_hash(table: pa.Table, id_column: str, features: Sequence[str]) -> str:
    """SHA-256 of names, ids and values: the same for equal frames of any kind.

    Of every column its name, then its values in order of rows: features as little-endian doubles, names and
    ids as UTF-8 behind their lengths (8 bytes). The values of columns that are not protected do not count.
    """
    digest = hashlib.sha256()
    for name in (id_column, *features):
        digest.update(_framed(name))
        column = table.column(name).combine_chunks()
        if name == id_column:
            for value in column.to_pylist():
                digest.update(_framed(str(value)))
        else:
            digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return digest.hexdigest()


def _framed(text: str) -> bytes:
    data = text.encode()
    return len(data).to_bytes(8, "little") + data


def is_certified(frame: Any, certificate: Certificate) -> bool:
    """Whether a frame has exactly the columns, ids and features that its certificate was made for."""
    table, _ = _arrow(frame)
    if table.column_names != [certificate.id, *certificate.features, *certificate.not_protected]:
        return False
    return frame_hash(table, certificate.id, certificate.features) == certificate.output.sha256


def _arrow(frame: Any) -> tuple[pa.Table, Any]:
    """The frame as a pyarrow table, and the way back."""
    if isinstance(frame, pa.Table):
        return frame, lambda table: table
    try:
        known = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"frame is a {type(frame).__name__}: give a pandas, polars or pyarrow table in memory, or use "
            "targetdp.release.spark for Spark"
        ) from error
    backend = known.implementation
    return known.to_arrow(), lambda table: nw.from_arrow(table, backend=backend).to_native()


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

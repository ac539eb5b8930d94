"""The release job: from a table to a certified, charged, private one, or to nothing at all.

Tables of files go through an engine and come out as files. Data frames in memory (pandas, polars or pyarrow)
come out as frames of the same kind.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from targetdp._core import Progress, Silent
from targetdp.normalization import ColumnScales
from targetdp.release._certificate._certificate import Certificate, Output
from targetdp.release._certificate._contents import arrow_of, frame_hash, output_of
from targetdp.release._engine._base import Done, Outcome, Target, engine_of
from targetdp.release._engine._inspection import inspect
from targetdp.release._engine._local import privatize_table
from targetdp.release._holder import Holder, PublishedButUnsettledError
from targetdp.release._keys import SigningKey
from targetdp.release._settings import Settings, make_settings
from targetdp.release._staging import Staging
from targetdp.table import Format, Source, check_columns, format_of, open_source, plain_type


@dataclass(frozen=True)
class Released:
    """A finished release. ``outcome`` and ``warnings`` are for the data holder only."""

    path: Path
    certificate: Certificate
    outcome: Outcome
    warnings: tuple[str, ...]
    why: str
    key: SigningKey


def privatize_file(
    source: Path | Source,
    output: Path,
    settings: Settings,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Released:
    """Release a private version of a table of files, opened or not.

    Guarantees: what the certificate says. Under the output's name there is the whole release with its
    certificate, or what was there before. A ledger, if given, is charged before anything becomes visible.
    Edges: whatever is wrong with the input or the settings is a ValueError, raised before publishing.
    """
    table = source if isinstance(source, Source) else open_source(source)
    _must_differ("input", table.path, output)
    if settings.sample is not None:
        _must_differ("sample", settings.sample, output)
    place = f"input {table.path}"
    check_columns(table.columns, place, id=[settings.id], features=settings.features, keep=settings.keep)
    holder = Holder(settings)

    def work(target: Target) -> Done:
        before = table.state()
        done = engine_of(settings.engine)(table, target, holder, progress or Silent())
        if table.state() != before:
            raise ValueError(f"{place} changed while it was read: try again when nobody writes to it")
        return done

    return publish(output, holder, force=force, work=work)


def publish(output: Path, holder: Holder, *, force: bool, work: Callable[[Target], Done]) -> Released:
    """Let an engine write a table out of sight, then certify, charge and publish it, or leave nothing."""
    kind, parts = _shape(output, holder.settings)
    certificate: Certificate | None = None
    try:
        with Staging(output, force=force) as staging:
            staging.begin(holder.settle_earlier)
            done = work(Target(staging.table, staging.folder, kind, parts))
            result = output_of(kind, done.written, None if parts else output.name)
            certificate = holder.certify(done.prepared, done.outcome.rows, result, staging)
    except BaseException as error:
        if certificate is not None:  # it was published; only tidying up failed
            raise PublishedButUnsettledError(str(output), error) from error
        raise
    return Released(output, certificate, done.outcome, holder.warnings, done.prepared.terms.why, holder.key)


def _shape(output: Path, settings: Settings) -> tuple[Format, bool]:
    """The format of the output, and whether it is a directory of parts."""
    if output.name.lower().endswith(".gz"):
        raise ValueError(f"output {output} is compressed text, which is not written: use .csv or .parquet")
    kind = format_of(output)
    if kind is None and output.suffix:
        raise ValueError(
            f"output {output} has no known suffix: use .parquet, .csv, or no suffix for a directory"
        )
    if settings.made_for == "cider" and kind != "csv":
        raise ValueError(f"output {output} is not a CSV file: Cider reads one file, such as features.csv")
    return (kind or "parquet"), kind is None


def _must_differ(what: str, source: Path, output: Path) -> None:
    here, there = source.resolve(), output.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise ValueError(f"output {output} and {what} {source} overlap: choose an output elsewhere")


# Data frames in memory.


def holder_in_python(
    settings: dict[str, Any], scales: ColumnScales | str, *, engine: str, remedy: str
) -> Holder:
    """The holder of a release whose settings were given in Python, for the one engine that it can have."""
    named = scales if isinstance(scales, str) else "given in Python"
    made = make_settings({"engine": engine} | settings | {"scales": named})
    if made.engine != engine:
        raise ValueError(f"engine = {made.engine!r}: {remedy}")
    return Holder(made, scales if isinstance(scales, ColumnScales) else None)


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
    holder = holder_in_python(
        settings, scales, engine="local", remedy="a frame in memory is privatized where it is"
    )
    made, sink = holder.settings, _Collected()
    table, back = arrow_of(frame)
    check_columns(table.column_names, "the frame", id=[made.id], features=made.features, keep=made.keep)
    people = holder.people(_Table(table))
    prepared = holder.prepare(inspect(people, made, holder.bounds, Silent()))
    kept = {name: plain_type(table.schema.field(name).type) for name in made.keep}
    outcome = privatize_table(people, sink, None, holder, prepared, kept, Silent())
    private = pa.concat_tables(sink.tables)
    output = Output(format="frame", files=(), sha256=frame_hash(private, made.id, made.released))
    certificate = holder.certify(prepared, outcome.rows, output, _InMemory())
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

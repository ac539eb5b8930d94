"""The release job for files: from a table to a certified, charged, private one, or to nothing at all."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from targetdp._core import Progress, Silent
from targetdp.normalization import ColumnScales
from targetdp.release._certificate._certificate import Certificate, output_of
from targetdp.release._engine._inspection import inspect
from targetdp.release._engine._local import Outcome, privatize_table
from targetdp.release._engine._ordered import output_schema
from targetdp.release._holder import Holder, PublishedButUnsettledError
from targetdp.release._keys import SigningKey
from targetdp.release._settings import Settings
from targetdp.release._staging import Staging
from targetdp.release._terms import Terms
from targetdp.table import (
    Format,
    Sink,
    Source,
    Written,
    check_columns,
    format_of,
    open_source,
    refuse_formulas,
)


@dataclass(frozen=True)
class Released:
    """A finished release. ``outcome`` and ``warnings`` are for the data holder only."""

    path: Path
    certificate: Certificate
    outcome: Outcome
    warnings: tuple[str, ...]
    why: str
    key: SigningKey


@dataclass(frozen=True)
class Target:
    """Where an engine writes, and in which shape: one file, or a directory of parts."""

    table: Path
    folder: Path
    kind: Format
    parts: bool


@dataclass(frozen=True)
class Done:
    """What an engine hands back once the table is written, but not yet published."""

    outcome: Outcome
    scales: ColumnScales
    terms: Terms
    written: tuple[Written, ...]


Engine = Callable[[Source, Target, Holder, Progress], Done]


def privatize_file(
    source: Path, output: Path, settings: Settings, *, force: bool = False, progress: Progress | None = None
) -> Released:
    """Release a private version of a table of files.

    Guarantees: what the certificate says. Under the output's name there is the whole release with its
    certificate, or what was there before. A ledger, if given, is charged before anything becomes visible.
    Edges: whatever is wrong with the input or the settings is a ValueError, raised before publishing.
    """
    table = open_source(source)
    _must_differ("input", source, output)
    if settings.sample is not None:
        _must_differ("sample", settings.sample, output)
    check_columns(
        table.columns, f"input {source}", id=[settings.id], features=settings.features, keep=settings.keep
    )
    engine = ENGINES[settings.engine]
    return publish(
        output, Holder(settings), force=force,
        work=lambda target, holder: engine(table, target, holder, progress or Silent()),
    )  # fmt: skip


def publish(output: Path, holder: Holder, *, force: bool, work: Callable[[Target, Holder], Done]) -> Released:
    """Let an engine write a table out of sight, then certify, charge and publish it, or leave nothing."""
    kind, parts = _shape(output, holder.settings)
    certificate: Certificate | None = None
    try:
        with Staging(output, force=force) as staging:
            staging.begin(holder.settle_earlier)
            done = work(Target(staging.table, staging.folder, kind, parts), holder)
            result = output_of(kind, done.written, None if parts else output.name)
            certificate = holder.certify(done.terms, done.scales, done.outcome.rows, result, staging)
    except BaseException as error:
        if certificate is not None:  # it was published; only tidying up failed
            raise PublishedButUnsettledError(str(output), error) from error
        raise
    return Released(output, certificate, done.outcome, holder.warnings, done.terms.why, holder.key)


def _local(table: Source, target: Target, holder: Holder, progress: Progress) -> Done:
    settings, before = holder.settings, table.state()
    kept = table.types(settings.keep)
    if target.kind == "csv":
        _must_fit_in_text(kept)
        refuse_formulas(output_schema(settings, kept).names)
    people = holder.people(table)
    inspection = inspect(people, settings, holder.bounds, progress)
    scales = holder.scales(inspection)
    terms = holder.terms(scales, inspection.rows)
    holder.check(terms, scales)
    schema = output_schema(settings, kept)
    with Sink(target.table, target.kind, schema, ids=settings.id, parts=target.parts) as sink:
        outcome = privatize_table(
            people,
            sink,
            target.folder,
            settings,
            scales,
            terms,
            inspection,
            kept,
            holder.pseudonym_key,
            progress,
        )
        written = sink.finish()
    _must_not_have_changed(table, before)
    return Done(outcome, scales, terms, written)


def _spark(table: Source, target: Target, holder: Holder, progress: Progress) -> Done:
    from targetdp.release._engine import _spark as spark  # noqa: PLC0415 (optional, and slow to import)

    before = table.state()
    done = spark.run(spark.read(table, holder.settings), target, holder, progress)
    _must_not_have_changed(table, before)
    return done


def _must_fit_in_text(kept: dict[str, pa.DataType]) -> None:
    for name, kind in kept.items():
        if pa.types.is_nested(kind):
            raise ValueError(f"kept column {name!r} has type {kind}, which a CSV cannot hold: use Parquet")


def _must_not_have_changed(table: Source, before: object) -> None:
    if table.state() != before:
        raise ValueError(f"input {table.path} changed while it was read: try again when nobody writes to it")


ENGINES: dict[str, Engine] = {"local": _local, "spark": _spark}
"""Every engine by name: a new one is one line here."""


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

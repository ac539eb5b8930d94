"""The engine for tables that one machine should not read alone: Spark adds the noise, once.

Spark is lazy. A frame with noise in it would draw fresh noise at every action, which is another release that
nobody paid for; and a task that is run again over rows in another order would give one person's noise to
another. So nothing lazy ever holds noise: one action runs the tasks of `spark_tasks`, whose noise is keyed to
the row, each writes its private rows by ranges of ids, and the driver puts the ranges in order, proves the
ids unique, and publishes files. Whoever wants a Spark frame reads these.

All workers must have this package, and a path to the output's folder (one machine, or a shared file system).
"""

import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from targetdp._core import Progress, Silent, check
from targetdp.normalization import ColumnScales
from targetdp.release._engine._base import Done, Outcome, Target, named, output_schema, write_in_order
from targetdp.release._engine._inspection import Inspection, nobody_left, ranges_of, refuse_constants
from targetdp.release._engine._spark_tasks import REPORT, Gathered, Measure, Privatize, Report, draw_secret
from targetdp.release._holder import Holder
from targetdp.release._job import Released, holder_in_python, publish
from targetdp.release._keys import pseudonyms
from targetdp.release._settings import Settings
from targetdp.table import Sink, Source, Splitters, Tally, check_columns, ids_of, numbers_of

try:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException, PythonException
    from pyspark.serializers import CloudPickleSerializer
    from pyspark.sql import DataFrame, SparkSession, functions
    from pyspark.sql.pandas.types import to_arrow_schema
except ImportError as error:
    raise ImportError(
        f"the Spark engine cannot start ({error}): install it with pip install 'targetdp[spark]', and Java 17"
    ) from error

_PER_RANGE = 256
"""Ids sampled for each range, so that ranges are even within some 6%."""
_LONGEST_SPLITTER = 64
_COMMAND_MARGIN = 1 << 16


def privatize(
    frame: DataFrame,
    output: Path | str,
    *,
    scales: ColumnScales | str,
    force: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Released:
    """Release a private version of a Spark frame to files; ``settings`` are those of a release file.

    ``scales`` is a `ColumnScales` in the order of ``features``, a scales file, "private" or "data".
    Read the private table back with ``spark.read.parquet(str(output))``.

    Guarantees: what the certificate says, and what `targetdp.release.job.privatize_file` does: all or
    nothing, charged before it is visible. However often Spark recomputes, retries or reorders, each person
    gets one noise in this release, and no two people the same.
    Does not guarantee: that the job's secret is safe from who can read the cluster's memory, its network or
    its disks: turn on ``spark.network.crypto.enabled`` and ``spark.io.encryption.enabled`` there.
    Edges: the frame is computed three times (once where scales come from the data, into a checkpoint on the
    workers): persist it if that is slow. Each call is a release of its own. The output is a path that the
    driver and all workers share.
    """
    holder = holder_in_python(
        settings, scales, engine="spark", remedy="a Spark frame is privatized by Spark; leave it out"
    )
    bar = progress or Silent()
    return publish(Path(output), holder, force=force, work=lambda target: run(frame, target, holder, bar))


@named("spark")
def run_on_files(table: Source, target: Target, holder: Holder, progress: Progress) -> Done:
    """The engine: from a table of files to a written one, not yet published."""
    return run(read(table, holder.settings), target, holder, progress)


def run(frame: DataFrame, target: Target, holder: Holder, progress: Progress) -> Done:
    """From a frame to a written table, not yet published.

    Edges: a table is refused, with what is wrong, before anything is published; so is a failed task.
    """
    settings = holder.settings
    if settings.keep_order:
        raise ValueError("keep_order is not for Spark, whose rows have no order: leave it out")
    _must_keep_secrets(frame, settings)
    frame = _without_sample(_selected(frame, settings), holder)
    if settings.scales in {"private", "data"}:
        # Scales and rows must come from the same rows, each person once in both: what is computed again may
        # differ. A checkpoint is computed once; whatever is lost of it is an error.
        with _explained():
            frame = frame.localCheckpoint(eager=True)
    inspection = _inspect(frame, holder, progress)
    prepared = holder.prepare(inspection)
    law = prepared.terms.law
    if law is None:
        raise ValueError(f"{prepared.terms.name} looks at all rows at once: use the local engine")
    folder = target.folder.absolute() / "spark"
    folder.mkdir(mode=0o700)
    try:
        progress.phase("adding noise", inspection.rows)
        task = Privatize(
            settings, prepared.scales, law, inspection.splitters, folder, draw_secret(), holder.pseudonym_key
        )
        report = _run(frame, task)
        _refuse(report, inspection.rows, settings)
        progress.advance(report.rows)
        gathered = Gathered(folder, report.pieces)
        schema = output_schema(settings, gathered.kept(settings.keep))
        with Sink(target.table, target.kind, schema, ids=settings.id, parts=target.parts) as sink:
            ranges = len(inspection.splitters) + 1
            write_in_order(gathered.sorted_range, ranges, report.rows, schema, settings, sink, progress)
            written = sink.finish()
    finally:
        _remove(folder)
    return Done(Outcome(report.rows, report.clipped), prepared, written)


def session() -> SparkSession:
    """The session that is active, or a quiet one on all cores of this machine.

    Edges: workers must run this interpreter, and Spark looks at PYSPARK_PYTHON only when it starts. What a
    task logs of its failure is in the exception too, so our own session keeps it off the screen.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        started = (
            SparkSession.builder.master("local[*]")
            .appName("targetdp")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "FATAL")
            .config("spark.driver.memory", "2g")
            .config("spark.io.encryption.enabled", "true")
            .getOrCreate()
        )
    except PySparkException as error:
        raise RuntimeError(
            f"Spark cannot start ({_reason(error)}): it needs Java 17, on the path or in JAVA_HOME"
        ) from error
    started.sparkContext.setLogLevel("FATAL")
    return started


def read(table: Source, settings: Settings) -> DataFrame:
    """A table of files as a frame, its columns as the local engine reads them.

    Edges: in a CSV, what is neither a number nor one of the usual words for a missing one is an error, and
    so is a line with another number of fields than the header.
    """
    reader = session().read
    # Another file system may be the default, and Spark takes [1] in a name for a pattern.
    paths = [re.sub(r"([\[\]{}*?\\])", r"\\\1", f"file://{file.absolute()}") for file in table.files]
    with _explained():
        if table.format == "parquet":
            return reader.parquet(*paths)
        schema = ", ".join(f"{_quoted(name)} STRING" for name in table.columns)
        # Without pruning, lines are checked whole, whichever columns are asked for.
        reader = reader.option("columnPruning", "false")
        text = reader.csv(paths, schema=schema, header=True, mode="FAILFAST", escape='"')
        others = [
            functions.coalesce(functions.col(_quoted(name)), functions.lit("")).alias(name)
            for name in (settings.id, *settings.keep)
        ]
        return text.select(*others, *map(_number, settings.features))


def _must_keep_secrets(frame: DataFrame, settings: Settings) -> None:
    """A pseudonym key outlives the job: it must not reach a disk in clear."""
    encrypted = frame.sparkSession.sparkContext.getConf().get("spark.io.encryption.enabled", "false")
    if settings.pseudonymize is not None and str(encrypted).lower() != "true":
        raise ValueError(
            "pseudonymize sends its key to Spark's workers, whose disks may keep it: start the session with "
            "spark.io.encryption.enabled=true"
        )


def _selected(frame: DataFrame, settings: Settings) -> DataFrame:
    """The columns that are needed, once their names and types are known to be right."""
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise ValueError(
            "the frame is one of Spark Connect, whose server may log what tasks are sent, and with it the "
            "job's secret: use a classic session"
        )
    needed = [settings.id, *settings.features, *settings.keep]
    check_columns(
        frame.columns, "the frame", id=[settings.id], features=settings.features, keep=settings.keep
    )
    twice = [name for name in check.twice(frame.columns) if name in set(needed)]
    if twice:
        raise ValueError(f"the frame has two columns named {twice[0]!r}: rename one")
    with _explained():
        frame = frame.select(*map(_quoted, needed))
        types = to_arrow_schema(frame.select(*map(_quoted, needed[: 1 + len(settings.features)])).schema)
    # Reading no rows refuses what reading them all would.
    nothing = pa.RecordBatch.from_pylist([], schema=types)
    ids_of(nothing.column(settings.id), settings.id, Tally(), 0)
    numbers_of(nothing, settings.features, {}, Tally(), 0)
    return frame


def _without_sample(frame: DataFrame, holder: Holder) -> DataFrame:
    """The frame without the people of a sample, where they are left out; all of them must be in it."""
    settings, sample = holder.settings, holder.sample
    if sample is None or not settings.leaves_sample_out:
        return frame
    plain = "person of the sample"
    name = functions.col(_quoted(settings.id)).cast("string")
    with _explained(), warnings.catch_warnings():
        # PySpark leaves the socket for the ids to be collected.
        warnings.simplefilter("ignore", ResourceWarning)
        people = frame.sparkSession.createDataFrame(pa.table({plain: sample.ids}))
        known = functions.broadcast(people)
        found = frame.join(known, name == people[plain], "inner").select(people[plain]).distinct().count()
        holder.found(int(found))
        return frame.join(known, name == people[plain], "left_anti")


def _inspect(frame: DataFrame, holder: Holder, progress: Progress) -> Inspection:
    """Count rows, sum up what scales need, and find where to cut the ids; all of it on Spark."""
    settings = holder.settings
    progress.phase("reading", None)
    with _explained():
        rows = int(frame.count())
    if rows == 0:
        raise nobody_left(settings)
    found = Report(rows)
    if settings.scales in {"private", "data"}:
        found = _run(frame.select(*map(_quoted, settings.features)), Measure(settings, holder.bounds))
        _refuse(found, rows, settings)
    progress.advance(rows)
    return Inspection(rows, _splitters(frame, rows, holder), found.raw, found.sums)


def _splitters(frame: DataFrame, rows: int, holder: Holder) -> pa.StringArray:
    """Where to cut the ids, as they will be published, into even ranges: from a sample of them."""
    settings = holder.settings
    ranges = ranges_of(rows, len(settings.released))
    if ranges == 1:
        return pa.array([], pa.string())
    name = functions.col(_quoted(settings.id)).cast("string")
    with _explained():
        sample = frame.select(name).sample(min(1.0, _PER_RANGE * ranges / rows)).collect()
    ids = pa.array([row[0] for row in sample if row[0] is not None], pa.string())
    splitters = Splitters()
    splitters.add(ids if holder.pseudonym_key is None else pseudonyms(ids, holder.pseudonym_key))
    # The beginning of an id cuts as well; what travels with every task stays small.
    return pc.utf8_slice_codeunits(splitters.cut(ranges), 0, _LONGEST_SPLITTER)


def _run(frame: DataFrame, task: Measure | Privatize) -> Report:
    """Run a task over all partitions in one action, and join what each of them reports, once.

    The task, with the secret in it, travels inside the function that Spark ships: never as configuration, in
    a plan, or as a broadcast variable of ours, which would be written to the driver's disk. Spark itself may
    move the function to disk where memory is short: encrypted, if ``spark.io.encryption.enabled`` is set.
    """
    context: Any = frame.sparkSession.sparkContext
    pickler: Any = CloudPickleSerializer
    size = len(pickler().dumps(task)) + _COMMAND_MARGIN
    limit = context._jvm.PythonUtils.getBroadcastThreshold(context._jsc)
    if size > limit:
        raise ValueError(
            f"a task takes {size:,} bytes, and Spark writes those above {limit:,} to disk, with the job's "
            f"secret: set spark.broadcast.UDFCompressionThreshold to {2 * size} or more"
        )
    with _explained(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        # Plain names, since mapInArrow would parse others; tasks know the columns by their order.
        plain = frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
        reports = plain.mapInArrow(task, f"{REPORT} binary").collect()
    return Report.joined(bytes(row[0]) for row in reports)


def _refuse(report: Report, expected: int, settings: Settings) -> None:
    """All rows were seen: refuse what is wrong with them."""
    report.tally.raise_if_any(rows_are_numbered=False)
    if report.rows != expected or report.raw is None:
        raise ValueError(
            f"the table had {expected:,} rows at first and {report.rows:,} then: it changed meanwhile; "
            "try again when nobody writes to it, or persist the frame"
        )
    refuse_constants(settings.features, report.raw.lowest, report.raw.highest)


def _remove(folder: Path) -> None:
    """Remove what tasks wrote. A late attempt may still be at it; without the folder it can only fail."""
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


def _number(name: str) -> Any:
    """A column of text as numbers; the words that stand for a missing one are those of the local engine."""
    text = functions.col(_quoted(name))
    refused = functions.raise_error(
        functions.concat(functions.lit(f"feature {name!r} is not a number everywhere: "), text)
    )
    number = functions.coalesce(functions.expr(f"try_cast({_quoted(name)} AS DOUBLE)"), refused)
    missing = text.isNull() | text.isin(pacsv.ConvertOptions().null_values)
    return functions.when(missing, None).otherwise(number).alias(name)


def _quoted(name: str) -> str:
    """A name that is not to be parsed: dots belong to it."""
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _explained() -> Iterator[None]:
    """What went wrong in one line, the whole trace as its cause."""
    try:
        yield
    except PythonException as error:
        raise RuntimeError(f"a Spark task failed ({_reason(error)}): nothing was published") from error
    except (PySparkException, Py4JError) as error:
        raise ValueError(
            f"Spark cannot compute the table ({_reason(error)}): nothing was published"
        ) from error


def _reason(error: Exception) -> str:
    """The line that says why, out of the traces of two languages."""
    text = str(error)
    _, trace, python = text.rpartition("Traceback (most recent call last):")
    if trace:
        return next((line for line in python.splitlines() if line[:1].strip()), "no reason given")
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.+)$", text, re.MULTILINE)
    line = causes[-1] if causes else text.strip().splitlines()[0]
    return re.sub(r"^\[[A-Z0-9_.]+\] |\s*SQLSTATE: \w+.*$", "", line)

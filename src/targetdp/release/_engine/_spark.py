"""The engine for tables that one machine should not read alone: Spark adds the noise, or scores, once.

Spark is lazy. A frame with noise in it would draw fresh noise at every action, which is another release that
nobody paid for; and a task that is run again over rows in another order would give one person's noise to
another. So nothing lazy ever holds noise: one action runs the tasks of `spark_tasks`, whose noise is keyed to
the row, each writes its private rows by ranges of ids, and the driver puts the ranges in order, proves the
ids unique, and publishes files. Whoever wants a Spark frame reads these. Of decisions nothing is drawn on
Spark: its one action scores everybody, and the driver draws all bits from the scores that it got.

All workers must have this package, and a path to the output's folder (one machine, or a shared file system).
"""

import shutil
import time
import warnings
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, Integers, NotYetError, Progress, check
from targetdp.release._decision._bits import Bits, batches_of, marks_of
from targetdp.release._engine._base import (
    Inspection,
    ReleaseJob,
    RowWriter,
    SortedRange,
    Wrote,
    decide_all,
    fingerprint_of,
    hash_splitters,
    named,
    ranges_of,
    write_in_order,
)
from targetdp.release._engine._rows import in_order
from targetdp.release._engine._spark_files import explained, quoted, read
from targetdp.release._engine._spark_tasks import (
    REPORT,
    CountTask,
    Gathered,
    LookTask,
    Privatize,
    Report,
    ScoreTask,
    Secret,
)
from targetdp.release._prepare import Recipe
from targetdp.table import SortedIds, Source, Splitters, Tally, ids_of, plain_type

try:
    from pyspark.serializers import CloudPickleSerializer
    from pyspark.sql import DataFrame, functions
    from pyspark.sql.pandas.types import to_arrow_schema
except ImportError as error:
    raise ImportError(
        f"the Spark engine cannot start ({error}): install it with pip install 'targetdp[spark]', and Java 17"
    ) from error

# PySpark 4.1 and later must be told in which zone moments are; before, it was always this one.
_ZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
_PER_RANGE = 256
"""Ids sampled for each range, so that ranges are even within some 6%."""
_LONGEST_SPLITTER = 64
_COMMAND_MARGIN = 1 << 16


@named("spark")
class SparkEngine:
    """A Spark frame, or a table of files that Spark reads.

    Guarantees: however often Spark recomputes, retries or reorders, each person gets one noise in a release,
    and no two people the same; or her bits are drawn once, from one score. A run that ended after bits were
    drawn is finished with the same ones, if the frame has the same values again.
    Does not guarantee: that the keys that tasks need are safe from who can read the cluster's memory, its
    network or its disks: turn on ``spark.network.crypto.enabled`` and ``spark.io.encryption.enabled`` there.
    Edges: the frame is computed three times (once where this release estimates scales, into a checkpoint on
    the workers): persist it if that is slow. The output is a path that the driver and all workers share. For
    decisions the driver is sent 16 bytes for each person and 8 for each of her scores (see
    ``spark.driver.maxResultSize``), and holds about five times that. No models run here.
    """

    name: str
    numbered = False
    can_repeat = False

    def __init__(self, table: Any) -> None:
        self._source = table if isinstance(table, Source) else None
        self._frame: Any = None if isinstance(table, Source) else table
        self.place = "the frame" if self._source is None else f"input {self._source}"
        self.read_as, self.doubt = (
            ("", "") if self._source is None else (self._source.described, self._source.doubt)
        )
        if type(table).__module__.startswith("pyspark.sql.connect"):
            raise ValueError(
                "the frame is one of Spark Connect, whose server may log what tasks are sent, and with it "
                "the desk's keys: use a classic session"
            )
        self.columns = tuple((self._source or table).columns)
        self._state = None if self._source is None else self._source.state()
        self._selected: DataFrame | None = None

    def check_unchanged(self) -> None:
        """See `Engine`."""
        if self._source is not None and self._source.state() != self._state:
            raise NotYetError(f"{self.place} changed while it was read: try again when nobody writes to it")

    def fingerprint(self, key: bytes) -> str | None:
        """See `Engine`."""
        return None if self._source is None else fingerprint_of(self._source, key)

    def types(self, names: Sequence[str]) -> Mapping[str, pa.DataType]:
        """See `Engine`."""
        if self._source is not None:
            return self._source.types(list(names))
        with explained():
            schema = to_arrow_schema(self._frame.select(*map(quoted, names)).schema, **_ZONE)
        return {name: plain_type(schema.field(name).type) for name in names}

    def inspect(self, recipe: Recipe, progress: Progress) -> Inspection:
        """See `Engine`."""
        if recipe.scoring is not None and recipe.scoring.by_models:
            raise ValueError(
                "a model decides, and models are run on the data holder's own machine, not on Spark's "
                'workers: use engine = "local", with a file or a table in memory'
            )
        frame = self._frame if self._source is None else read(self._source, recipe)
        frame = _select(frame, recipe)
        _must_keep_secrets(frame)
        if recipe.estimated:
            # Scales and rows must come from the same rows, each person once in both: what is computed again
            # may differ. A checkpoint is computed once; whatever is lost of it is an error.
            with explained():
                frame = frame.localCheckpoint(eager=True)
        self._selected = frame
        progress.phase("looking", None)
        found = _run(frame, LookTask(recipe)).looked
        if found is None or not found.rows:
            raise ValueError("the table has no rows, or all are left out: there is nothing to release")
        progress.advance(found.rows)
        return found.inspection(_splitters(frame, found.rows, recipe))

    def count(self, recipe: Recipe, centers: Floats, progress: Progress) -> Integers:
        """See `Engine`."""
        if self._selected is None:
            raise RuntimeError("a table is counted before it was looked at: please report this")
        progress.phase("measuring columns", None)
        counts = _run(self._selected, CountTask(recipe, centers)).counts
        return np.empty((len(centers), 0), dtype=np.int64) if counts is None else counts

    def write(self, job: ReleaseJob, output: RowWriter, schema: pa.Schema, progress: Progress) -> Wrote:
        """See `Engine`."""
        if job.folder is None or self._selected is None:
            raise ValueError("a Spark frame is released to files: give an output")
        rows, folder = job.inspection.rows, job.folder.absolute() / "spark"
        folder.mkdir(mode=0o700)
        try:
            decided = job.recipe.scoring is not None
            progress.phase("scoring" if decided else "adding noise", rows)
            report = _run(self._selected, (_scoring if decided else _adding_noise)(job, folder, schema))
            people = in_order(report.people)
            if not np.array_equal(people, job.inspection.people):
                raise ValueError(
                    f"the table had {rows:,} people at first, and not the same {len(people):,} then: it "
                    "changed meanwhile; try again when nobody writes to it, or persist the frame"
                )
            progress.advance(rows)
            gathered = Gathered(folder, report.pieces)
            done, sorted_range = (_decide if decided else _as_drawn)(job, report, gathered)
            ranges = len(job.inspection.splitters) + 1
            write_in_order(sorted_range, ranges, rows, schema, output, progress)
        finally:
            _remove(folder)
        return done


def _adding_noise(job: ReleaseJob, folder: Path, schema: pa.Schema) -> Privatize:
    """The task for rows and scores; from here on noise was drawn."""
    law, scales = job.noise
    secret = Secret(*job.draws.for_rows())
    return Privatize(job.recipe, job.inspection.splitters, folder, _public(job, schema), scales, law, secret)


def _scoring(job: ReleaseJob, folder: Path, schema: pa.Schema) -> ScoreTask:
    """The task for decisions: workers get no secret of the draws."""
    splitters, public = job.inspection.splitters, _public(job, schema)
    return ScoreTask(job.recipe, splitters, folder, public, job.scales, job.decisions[1], job.release)


def _public(job: ReleaseJob, schema: pa.Schema) -> dict[str, pa.DataType]:
    return {name: schema.field(name).type for name in job.recipe.public}


def _as_drawn(_: ReleaseJob, report: Report, gathered: Gathered) -> tuple[Wrote, SortedRange]:
    """Rows that have their noise."""
    return Wrote(report.clipped), gathered.sorted_range


def _decide(job: ReleaseJob, report: Report, gathered: Gathered) -> tuple[Wrote, SortedRange]:
    """Draw all bits in the order of tags, whichever task scored whom; ids find theirs by their tags."""
    tags = np.concatenate(report.tags)
    order = np.argsort(tags)
    tags, scores = tags[order], np.concatenate(report.scores)[order]
    if (tags[1:] == tags[:-1]).any():  # once in a million releases of 5 million people
        raise RuntimeError("two people have the same place in this release, by a rare chance: run again")
    done = decide_all(job, batches_of(tags, len(tags)), scores, tags)

    def sorted_range(number: int) -> tuple[pa.StringArray, Bits, dict[str, pa.Array], SortedIds]:
        ids, _, others, found = gathered.sorted_range(number)
        own = marks_of(ids, job.release)[0]
        return ids, done.bits[np.searchsorted(tags, own)].T, others, found

    return Wrote(report.clipped, done.cuts), sorted_range


def _must_keep_secrets(frame: DataFrame) -> None:
    """The desk's keys outlive the job: they must not reach a disk in clear."""
    encrypted = frame.sparkSession.sparkContext.getConf().get("spark.io.encryption.enabled", "false")
    if str(encrypted).lower() != "true":
        raise ValueError(
            "the desk's keys are sent to Spark's workers, whose disks may keep them: start the session with "
            "spark.io.encryption.enabled=true"
        )


def _select(frame: DataFrame, recipe: Recipe) -> DataFrame:
    """The columns that are needed, once their names and types are known to be right."""
    twice = [name for name in check.twice(frame.columns) if name in set(recipe.columns)]
    if twice:
        raise ValueError(f"the frame has two columns named {twice[0]!r}: rename one")
    with explained():
        frame = frame.select(*map(quoted, recipe.columns))
        chosen = frame.select(*map(quoted, recipe.columns[: 1 + len(recipe.sources)]))
        types = to_arrow_schema(chosen.schema, **_ZONE)
    # Reading no rows refuses what reading them all would.
    nothing = pa.RecordBatch.from_pylist([], schema=types)
    tally = Tally()
    ids_of(nothing.column(recipe.id), recipe.id, tally, 0)
    recipe.encoding.numbers(nothing, recipe.features, tally, 0)
    tally.raise_if_any(rows_are_numbered=False)
    return frame


def _splitters(frame: DataFrame, rows: int, recipe: Recipe) -> pa.StringArray:
    """Where to cut the ids, as they will be published, into even ranges: from a sample of them."""
    ranges = ranges_of(rows, len(recipe.released))
    if recipe.names.pseudonym_key is not None:
        return hash_splitters(ranges)
    if ranges == 1:
        return pa.array([], pa.string())
    name = functions.col(quoted(recipe.id)).cast("string")
    with explained():
        sample = frame.select(name).sample(min(1.0, _PER_RANGE * ranges / rows)).collect()
    ids = pa.array([row[0] for row in sample if row[0] is not None], pa.string())
    splitters = Splitters()
    splitters.add(recipe.names.spelling.apply(ids))
    # The beginning of an id cuts as well; what travels with every task stays small.
    return pc.utf8_slice_codeunits(splitters.cut(ranges), 0, _LONGEST_SPLITTER)


def _run(frame: DataFrame, task: LookTask | CountTask | Privatize | ScoreTask) -> Report:
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
    with explained(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        # Plain names, since mapInArrow would parse others; tasks know the columns by their order.
        plain = frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
        reports = plain.mapInArrow(task, f"{REPORT} binary").collect()
    return Report.joined(bytes(row[0]) for row in reports)


def _remove(folder: Path) -> None:
    """Remove what tasks wrote. A late attempt may still be at it; without the folder it can only fail."""
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)

"""Spark: one noise for each person, however often and in whatever order a task runs."""

import base64
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from support.faults import count, times
from support.release import (
    FEATURES,
    certificate_of,
    hidden,
    holds,
    normalized,
    nothing_changes,
    read_back,
    settings,
    table_of,
    values_of,
    write_csv,
    write_parquet,
    write_scales,
)
from support.scores import TWO, release_sample, two_tables, write_weights
from support.statistics import means_agree, same_distribution
from targetdp import Staircase
from targetdp._core import Floats
from targetdp.mechanisms import LinearLaw, SphericalLaplaceLaw
from targetdp.noise import grid_for
from targetdp.normalization import Bounds, declared_scales
from targetdp.release import Ledger, ManyMissingError, certificate_path, privatize_file
from targetdp.release._engine._spark_tasks import (
    REPORT,
    Gathered,
    Measure,
    Privatize,
    Report,
    Secret,
    draw_secret,
)
from targetdp.release._staging import page_path
from targetdp.table import Source

_NO_JAVA = shutil.which("java") is None and "JAVA_HOME" not in os.environ
if _NO_JAVA and os.environ.get("TARGETDP_REQUIRE_SPARK") != "1":
    pytest.skip("no Java: the Spark engine is not tested here", allow_module_level=True)

# PySpark warns of pandas 3, which this engine does not use.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

B, EPSILON = 0.25, 4.0
KNOWN = bytes(range(32)), bytes(range(100, 132))


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def spark(events: Path) -> Iterator[Any]:
    """Two cores, tasks that may fail three times, and an event log to search."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ["PYSPARK_PYTHON"] = sys.executable
        from pyspark import cloudpickle
        from pyspark.sql import SparkSession

        # Workers cannot import this module.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
        session = (
            SparkSession.builder.master("local[2,4]")
            .config("spark.io.encryption.enabled", "true")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "FATAL")
            .config("spark.sql.shuffle.partitions", "3")
            .config("spark.default.parallelism", "3")
            # Quick to start, and quick tasks: the code of a short run is not worth the best compiler.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .config("spark.python.daemon.module", "support.spark_daemon")
            .config("spark.executorEnv.PYTHONPATH", str(Path(__file__).parents[1]))
            .config("spark.eventLog.enabled", "true")
            .config("spark.eventLog.compress", "false")
            .config("spark.eventLog.dir", events.as_uri())
            .getOrCreate()
        )
        yield session
        session.stop()


def frame_of(spark: Any, table: pa.Table, partitions: int = 3) -> Any:
    """A frame of several partitions, in no order."""
    folder = Path(str(spark.sparkContext.getConf().get("spark.eventLog.dir")).removeprefix("file://"))
    path = folder.parent / f"frame-{os.urandom(8).hex()}.parquet"
    pq.write_table(table, path)
    return spark.read.parquet(path.as_uri()).repartition(partitions)


def engine() -> Any:
    """Imported late: a machine without Spark skips these tests."""
    from targetdp.release._engine import _spark as spark

    return spark


def release(frame: Any, output: Path, **more: Any) -> Any:
    scales = write_scales(output.parent / "scales.toml")
    asked: dict[str, Any] = {
        "id": "name",
        "features": FEATURES,
        "B": B,
        "epsilon": EPSILON,
        "scales": str(scales),
    } | more
    return engine().privatize(frame, output, **asked)


def noise_by_id(folder: Path, packed: list[bytes]) -> dict[str, bytes]:
    """The released rows that tasks handed over, by id. All raw rows are zero, so they are noise alone."""
    report = Report.joined(packed)
    gathered = Gathered(folder, report.pieces)
    found: dict[str, bytes] = {}
    for number in range(2):
        ids, columns, _, _ = gathered.sorted_range(number)
        rows = np.ascontiguousarray(columns.T)
        for name, row in zip(ids.to_pylist(), rows, strict=True):
            assert name not in found
            found[name] = row.tobytes()
    assert len(found) == report.rows
    return found


def task(folder: Path, secret: Secret) -> Privatize:
    law = SphericalLaplaceLaw(3, grid_for(0.1), 0.1)
    return Privatize(
        settings(), declared_scales([0.0] * 3, [1.0] * 3), law, pa.array(["000500"]), folder, secret,
        None,
    )  # fmt: skip


def zeros(n: int) -> pa.Table:
    ids = [f"{i:06d}" for i in range(n)]
    return pa.table({"name": ids} | {name: np.zeros(n) for name in FEATURES})


# ---- noise that belongs to the row ---------------------------------------------------------------------


class FailsFirst:
    """A task whose every partition fails at its first attempt, after it has written its rows."""

    def __init__(self, inner: Privatize, marks: Path) -> None:
        self.inner, self.marks = inner, marks

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = list(batches)
        mark = self.marks / (held[0].column(0)[0].as_py() if held else "empty")
        out = list(self.inner(iter(held)))
        if not mark.exists():
            mark.touch()
            raise RuntimeError("failed on purpose")
        yield from out


def test_recomputing_reordering_and_failing_never_change_a_rows_noise(spark: Any, tmp_path: Path) -> None:
    secret, frame = draw_secret(), frame_of(spark, zeros(1000))
    marks = tmp_path / "marks"
    marks.mkdir()
    runs = {
        "once": (frame, lambda inner: inner),
        "again": (frame, lambda inner: inner),
        "in one piece, backwards": (frame.coalesce(1).sortWithinPartitions("name", ascending=False), None),
        "in seven pieces": (frame.repartition(7), None),
        "failing": (frame.repartition(2), lambda inner: FailsFirst(inner, marks)),
    }
    noises = []
    for number, (some, wrap) in enumerate(runs.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        inner = task(folder, secret)
        made = some.mapInArrow(wrap(inner) if wrap else inner, f"{REPORT} binary")
        noises.append(noise_by_id(folder, [bytes(row[0]) for row in made.collect()]))
    assert len(list(marks.iterdir())) == 2
    # Both attempts wrote; what the failed one left is never looked at.
    assert len(list((tmp_path / "4").iterdir())) == 4
    assert all(noise == noises[0] for noise in noises[1:])
    assert len(set(noises[0].values())) == 1000
    values = np.frombuffer(b"".join(noises[0].values()))
    assert len(np.unique(values)) > 0.99 * len(values)  # not even in a part of two rows


def test_the_trap_is_real(spark: Any) -> None:
    """A frame that holds noise draws it again at every action: what keyed noise is for."""

    def noisy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"x": np.random.default_rng().normal(size=batch.num_rows)})

    frame = frame_of(spark, zeros(100)).mapInArrow(noisy, "x double")
    assert frame.agg({"x": "sum"}).first()[0] != frame.agg({"x": "sum"}).first()[0]


def test_a_secret_and_a_task_do_not_show_their_keys(tmp_path: Path) -> None:
    secret = Secret(*KNOWN)
    shown = repr(task(tmp_path, secret)) + repr(secret) + str(secret)
    assert not any(text in shown for key in KNOWN for text in spellings(key))
    assert draw_secret() != draw_secret()
    with pytest.raises(ValueError, match="32 bytes"):
        Secret(b"short", KNOWN[1])


def spellings(key: bytes) -> tuple[str, ...]:
    """Ways in which a key could be written down; long enough a part of each."""
    return (
        key.hex(), key.hex().upper(), repr(key)[2:20], base64.b64encode(key).decode()[:24],
        str(list(key))[1:40], str(list(key))[1:40].replace(" ", ""),
    )  # fmt: skip


def test_the_secret_is_not_written_down(
    spark: Any, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr(engine(), "draw_secret", lambda: Secret(*KNOWN))
    frame = frame_of(spark, table_of(300))
    plans = []
    kept = type(frame).mapInArrow

    def watched(self: Any, *given: Any, **more: Any) -> Any:
        made = kept(self, *given, **more)
        made.explain(mode="extended")
        plans.append(made._jdf.queryExecution().toString())
        return made

    monkeypatch.setattr(type(frame), "mapInArrow", watched)
    release(frame, tmp_path / "private.parquet")
    assert plans
    assert "Privatize" in plans[-1]
    # The log is flushed at every job's end, and holds the jobs of this release.
    logs = [path.read_bytes() for path in events.rglob("*") if path.is_file()]
    assert any(b"Privatize" in log for log in logs)
    seen = capfd.readouterr()
    everything = "".join(plans) + seen.out + seen.err + str(spark.sparkContext.getConf().getAll())
    for key in KNOWN:
        assert not any(text in everything for text in spellings(key))
        assert not any(text.encode() in log for text in spellings(key) for log in logs)
        assert not any(key in log for log in logs)


# ---- releases ------------------------------------------------------------------------------------------


def test_a_release_is_whole_sorted_and_certified(spark: Any, tmp_path: Path) -> None:
    table = table_of(500, more=[f"m{i}" for i in range(500)], secret=np.arange(500))
    done = release(frame_of(spark, table), tmp_path / "private.parquet", keep=("more",))
    out = read_back(tmp_path / "private.parquet")
    assert holds(tmp_path / "private.parquet")
    assert out.column_names == ["name", *FEATURES, "more"]
    assert out.column("name").to_pylist() == sorted(table.column("name").to_pylist())
    assert dict(zip(out["name"].to_pylist(), out["more"].to_pylist(), strict=True)) == dict(
        zip(table["name"].to_pylist(), table["more"].to_pylist(), strict=True)
    )
    assert done.outcome.rows == 500
    assert not hidden(tmp_path)
    # No trace of Spark or of the input in the file.
    assert b"spark" not in (tmp_path / "private.parquet").read_bytes().lower()


def test_the_public_frame_reads_back_with_spark_as_a_directory(spark: Any, tmp_path: Path) -> None:
    release(frame_of(spark, table_of(200)), tmp_path / "private")
    back = spark.read.parquet((tmp_path / "private").as_uri())
    assert back.count() == 200
    assert holds(tmp_path / "private")


def test_many_ranges_and_pseudonyms(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targetdp.release._engine._inspection.group_rows", lambda _: 64)
    monkeypatch.setattr("targetdp.release._engine._base.group_rows", lambda _: 64)
    table = table_of(1000)
    release(frame_of(spark, table), tmp_path / "plain.parquet")
    release(frame_of(spark, table), tmp_path / "hidden.parquet", pseudonymize=tmp_path / "key")
    for name in ("plain.parquet", "hidden.parquet"):
        ids = read_back(tmp_path / name)["name"].to_pylist()
        assert ids == sorted(set(ids))
        assert len(ids) == 1000
        assert holds(tmp_path / name)
        assert pq.ParquetFile(tmp_path / name).num_row_groups > 5
    privatize_file(
        write_parquet(tmp_path / "in.parquet", table), tmp_path / "local.parquet",
        settings(scales=str(tmp_path / "scales.toml"), pseudonymize=tmp_path / "key"),
    )  # fmt: skip
    both = [read_back(tmp_path / name)["name"] for name in ("local.parquet", "hidden.parquet")]
    assert both[0].to_pylist() == both[1].to_pylist()


def read_csv(path: Path) -> pa.Table:
    convert = pacsv.ConvertOptions(column_types={"name": pa.string()}, strings_can_be_null=False)
    return pacsv.read_csv(path, convert_options=convert)


def noise_of(path: Path, table: pa.Table) -> Floats:
    return values_of(read_csv(path) if path.suffix == ".csv" else read_back(path)) - normalized(
        table.sort_by("name")
    )


@pytest.mark.parametrize("mechanism", ["least-noise", "gaussian", "projection"])
def test_same_distribution_as_the_local_engine(spark: Any, tmp_path: Path, mechanism: str) -> None:
    """False alarms: `FALSE_ALARM` for each comparison; noise of 1.1 times the size is told apart."""
    table, rng = table_of(20_000), np.random.default_rng(1)
    release(frame_of(spark, table), tmp_path / "spark.parquet", mechanism=mechanism)
    privatize_file(
        write_parquet(tmp_path / "in.parquet", table), tmp_path / "local.parquet",
        settings(scales=str(tmp_path / "scales.toml"), mechanism=mechanism),
    )  # fmt: skip
    ours, local = noise_of(tmp_path / "spark.parquet", table), noise_of(tmp_path / "local.parquet", table)
    assert means_agree(ours, local)
    assert same_distribution(ours, local, rng)
    assert not means_agree(1.1 * ours, local)
    assert not means_agree(0.9 * ours, local)
    assert certificate_of(tmp_path / "spark.parquet").guarantee == certificate_of(
        tmp_path / "local.parquet"
    ).guarantee  # fmt: skip


def test_a_frame_that_is_computed_again_and_again_is_released_once(spark: Any, tmp_path: Path) -> None:
    counter = tmp_path / "computed"

    def again(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with counter.open("a", encoding="utf-8") as file:
                file.write("x")
            order = np.random.default_rng().permutation(batch.num_rows)  # another order each time
            yield batch.take(pa.array(order))

    table = table_of(400)
    frame = frame_of(spark, table).mapInArrow(again, "name string, calls double, texts double, topups double")
    release(frame, tmp_path / "a.parquet")
    assert len(counter.read_text(encoding="utf-8")) > 3  # three partitions, more than once
    release(frame, tmp_path / "b.parquet")
    a, b = read_back(tmp_path / "a.parquet"), read_back(tmp_path / "b.parquet")
    assert a["name"].to_pylist() == b["name"].to_pylist() == sorted(table["name"].to_pylist())
    # Each call is a release of its own, with noise of its own.
    assert not np.isin(values_of(a), values_of(b)).any()
    assert means_agree(noise_of(tmp_path / "a.parquet", table), noise_of(tmp_path / "b.parquet", table))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_directories_of_files_through_the_engine_setting(spark: Any, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "part[1] of {2}"
    folder.mkdir()
    table = table_of(200, note=['a "quoted", one', ""] * 100)
    write = write_csv if kind == "csv" else write_parquet
    for part in range(2):
        write(folder / f"part-{part}.{kind}", table.slice(100 * part, 100))
    output = tmp_path / f"private.{kind}"
    scales = write_scales(tmp_path / "scales.toml")
    privatize_file(folder, output, settings(scales=str(scales), engine="spark", keep=("note",)))
    out = read_csv(output) if kind == "csv" else read_back(output)
    assert out["name"].to_pylist() == sorted(table["name"].to_pylist())
    assert sorted(out["note"].to_pylist()) == sorted(table["note"].to_pylist())
    assert np.abs(noise_of(output, table)).max() < 5
    assert holds(output)


def test_private_and_data_scales_agree_with_the_local_engine(spark: Any, tmp_path: Path) -> None:
    table = table_of(20_000)
    bounds = tmp_path / "bounds.toml"
    limits = "\n".join(f"{name} = {{ lower = -40.0, upper = 60.0 }}" for name in FEATURES)
    bounds.write_text(f"[features]\n{limits}\n", encoding="utf-8")
    frame, source = frame_of(spark, table), write_parquet(tmp_path / "in.parquet", table)
    for scales, more in (("private", {"bounds": bounds, "scales_epsilon": 5.0}), ("data", {})):
        more |= {"mechanism": "gaussian"}  # the quickest to certify together with what scales cost
        release(frame, tmp_path / f"{scales}.parquet", scales=scales, **more)
        privatize_file(source, tmp_path / f"{scales}-l.parquet", settings(scales=scales, **more))
        both = [read_back(tmp_path / f"{scales}{end}.parquet") for end in ("", "-l")]
        # The same people under nearly the same scales: their differences are noise around zero.
        gap = values_of(both[0]) - values_of(both[1])
        assert np.abs(gap.mean(axis=0)).max() < 6 * gap.std() / np.sqrt(len(gap)) + 0.01
        assert holds(tmp_path / f"{scales}.parquet")


def test_sums_for_private_scales_are_exact(spark: Any, tmp_path: Path) -> None:
    table, bounds = table_of(3000), Bounds(np.full(3, -40.0), np.full(3, 60.0))
    frame = frame_of(spark, table, 5).select(*FEATURES)
    report = engine()._run(frame, Measure(settings(), bounds))
    assert report.rows == 3000
    assert report.sums is not None
    assert report.sums.tolist() == bounds.sums(values_of(table)).tolist()
    assert report.raw is not None
    np.testing.assert_allclose(report.raw.deviation, values_of(table).std(axis=0), rtol=1e-12)


def test_for_cider(spark: Any, tmp_path: Path) -> None:
    release(frame_of(spark, table_of(300)), tmp_path / "features.csv", made_for="cider")
    values = values_of(read_csv(tmp_path / "features.csv"))
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(values.std(axis=0), 1, atol=1e-9)
    assert holds(tmp_path / "features.csv")


# ---- what is refused -----------------------------------------------------------------------------------


def with_values(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


TABLE = table_of(120)
CALLS = TABLE["calls"].to_pylist()
BAD = {
    "duplicate": (
        with_values(TABLE, "name", ["7", "7", *TABLE["name"].to_pylist()[2:]]),
        "1 rows repeat an id",
    ),
    "missing": (
        with_values(TABLE, "calls", [None, float("nan"), *CALLS[2:]]),
        "calls  2 gaps  ",
    ),
    "infinite": (with_values(TABLE, "calls", [float("inf"), *CALLS[1:]]), "calls  1 infinite value  "),
    "no id": (
        with_values(TABLE, "name", [None, "", *TABLE["name"].to_pylist()[2:]]),
        "name  2 rows without an id",
    ),
    "constant": (with_values(TABLE, "calls", [1.5] * 120), "constant columns among the features: 'calls'"),
    "text": (with_values(TABLE, "calls", ["x"] * 120), "calls  text  leave it out"),
    "float id": (with_values(TABLE, "name", CALLS), "id column 'name' has type double"),
    "empty": (TABLE.slice(0, 0), "no rows"),
}


@pytest.mark.parametrize("problem", BAD)
def test_bad_tables_are_refused_and_leave_nothing(spark: Any, tmp_path: Path, problem: str) -> None:
    table, message = BAD[problem]
    frame = frame_of(spark, table)
    write_scales(tmp_path / "scales.toml")
    with nothing_changes(tmp_path), pytest.raises(ValueError, match=message):
        release(frame, tmp_path / "private.parquet")


def test_missing_values_are_filled_with_declared_constants(spark: Any, tmp_path: Path) -> None:
    frame = frame_of(spark, BAD["missing"][0])
    release(frame, tmp_path / "private.parquet", impute=3.0)
    assert holds(tmp_path / "private.parquet")


def test_bad_requests_are_refused(spark: Any, tmp_path: Path) -> None:
    frame = frame_of(spark, TABLE)
    output = tmp_path / "private.parquet"
    with pytest.raises(ValueError, match="keep_order"):
        release(frame, output, keep_order=True)
    with pytest.raises(ValueError, match="no such column"):
        release(frame, output, keep=("nothing",))
    with pytest.raises(ValueError, match="engine"):
        release(frame, output, engine="local")
    with pytest.raises(ValueError, match="scales are for 1 columns"):
        release(frame, output, scales=declared_scales([0.0], [1.0]))
    with pytest.raises(ValueError, match="two columns named 'calls'"):
        release(frame.select("*", frame["calls"]), output)
    release(frame, output, scales=declared_scales([10.0, 5.0, 1.0], [8.0, 6.0, 2.0]))
    with pytest.raises(ValueError, match="exists"):
        release(frame, output)


def test_names_with_dots_and_ticks(spark: Any, tmp_path: Path) -> None:
    names = {"calls": "a.b", "texts": "c`d", "topups": "e f"}
    table = TABLE.rename_columns(["name", *names.values()])
    scales = declared_scales([10.0, 5.0, 1.0], [8.0, 6.0, 2.0])
    release(
        frame_of(spark, table), tmp_path / "p.parquet", features=tuple(names.values()), scales=scales
    )  # fmt: skip
    assert read_back(tmp_path / "p.parquet").column_names == ["name", *names.values()]


@pytest.mark.parametrize(
    ("line", "message"), [("000001,abc,1,1", "'calls' is not a number"), ("000001,1", "[Mm]alformed")]
)
def test_a_csv_that_is_not_a_table_of_numbers(spark: Any, tmp_path: Path, line: str, message: str) -> None:
    source = tmp_path / "in.csv"
    source.write_text(f"name,calls,texts,topups\n000000,NA,2,3\n{line}\n", encoding="utf-8")
    # As if the line came later than where `open_source` looks.
    table = Source(source, "csv", (source,), ("name", *FEATURES))
    with pytest.raises(ValueError, match=message):
        release(engine().read(table, settings(impute=0.0)), tmp_path / "private.csv", impute=0.0)
    assert not hidden(tmp_path)
    assert not (tmp_path / "private.csv").exists()


def test_a_failed_task_is_explained_and_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    def broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if "000007" in batch.column(0).to_pylist():
                raise KeyError("a bug of somebody else")
            yield batch

    schema = "name string, calls double, texts double, topups double"
    frame = frame_of(spark, TABLE).mapInArrow(broken, schema)
    write_scales(tmp_path / "scales.toml")
    with nothing_changes(tmp_path), pytest.raises(RuntimeError, match="a bug of somebody else") as caught:
        release(frame, tmp_path / "private.parquet")
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)
    release(frame_of(spark, TABLE), tmp_path / "private.parquet")  # the session is as good as before


def test_a_table_that_changes_meanwhile_is_refused(spark: Any, tmp_path: Path) -> None:
    counter = tmp_path / "seen"

    def shrinking(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if counter.exists():
                yield batch.slice(1)
            else:
                counter.touch()
                yield batch

    schema = "name string, calls double, texts double, topups double"
    frame = frame_of(spark, TABLE, 1).mapInArrow(shrinking, schema)
    with pytest.raises(ValueError, match="120 rows at first and 119 then"):
        release(frame, tmp_path / "private.parquet")
    assert not (tmp_path / "private.parquet").exists()
    assert not hidden(tmp_path)


def test_a_task_too_large_to_travel_in_memory_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above a threshold Spark would write the task, and the secret in it, to the driver's disk."""
    monkeypatch.setattr(engine(), "_COMMAND_MARGIN", 1 << 20)
    with pytest.raises(ValueError, match="UDFCompressionThreshold"):
        release(frame_of(spark, TABLE), tmp_path / "private.parquet")


class Dies:
    """A task that writes its rows, and whose worker is then killed: at the first attempts, or at all."""

    def __init__(self, inner: Privatize, marks: Path, deaths: int) -> None:
        self.inner, self.marks, self.deaths = inner, marks, deaths

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        out = list(self.inner(batches))
        if len(list(self.marks.iterdir())) < self.deaths:
            (self.marks / os.urandom(8).hex()).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from out


@pytest.mark.parametrize("deaths", [1, 1000])
def test_a_worker_that_is_killed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: int
) -> None:
    """A task is tried four times. Whoever gets through publishes once; else nothing is there, or charged."""
    ledger = tmp_path / "ledger.db"
    book = {"ledger": str(ledger), "population": "people", "force": True}
    release(frame_of(spark, TABLE), tmp_path / "private.parquet", **book)
    for turn in range(times("spark") // 2):
        marks, before = tmp_path / f"marks-{turn}", certificate_of(tmp_path / "private.parquet").release
        marks.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(
                engine(), "Privatize", lambda *given, marks=marks: Dies(Privatize(*given), marks, deaths)
            )
            if deaths == 1:
                release(frame_of(spark, TABLE), tmp_path / "private.parquet", **book)
            else:
                with pytest.raises((ValueError, RuntimeError), match="nothing was published"):
                    release(frame_of(spark, TABLE), tmp_path / "private.parquet", **book)
        assert len(list(marks.iterdir())) >= min(deaths, 4)
        states = {row.release: row.state for row in Ledger.existing(ledger).releases()}
        after = certificate_of(tmp_path / "private.parquet").release
        assert (after != before) == (deaths == 1)
        assert len(states) == (turn + 2 if deaths == 1 else 1)
        assert set(states.values()) == {"published"}
        assert read_back(tmp_path / "private.parquet")["name"].to_pylist() == sorted(
            TABLE["name"].to_pylist()
        )
        assert holds(tmp_path / "private.parquet")
        assert not hidden(tmp_path)
        count("spark", "published, once" if deaths == 1 else "not published, not charged")


# ---- scores --------------------------------------------------------------------------------------------


def scored(spark: Any, folder: Path, partitions: int = 3, **more: Any) -> Any:
    """Scores of the two tables of a folder, by Spark."""
    frame = frame_of(spark, read_back(folder / "all.parquet"), partitions)
    given: dict[str, Any] = {"weights": folder / "weights.toml", "key": folder / "key.pem"} | more
    return release(frame, folder / "scores.parquet", **given)


def test_scores_are_those_of_the_local_engine_but_for_the_noise(spark: Any, tmp_path: Path) -> None:
    raw = two_tables(tmp_path)
    write_weights(tmp_path / "weights.toml", TWO, ("one", "two"))
    done = scored(spark, tmp_path, epsilon=60.0)
    found = read_back(tmp_path / "scores.parquet")
    assert found.column_names == ["name", "one", "two"]
    unit = np.array(TWO) / np.linalg.norm(TWO, 2)
    exact = normalized(raw.sort_by("name")) @ unit.T
    assert np.abs(values_of(found, ["one", "two"]) - exact).max() < 0.5
    assert done.certificate.scores == ("one", "two")
    assert holds(tmp_path / "scores.parquet")
    write_weights(tmp_path / "weights.toml", release="r")
    with pytest.raises(ValueError, match="give that release"):
        scored(spark, tmp_path)


def test_a_person_gets_one_noise_on_her_score_however_often_a_task_runs(tmp_path: Path) -> None:
    noise = Staircase(B=0.25, epsilon=4.0).law(1)
    law = LinearLaw(3, noise.grid, ((0.5, 0.5, 0.5),), noise)
    asked = settings(weights=write_weights(tmp_path / "w.toml"))
    table, secret = zeros(300), Secret(*KNOWN)
    found = []
    for order in (np.arange(300), np.random.default_rng(1).permutation(300)):
        batches = table.take(pa.array(order)).to_batches(max_chunksize=70)
        made = Privatize(
            asked, declared_scales([0.0] * 3, [1.0] * 3), law, pa.array(["000150"]), tmp_path, secret, None
        )
        packed = [batch.column(REPORT)[0].as_py() for batch in made(iter(batches))]
        found.append(noise_by_id(tmp_path, packed))
    assert found[0] == found[1]
    assert len(set(found[0].values())) > 290


def test_spark_leaves_a_sample_out(spark: Any, tmp_path: Path) -> None:
    two_tables(tmp_path)
    release_sample(tmp_path)
    done = scored(spark, tmp_path, sample=tmp_path / "sample.parquet")
    everybody, sample = (
        set(read_back(tmp_path / name)["name"].to_pylist()) for name in ("all.parquet", "sample.parquet")
    )
    assert set(read_back(tmp_path / "scores.parquet")["name"].to_pylist()) == everybody - sample
    assert done.certificate.sample is not None
    assert holds(tmp_path / "scores.parquet")
    # Somebody who is not in the table any more.
    (tmp_path / "scores.parquet").rename(tmp_path / "other.parquet")
    table = read_back(tmp_path / "all.parquet")
    gone = next(place for place, name in enumerate(table["name"].to_pylist()) if name in sample)
    write_parquet(tmp_path / "all.parquet", table.take([i for i in range(len(table)) if i != gone]))
    for path in (certificate_path(tmp_path / "scores.parquet"), page_path(tmp_path / "scores.parquet")):
        path.unlink()
    with pytest.raises(ValueError, match="1 of the 40 people of sample"):
        scored(spark, tmp_path, sample=tmp_path / "sample.parquet")
    done = scored(spark, tmp_path, sample=tmp_path / "sample.parquet", some_have_left=True)
    assert done.certificate.rows == 80
    assert any("1 of the 40 people" in warning for warning in done.warnings)
    # Many are another matter.
    write_parquet(tmp_path / "all.parquet", table.slice(3))
    with pytest.raises(ManyMissingError, match="are not in the table: so many look like"):
        scored(spark, tmp_path, force=True, sample=tmp_path / "sample.parquet", some_have_left=True)

"""Spark: one noise for each person, however often and in whatever order a task runs."""

import base64
import os
import signal
import sys
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
    ENOUGH,
    FEATURES,
    certificate_of,
    hidden,
    holds,
    make_desk,
    normalized,
    read_back,
    release_frame,
    request_of,
    table_of,
    values_of,
    write_csv,
    write_parquet,
)
from support.release import release as release_local
from support.spark import desk_in, frame_of, rows_of, session_for, skip_without_java
from support.statistics import means_agree, same_distribution
from support.table_files import hold_noise, mixed, released, write_dialect, write_hive
from targetdp import Staircase
from targetdp._core import Floats
from targetdp.mechanisms import LinearLaw, SphericalLaplaceLaw
from targetdp.noise import grid_for
from targetdp.normalization import UntoldScalesError, count_distances, count_values, declared_scales
from targetdp.release import Desk, Refused, Released, Spelling, check_release, privatize
from targetdp.release._draws import Draws
from targetdp.release._engine._spark_tasks import (
    REPORT,
    CountTask,
    Gathered,
    LookTask,
    Privatize,
    Report,
    Secret,
)
from targetdp.release._ids import Names, person_tags
from targetdp.release._prepare import Recipe
from targetdp.table import Dialect, Encoding, Source, TableError, dialect_lines

skip_without_java()

# PySpark warns of pandas 3, which this engine does not use.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

B, EPSILON = 0.25, 4.0
KNOWN = bytes(range(32)), bytes(range(100, 132))


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def spark(events: Path) -> Iterator[Any]:
    with session_for(sys.modules[__name__], events) as session:
        yield session


def engine() -> Any:
    """Imported late: a machine without Spark skips these tests."""
    from targetdp.release._engine import _spark as spark

    return spark


def release(
    frame: Any, output: Path, *, policy: dict[str, Any] | None = None, force: bool = False, **given: Any
) -> Released:
    """A release of a Spark frame at the desk of the output's folder."""
    desk = desk_in(output.parent, **{"reason": os.urandom(4).hex()} | (policy or {}))
    return privatize(frame, output, desk=desk, request=request_of(**given), force=force)


def recipe(**more: Any) -> Recipe:
    given: dict[str, Any] = {
        "names": Names("name", Spelling(), bytes(32), None), "features": FEATURES, "released": FEATURES,
        "public": (), "encoding": Encoding(), "left_out": np.empty(0, dtype=np.uint64), "estimated": (),
        "scales": declared_scales([0.0] * 3, [1.0] * 3),
    }  # fmt: skip
    return Recipe(**given | more)


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
    assert len(found) == sum(map(len, report.people))
    assert all((np.diff(tags) > 0).all() for tags in report.people), "sorted by the workers"
    return found


def task(folder: Path, secret: Secret) -> Privatize:
    law, plain = SphericalLaplaceLaw(3, grid_for(0.1), 0.1), declared_scales([0.0] * 3, [1.0] * 3)
    return Privatize(recipe(), pa.array(["000500"]), folder, {}, plain, law, secret)


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
    secret, frame = Secret(*KNOWN), frame_of(spark, zeros(1000))
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
    monkeypatch.setattr(Draws, "for_rows", lambda _: KNOWN)
    frame = frame_of(spark, table_of(300))
    plans = []
    kept = type(frame).mapInArrow

    def watched(self: Any, *given: Any, **more: Any) -> Any:
        made = kept(self, *given, **more)
        made.explain(mode="extended")
        plans.append(made._jdf.queryExecution().toString())
        return made

    monkeypatch.setattr(type(frame), "mapInArrow", watched)
    release(frame, tmp_path / "private.parquet", policy={"pseudonyms": True})
    assert plans
    assert "Privatize" in plans[-1]
    # The log is flushed at every job's end, and holds the jobs of this release.
    logs = [path.read_bytes() for path in events.rglob("*") if path.is_file()]
    assert any(b"Privatize" in log for log in logs)
    seen = capfd.readouterr()
    everything = "".join(plans) + seen.out + seen.err + str(spark.sparkContext.getConf().getAll())
    names = Desk.open(tmp_path / "desk").names()
    assert names.pseudonym_key is not None
    for key in (*KNOWN, names.tag_key, names.pseudonym_key):
        assert not any(text in everything for text in spellings(key))
        assert not any(text.encode() in log for text in spellings(key) for log in logs)
        assert not any(key in log for log in logs)


# ---- releases ------------------------------------------------------------------------------------------


def test_a_release_is_whole_sorted_and_certified(spark: Any, tmp_path: Path) -> None:
    table = table_of(500, more=[f"m{i}" for i in range(500)], secret=np.arange(500))
    done = release(frame_of(spark, table), tmp_path / "private.parquet", policy={"public": {"more": "why"}})
    out = read_back(tmp_path / "private.parquet")
    assert holds(tmp_path / "private.parquet")
    assert out.column_names == ["name", *FEATURES, "more"]
    assert out.column("name").to_pylist() == sorted(table.column("name").to_pylist())
    assert dict(zip(out["name"].to_pylist(), out["more"].to_pylist(), strict=True)) == dict(
        zip(table["name"].to_pylist(), table["more"].to_pylist(), strict=True)
    )
    assert (done.certificate.rows, done.certificate.engine) == (500, "spark")
    assert any("96-bit tag" in condition for condition in done.certificate.conditions)
    assert not hidden(tmp_path)
    (row,) = rows_of(tmp_path)
    assert (row.state, row.sha256) == ("published", done.certificate.output.sha256)
    assert [path for path in (tmp_path / "desk" / "drafts").iterdir() if path.is_dir()] == []
    # No trace of Spark or of the input in the file.
    assert b"spark" not in (tmp_path / "private.parquet").read_bytes().lower()


def test_the_public_frame_reads_back_with_spark_as_a_directory(spark: Any, tmp_path: Path) -> None:
    release(frame_of(spark, table_of(200)), tmp_path / "private")
    back = spark.read.parquet((tmp_path / "private").as_uri())
    assert back.count() == 200
    assert holds(tmp_path / "private")


def test_many_ranges_and_pseudonyms(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targetdp.release._engine._base.group_rows", lambda _: 64)
    table = table_of(1000)
    release(frame_of(spark, table), tmp_path / "plain.parquet")
    release(frame_of(spark, table), tmp_path / "hidden.parquet", policy={"pseudonyms": True})
    for name in ("plain.parquet", "hidden.parquet"):
        ids = read_back(tmp_path / name)["name"].to_pylist()
        assert ids == sorted(set(ids))
        assert len(ids) == 1000
        assert holds(tmp_path / name)
        assert pq.ParquetFile(tmp_path / name).num_row_groups > 5
    release_local(tmp_path, "local.parquet", table=table)
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
    release_local(tmp_path, "local.parquet", table=table, mechanism=mechanism)
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
    make_desk(tmp_path, public={"note": "why"})
    privatize(folder, output, desk=tmp_path / "desk", request=request_of(), engine="spark")
    out = read_csv(output) if kind == "csv" else read_back(output)
    assert out["name"].to_pylist() == sorted(table["name"].to_pylist())
    assert sorted(out["note"].to_pylist()) == sorted(table["note"].to_pylist())
    assert np.abs(noise_of(output, table)).max() < 5
    assert holds(output)


def test_private_scales_agree_with_the_local_engine(spark: Any, tmp_path: Path) -> None:
    table, given = table_of(20_000), {"mechanism": "gaussian", "epsilon": 20.0}
    made: dict[str, Any] = {"spark": frame_of(spark, table), "local": table}
    outputs = []
    for name, one in made.items():
        (tmp_path / name).mkdir()
        desk = desk_in(tmp_path / name, scales="private", share=0.5)
        told: Any = {"desk": desk, "request": request_of(**given), "new_people": "both are compared"}
        seen = check_release(one, **told)
        assert (seen.clipped, seen.problems) == (None, ())
        done = privatize(one, tmp_path / name / "out.parquet", **told)
        assert done.certificate.scales.source == "private"
        assert done.certificate.guarantee.epsilon <= 20.0
        assert holds(tmp_path / name / "out.parquet")
        outputs.append(read_back(tmp_path / name / "out.parquet"))
    # The same people under nearly the same scales: their differences are noise around zero.
    gap = values_of(outputs[0]) - values_of(outputs[1])
    assert np.abs(gap.mean(axis=0)).max() < 6 * gap.std() / np.sqrt(len(gap)) + 0.01
    # And they are reused.
    again = privatize(made["spark"], tmp_path / "spark" / "again.parquet",
                      **(told | {"desk": tmp_path / "spark" / "desk"}))  # fmt: skip
    assert again.certificate.scales.source == "earlier"


def test_scales_that_cannot_be_used_are_refused_again_with_the_same_draws(spark: Any, tmp_path: Path) -> None:
    """Rows come in any order, and their noise is not repeated; counts do not depend on it, so scales are."""
    table = table_of(ENOUGH)
    texts = np.where(np.arange(ENOUGH) < 9, np.asarray(table["texts"]), 0.0)
    zeros = table.set_column(2, "texts", pa.array(texts))
    desk, told = desk_in(tmp_path, scales="private"), []
    for order in (zeros, zeros.take(np.arange(ENOUGH)[::-1])):
        with pytest.raises(UntoldScalesError, match=r"column 'texts': fewer than about 5%") as refused:
            privatize(frame_of(spark, order), tmp_path / "out", desk=desk, request=request_of())
        told.append([str(refused.value), *refused.value.__notes__])
    assert told[0] == told[1]
    assert [row.state for row in rows_of(tmp_path)] == ["reserved"], "charged once"


def test_a_look_finds_what_the_local_engine_finds(spark: Any, tmp_path: Path) -> None:
    table = table_of(3000)
    left_out = np.sort(person_tags(table["name"].combine_chunks().slice(0, 100), bytes(32)))
    of = recipe(scales=None, estimated=(0, 2), left_out=left_out)
    frame = frame_of(spark, table, 5).select("name", *FEATURES)
    found = engine()._run(frame, LookTask(of)).looked
    assert found is not None
    assert (found.rows, found.left_out, found.clipped) == (2900, 100, None)
    columns, centers = np.ascontiguousarray(values_of(table.slice(100))[:, [0, 2]].T), np.array([9.5, 0.0])
    assert found.counts is not None
    assert found.counts.tolist() == count_values(columns).tolist()
    counts = engine()._run(frame, CountTask(of, centers)).counts
    assert counts is not None
    assert counts.tolist() == count_distances(columns, centers).tolist()
    tags = np.sort(person_tags(table["name"].combine_chunks().slice(100), bytes(32)))
    assert len(found.people) == 5, "a list from each task"
    assert all((np.diff(part) > 0).all() for part in found.people), "sorted by the workers"
    assert np.sort(np.concatenate(found.people)).tolist() == tags.tolist()
    assert (found.lowest < found.highest).all()


def test_a_look_costs_nothing_and_a_frame_goes_to_files(spark: Any, tmp_path: Path) -> None:
    frame, desk = frame_of(spark, TABLE), desk_in(tmp_path)
    seen = check_release(frame, desk=desk, request=request_of())
    assert seen.inspection.rows == 120
    assert seen.inspection.clipped == check_release(TABLE, desk=desk, request=request_of()).inspection.clipped
    assert rows_of(tmp_path) == []
    with pytest.raises(ValueError, match="output must be given"):
        release_frame(frame, desk)
    with pytest.raises(ValueError, match="engine = 'local': a Spark frame is privatized by Spark"):
        privatize(frame, tmp_path / "x.parquet", desk=desk, request=request_of(), engine="local")


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
    "constant": (with_values(TABLE, "calls", [1.5] * 120), "constant columns: calls"),
    "text": (with_values(TABLE, "calls", ["x"] * 120), "calls  text"),
    "float id": (with_values(TABLE, "name", CALLS), "id column 'name' has type double"),
    "empty": (TABLE.slice(0, 0), "no rows"),
}


@pytest.mark.parametrize("problem", BAD)
def test_bad_tables_are_refused_and_leave_nothing(spark: Any, tmp_path: Path, problem: str) -> None:
    table, message = BAD[problem]
    with pytest.raises(ValueError, match=message):
        release(frame_of(spark, table), tmp_path / "private.parquet")
    assert rows_of(tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["desk", "scales.toml"]


def test_missing_values_are_filled_with_declared_constants(spark: Any, tmp_path: Path) -> None:
    frame = frame_of(spark, BAD["missing"][0])
    release(frame, tmp_path / "private.parquet", policy={"gaps": {"all": 3.0}})
    assert holds(tmp_path / "private.parquet")


def test_bad_requests_are_refused(spark: Any, tmp_path: Path) -> None:
    frame = frame_of(spark, TABLE)
    output = tmp_path / "private.parquet"
    with pytest.raises(Refused, match="the frame has no column 'nothing'"):
        release(frame, output, policy={"public": {"nothing": "why"}})
    with pytest.raises(Refused, match="the policy releases no nothing"):
        release(frame, output, features=("nothing",))
    with pytest.raises(ValueError, match="two columns named 'calls'"):
        release(frame.select("*", frame["calls"]), output)
    release(frame, output)
    with pytest.raises(ValueError, match="exists"):
        release(frame, output)


def test_names_with_dots_and_ticks(spark: Any, tmp_path: Path) -> None:
    names = ("a.b", "c`d", "e f")
    table = TABLE.rename_columns(["name", *names])
    desk = make_desk(tmp_path, names)
    privatize(frame_of(spark, table), tmp_path / "p.parquet", desk=desk, request=request_of())
    assert read_back(tmp_path / "p.parquet").column_names == ["name", *names]


def test_a_session_that_writes_keys_to_disks_in_clear_is_refused(spark: Any, tmp_path: Path) -> None:
    frame = frame_of(spark, TABLE)

    class Bare:
        """A session without encryption; another one cannot be started in this process."""

        def get(self, *_: str) -> str:
            return "false"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(spark.sparkContext), "getConf", lambda _: Bare())
        with pytest.raises(ValueError, match=r"start the session with spark\.io\.encryption\.enabled=true"):
            release(frame, tmp_path / "private.parquet")
    assert rows_of(tmp_path) == []


@pytest.mark.parametrize(
    ("line", "message"), [("000001,abc,1,1", "'calls' is not a number"), ("000001,1", "[Mm]alformed")]
)
def test_a_csv_that_is_not_a_table_of_numbers(spark: Any, tmp_path: Path, line: str, message: str) -> None:
    source = tmp_path / "in.csv"
    source.write_text(f"name,calls,texts,topups\n000000,NA,2,3\n{line}\n", encoding="utf-8")
    # As if the line came later than where `open_source` looks.
    table = Source("in.csv", (source,), "csv", (source,), ("name", *FEATURES))
    with pytest.raises(ValueError, match=message):
        release(engine().read(table, recipe()), tmp_path / "private.csv", policy={"gaps": {"all": 0.0}})
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
    with pytest.raises(RuntimeError, match="a bug of somebody else") as caught:
        release(frame, tmp_path / "private.parquet")
    assert rows_of(tmp_path) == [], "it failed while it was looked at"
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
    with pytest.raises(ValueError, match="120 people at first, and not the same 119 then") as ended:
        release(frame, tmp_path / "private.parquet")
    assert not (tmp_path / "private.parquet").exists()
    assert not hidden(tmp_path)
    (row,) = rows_of(tmp_path)
    assert row.state == "reserved", "noise was drawn, on the workers' disks"
    assert ended.value.__notes__ == [f"Noise was drawn: release {row.release[:12]} stays charged"]
    assert not (tmp_path / "desk" / "drafts" / row.release).exists()


def test_a_task_too_large_to_travel_in_memory_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above a threshold Spark would write the task, and the secret in it, to the driver's disk."""
    monkeypatch.setattr(engine(), "_COMMAND_MARGIN", 1 << 20)
    with pytest.raises(ValueError, match="UDFCompressionThreshold"):
        release(frame_of(spark, TABLE), tmp_path / "private.parquet")
    assert all(row.state == "voided" for row in rows_of(tmp_path))


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
    """A task is tried four times. Whoever gets through publishes once; else nothing is there, but charged."""
    output, table = tmp_path / "private.parquet", TABLE
    release(frame_of(spark, table), output)
    for turn in range(times("spark") // 2):
        marks, before = tmp_path / f"marks-{turn}", certificate_of(output).release
        marks.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(
                engine(), "Privatize", lambda *given, marks=marks: Dies(Privatize(*given), marks, deaths)
            )
            if deaths == 1:
                release(frame_of(spark, table), output, force=True)
            else:
                with pytest.raises((ValueError, RuntimeError), match="nothing was published"):
                    release(frame_of(spark, table), output, force=True)
        assert len(list(marks.iterdir())) >= min(deaths, 4)
        states = [row.state for row in rows_of(tmp_path)]
        assert (certificate_of(output).release != before) == (deaths == 1)
        assert states == ["published", *["published" if deaths == 1 else "reserved"] * (turn + 1)]
        assert read_back(output)["name"].to_pylist() == sorted(table["name"].to_pylist())
        assert holds(output)
        assert not hidden(tmp_path)
        drafts = tmp_path / "desk" / "drafts"
        assert [path for path in drafts.iterdir() if path.is_dir()] == [], "no draws can be repeated"
        count("spark", "published, once" if deaths == 1 else "not published, charged")


def test_a_run_that_was_killed_is_begun_anew_and_says_so(spark: Any, tmp_path: Path) -> None:
    """What Spark has drawn cannot be repeated: the look does not promise that it costs nothing."""
    frame, desk = frame_of(spark, TABLE), desk_in(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draws, "erase", lambda _: None)  # as a kill would leave it
        patch.setattr(engine(), "write_in_order", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            privatize(frame, tmp_path / "out.parquet", desk=desk, request=request_of())
    seen = check_release(frame, desk=desk, request=request_of())
    assert seen.goes_on is None
    assert seen.spending is not None
    assert seen.spending.total > seen.spending.spent > 0
    privatize(frame, tmp_path / "out.parquet", desk=desk, request=request_of())
    assert [row.state for row in rows_of(tmp_path)] == ["reserved", "published"]


# ---- scores --------------------------------------------------------------------------------------------


TWO = {"calls": [1.0, 1.0], "texts": [-1.0, 1.0], "topups": [0.0, -2.0]}


def test_scores_are_those_of_the_local_engine_but_for_the_noise(spark: Any, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"release": "scores", "weights": TWO, "scores": ("one", "two"), "epsilon": 60.0}
    done = release(frame_of(spark, TABLE), tmp_path / "scores.parquet", **asked)
    found = read_back(tmp_path / "scores.parquet")
    assert found.column_names == ["name", "one", "two"]
    matrix = np.array(list(TWO.values())).T
    exact = normalized(TABLE.sort_by("name")) @ (matrix / np.linalg.norm(matrix, 2)).T
    assert np.abs(values_of(found, ["one", "two"]) - exact).max() < 0.5
    assert done.certificate.scores == ("one", "two")
    assert holds(tmp_path / "scores.parquet")


def test_a_person_gets_one_noise_on_her_score_however_often_a_task_runs(tmp_path: Path) -> None:
    noise = Staircase(B=0.25, epsilon=4.0).law(1)
    law = LinearLaw(3, noise.grid, ((0.5, 0.5, 0.5),), noise)
    table, secret, plain = zeros(300), Secret(*KNOWN), declared_scales([0.0] * 3, [1.0] * 3)
    found = []
    for order in (np.arange(300), np.random.default_rng(1).permutation(300)):
        batches = table.take(pa.array(order)).to_batches(max_chunksize=70)
        of = recipe(released=("score",))
        made = Privatize(of, pa.array(["000150"]), tmp_path, {}, plain, law, secret)
        packed = [batch.column(REPORT)[0].as_py() for batch in made(iter(batches))]
        found.append(noise_by_id(tmp_path, packed))
    assert found[0] == found[1]
    assert len(set(found[0].values())) > 290


def test_spark_leaves_people_out(spark: Any, tmp_path: Path) -> None:
    desk = desk_in(tmp_path)
    write_parquet(tmp_path / "in.parquet", TABLE.slice(0, 40))
    sample = release_local(tmp_path, "sample.parquet").certificate
    asked = request_of(leave_out=(sample.release[:10],))
    done = privatize(frame_of(spark, TABLE), tmp_path / "rest.parquet", desk=desk, request=asked)
    assert (done.certificate.rows, done.certificate.left_out) == (80, (sample.release,))
    left, rest = (set(read_back(tmp_path / f"{n}.parquet")["name"].to_pylist()) for n in ("sample", "rest"))
    assert left.isdisjoint(rest)
    assert left | rest == set(TABLE["name"].to_pylist())
    assert holds(tmp_path / "rest.parquet")


def test_the_ledger_knows_people_by_the_same_tags(spark: Any, tmp_path: Path) -> None:
    """Whoever was charged by Spark is known to the local engine, in the desk's one spelling."""
    policy: dict[str, Any] = {"limit": (0.25, 5.0, 1e-3), "most": (4.0, 1e-3), "spelling": {"case": "upper"}}
    table = TABLE.set_column(0, "name", [[f"x{name}" for name in TABLE["name"].to_pylist()]])
    release(frame_of(spark, table), tmp_path / "a.parquet", policy=policy)
    upper = TABLE.set_column(0, "name", [[f"X{name}" for name in TABLE["name"].to_pylist()]])
    with pytest.raises(Refused, match="the limit would be passed"):
        release_local(tmp_path, "b.parquet", table=upper)


@pytest.mark.parametrize(
    "csv",
    [
        Dialect(";", ",", " ", "cp1252"), Dialect("\t", ",", "."), Dialect("|", ".", "'", "latin-1", "'"),
        Dialect(",", ","),
    ],
)  # fmt: skip
def test_every_dialect_is_read_as_the_plain_table(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, csv: Dialect
) -> None:
    hold_noise(monkeypatch)
    table = mixed()
    signs = "€œŸ" if csv.encoding == "cp1252" else ""  # which Spark does not know
    towns = pa.array([text + signs for text in table["town"].to_pylist()])
    table = table.set_column(4, "town", towns)
    plain = write_dialect(tmp_path / "plain.csv", table, Dialect())
    other = write_dialect(tmp_path / "other.csv", table, csv)
    given: dict[str, Any] = {"engine": "spark", "public": {"town": "a list"}}
    one = released(tmp_path / "one", plain, **given).path
    two = released(tmp_path / "two", other, csv="\n".join(dialect_lines(csv)), **given).path
    assert one is not None
    assert two is not None
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("csv", [False, True])
def test_folders_that_name_columns_are_columns_here_too(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, csv: bool
) -> None:
    """A public column, a feature, and values that are missing or hold any sign."""
    hold_noise(monkeypatch)
    table = table_of().append_column("month", pa.array([i % 3 for i in range(60)]))
    table = table.append_column("region", pa.array([("a/b", "01", None)[i // 20] for i in range(60)]))
    hive = write_hive(tmp_path / "hive", table, ["region", "month"], csv=csv)
    plain = tmp_path / ("plain.csv" if csv else "plain.parquet")
    if csv:
        write_dialect(plain, table, Dialect())
    else:
        write_parquet(plain, table)
    given: dict[str, Any] = {
        "engine": "spark",
        "features": (*FEATURES, "month"),
        "public": {"region": "a list"},
    }
    one = released(tmp_path / "one", plain, **given).path
    two = released(tmp_path / "two", hive, **given).path
    assert one is not None
    assert two is not None
    assert read_back(one).equals(read_back(two))


def test_utf_16_is_refused_by_name(spark: Any, tmp_path: Path) -> None:
    csv = Dialect("\t", ",", "", "utf-16")
    source = write_dialect(tmp_path / "in.csv", table_of(), csv)
    with pytest.raises(ValueError, match="Spark reads no CSV in utf-16"):
        released(tmp_path / "place", source, engine="spark", csv="\n".join(dialect_lines(csv)))


def test_a_word_in_a_folder_s_name_is_named(spark: Any, tmp_path: Path) -> None:
    table = table_of().append_column("level", pa.array(["1" if i < 30 else "unknown" for i in range(60)]))
    hive = write_hive(tmp_path / "hive", table, ["level"])
    with pytest.raises(TableError, match="feature 'level' has cells that are no numbers"):
        released(tmp_path / "place", hive, engine="spark", features=(*FEATURES, "level"))

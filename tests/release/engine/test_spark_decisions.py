"""Decisions on Spark: the bits of the local engine, whoever scores whom, how often and in what order."""

import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    ENOUGH,
    FEATURES,
    hidden,
    holds,
    make_desk,
    read_back,
    request_of,
    table_of,
    write_csv,
    write_parquet,
)
from support.spark import desk_in, frame_of, rows_of, session_for, skip_without_java
from targetdp._core import Silent, Words
from targetdp.noise import derived_key
from targetdp.normalization import declared_scales
from targetdp.release import Desk, Released, Request, Spelling, check_release, privatize
from targetdp.release._decision._asked import AskedDecision
from targetdp.release._decision._bits import marks_of
from targetdp.release._decision._question import Question
from targetdp.release._decision._scoring import Scoring, scoring_of
from targetdp.release._draws import Draws, TableChangedError
from targetdp.release._engine._base import decide_all
from targetdp.release._engine._spark_tasks import REPORT, Gathered, Report, ScoreTask
from targetdp.release._ids import Names, pseudonyms
from targetdp.release._prepare import Recipe
from targetdp.table import Encoding

skip_without_java()

# PySpark warns of pandas 3, which this engine does not use.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

KNOWN = bytes(range(32))
SCHEMA = "name string, calls double, texts double, topups double"
TABLE = table_of(300)
FOUND: dict[str, Any] = {
    "name": "aid", "weights": {"calls": 1.0, "texts": 0.5}, "share": 0.3,
    "expected": [(-20.0, 0.0), (8.0, 0.3), (60.0, 1.0)],
}  # fmt: skip
LOAN = {"name": "loan", "weights": {"texts": 1.0}, "yes": "above", "cut": 5.0}
CURVE = {
    "name": "visit", "additive": {"topups": {"knots": [-1.0, 1.0, 3.0], "values": [0.0, 2.0, 1.0]}},
    "share": 0.6, "expected": [(-1.0, 0.1), (1.5, 0.6), (3.0, 1.0)],
}  # fmt: skip
NEAR = FOUND | {"expected": [(-1.0, 0.0), (-0.3, 0.3), (1.0, 1.0)]}
BEND = {"knots": [-1.0, 0.0, 1.0], "values": [0.0, 1.0, 0.5]}
BENT = CURVE | {"additive": dict.fromkeys(FEATURES, BEND)}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with session_for(sys.modules[__name__], tmp_path_factory.mktemp("events")) as session:
        yield session


def engine() -> Any:
    """Imported late: a machine without Spark skips these tests."""
    from targetdp.release._engine import _spark as spark

    return spark


def asked_for(*decisions: dict[str, Any], B: float = 2.0, **given: Any) -> Request:
    return request_of(release="decisions", decisions=list(decisions), B=B, **given)


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the next releases those of any other desk after the same call: the same ids, secrets, words."""
    names = Desk.names

    def named(desk: Desk) -> Names:
        own = names(desk)
        return own if own.pseudonym_key is None else replace(own, pseudonym_key=KNOWN)

    def begin() -> None:
        numbers = count(1)
        made = SimpleNamespace(uuid4=lambda: uuid.UUID(int=next(numbers) << 90))
        monkeypatch.setattr("targetdp.release._run._reservation.uuid", made)

    for_batch = Draws.for_batch

    def for_some(draws: Draws, number: int, ids: pa.StringArray, of: Any) -> Any:
        if of.dtype != np.int64:
            return for_batch(draws, number, ids, of)
        assert len(ids) == len(of)
        key = Desk.open(draws._folder.parents[1]).names().pseudonym_key
        published = ids if key is None else pseudonyms(ids, key)
        return own_words(marks_of(published, draws._folder.name)[0])

    monkeypatch.setattr(Draws, "for_batch", for_some)
    monkeypatch.setattr(Draws, "for_decisions", lambda _, tags, __: own_words(tags))
    monkeypatch.setattr("targetdp.release._draws.fresh_keys", lambda n: [KNOWN] * n)
    monkeypatch.setattr(Desk, "names", named)
    return begin


def own_words(tags: Words) -> Words:
    """A word for each person that follows from her tag: engines draw in orders of their own."""
    return tags * np.uint64(0x9E3779B97F4A7C15)


def release_at(folder: Path, table: Any, asked: Request, **more: Any) -> Released:
    """A release at the desk of a folder, whose people another desk may know."""
    told: Any = {"desk": folder / "desk", "request": asked, "new_people": "engines are compared"}
    return privatize(table, folder / "out.parquet", **told | more)


def same(one: Path, other: Path) -> pa.Table:
    """The one table that both folders have a release of."""
    tables = [read_back(folder / "out.parquet") for folder in (one, other)]
    assert tables[0].equals(tables[1])
    assert all(holds(folder / "out.parquet") for folder in (one, other))
    return tables[0]


# ---- the bits of the local engine ----------------------------------------------------------------------


CASES: dict[str, tuple[pa.Table, dict[str, Any], dict[str, Any]]] = {
    "one, its cut found": (TABLE, {"decisions": [FOUND]}, {}),
    "equal scores at the cut": (
        TABLE.set_column(1, "calls", pa.array(np.where(np.asarray(TABLE["calls"]) > 10, 10.0, 0.0))),
        {"decisions": [FOUND | {"weights": {"calls": 1.0}, "expected": [(-5, 0), (0, 0.3), (15, 1)]}]},
        {},
    ),
    "one, its cut known": (TABLE, {"decisions": [LOAN], "epsilon": 1.0}, {"pseudonyms": True}),
    "three together": (
        table_of(300, more=[f"m{i}" for i in range(300)]),
        {"decisions": [FOUND, LOAN, CURVE]},
        {"pseudonyms": True, "public": {"more": "why"}},
    ),
    "near, linear": (TABLE, {"decisions": [NEAR], "B": 0.25}, {"public": {"topups": "why"}}),
    "near, additive": (TABLE, {"decisions": [BENT], "B": 0.25}, {"pseudonyms": True}),
    "near, private scales": (table_of(ENOUGH), {"decisions": [NEAR], "B": 0.25}, {"scales": "private"}),
}


@pytest.mark.parametrize("case", CASES)
def test_bits_and_cuts_are_those_of_the_local_engine(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steady: Any, case: str
) -> None:
    monkeypatch.setattr("targetdp.release._engine._base.group_rows", lambda _: 64)
    table, given, policy = CASES[case]
    asked = request_of(release="decisions", **{"B": 2.0} | given)
    features = [name for name in FEATURES if name not in policy.get("public", {})]
    made = {"local": table, "spark": frame_of(spark, table, 4)}
    done = {}
    for name, one in made.items():
        (tmp_path / name).mkdir()
        make_desk(tmp_path / name, features, **policy)
        steady()
        done[name] = release_at(tmp_path / name, one, asked)
    out = same(tmp_path / "local", tmp_path / "spark")
    local, ours = done["local"], done["spark"]
    assert out.num_rows == table.num_rows
    assert out.column_names == ["name", *(one.name for one in asked.decisions), *policy.get("public", {})]
    assert ours.certificate.cuts == local.certificate.cuts
    assert (ours.certificate.engine, local.certificate.engine) == ("spark", "local")
    assert ours.certificate.model_dump(include={"guarantee", "scales", "conditions", "output"}) == (
        local.certificate.model_dump(include={"guarantee", "scales", "conditions", "output"})
    )
    assert ours.clipped == local.clipped
    assert not hidden(tmp_path / "spark")
    assert [row.state for row in rows_of(tmp_path / "spark")] == ["published"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_with_gaps_are_read_alike_and_some_people_left_out(
    spark: Any, tmp_path: Path, steady: Any, kind: str
) -> None:
    """A value that is missing, and for which nothing stands, is no problem at B = 2: it is the answer no."""
    gaps = pa.array([None if i % 3 == 0 else float(i) for i in range(300)])
    table = TABLE.set_column(1, "calls", gaps)
    write = write_csv if kind == "csv" else write_parquet
    for name in ("local", "spark"):
        (tmp_path / name).mkdir()
        make_desk(tmp_path / name)
        write(tmp_path / name / f"in.{kind}", table)
        steady()
        told: Any = {"desk": tmp_path / name / "desk", "new_people": "engines are compared"}
        sample = privatize(TABLE.slice(0, 100), tmp_path / name / "s.parquet", request=request_of(), **told)
        asked = asked_for(FOUND, epsilon=20.0, leave_out=(sample.certificate.release,))
        release_at(tmp_path / name, tmp_path / name / f"in.{kind}", asked, engine=name)
    out = same(tmp_path / "local", tmp_path / "spark")
    assert out["name"].to_pylist() == sorted(TABLE["name"].to_pylist()[100:])
    bits = dict(zip(out["name"].to_pylist(), out["aid"].to_pylist(), strict=True))
    released = table.slice(100)
    missing = [bits[name] for name in released.filter(released["calls"].is_null())["name"].to_pylist()]
    assert len(missing) > 60
    assert not any(missing), "flips at ε = 20 are rarer than any that this test will see"


# ---- work that is repeated -----------------------------------------------------------------------------


class FailsAtFirst:
    """A task whose every partition fails at its first attempt, after it has scored its people."""

    def __init__(self, inner: ScoreTask, marks: Path) -> None:
        self.inner, self.marks = inner, marks

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = list(batches)
        mark = self.marks / min(held[0].column(0).to_pylist())
        out = list(self.inner(iter(held)))
        if not mark.exists():
            mark.touch()
            raise RuntimeError("failed on purpose")
        yield from out


def in_another_order(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.take(pa.array(np.random.default_rng().permutation(batch.num_rows)))


def test_tasks_that_fail_and_rows_in_another_order_change_no_bit(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steady: Any
) -> None:
    for name in ("local", "spark", "marks"):
        (tmp_path / name).mkdir()
    make_desk(tmp_path / "local")
    steady()
    release_at(tmp_path / "local", TABLE, asked_for(FOUND, LOAN))
    make_desk(tmp_path / "spark")
    steady()
    monkeypatch.setattr(
        engine(), "ScoreTask", lambda *given: FailsAtFirst(ScoreTask(*given), tmp_path / "marks")
    )
    frame = frame_of(spark, TABLE, 1).mapInArrow(in_another_order, SCHEMA)
    release_at(tmp_path / "spark", frame, asked_for(FOUND, LOAN))
    assert len(list((tmp_path / "marks").iterdir())) == 1, "it failed once, and ran again"
    same(tmp_path / "local", tmp_path / "spark")


def moved(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Other values at every computation: a frame of somebody who calls a random function."""
    for batch in batches:
        values = np.random.default_rng().normal(10.0, 8.0, batch.num_rows)
        yield batch.set_column(1, "calls", pa.array(values))


def test_a_frame_that_is_never_the_same_gives_each_person_one_bit(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def watched(job: Any, batches: Any, scores: Any, words: Any) -> Any:
        asked.append(len(scores))
        assert len(set(words.tolist())) == len(words) == len(scores)
        return decide_all(job, batches, scores, words)

    monkeypatch.setattr(engine(), "decide_all", watched)
    desk_in(tmp_path)
    frame = frame_of(spark, TABLE).mapInArrow(moved, SCHEMA)
    release_at(tmp_path, frame, asked_for(FOUND))
    assert asked == [300], "all are asked, once"
    assert read_back(tmp_path / "out.parquet")["name"].to_pylist() == sorted(TABLE["name"].to_pylist())
    assert holds(tmp_path / "out.parquet")


# ---- runs that end -------------------------------------------------------------------------------------


def ends(monkeypatch: pytest.MonkeyPatch, run: Any) -> tuple[Any, list[str]]:
    """A run that ends when all bits are drawn and nothing is written: the bits by tags, and its notes."""
    drawn = []

    def kept(*given: Any) -> Any:
        drawn.append(decide_all(*given))
        return drawn[-1]

    with monkeypatch.context() as patch:
        patch.setattr(engine(), "decide_all", kept)
        patch.setattr(engine(), "write_in_order", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError) as ended:
            run()
    (done,) = drawn
    return done.bits, ended.value.__notes__


@pytest.mark.parametrize("scales", ["none", "private"])
def test_a_run_that_ended_after_drawing_goes_on_with_the_same_bits(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scales: str
) -> None:
    private = scales == "private"
    table = table_of(ENOUGH) if private else TABLE
    asked = asked_for(NEAR, B=0.25) if private else asked_for(FOUND)
    desk = desk_in(tmp_path, scales="private" if private else "public")
    bits, notes = ends(monkeypatch, lambda: release_at(tmp_path, frame_of(spark, table), asked))
    (row,) = rows_of(tmp_path)
    assert row.state == "reserved"
    assert "run the same command again" in notes[0]
    again = frame_of(spark, table.take(np.arange(table.num_rows)[::-1]), 2)
    seen = check_release(again, desk=desk, request=asked, new_people="engines are compared")
    assert seen.goes_on == row.release
    done = release_at(tmp_path, again, asked)
    assert [(one.release, one.state) for one in rows_of(tmp_path)] == [(row.release, "published")]
    assert done.certificate.release == row.release
    out = read_back(tmp_path / "out.parquet")
    by_tags = np.argsort(marks_of(out["name"].combine_chunks(), row.release)[0])
    assert np.array_equal(np.asarray(out["aid"])[by_tags], bits[:, 0])
    assert holds(tmp_path / "out.parquet")
    drafts = tmp_path / "desk" / "drafts"
    assert [path for path in drafts.iterdir() if path.is_dir()] == [], "nobody can draw with it any more"


def test_other_rows_are_refused_after_drawing_and_then_charged_anew(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk_in(tmp_path)
    ends(monkeypatch, lambda: release_at(tmp_path, frame_of(spark, TABLE), asked_for(FOUND)))
    calls = np.asarray(TABLE["calls"]) + (np.arange(300) == 7)
    other = frame_of(spark, TABLE.set_column(1, "calls", pa.array(calls)))
    with pytest.raises(TableChangedError):
        release_at(tmp_path, other, asked_for(FOUND))
    assert not (tmp_path / "out.parquet").exists()
    release_at(tmp_path, other, asked_for(FOUND))
    assert [row.state for row in rows_of(tmp_path)] == ["reserved", "published"]
    assert holds(tmp_path / "out.parquet")


def test_who_is_scored_must_be_who_was_looked_at_and_before_that_nothing_is_drawn(
    spark: Any, tmp_path: Path
) -> None:
    counter = tmp_path / "seen"

    def shrinking(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.slice(int(counter.exists()))
            counter.touch()

    desk_in(tmp_path)
    frame = frame_of(spark, TABLE, 1).mapInArrow(shrinking, SCHEMA)
    with pytest.raises(ValueError, match="300 people at first, and not the same 299 then") as ended:
        release_at(tmp_path, frame, asked_for(FOUND))
    assert ended.value.__notes__ == ["Nothing was drawn: the release is not charged"]
    assert [row.state for row in rows_of(tmp_path)] == ["voided"]
    assert not hidden(tmp_path)
    assert not (tmp_path / "out.parquet").exists()


# ---- what travels, and what does not -------------------------------------------------------------------


def recipe(scoring: Scoring, **more: Any) -> Recipe:
    given: dict[str, Any] = {
        "names": Names("name", Spelling(), bytes(32), None), "features": FEATURES,
        "released": tuple(one.asked.name for one in scoring.questions), "public": (), "encoding": Encoding(),
        "left_out": np.empty(0, dtype=np.uint64), "estimated": (), "scales": None, "scoring": scoring,
    }  # fmt: skip
    return Recipe(**given | more)


def scoring_for(*decisions: dict[str, Any], B: float = 2.0) -> Scoring:
    return scoring_of([Question.of(AskedDecision.model_validate(one), B) for one in decisions], Encoding())


@pytest.mark.parametrize("B", [0.25, 2.0])
def test_a_task_tells_scores_and_writes_none_however_its_rows_come(tmp_path: Path, B: float) -> None:
    scoring = scoring_for(FOUND, LOAN) if B == 2 else scoring_for(BENT, B=B)
    scales = None if B == 2 else declared_scales([10.0, 5.0, 1.0], [8.0, 6.0, 2.0])
    of, table = recipe(scoring, public=("more",)), table_of(300, more=np.arange(300))
    found = []
    for rows in (70, 300, 1):
        order = np.random.default_rng(rows).permutation(300)
        task = ScoreTask(
            of, pa.array(["000150"]), tmp_path, {"more": pa.int64()}, scales, scoring, "a release"
        )
        batches = table.take(pa.array(order)).to_batches(max_chunksize=rows)
        report = Report.joined(b.column(REPORT)[0].as_py() for b in task(iter(batches)))
        ((name, ranges),) = report.pieces.items()
        assert set(ranges) == {0, 1}
        assert pa.ipc.open_file(str(tmp_path / name)).schema.names == ["id", "other more"]
        gathered = [Gathered(tmp_path, report.pieces).sorted_range(number) for number in (0, 1)]
        assert [len(ids) for ids, *_ in gathered] == [150, 150]
        assert {columns.size for _, columns, *_ in gathered} == {0}
        tags, scores = np.concatenate(report.tags), np.concatenate(report.scores)
        assert scores.shape == (300, len(scoring.questions))
        found.append(dict(zip(tags.tolist(), map(tuple, scores.tolist()), strict=True)))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 300


def test_no_secret_of_the_draws_goes_to_a_worker(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steady: Any
) -> None:
    """Tasks are pickled: neither the reservation's secret nor a key that follows from it is in them."""
    from pyspark.serializers import CloudPickleSerializer

    steady()
    sent, run = [], engine()._run

    def watched(frame: Any, task: Any) -> Any:
        sent.append(CloudPickleSerializer().dumps(task))  # type: ignore[no-untyped-call]
        return run(frame, task)

    monkeypatch.setattr(engine(), "_run", watched)
    desk_in(tmp_path)
    release_at(tmp_path, frame_of(spark, TABLE), asked_for(FOUND))
    looked, scored = sent
    assert Desk.open(tmp_path / "desk").names().tag_key in looked, "what a task has, its pickle shows"
    for key in (KNOWN, derived_key(KNOWN, "decisions")):
        assert key not in looked
        assert key not in scored


def test_people_with_the_same_tag_are_not_asked() -> None:
    """Whose bit is whose could not be told. Nothing was drawn, and another release has other tags."""
    alike = Report(tags=[np.array([5, 7, 5], dtype=np.uint64)], scores=[np.zeros((3, 1), dtype=np.int64)])
    with pytest.raises(RuntimeError, match="the same place in this release, by a rare chance: run again"):
        engine()._decide(None, alike, None)


def test_a_model_is_refused_before_anything_is_looked_at(spark: Any) -> None:
    model = {"name": "aid", "model": "0" * 64, "columns": list(FEATURES), "cut": 0.5}
    ours = engine().SparkEngine(frame_of(spark, TABLE))
    with pytest.raises(ValueError, match=r'are run on the data holder.s own machine.*engine = "local"'):
        ours.inspect(recipe(scoring_for(model)), Silent())

"""Models run one row at a time: what one person's row leads to, nobody else notices."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from support.models import chain, converted, learned, model_of, node, row_model
from targetdp._core import Floats
from targetdp.release._model import _child, _runner
from targetdp.release._model._child import ROW_SECONDS
from targetdp.release._model._columns import check_columns
from targetdp.release._model._file import ModelFile, ModelInput, judge_model
from targetdp.release._model._invented import invented_rows, try_model
from targetdp.release._model._pipe import MOST_TEXT
from targetdp.release._model._process import ConfinedProcess
from targetdp.release._model._runner import MARGIN, PERIOD, ModelRunner, publication_moment
from targetdp.release._policy import ModelPolicy


def judged(model: onnx.ModelProto) -> ModelFile:
    return judge_model(model.SerializeToString())


def scores(model: ModelFile, table: pa.Table, **how: Any) -> Floats:
    with ModelRunner(model, table.column_names, **{"jobs": 1, **how}) as runner:
        return runner.scores(table)


def numbers(*columns: Any) -> pa.Table:
    return pa.table({f"c{place}": pa.array(one) for place, one in enumerate(columns)})


# Rows that must not be mixed


def test_a_model_that_mixes_rows_cannot() -> None:
    """Everybody would get the victim's answer if the model were given more than one row."""
    rows = [[1.0], [2.0], [900.0], [3.0]]
    greatest = row_model(
        node("ReduceMax", ["x", "axis"], ["m"], keepdims=1),
        node("Mul", ["x", "zero"], ["z"]),
        node("Add", ["z", "m"], ["score"]),
        constants={"axis": np.array([0]), "zero": np.zeros((1, 1), np.float32)},
    )
    (mixed,) = ReferenceEvaluator(greatest).run(None, {"x": np.array(rows, np.float32)})
    assert set(np.asarray(mixed).ravel()) == {900.0}
    found = scores(judged(greatest), numbers([row[0] for row in rows]))
    assert found.tolist() == [1.0, 2.0, 900.0, 3.0]


def test_a_model_that_takes_the_place_of_the_greatest_row_cannot() -> None:
    place = row_model(
        node("ArgMax", ["x"], ["p"], axis=0, keepdims=0),
        node("Gather", ["x", "p"], ["g"], axis=0),
        node("Reshape", ["g", "flat"], ["score"]),
        constants={"flat": np.array([1, 1])},
    )
    people = np.random.default_rng(0).normal(size=200).astype(np.float32)
    people[17] = 99
    found = scores(judged(place), numbers(people))
    assert np.array_equal(found, people.astype(np.float64))


# Rows without an answer

ROOT = row_model(node("Sqrt", ["x"], ["score"]))


def test_a_model_that_fails_on_one_person_tells_nothing_about_others() -> None:
    people = np.arange(1.0, 101.0)
    without_her = scores(judged(ROOT), numbers(people))
    with_her = people.copy()
    with_her[40] = -1.0
    with ModelRunner(judged(ROOT), ["c0"], jobs=1) as runner:
        found = runner.scores(numbers(with_her))
        assert runner.without_answer == 1
        assert runner.seconds > 0
    assert np.isnan(found[40])
    others = np.arange(100) != 40
    assert np.array_equal(found[others], without_her[others])


def divided() -> ModelFile:
    """A whole number divided by another: the smallest by -1, and the processor itself ends the process.

    It is refused by its file, and let in here all the same.
    """
    model = model_of(
        [node("Div", ["a", "b"], ["q"]), node("Cast", ["q"], ["score"], to=TensorProto.FLOAT)],
        {"a": ("int64", [None, 1]), "b": ("int64", [None, 1])},
        {"score": ("float", [None, 1])},
    )
    data = model.SerializeToString()
    with pytest.raises(ValueError, match="divides whole numbers"):
        judge_model(data)
    return ModelFile(data, data, (ModelInput("a", "int64", 1), ModelInput("b", "int64", 1)), "score")


def test_a_crash_is_one_row_without_an_answer() -> None:
    crashes, smallest = [0, 7, 8, 59], -(1 << 63)
    above, below = 10 * np.arange(60), np.ones(60, dtype=np.int64)
    above[crashes], below[crashes] = smallest, -1
    found = scores(divided(), pa.table({"a": above, "b": below}))
    assert np.flatnonzero(np.isnan(found)).tolist() == crashes
    assert np.array_equal(found[below == 1], above[below == 1].astype(np.float64))
    assert np.isnan(scores(divided(), pa.table({"a": [smallest] * 20, "b": [-1] * 20}))).all()
    # What only raises an error is no answer, too.
    assert np.array_equal(
        scores(divided(), pa.table({"a": [8, 8], "b": [0, 2]})), [np.nan, 4], equal_nan=True
    )


def test_too_much_work_is_one_row_without_an_answer() -> None:
    """Loops are refused; one that gets in all the same ends with the row that it is slow on."""
    body = helper.make_graph(
        [node("Identity", ["go_in"], ["go"]), node("Add", ["t_in", "step"], ["t"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go_in", TensorProto.BOOL, []),
            helper.make_tensor_value_info("t_in", TensorProto.FLOAT, [1, 1]),
        ],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("t", TensorProto.FLOAT, [1, 1]),
        ],
    )
    model = row_model(
        node("Cast", ["x"], ["whole"], to=TensorProto.INT64),
        node("Reshape", ["whole", "flat"], ["times"]),
        node("Loop", ["times", "true", "zero"], ["score"], body=body),
        constants={
            "flat": np.array([], dtype=np.int64),
            "true": np.array(True),
            "zero": np.zeros((1, 1), np.float32),
            "step": np.ones((1, 1), np.float32),
        },
    )
    data = model.SerializeToString()
    with pytest.raises(ValueError, match="control flow"):
        judge_model(data)
    let_in = ModelFile(data, data, (ModelInput("x", "float", 1),), "score")
    found = scores(let_in, numbers([3.0, 2.0, 1e12, 5.0]))
    assert np.array_equal(found, [3.0, 2.0, np.nan, 5.0], equal_nan=True)


def test_what_is_no_number_is_no_answer() -> None:
    inverse = judged(row_model(node("Reciprocal", ["x"], ["score"])))
    found = scores(inverse, numbers([2.0, 0.0, None, float("inf"), 4.0]))
    assert np.array_equal(found, [0.5, np.nan, np.nan, 0.0, 0.25], equal_nan=True)


# However the work is divided


def test_scores_do_not_depend_on_jobs_or_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    model, table = judged(row_model(chain(101))), numbers(np.arange(-20.0, 80.0, 0.1))
    once = scores(model, table, jobs=1)
    assert len(set(once)) > 10
    monkeypatch.setattr(_runner, "rows_in_chunk", lambda _: 37)
    assert np.array_equal(scores(model, table, jobs=2), once)
    assert np.array_equal(scores(model, pa.table({"c0": table["c0"].slice(500)})), once[500:])
    assert np.array_equal(scores(model, table.combine_chunks().to_batches()[0].slice(0, 70)), once[:70])
    assert len(scores(model, table.slice(0, 0))) == 0


def test_a_process_that_is_killed_in_the_middle_changes_no_answer() -> None:
    table = numbers(np.arange(16_000.0))
    with ModelRunner(judged(ROOT), ["c0"], jobs=1) as runner, ThreadPoolExecutor(1) as pool:
        (process,) = runner._processes
        os.kill(process.pid, signal.SIGSTOP)  # so it cannot have answered before it is killed
        found = pool.submit(runner.scores, table)
        threading.Event().wait(0.2)
        os.kill(process.pid, signal.SIGKILL)
        assert np.allclose(found.result(), np.sqrt(np.arange(16_000.0)))
        assert runner._processes != [process]
        assert runner.without_answer == 0


def test_a_machine_that_keeps_ending_processes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: Any) -> bytes:
        raise EOFError

    with ModelRunner(judged(ROOT), ["c0"], jobs=1) as runner:
        monkeypatch.setattr(_runner, "_MOST_STARTS", 2)
        monkeypatch.setattr(ConfinedProcess, "ask", ended)
        with pytest.raises(OSError, match="was ended 2 times"):
            runner.scores(numbers([1.0]))


def test_a_runner_runs_inside_its_with_statement() -> None:
    with pytest.raises(RuntimeError, match="inside its with statement"):
        ModelRunner(judged(ROOT), ["c0"]).scores(numbers([1.0]))


def test_what_cannot_be_loaded_is_said() -> None:
    data = row_model(node("Sqrt", ["nowhere"], ["score"])).SerializeToString()
    with (
        pytest.raises(ValueError, match="the model cannot be loaded"),
        ModelRunner(ModelFile(data, data, (ModelInput("x", "float", 1),), "score"), ["c0"], jobs=1),
    ):
        pass


# Columns


TYPED = model_of(
    [
        node("Cast", ["whole"], ["w"], to=TensorProto.FLOAT),
        node("Cast", ["flag"], ["f"], to=TensorProto.FLOAT),
        node("Cast", ["text"], ["t"], to=TensorProto.FLOAT),
        node("Cast", ["exact"], ["e"], to=TensorProto.FLOAT),
        node("Sum", ["w", "f", "t", "e"], ["score"]),
    ],
    {
        "whole": ("int64", [None, 1]),
        "flag": ("bool", [1, 1]),
        "text": ("string", [None, 1]),
        "exact": ("double", ["n", 1]),  # type: ignore[list-item]
    },
    {"score": ("float", [None, 1])},
)


def typed(**changed: Any) -> pa.Table:
    columns = {
        "exact": pa.array([0.25, 0.25, 0.25]),
        "text": pa.array(["10", "20", "30"]),
        "whole": pa.array([100, 200, 300]),
        "flag": pa.array([True, False, True]),
    }
    return pa.table({**columns, **changed})


def not_utf_8(*values: bytes) -> pa.Array:
    """Texts as a file may hold them: nobody has looked whether they are UTF-8."""
    return pa.array(values, pa.binary()).view(pa.string())


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, [111.25, 220.25, 331.25]),
        ({"text": pa.array(["10", "20", "30"]).dictionary_encode()}, [111.25, 220.25, 331.25]),
        ({"text": pa.array(["10", "20", "30"], pa.large_string())}, [111.25, 220.25, 331.25]),
        ({"whole": pa.array([100, None, 300])}, [111.25, None, 331.25]),
        ({"whole": pa.array([100, 1 << 63, 300], pa.uint64())}, [111.25, None, 331.25]),
        (
            {"whole": pa.array([100, 1 << 63, 300], pa.uint64()).dictionary_encode()},
            [111.25, None, 331.25],
        ),
        ({"flag": pa.array([True, None, True])}, [111.25, None, 331.25]),
        ({"exact": pa.array([0.25, None, 0.25])}, [111.25, None, 331.25]),
        ({"exact": pa.array([0, 1, 0], pa.int8())}, [111.0, 221.0, 331.0]),
        ({"text": pa.array(["10", "abc", "30"])}, [111.25, None, 331.25]),
        ({"text": pa.array(["10", None, "30"])}, [111.25, None, 331.25]),
        ({"text": pa.array(["10", "0" * MOST_TEXT + "1", "30"])}, [111.25, None, 331.25]),
        ({"text": pa.array(["10", "ß", "30"])}, [111.25, None, 331.25]),
        ({"text": not_utf_8(b"10", b"2\xff", b"30")}, [111.25, None, 331.25]),
        ({"text": not_utf_8(b"10", b"2\xff", b"30").dictionary_encode()}, [111.25, None, 331.25]),
    ],
)
def test_columns_of_every_kind(changed: dict[str, Any], expected: list[float | None]) -> None:
    found = scores(judged(TYPED), typed(**changed))
    assert np.array_equal(found, [np.nan if one is None else one for one in expected], equal_nan=True)


def test_decimals_and_large_numbers_are_numbers() -> None:
    model = judged(
        row_model(node("ReduceSum", ["x", "axis"], ["score"]), width=2, constants={"axis": np.array([1])})
    )
    table = numbers(pa.array([1.5, 2.5]).cast(pa.decimal128(5, 2)), pa.array([(1 << 62) + 1, 0]))
    assert scores(model, table).tolist() == [float(1 << 62), 2.5]


def test_what_is_no_number_in_a_way_of_its_own_is_no_error() -> None:
    """Even a warning on one person's value would be a sign that nobody paid for."""
    signaling = np.array([0x7FF0000000000001], np.uint64).view(np.float64)
    assert np.isnan(scores(judged(row_model(node("Abs", ["x"], ["score"]))), numbers(signaling))).all()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"exact": pa.array([1, 2, 3], pa.date32())}, "exact  date32.*is a date or time: give"),
        ({"exact": pa.array(["a", "b", "c"])}, "exact  string  the model takes a number"),
        ({"exact": pa.array([[1], [2], [3]])}, "neither a number nor text"),
        ({"text": pa.array([1, 2, 3])}, "text  int64  the model takes text"),
        ({"whole": pa.array([1.5, 2.5, 3.5])}, "whole  double  the model takes int64"),
        ({"flag": pa.array([1, 0, 1])}, "flag  int64  the model takes bool"),
    ],
)  # fmt: skip
def test_types_that_a_model_does_not_take_are_refused(changed: dict[str, Any], words: str) -> None:
    table = typed(**changed)
    with pytest.raises(ValueError, match=words):
        check_columns(judged(TYPED), table.column_names, table.schema)


def test_columns_that_a_model_does_not_take_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"(?s)text  is an input.*age  is no input"):
        check_columns(judged(TYPED), ["whole", "flag", "exact", "age"])
    with pytest.raises(ValueError, match=r"takes 1 columns in one input, 2 are given \(a, b\)"):
        check_columns(judged(ROOT), ["a", "b"])
    with pytest.raises(ValueError, match="has a column twice"):
        check_columns(judged(ROOT), ["a", "a"])
    with pytest.raises(ValueError, match="a  is not in the table"):
        check_columns(judged(ROOT), ["a"], pa.schema([("b", pa.float64())]))


# What scikit-learn's models become


def people(number: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(number, 10)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] ** 2 > 1)


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingClassifier(max_iter=20),
        HistGradientBoostingRegressor(max_iter=20),
        GradientBoostingClassifier(n_estimators=20),
        GradientBoostingRegressor(n_estimators=20),
        RandomForestClassifier(n_estimators=20, random_state=0),
        LogisticRegression(),
        LinearRegression(),
        make_pipeline(StandardScaler(), MLPClassifier((8,), solver="lbfgs", tol=1, random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_a_converted_model_says_what_scikit_learn_says(model: Any) -> None:
    X, y = people()
    model.fit(X, y)
    expected = model.predict_proba(X)[:, -1] if hasattr(model, "predict_proba") else model.predict(X)
    judged_model = judge_model(converted(model, X=X[:1]))
    found = scores(judged_model, numbers(*X.T))
    assert np.allclose(found, expected, atol=2e-6)
    assert try_model(judged_model, microseconds=1_000_000) > 0


@pytest.mark.parametrize(
    "encoder",
    [OneHotEncoder(), OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)],
    ids=lambda encoder: type(encoder).__name__,
)
def test_a_pipeline_with_text_and_gaps(encoder: Any) -> None:
    import pandas as pd
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    X, y = people()
    table = pd.DataFrame(
        {"age": X[:, 0], "income": X[:, 1], "region": np.where(X[:, 2] > 0, "north", "south")}
    )
    table.loc[::7, "age"] = np.nan
    filled = make_pipeline(SimpleImputer(), StandardScaler())
    made = make_column_transformer((filled, ["age", "income"]), (encoder, ["region"]), sparse_threshold=0)
    pipeline = make_pipeline(made, LogisticRegression()).fit(table, y)
    one, text = FloatTensorType([None, 1]), StringTensorType([None, 1])
    data = converted(pipeline, initial_types=[("age", one), ("income", one), ("region", text)])
    arrow = pa.table({name: pa.array(table[name], from_pandas=True) for name in ("region", "age", "income")})
    assert arrow["age"].null_count > 0
    assert np.allclose(scores(judge_model(data), arrow), pipeline.predict_proba(table)[:, 1], atol=2e-6)


def test_a_classifier_with_maps_is_told_what_to_do() -> None:
    X, y = people()
    data = converted_with_maps(LogisticRegression().fit(X, y), X)
    with pytest.raises(
        ValueError, match=r"output_probability is not a tensor: .*options=\{'zipmap': False\}"
    ):
        judge_model(data)


def converted_with_maps(model: Any, X: Any) -> bytes:
    from skl2onnx import to_onnx

    return bytes(to_onnx(model, X[:1]).SerializeToString())


def test_only_what_leads_to_the_score_is_run() -> None:
    unused = [node("RandomNormalLike", ["x"], ["r"]), node("Sqrt", ["x"], ["score"])]
    model = model_of(
        unused, {"x": ("float", [None, 1])}, {"r": ("float", [None, 1]), "score": ("float", [None, 1])}
    )
    found = judge_model(model.SerializeToString())
    assert [one.op_type for one in onnx.ModelProto.FromString(found.graph).graph.node] == ["Sqrt"]
    assert scores(found, numbers([4.0])).tolist() == [2.0]


# Invented rows


def test_invented_rows_are_of_every_kind() -> None:
    rows = invented_rows(judged(TYPED), np.random.default_rng(0))
    assert set(rows.column_names) == {"whole", "flag", "text", "exact"}
    check_columns(judged(TYPED), rows.column_names, rows.schema)
    exact = rows["exact"].to_numpy()
    assert np.isnan(exact).any()
    assert np.abs(exact[np.isfinite(exact)]).max() >= 1e30
    assert "" in rows["text"].to_pylist()


def test_a_model_without_answers_and_a_slow_one_are_refused_on_invented_rows() -> None:
    never = row_model(
        node("Abs", ["x"], ["a"]), node("Neg", ["a"], ["n"]), node("Sub", ["n", "one"], ["m"]),
        node("Sqrt", ["m"], ["score"]), constants={"one": np.ones((1, 1), np.float32)},
    )  # fmt: skip
    with pytest.raises(ValueError, match="gives no number for any of 1024 invented rows"):
        try_model(judged(never), microseconds=10**9)
    with pytest.raises(ValueError, match="microseconds for a row, the policy gives 1: make"):
        try_model(judged(ROOT), microseconds=1)
    with pytest.raises(ValueError, match=r"may compare one row 501 times.* enough for 500: limit"):
        try_model(judged(row_model(chain(1_001))), microseconds=5)


def test_no_policy_gives_a_row_nearly_as_much_time_as_ends_it() -> None:
    """Else it would depend on the rows before whether one is still in time: memory that they used is warm."""
    with pytest.raises(ValueError, match="10000"):
        ModelPolicy(microseconds=10_001)
    assert ModelPolicy(microseconds=10_000).microseconds * 1e-6 <= ROW_SECONDS / 10


def test_a_model_that_leaves_little_memory_for_rows_is_refused() -> None:
    """A file of 50 MiB that takes more than 1 GiB: with still more, a long text of one person's would be too
    much, and what it leaves behind would be too much for the next."""
    keys = [f"{number:x}" for number in range(4_000_000)]
    model = row_model(
        learned("LabelEncoder", "x", outputs=["t"], keys_floats=[0.0], values_strings=["1"]),
        learned("LabelEncoder", "t", keys_strings=keys, values_floats=[0.0] * len(keys)),
    )
    with pytest.raises(ValueError, match="it leaves less than 1 GiB of memory for rows"):
        try_model(judged(model), microseconds=10_000)


@pytest.mark.parametrize("left", [np.nan, -1.0, 4.0, 1e300])
def test_whatever_a_copy_has_left_behind_rows_come_to_an_end(
    monkeypatch: pytest.MonkeyPatch, left: float
) -> None:
    def crash(_: Any, at: Any, *__: int) -> None:
        at[0] = left

    monkeypatch.setattr(_child, "_in_a_copy", crash)
    answers = np.full(3, np.nan)
    _child._answer(None, "score", [], np.zeros(3, np.bool_), answers, np.zeros(1))
    assert np.isnan(answers).all()


# The moment of publication


def test_the_moment_of_publication_is_made_of_rows_and_policy() -> None:
    assert publication_moment(0, 100) == MARGIN
    assert publication_moment(100_000, 100) == 10 + MARGIN
    assert publication_moment(100_001, 100) == 10 + MARGIN + PERIOD
    for taken in (0, 1, MARGIN - 0.1, MARGIN):
        assert publication_moment(0, 100, seconds_taken=taken) == MARGIN
    assert publication_moment(0, 100, seconds_taken=MARGIN + 0.1) == 2 * MARGIN
    whole = publication_moment(5_000_000, 100)
    assert publication_moment(5_000_000, 100, seconds_taken=whole + 0.5) == 2 * whole
    with pytest.raises(ValueError, match="microseconds"):
        publication_moment(1, 0)

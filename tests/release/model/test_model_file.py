"""Models are judged by their file: what may be run, and what is refused in which words."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.models import chain, learned, model_of, node, row_model
from targetdp.release._model._file import judge_model, read_model
from targetdp.release._model._judge import MOST_NODES, MOST_NUMBERS, judge
from targetdp.release._model._learned import LEARNED, MOST_COMPARISONS
from targetdp.release._model._operators import PLAIN, why_not
from targetdp.release._model._pipe import MOST_TEXT

PASSES = node("Identity", ["x"], ["score"])


def problems(model: onnx.ModelProto) -> str:
    return "\n".join(judge(model.SerializeToString()).problems)


def test_a_plain_model_is_let_in(tmp_path: Path) -> None:
    (tmp_path / "plain.onnx").write_bytes(row_model(PASSES, width=3).SerializeToString())
    model = read_model(tmp_path / "plain.onnx")
    assert [(one.name, one.kind, one.width) for one in model.inputs] == [("x", "float", 3)]
    assert model.score == "score"
    assert model.is_one_table
    assert len(model.sha256) == 64


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"no model at all")
    with pytest.raises(ValueError, match=r"a\.onnx cannot be run:\n  it is not an ONNX file"):
        read_model(tmp_path / "a.onnx")
    with pytest.raises(ValueError, match="it has no input"):
        judge_model(b"")


def test_a_file_that_is_too_large_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targetdp.release._model._file.MOST_BYTES", 10)
    with pytest.raises(ValueError, match="has more than 0 MiB"):
        judge_model(bytes(11))


RANDOM = ["RandomNormalLike", "Bernoulli", "Dropout", "Multinomial"]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        *(([node(name, ["x"], ["score"])], "draws at random") for name in RANDOM),
        ([node("DynamicQuantizeLinear", ["x"], ["score", "b", "c"])], "dynamic quantization"),
        ([node("NonZero", ["x"], ["score"])], "as many numbers as its values say"),
        ([node("Shape", ["x"], ["score"])], "as many numbers as its values say"),
        ([node("Identity", ["x"], ["score"], domain="com.own")], "com.own, which is not part of ONNX"),
        ([node("Identity", ["x"], ["score"], domain="ai.onnx.preview.training")], "only ai.onnx and"),
        ([node("LSTM", ["x"], ["score"])], "LSTM is not on the list"),
        ([learned("ZipMap", "x")], "zipmap"),
        ([learned("SVMRegressor", "x")], "sizes of its tables are not checked"),
        ([node("Tokenizer\x1b[2J", ["x"], ["score"])], r"Tokenizer?[2J is not on the list"),
    ],
)  # fmt: skip
def test_operators_that_are_not_run(nodes: list[onnx.NodeProto], words: str) -> None:
    assert words in problems(row_model(*nodes))


def test_operators_are_let_in_or_refused_for_a_reason() -> None:
    assert not PLAIN & LEARNED
    assert all("is not on the list" in why_not(name) for name in PLAIN | LEARNED)
    known = {one.name for one in onnx.defs.get_all_schemas()}
    assert known >= PLAIN | LEARNED


def test_control_flow_is_refused() -> None:
    inner = helper.make_graph([PASSES], "inner", [], [])
    branch = node("If", ["c"], ["score"], then_branch=inner, else_branch=inner)
    constant = node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    assert "If holds a graph (control flow)" in problems(row_model(constant, branch))


def test_external_data_is_refused() -> None:
    model = row_model(node("Add", ["x", "a"], ["score"]), constants={"a": np.ones((1, 1), np.float32)})
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], "/etc/passwd")
    assert "external data" in problems(model)


def test_functions_and_training_are_refused() -> None:
    model = row_model(PASSES)
    model.functions.append(
        helper.make_function("own", "F", ["x"], ["y"], [node("Identity", ["x"], ["y"])], model.opset_import)
    )
    model.training_info.add()
    model.graph.sparse_initializer.add()
    found = problems(model)
    assert "functions" in found
    assert "train it further" in found
    assert "sparse" in found


def test_batch_normalization_in_training_mode_is_refused() -> None:
    numbers = {name: np.ones(2, np.float32) for name in ("a", "b", "c", "d")}

    def model(**given: Any) -> onnx.ModelProto:
        normal = node("BatchNormalization", ["x", "a", "b", "c", "d"], ["score"], **given)
        return row_model(normal, width=2, constants=numbers)

    assert problems(model()) == ""
    assert "training mode" in problems(model(training_mode=1))


def test_too_many_operators_and_numbers_are_refused() -> None:
    names = ["x", *(f"t{i}" for i in range(MOST_NODES)), "score"]
    nodes = [node("Identity", [a], [b]) for a, b in pairwise(names)]
    assert "operators, at most" in problems(row_model(*nodes))
    wide = {"a": np.ones((1 << 13, 1), np.float32), "b": np.ones((1, 1 << 13), np.float32)}
    outer = [node("MatMul", ["a", "b"], ["t"]), node("Add", ["t", "x"], ["score"])]
    assert "numbers of one row" in problems(row_model(*outer, constants=wide))


def test_texts_count_by_their_length() -> None:
    """What fits into memory for short texts must fit for long ones: else it would tell who has which."""

    def copies(number: int) -> onnx.ModelProto:
        nodes = [
            node("Gather", ["x", "i"], ["g"], axis=1),
            node("Equal", ["g", "g"], ["e"]),
            node("Cast", ["e"], ["score"], to=TensorProto.FLOAT),
        ]
        places = {"i": np.zeros(number, np.int64)}
        inputs, outputs = {"x": ("string", [None, 1])}, {"score": ("float", [None, None])}
        return model_of(nodes, inputs, outputs, places, version=19)

    assert problems(copies(10)) == ""
    assert "numbers of one row" in problems(copies(MOST_NUMBERS // 100))


def test_long_texts_in_a_file_are_refused() -> None:
    long = "a" * (MOST_TEXT + 1)
    encoder = learned("LabelEncoder", "x", keys_floats=[0.0], values_strings=[long], outputs=["t"])
    back = node("Cast", ["t"], ["score"], to=TensorProto.FLOAT)
    assert "a text of more than 1,000 bytes" in problems(row_model(encoder, back))
    by_default = learned(
        "LabelEncoder", "x", keys_floats=[0.0], values_strings=["0"], default_string=long, outputs=["t"]
    )
    assert "a text of more than 1,000 bytes" in problems(row_model(by_default, back))
    constant = node("Constant", [], ["t"], value=numpy_helper.from_array(np.array([long], dtype=object)))
    sum_ = node("Add", ["x", "f"], ["score"])
    cast = node("Cast", ["t"], ["f"], to=TensorProto.FLOAT)
    assert "a text of more than 1,000 bytes" in problems(row_model(constant, cast, sum_))


def test_sparse_numbers_of_an_operator_are_refused() -> None:
    values = helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0])
    places = helper.make_tensor("p", TensorProto.INT64, [1], [1 << 40])
    sparse = node("Constant", [], ["c"], sparse_value=helper.make_sparse_tensor(values, places, [4]))
    assert "Constant holds sparse numbers" in problems(row_model(sparse, node("Add", ["x", "c"], ["score"])))


def test_what_is_written_twice_is_refused() -> None:
    """Two readers of a file might each take another one."""
    twice = row_model(node("Add", ["x", "a"], ["score"]), constants={"a": np.ones((1, 1), np.float32)})
    twice.graph.initializer.append(twice.graph.initializer[0])
    assert "same name" in problems(twice)
    versions = row_model(PASSES)
    versions.opset_import.append(helper.make_opsetid("ai.onnx", 7))
    assert "two versions" in problems(versions)
    attribute = row_model(node("LeakyRelu", ["x"], ["score"], alpha=0.5))
    attribute.graph.node[0].attribute.append(helper.make_attribute("alpha", 0.1))
    assert "an attribute twice" in problems(attribute)


def test_sizes_must_follow_from_the_file() -> None:
    """A shape that is computed from a row would be more work for one person than for another."""
    cast = node("Cast", ["x"], ["shape"], to=TensorProto.INT64)
    flat = node("Reshape", ["shape", "one"], ["flat"])
    found = problems(
        row_model(cast, flat, node("Reshape", ["x", "flat"], ["score"]), constants={"one": np.array([1])})
    )
    assert "not fixed by the file" in found
    fixed = row_model(node("Reshape", ["x", "two"], ["score"]), width=2, constants={"two": np.array([2, 1])})
    assert problems(fixed) == ""
    # What cannot be reshaped so for one row was made for many.
    many = row_model(node("Reshape", ["x", "two"], ["score"]), width=2, constants={"two": np.array([3, 2])})
    assert "2 numbers of one row cannot be put into the shape [3, 2]" in problems(many)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"x": ("float", [5, 1])}, r"\[5, 1\]: it must be"),
        ({"x": ("float", [None])}, r"\[None\]: it must be"),
        ({"x": ("float", [None, None])}, r"\[None, None\]: it must be"),
        ({"x": ("float", [None, 20_000])}, "at most 16,384 columns"),
        ({"x": ("int32", [None, 1])}, "input x is int32"),
        ({"x": ("string", [None, 2])}, r"each must take one column, \[None, 1\]"),
        ({"x": ("float", [None, 2]), "y": ("float", [None, 1])}, "each must take one column"),
        ({}, "it has no input"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs: Any, words: str) -> None:
    number = node("Constant", [], ["score"], value=helper.make_tensor("c", TensorProto.FLOAT, [1], [1.0]))
    with pytest.raises(ValueError, match=words):
        judge_model(model_of([number], inputs, {"score": ("float", [None, None])}).SerializeToString())


def test_outputs_must_hold_a_score() -> None:
    whole = node("Cast", ["x"], ["score"], to=TensorProto.INT64)
    model = model_of([whole], {"x": ("float", [None, 1])}, {"score": ("int64", [None, 1])})
    assert "no output is a tensor of float or double" in problems(model)


def test_numbers_of_another_kind_are_refused() -> None:
    full = node("Cast", ["h"], ["score"], to=TensorProto.FLOAT)
    halves = row_model(node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), full)
    assert "type float16" in problems(halves)
    stored = row_model(full, constants={"h": np.ones(1, np.float16)})
    assert "type float16" in problems(stored)


def test_all_problems_come_at_once() -> None:
    found = judge(
        row_model(node("Bernoulli", ["x"], ["a"]), node("NonZero", ["a"], ["score"])).SerializeToString()
    )
    assert len(found.problems) == 2


# Tables that reach beyond the row, where other people's numbers may be


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([chain(9, nodes_featureids=[0, 1] + [0] * 7)], "a tree is about column 1, there are 1"),
        ([chain(9, nodes_featureids=[-1] + [0] * 8)], "a tree is about column -1"),
        ([chain(9, target_ids=[1] + [0] * 4)], "a tree is about target 1"),
        ([chain(9, nodes_values=[0.0])], "equally long"),
        ([chain(9, nodes_missing_value_tracks_true=[1])], "equally long"),
        ([chain(9, target_weights=[0.0])], "equally long"),
        ([chain(9, base_values=[0.0, 1.0])], "base_values has 2 numbers"),
        ([chain(9, n_targets=0)], "it has 0 targets"),
        ([chain(9, nodes_truenodeids=[99] * 9)], "leads to one that is not in its tree"),
        ([chain(9, nodes_nodeids=[0] * 9)], "the same number"),
        ([chain(9, nodes_modes=["BRANCH_ODD"] * 9)], "of known kinds"),
        ([learned("LinearRegressor", "x", coefficients=[1.0, 2.0])], "coefficients has 2 numbers"),
        ([learned("LinearRegressor", "x", coefficients=[1.0], intercepts=[0.0, 1.0])], "intercepts has 2"),
        ([learned("Scaler", "x", offset=[0.0, 1.0], scale=[1.0])], "offset has 2 numbers"),
        ([learned("Imputer", "x", imputed_value_floats=[0.0, 1.0])], "imputed_value_floats has 2"),
        ([learned("FeatureVectorizer", "x", inputdimensions=[2])], r"inputdimensions must be \[1\]"),
        ([learned("LabelEncoder", "x", keys_floats=[0.0, 1.0], values_floats=[0.0])], "equally long"),
        (
            [node("Constant", [], ["i"], value_ints=[1]), learned("ArrayFeatureExtractor", "x", "i")],
            "its places are computed",
        ),
    ],
)
def test_tables_that_do_not_fit_a_row_are_refused(nodes: list[onnx.NodeProto], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        judge_model(row_model(*nodes).SerializeToString())


@pytest.mark.parametrize("place", [-1, 1])
def test_places_beyond_a_row_are_refused(place: int) -> None:
    model = row_model(learned("ArrayFeatureExtractor", "x", "i"), constants={"i": np.array([place])})
    assert "not among the row's 1" in problems(model)


def classifier(operator: str, **given: Any) -> onnx.ModelProto:
    one = learned(operator, "x", outputs=("label", "score"), **given)
    return model_of([one], {"x": ("float", [None, 1])}, {"score": ("float", [None, None])})


def test_classes_must_fit() -> None:
    assert "labels" in problems(classifier("LinearClassifier", coefficients=[1.0], intercepts=[0.0]))
    fits = {"coefficients": [1.0, 2.0], "intercepts": [0.0, 1.0], "classlabels_ints": [0, 1]}
    assert problems(classifier("LinearClassifier", **fits)) == ""
    assert "intercepts has 2" in problems(
        classifier("LinearClassifier", **{**fits, "classlabels_ints": [0, 1, 2]})
    )
    assert "coefficients has 3" in problems(
        classifier("LinearClassifier", **{**fits, "coefficients": [1.0] * 3})
    )


# Trees


def test_a_tree_that_is_slow_for_one_person_is_refused_by_its_file() -> None:
    most = 2 * MOST_COMPARISONS
    assert problems(row_model(chain(1_001))) == ""
    assert "more than 50,000 times" in problems(row_model(chain(most + 3)))


def repeated(number: int, *nodes: onnx.NodeProto, kind: str = "float") -> onnx.ModelProto:
    """A model in which something is done to a person's one number so many times."""
    return model_of(
        [node("Gather", ["x", "i"], ["g"], axis=1), *nodes],
        {"x": (kind, [None, 1])},
        {"score": ("float", [None, None])},
        {"i": np.zeros(number, np.int64), "c": np.array([0.1], np.float32), "tall": np.array([-1, 1])},
    )


def test_trees_are_given_one_row() -> None:
    """Columns put on top of each other would be so many rows, each compared as often as one may be."""
    tree = chain(1_001, nodes_featureids=[0] * 1_001)
    tree.input[0] = "both"
    tall = [
        node("Reshape", ["g", "tall"], ["t"]),
        learned("FeatureVectorizer", "t", "t", outputs=["both"], inputdimensions=[100, 100]),
    ]
    assert "it joins a tensor of shape [100, 1]" in problems(repeated(100, *tall, tree))


@pytest.mark.parametrize(
    ("nodes", "kind", "number"),
    [
        # Categories that fall into the same place of a table are compared one after the other.
        (
            [
                node("Cast", ["g"], ["w"], to=TensorProto.INT64),
                learned("OneHotEncoder", "w", cats_int64s=[7 + 20_753 * i for i in range(20_000)]),
            ],
            "float",
            3,
        ),
        ([node("Mod", ["g", "c"], ["score"], fmod=1)], "float", 2_000),
        (
            [
                node("Cast", ["g"], ["t"], to=TensorProto.STRING),
                node("Cast", ["t"], ["score"], to=TensorProto.FLOAT),
            ],
            "float",
            1_000,
        ),
        ([learned("LabelEncoder", "g", keys_strings=["a"], values_floats=[1.0])], "string", 4_000),
    ],
)
def test_what_is_slow_for_one_person_is_refused_by_its_file(
    nodes: list[onnx.NodeProto], kind: str, number: int
) -> None:
    assert problems(repeated(1, *nodes, kind=kind)) == ""
    assert "may compare one row more than 50,000 times" in problems(repeated(number, *nodes, kind=kind))


def test_a_tree_that_has_no_end_is_refused() -> None:
    back = [4 + i for i in range(4)] + [0] * 5
    forth = [1, 2, 3, 0] + [0] * 5
    assert "more than 50,000 times" in problems(
        row_model(chain(9, nodes_truenodeids=back, nodes_falsenodeids=forth))
    )


@pytest.mark.parametrize(("nodes", "longest"), [(3, 2), (9, 5), (101, 51)])
def test_the_longest_path_is_counted(nodes: int, longest: int) -> None:
    """A chain of so many branches, and a leaf; paths of several operators come one after the other."""
    assert judge(row_model(chain(nodes)).SerializeToString()).comparisons == longest
    twice = row_model(
        chain(nodes, outputs=("a",)), chain(nodes, outputs=("b",)), node("Add", ["a", "b"], ["score"])
    )
    assert judge(twice.SerializeToString()).comparisons == 2 * longest


@pytest.mark.parametrize(("divisor", "words"), [(0, "may be 0 or -1"), (-1, "may be 0 or -1"), (7, "")])
@pytest.mark.parametrize("operator", ["Div", "Mod"])
def test_whole_numbers_are_divided_by_constants_alone(operator: str, divisor: int, words: str) -> None:
    """A processor ends what divides the smallest number by -1."""
    whole, back = node("Cast", ["x"], ["w"], to=TensorProto.INT64), node("Cast", ["q"], ["score"], to=1)
    fixed = row_model(
        whole, node(operator, ["w", "d"], ["q"]), back, constants={"d": np.array([divisor], np.int64)}
    )
    assert words in problems(fixed)
    assert bool(words) == bool(problems(fixed))
    assert "may be 0 or -1" in problems(row_model(whole, node(operator, ["w", "w"], ["q"]), back))

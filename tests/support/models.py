"""Models for tests: graphs written by hand, and what scikit-learn's models become."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

KINDS = {
    "float": TensorProto.FLOAT,
    "double": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "bool": TensorProto.BOOL,
    "string": TensorProto.STRING,
}
node = helper.make_node


def learned(operator: str, *inputs: str, outputs: Sequence[str] = ("score",), **given: Any) -> onnx.NodeProto:
    """An operator of ai.onnx.ml."""
    return node(operator, list(inputs), list(outputs), domain="ai.onnx.ml", **given)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[str, Sequence[int | None]]],
    outputs: Mapping[str, tuple[str, Sequence[int | None]]],
    constants: Mapping[str, Any] | None = None,
    *,
    version: int = 18,
) -> onnx.ModelProto:
    """A graph; a dimension that is None is left open."""

    def told(name: str, kind: str, shape: Sequence[int | None]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, KINDS[kind], shape)

    graph = helper.make_graph(
        list(nodes),
        "graph",
        [told(name, *one) for name, one in inputs.items()],
        [told(name, *one) for name, one in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    versions = [helper.make_opsetid("", version), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=versions, ir_version=9)


def row_model(
    *nodes: onnx.NodeProto, width: int = 1, constants: Mapping[str, Any] | None = None, version: int = 18
) -> onnx.ModelProto:
    """A graph from floats x of a row to its score."""
    return model_of(
        nodes, {"x": ("float", [None, width])}, {"score": ("float", [None, None])}, constants, version=version
    )


def chain(nodes: int, *, outputs: Sequence[str] = ("score",), **changed: Any) -> onnx.NodeProto:
    """One tree that is a chain: whose value is small comes to its end after the first comparison."""
    branches = nodes // 2
    ids = np.arange(2 * branches + 1)
    given: dict[str, Any] = {
        "n_targets": 1,
        "nodes_treeids": np.zeros_like(ids).tolist(),
        "nodes_nodeids": ids.tolist(),
        "nodes_featureids": np.zeros_like(ids).tolist(),
        "nodes_values": [float(i) for i in range(branches)] + [0.0] * (branches + 1),
        "nodes_modes": ["BRANCH_LEQ"] * branches + ["LEAF"] * (branches + 1),
        "nodes_truenodeids": [branches + i for i in range(branches)] + [0] * (branches + 1),
        "nodes_falsenodeids": [i + 1 if i + 1 < branches else 2 * branches for i in range(branches)]
        + [0] * (branches + 1),
        "target_ids": [0] * (branches + 1),
        "target_treeids": [0] * (branches + 1),
        "target_nodeids": ids[branches:].tolist(),
        "target_weights": [float(i) for i in range(branches + 1)],
    }
    return learned("TreeEnsembleRegressor", "x", outputs=outputs, **{**given, **changed})


def converted(model: Any, **how: Any) -> bytes:
    """What skl2onnx makes of a fitted model."""
    from skl2onnx import to_onnx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"zipmap": False} if hasattr(model, "predict_proba") else None
        return bytes(to_onnx(model, options=options, **how).SerializeToString())

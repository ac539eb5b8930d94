"""Regression trees as plain numbers, and as a file in ONNX's format."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from targetdp._core import Floats, Integers

_VERSIONS = {"": 17, "ai.onnx.ml": 3}
_IR = 8
"""Versions of ONNX that all runtimes of the last years know."""


@dataclass(frozen=True, eq=False)
class ScoreTree:
    """One tree. Node 0 is the root; a row whose value is at most the threshold goes left, a gap right.

    Args:
        column: Of each node, −1 for a leaf.
        threshold: Of each node; 32-bit floats, as rows are compared with them.
        left: The node for rows at most the threshold.
        right: The node for all others.
        value: What a leaf adds to the score.
    """

    column: Integers
    threshold: np.ndarray[tuple[int], np.dtype[np.float32]]
    left: Integers
    right: Integers
    value: Floats

    def of_rows(self, X: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> Floats:
        """What the tree adds to the score of each row."""
        at = np.zeros(len(X), dtype=np.int64)
        inner = self.column[at] >= 0
        while inner.any():
            rows = np.flatnonzero(inner)
            node = at[rows]
            goes_left = X[rows, self.column[node]] <= self.threshold[node]
            at[rows] = np.where(goes_left, self.left[node], self.right[node])
            inner[rows] = self.column[at[rows]] >= 0
        return np.asarray(self.value[at])


@dataclass(frozen=True, eq=False)
class ScoreTrees:
    """A sum of trees and a constant.

    Args:
        columns: How many a row has.
        base: The constant.
        trees: What is added to it.
    """

    columns: int
    base: float
    trees: tuple[ScoreTree, ...] = field(repr=False)

    def of_rows(self, X: Floats) -> Floats:
        """The score of each row."""
        rows = np.asarray(X, dtype=np.float32)
        return np.asarray(self.base + sum((tree.of_rows(rows) for tree in self.trees), np.zeros(len(rows))))

    def onnx(self) -> bytes:
        """The same as a file: one input ``columns`` of 32-bit floats, one output ``score``."""
        from onnx import TensorProto, helper  # noqa: PLC0415 (an extra)

        each = [tree for tree in self.trees if len(tree.column)]
        sizes = [len(tree.column) for tree in each]
        ids = _together([np.full(size, place) for place, size in enumerate(sizes)])
        nodes = _together([np.arange(size) for size in sizes])
        columns = _together([tree.column for tree in each])
        leaf = columns < 0
        node = helper.make_node(
            "TreeEnsembleRegressor", ["columns"], ["score"], domain="ai.onnx.ml",
            n_targets=1, aggregate_function="SUM", post_transform="NONE", base_values=[self.base],
            nodes_treeids=ids.tolist(), nodes_nodeids=nodes.tolist(),
            nodes_featureids=np.where(leaf, 0, columns).tolist(),
            nodes_values=np.concatenate([tree.threshold for tree in each]).astype(float).tolist(),
            nodes_modes=["LEAF" if end else "BRANCH_LEQ" for end in leaf],
            nodes_truenodeids=_together([tree.left for tree in each]).tolist(),
            nodes_falsenodeids=_together([tree.right for tree in each]).tolist(),
            nodes_missing_value_tracks_true=[0] * len(nodes), nodes_hitrates=[1.0] * len(nodes),
            target_treeids=ids[leaf].tolist(), target_nodeids=nodes[leaf].tolist(),
            target_ids=[0] * int(leaf.sum()),
            target_weights=np.concatenate([tree.value for tree in each])[leaf].tolist(),
        )  # fmt: skip
        graph = helper.make_graph(
            [node], "score",
            [helper.make_tensor_value_info("columns", TensorProto.FLOAT, [None, self.columns])],
            [helper.make_tensor_value_info("score", TensorProto.FLOAT, [None, 1])],
        )  # fmt: skip
        versions = [helper.make_opsetid(domain, number) for domain, number in _VERSIONS.items()]
        model = helper.make_model(graph, opset_imports=versions, ir_version=_IR, producer_name="targetdp")
        return bytes(model.SerializeToString(deterministic=True))


def _together(parts: Sequence[Integers]) -> Integers:
    return np.concatenate(parts).astype(np.int64)

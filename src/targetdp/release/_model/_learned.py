"""Operators of ai.onnx.ml: what they make of one row, and whether their tables fit its width.

A runtime that trusts these tables reads beyond the row, where another person's numbers may be. So every
length and every place is compared with the width of the row here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

MOST_COMPARISONS = 50_000
"""Of one row with nodes of trees, at most: the longest paths of all trees together."""
MOST_TARGETS = 10_000
MODES = (b"BRANCH_LEQ", b"BRANCH_LT", b"BRANCH_GTE", b"BRANCH_GT", b"BRANCH_EQ", b"BRANCH_NEQ", b"LEAF")
"""What a node of a tree may be."""
Given = dict[str, Any]
"""Attributes of an operator, by name."""


@dataclass(frozen=True)
class Tensor:
    """Kind and shape of a tensor."""

    kind: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many numbers or texts it has."""
        return prod(list(self.shape))


def learned(
    node: onnx.NodeProto, tensors: dict[str, Tensor], constants: dict[str, TensorProto]
) -> list[Tensor]:
    """What an operator makes of one row.

    Args:
        node: The operator, one of `LEARNED`.
        tensors: What there is before it.
        constants: Those of them that the file holds.

    Raises:
        ValueError: It cannot take what it is given, in words.
    """
    given = {one.name: _value(one) for one in node.attribute}
    row = tensors[node.input[0]]
    if node.op_type == "FeatureVectorizer":
        return [_joined(node, given, tensors)]
    if node.op_type == "ArrayFeatureExtractor":
        return [_extracted(node, row, constants)]
    if node.op_type == "LabelEncoder":
        return [_encoded(given, row)]
    if len(row.shape) != 2 or row.shape[0] != 1:
        raise ValueError(f"it is given a tensor of shape {list(row.shape)}: it takes one row, [1, columns]")
    return _OF_A_ROW[node.op_type](given, row)


def _changed(given: Given, row: Tensor) -> list[Tensor]:
    """Imputer and Binarizer: a row as it was, with other numbers in it."""
    for name in ("imputed_value_floats", "imputed_value_int64s"):
        if name in given:
            _fit(name, given[name], row.shape[1], 1)
    return [row]


def _scaled(given: Given, row: Tensor) -> list[Tensor]:
    """Scaler and Normalizer."""
    for name in ("offset", "scale"):
        if name in given:
            _fit(name, given[name], row.shape[1], 1)
    return [Tensor("float", row.shape)]


def _one_hot(given: Given, row: Tensor) -> list[Tensor]:
    categories = len(given.get("cats_int64s", ())) + len(given.get("cats_strings", ()))
    return [Tensor("float", (*row.shape, categories))]


def _linear_value(given: Given, row: Tensor) -> list[Tensor]:
    targets = _targets(given.get("targets", 1))
    _fit("coefficients", given.get("coefficients", ()), targets * row.shape[1])
    _fit("intercepts", given.get("intercepts", ()), targets, 0)
    return [Tensor("float", (1, targets))]


def _tree_value(given: Given, row: Tensor) -> list[Tensor]:
    targets = _targets(given.get("n_targets", 1))
    _check_trees(given, row, targets, "target", [targets, 0])
    return [Tensor("double" if row.kind == "double" else "float", (1, targets))]


def _targets(number: int) -> int:
    if not 1 <= number <= MOST_TARGETS:
        raise ValueError(f"it has {number} targets: there must be 1 to {MOST_TARGETS:,}")
    return number


def _linear_class(given: Given, row: Tensor) -> list[Tensor]:
    made = _classes(given)
    classes, rows = made[1].shape[1], len(given.get("intercepts", ()))
    if rows != classes and (rows, classes) != (1, 2):
        raise ValueError(f"intercepts has {rows} numbers for {classes} classes: give one for each")
    _fit("coefficients", given.get("coefficients", ()), rows * row.shape[1])
    return made


def _tree_class(given: Given, row: Tensor) -> list[Tensor]:
    made = _classes(given)
    classes = made[1].shape[1]
    _check_trees(given, row, classes, "class", [classes, 0, 1] if classes == 2 else [classes, 0])
    return made


def _classes(given: Given) -> list[Tensor]:
    """The class, and a number for each class."""
    labels = {
        name: given[name]
        for name in ("classlabels_strings", "classlabels_int64s", "classlabels_ints")
        if len(given.get(name, ()))
    }
    if len(labels) != 1:
        raise ValueError("it must have labels of its classes, either texts or whole numbers")
    ((name, classes),) = labels.items()
    kind = "string" if name == "classlabels_strings" else "int64"
    return [Tensor(kind, (1,)), Tensor("float", (1, len(classes)))]


_OF_A_ROW: dict[str, Callable[[Given, Tensor], list[Tensor]]] = {
    "Binarizer": _changed,
    "Imputer": _changed,
    "LinearClassifier": _linear_class,
    "LinearRegressor": _linear_value,
    "Normalizer": _scaled,
    "OneHotEncoder": _one_hot,
    "Scaler": _scaled,
    "TreeEnsembleClassifier": _tree_class,
    "TreeEnsembleRegressor": _tree_value,
}
LEARNED = frozenset(_OF_A_ROW) | {"ArrayFeatureExtractor", "FeatureVectorizer", "LabelEncoder"}
"""The operators of ai.onnx.ml that are run: what scikit-learn's models and transformers become."""


def _encoded(given: Given, row: Tensor) -> Tensor:
    """A value in the place of each value: both lists are equally long."""
    kinds = {"strings": "string", "int64s": "int64", "floats": "float"}
    sizes = {
        side: {name: len(given[f"{side}_{name}"]) for name in (*kinds, "tensor") if f"{side}_{name}" in given}
        for side in ("keys", "values")
    }
    keys, values = sizes["keys"], sizes["values"]
    if len(keys) != 1 or len(values) != 1 or [*keys.values()] != [*values.values()]:
        raise ValueError("it must have one list of keys and one of values, equally long: convert it again")
    (name,) = values
    made = given[f"values_{name}"]
    if name == "tensor":
        known = {"float32": "float", "float64": "double", "int64": "int64", "object": "string"}
        return Tensor(known.get(made.dtype.name, "string"), row.shape)
    return Tensor(kinds[name], row.shape)


def _extracted(node: onnx.NodeProto, row: Tensor, constants: dict[str, TensorProto]) -> Tensor:
    """Some places of a row: they must be in the file, and in the row."""
    if node.input[1] not in constants:
        raise ValueError("its places are computed: they must be constants")
    places = numpy_helper.to_array(constants[node.input[1]]).ravel()
    width = row.shape[-1] if row.shape else 0
    if places.dtype != np.int64 or not len(places) or places.min() < 0 or places.max() >= width:
        raise ValueError(f"it takes places that are not among the row's {width}: convert the model again")
    return Tensor(row.kind, (1, len(places)) if len(row.shape) == 1 else (*row.shape[:-1], len(places)))


def _joined(node: onnx.NodeProto, given: Given, tensors: dict[str, Tensor]) -> Tensor:
    """Several rows of numbers as one."""
    for name in node.input:
        if len(tensors[name].shape) > 1 and tensors[name].shape[0] != 1:
            # The runtime would make as many rows of it, and every tree after it would look at each of them.
            raise ValueError(
                f"it joins a tensor of shape {list(tensors[name].shape)}: it takes one row, [1, columns]"
            )
    widths = [tensors[name].size for name in node.input]
    if list(given.get("inputdimensions", ())) != widths:
        raise ValueError(f"inputdimensions must be {widths}, the widths of what it joins")
    return Tensor("float", (1, sum(widths)))


def _check_trees(given: Given, row: Tensor, classes: int, side: str, bases: list[int]) -> None:
    """Whether trees look at columns of the row alone, and at how many nodes for one row."""
    if row.kind == "string":
        raise ValueError("it is given text: it takes numbers")
    modes = np.asarray(given.get("nodes_modes", ()), dtype=object)
    whole = {name: _whole(given, f"nodes_{name}") for name in ("treeids", "nodeids", "featureids")}
    whole |= {name: _whole(given, f"nodes_{name}") for name in ("truenodeids", "falsenodeids")}
    values = [len(_either(given, "nodes_values")), *map(len, whole.values())]
    # What may be left away, but not be too short.
    optional = [len(_either(given, "nodes_hitrates")), len(given.get("nodes_missing_value_tracks_true", ()))]
    if not len(modes) or {*values, *filter(None, optional)} != {len(modes)} or not set(modes) <= set(MODES):
        raise ValueError(
            "lists of its nodes must be equally long and of known kinds: convert the model again"
        )
    _check_places(whole["featureids"], row.shape[1], "column")
    ends = [_whole(given, f"{side}_{name}") for name in ("ids", "treeids", "nodeids")]
    weights = len(_either(given, f"{side}_weights"))
    if not weights or any(len(one) != weights for one in ends):
        raise ValueError(f"lists of its {side} weights must be equally long, and not empty: convert it again")
    _check_places(ends[0], classes, side)
    base = _either(given, "base_values")
    if len(base) not in bases:
        raise ValueError(f"base_values has {len(base)} numbers: it must have {bases[0]}, or none")


def _check_places(places: Any, number: int, what: str) -> None:
    wrong = places[(places < 0) | (places >= number)]
    if len(wrong):
        raise ValueError(
            f"a tree is about {what} {int(wrong[0])}, there are {number}, counted from 0: convert it again"
        )


def _whole(given: Given, name: str) -> Any:
    return np.asarray(given.get(name, ()), dtype=np.int64)


def _either(given: Given, name: str) -> Any:
    """Numbers that may be written as floats or as a tensor, but not as both."""
    if name in given and f"{name}_as_tensor" in given:
        raise ValueError(f"{name} is there twice: convert the model again")
    return given.get(name, given.get(f"{name}_as_tensor", ()))


def comparisons(node: onnx.NodeProto) -> int:
    """How many nodes of trees one row may come by at most, or too many: the longest paths of all, together.

    All trees are walked at once, level by level: a tree is as deep as there are levels that it is in.

    Args:
        node: An operator that `learned` has let pass.

    Raises:
        ValueError: Trees are not trees.
    """
    given = {one.name: _value(one) for one in node.attribute if one.name.startswith("nodes_")}
    if not given:
        return 0
    nodes = {name.removeprefix("nodes_"): _whole(given, name) for name in given if name.endswith("ids")}
    modes = np.asarray(given["nodes_modes"], dtype=object)
    keys = np.stack([nodes["treeids"], nodes["nodeids"]], axis=1)
    unique, places = np.unique(keys, axis=0, return_inverse=True)
    if len(unique) != len(keys):
        raise ValueError("two nodes of a tree have the same number: convert the model again")
    order = np.argsort(places.ravel())
    branches = modes != b"LEAF"
    _, trees = np.unique(nodes["treeids"], return_inverse=True)
    below = {}
    for side in ("truenodeids", "falsenodeids"):
        wanted = np.stack([nodes["treeids"], nodes[side]], axis=1)[branches]
        found, at = np.unique(np.concatenate([unique, wanted]), axis=0, return_inverse=True)
        if len(found) != len(unique):
            raise ValueError("a node leads to one that is not in its tree: convert the model again")
        below[side] = np.zeros(len(keys), dtype=np.int64)
        below[side][branches] = order[at.ravel()[len(unique) :]]
    # Whichever node a tree is entered by: no path is longer than the longest from any of these.
    level = np.setdiff1d(np.arange(len(keys)), np.concatenate([one[branches] for one in below.values()]))
    firsts = np.unique(nodes["treeids"], return_index=True)[1]
    level = np.union1d(level, firsts)
    total = 0
    while len(level) and total <= MOST_COMPARISONS:
        total += len(np.unique(trees[level]))
        level = level[branches[level]]
        level = np.unique(np.concatenate([one[level] for one in below.values()]))
    return total


def _fit(name: str, values: Any, *lengths: int) -> None:
    if len(values) not in lengths:
        raise ValueError(
            f"{name} has {len(values)} numbers: it must have {lengths[0]} for a row of this width"
        )


def _value(one: onnx.AttributeProto) -> Any:
    """An attribute's value; a tensor as a flat array."""
    value = onnx.helper.get_attribute_value(one)
    return numpy_helper.to_array(value).ravel() if isinstance(value, TensorProto) else value

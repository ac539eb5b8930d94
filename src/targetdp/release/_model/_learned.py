"""Operators of ai.onnx.ml: what they make of one row, and whether their tables fit its width.

A runtime that trusts these tables reads beyond the row, where another person's numbers may be. So every
length and every place is compared with the width of the row here.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

MOST_COMPARISONS = 50_000
"""Of one row with nodes of trees, at most: the longest paths of all trees together."""
LEAF = b"LEAF"


@dataclass(frozen=True)
class Tensor:
    """Kind and shape of a tensor."""

    kind: str
    shape: tuple[int, ...]


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
    if node.op_type == "LabelEncoder":
        return [_encoded(given, row)]
    if node.op_type == "ArrayFeatureExtractor":
        return [_extracted(node, row, constants)]
    if len(row.shape) != 2 or row.shape[0] != 1:
        raise ValueError(f"it is given a tensor of shape {list(row.shape)}: it takes one row, [1, columns]")
    width = row.shape[1]
    if node.op_type == "OneHotEncoder":
        categories = len(given.get("cats_int64s", ())) + len(given.get("cats_strings", ()))
        return [Tensor("float", (*row.shape, categories))]
    if node.op_type in {"Scaler", "Imputer", "Normalizer", "Binarizer"}:
        for name in ("offset", "scale", "imputed_value_floats", "imputed_value_int64s"):
            if name in given and len(given[name]) not in {1, width}:
                raise ValueError(
                    f"{name} has {len(given[name])} numbers for {width} columns: give one for each"
                )
        return [Tensor(row.kind if node.op_type in {"Imputer", "Binarizer"} else "float", row.shape)]
    if row.kind == "string":
        raise ValueError("it is given text: it takes numbers")
    if node.op_type == "LinearRegressor":
        targets = int(given.get("targets", 1))
        _fit("coefficients", given.get("coefficients", ()), targets * width)
        _fit("intercepts", given.get("intercepts", ()), targets, 0)
        return [Tensor("float", (1, targets))]
    if node.op_type == "TreeEnsembleRegressor":
        targets = int(given.get("n_targets", 1))
        _check_trees(given, width, targets, "target", [targets, 0])
        return [Tensor("double" if row.kind == "double" else "float", (1, targets))]
    return _classified(node.op_type, given, width)


def _classified(operator: str, given: dict[str, Any], width: int) -> list[Tensor]:
    """Of a classifier: the class, and a number for each class."""
    texts = given.get("classlabels_strings", ())
    numbers = given.get("classlabels_int64s", given.get("classlabels_ints", ()))
    classes = max(len(texts), len(numbers))
    if classes < 1 or (len(texts) and len(numbers)):
        raise ValueError("it must have labels of its classes, either texts or whole numbers")
    if operator == "LinearClassifier":
        rows = len(given.get("intercepts", ()))
        if rows != classes and (rows, classes) != (1, 2):
            raise ValueError(f"intercepts has {rows} numbers for {classes} classes: give one for each")
        _fit("coefficients", given.get("coefficients", ()), rows * width)
    else:
        _check_trees(given, width, classes, "class", [classes, 0, *([1] if classes == 2 else [])])
    return [Tensor("string" if len(texts) else "int64", (1,)), Tensor("float", (1, classes))]


def _encoded(given: dict[str, Any], row: Tensor) -> Tensor:
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
        raise ValueError(
            f"it takes places that are not in the row, which has {width}: convert the model again"
        )
    return Tensor(row.kind, (1, len(places)) if len(row.shape) == 1 else (*row.shape[:-1], len(places)))


def _joined(node: onnx.NodeProto, given: dict[str, Any], tensors: dict[str, Tensor]) -> Tensor:
    """Several rows of numbers as one."""
    widths = [prod(tensors[name].shape) for name in node.input]
    if list(given.get("inputdimensions", ())) != widths:
        raise ValueError(f"inputdimensions must be {widths}, the widths of what it joins")
    return Tensor("float", (1, sum(widths)))


def _check_trees(given: dict[str, Any], width: int, classes: int, side: str, bases: list[int]) -> None:
    """Whether trees look at columns of the row alone, and at how many nodes for one row."""
    modes = np.asarray(given.get("nodes_modes", ()), dtype=object)
    nodes = len(modes)
    whole = {
        name: np.asarray(given.get(f"nodes_{name}", ()), dtype=np.int64)
        for name in ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    }
    values = given.get("nodes_values_as_tensor", given.get("nodes_values", ()))
    if not nodes or {len(one) for one in whole.values()} | {len(values)} != {nodes}:
        raise ValueError("lists of its nodes must be equally long, and not empty: convert the model again")
    features = whole["featureids"]
    if features.min() < 0 or features.max() >= width:
        raise ValueError(
            f"a tree looks at column {int(features.max())} of a row that has {width}, counted from 0: convert "
            "the model again"
        )
    ends = {
        name: np.asarray(given.get(f"{side}_{name}", ()), dtype=np.int64)
        for name in ("ids", "treeids", "nodeids")
    }
    weights = given.get(f"{side}_weights_as_tensor", given.get(f"{side}_weights", ()))
    if {len(one) for one in ends.values()} != {len(weights)} or not len(weights):
        raise ValueError(f"lists of its {side} weights must be equally long, and not empty: convert it again")
    if ends["ids"].min() < 0 or ends["ids"].max() >= classes:
        raise ValueError(f"a leaf is of {side} {int(ends['ids'].max())}, there are {classes}, counted from 0")
    base = given.get("base_values_as_tensor", given.get("base_values", ()))
    if len(base) not in bases:
        raise ValueError(f"base_values has {len(base)} numbers: it must have {bases[0]}, or none")
    if _comparisons(whole, modes) > MOST_COMPARISONS:
        raise ValueError(
            f"its trees may compare one row more than {MOST_COMPARISONS:,} times (the longest paths of all "
            "together): limit their depth or number"
        )


def _comparisons(nodes: dict[str, Any], modes: Any) -> int:
    """How many nodes one row may come by at most, or too many: the longest path of each tree, together.

    All trees are walked at once, level by level: a tree is as deep as there are levels that it is in.
    """
    keys = np.stack([nodes["treeids"], nodes["nodeids"]], axis=1)
    unique, places = np.unique(keys, axis=0, return_inverse=True)
    if len(unique) != len(keys):
        raise ValueError("two nodes of a tree have the same number: convert the model again")
    order = np.argsort(places.ravel())
    branches = modes != LEAF
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

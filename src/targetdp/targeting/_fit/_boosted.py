"""Boosted trees: scikit-learn's, or LightGBM's where it is installed. Leaves of 20 people, rounded cuts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any

import numpy as np

from targetdp._core import Floats, Integers
from targetdp.programs import Task
from targetdp.targeting._fit._kinds import FittedScore, ScoreKind, rounded, rounded_cuts
from targetdp.targeting._fit._trees import ScoreTree, ScoreTrees

LEAST_LEAF = 20
"""People in each leaf, at least: fewer, and labels of people can be read off it."""
_MOST_CUTS = 64
"""Of a column: trees choose among these places, which are rounded."""
_RATE, _DEPTH, _PART = 0.05, 3, 0.5
_FORESTS = 3
"""Fits that the mean is taken of: each meets other people first."""
_KEPT_OF_LABELS = 6
"""Decimals of a target that a seed is made of: machines may differ in the last ones."""
_LEAVES = 2**_DEPTH


@dataclass(frozen=True, eq=False)
class BoostedFit(FittedScore):
    """A sum of trees."""

    trees: ScoreTrees = field(repr=False)
    middle: float = 0.0

    def of_rows(self, X: Floats) -> Floats:
        """See `FittedScore.of_rows`; a gap is above every number."""
        return self.trees.of_rows(X)

    def asked(self, features: Sequence[str]) -> dict[str, Any]:
        """See `FittedScore.asked`."""
        return {"model": sha256(self._file).hexdigest(), "columns": tuple(features)}

    def of_size(self, size: int) -> "BoostedFit":
        """The first rounds only."""
        kept = self.trees.trees[: size * _FORESTS]
        return BoostedFit(ScoreTrees(self.trees.columns, self.trees.base, kept))

    def file(self) -> bytes:
        """See `FittedScore.file`."""
        return self._file

    @cached_property
    def _file(self) -> bytes:
        return self.trees.onnx()


class Boosted(ScoreKind):
    """A sum of small trees, each fitted to what those before it have left over."""

    name, any_B, request_field, order = "boosted", False, "model", 2
    sizes = (50, 100, 150, 200, 300)

    def fit(self, X: Floats, y: Floats, task: Task, weights: Floats, seed: int) -> BoostedFit:
        """See `ScoreKind.fit`."""
        cuts = [rounded_cuts(column, _MOST_CUTS, LEAST_LEAF).astype(np.float32) for column in X.T]
        if not any(len(one) for one in cuts):  # all rows are alike
            mean = float(np.average(y, weights=weights))
            constant = math.log(mean / (1 - mean)) if task == "classification" else mean
            return BoostedFit(ScoreTrees(X.shape[1], rounded(constant, 1.0), (_leaf(),)))
        grow = _lightgbm if find_spec("lightgbm") is not None else _sklearn
        places = _places(X, cuts)
        forests, base = [], 0.0
        for own in _own_seeds(X, y, weights, seed):
            trees, constant = grow(places, y, task, weights, own)
            base += constant / _FORESTS
            forests.append([_with_cuts(tree, cuts, 1 / _FORESTS) for tree in trees])
        # Round by round, so that the first trees are a fit that was stopped earlier.
        kept = tuple(tree for together in zip_longest(*forests) for tree in together if tree is not None)
        return BoostedFit(ScoreTrees(X.shape[1], rounded(base, 1.0), kept))

    def why_not(self) -> str | None:
        """Its file is written by the package onnx."""
        if find_spec("onnx") is None:
            return "the package that writes its file is missing: pip install 'targetdp[models]'"
        return None


Singles = np.ndarray[Any, np.dtype[np.float32]]


def _own_seeds(X: Floats, y: Floats, weights: Floats, seed: int) -> list[int]:
    """A seed for each forest that nobody knows who does not know all labels.

    Whoever has the rows, and knows which people each tree was fitted to, has a linear equation in their
    labels for each leaf, and more equations than labels: she solves for all of them. The same people with
    the same labels get the same seeds, so that a fit can be repeated by whoever has both.
    """
    state = sha256(f"{X.shape} {seed}".encode())
    for one in (X, np.round(y, _KEPT_OF_LABELS) + 0.0, weights):
        state.update(np.ascontiguousarray(one, dtype=np.float64).tobytes())
    words = np.frombuffer(state.digest(), dtype="<u4")[:_FORESTS]
    return [int(word) >> 1 for word in words]  # 31 bits are what both libraries take


def _places(X: Floats, cuts: Sequence[Singles]) -> Singles:
    """How many cuts each value is above, a gap all of them: a value is at most cut k if its place is."""
    rows = X.astype(np.float32)
    return np.stack(
        [np.searchsorted(at, column, side="left") for at, column in zip(cuts, rows.T, strict=True)], axis=1
    ).astype(np.float32)


def _with_cuts(tree: ScoreTree, cuts: Sequence[Singles], share: float) -> ScoreTree:
    """A tree over places as one over the columns themselves; its values are rounded, times a share."""
    threshold = np.zeros(len(tree.column), dtype=np.float32)
    for node in np.flatnonzero(tree.column >= 0):
        threshold[node] = cuts[tree.column[node]][int(np.floor(tree.threshold[node]))]
    value = (tree.value * share).astype(np.float32).astype(np.float64)
    return ScoreTree(tree.column, threshold, tree.left, tree.right, value)


def _leaf() -> ScoreTree:
    return ScoreTree(
        np.array([-1]),
        np.zeros(1, dtype=np.float32),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1),
    )


def _sklearn(
    places: Singles, y: Floats, task: Task, weights: Floats, seed: int
) -> tuple[list[ScoreTree], float]:
    """Trees over places, in the order of their growth, and the constant that they are added to."""
    from sklearn.ensemble import (  # noqa: PLC0415 (slow to import)
        GradientBoostingClassifier,
        GradientBoostingRegressor,
    )

    kind = GradientBoostingClassifier if task == "classification" else GradientBoostingRegressor
    fit = kind(
        learning_rate=_RATE, n_estimators=Boosted.sizes[-1], max_depth=_DEPTH, min_samples_leaf=LEAST_LEAF,
        subsample=_PART, max_features=_PART, random_state=seed,
    ).fit(places, y, weights)  # fmt: skip
    first = fit.decision_function(places[:1]) if task == "classification" else fit.predict(places[:1])
    trees = [_of_sklearn(one.tree_) for one in fit.estimators_[:, 0]]
    # What all trees together leave of a prediction is the constant.
    return trees, float(first[0]) - sum(float(tree.of_rows(places[:1])[0]) for tree in trees)


def _of_sklearn(tree: Any) -> ScoreTree:
    column = np.where(tree.children_left < 0, -1, tree.feature).astype(np.int64)
    left, right = (np.maximum(one, 0).astype(np.int64) for one in (tree.children_left, tree.children_right))
    value = _RATE * tree.value[:, 0, 0]
    return ScoreTree(column, tree.threshold.astype(np.float32), left, right, _rounded_leaves(value))


def _lightgbm(
    places: Singles, y: Floats, task: Task, weights: Floats, seed: int
) -> tuple[list[ScoreTree], float]:
    """The same by LightGBM."""
    from lightgbm import LGBMClassifier, LGBMRegressor  # noqa: PLC0415 (an extra)

    kind = LGBMClassifier if task == "classification" else LGBMRegressor
    fit = kind(
        learning_rate=_RATE, n_estimators=Boosted.sizes[-1], max_depth=_DEPTH, num_leaves=_LEAVES,
        min_child_samples=LEAST_LEAF, subsample=_PART, subsample_freq=1, colsample_bytree=_PART,
        random_state=seed, n_jobs=1, deterministic=True, force_row_wise=True, verbosity=-1,
    ).fit(places, y, sample_weight=weights)  # fmt: skip
    found = [_with_large_leaves(one["tree_structure"]) for one in fit.booster_.dump_model()["tree_info"]]
    values = [_leaf_values(tree) for tree in found]
    # The first tree has the constant in it, which would leave its values few digits.
    constant = float(np.mean(values[0]))
    return [_of_lightgbm(tree, 0.0 if place else constant) for place, tree in enumerate(found)], constant


def _with_large_leaves(node: Mapping[str, Any]) -> dict[str, Any]:
    """A tree of LightGBM's without leaves of too few people: where there is one, its parent is the leaf.

    LightGBM itself counts people by their curvature while it looks for splits. That is right only where each
    has the same: not for log-odds, and not where people count otherwise.
    """
    if "split_feature" not in node:
        return dict(node)
    both = [_with_large_leaves(node[side]) for side in ("left_child", "right_child")]
    if any(child.get("leaf_count", LEAST_LEAF) < LEAST_LEAF for child in both):
        ends = [end for child in both for end in _ends(child)]
        weight = sum(end["leaf_weight"] for end in ends)
        total = sum(end["leaf_weight"] * end["leaf_value"] for end in ends)
        people = sum(end["leaf_count"] for end in ends)
        return {"leaf_value": total / weight, "leaf_weight": weight, "leaf_count": people}
    return dict(node) | {"left_child": both[0], "right_child": both[1]}


def _ends(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The leaves of a tree of LightGBM's."""
    if "split_feature" not in node:
        return [node]
    return [end for side in ("left_child", "right_child") for end in _ends(node[side])]


def _leaf_values(node: Mapping[str, Any]) -> list[float]:
    return [float(end.get("leaf_value", 0.0)) for end in _ends(node)]


def _of_lightgbm(root: Mapping[str, Any], constant: float) -> ScoreTree:
    """One of its trees, less a constant."""
    nodes: list[tuple[int, float, int, int, float]] = []

    def add(node: Mapping[str, Any]) -> int:
        place = len(nodes)
        nodes.append((-1, 0.0, 0, 0, float(node.get("leaf_value", 0.0)) - constant))
        if "split_feature" in node:
            left, right = add(node["left_child"]), add(node["right_child"])
            nodes[place] = (int(node["split_feature"]), float(node["threshold"]), left, right, 0.0)
        return place

    add(root)
    column, threshold, left, right, value = (np.array(one) for one in zip(*nodes, strict=True))
    whole: list[Integers] = [one.astype(np.int64) for one in (column, left, right)]
    return ScoreTree(whole[0], threshold.astype(np.float32), whole[1], whole[2], _rounded_leaves(value))


def _rounded_leaves(values: Floats) -> Floats:
    largest = float(np.abs(values).max())
    places = 0 if largest == 0 else 2 - math.floor(math.log10(largest))
    return np.round(values, places)

"""Rows in the order of a balanced tree of boxes, so that searches can skip most of them.

Rows are halved at the median of the widest column until a few are left: a leaf. Each node keeps the box
around its rows. Inside a leaf values lie column by column, so that the processor compares several rows at
once, and wide columns come first, since they tell the most rows apart. Nodes are numbered as in a heap:
node i has children 2i + 1 and 2i + 2, and all leaves lie at one depth.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, kernel

# Bringing the rows below a rank to the front, without sorting.


@kernel
def select(key: NDArray[Any], order: Integers, left: int, right: int, place: int) -> None:
    """Reorder rows from ``left`` to ``right`` so that no key before ``place`` is above any from it on.

    ``key`` is by row, ``order`` names rows (Hoare's quickselect). Ties are shared out evenly.
    """
    while left < right:
        a, b, c = key[order[left]], key[order[(left + right) // 2]], key[order[right]]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = left, right
        while i <= j:
            while key[order[i]] < pivot:
                i += 1
            while key[order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if place <= j:
            right = j
        elif place >= i:
            left = i
        else:
            return


@dataclass(frozen=True)
class Tree:
    """The rows of a table in the tree's ``order``, leaf after leaf, each leaf column by column.

    Node i holds places ``begins[i]`` to ``begins[i] + sizes[i]`` of the order; ``low`` and ``high`` are its
    corners. A leaf with m rows from place b on has its values at b·d to (b + m)·d of ``values``, column
    ``column_order[leaf, 0]`` first.
    """

    order: Integers
    values: Floats
    column_order: Integers
    begins: Integers
    sizes: Integers
    low: Floats
    high: Floats

    @property
    def leaf_rows(self) -> int:
        """Rows in the largest leaf."""
        return int(self.sizes.min()) + 1  # leaves differ by one row at most


def grow(points: Floats, leaf: int) -> Tree:
    """A tree over the rows of a table, with at most ``leaf`` rows in each of its leaves."""
    n, d = points.shape
    depth = 0
    while -(-n // 2**depth) > leaf:
        depth += 1
    nodes = 2 ** (depth + 1) - 1
    order = np.arange(n)
    begins, sizes = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    sizes[0] = n
    _halve(points, order, begins, sizes)
    low, high = np.full((nodes, d), np.inf), np.full((nodes, d), -np.inf)
    _boxes(points, order, begins, sizes, low, high)
    leaves = nodes // 2
    column_order = np.argsort(low[leaves:] - high[leaves:], axis=1, kind="stable")
    values = np.empty(n * d)
    _lay_out(points, order, begins[leaves:], sizes[leaves:], column_order, values)
    return Tree(order, values, column_order, begins, sizes, low, high)


def homes(tree: Tree, queries: Floats) -> Integers:
    """Queries in an order in which neighbors look into much the same leaves."""
    at = np.empty(len(queries), dtype=np.int64)
    _descend(queries, tree.low, tree.high, at)
    return np.argsort(at, kind="stable")


@kernel
def _halve(points: Floats, order: Integers, begins: Integers, sizes: Integers) -> None:
    """Cut every inner node at the median of its widest column."""
    d = points.shape[1]
    low, high = np.empty(d), np.empty(d)
    for node in range(len(begins) // 2):
        begin, size = begins[node], sizes[node]
        low[:] = np.inf
        high[:] = -np.inf
        for i in range(begin, begin + size):
            for j in range(d):
                x = points[order[i], j]
                low[j] = min(low[j], x)
                high[j] = max(high[j], x)
        widest = 0
        for j in range(1, d):
            if high[j] - low[j] > high[widest] - low[widest]:
                widest = j
        half = size // 2
        select(points[:, widest], order, begin, begin + size - 1, begin + half)
        begins[2 * node + 1], sizes[2 * node + 1] = begin, half
        begins[2 * node + 2], sizes[2 * node + 2] = begin + half, size - half


@kernel
def _boxes(
    points: Floats, order: Integers, begins: Integers, sizes: Integers, low: Floats, high: Floats
) -> None:
    """Corners of leaves from their rows, of inner nodes from their children."""
    first_leaf, d = len(begins) // 2, points.shape[1]
    for node in range(len(begins) - 1, -1, -1):
        if node < first_leaf:
            for j in range(d):
                low[node, j] = min(low[2 * node + 1, j], low[2 * node + 2, j])
                high[node, j] = max(high[2 * node + 1, j], high[2 * node + 2, j])
        else:
            for i in order[begins[node] : begins[node] + sizes[node]]:
                for j in range(d):
                    low[node, j] = min(low[node, j], points[i, j])
                    high[node, j] = max(high[node, j], points[i, j])


@kernel
def _lay_out(
    points: Floats, order: Integers, begins: Integers, sizes: Integers, column_order: Integers, values: Floats
) -> None:
    """Copy the rows of each leaf, column by column."""
    d = points.shape[1]
    for leaf in range(len(begins)):
        begin, size = begins[leaf], sizes[leaf]
        for place in range(d):
            j = column_order[leaf, place]
            for i in range(size):
                values[begin * d + place * size + i] = points[order[begin + i], j]


@kernel
def _descend(queries: Floats, low: Floats, high: Floats, at: Integers) -> None:
    """The leaf that a query reaches by always taking the nearer child."""
    first_leaf, d = len(low) // 2, queries.shape[1]
    for q in range(len(queries)):
        node = 0
        while node < first_leaf:
            near, best = 0, np.inf
            for child in (2 * node + 1, 2 * node + 2):
                away = 0.0
                for j in range(d):
                    x = queries[q, j]
                    gap = max(low[child, j] - x, x - high[child, j], 0.0)
                    away += gap * gap
                if away < best:
                    near, best = child, away
            node = near if near else 2 * node + 1
        at[q] = node

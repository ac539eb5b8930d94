"""Rows in the order of a balanced tree of boxes, so that searches can skip most of them.

Rows are halved at the median of the widest column until a few are left: a leaf. Each node keeps the box
around its rows. Inside a leaf values lie column by column, so that the processor compares several rows at
once, and wide columns come first, since they tell the most rows apart. Nodes are numbered as in a heap:
node i has children 2i + 1 and 2i + 2, and all leaves lie at one depth.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, Progress, in_threads, kernel

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


class Tree(NamedTuple):
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
    low, high = np.full((nodes, d), np.inf), np.full((nodes, d), -np.inf)
    _halve(points, order, begins, sizes, low, high)
    leaves = nodes // 2
    column_order = np.argsort(low[leaves:] - high[leaves:], axis=1, kind="stable")
    values = np.empty(n * d)
    _lay_out(points, order, begins[leaves:], sizes[leaves:], column_order, values)
    return Tree(order, values, column_order, begins, sizes, low, high)


@kernel
def _halve(
    points: Floats, order: Integers, begins: Integers, sizes: Integers, low: Floats, high: Floats
) -> None:
    """Find the corners of every node, and cut every inner one at the median of its widest column."""
    first_leaf, d = len(begins) // 2, points.shape[1]
    for node in range(len(begins)):
        begin, size = begins[node], sizes[node]
        for i in order[begin : begin + size]:
            for j in range(d):
                low[node, j] = min(low[node, j], points[i, j])
                high[node, j] = max(high[node, j], points[i, j])
        if node < first_leaf:
            widest, half = np.argmax(high[node] - low[node]), size // 2
            select(points[:, widest], order, begin, begin + size - 1, begin + half)
            begins[2 * node + 1], sizes[2 * node + 1] = begin, half
            begins[2 * node + 2], sizes[2 * node + 2] = begin + half, size - half


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


# How many points lie within a given distance of each query, without looking at most of them.

LEAF = 128
"""Rows in a leaf, at most."""

PIECE = 1_000
"""Queries that a thread takes at a time."""

_BORDER = 1e-12
"""Relative, and per thousand columns: squared distances this near a radius are computed again in the stated
order. Sums of the same terms in other orders differ by 2d·2⁻⁵³ of their value at most, far less."""


def count_within(
    points: Floats, queries: Floats, squared: Floats, *, limit: int | None = None, progress: Progress
) -> tuple[Integers, Integers]:
    """For each query the number of points strictly closer than its radius, and of those exactly at it.

    Distances are Euclidean and compared as squares: ``squared`` has one squared radius for each query.
    A squared distance is the sum of squared differences, added up from the first column to the last in
    float64, so that a radius computed that way by the caller meets its own point exactly.
    With a ``limit``, a query stops once more than ``limit`` points are closer: its two counts then say just
    that.
    """
    tree = grow(points, LEAF)
    order = grow(queries, LEAF).order  # neighbors look into much the same leaves
    closer, equal = np.empty(len(queries), dtype=np.int64), np.empty(len(queries), dtype=np.int64)
    most = len(points) if limit is None else limit
    margin = _BORDER * (1 + points.shape[1] / 1000)

    def work(begin: int, end: int) -> None:
        sums = np.empty(tree.leaf_rows)
        _count(points, queries, order[begin:end], tree, squared, most, margin, sums, closer, equal)

    in_threads(work, len(queries), PIECE, progress)
    return closer, equal


@kernel
def squared_distances(a: Floats, b: Floats) -> Floats:
    """Squared distance of each row of one table to the same row of another, in the stated order."""
    out = np.empty(len(a))
    for i in range(len(a)):
        out[i] = _squared(a[i], b[i])
    return out


@kernel
def _count(
    points: Floats, queries: Floats, mine: Integers, tree: Tree, squared: Floats, most: int, margin: float,
    sums: Floats, closer: Integers, equal: Integers,
) -> None:  # fmt: skip
    low, high = tree.low, tree.high
    d, first_leaf = queries.shape[1], len(low) // 2
    stack = np.empty(128, dtype=np.int64)
    for q in mine:
        query, radius = queries[q], squared[q]
        surely, hardly = radius * (1 - margin), radius * (1 + margin)
        inside, border = 0, 0
        depth = 1
        stack[0] = 0
        while depth > 0 and inside <= most:
            depth -= 1
            node = stack[depth]
            nearest, farthest = _reach(query, low[node], high[node])
            if nearest > hardly:
                continue
            if farthest < surely:
                inside += tree.sizes[node]
                continue
            if node < first_leaf:
                # The child whose middle is nearer is looked at first: it may reach the limit.
                near = 2 * node + 1
                if _middle(query, low[near + 1], high[near + 1]) < _middle(query, low[near], high[near]):
                    near += 1
                stack[depth], stack[depth + 1] = 4 * node + 3 - near, near
                depth += 2
                continue
            begin, rows = tree.begins[node], sums[: tree.sizes[node]]
            block = tree.values[begin * d : (begin + len(rows)) * d]
            _add_up(query, block, tree.column_order[node - first_leaf], rows)
            below, not_above = 0, 0
            for i in range(len(rows)):
                below += rows[i] < surely
                not_above += rows[i] <= hardly
            inside += below
            if below < not_above:
                for i in range(len(rows)):
                    if surely <= rows[i] <= hardly:
                        exact = _squared(points[tree.order[begin + i]], query)
                        inside += exact < radius
                        border += exact == radius
        closer[q], equal[q] = inside, border


@kernel
def _add_up(query: Floats, block: Floats, columns: Integers, sums: Floats) -> None:
    """Squared distances from a query to the rows of a leaf, up to rounding."""
    m = len(sums)
    sums[:] = 0.0
    for place in range(len(columns)):
        x, column = query[columns[place]], block[place * m : (place + 1) * m]
        for i in range(m):
            gap = column[i] - x
            sums[i] += gap * gap


@kernel
def _squared(a: Floats, b: Floats) -> float:
    total = 0.0
    for j in range(len(a)):
        gap = a[j] - b[j]
        total += gap * gap
    return total


@kernel
def _reach(query: Floats, low: Floats, high: Floats) -> tuple[float, float]:
    """Squared distances from a query to the nearest and the farthest place of a box."""
    nearest, farthest = 0.0, 0.0
    for j in range(len(query)):
        below, above = low[j] - query[j], query[j] - high[j]
        away = max(below, above, 0.0)
        across = max(-below, -above)
        nearest += away * away
        farthest += across * across
    return nearest, farthest


@kernel
def _middle(query: Floats, low: Floats, high: Floats) -> float:
    """Squared distance from a query to the middle of a box."""
    total = 0.0
    for j in range(len(query)):
        gap = 0.5 * (low[j] + high[j]) - query[j]
        total += gap * gap
    return total

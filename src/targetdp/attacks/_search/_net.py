"""Boxes of several sizes around each query: which of them hold exactly one point, and which one.

A box of size c holds exactly one point if d₁ ≤ c < d₂, the two smallest distances (largest difference over
columns) from the query. Only sizes below the second distance found so far can still do it, so a search never
looks farther than the largest of those: closer than a search for the two neighbors themselves would.

Most rows are ruled out in single precision, of which a processor compares twice as many at once; rounding
errs on the side of looking closer: distances themselves are taken in full precision.
"""

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, Progress, in_threads, kernel
from targetdp.attacks._search._tree import grow, homes

Rough = NDArray[np.float32]
Marks = NDArray[np.int32]

LEAF = 256
"""Rows in a leaf, at most."""

PIECE = 2_000
"""Queries that a thread takes at a time."""

_LARGEST = float(np.finfo(np.float32).max)
"""What is larger is brought down to it, on both sides: no two values get farther apart."""

GLANCE = 4
"""Columns that are compared before asking whether any row of a leaf is still in the box."""


def alone_in_boxes(points: Floats, queries: Floats, sizes: Floats, progress: Progress) -> Integers:
    """For each query (row) and size (column, ascending) the one point in that box, or −1 if not just one."""
    tree = grow(points, LEAF)
    order = homes(tree, queries)
    isolated = np.empty((len(queries), len(sizes)), dtype=np.int64)
    rough = np.clip(tree.values, -_LARGEST, _LARGEST).astype(np.float32)
    rooms = (tree.values, rough, tree.column_order, tree.begins, tree.sizes, tree.low, tree.high)

    def work(begin: int, end: int) -> None:
        outside = np.empty(tree.leaf_rows, dtype=np.int32)
        _search(queries, order[begin:end], *rooms, sizes, outside, isolated)

    in_threads(work, len(queries), PIECE, progress)
    alone = isolated >= 0
    isolated[alone] = tree.order[isolated[alone]]
    return isolated


@kernel
def _search(  # noqa: PLR0912 (one walk through a tree)
    queries: Floats, mine: Integers, values: Floats, rough: Rough, column_order: Integers, begins: Integers,
    lengths: Integers, low: Floats, high: Floats, sizes: Floats, outside: Marks, isolated: Integers,
) -> None:  # fmt: skip
    d, first_leaf = queries.shape[1], len(begins) // 2
    stack, gaps = np.empty(128, dtype=np.int64), np.empty(128)
    for q in mine:
        query = queries[q]
        one, two, nearest = np.inf, np.inf, -1
        alive = len(sizes) - 1  # sizes up to this one may still hold exactly one point
        depth = 1
        stack[0], gaps[0] = 0, 0.0
        while depth > 0 and alive >= 0:
            depth -= 1
            node, bound = stack[depth], sizes[alive]
            if gaps[depth] > bound:
                continue
            if node < first_leaf:
                near, far = 2 * node + 1, 2 * node + 2
                to_near, to_far = _gap(query, low[near], high[near]), _gap(query, low[far], high[far])
                if to_near > to_far:
                    near, far, to_near, to_far = far, near, to_far, to_near
                if to_far <= bound:
                    stack[depth], gaps[depth] = far, to_far
                    depth += 1
                if to_near <= bound:
                    stack[depth], gaps[depth] = near, to_near
                    depth += 1
                continue
            begin, columns = begins[node], column_order[node - first_leaf]
            rows = outside[: lengths[node]]
            if not _any_inside(query, rough[begin * d : (begin + len(rows)) * d], columns, bound, rows):
                continue
            block = values[begin * d : (begin + len(rows)) * d]
            for i in range(len(rows)):
                if rows[i] == 0:
                    apart = 0.0
                    for place in range(d):
                        apart = max(apart, abs(block[place * len(rows) + i] - query[columns[place]]))
                    if apart < one:
                        one, two, nearest = apart, one, begin + i
                    elif apart < two:
                        two = apart
            while alive >= 0 and sizes[alive] >= two:
                alive -= 1
        for k in range(len(sizes)):
            isolated[q, k] = nearest if one <= sizes[k] < two else -1


@kernel
def _any_inside(query: Floats, block: Rough, columns: Integers, bound: float, outside: Marks) -> bool:
    """Mark rows of a leaf that lie outside the box; stop as soon as all do.

    A value x in the box is at most |query| + bound, so that rounding both, and their difference, to 24 bits
    moves the difference by less than 2⁻²² of |query| + bound: no row in the box is marked.
    """
    d, m = len(columns), len(outside)
    outside[:] = 0
    for first in range(0, d, GLANCE):
        for place in range(first, min(first + GLANCE, d)):
            x, column = query[columns[place]], block[place * m : (place + 1) * m]
            middle = np.float32(min(max(x, -_LARGEST), _LARGEST))
            reach = np.float32(bound + 2.0**-21 * (abs(x) + bound) + 2.0**-140)
            for i in range(m):
                outside[i] |= abs(column[i] - middle) > reach
        inside = 0
        for i in range(m):
            inside += outside[i] == 0
        if inside == 0:
            return False
    return True


@kernel
def _gap(query: Floats, low: Floats, high: Floats) -> float:
    """How far a query is from a box, in the largest difference over columns."""
    gap = 0.0
    for j in range(len(query)):
        below, above = low[j] - query[j], query[j] - high[j]
        away = below if below > above else above
        gap = away if away > gap else gap
    return gap

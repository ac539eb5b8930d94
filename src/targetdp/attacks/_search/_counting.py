"""How many points lie within a given distance of each query, without looking at most of them."""

import numpy as np

from targetdp._core import Floats, Integers, Progress, in_threads, kernel
from targetdp.attacks._search._tree import grow, homes

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
    order = homes(tree, queries)
    closer, equal = np.empty(len(queries), dtype=np.int64), np.empty(len(queries), dtype=np.int64)
    most = len(points) if limit is None else limit
    margin = _BORDER * (1 + points.shape[1] / 1000)
    rooms = (tree.order, tree.values, tree.column_order, tree.begins, tree.sizes, tree.low, tree.high)

    def work(begin: int, end: int) -> None:
        sums = np.empty(tree.leaf_rows)
        _count(points, queries, order[begin:end], *rooms, squared, most, margin, sums, closer, equal)

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
    points: Floats, queries: Floats, mine: Integers, places: Integers, values: Floats, column_order: Integers,
    begins: Integers, lengths: Integers, low: Floats, high: Floats, squared: Floats, most: int, margin: float,
    sums: Floats, closer: Integers, equal: Integers,
) -> None:  # fmt: skip
    d, first_leaf = queries.shape[1], len(begins) // 2
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
                inside += lengths[node]
                continue
            if node < first_leaf:
                # The child whose middle is nearer is looked at first: it may reach the limit.
                near = 2 * node + 1
                if _middle(query, low[near + 1], high[near + 1]) < _middle(query, low[near], high[near]):
                    near += 1
                stack[depth], stack[depth + 1] = 4 * node + 3 - near, near
                depth += 2
                continue
            begin = begins[node]
            rows = sums[: lengths[node]]
            _add_up(query, values[begin * d : (begin + len(rows)) * d], column_order[node - first_leaf], rows)
            below, not_above = 0, 0
            for i in range(len(rows)):
                below += rows[i] < surely
                not_above += rows[i] <= hardly
            inside += below
            if below < not_above:
                for i in range(len(rows)):
                    if surely <= rows[i] <= hardly:
                        exact = _squared(points[places[begin + i]], query)
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

"""The net attack (Methods, Privacy Attacks): look for boxes that hold exactly one person.

A box of size c around a released row holds exactly one person if d₁ ≤ c < d₂, the two smallest distances
(largest difference over columns) from that row. Only sizes below the second distance found so far can still
do it, so a search never looks farther than the largest of those: closer than a search for the two neighbors
themselves would.

Most rows are ruled out in single precision, of which a processor compares twice as many at once; rounding
errs on the side of looking closer: distances themselves are taken in full precision.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, Progress, Silent, check, in_threads, kernel
from targetdp.attacks._declaration import SINGLING_OUT, Answer, Case, attack, people_spared, strongest_of
from targetdp.attacks._match._pairs import rows_in_common
from targetdp.attacks._protection import CONFIDENCE, Protection, Setting, share_interval, worst
from targetdp.attacks._search._tree import Tree, grow

NET_SIZES = (1 / 10, 1 / 3, 1 / 2, 2 / 3, 1.0)
"""The paper's five, in deviations of the released columns."""

_FARTHEST = 1e300

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


def _headline(p: Protection) -> str:
    return f"{people_spared(p.score, 'singled out')} by {strongest_of(p, 'net sizes')}."


def _on_tables(case: Case) -> Protection:
    t = case.tables
    return singling_out(t.original, t.released, confidence=case.confidence, progress=case.progress)


@attack(
    place=0,
    answers=Answer(
        criteria=(SINGLING_OUT,),
        adversary="Has the released table and nothing else.",
        reaches="Whether a box drawn around a released row, in any of several sizes, holds exactly one "
        "person.",
        does_not_reach="Conditions of another shape than a box, and people who are picked out with the "
        "help of something that is known about them from elsewhere.",
    ),
    headline=_headline,
    on_tables=_on_tables,
    on_one_number="This is not informative for one number: unless the table is small, nets of these sizes "
    "hold several people whatever the noise.",
)
def singling_out(
    X: Any,
    X_priv: Any,
    net_sizes: Sequence[float] = NET_SIZES,
    *,
    confidence: float = CONFIDENCE,
    progress: Progress | None = None,
) -> Protection:
    """Singling-out protection: the share of people whom no box around a released row isolates.

    Around each released row lies a box with half-widths η = c × the deviations of X_priv's columns; a person
    is singled out if some box holds exactly that one row of X. Each net size c is an attack of its own; the
    score is the worst over them. Net size 0, the paper's identity conditions, is always among them, so that
    the original table itself scores its share of rows that are not unique. The adversary knows the released
    rows and nothing of X.

    Args:
        X: Original rows, n people by d columns.
        X_priv: Released rows with the same columns. Neither their order nor their number need be that of X.
        net_sizes: Sizes c of the boxes, in deviations of the released columns; the paper's five by default.
        confidence: Of the interval.
        progress: Is told how far the attack is.

    Returns:
        Protection, an upper bound; ``detail["singled_out"]`` counts people by net size.

    Raises:
        ValueError: A table has values that are not finite, or another number of columns, or a net size is
            negative.

    Guarantees: exact counts, as by comparing all pairs in units of the deviations (a row within rounding of
    a box's border, 10⁻¹⁵ of its size or so, may fall on either side).
    Does not guarantee: that no cleverer predicate isolates more people (an upper bound on protection). The
    score can fall as noise grows: boxes in thin air hold nobody, boxes at the rim of the crowd hold one.
    The interval is about other noise on the same people; another sample of people may vary more, since all
    boxes share their deviations.
    Edges: a released column without spread makes boxes without width in it. Equal rows of X are never
    singled out.

    Example:
        >>> import numpy as np
        >>> from targetdp import SphericalLaplace
        >>> rng = np.random.default_rng(1)
        >>> X = rng.uniform(-0.5, 0.5, size=(200, 3))
        >>> noise = SphericalLaplace(B=0.25, epsilon=4)
        >>> X_priv = noise.privatize(X, rng)
        >>> round(singling_out(X, X_priv).score, 2)
        0.76
        >>> singling_out(X, X).score
        0.0
    """
    original = check.table(X)
    released = check.table(X_priv, "X_priv", columns=original.shape[1])
    sizes = _checked(net_sizes)
    confidence = check.number("confidence", confidence, above=0, below=1)
    progress = progress or Silent()
    progress.phase("singling out", len(released))
    n = len(original)
    isolated = {0.0: identical_and_unique(original, released)}
    isolated |= dict(zip(sizes, isolated_by_nets(original, released, sizes, progress), strict=True))
    error_rate = (1 - confidence) / len(isolated)
    counts = {net_size_name(size): int(people.sum()) for size, people in isolated.items()}
    settings = {
        name: Setting(1 - count / n, share_interval(n - count, n, error_rate))
        for name, count in counts.items()
    }
    return worst(settings, "upper", confidence=confidence, people=n, singled_out=counts)


def net_size_name(size: float) -> str:
    """A net size as people write it: 1/3, not 0.333333."""
    fraction = Fraction(size).limit_denominator(99)
    return f"net size {fraction}" if float(fraction) == size else f"net size {size:g}"


def isolated_by_nets(
    original: Floats, released: Floats, sizes: Floats, progress: Progress
) -> NDArray[np.bool_]:
    """Say for each net size and each original row whether some box isolates it.

    Args:
        original: Original rows.
        released: Released rows with the same columns.
        sizes: Net sizes, ascending and above 0.
        progress: Is told how far the search is.

    Returns:
        A row of marks for each net size, with one mark for each person.

    Example:
        >>> from targetdp._core import Silent
        >>> people = np.array([[0.0], [1.0], [1.1]])
        >>> isolated_by_nets(people, people, np.array([0.1, 1.0]), Silent()).astype(int)
        array([[1, 1, 1],
               [1, 0, 0]])
    """
    flat = (released == released[0]).all(axis=0)
    people = np.flatnonzero((original[:, flat] == released[0, flat]).all(axis=1))
    isolated = np.zeros((len(sizes), len(original)), dtype=np.bool_)
    if flat.all():
        isolated[:, people] = len(people) == 1
        return isolated
    if not len(people):
        return isolated
    points, queries = _in_deviations(original[people][:, ~flat], released[:, ~flat])
    isolated_people = alone_in_boxes(points, queries, sizes, progress)
    for who, alone in zip(isolated, isolated_people.T, strict=True):
        who[people[alone[alone >= 0]]] = True
    return isolated


def _in_deviations(original: Floats, released: Floats) -> tuple[Floats, Floats]:
    """Both tables in units of the released columns' deviations.

    Columns are first brought near 1 by a power of two, so that neither tiny nor huge ones leave the range of
    floats, and centered, so that a large offset does not swallow differences.
    """
    _, exponents = np.frexp(np.abs(released).max(axis=0))
    with np.errstate(over="ignore"):
        original, released = (_shifted(table, -exponents) for table in (original, released))
        center = np.median(released, axis=0)
        deviation = np.sqrt(((released - center - (released - center).mean(axis=0)) ** 2).mean(axis=0))
        points, queries = ((table - center) / deviation for table in (original, released))
    return np.clip(points, -_FARTHEST, _FARTHEST), np.clip(queries, -_FARTHEST, _FARTHEST)


def _shifted(table: Floats, exponents: NDArray[np.int32]) -> Floats:
    """Columns times powers of two; by a product, which takes less time, where the powers are floats."""
    if np.abs(exponents).max(initial=0) < 1000:
        return np.asarray(table * np.ldexp(1.0, exponents))
    return np.asarray(np.ldexp(table, exponents))


def identical_and_unique(original: Floats, released: Floats) -> NDArray[np.bool_]:
    """Original rows that are unique and were released as they are."""
    mine, _, group = rows_in_common(original, released)
    isolated = np.zeros(len(original), dtype=np.bool_)
    if not len(group):
        return isolated
    alone = np.bincount(group[: len(mine)], minlength=group.max() + 1) == 1
    shown = np.bincount(group[len(mine) :], minlength=group.max() + 1) > 0
    isolated[mine] = (alone & shown)[group[: len(mine)]]
    return isolated


def _checked(net_sizes: Sequence[float]) -> Floats:
    given = check.several("net_sizes", net_sizes, "give sizes such as (0.1, 1)")
    sizes = {
        check.number(f"net_sizes[{i}]", size, at_least=0, remedy="sizes are multiples of the deviations")
        for i, size in enumerate(given)
    }
    return np.array(sorted(sizes - {0.0}), dtype=np.float64)


# Boxes of several sizes around each query: which of them hold exactly one point, and which one.


def alone_in_boxes(points: Floats, queries: Floats, sizes: Floats, progress: Progress) -> Integers:
    """For each query (row) and size (column, ascending) the one point in that box, or −1 if not just one."""
    tree = grow(points, LEAF)
    order = grow(queries, LEAF).order  # neighbors look into much the same leaves
    isolated = np.empty((len(queries), len(sizes)), dtype=np.int64)
    rough = np.clip(tree.values, -_LARGEST, _LARGEST).astype(np.float32)

    def work(begin: int, end: int) -> None:
        outside = np.empty(tree.leaf_rows, dtype=np.int32)
        _search(queries, order[begin:end], tree, rough, sizes, outside, isolated)

    in_threads(work, len(queries), PIECE, progress)
    alone = isolated >= 0
    isolated[alone] = tree.order[isolated[alone]]
    return isolated


@kernel
def _search(  # noqa: PLR0912 (one walk through a tree)
    queries: Floats, mine: Integers, tree: Tree, rough: Rough, sizes: Floats, outside: Marks,
    isolated: Integers,
) -> None:  # fmt: skip
    low, high = tree.low, tree.high
    d, first_leaf = queries.shape[1], len(low) // 2
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
            begin, columns = tree.begins[node], tree.column_order[node - first_leaf]
            rows = outside[: tree.sizes[node]]
            if not _any_inside(query, rough[begin * d : (begin + len(rows)) * d], columns, bound, rows):
                continue
            block = tree.values[begin * d : (begin + len(rows)) * d]
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

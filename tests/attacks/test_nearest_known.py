"""The nearest released row on known columns: identical to comparing everyone with everyone."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from targetdp._core import Floats, Integers, Silent
from targetdp.attacks import nearest, nearest_leaving_one_out, prepare
from targetdp.attacks._search._block_search import BLOCK, arrange, marks, parts, widest_signs
from targetdp.attacks._search._nearest_known import grid_for

Tables = Callable[[np.random.Generator, int, int, int], tuple[Floats, Floats]]


# ---------------------------------------------------------------- the slow twin


def slow_nearest(people: Floats, released: Floats, known: Sequence[int]) -> list[int]:
    """Everyone against everyone, one column after the other; the first of several nearest."""
    rows = []
    for person in people:
        apart = np.zeros(len(released))
        for column in known:
            apart += np.abs(person[column] - released[:, column])
        rows.append(int(np.argmin(apart)))
    return rows


# ---------------------------------------------------------------- tables of all kinds


def normal(rng: np.random.Generator, m: int, n: int, d: int) -> tuple[Floats, Floats]:
    return rng.standard_normal((m, d)), rng.standard_normal((n, d))


def few_values(rng: np.random.Generator, m: int, n: int, d: int) -> tuple[Floats, Floats]:
    return rng.integers(-2, 3, (m, d)) / 2, rng.integers(-2, 3, (n, d)) / 2


def heavy_tails(rng: np.random.Generator, m: int, n: int, d: int) -> tuple[Floats, Floats]:
    return rng.standard_cauchy((m, d)) ** 3, rng.standard_cauchy((n, d)) ** 3


def own_rows(rng: np.random.Generator, m: int, n: int, d: int) -> tuple[Floats, Floats]:
    released = np.repeat(rng.standard_normal((-(-n // 2), d)), 2, axis=0)[:n]
    released[:, 0] = 0.1
    return released[rng.integers(0, n, m)], released


def equal_rows(rng: np.random.Generator, m: int, n: int, d: int) -> tuple[Floats, Floats]:
    return rng.standard_normal((m, d)), np.repeat(rng.standard_normal((1, d)), n, axis=0)


def ties_by_rounding(rng: np.random.Generator, m: int, n: int, d: int) -> tuple[Floats, Floats]:
    """People so far away that different released values are equally near in floats."""
    whole = rng.integers(0, 3, (m, d)).astype(np.float64), rng.integers(0, 50, (n, d)).astype(np.float64)
    return 1e9 + whole[0], 1e-8 * whole[1]


def wild_scales(rng: np.random.Generator, m: int, n: int, d: int) -> tuple[Floats, Floats]:
    released = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-100, 100, d)
    return 2 * released[rng.integers(0, n, m)], released


def far_away(rng: np.random.Generator, m: int, n: int, d: int) -> tuple[Floats, Floats]:
    return 1e12 * rng.standard_normal((m, d)), rng.standard_normal((n, d))


def crowded(rng: np.random.Generator, m: int, n: int, d: int) -> tuple[Floats, Floats]:
    """People in a crowd that is only a few steps of the grid wide: rounding decides who is near on it."""
    released = rng.uniform(-1, 1, (n, d))
    step = 4 * d / 32767
    released[: -(-n // 3)] = rng.uniform(-2 * step, 2 * step, (-(-n // 3), d))
    return rng.uniform(-2 * step, 2 * step, (m, d)), released


KINDS: list[Tables] = [
    normal, few_values, heavy_tails, own_rows, equal_rows, ties_by_rounding, wild_scales, far_away, crowded,
]  # fmt: skip
SHAPES = [(30, 300, 5), (1, 1, 3), (5, 2, 9), (20, BLOCK + 1, 4), (20, 2 * BLOCK, 2), (12, 2000, 15)]


def scale_of(released: Floats) -> Floats:
    deviation = released.std(axis=0)
    return np.asarray(np.where(deviation > 1e-150, deviation, 1.0))


@pytest.mark.parametrize("tables", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_rows_as_by_brute_force(tables: Tables, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(shape)
    m, n, d = shape
    people, released = tables(rng, m, n, d)
    scale = np.ones(d) if tables is ties_by_rounding else scale_of(released)
    sides = prepare(people, released, scale, rng.integers(-1, n, m))
    left_out = nearest_leaving_one_out(sides, Silent())
    for column in range(d):
        others = [other for other in range(d) if other != column]
        assert left_out[column].tolist() == slow_nearest(sides.people, sides.released, others)
    for h in sorted({1, 2, -(-d // 2), d - 1} & set(range(1, d))):
        known = np.sort(rng.choice(d, h, replace=False)).tolist()
        assert nearest(sides, known, Silent()).tolist() == slow_nearest(sides.people, sides.released, known)


def test_kinds_of_tables_have_ties() -> None:
    """The brute-force comparison would prove little about ties if there were none."""
    for tables in (few_values, own_rows, equal_rows, ties_by_rounding):
        people, released = tables(np.random.default_rng(0), 20, 300, 2)
        apart = np.abs(people[:, None, 0] - released[None, :, 0])
        assert ((apart == apart.min(axis=1, keepdims=True)).sum(axis=1) > 1).all()


def test_many_people_in_several_threads_and_a_noisy_release() -> None:
    rng = np.random.default_rng(11)
    people = rng.standard_normal((1500, 8)) + rng.standard_normal((1500, 1))
    released = people + 0.5 * rng.standard_normal(people.shape)
    sides = prepare(people, released, scale_of(released), np.arange(1500))
    known = [0, 2, 3, 7]
    assert nearest(sides, known, Silent()).tolist() == slow_nearest(sides.people, sides.released, known)
    left_out = nearest_leaving_one_out(sides, Silent())
    for column in (0, 5):
        others = [other for other in range(8) if other != column]
        assert left_out[column].tolist() == slow_nearest(sides.people, sides.released, others)


def test_wide_tables_use_wider_numbers() -> None:
    rng = np.random.default_rng(12)
    people, released = rng.standard_normal((10, 90)), rng.standard_normal((400, 90))
    sides = prepare(people, released, np.ones(90))
    assert sides.small_people.dtype == np.int32
    known = list(range(5, 75))
    assert nearest(sides, known, Silent()).tolist() == slow_nearest(people, released, known)
    left_out = nearest_leaving_one_out(sides, Silent())
    for column in (0, 44, 89):
        others = [other for other in range(90) if other != column]
        assert left_out[column].tolist() == slow_nearest(people, released, others)


def test_a_first_guess_changes_nothing() -> None:
    rng = np.random.default_rng(13)
    people, released = few_values(rng, 100, 700, 6)
    results = []
    for first_guess in (None, rng.integers(0, 700, 100), np.full(100, 699), np.full(100, 0)):
        sides = prepare(people, released, np.ones(6), first_guess)
        results.append((nearest(sides, [1, 2, 5], Silent()), nearest_leaving_one_out(sides, Silent())))
    for window, left_out in results[1:]:
        assert (window == results[0][0]).all()
        assert (left_out == results[0][1]).all()


def test_values_beyond_floats_are_refused() -> None:
    with pytest.raises(ValueError, match="column scales away from 0"):
        prepare(np.array([[1e200, 1.0]]), np.ones((2, 2)), np.ones(2))
    with pytest.raises(ValueError, match="column scales away from 0"):
        prepare(np.ones((2, 2)), np.array([[1e200, 1.0]]), np.array([1e-200, 1.0]))


# ---------------------------------------------------------------- what the search rests on


@pytest.mark.parametrize("tables", KINDS)
def test_the_grid_never_lengthens_by_more_than_a_step(tables: Tables) -> None:
    a, b = tables(np.random.default_rng(14), 400, 400, 6)
    grid = grid_for(b)
    small_a, small_b = grid.small(a).astype(float), grid.small(b).astype(float)
    with np.errstate(over="ignore"):
        assert (np.abs(small_a - small_b) <= np.abs(a - b) / grid.quantum + 1 + 1e-6).all()
    assert 2 * 6 * max(np.abs(small_a).max(), np.abs(small_b).max()) <= grid.limit


@pytest.mark.parametrize("tables", [normal, heavy_tails])
def test_the_grid_tells_values_apart(tables: Tables) -> None:
    table = tables(np.random.default_rng(15), 1000, 1000, 10)[1]
    small = grid_for(table).small(table)
    assert all(len(np.unique(column)) > 150 for column in small.T)


def test_marks_move_no_more_than_rows_do() -> None:
    rng = np.random.default_rng(16)
    small = rng.integers(-1000, 1000, (7, 200)).astype(np.int16)
    signs = widest_signs(small.astype(float) @ small.T.astype(float), 2, np.int16)
    mark = marks(small, signs).astype(int)
    apart = np.abs(small[:, :, None].astype(int) - small[:, None, :]).sum(axis=0)
    assert mark.shape == (3, 200)
    assert (np.abs(mark[:, :, None] - mark[:, None, :]) <= apart).all()
    assert (np.abs(mark[:, :, None] - mark[:, None, :]) > apart / 4).any()  # and they do move


@pytest.mark.parametrize("n", [1, BLOCK, BLOCK + 1, 1000])
def test_blocks_hold_every_row_and_know_their_ranges(n: int) -> None:
    rng = np.random.default_rng(n)
    small = rng.integers(-50, 50, (4, n)).astype(np.int16)
    signs = widest_signs(np.eye(4), 1, np.int16)
    blocks = arrange(small, signs, 32767, leaving_out=True)
    count = -(-n // BLOCK)
    assert sorted(blocks.order[:n].tolist()) == list(range(n))
    assert (blocks.order[n:] == blocks.order[n - 1]).all()
    places: Integers = blocks.order.reshape(count, BLOCK)
    assert (blocks.values == small[:, places].transpose(1, 0, 2)).all()
    for f, part in enumerate(parts(small, signs)):
        for column in range(5):
            kept = [k for k in range(4) if k != column]
            mark = part[kept].sum(axis=0)[places]
            assert (blocks.low[f, column, :count] == mark.min(axis=1)).all()
            assert (blocks.high[f, column, :count] == mark.max(axis=1)).all()


def test_blocks_are_narrow() -> None:
    """Halving by marks must make ranges small, or no block could be skipped."""
    rng = np.random.default_rng(17)
    small = rng.normal(0, 200, (5, 128 * BLOCK)).astype(np.int16)
    signs = widest_signs(np.eye(5), 1, np.int16)
    blocks = arrange(small, signs, 32767, leaving_out=False)
    width = (blocks.high - blocks.low)[:, 5, :128].astype(float)
    whole = np.ptp(marks(small, signs), axis=1)
    assert (width.mean(axis=1) < 0.2 * whole).all()

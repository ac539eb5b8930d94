"""The grid: the paper's by default, stable names and keys, equal cells found and truly equal."""

from typing import Any

import numpy as np
import pytest

from targetdp.guarantee import Guarantee
from targetdp.mechanisms import (
    Mondrian,
    NoiseMechanism,
    Partitioned,
    PrivateProjection,
    Scores,
    SphericalLaplace,
    Staircase,
)
from targetdp.tradeoff import Cell, Grid

TOGO, NIGERIA = 4_201, 20_788


def named(grid: Grid, people: int = TOGO) -> dict[str, Cell]:
    cells = grid.cells(people)
    found = {cell.name: cell for cell in cells}
    assert len(found) == len(cells)
    return found


def test_the_papers_grid_is_the_default() -> None:
    cells = Grid().cells(TOGO)
    kinds = [cell.mechanism for cell in cells]
    counts = {kind: kinds.count(kind) for kind in kinds}
    assert counts == {
        "status quo": 1, "projection": 32, "least-noise": 32, "score": 32, "score-laplace": 32,
        "decision": 32, "decision-agreed": 32, "mondrian": 9,
    }  # fmt: skip
    assert sum(cell.same_as is None for cell in cells) == 1 + 16 + 5 * 32 + 9
    asked = {(c.B, c.epsilon1, c.epsilon2, c.k) for c in cells if c.mechanism == "projection"}
    assert asked == {
        (B, e1, e2, 10_000)
        for B in (0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2) for e1 in (2, 3) for e2 in (0.5, 0.9999)
    }  # fmt: skip
    assert [c.group_size for c in cells if c.mechanism == "mondrian"] == list(range(2, 11))
    totals = {c.epsilon for c in cells if c.mechanism == "least-noise"}
    assert totals == {2.5, 2.9999, 3.5, 3.9999} == {c.epsilon for c in cells if c.mechanism == "projection"}


def test_a_cell_builds_the_papers_projection() -> None:
    built = named(Grid())["projection B=0.25 epsilon1=3 epsilon2=0.9999"].build(10)
    delta = 1 / (TOGO + 1)
    assert built == PrivateProjection(
        B=0.25, epsilon1=3.0, epsilon2=0.9999, delta1=delta * 2 / 3, delta2=delta / 3, k=10_000
    )


def test_nigeria_is_cut_into_parts_with_the_papers_delta() -> None:
    cells = named(Grid(parts=6), NIGERIA)
    delta = 1 / (3_465 + 1)
    built = cells["projection B=1 epsilon1=2 epsilon2=0.5"].build(15)
    assert isinstance(built, Partitioned)
    assert built.parts == 6
    assert (built.mechanism.delta1, built.mechanism.delta2) == (delta * 2 / 3, delta / 3)  # type: ignore[attr-defined]
    least = cells["least-noise B=1 epsilon=2.5"].build(15)
    assert isinstance(least, NoiseMechanism)
    assert least.guarantee == Guarantee(1, 2.5, delta)
    assert built.guarantee.epsilon == least.guarantee.epsilon


def test_every_mechanism_gets_the_same_total() -> None:
    cells = named(Grid(mechanisms=("projection", "least-noise", "gaussian")))
    for cell in cells.values():
        built = cell.build(10)
        if cell.guarantee is None:
            assert built is None or isinstance(built, Mondrian)
        else:
            assert isinstance(built, NoiseMechanism)
            assert built.guarantee.epsilon == pytest.approx(cell.guarantee.epsilon, abs=1e-12)
            assert built.guarantee.delta == pytest.approx(1 / 4_202, rel=1e-12)
    assert isinstance(cells["least-noise B=0.25 epsilon=3.9999"].build(10), SphericalLaplace)


def test_equal_cells_name_an_earlier_one_and_draw_the_same_tables() -> None:
    cells = named(Grid(B=(0.25,)))
    X = np.random.default_rng(0).normal(size=(50, 4)) / 3
    same = [cell for cell in cells.values() if cell.same_as is not None]
    assert len(same) == 4
    order = list(cells)
    for cell in same:
        first = cells[str(cell.same_as)]
        assert order.index(first.name) < order.index(cell.name)
        assert (first.B, first.epsilon1, first.k) == (cell.B, cell.epsilon1, cell.k)
        assert first.epsilon2 != cell.epsilon2
        assert first.key == cell.key
        a, b = (c.build(4).privatize(X, np.random.default_rng(1)) for c in (first, cell))  # type: ignore[union-attr]
        assert np.array_equal(a, b)


def test_what_is_not_equal_is_not_merged() -> None:
    keys = [cell.key for cell in Grid(k=(100, 10_000)).cells(TOGO) if cell.same_as is None]
    assert len(set(keys)) == len(keys) == 1 + 6 * 32 + 9
    of_parts = Grid(parts=6, group_sizes=()).cells(TOGO)[1:]
    # Another number of parts is another δ, which bits alone do not have.
    with_delta = {cell.key for cell in of_parts if cell.mechanism != "decision-agreed"}
    assert not with_delta & set(keys)
    assert {cell.key for cell in of_parts} - with_delta <= set(keys)


def test_keys_depend_on_the_cell_alone_and_stay() -> None:
    small, large = named(Grid(B=(0.25,), epsilon1=(3.0,), group_sizes=(5,))), named(Grid())
    for name, cell in small.items():
        assert large[name].key == cell.key
    # Pinned: another number would change every published figure.
    assert large["status quo"].key == 13_973_152_309_275_225_782
    assert large["projection B=0.25 epsilon1=3 epsilon2=0.5"].key == 15_785_433_519_497_355_073
    assert large["score B=0.25 epsilon=3.5"].key == 12_566_703_310_686_070_819


def test_classic_differential_privacy_and_the_status_quo_are_always_there() -> None:
    cells = Grid(B=(0.1,), mechanisms=("least-noise",), group_sizes=()).cells(100)
    assert cells[0].name == "status quo"
    assert {cell.B for cell in cells[1:]} == {0.1, 2.0}


def test_values_are_sorted_and_count_once() -> None:
    assert Grid(B=(1, 0.5, 1.0)) == Grid(B=(0.5, 1.0, 2.0))
    assert Grid(B=(1, 0.5)).cells(10) == Grid(B=(0.5, 1)).cells(10)


def test_quick_is_a_part_of_the_whole() -> None:
    whole, quick = named(Grid(parts=6), NIGERIA), named(Grid(parts=6).quick(), NIGERIA)
    assert {cell.B for cell in quick.values()} == {None, 0.05, 0.25, 0.75, 2.0}
    assert len(quick) == 1 + 6 * 4 + 2
    assert all(whole[name].experiment == cell.experiment for name, cell in quick.items())
    assert len(Grid(B=(0.5,), group_sizes=()).quick().cells(9)) == 1 + 2 + 2


def test_groups_larger_than_the_table_are_left_out() -> None:
    assert [c.group_size for c in Grid(group_sizes=(2, 50)).cells(20) if c.group_size] == [2]


def test_delta_may_be_given() -> None:
    assert {cell.delta for cell in Grid(delta=1e-6).cells(10)} == {None, 1e-6}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"B": (0.0,)}, r"B\[0\] = 0.0 is outside \(0, 2\]"),
        ({"B": (0.25, 3)}, r"B\[1\] = 3.0 is outside"),
        ({"B": 0.25}, "B = 0.25 is not a list"),
        ({"B": "0.25"}, "B = '0.25' is not a list"),
        ({"epsilon1": ()}, "epsilon1 has 0 values"),
        ({"epsilon1": (-1,)}, r"epsilon1\[0\] = -1.0 is outside"),
        ({"epsilon2": (1.0,)}, r"epsilon2\[0\] = 1.0 is outside \(0, 1\)"),
        ({"k": (0,)}, r"k\[0\] = 0 is outside"),
        ({"group_sizes": (1,)}, r"group_sizes\[0\] = 1 is outside"),
        ({"mechanisms": ("magic",)}, "mechanisms = 'magic' is not one of"),
        ({"delta": 0.0}, "delta = 0.0 is outside"),
        ({"parts": 0}, "parts = 0 is outside"),
        ({"parts": 6, "delta": 1e-5}, "leave out delta, or parts"),
    ],
)
def test_bad_grids_are_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises((ValueError, TypeError), match=reason):
        Grid(**given)


def test_scores_are_left_out_where_too_few_people_could_be_learned_from() -> None:
    assert not [cell for cell in Grid().cells(59) if cell.mechanism == "score"]
    assert [cell for cell in Grid().cells(60) if cell.mechanism == "score"]


def test_scores_have_two_noises_and_other_cells_one_or_none() -> None:
    cells = named(Grid())
    first, second = cells["score B=0.25 epsilon=3.9999"].noises(10)
    assert first == cells["least-noise B=0.25 epsilon=3.9999"].build(10)
    assert isinstance(second, Scores)
    assert isinstance(second.noise, Staircase)
    assert second.guarantee.is_at_least(Guarantee(0.25, 3.9999, 1 / (TOGO + 1)))
    assert len(cells["least-noise B=0.25 epsilon=3.9999"].noises(10)) == 1
    assert cells["status quo"].noises(10) == cells["mondrian group_size=2"].noises(10) == ()

"""The same people, whatever is asked for: a person depends on seed, population and number alone."""

import os

import numpy as np
import pytest

from targetdp.populations import Population, draw, invented_populations
from targetdp.populations import _population as draws
from targetdp.populations import _tables as tables

BOTH = pytest.mark.parametrize("population", invented_populations().values(), ids=invented_populations())


@BOTH
def test_people_are_the_same_whatever_the_number_of_rows(
    population: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit, at the borders of batches and of pieces, with one processor or many."""
    size = population.size
    monkeypatch.setattr(tables, "_ROWS", 2 * size)
    whole = draw(population.name, rows=5 * size, seed=8).table
    for rows in (1, size - 1, size, size + 1, 2 * size, 4 * size + 3):
        monkeypatch.setattr(os, "cpu_count", lambda rows=rows: 1 + rows % 3)
        assert draw(population.name, rows=rows, seed=8).table.equals(whole.slice(0, rows)), rows


@BOTH
def test_a_batch_depends_on_its_number_alone(population: Population) -> None:
    together, alone = draws.people(population, 5, 2, 3), draws.people(population, 5, 3, 1)
    rows = slice(population.size, 2 * population.size)
    for name in population.columns:
        np.testing.assert_array_equal(together[name][rows], alone[name])


@BOTH
def test_batches_seeds_and_populations_are_unrelated(population: Population) -> None:
    """Correlations of independent columns of n people are 1/√n apart from 0; five of that never happen."""
    base = draws.people(population, 5, 0, 1)
    for other in (draws.people(population, 5, 1, 1), draws.people(population, 6, 0, 1)):
        for name in (*population.features, population.target):
            assert abs(np.corrcoef(base[name], other[name])[0, 1]) < 5 / np.sqrt(population.size), name
    keys = {
        tuple(draws._key(made, seed, batch).generate_state(4))
        for made in invented_populations().values()
        for seed in (0, 1)
        for batch in (-1, 0, 1)
    }
    assert len(keys) == 12


@BOTH
def test_nobody_s_columns_depend_on_anybody_else_s(population: Population) -> None:
    """A person alone, and people in another order, are the same to the last bit."""
    rng = np.random.default_rng(1)
    standing, normals = rng.standard_normal(500), rng.standard_normal((population.normals_each, 500))
    whole = population.make(standing.copy(), normals.copy())
    order = rng.permutation(500)
    turned = population.make(standing[order], normals[:, order])
    alone = population.make(standing[7:8].copy(), normals[:, 7:8].copy())
    for name in population.columns:
        np.testing.assert_array_equal(turned[name], whole[name][order])
        np.testing.assert_array_equal(alone[name], whole[name][7:8])


def test_ids_are_those_of_the_slow_twin_and_all_different() -> None:
    population = invented_populations()["togo"]
    found = draws.ids(population, 3, 4_000, 500).astype(str).tolist()
    key = int(draws._key(population, 3, -1).generate_state(1, np.uint64)[0])

    def twin(row: int) -> str:
        mixed = (row + key) % 2**64
        for odd in (0x9FB21C651E98DF25, 0xD6E8FEB86659FD93):
            mixed = ((mixed ^ (mixed >> 32)) * odd) % 2**64
        return f"{mixed ^ (mixed >> 32):016x}"

    assert found == [twin(row) for row in range(4_000, 4_500)]
    many = draw("togo", rows=100_000).ids
    assert len(np.unique(many)) == 100_000
    assert {len(name) for name in many[:100]} == {16}
    places = np.argsort(many[:4_201])
    assert abs(np.corrcoef(places, np.arange(4_201))[0, 1]) < 0.08, "in no order"


def test_work_stays_a_few_pieces_ahead_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """So memory does not grow with the number of rows."""
    begun: list[int] = []
    whole_batches = tables._whole_batches

    def watched(*arguments: object) -> object:
        begun.append(1)
        return whole_batches(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(tables, "_whole_batches", watched)
    monkeypatch.setattr(tables, "_ROWS", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    reader = tables.tables(invented_populations()["togo"], 40 * 4_201, 0)
    for taken in range(1, 6):
        assert next(reader).num_rows == 4_201
        assert len(begun) <= taken + 2
    del reader
    assert len(begun) < 10, "and stops when nobody reads any more"

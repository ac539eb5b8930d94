"""Invented people as tables, a few batches at a time: worked out in threads, handed over in order."""

import os
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from targetdp.table.overlap import overlapped
from targetdp.table.populations.draws import ID_DIGITS, ids, people
from targetdp.table.populations.in_memory import ID
from targetdp.table.populations.population import Population

_ROWS = 125_000
"""About so many people are worked out, held and written together."""

_MOST_THREADS = 4
"""More would only hold more people in memory: there is one writer."""


def schema(population: Population) -> pa.Schema:
    """Names and types of all columns; no value is ever missing."""
    nobody = population.make(np.empty(0), np.empty((population.normals_each, 0)))
    fields = [pa.field(ID, pa.string(), nullable=False)]
    for name in population.columns:
        kind = pa.string() if name in population.groups else pa.from_numpy_dtype(nobody[name].dtype)
        fields.append(pa.field(name, kind, nullable=False))
    return pa.schema(fields)


def tables(population: Population, rows: int, seed: int) -> Iterator[pa.Table]:
    """The first ``rows`` people of a seed, in order.

    Guarantees: they are the same people, whatever ``rows`` is and however many processors there are.
    Memory: that of some 125,000 people for each of a few threads, whatever ``rows`` is.
    """
    together = max(1, _ROWS // population.size)
    columns = schema(population)

    def piece(first: int) -> pa.Table:
        count = min(together * population.size, rows - first * population.size)
        return _whole_batches(population, columns, seed, first, _batches(population, count)).slice(0, count)

    threads = min(os.cpu_count() or 1, _MOST_THREADS)
    yield from overlapped(piece, range(0, _batches(population, rows), together), threads)


def _batches(population: Population, rows: int) -> int:
    """How many batches hold so many people."""
    return -(-rows // population.size)


def _whole_batches(
    population: Population, columns: pa.Schema, seed: int, first: int, batches: int
) -> pa.Table:
    made = people(population, seed, first, batches)
    arrays = [_text(ids(population, seed, first * population.size, batches * population.size))]
    for name in population.columns:
        column = pa.array(made[name])
        if name in population.groups:
            categories = pa.array(population.groups[name])
            column = pa.DictionaryArray.from_arrays(column, categories).dictionary_decode()
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=columns)


def _text(ids_: NDArray[np.bytes_]) -> pa.StringArray:
    """Texts of one length, without a Python object for each."""
    offsets = np.arange(0, ID_DIGITS * (len(ids_) + 1), ID_DIGITS, dtype=np.int32)
    return pa.StringArray.from_buffers(len(ids_), pa.py_buffer(offsets), pa.py_buffer(ids_))

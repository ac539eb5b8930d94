"""What populations and examples are, and how people are drawn: by seed, population and batch alone.

A batch is as many people as the paper's table has. Their standings are spread evenly over the normal
distribution: one in each of as many equally likely strata, in random order. So every whole batch has the
target's summary of Table S1 almost to the digit, which independent draws from a distribution this skewed
would often miss by far. The price: chance makes people of one batch differ a little less than it would
independent people. Batches are independent of each other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from targetdp._core import Floats, Words, import_all

# What a population is: names and roles of its columns, and how random numbers become people.

Columns = Mapping[str, NDArray[Any]]
"""Columns by name, of equal length: numbers, and for a group the place of each one's category."""


@dataclass(frozen=True)
class Population:
    """A recipe for invented people.

    Args:
        name: What commands and files call it.
        size: People in the paper's table; so many are drawn together.
        stream: Keeps its random numbers apart from those of other populations with the same seed.
        features: The columns that predict.
        target: The column that is predicted.
        groups: For each group column, its categories.
        money: Columns that only a program's accounts need.
        normals_each: How many random numbers a person has besides the standing.
        make: ``make(standing, normals)`` turns what was drawn into all columns but the id, person by person:
            nobody's columns depend on anybody else's. ``standing`` is one standard normal number for each
            person, high where consumption or creditworthiness is high; ``normals`` are independent of it.

    Guarantees: people who were drawn together, a batch of ``size``, have a target as in Table S1.
    Does not guarantee: anything about real people. The paper publishes no more than Table S1 about its
    tables, so features and how they relate are plausible inventions.

    Example:
        >>> invented_populations()["togo"].target
        'consumption'
    """

    name: str
    size: int
    stream: int
    features: tuple[str, ...]
    target: str
    groups: Mapping[str, tuple[str, ...]]
    money: tuple[str, ...]
    normals_each: int
    make: Callable[[Floats, Floats], Columns]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns but the id, in the order of a file."""
        return (*self.features, self.target, *self.money, *self.groups)


_INVENTED: dict[str, Population] = {}


def declare(population: Population) -> Population:
    """Declare an invented population: from then on it can be drawn and written by its name.

    Args:
        population: The recipe.

    Returns:
        The same.
    """
    _INVENTED[population.name] = population
    return population


def invented_populations() -> Mapping[str, Population]:
    """Every invented population by its name.

    Returns:
        For each name, the recipe.

    Example:
        >>> invented_populations()["togo"].size
        4201
    """
    import_all("targetdp.populations")
    return dict(sorted(_INVENTED.items()))


_INSIDE = 0.25
"""Standings lie in the middle half of their stratum: even the few that decide a skew vary little."""

ID_DIGITS = 16
_HEXADECIMAL = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint16)
"""The two digits of each byte."""


def people(population: Population, seed: int, first: int, batches: int) -> Columns:
    """Draw whole batches of people.

    Args:
        population: The recipe.
        seed: Another seed invents other people.
        first: The number of the first batch.
        batches: How many batches.

    Returns:
        All columns but the id.
    """
    size = population.size
    standing = np.empty(batches * size)
    normals = np.empty((population.normals_each, batches * size))
    for batch in range(batches):
        rng = np.random.Generator(np.random.PCG64DXSM(_key(population, seed, first + batch)))
        rows = slice(batch * size, (batch + 1) * size)
        standing[rows] = even_standings(rng, size)
        for column in normals:
            rng.standard_normal(out=column[rows])
    return population.make(standing, normals)


def even_standings(rng: np.random.Generator, size: int) -> Floats:
    """Standard normal numbers, one from each of ``size`` equally likely strata, in random order."""
    from scipy.special import ndtri  # noqa: PLC0415 (slow to import)

    within = _INSIDE + (1 - 2 * _INSIDE) * rng.random(size)
    standings: Floats = ndtri((rng.permutation(size) + within) / size)
    return standings


def border(strata: int, size: int) -> float:
    """The standing that separates the ``strata`` lowest people of a batch from the others."""
    from scipy.special import ndtri  # noqa: PLC0415 (slow to import)

    return float(ndtri(strata / size))


def ids(population: Population, seed: int, first_row: int, rows: int) -> NDArray[np.bytes_]:
    """Sixteen hexadecimal digits for each row: all different, and in no order.

    The row's number plus a key, mixed one-to-one in 64 bits (xor with itself shifted, times an odd number).
    """
    key = _key(population, seed, -1).generate_state(1, np.uint64)
    mixed: Words = np.arange(first_row, first_row + rows, dtype=np.uint64) + key
    for odd in (0x9FB21C651E98DF25, 0xD6E8FEB86659FD93):
        mixed ^= mixed >> np.uint64(32)
        mixed *= np.uint64(odd)
    mixed ^= mixed >> np.uint64(32)
    digits = _HEXADECIMAL[mixed.astype(">u8").view(np.uint8)]
    return digits.view(f"S{ID_DIGITS}")


def _key(population: Population, seed: int, batch: int) -> np.random.SeedSequence:
    """Where a batch's random numbers begin; batch −1 is the ids."""
    return np.random.SeedSequence(seed, spawn_key=(population.stream, batch + 1))


# An example table in memory, and what its columns are for.

ID = "id"
"""The column that says whose row it is, in every example."""


@dataclass(frozen=True, eq=False)
class Example:
    """A table and the roles of its columns.

    Args:
        name: What commands and files call it.
        table: All columns, with ``id`` first.
        features: The columns that predict.
        target: The column that is predicted, the targeting variable.
        groups: Columns of categories that figures are given by.
        money: Columns that only a program's accounts need.

    Example:
        >>> table = pa.table({"id": ["a", "b"], "contacts": [12, 30], "consumption": [0.1, 0.2]})
        >>> Example("tiny", table, ("contacts",), "consumption").X
        array([[12.],
               [30.]])
    """

    name: str
    table: pa.Table
    features: tuple[str, ...]
    target: str
    groups: tuple[str, ...] = ()
    money: tuple[str, ...] = ()

    @cached_property
    def ids(self) -> NDArray[np.str_]:
        """The id of each row."""
        return self.column(ID).astype(np.str_)

    @cached_property
    def X(self) -> Floats:
        """The features, one row for each person."""
        return np.column_stack([self.column(name).astype(np.float64) for name in self.features])

    @cached_property
    def y(self) -> Floats:
        """The targeting variable."""
        return self.column(self.target).astype(np.float64)

    def column(self, name: str) -> NDArray[Any]:
        """One column: numbers, or texts for a group."""
        values: NDArray[Any] = self.table[name].to_numpy()
        return values


_PUBLIC: dict[str, Callable[[], Example]] = {}


def public_table(load: Callable[[], Example]) -> Callable[[], Example]:
    """Declare a public table of real people: its name is that of the function that loads it.

    Args:
        load: The function.

    Returns:
        The same.
    """
    _PUBLIC[load.__name__] = load
    return load


def public_tables() -> Mapping[str, Callable[[], Example]]:
    """Every public table of real people by its name.

    Returns:
        For each name, the function that loads it.

    Example:
        >>> "vietnam" in public_tables()
        True
    """
    import_all("targetdp.populations")
    return dict(sorted(_PUBLIC.items()))

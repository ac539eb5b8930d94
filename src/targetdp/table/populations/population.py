"""What a population is: names and roles of its columns, and how random numbers become people."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from targetdp.typing import Floats

Columns = Mapping[str, NDArray[Any]]
"""Columns by name, of equal length: numbers, and for a group the place of each one's category."""


@dataclass(frozen=True)
class Population:
    """A recipe for invented people.

    ``make(standing, normals)`` turns what was drawn into all columns but the id, person by person: nobody's
    columns depend on anybody else's. ``standing`` is one standard normal number for each person, high where
    consumption or creditworthiness is high; ``normals`` are ``normals_each`` more, independent of it.

    Guarantees: people who were drawn together, a batch of ``size``, have a target as in Table S1.
    Does not guarantee: anything about real people. The paper publishes no more than Table S1 about its
    tables, so features and how they relate are plausible inventions.
    """

    name: str
    size: int
    """People in the paper's table; so many are drawn together."""
    stream: int
    """Keeps its random numbers apart from those of other populations with the same seed."""
    features: tuple[str, ...]
    target: str
    groups: Mapping[str, tuple[str, ...]]
    """For each group column, its categories."""
    money: tuple[str, ...]
    """Columns that only a program's accounts need."""
    normals_each: int
    make: Callable[[Floats, Floats], Columns]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns but the id, in the order of a file."""
        return (*self.features, self.target, *self.money, *self.groups)

"""Whom a program's figures are about: the people of the table, their groups, whom they stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, check

MOST_GROUPS = 1_000
"""In one column: more are no groups that anyone could look through."""

Figure = TypeVar("Figure")


@dataclass(frozen=True, eq=False)
class Groups:
    """Everybody, and the groups of each group column, numbered through: number 0 is everybody.

    ``codes`` has a row for everybody (all 0) and one for each column: the number of each person's group.
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    codes: Integers = field(repr=False)

    @property
    def count(self) -> int:
        """How many groups there are, everybody included."""
        return 1 + sum(map(len, self.labels))

    def sums(self, values: Floats) -> Floats:
        """The sum of people's values over everybody and over each group."""
        total = np.zeros(self.count)
        for codes in self.codes[1:]:
            total += np.bincount(codes, weights=values, minlength=self.count)
        total[0] = values.sum()
        return total

    def nested(self, figures: Sequence[Figure]) -> dict[str, dict[str, Figure]]:
        """Figures of all groups, by column and label; everybody's is left out."""
        place, found = 1, {}
        for column, labels in zip(self.columns, self.labels, strict=True):
            found[column] = dict(zip(labels, figures[place : place + len(labels)], strict=True))
            place += len(labels)
        return found


@dataclass(frozen=True, eq=False)
class People:
    """The people of a table. Results are compared person by person, so they must be of the same people.

    ``weights`` (of mean 1) say how many each stands for, relative to the others; one of weight 1 stands for
    ``each`` people of the population. ``totals`` are the weights of everybody and each group.
    """

    groups: Groups
    weights: Floats = field(repr=False)
    population: float
    weighted: bool
    totals: Floats = field(init=False, repr=False)
    counts: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "totals", _fixed(self.groups.sums(self.weights)))
        object.__setattr__(self, "counts", _fixed(self.groups.sums(np.ones(self.count))))

    @property
    def count(self) -> int:
        """How many people the table has."""
        return len(self.weights)

    @property
    def each(self) -> float:
        """How many people of the population one of weight 1 stands for."""
        return self.population / self.count

    def same_as(self, other: "People") -> bool:
        """Whether these are the same people, also after a journey to another process."""
        if self is other:
            return True
        ours, theirs = self.groups, other.groups
        return (
            (self.population, ours.columns, ours.labels) == (other.population, theirs.columns, theirs.labels)
            and np.array_equal(self.weights, other.weights)
            and np.array_equal(ours.codes, theirs.codes)
        )

    def subset(self, members: Integers) -> "People":
        """Some of the people, in the same groups; they stand for their share of the population."""
        weights = self.weights[members]
        share, mean = float(weights.sum() / self.weights.sum()), float(weights.mean())
        groups = replace(self.groups, codes=self.groups.codes[:, members])
        return People(groups, _fixed(weights / mean), self.population * share, self.weighted)

    def weight_of(self, chosen: NDArray[np.bool_]) -> Floats:
        """The weight of some people, among everybody and in each group."""
        return self.groups.sums(self.weights * chosen)


def people_of(
    count: int,
    *,
    groups: Mapping[str, Sequence[Any]] | None = None,
    weights: Any = None,
    population: float | None = None,
) -> People:
    """The people of a table with so many rows; without ``population`` they stand for themselves."""
    size = (
        float(count) if population is None
        else check.number("population", population, at_least=1, remedy="a number of people")
    )  # fmt: skip
    if weights is None:
        share = np.ones(count)
    else:
        share = values_of("weights", weights, count)
        if not (share > 0).all():
            at = int(np.argmin(share))
            raise ValueError(
                f"weights[{at}] = {float(share[at])!r} is not above 0: it says how many people one stands for"
            )
        share = share / share.mean() if share.min() < share.max() else np.ones(count)
    unequal = bool(share.min() < share.max())  # weights that are all alike say nothing
    return People(_groups(groups or {}, count), _fixed(share), size, unequal)


def values_of(name: str, values: Any, count: int | None = None) -> Floats:
    """One finite number for each person, which nobody can change."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: give one number for each person")
    if count is not None and len(array) != count:
        raise ValueError(
            f"{name} has {len(array):,} entries: there are {count:,} people, one for each is needed"
        )
    column = array.astype(np.float64) if array.dtype.kind == "b" else array
    return _fixed(check.table(column.reshape(-1, 1), name)[:, 0].copy())


def _groups(columns: Mapping[str, Sequence[Any]], count: int) -> Groups:
    labels, codes, place = [], [np.zeros(count, dtype=np.int64)], 1
    for name, values in columns.items():
        if "=" in name:
            raise ValueError(
                f"group column {name!r} has = in its name: figures are told by column=group; rename it"
            )
        if len(values) != count:
            raise ValueError(f"group column {name!r} has {len(values):,} entries: there are {count:,} people")
        found, numbers = np.unique(np.array([str(value) for value in values]), return_inverse=True)
        if len(found) > MOST_GROUPS:
            raise ValueError(
                f"group column {name!r} has {len(found):,} different values, more than {MOST_GROUPS:,}: "
                "these are no groups; give a coarser column"
            )
        labels.append(tuple(str(label) for label in found))
        codes.append(numbers.astype(np.int64) + place)
        place += len(found)
    together = np.stack(codes)
    together.setflags(write=False)
    return Groups(tuple(columns), tuple(labels), together)


def _fixed(values: Floats) -> Floats:
    values.setflags(write=False)
    return values

"""Whom a program's figures are about: the people of the table, their groups, whom they stand for.

And the parts that they are cut into for cross-validation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, check
from targetdp.programs._alike import AlikeGroups, alike_groups

MOST_GROUPS = 1_000
"""In one column: more are no groups that anyone could look through."""

Figure = TypeVar("Figure")
Numbers = TypeVar("Numbers", Floats, Integers)


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
        place, nested = 1, {}
        for column, labels in zip(self.columns, self.labels, strict=True):
            nested[column] = dict(zip(labels, figures[place : place + len(labels)], strict=True))
            place += len(labels)
        return nested


@dataclass(frozen=True, eq=False)
class People:
    """The people of a table. Results are compared person by person, so they must be of the same people.

    ``weights`` (of mean 1) say how many each stands for, relative to the others; one of weight 1 stands for
    ``each`` people of the population. ``totals`` are the weights of everybody and each group. A survey may
    have drawn people in ``clusters``, within ``strata``: everybody's number of each, None if it did not.
    """

    groups: Groups
    weights: Floats = field(repr=False)
    population: float
    weighted: bool
    clusters: Integers | None = field(default=None, repr=False)
    strata: Integers | None = field(default=None, repr=False)
    totals: Floats = field(init=False, repr=False)
    counts: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sums = self.groups.sums
        set_fields(self, totals=_fixed(sums(self.weights)), counts=_fixed(sums(np.ones(self.count))))

    @property
    def count(self) -> int:
        """How many people the table has."""
        return len(self.weights)

    @property
    def each(self) -> float:
        """How many people of the population one of weight 1 stands for."""
        return self.population / self.count

    @property
    def fit_weights(self) -> Floats | None:
        """What people count in a fit; None where all count alike."""
        return self.weights if self.weighted else None

    @property
    def alike_groups(self) -> list[AlikeGroups]:
        """Groups whose names look alike."""
        rows = self.groups.nested([int(count) for count in self.counts])
        return [one for column in rows for one in alike_groups(column, rows[column])]

    def same_as(self, other: "People") -> bool:
        """Whether these are the same people, also after a journey to another process."""
        if self is other:
            return True
        ours, theirs = self.groups, other.groups
        return (
            (self.population, ours.columns, ours.labels) == (other.population, theirs.columns, theirs.labels)
            and np.array_equal(self.weights, other.weights)
            and np.array_equal(ours.codes, theirs.codes)
            and _same(self.clusters, other.clusters)
            and _same(self.strata, other.strata)
        )

    def subset(self, members: Integers) -> "People":
        """Some of the people, in the same groups; they stand for their share of the population."""
        weights = self.weights[members]
        share, mean = float(weights.sum() / self.weights.sum()), float(weights.mean())
        groups = replace(self.groups, codes=self.groups.codes[:, members])
        clusters, strata = (None if c is None else _fixed(c[members]) for c in (self.clusters, self.strata))
        return People(
            groups, _fixed(weights / mean), self.population * share, self.weighted, clusters, strata
        )

    def weight_of(self, chosen: NDArray[np.bool_]) -> Floats:
        """The weight of some people, among everybody and in each group."""
        return self.groups.sums(self.weights * chosen)


def people_of(
    count: int,
    *,
    groups: Mapping[str, Sequence[Any]] | None = None,
    weights: Any = None,
    population: float | None = None,
    clusters: Sequence[Any] | None = None,
    strata: Sequence[Any] | None = None,
) -> People:
    """The people of a table.

    Args:
        count: How many rows the table has.
        groups: Columns by which figures are given, each with a value for every person.
        weights: How many people each one stands for, relative to the others; by default all alike.
        population: How many people the table stands for; by default its own.
        clusters: Whom the survey drew together (a village, a household), a value for every person; by default
            everybody was drawn alone.
        strata: Within which people or clusters were drawn (a region), a value for every person.

    Returns:
        The people, their groups, weights, clusters and strata.

    Raises:
        ValueError: A number is outside its range, columns are of different lengths, or a column has more than
            1,000 groups.

    Example:
        >>> people_of(4, groups={"sex": ["f", "m", "f", "f"]}, population=100).groups.labels
        (('f', 'm'),)
    """
    size = float(count)
    if population is not None:
        size = check.number("population", population, at_least=1, remedy="a number of people")
    share = np.ones(count)
    if weights is not None:
        share = values_of("weights", weights, count)
        if not (share > 0).all():
            at = int(np.argmin(share))
            raise ValueError(
                f"weights[{at}] = {float(share[at])!r} is not above 0: it says how many people one stands for"
            )
        share = share / share.mean() if share.min() < share.max() else np.ones(count)
    unequal = bool(share.min() < share.max())  # weights that are all alike say nothing
    drawn = [_numbered(name, given, count) for name, given in (("clusters", clusters), ("strata", strata))]
    return People(_groups(groups or {}, count), _fixed(share), size, unequal, *drawn)


def values_of(name: str, values: Any, count: int | None = None) -> Floats:
    """One finite number for each person, which nobody can change.

    Args:
        name: What messages call them.
        values: What the caller gave; true and false count as 1 and 0.
        count: How many people there are, if that is known.

    Returns:
        The numbers as an array that cannot be written to.

    Raises:
        TypeError: They are not numbers.
        ValueError: There are too many or too few of them, or one is not finite.

    Example:
        >>> values_of("repaid", [True, False], 2)
        array([1., 0.])
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: give one number for each person")
    if count is not None and len(array) != count:
        raise ValueError(
            f"{name} has {len(array):,} entries: there are {count:,} people, one for each is needed"
        )
    column = array.astype(np.float64) if array.dtype.kind == "b" else array
    return _fixed(check.table(column.reshape(-1, 1), name)[:, 0].copy())


def groups_of(groups: Mapping[str, Sequence[Any]] | None, places: Integers) -> dict[str, list[Any]] | None:
    """The groups of some of the people."""
    return None if groups is None else {name: some_of(values, places) for name, values in groups.items()}


def some_of(values: Sequence[Any], places: Integers) -> list[Any]:
    """The values of some of the people."""
    return [values[i] for i in places]


def _groups(columns: Mapping[str, Sequence[Any]], count: int) -> Groups:
    labels, codes, place = [], [np.zeros(count, dtype=np.int64)], 1
    for name, values in columns.items():
        if "=" in name:
            raise ValueError(
                f"group column {name!r} has = in its name: figures are told by column=group; rename it"
            )
        if len(values) != count:
            raise ValueError(f"group column {name!r} has {len(values):,} entries: there are {count:,} people")
        different, numbers = np.unique(np.array([str(value) for value in values]), return_inverse=True)
        if odd := next((label for label in different.tolist() if not label.isprintable()), None):
            raise ValueError(
                f"group column {name!r} has a value with characters that nobody sees ({ascii(odd)[:80]}): "
                "they could turn the words and numbers around them; take them away"
            )
        if len(different) > MOST_GROUPS:
            raise ValueError(
                f"group column {name!r} has {len(different):,} different values, more than {MOST_GROUPS:,}: "
                "these are no groups; give a coarser column"
            )
        labels.append(tuple(str(label) for label in different))
        codes.append(numbers.astype(np.int64) + place)
        place += len(different)
    return Groups(tuple(columns), tuple(labels), _fixed(np.stack(codes)))


def _numbered(name: str, values: Sequence[Any] | None, count: int) -> Integers | None:
    """People with equal values have equal numbers."""
    if values is None:
        return None
    if len(values) != count:
        raise ValueError(f"{name} has {len(values):,} entries: there are {count:,} people, one for each")
    return _fixed(
        np.unique(np.array([str(value) for value in values]), return_inverse=True)[1].astype(np.int64)
    )


def _same(ours: Integers | None, theirs: Integers | None) -> bool:
    return ours is theirs or (ours is not None and theirs is not None and np.array_equal(ours, theirs))


def _fixed(values: Numbers) -> Numbers:
    values.setflags(write=False)
    return values


def set_fields(instance: object, **values: object) -> None:
    """Give fields of a frozen dataclass their values, while it is made."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


# The cross-validation plan: made once, and the same for every release that is compared.


@dataclass(frozen=True)
class Folds:
    """The plan of a cross-validation: people in random parts of nearly equal size.

    Each person is predicted by a model that was fitted without her part. ``order`` lists all people part by
    part; part f is ``order[starts[f]:starts[f + 1]]``. `Folds.of` takes the plan of a splitter instead;
    ``given`` is then the hash of it, else empty.

    Args:
        people: How many people there are.
        k: How many parts.
        seed: What the parts are drawn from, and nothing else.

    Raises:
        ValueError: There are fewer than two people or parts, or more parts than people.

    Guarantees: two plans with equal numbers are equal, and never depend on features or outcomes.

    Example:
        >>> tuple(len(predicted) for fitted, predicted in Folds(10, k=3))
        (3, 3, 4)
    """

    people: int
    k: int = 5
    seed: int = 0
    given: str = field(init=False, default="", repr=False)
    order: Integers = field(init=False, repr=False, compare=False)
    starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        people = check.integer(
            "people", self.people, at_least=2, remedy="one part is held out, one is fitted"
        )
        k = check.integer("folds", self.k, at_least=2, at_most=people, remedy="every fold needs a person")
        seed = check.integer("seed", self.seed, at_least=0)
        order = _fixed(np.random.default_rng(seed).permutation(people).astype(np.int64))
        starts = tuple(people * f // k for f in range(k + 1))
        set_fields(self, people=people, k=k, seed=seed, order=order, starts=starts)

    @classmethod
    def of(cls, splits: Iterable[tuple[Any, Any]], seed: int = 0) -> Self:
        """The plan of a scikit-learn splitter: ``Folds.of(KFold(5, shuffle=True).split(X))``.

        Args:
            splits: For each part who is fitted and who is predicted; everybody must be predicted once, by a
                model that is fitted on all others.
            seed: For estimators that draw.

        Raises:
            ValueError: Somebody is predicted twice or not at all, or fitted on too few.

        Example:
            >>> tuple(Folds.of([([0, 1], [2, 3]), ([2, 3], [0, 1])]).order.tolist())
            (2, 3, 0, 1)
        """
        pairs = [(np.asarray(fitted), np.asarray(predicted)) for fitted, predicted in splits]
        order = np.concatenate([np.empty(0, dtype=np.int64), *(predicted for _, predicted in pairs)])
        everybody = np.arange(len(order))
        plans = (order, *(np.concatenate(pair) for pair in pairs))
        if not pairs or not all(np.array_equal(np.sort(plan), everybody) for plan in plans):
            raise ValueError(
                "splits do not predict everybody once, by a model fitted on all others: give those of a "
                "splitter such as scikit-learn's KFold"
            )
        plan = cls(len(order), len(pairs), seed)
        order = _fixed(order.astype(np.int64))
        starts = tuple(np.cumsum([0, *(len(predicted) for _, predicted in pairs)]).tolist())
        digest = sha256(repr(starts).encode() + order.tobytes()).hexdigest()
        set_fields(plan, order=order, starts=starts, given=digest)
        return plan

    def __iter__(self) -> Iterator[tuple[Integers, Integers]]:
        """For each fold who is fitted and who is predicted, as scikit-learn's ``cv=`` takes it."""
        for begin, end in self.ranges():
            yield np.concatenate([self.order[:begin], self.order[end:]]), self.order[begin:end]

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Where each part begins and ends in ``order``."""
        return zip(self.starts[:-1], self.starts[1:], strict=True)

"""Kinds of columns that are no plain numbers: each a fixed map of one value to numbers, as it is declared.

Nothing here looks at a table. Where a kind says how far apart two values are, scaled rows are exactly so far
apart, up to their rounding, and never farther: scales are widened by more than floats lose.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import floor, sqrt
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from targetdp._core import check, exact, up
from targetdp.table._encode._dates import day_number, must_be_format
from targetdp.table._encode._kind import (
    MOST_LEVELS,
    WIDER,
    Center,
    Kind,
    Moved,
    Word,
    Words,
    apart,
    apart_by_square,
    checked,
    missing_name,
)

MOST_DAYS = 100_000
"""Days either way of the declared one; a date beyond counts as the last of them."""
_PLACES, _LEAST_STEP = 1_000.0, 0.01


class NumberKind(Kind):
    """A number, with a further column that says where it was missing.

    Example:
        >>> NumberKind(kind="number", gap_distance=0.1).within(0.25)
        'a missing value, and one like the constant for it, are 0.1 apart, within B = ...'
    """

    kind: Literal["number"] = Field(description="this kind")
    gap_distance: Moved = Field(
        description="adds a column that says whether the value was missing, which moves a row so far"
    )

    def features(self, column: str) -> tuple[str, ...]:
        """See `Kind`."""
        return (column, missing_name(column))

    def _own_scales(self, column: str) -> dict[str, Center]:  # noqa: ARG002 (they are not declared here)
        return {}

    def place(self, value: Any) -> float:
        """See `Kind`."""
        return check.number("value", value)

    def within(self, B: float) -> str:
        """See `Kind`."""
        return self.gaps_within(B)


class YesOrNo(Kind):
    """Yes or no, in declared words.

    Example:
        >>> YesOrNo(kind="yes-or-no", yes=("oui",), no=("non",), distance=0.25).words
        {'non': 0.0, 'oui': 1.0}
    """

    kind: Literal["yes-or-no"] = Field(description="this kind")
    yes: Words = Field(description="words that mean yes")
    no: Words = Field(description="words that mean no")
    distance: Moved = Field(description="how far yes and no move a row apart")

    @model_validator(mode="after")
    def _differ(self) -> "YesOrNo":
        if twice := check.twice([*self.yes, *self.no]):
            raise ValueError(f"{twice[0]!r} stands twice among the words for yes and no: name each once")
        return self

    @property
    def words(self) -> Mapping[str, float]:
        """See `Kind`."""
        return dict.fromkeys(self.no, 0.0) | dict.fromkeys(self.yes, 1.0)

    def _own_scales(self, column: str) -> dict[str, Center]:
        return {column: (0.5, WIDER / self.distance)}

    def place(self, value: Any) -> float:
        """See `Kind`."""
        return _place(self.words, value)

    def within(self, B: float) -> str:
        """See `Kind`."""
        return f"yes and no are {apart(self.distance, B)}"

    @property
    def farthest(self) -> Fraction:
        """See `Kind`."""
        return Fraction(self.distance)


class Category(Kind):
    """One of several levels, all as far from each other.

    Example:
        >>> Category(kind="category", levels=("north", "south"), distance=0.5).features("region")
        ('region=north', 'region=south')
    """

    kind: Literal["category"] = Field(description="this kind")
    levels: Words = Field(description="all levels")
    other: Word | None = Field(
        default=None, description="the level that any other value counts as; without it, one is an error"
    )
    distance: Moved = Field(description="how far two levels move a row apart")

    @model_validator(mode="after")
    def _make_sense(self) -> "Category":
        if twice := check.twice(self.levels):
            raise ValueError(f"levels names {twice[0]!r} twice: name each level once")
        if len(self.all) < 2:
            raise ValueError("levels names one level: a category needs two or more, other among them")
        if self.gap_distance is not None:
            raise ValueError(
                "gap_distance is not for a category: declare a level for missing values, and name it in "
                "[gaps]"
            )
        return self

    @property
    def all(self) -> tuple[str, ...]:
        """All levels, that for others among them."""
        return tuple(dict.fromkeys([*self.levels, *([] if self.other is None else [self.other])]))

    @property
    def words(self) -> Mapping[str, float]:
        """See `Kind`: the place of each level among all."""
        return {level: float(place) for place, level in enumerate(self.all)}

    @property
    def others(self) -> float | None:
        """See `Kind`."""
        return None if self.other is None else self.words[self.other]

    def _own_scales(self, column: str) -> dict[str, Center]:
        # Around the middle of all levels, so that no level is nearer to the edge of the unit ball.
        both = (1 / len(self.all), sqrt(2) * WIDER / self.distance)
        return {f"{column}={level}": both for level in self.all}

    def place(self, value: Any) -> float:
        """See `Kind`."""
        return _place(self.words, value)

    def within(self, B: float) -> str:
        """See `Kind`."""
        return f"any two of its {len(self.all)} levels are {apart(self.distance, B)}"

    def within_of(self, levels: int, B: float) -> str:
        """What distance B means where only so many of its levels are looked at, in words."""
        farthest = apart_by_square(Fraction(self.distance) ** 2 * min(2, levels) / 2, B)
        return f"{levels} of its {len(self.all)} levels are looked at: two are at most {farthest}"


def _places(value: Any) -> Any:
    """The places of levels; those of a list are 0, 1, 2 and so on."""
    if not isinstance(value, list | tuple):
        return value if not isinstance(value, Mapping) else {
            name: _checked_place(place) for name, place in value.items()
        }  # fmt: skip
    if not all(isinstance(level, str) for level in value):
        raise ValueError("levels are words in their order, or a place for each")
    if twice := check.twice(value):
        raise ValueError(f"levels names {twice[0]!r} twice: name each level once")
    return {level: float(place) for place, level in enumerate(value)}


def _checked_place(place: Any) -> float:
    try:
        return check.number("place", place)
    except TypeError as error:
        raise ValueError(str(error)) from error


class Ordered(Kind):
    """One of several levels in an order, each at a declared place.

    Example:
        >>> Ordered(kind="ordered", levels={"none": 0, "primary": 6}, distance=0.1).place("primary")
        6.0
    """

    kind: Literal["ordered"] = Field(description="this kind")
    levels: Annotated[
        dict[Word, float],
        BeforeValidator(_places, json_schema_input_type=list[str] | dict[str, float]),
        Field(min_length=2, max_length=MOST_LEVELS),
    ] = Field(description="levels in their order, or the place of each")
    other: Word | None = Field(
        default=None, description="the level that any other value counts as; without it, one is an error"
    )
    distance: Moved = Field(description="how far one step, from a place to the next whole one, moves a row")

    @model_validator(mode="after")
    def _make_sense(self) -> "Ordered":
        if self.other is not None and self.other not in self.levels:
            raise ValueError(f"other = {self.other!r} is none of the levels: an ordered level has a place")
        places = sorted(self.levels.values())
        if places[0] < -_PLACES or places[-1] > _PLACES or _least_step(places) < _LEAST_STEP - 1e-9:
            raise ValueError(
                f"levels have places from {places[0]:g} to {places[-1]:g}: give places from {-_PLACES:g} to "
                f"{_PLACES:g}, {_LEAST_STEP:g} or more apart"
            )
        return self

    @property
    def words(self) -> Mapping[str, float]:
        """See `Kind`: the place of each level."""
        return self.levels

    @property
    def others(self) -> float | None:
        """See `Kind`."""
        return None if self.other is None else self.levels[self.other]

    def _own_scales(self, column: str) -> dict[str, Center]:
        places = self.levels.values()
        return {column: ((min(places) + max(places)) / 2, WIDER / self.distance)}

    def place(self, value: Any) -> float:
        """See `Kind`."""
        return _place(self.levels, value)

    @property
    def farthest(self) -> Fraction:
        """See `Kind`."""
        places = [Fraction(place) for place in self.levels.values()]
        return (max(places) - min(places)) * Fraction(self.distance)

    def within(self, B: float) -> str:
        """See `Kind`."""
        places = [Fraction(place) for place in sorted(self.levels.values())]
        unit, most = Fraction(self.distance), Fraction(B)
        whole = (places[-1] - places[0]) * unit
        if whole <= most:
            return f"all its levels are within {up(float(whole), 6)} of each other: hidden at B = {exact(B)}"
        near = min(b - a for a, b in pairwise(places)) * unit
        if near > most:
            return (
                f"no two of its levels are within B = {exact(B)}: NOT hidden from each other; "
                f"B = {up(float(near), 6)} would hide the nearest ones"
            )
        steps = floor(most / unit * 100 + Fraction(1, 10**9)) / 100
        return (
            f"levels up to {steps:g} steps apart are within B = {exact(B)}; those "
            f"farther apart are NOT hidden from each other, and B = {up(float(whole), 6)} would hide all"
        )


class Date(Kind):
    """A date, told by the days since a declared one.

    Example:
        >>> Date(kind="date", days_from="2026-01-01", days=28).place("2026-01-08")
        7.0
    """

    kind: Literal["date"] = Field(description="this kind")
    days_from: str = Field(description="the day that days are counted from, as in 2026-01-01")
    days: Annotated[
        float, checked(lambda value: check.number("days", value, at_least=0.5, at_most=MOST_DAYS)),
    ] = Field(
        description="so many days move a row by 1: with 28, two dates a week apart are 0.25 apart"
    )  # fmt: skip
    format: str = Field(
        default="",
        description="how text writes a date, as in %d/%m/%Y; by default 2026-11-19, with or without a time",
    )

    @field_validator("days_from")
    @classmethod
    def _is_a_day(cls, text: str) -> str:
        day_number(text)
        return text

    @field_validator("format")
    @classmethod
    def _can_be_read(cls, text: str) -> str:
        if text:
            must_be_format(text)
        return text

    def _own_scales(self, column: str) -> dict[str, Center]:
        return {column: (0.0, self.days * WIDER)}

    def place(self, value: Any) -> float:
        """See `Kind`."""
        days = day_number(value) - day_number(self.days_from)
        return float(max(-MOST_DAYS, min(MOST_DAYS, days)))

    def within(self, B: float) -> str:
        """See `Kind`."""
        days = floor(Fraction(B) * Fraction(self.days))
        if not days:
            return (
                f"no two days are within B = {exact(B)}: NOT hidden from each other; "
                f"B = {up(1 / self.days, 6)} would hide a day from the next"
            )
        return (
            f"dates up to {days:,} day{'s' if days > 1 else ''} apart are within B = {exact(B)}; those "
            f"farther apart are NOT hidden from each other: n days take B = n/{exact(self.days)}"
        )


AnyKind = Annotated[NumberKind | YesOrNo | Category | Ordered | Date, Field(discriminator="kind")]
"""The kinds that a policy may declare for a column."""


def _place(words: Mapping[str, float], value: Any) -> float:
    if value not in words:
        some = ", ".join(map(repr, list(words)[:8])) + (", …" if len(words) > 8 else "")
        raise ValueError(f"{value!r} is none of its values: give one of {some}")
    return words[value]


def _least_step(places: Sequence[float]) -> float:
    return min((b - a for a, b in pairwise(places)), default=0.0)

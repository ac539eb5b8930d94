"""What every kind of column has: features with declared scales, words, and what distance B means."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import sqrt
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from targetdp._core import check, exact, up
from targetdp._files import StrictModel, in_words

Center = tuple[float, float]
"""What is subtracted from a feature, and what it is divided by."""

MOST_LEVELS = 1_000
_LONGEST_WORD = 100
WIDER = 1 + 2.0**-34
"""What scales are widened by: more than rounding takes from places, and days, within these bounds."""


def checked(check_: Any) -> BeforeValidator:
    return BeforeValidator(in_words(check_))


def _several(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Word = Annotated[str, checked(lambda value: check.text("value", value, longest=_LONGEST_WORD))]
Moved = Annotated[
    float, checked(lambda value: check.number("distance", value, at_least=1e-6, at_most=2)),
    Field(json_schema_extra={"minimum": 1e-6, "maximum": 2}),
]  # fmt: skip
Words = Annotated[
    tuple[Word, ...],
    BeforeValidator(_several, json_schema_input_type=str | list[str]),
    Field(min_length=1, max_length=MOST_LEVELS),
]


class Kind(StrictModel, ABC):
    """What every kind of column declares, and what follows from it.

    Example:
        >>> from targetdp.table import NumberKind
        >>> NumberKind(kind="number", gap_distance=0.1).features("topups")
        ('topups', 'topups=missing')
    """

    gap_distance: Moved | None = Field(
        default=None,
        description="adds a column that says whether the value was missing, which moves a row so far",
    )

    def scales(self, column: str) -> dict[str, Center]:
        """Center and scale of each feature that a column becomes, where it is declared.

        Args:
            column: The column's name.

        Returns:
            By feature; a plain number has none.
        """
        found = self._own_scales(column)
        if self.gap_distance is not None:
            found[missing_name(column)] = (0.5, WIDER / self.gap_distance)
        return found

    def features(self, column: str) -> tuple[str, ...]:
        """Names of the numbers that a column becomes, in their order."""
        return tuple(self.scales(column))

    @property
    def words(self) -> Mapping[str, float] | None:
        """What each word stands for; None where values are no words."""
        return None

    @property
    def others(self) -> float | None:
        """What a word that is not declared stands for; None where it is an error."""
        return None

    @abstractmethod
    def _own_scales(self, column: str) -> dict[str, Center]:
        """Those of the features but the one about gaps."""

    @abstractmethod
    def place(self, value: Any) -> float:
        """What a declared constant for missing values stands for; a ValueError if it is no value of these."""

    @property
    def farthest(self) -> Fraction | None:
        """How far apart two of its values are at most; None where nothing that is declared bounds it."""
        return None

    def gaps_within(self, B: float) -> str:
        """What distance B means for missing values, in words."""
        gap, others = Fraction(self.gap_distance or 0.0), self.farthest
        like = f"a missing value, and one like the constant for it, are {apart(gap, B)}"
        if others is None:
            return f"{like}; one that is r away from the constant is √(r² + {exact(float(gap))}²) away"
        if not others:
            return like
        squared = gap**2 + others**2
        return f"{like}; a missing value and any other are at most {apart_by_square(squared, B)}"

    @abstractmethod
    def within(self, B: float) -> str:
        """What distance B means for the column, in words."""


def missing_name(column: str) -> str:
    """What the feature is called that says whether a column's value was missing.

    Args:
        column: The column's name.

    Returns:
        The feature's.

    Example:
        >>> missing_name("topups")
        'topups=missing'
    """
    return f"{column}=missing"


def apart(distance: float | Fraction, B: float) -> str:
    """How far apart two values are, and what that means."""
    return apart_by_square(Fraction(distance) ** 2, B)


def apart_by_square(squared: Fraction, B: float) -> str:
    """The same for the square of a distance, of which none is taken for smaller than it is."""
    distance = up(sqrt(squared) * (1 + 2.0**-50), 6)
    if squared <= Fraction(B) ** 2:
        return f"{distance} apart, within B = {exact(B)}: hidden from each other"
    return f"{distance} apart: NOT hidden from each other at B = {exact(B)}; B = {distance} would hide them"


def first_names(names: Iterable[str], most: int = 12) -> str:
    """The first of some names, and how many more there are.

    Args:
        names: Any names.
        most: How many are listed.

    Returns:
        A part of a sentence.

    Example:
        >>> first_names("abcd", most=2)
        'a, b and 2 more'
    """
    listed = list(names)
    more = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {more:,} more" if more > 0 else "")

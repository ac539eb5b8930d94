"""Fields that files of several kinds have: names, reasons, numbers, distances."""

import unicodedata
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from targetdp._core import check

LONGEST_NAME = 60
"""Characters of a name."""
LONGEST_REASON = 500
"""Characters of a reason."""
MOST_WORDS = 6
"""Words of a name."""


def in_words(checked: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What has the wrong type is a wrong value in a file: pydantic tells one, and lets the other through.

    Args:
        checked: A check that may raise a `TypeError`.

    Returns:
        The same check, which raises a `ValueError` in its place.

    Example:
        >>> in_words(float)("1.5")
        1.5
    """

    def validator(value: Any) -> Any:
        try:
            return checked(value)
        except TypeError as error:
            raise ValueError(str(error)) from error

    return validator


def plain_name(value: Any) -> str:
    """A name that stands on signed pages: it names something, and cannot be a sentence.

    Args:
        value: What was given.

    Returns:
        The name.

    Raises:
        TypeError: It is no text.
        ValueError: It is too long, or has other characters than names have.

    Example:
        >>> plain_name("Togo 2026")
        'Togo 2026'
    """
    name = check.text("name", value, longest=LONGEST_NAME)
    plain = all(c.isalnum() or c in " _-'" or unicodedata.combining(c) for c in name)
    if not plain or len(name.split(" ")) > MOST_WORDS:
        raise ValueError(
            f"name = {name!r} is no plain name: use letters, digits, spaces, _, - and ', at most "
            f"{MOST_WORDS} words"
        )
    return name


_name = in_words(plain_name)
_reason = in_words(lambda value: check.text("reason", value, longest=LONGEST_REASON))
# Numbers are checked where all numbers are; pydantic would take text or a truth value for one.
_number = in_words(lambda value: check.number("value", value))

Name = Annotated[str, BeforeValidator(_name)]
"""A plain name, as `plain_name` checks it."""
Reason = Annotated[str, BeforeValidator(_reason)]
"""Words on one line."""
Number = Annotated[float, BeforeValidator(_number)]
"""A finite number."""
Constant = Annotated[
    float | str, BeforeValidator(lambda value: value if isinstance(value, str) else _number(value))
]
"""What stands for a missing value: a number, or a value of the column's kind."""
Distance = Annotated[Number, Field(gt=0, le=2)]
"""Between two rows of the unit ball."""
Epsilon = Annotated[Number, Field(gt=0)]
"""ε of a guarantee."""
Delta = Annotated[Number, Field(gt=0, lt=1)]
"""δ of a guarantee."""

"""Dates of a table as days: from text in a declared format, and from Arrow's types. No clock, no place.

Formats are read here, not by the C library, which knows other ones on other machines. What has a time of day
is the day that is written; a moment with a time zone is its day in UTC, wherever the table is read.
"""

import re
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from targetdp._core import Floats

_PARTS = {"Y": "[0-9]{4}", "m": "[0-9]{1,2}", "d": "[0-9]{1,2}", "H": "[0-9]{1,2}", "M": "[0-9]{2}",
          "S": r"[0-9]{2}(?:\.[0-9]+)?"}  # fmt: skip
_ISO = (
    r"^(?P<Y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})"
    r"(?:[T ][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?Z?)?$"
)
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_EPOCH = date(1970, 1, 1).toordinal()


def day_number(text: str) -> int:
    """The number of a day that is written as in 2026-11-19, counted from 1970.

    Args:
        text: The day.

    Returns:
        Its number.

    Raises:
        ValueError: It is no day, or is written otherwise.

    Example:
        >>> day_number("1970-02-01")
        31
    """
    try:
        day = date.fromisoformat(text)
    except (TypeError, ValueError):
        day = None
    if day is None or day.isoformat() != text:
        raise ValueError(f"{text!r} is no day: write it as 2026-01-01")
    return day.toordinal() - _EPOCH


def must_be_format(text: str) -> None:
    """Refuse a format of dates that cannot be read, or not in one way.

    Args:
        text: As in ``"%d/%m/%Y"``.

    Raises:
        ValueError: It is another one.

    Example:
        >>> must_be_format("%d/%m/%y")
        Traceback (most recent call last):
        ValueError: '%d/%m/%y' has %y: use %Y, %m, %d, %H, %M and %S, each once at most, ...
    """
    parts = re.findall("%(.?)", text.replace("%%", ""))
    wrong = [part for part in parts if part not in _PARTS]
    if wrong or len(set(parts)) < len(parts):
        odd = f"%{wrong[0]}" if wrong else "a part twice"
        raise ValueError(
            f"{text!r} has {odd}: use %Y, %m, %d, %H, %M and %S, each once at most, and %% for a percent sign"
        )
    if not {"Y", "m", "d"} <= set(parts):
        raise ValueError(f"{text!r} does not tell a day: it needs %Y, %m and %d")


def _pattern(text: str) -> str:
    """A format as a regular expression."""
    if not text:
        return _ISO
    pieces = re.split("(%.)", text)
    return "^" + "".join(
        re.escape(piece) if not re.fullmatch("%.", piece)
        else "%" if piece == "%%"
        else f"(?P<{piece[1]}>{_PARTS[piece[1]]})"
        for piece in pieces
    ) + "$"  # fmt: skip


def days_of_texts(texts: pa.StringArray, format_: str) -> Floats:
    """Texts as numbers of days since 1970; NaN for what is no date.

    Args:
        texts: Any texts, none of them null.
        format_: How they write a date; empty for 2026-11-19, with or without a time.

    Returns:
        A number for each.

    Example:
        >>> days_of_texts(pa.array(["1970-01-02", "1970-02-30", "02/01/1970"]), "")
        array([ 1., nan, nan])
    """
    found = pc.extract_regex(texts, _pattern(format_))
    read = np.asarray(found.is_valid().to_numpy(zero_copy_only=False))
    days = np.full(len(texts), np.nan)
    if not read.any():
        return days
    found = found.filter(pa.array(read))
    year, month, day = (_whole(found.field(part)) for part in ("Y", "m", "d"))
    good = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = (np.where(good, year, 1970) - 1970) * 12 + np.where(good, month, 1) - 1
    first, after = (_first_day(months + more) for more in (0, 1))
    good &= day <= after - first
    days[read] = np.where(good, first + day - 1, np.nan)
    return days


def _whole(texts: pa.StringArray) -> NDArray[np.int64]:
    return np.asarray(texts.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _first_day(months: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the first day of each month, counted from January 1970."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def days_of_type(column: Any) -> Floats | None:
    """A column of dates or moments as numbers of days since 1970; None where it is of another type.

    Args:
        column: An array without nulls that matter: NaN stands for them.

    Returns:
        A number for each value.

    Example:
        >>> days_of_type(pa.array([86_399, -1], pa.timestamp("s")))
        array([ 0., -1.])
    """
    kind = column.type
    if pa.types.is_date32(kind):
        numbers, per_day = column.cast(pa.int32()).cast(pa.int64()), 1
    elif pa.types.is_date64(kind) or pa.types.is_timestamp(kind):
        numbers, per_day = column.cast(pa.int64()), _PER_DAY["ms" if pa.types.is_date64(kind) else kind.unit]
    else:
        return None
    missing = np.asarray(numbers.is_null().to_numpy(zero_copy_only=False))
    whole = np.asarray(numbers.fill_null(0).to_numpy(zero_copy_only=False))
    return np.where(missing, np.nan, whole // per_day)

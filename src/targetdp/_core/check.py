"""The only place that validates arguments.

Each function returns the validated value in one standard form, or raises a `ValueError` (a
`TypeError` for what is not even of the right kind) that says name, value, range and remedy.
"""

import math
import operator
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from targetdp._core._types import Floats

MAX_COLUMNS = 16_384
"""The widest table that the noise arguments of `docs/noise.md` cover."""


_NOT_A_NUMBER = (bool, np.bool_, str, bytes, np.complexfloating, np.ndarray, np.timedelta64, np.void)


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    remedy: str = "",
) -> float:
    """A finite real number in an interval that is open (above, below) or closed (at_least, at_most).

    Args:
        name: What messages call it.
        value: What the caller gave; booleans, texts and arrays are refused.
        above: Lower end, not allowed itself.
        at_least: Lower end, allowed.
        below: Upper end, not allowed itself.
        at_most: Upper end, allowed.
        remedy: What the message advises.

    Returns:
        The value as a float.

    Raises:
        TypeError: It is not a number.
        ValueError: It is not finite, or outside the interval.

    Example:
        >>> number("epsilon", 2, above=0)
        2.0
    """
    allowed = (
        f"{'(' if at_least is None else '['}{_bound(above, at_least, '-inf')}, "
        f"{_bound(below, at_most, 'inf')}{')' if at_most is None else ']'}{_tail(remedy)}"
    )
    if isinstance(value, _NOT_A_NUMBER) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} = {value!r} is not a number: it must lie in {allowed}")
    try:
        with np.errstate(over="ignore"):  # a long double may not fit: it is then refused as infinite
            x = float(value)
    except OverflowError as error:
        raise ValueError(f"{name} = {value!r} is outside {allowed}") from error
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} = {value!r} is not one number: it must lie in {allowed}") from error
    inside = (
        math.isfinite(x)
        and (above is None or x > above)
        and (at_least is None or x >= at_least)
        and (below is None or x < below)
        and (at_most is None or x <= at_most)
    )
    if not inside:
        raise ValueError(f"{name} = {x!r} is outside {allowed}")
    return x


def integer(name: str, value: Any, *, at_least: int, at_most: int | None = None, remedy: str = "") -> int:
    """A whole number in a closed interval. Booleans and floats are refused.

    Args:
        name: What messages call it.
        value: What the caller gave.
        at_least: The smallest that is allowed.
        at_most: The largest that is allowed; None for any.
        remedy: What the message advises.

    Returns:
        The value as an int.

    Raises:
        TypeError: It is not a whole number.
        ValueError: It is outside the interval.

    Example:
        >>> integer("k", 10, at_least=1)
        10
    """
    allowed = f"{at_least} to {'any' if at_most is None else at_most}{_tail(remedy)}"
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} = {value!r} is not a whole number: give {allowed}")
    try:
        n = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{name} = {value!r} is not a whole number: give {allowed}") from error
    if n < at_least or (at_most is not None and n > at_most):
        raise ValueError(f"{name} = {n} is outside {allowed}")
    return n


def instance(name: str, value: Any, kind: type) -> None:
    """A value of one of our own types.

    Args:
        name: What messages call it.
        value: What the caller gave.
        kind: The class that it must be of.

    Raises:
        TypeError: It is of another class.

    Example:
        >>> instance("name", "togo", str)
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name} = {value!r} is not a {kind.__name__}: give a {kind.__name__}")


def choice(name: str, value: Any, options: Collection[str]) -> str:
    """One of several words.

    Args:
        name: What messages call it.
        value: What the caller gave.
        options: The words that are allowed.

    Returns:
        The value.

    Raises:
        ValueError: It is none of them.

    Example:
        >>> choice("rows", "clip", ("clip", "unit"))
        'clip'
    """
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} = {value!r} is not one of {', '.join(sorted(options))}")
    return value


def several(name: str, values: Any, remedy: str) -> list[Any]:
    """A list, whatever it was given as; one thing alone, a text included, is refused.

    Args:
        name: What messages call it.
        values: What the caller gave.
        remedy: What the message advises.

    Returns:
        The values as a list.

    Raises:
        TypeError: It is one thing, or nothing that can be listed.

    Example:
        >>> several("features", ("a", "b"), "give a list of names")
        ['a', 'b']
    """
    if not isinstance(values, str | bytes):
        try:
            return list(values)
        except TypeError:
            pass
    raise TypeError(f"{name} = {values!r} is not a list: {remedy}")


def text(name: str, value: Any, *, longest: int) -> str:
    """Words on one line: what looks empty, or like another text, is refused.

    Args:
        name: What messages call it.
        value: What the caller gave.
        longest: The largest number of characters.

    Returns:
        The text, with each accent spelled in one way (Unicode's NFC).

    Raises:
        TypeError: It is not text.
        ValueError: It is empty, too long, not printable, or has space at an end.

    Example:
        >>> text("reason", "a pilot", longest=80)
        'a pilot'
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} = {value!r} is not text: give 1 to {longest} characters")
    if not value.strip() or value != value.strip() or len(value) > longest or not value.isprintable():
        raise ValueError(
            f"{name} = {value[:longest]!r} is outside 1 to {longest} printable characters "
            "without space at the ends: give it a plain name or reason"
        )
    # One name, one spelling: an accent may be a letter or a mark of its own.
    return unicodedata.normalize("NFC", value)


def distance(value: Any, name: str = "distance") -> float:
    """A distance between two rows of the unit ball: (0, 2].

    Args:
        value: What the caller gave.
        name: What messages call it.

    Returns:
        The distance as a float.

    Raises:
        ValueError: It is outside (0, 2].

    Example:
        >>> distance(2)
        2.0
    """
    return number(
        name, value, above=0, at_most=2, remedy="rows lie in the unit ball, so no two are farther than 2"
    )


def dimensions(value: Any, name: str = "dimensions") -> int:
    """A number of columns.

    Args:
        value: What the caller gave.
        name: What messages call it.

    Returns:
        A whole number from 1 to `MAX_COLUMNS`.

    Raises:
        ValueError: It is outside that range.

    Example:
        >>> dimensions(10)
        10
    """
    return integer(name, value, at_least=1, at_most=MAX_COLUMNS)


def table(X: Any, name: str = "X", *, columns: int | None = None) -> Floats:
    """A non-empty table of finite numbers as a C-contiguous float64 array.

    It may share the caller's memory: nobody here writes to it. Integers and narrower floats are widened.
    One-dimensional input is refused, since a row and a column would look alike.

    Args:
        X: What the caller gave: whatever numpy makes a table of numbers of.
        name: What messages call it.
        columns: How many columns it must have, if that is known.

    Returns:
        The table as an array of n rows and d columns.

    Raises:
        TypeError: It does not hold numbers.
        ValueError: It has another shape, a masked value, or one that is not finite.

    Example:
        >>> table([[1, 2], [3, 4]])
        array([[1., 2.],
               [3., 4.]])
    """
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(f"{name} has masked values: impute or drop them first")
    array = _array(name, X)
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} has dtype {array.dtype}: it must hold numbers; encode or drop other columns first"
        )
    if array.ndim != 2:
        raise ValueError(
            f"{name} has shape {array.shape}: it must be a table of rows and columns; "
            f"use {name}.reshape(-1, 1) for one column"
        )
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ValueError(f"{name} has shape {array.shape}: it must have at least one row and one column")
    if columns is not None and array.shape[1] != columns:
        raise ValueError(f"{name} has {array.shape[1]} columns: exactly {columns} are needed")
    dimensions(array.shape[1], f"{name}'s number of columns")
    widened = np.ascontiguousarray(array, dtype=np.float64)
    finite = np.isfinite(widened)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"{name} has {int((~finite).sum())} values that are NaN or infinite "
            f"(first: row {row}, column {column}): impute or drop them first"
        )
    return widened


def vector(name: str, values: Any, *, length: int, above: float | None = None) -> Floats:
    """A one-dimensional array of finite numbers of a known length.

    Args:
        name: What messages call it.
        values: What the caller gave.
        length: How many numbers there must be.
        above: All must be above it, if it is given.

    Returns:
        The numbers as an array that cannot be written to.

    Raises:
        ValueError: It has another length, or a number that is not finite or not above the limit.

    Example:
        >>> vector("scale", [1, 2], length=2, above=0)
        array([1., 2.])
    """
    array = _array(name, values)
    if array.dtype.kind not in "iuf" or array.shape != (length,):
        raise ValueError(
            f"{name} has shape {array.shape} and dtype {array.dtype}: "
            f"give one number for each of the {length} columns"
        )
    widened = np.array(array, dtype=np.float64)
    wrong = ~np.isfinite(widened)
    if above is not None:
        wrong |= ~(widened > above)
    if wrong.any():
        at = int(np.argmax(wrong))
        limit = "finite" if above is None else f"finite and above {above:g}"
        raise ValueError(f"{name}[{at}] = {float(widened[at])!r} is not {limit}")
    widened.setflags(write=False)
    return widened


def generator(rng: Any) -> np.random.Generator | None:
    """None (a release: the operating system's entropy) or a numpy generator (a simulation).

    Args:
        rng: What the caller gave.

    Returns:
        The same.

    Raises:
        TypeError: It is something else, such as a seed.

    Example:
        >>> generator(None) is None
        True
    """
    if rng is None or isinstance(rng, np.random.Generator):
        return rng
    raise TypeError(
        f"rng = {rng!r} is not a numpy Generator: pass np.random.default_rng(seed) to simulate, "
        "or nothing to draw a release's noise, which cannot be seeded"
    )


def _array(name: str, values: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is not a regular array ({error}): give rows of equal length") from error


def _bound(open_end: float | None, closed_end: float | None, infinite: str) -> str:
    end = closed_end if open_end is None else open_end
    return infinite if end is None else f"{end:g}"


def _tail(remedy: str) -> str:
    return f": {remedy}" if remedy else ""


def twice(names: Iterable[str]) -> list[str]:
    """Names that occur more than once, in order.

    Args:
        names: Any names.

    Returns:
        Each of those names once, sorted.

    Example:
        >>> twice(["b", "a", "b"])
        ['b']
    """
    return sorted(name for name, times in Counter(names).items() if times > 1)

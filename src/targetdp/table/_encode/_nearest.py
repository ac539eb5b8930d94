"""The way back: from numbers with noise to the nearest values of a column's kind."""

from collections.abc import Mapping
from datetime import date

import numpy as np
import pyarrow as pa

from targetdp._core import Floats
from targetdp.table._encode._dates import day_number
from targetdp.table._encode._encoding import Encoding
from targetdp.table._encode._kind import missing_name
from targetdp.table._encode._kinds import Category, Date, Ordered, YesOrNo

_FIRST, _LAST = (day_number(day.isoformat()) for day in (date.min, date.max))


def nearest_values(encoding: Encoding, numbers: Mapping[str, Floats]) -> dict[str, pa.Array]:
    """Columns of the table's own kinds, made of features.

    Args:
        encoding: How columns became features.
        numbers: Each feature, in the units of its map.

    Returns:
        By column, in the order of the features: numbers as they are, the nearest level, day or word of
        others, and whether a value was missing. A category of which not all levels are there stays numbers.

    Example:
        >>> kind = Category(kind="category", levels=["north", "south"], distance=0.5)
        >>> found = nearest_values(
        ...     Encoding({"region": kind}),
        ...     {"region=north": np.array([0.7, 0.1]), "region=south": np.array([0.2, 0.3])},
        ... )
        >>> found["region"].to_pylist()
        ['north', 'south']
    """
    found: dict[str, pa.Array] = {}
    for name, values in numbers.items():
        column = encoding.source(name)
        kind = encoding.kinds.get(column)
        if kind is None or (name == column and kind.kind == "number"):
            found[name] = pa.array(values)
        elif name == missing_name(column) and not isinstance(kind, Category):
            found[name] = pa.array(values > 0.5)
        elif isinstance(kind, Category):
            levels = kind.features(column)
            if not {*levels} <= {*numbers}:
                found[name] = pa.array(values)
            elif column not in found:
                nearest = np.argmax(np.stack([numbers[level] for level in levels]), axis=0)
                found[column] = pa.array(kind.all).take(pa.array(nearest))
        elif isinstance(kind, Date):
            days = np.clip(np.rint(values) + day_number(kind.days_from), _FIRST, _LAST)
            found[column] = pa.array(days.astype(np.int32)).cast(pa.date32())
        elif isinstance(kind, Ordered):
            found[column] = _nearest_word(kind.levels, values)
        elif isinstance(kind, YesOrNo):
            found[column] = _nearest_word({kind.no[0]: 0.0, kind.yes[0]: 1.0}, values)
    return found


def _nearest_word(places: Mapping[str, float], values: Floats) -> pa.Array:
    """The word whose place is nearest."""
    words = sorted(places, key=places.__getitem__)
    ordered = np.array([places[word] for word in words])
    middles = ordered[:-1] + (ordered[1:] - ordered[:-1]) / 2
    return pa.array(words).take(pa.array(np.searchsorted(middles, values)))

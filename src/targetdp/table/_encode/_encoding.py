"""How columns of a table become numbers, by maps that depend on one value and on what is declared alone."""

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, check
from targetdp._files import canonical, toml_key
from targetdp.table._encode._dates import day_number, days_of_texts, days_of_type
from targetdp.table._encode._kind import Center, Kind, missing_name
from targetdp.table._encode._kinds import MOST_DAYS, AnyKind, Category, Date, NumberKind, YesOrNo
from targetdp.table._problems import type_name
from targetdp.table._rows import fill_numbers, look_closer
from targetdp.table._source import is_text, plain_type
from targetdp.table._spelling import GAPS
from targetdp.table._tally import Tally

_MOST_LINES = 12
"""Columns that have a line of their own."""
Constant = float | str
"""What stands for a missing value: a number, or a value of the column's kind."""


@dataclass(frozen=True)
class Encoding:
    """How columns become numbers: plain ones as they are, others by their kinds.

    Args:
        kinds: Of columns that are no plain numbers.
        gaps: Declared constants for missing values, by column.

    Guarantees: a value becomes the same numbers in every table, whatever stands in other rows.

    Example:
        >>> from targetdp.table import Category
        >>> region = Category(kind="category", levels=["north", "south"], distance=0.5)
        >>> encoding = Encoding({"region": region})
        >>> encoding.expanded(["region", "calls"])
        ('region=north', 'region=south', 'calls')
        >>> batch = pa.record_batch({"region": ["south", "north"]})
        >>> encoding.numbers(batch, ["region=south"], Tally(), 0)
        array([[1., 0.]])
    """

    kinds: Mapping[str, AnyKind] = field(default_factory=dict)
    gaps: Mapping[str, Constant] = field(default_factory=dict)

    @cached_property
    def _of(self) -> dict[str, str]:
        """Which column each feature is made of, for columns that have a kind."""
        return {feature: column for column, kind in self.kinds.items() for feature in kind.features(column)}

    @cached_property
    def _scales(self) -> dict[str, Center]:
        return {name: one for column, kind in self.kinds.items() for name, one in kind.scales(column).items()}

    def problems(self) -> Iterator[str]:
        """What is wrong with constants for missing values."""
        for name, value in self.gaps.items():
            kind = self.kinds.get(name)
            try:
                check.number("value", value) if kind is None else kind.place(value)
            except (ValueError, TypeError) as error:
                yield f"gaps.{name} = {value!r}: {error}"
        for name, kind in self.kinds.items():
            if kind.gap_distance is not None and name not in self.gaps:
                yield (
                    f"kinds.{name} has gap_distance, and nothing stands for a missing value: say what does, "
                    f"in [gaps] {toml_key(name)} = …"
                )

    def expanded(self, names: Iterable[str]) -> tuple[str, ...]:
        """The features that columns become; what is no column with a kind stays as it is."""
        found = (self.kinds[name].features(name) if name in self.kinds else (name,) for name in names)
        return tuple(dict.fromkeys(feature for features in found for feature in features))

    def source(self, feature: str) -> str:
        """The column that a feature is made of."""
        return self._of.get(feature, feature)

    def sources(self, features: Iterable[str]) -> tuple[str, ...]:
        """The columns that features are made of, each once."""
        return tuple(dict.fromkeys(map(self.source, features)))

    def is_feature(self, name: str) -> bool:
        """Whether a name is that of numbers: not so the column of a category, which becomes several."""
        return name in self._of or name not in self.kinds

    def scales(self, features: Iterable[str]) -> dict[str, Center]:
        """Center and scale of those features that have declared ones."""
        return {name: self._scales[name] for name in features if name in self._scales}

    def numbers_only(self, features: Iterable[str]) -> tuple[str, ...]:
        """Those features whose scales are not declared with a kind: plain numbers."""
        return tuple(name for name in features if name not in self._scales)

    def used(self, features: Iterable[str]) -> "Encoding":
        """As much of it as some features, or columns that are taken as they are, need."""
        own = self.sources(features)
        kinds = {name: self.kinds[name] for name in own if name in self.kinds}
        return Encoding(kinds, {name: self.gaps[name] for name in own if name in self.gaps})

    def constants(self, columns: Iterable[str]) -> dict[str, float]:
        """What stands for missing values of plain numbers."""
        plain = (name for name in columns if name in self.gaps and name not in self._of)
        return {name: float(self.gaps[name]) for name in plain}

    def mark(self, column: str) -> str:
        """Tells the map of a column with a kind from every other one."""
        told = {"kind": self.kinds[column].model_dump(mode="json"), "gap": self.gaps.get(column)}
        return hashlib.sha256(canonical(told).encode()).hexdigest()[:16]

    def within(self, features: Sequence[str], B: float) -> Iterator[str]:
        """What distance B means for columns with a kind, in words: a line for each, of the first of them."""
        own = self.used(features).kinds
        for column, kind in list(own.items())[:_MOST_LINES]:
            looked_at = sum(name in features for name in kind.features(column))
            if isinstance(kind, Category) and looked_at < len(kind.all):
                yield f"{column}: {kind.within_of(looked_at, B)}"
                continue
            yield f"{column}: {kind.within(B)}"
            if kind.gap_distance is not None and not isinstance(kind, NumberKind):
                yield f"{column}: {kind.gaps_within(B)}"
        if own:
            yield "all of this is of two people who differ in nothing else; differences add up as lengths do"
        if len(own) > _MOST_LINES:
            yield f"so on for {len(own) - _MOST_LINES:,} more columns: [kinds] says how far apart values are"

    def types(self, features: Iterable[str], texts: Iterable[str] = ()) -> dict[str, pa.DataType]:
        """How to read the columns of features where a file does not say it; those named as texts as text."""
        as_text = {*texts, *(name for name, kind in self.kinds.items() if not isinstance(kind, NumberKind))}
        return {
            name: pa.string() if name in as_text else pa.float64() for name in self.sources(features)
        }  # fmt: skip

    def numbers(
        self,
        batch: pa.RecordBatch,
        features: Sequence[str],
        tally: Tally,
        offset: int,
        room: Floats | None = None,
    ) -> Floats:
        """The features of a batch column by column, as floats.

        Args:
            batch: Some rows of a table, with the columns that these are made of.
            features: Names of features.
            tally: Takes note of missing values, infinite ones, values of another kind than is declared, and
                columns that are no numbers.
            offset: How many rows of the table come before this batch.
            room: An array that the numbers are written to; by default a new one.

        Returns:
            An array of d features by n rows; where something is wrong, NaN or 0.
        """
        block = np.empty((len(features), batch.num_rows)) if room is None else room
        plain = [place for place, name in enumerate(features) if name not in self._of]
        fill_numbers(
            batch, [features[place] for place in plain], [block[place] for place in plain], tally, offset
        )
        places: dict[str, list[int]] = {}
        for place, name in enumerate(features):
            if name in self._of:
                places.setdefault(self._of[name], []).append(place)
        for column, own in places.items():
            made = self._made(batch, column, tally, offset)
            for place in own:
                block[place] = made[features[place]]
        with np.errstate(over="ignore", invalid="ignore"):
            usual = np.isfinite(block.sum())  # one pass for the usual case; the sum may also just overflow
        if not usual:
            constants = self.constants(features)
            for place in plain:
                look_closer(features[place], block[place], constants, tally, offset)
        if tally.counts:
            tally.columns = self.sources(features)
        return block

    def _made(self, batch: pa.RecordBatch, column: str, tally: Tally, offset: int) -> dict[str, Any]:
        """What a column with a kind becomes, by feature."""
        kind = self.kinds[column]
        if isinstance(kind, NumberKind):
            numbers = np.empty(batch.num_rows)
            fill_numbers(batch, [column], [numbers], tally, offset)
            missing = np.isnan(numbers)
            look_closer(column, numbers, self._constants(column), tally, offset)
            return {column: numbers, missing_name(column): missing}
        values = batch.column(column)
        values = values.cast(plain_type(values.type))
        try:
            read = _days(values, kind) if isinstance(kind, Date) else _places(values, kind)
        except (UnicodeDecodeError, pa.ArrowInvalid) as error:
            raise ValueError(
                f"column {column!r} is damaged or holds text that is not UTF-8: convert it first. "
                "Nothing was published"
            ) from error
        if read is None:
            tally.add_misfit(column, kind.kind, type_name(values.type))
            nothing = np.zeros(len(values))
            return dict.fromkeys(kind.features(column), nothing)
        places, missing, unknown = read
        tally.add(
            "unknown date" if isinstance(kind, Date) else "unknown", column, np.flatnonzero(unknown), offset
        )
        if missing.any():
            if column in self.gaps:
                places[missing] = kind.place(self.gaps[column])
            else:
                tally.add("missing", column, np.flatnonzero(missing), offset)
        found: dict[str, Any] = {missing_name(column): missing}
        if not isinstance(kind, Category):
            return found | {column: places}
        wrong = np.isnan(places)
        return found | {
            f"{column}={level}": np.where(wrong, np.nan, places == place)
            for place, level in enumerate(kind.all)
        }

    def _constants(self, column: str) -> dict[str, float]:
        return {column: float(self.gaps[column])} if column in self.gaps else {}


Codes = np.ndarray[Any, np.dtype[np.int32]]
Read = tuple[Floats, np.ndarray[Any, np.dtype[np.bool_]], np.ndarray[Any, np.dtype[np.bool_]]]
"""Numbers, NaN where there is none; where a value is missing; and where it is none of those declared."""


def _places(values: pa.Array, kind: Kind) -> Read | None:
    """Words as places."""
    words, others = kind.words or {}, kind.others
    if pa.types.is_boolean(values.type) and isinstance(kind, YesOrNo):
        words = {"true": 1.0, "false": 0.0}
    found = words_in(values)
    if found is None:
        return None
    different, codes = found
    missing, unknown = np.zeros(len(different), dtype=np.bool_), np.zeros(len(different), dtype=np.bool_)
    places = np.full(len(different), np.nan)
    for at, word in enumerate(different):
        if word is not None and word in words:
            places[at] = words[word]
        elif word is None or word in GAPS:
            missing[at] = True
        elif others is not None:
            places[at] = others
        else:
            unknown[at] = True
    return places[codes], missing[codes], unknown[codes]


def _days(values: pa.Array, kind: Date) -> Read | None:
    """Dates as days from the declared one."""
    found = days_of_type(values)
    if found is not None:
        unknown = np.zeros(len(found), dtype=np.bool_)
    else:
        if not is_text(values.type) and not (pa.types.is_integer(values.type) and kind.format):
            return None
        each = words_in(values)
        if each is None:
            return None
        different, codes = each
        trimmed = [word or "" for word in different]
        days = days_of_texts(pa.array(trimmed, pa.string()), kind.format)
        gap = np.array([text in GAPS for text in trimmed], dtype=np.bool_)
        found, unknown = days[codes], (np.isnan(days) & ~gap)[codes]
    missing = np.isnan(found) & ~unknown
    return np.clip(found - day_number(kind.days_from), -MOST_DAYS, MOST_DAYS), missing, unknown


NO_WORD = "\0"
"""What bytes that are no UTF-8 count as: no declared level is so, since levels are printable."""


def _word(data: bytes) -> str:
    try:
        return unicodedata.normalize("NFC", data.decode().strip())
    except UnicodeDecodeError:
        return NO_WORD


def words_in(values: pa.Array) -> tuple[list[str | None], Codes] | None:
    """The different values of a column as words, None for gaps, and which of them each row has.

    Spaces at the ends count for nothing, and accents are one letter, however they are written. None where
    values cannot be words.
    """
    kind = values.type
    simple = (
        is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind) or pa.types.is_null(kind) or pa.types.is_date(kind)
    )  # fmt: skip
    if not simple:
        return None
    encoded = pc.dictionary_encode(values.cast(pa.string()))
    words: list[str | None] = [
        None if one is None else _word(one) for one in encoded.dictionary.cast(pa.binary()).to_pylist()
    ]
    codes = encoded.indices.fill_null(len(words))
    return [*words, None], np.asarray(codes.to_numpy(zero_copy_only=False))

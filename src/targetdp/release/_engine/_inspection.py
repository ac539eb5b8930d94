"""A first look at a table: how many rows, where to cut its ids, and what scales need, learned or private."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Integers, Progress, check
from targetdp.normalization import Bounds, ColumnMoments, ColumnScales, scales_of
from targetdp.release._settings import Settings
from targetdp.table import (
    MAX_BUCKETS,
    Source,
    Splitters,
    Tally,
    batch_rows,
    check_columns,
    ids_of,
    numbers_of,
    open_source,
)

GROUP_CELLS = 2_500_000
"""Values in a range of ids, about, and exactly in a row group of the output."""

FEWEST_GROUPED = 10
"""Columns that a range of ids is cut for, at least."""


class Batches(Protocol):
    """A table that can be read from the start, more than once."""

    def count(self) -> int | None:
        """How many rows there are, if that is known without reading."""

    def batches(
        self, columns: list[str], types: dict[str, pa.DataType], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The named columns, at most so many rows at a time."""


@dataclass(frozen=True)
class Inspection:
    """What a first look at the table found: nothing of it leaves but through private scales.

    ``moments`` and ``sums`` are there only if the scales need them.
    """

    rows: int
    splitters: pa.StringArray
    moments: ColumnMoments | None
    sums: Integers | None


def inspect(source: Batches, settings: Settings, bounds: Bounds | None, progress: Progress) -> Inspection:
    """Count rows, find where to cut the ids into even ranges, and sum up what scales need."""
    needs_numbers = settings.scales in {"private", "data"}
    rows = source.count()
    pseudonymous = settings.pseudonymize is not None
    if rows == 0:
        raise nobody_left(settings)
    if rows is not None and pseudonymous and not needs_numbers:
        return Inspection(rows, _hash_splitters(ranges_of(rows, len(settings.released))), None, None)
    progress.phase("reading", rows)
    tally, splitters = Tally(), Splitters()
    seen, moments, sums = 0, None, None
    columns = [settings.id, *(settings.features if needs_numbers else ())]
    for offset, batch in numbered(source, columns, settings.features):
        splitters.add(ids_of(batch.column(settings.id), settings.id, tally, offset))
        if needs_numbers:
            block = numbers_of(batch, settings.features, settings.constants(), tally, offset)
            if not tally.counts:
                moments = joined(moments, ColumnMoments.of(block))
                sums = sums if bounds is None else joined(sums, bounds.sums(block.T))
        seen = offset + batch.num_rows
        progress.advance(batch.num_rows)
    tally.raise_if_any(rows_are_numbered=not settings.leaves_sample_out)
    if seen == 0:
        raise nobody_left(settings)
    if moments is not None:
        refuse_constants(settings.features, moments.lowest, moments.highest)
    ranges = ranges_of(seen, len(settings.released))
    return Inspection(seen, _hash_splitters(ranges) if pseudonymous else splitters.cut(ranges), moments, sums)


def numbered(
    source: Batches, columns: list[str], features: Sequence[str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches that have rows, each behind the number of rows before it."""
    offset = 0
    types = dict.fromkeys(features, pa.float64())
    for batch in source.batches(columns, types, batch_rows(len(features))):
        if batch.num_rows:
            yield offset, batch
            offset += batch.num_rows


def joined(total: Any, more: Any) -> Any:
    """The sum of two parts of a table, either of which may be None: nothing."""
    return more if total is None else total if more is None else total + more


def group_rows(released: int) -> int:
    """How many rows of so many released columns make a range of ids, and a row group of the output.

    Few columns make no larger ranges than ten: ids take memory, too.
    """
    return max(64, GROUP_CELLS // max(released, FEWEST_GROUPED))


def ranges_of(rows: int, released: int) -> int:
    """Into how many ranges of ids a table is cut."""
    return max(1, min(MAX_BUCKETS, -(-rows // group_rows(released))))


def _hash_splitters(buckets: int) -> pa.StringArray:
    """Keyed hashes are uniform, so even ranges need no look at them."""
    return pa.array([f"{(b << 64) // buckets:016x}" for b in range(1, buckets)], pa.string())


def nobody_left(settings: Settings) -> ValueError:
    """What is wrong with a table of nobody."""
    why = "everybody in the table is in the sample" if settings.leaves_sample_out else "the table has no rows"
    return ValueError(f"{why}: there is nothing to release")


def refuse_constants(features: Sequence[str], lowest: Floats, highest: Floats) -> None:
    """No column may have the same value in every row."""
    constant = [name for name, a, b in zip(features, lowest, highest, strict=True) if a == b]
    if constant:
        raise ValueError(
            f"constant columns among the features: {', '.join(map(repr, constant))}: leave them out; the "
            "same value in every row tells nothing and costs the others noise"
        )


def learn_scales(
    table: Path,
    features: Sequence[str],
    *,
    id_column: str | None,
    impute: float | dict[str, float] | None,
    fit: float | None,
    progress: Progress,
) -> ColumnScales:
    """Means and deviations of a table's columns.

    With ``fit`` all scales are multiplied by one number, so that this share of the table's rows fits in the
    unit ball; without, as in the paper, most rows of several columns are longer than 1 and will be clipped.

    Does not guarantee: any privacy. Whoever uses them must say whose data they are from.
    """
    if not features:
        raise ValueError("features must be given: name the columns to scale")
    if fit is not None:
        check.number("fit", fit, above=0, at_most=1, remedy="give the share of rows to fit, such as 0.9")
    source = open_source(table)
    check_columns(source.columns, f"input {table}", id=[id_column] if id_column else [], features=features)
    constants = (
        impute if isinstance(impute, dict) else {} if impute is None else dict.fromkeys(features, impute)
    )
    moments = None
    for block in _blocks(source, features, constants, progress):
        moments = joined(moments, ColumnMoments.of(block))
    if moments is None:
        raise ValueError(f"input {table} has no rows: there is nothing to learn from")
    refuse_constants(features, moments.lowest, moments.highest)
    scales = scales_of(moments, "data", features)
    if fit is None:
        return scales
    lengths = [
        np.linalg.norm((block - scales.center[:, None]) / scales.scale[:, None], axis=0)
        for block in _blocks(source, features, constants, progress)
    ]
    longest = float(np.quantile(np.concatenate(lengths), fit, method="higher"))
    return ColumnScales(scales.center, scales.scale * longest, "data")


def _blocks(
    source: Source, features: Sequence[str], constants: dict[str, float], progress: Progress
) -> Iterator[Floats]:
    """The table's numbers, column by column, in batches; a table with gaps is refused at its end."""
    progress.phase("reading", source.count())
    tally = Tally()
    for offset, batch in numbered(source, list(features), features):
        yield numbers_of(batch, features, constants, tally, offset)
        progress.advance(batch.num_rows)
    tally.raise_if_any()

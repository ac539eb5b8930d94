"""Scales learned from a table of other people, to be declared public."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Progress, check
from targetdp.normalization import ColumnMoments, ColumnScales, scales_of
from targetdp.table import Source, Tally, batch_rows, check_columns, numbers_of, open_source


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
        moments = ColumnMoments.of(block) if moments is None else moments + ColumnMoments.of(block)
    if moments is None:
        raise ValueError(f"input {table} has no rows: there is nothing to learn from")
    _refuse_constants(features, moments)
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
    seen, types = 0, dict.fromkeys(features, pa.float64())
    for batch in source.batches(list(features), types, batch_rows(len(features))):
        if batch.num_rows:
            yield numbers_of(batch, features, constants, tally, seen)
            seen += batch.num_rows
            progress.advance(batch.num_rows)
    tally.raise_if_any()


def _refuse_constants(features: Sequence[str], moments: ColumnMoments) -> None:
    """No column may have the same value in every row."""
    ends = zip(features, moments.lowest, moments.highest, strict=True)
    constant = [name for name, low, high in ends if low == high]
    if constant:
        raise ValueError(
            f"constant columns among the features: {', '.join(map(repr, constant))}: leave them out; the "
            "same value in every row tells nothing and costs the others noise"
        )

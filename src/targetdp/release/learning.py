"""Column scales from a table on disk, in one pass."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from targetdp.moments import Moments
from targetdp.release.columns import Tally, check_columns, numbers_of
from targetdp.release.inspection import Progress, batch_rows, refuse_constants
from targetdp.scales import ColumnScales, scales_of
from targetdp.table.source import open_source


def learn_scales(
    table: Path,
    features: Sequence[str],
    *,
    id_column: str | None,
    impute: float | dict[str, float] | None,
    progress: Progress,
) -> ColumnScales:
    """Means and deviations of a table's columns.

    Does not guarantee: any privacy. Whoever uses them must say whose data they are from.
    """
    if not features:
        raise ValueError("features must be given: name the columns to scale")
    source = open_source(table)
    check_columns(source.columns, f"input {table}", id=[id_column] if id_column else [], features=features)
    constants = (
        impute if isinstance(impute, dict) else {} if impute is None else dict.fromkeys(features, impute)
    )
    progress.phase("reading", source.count())
    tally, moments, seen = Tally(), None, 0
    types = dict.fromkeys(features, pa.float64())
    for batch in source.batches(list(features), types, batch_rows(len(features))):
        if batch.num_rows:
            found = Moments.of(numbers_of(batch, features, constants, tally, seen))
            moments = found if moments is None else moments + found
            seen += batch.num_rows
            progress.advance(batch.num_rows)
    tally.raise_if_any()
    if moments is None:
        raise ValueError(f"input {table} has no rows: there is nothing to learn from")
    refuse_constants(features, moments.lowest, moments.highest)
    return scales_of(moments, "data")

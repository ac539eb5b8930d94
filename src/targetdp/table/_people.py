"""A whole table about people in memory: their ids, and their numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, Progress
from targetdp.table._dialect import Dialect
from targetdp.table._encode._encoding import Encoding
from targetdp.table._rows import check_columns, ids_of
from targetdp.table._source import TableOnDisk, batch_rows, open_source
from targetdp.table._tally import Tally


@dataclass(frozen=True, eq=False)
class PeopleRows:
    """A table of numbers about people: row i of ``rows`` is that of ``ids[i]``.

    Args:
        ids: Everybody's id, each once.
        rows: Everybody's numbers, a column for each feature.

    Example:
        >>> people = PeopleRows(pa.array(["ann", "bob"]), np.array([[3.0], [5.0]]))
        >>> people.rows[people.ids.index("bob").as_py()].tolist()
        [5.0]
    """

    ids: pa.StringArray = field(repr=False)
    rows: Floats = field(repr=False)


def read_people(
    what: str, table: TableOnDisk, id_column: str, features: Sequence[str], *,
    progress: Progress, gaps: Mapping[str, float] | None = None,
    encoding: Encoding | None = None, kind: pa.DataType | None = None,
    csv: Dialect | None = None,
) -> PeopleRows:  # fmt: skip
    r"""Read ids and numbers of a whole table into memory.

    Args:
        what: What messages call the table: ``"sample"``.
        table: The table, as for `open_source`.
        id_column: The column that identifies a person.
        features: Columns of numbers, or features that the encoding makes.
        progress: Is told how far reading is.
        gaps: Constants for missing values, by column.
        encoding: How columns become features, gaps included, where some are no plain numbers.
        kind: How the columns are read where they stand in a CSV: as numbers, unless it says otherwise.
        csv: How CSV files are written, where a certificate says it; by default that is found.

    Returns:
        Everybody's id and numbers, in the table's order.

    Raises:
        ValueError: A column is not there, there are no rows, or something is wrong with ids or values; all of
            it in one message.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from targetdp._core import Silent
        >>> file = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = file.write_text("name,calls\nann,3\nbob,5\n")
        >>> read_people("table", file, "name", ["calls"], progress=Silent()).rows.tolist()
        [[3.0], [5.0]]
    """
    source = open_source(table, csv=csv, keep_words=True)
    encoding = encoding or Encoding({}, dict(gaps or {}))
    columns = encoding.sources(features)
    check_columns(source.columns, f"{what} {source.name}", id=[id_column], features=columns)
    progress.phase(f"reading {source.files[0].name}", source.count())
    tally, seen, ids, blocks = Tally(), 0, [], []
    types = dict.fromkeys(features, kind) if kind is not None else encoding.types(features)
    for batch in source.batches([id_column, *columns], types, batch_rows(len(features))):
        ids.append(ids_of(batch.column(id_column), id_column, tally, seen))
        blocks.append(encoding.numbers(batch, features, tally, seen))
        seen += batch.num_rows
        progress.advance(batch.num_rows)
    if not seen:
        raise ValueError(f"{what} {source.name} has no rows: there is nobody in it")
    if tally.counts:
        raise ValueError("\n".join([f"{what} {source.name}:", *tally.lines(policy=False)]))
    together = pa.concat_arrays(ids)
    if (different := pc.count_distinct(together).as_py()) < seen:
        raise ValueError(
            f"{what} {source} has {seen - different:,} rows whose id occurs before: one row for each person"
        )
    return PeopleRows(together, np.ascontiguousarray(np.concatenate(blocks, axis=1).T))

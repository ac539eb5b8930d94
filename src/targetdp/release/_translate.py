"""Between ids and pseudonyms: only the desk can tell, and only for people whom somebody asks about."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Words
from targetdp.release._desk import Desk
from targetdp.release._ids import Names, pseudonyms
from targetdp.table import TableOnDisk, Tally, check_columns, ids_of, open_source

_ROWS = 1 << 20


@dataclass(frozen=True)
class Translation:
    """Ids beside pseudonyms: it says who is who. ``unknown`` counts pseudonyms that are nobody's."""

    table: pa.Table = field(repr=False)
    unknown: int = 0


def translate_ids(
    desk: Desk, table: TableOnDisk, *, column: str | None = None, everybody: TableOnDisk | None = None
) -> Translation:
    """The pseudonyms of some ids or, with the table of everybody, the ids of some pseudonyms.

    Args:
        desk: Whose pseudonyms they are.
        table: Ids, in any spelling that the policy knows, or pseudonyms; other columns are passed on where
            pseudonyms are translated back.
        column: Where they are; by default in the first column.
        everybody: The table whose releases have these pseudonyms, to translate back.

    Returns:
        A table with the columns ``id`` (as it was given, or as the desk spells it) and ``pseudonym``.
    """
    if not desk.policy.id.pseudonyms:
        raise ValueError(
            "releases of this desk have ids as they are (pseudonyms = false in policy.toml): nothing needs a "
            "translation"
        )
    given, rest = _read(table, column)
    names = desk.names()
    if everybody is None:
        spelled = names.spelling.apply(given)
        if odd := len(names.spelling.odd(spelled)):
            raise ValueError(
                f"{table} has {odd:,} ids in another spelling than policy.toml's [id.spelling]: correct them"
            )
        return Translation(pa.table({"id": given, "pseudonym": pseudonyms(spelled, desk.pseudonym_key)}))
    known_ids, known = [], []
    source = open_source(everybody, csv=desk.policy.csv, keep_words=True)
    check_columns(source.columns, f"table {everybody}", id=[names.column])
    for batch in source.batches([names.column], {}, _ROWS):
        ids = names.ids(batch, Tally(), 0)
        known_ids.append(ids)
        known.append(names.published(ids))
    places = pc.index_in(given, value_set=pa.concat_arrays(known))
    found = pc.is_valid(places)
    ids = pa.concat_arrays(known_ids).take(places.drop_null())
    columns = {"id": ids, "pseudonym": given.filter(found)}
    columns |= {name: rest.column(name).filter(found) for name in rest.column_names if name not in columns}
    return Translation(pa.table(columns), int(places.null_count))


def tags_in(names: Names, table: TableOnDisk, column: str | None = None) -> Words:
    """The tags by which the ledger knows the people of a table, sorted, each once."""
    source = open_source(table)
    wanted = column or source.columns[0]
    check_columns(source.columns, f"table {table}", column=[wanted])
    found = [
        names.tags(names.spelling.apply(ids_of(batch.column(wanted), wanted, Tally(), 0)))
        for batch in source.batches([wanted], {}, _ROWS)
    ]
    return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.uint64)


def _read(table: TableOnDisk, column: str | None) -> tuple[pa.StringArray, pa.Table]:
    """Ids, or pseudonyms, as text, and the other columns."""
    source = open_source(table)
    name = column or source.columns[0]
    check_columns(source.columns, f"table {table}", column=[name])
    whole = pa.Table.from_batches(list(source.batches(list(source.columns), {}, _ROWS)))
    tally = Tally()
    ids = ids_of(whole.column(name), name, tally, 0)
    tally.raise_if_any()
    return ids, whole.drop_columns([name])

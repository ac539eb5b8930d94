"""The rows of people who agreed, found in a table by their ids, column by column as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, Progress, Words
from targetdp.release._ids import Names
from targetdp.release._policy import Policy
from targetdp.table import (
    Source,
    TableOnDisk,
    Tally,
    batch_rows,
    check_columns,
    formulas_in,
    ids_of,
    numbers_of,
    open_source,
    plain_type,
    with_numbers,
)

_ROWS = 1 << 20
_GAP = "missing"
"""What a tally calls it: what is missing is no problem here, and stays so."""


@dataclass(frozen=True)
class NamedPeople:
    """The people of a list: their ids in the desk's spelling, each once.

    ``twice`` are ids that the list has more than once, ``wrong`` says what else is wrong with it.
    """

    ids: pa.StringArray = field(repr=False)
    twice: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class FoundRows:
    """What a table has of some people.

    ``rows`` is what would go out, in the order of published ids, and ``people`` are their tags, sorted.
    ``in_table`` counts everybody's rows, ``repeated`` those whose id came before; ``absent`` are people who
    are not there, and ``wrong`` says what is wrong with ids or values. ``gaps`` counts what is missing in
    each column of numbers, without a declared constant.
    """

    rows: pa.Table = field(repr=False)
    people: Words = field(repr=False)
    in_table: int
    repeated: int
    absent: tuple[str, ...]
    wrong: tuple[str, ...]
    numbers: tuple[str, ...]
    """Columns that are numbers."""
    filled: Mapping[str, float]
    """Constants that stand for missing values of these."""
    gaps: Mapping[str, int]
    formulas: int
    """Ids that go out as they are, and that a spreadsheet would run."""


def people_named(names: Names, table: TableOnDisk, column: str | None) -> NamedPeople:
    """The people whom a list names; by default in its first column."""
    source = open_source(table)
    wanted = column or source.columns[0]
    check_columns(source.columns, f"list of people {table}", column=[wanted])
    tally, seen, found = Tally(), 0, []
    for batch in source.batches([wanted], {}, _ROWS):
        ids = names.spelling.apply(ids_of(batch.column(wanted), wanted, tally, seen))
        tally.add("odd id", wanted, names.spelling.odd(ids), seen)
        found.append(ids)
        seen += batch.num_rows
    counted = pc.value_counts(_joined(found))
    ids, often = counted.field("values"), pc.greater(counted.field("counts"), 1)
    return NamedPeople(ids, tuple(ids.filter(often).to_pylist()), tuple(tally.lines(policy=False)[1:]))


def find_rows(
    source: Source, names: Names, people: pa.StringArray, policy: Policy, columns: Sequence[str],
    progress: Progress,
) -> FoundRows:  # fmt: skip
    """Read a whole table, and keep the rows of some people."""
    progress.phase("reading", source.count())
    tally, kept, ids, tags, seen = Tally(), list[pa.RecordBatch](), [], [], 0
    for batch in source.batches([names.column, *columns], {}, batch_rows(len(columns) + 1)):
        theirs = names.ids(batch, tally, seen)
        tags.append(names.tags(theirs))
        stay = pc.is_in(theirs, value_set=people)
        ids.append(theirs.filter(stay))
        kept.append(batch.select(list(columns)).filter(stay))
        seen += batch.num_rows
        progress.advance(batch.num_rows)
    if source.format == "csv" and kept:  # where all is text: a column is of numbers if all of it is
        whole = pa.Table.from_batches(kept).combine_chunks()
        kept = [with_numbers(batch, columns, source.csv.numerals) for batch in whole.to_batches()]
    own = _joined(ids)
    values = _Columns(kept, policy, columns)
    published = names.published(own)
    order = pc.sort_indices(published)
    arrays = [published.take(order), *(values.arrays[name].take(order) for name in columns)]
    schema = pa.schema(
        [
            pa.field(names.column, pa.string(), nullable=False),
            *(pa.field(name, values.arrays[name].type) for name in columns),
        ]
    )
    everybody = np.concatenate(tags) if tags else np.empty(0, dtype=np.uint64)
    hidden = names.pseudonym_key is not None or not len(own)
    return FoundRows(
        rows=pa.Table.from_arrays(arrays, schema=schema), people=np.unique(names.tags(own)), in_table=seen,
        repeated=len(everybody) - len(np.unique(everybody)),
        absent=tuple(people.filter(pc.invert(pc.is_in(people, value_set=own))).to_pylist()),
        wrong=(*tally.lines()[1:], *values.tally.lines(rows_are_numbered=False)[1:]),
        numbers=values.numbers, filled=policy.encoding.constants(values.numbers), gaps=values.gaps,
        formulas=0 if hidden else formulas_in(own),
    )  # fmt: skip


class _Columns:
    """Columns of some rows: numbers as floats with nulls, and text, where the policy lets text be decided by.

    What cannot be released as a number cannot be handed over as one, either: it is noted, as it is there.
    """

    def __init__(self, rows: Sequence[pa.RecordBatch], policy: Policy, columns: Sequence[str]) -> None:
        self.tally, self.gaps = Tally(), dict[str, int]()
        fill, decide = policy.encoding.constants(columns), policy.columns.decide
        texts = {
            name for name in decide for batch in rows
            if name in columns and _is_text(batch.column(name).type)
        }  # fmt: skip
        self.numbers = tuple(name for name in columns if name not in texts)
        self.arrays = {
            name: _text(rows, name) if name in texts else self._floats(rows, name, fill) for name in columns
        }
        self.tally.columns = tuple(columns) if self.tally.counts else ()

    def _floats(self, rows: Sequence[pa.RecordBatch], name: str, fill: dict[str, float]) -> pa.DoubleArray:
        blocks: list[Floats] = []
        for batch in rows:
            found = Tally()
            blocks.append(numbers_of(batch, [name], fill, found, 0)[0])
            missing = found.counts.pop((_GAP, name), 0)
            found.first.pop((_GAP, name), None)
            if missing:
                self.gaps[name] = self.gaps.get(name, 0) + missing
            self.tally.merge(found)
        values = np.concatenate(blocks) if blocks else np.empty(0)
        return pa.array(values, mask=np.isnan(values))


def _is_text(kind: pa.DataType) -> bool:
    plain = plain_type(kind)
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain))


def _text(rows: Sequence[pa.RecordBatch], name: str) -> pa.StringArray:
    """A column of text; what is empty is missing."""
    text = _joined([batch.column(name).cast(pa.string()) for batch in rows])
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _joined(parts: list[pa.StringArray]) -> pa.StringArray:
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())

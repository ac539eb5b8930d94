"""Tables in pieces of one fixed size, whatever pieces they came in.

How a table was cut on its way here depends on the input's order, layout and even the length of its text. A
release must not show any of that, so what is written is cut anew, by the number of rows alone.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa


def regrouped(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in groups of exactly so many, the last may have fewer; each column in one piece."""
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += table.num_rows
        while count >= rows:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, rows).combine_chunks()
            waiting, count = [whole.slice(rows)], count - rows
    if count:
        yield pa.concat_tables(waiting).combine_chunks()

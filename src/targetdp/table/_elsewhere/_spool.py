"""The spool: a table that is elsewhere is read once, into files for their owner's eyes, which go afterwards.

A release reads its table at least twice, and must meet the same rows each time. A query may not give the same
rows a second time, and a stream cannot be read again. So they are copied first: into a folder with mode 0700,
into files with mode 0600, that are removed when the work is done, or by the next run if this one is killed.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from targetdp._core import Progress, Silent
from targetdp._files import create_new, draft_folder, remove_draft_folders
from targetdp.table._dialect import Dialect
from targetdp.table._sink import regrouped
from targetdp.table._source import Source, TableOnDisk, open_source

_NAME = "targetdp-spool"
_GROUP_CELLS = 1 << 21
"""Values in a row group of a spool: the rows of a group do not depend on how they came."""


class Elsewhere(ABC):
    """A table that is not on this disk. As text it is what messages call it, and holds no secret.

    Example:
        >>> from targetdp.table import Database
        >>> isinstance(Database("sqlite:people.db", table="people"), Elsewhere)
        True
    """

    gives_back = False
    """Whether a release of it may stay in memory."""

    @abstractmethod
    def spool(self, folder: Path, order: str | None, progress: Progress) -> Path:
        """Copy it into a folder, once.

        Args:
            folder: Empty, and for its owner alone.
            order: The column by which rows are sorted, where they come in no order of their own, so that the
                same rows come in the same order another time. A table without it stays as it comes.
            progress: Is told of rows.

        Returns:
            A file, or a folder of parts, that `open_source` opens.

        Raises:
            TableError: It cannot be read.
        """

    def give_back(self, table: pa.Table) -> Any:
        """A table in memory, of the kind that this one is."""
        return table


@contextmanager
def on_disk(
    table: TableOnDisk | Elsewhere,
    folder: Path,
    *,
    csv: str | Dialect | None = None,
    order: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Source]:
    r"""A table as files of this disk: as it is, or a copy that goes when the block ends.

    Args:
        table: A path, several, a source, or a table that is elsewhere.
        folder: Where a copy may lie, for as long as it is needed.
        csv: How CSV files are written; by default that is found.
        order: As for `Elsewhere.spool`.
        progress: Is told of rows that are copied.

    Returns:
        A context manager that gives the source.

    Raises:
        TableError: It cannot be read.

    Guarantees: nobody but the owner can read the copy. It goes when the block ends, whatever happens; if the
    process is killed, the next table that is opened with this folder removes it.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("id,contacts\na,12\n")
        >>> with on_disk(path, path.parent) as source:
        ...     source.columns
        ('id', 'contacts')
    """
    if not isinstance(table, Elsewhere):
        remove_draft_folders(folder / _NAME)
        csv = None if isinstance(table, Source) else csv
        yield open_source(table, csv=csv, keep_words=True)
        return
    progress = progress or Silent()
    with draft_folder(folder / _NAME) as place:
        progress.phase(f"copying {table}", None)
        path = table.spool(place, order, progress)
        try:
            yield replace(open_source(path, csv=csv, keep_words=True), name=str(table), copied=True)
        except ValueError as error:  # where the copy lies is nobody's business
            said = (one.replace(str(path), str(table)) if isinstance(one, str) else one for one in error.args)
            error.args = tuple(said)
            raise


def write_spool(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], progress: Progress) -> Path:
    """Write rows to a Parquet file that its owner alone can read: plainly, since it is soon read again."""
    os.close(create_new(path, private=True))
    rows = max(1024, _GROUP_CELLS // max(1, len(schema)))
    waiting: Future[None] | None = None
    tables = (pa.Table.from_batches([batch], schema) for batch in batches)
    with (
        pq.ParquetWriter(
            path, schema, compression="none", use_dictionary=False, write_statistics=False
        ) as writer,
        ThreadPoolExecutor(1) as pool,  # rows come while others are written
    ):
        for group in regrouped(tables, rows):
            if waiting is not None:
                waiting.result()
            waiting = pool.submit(writer.write_table, group, row_group_size=rows)
            progress.advance(group.num_rows)
        if waiting is not None:
            waiting.result()
    return path

"""What a name of a table stands for: a path, a database, an address in a store, or standard input."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from targetdp.table._dialect import TableError
from targetdp.table._elsewhere._database import Database, is_database
from targetdp.table._elsewhere._spool import Elsewhere
from targetdp.table._elsewhere._store import StoredTable, is_stored, local_path
from targetdp.table._elsewhere._stream import LazyTable, Stream, is_lazy
from targetdp.table._source import Source


def table_named(
    name: str | Sequence[str], *, table: str | None = None, query: str | None = None
) -> Path | list[Path] | Elsewhere:
    """What a name stands for. Nothing is opened.

    Args:
        name: A path, or several; ``-`` for standard input, the address of a database, or of a file in a
            store.
        table: Which table of a database.
        query: What to ask a database in place of a table.

    Returns:
        A path, several, or a table that is elsewhere.

    Raises:
        ValueError: An address holds a password, or ``table`` or ``query`` is given without a database, or a
            database without one of them; or one of several names is no path.

    Example:
        >>> str(table_named("sqlite:people.db", table="people"))
        'SQLite table people'
        >>> table_named("people.db", table="people")
        Traceback (most recent call last):
        targetdp.table._dialect.TableError: --table and --query are for databases (postgresql://…, ...
    """
    if not isinstance(name, str):
        if len(name) == 1:
            return table_named(name[0], table=table, query=query)
        each = [table_named(one, table=table, query=query) for one in name]
        paths = [one for one in each if isinstance(one, Path)]
        if len(paths) < len(each):
            other = next(one for one in each if not isinstance(one, Path))
            raise TableError(f"{other} is a table of its own: give it alone; several names are for files")
        return paths
    if is_database(name):
        return Database(name, table, query)
    if table is not None or query is not None:
        raise TableError(
            "--table and --query are for databases (postgresql://…, duckdb:FILE, sqlite:FILE): leave them out"
        )
    if name == "-":
        return Stream(sys.stdin.buffer)
    return StoredTable(name) if is_stored(name) else local_path(name)


def table_given(table: Any) -> Any:
    """What somebody gave for a table, as what can be opened: names and lazy frames become something else.

    Args:
        table: A name, a path, a source, a table in memory or a lazy one.

    Returns:
        The same, or a path, several paths, or a table that is elsewhere.

    Example:
        >>> table_given("people.parquet")
        PosixPath('people.parquet')
    """
    if isinstance(table, str):
        return table_named(table)
    if isinstance(table, list | tuple) and all(isinstance(one, str | Path) for one in table):
        return table_named([str(one) for one in table]) if table else table
    if isinstance(table, Path | Source | Elsewhere):
        return table
    return LazyTable(table) if is_lazy(table) else table

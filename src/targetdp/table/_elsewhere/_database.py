"""Databases: a table or a query of PostgreSQL, DuckDB or SQLite, in one transaction that only reads.

Numbers, yes-or-no, dates, times and text come as they are. Exact decimals come as numbers (as text, where
they identify people), and everything else as text, as the database writes it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import pyarrow as pa

from targetdp._core import Progress, check
from targetdp.table._dialect import TableError
from targetdp.table._elsewhere._secrets import explained, refuse_secrets, scheme_of
from targetdp.table._elsewhere._spool import Elsewhere, write_spool
from targetdp.table._paths import NoTableError

_WHOLE, _HEAD, _DIGITS = "whole numeric", 4, 18
"""PostgreSQL says digits and places of a number in one, beside a constant."""
_LITE_BATCH = 1 << 16
"""Rows by which SQLite, whose columns have no types, tells a column's type."""


class _Session(Protocol):
    """A connection in a transaction that only reads."""

    def types(self, query: str) -> dict[str, str]:
        """The columns of a query, each with the database's own name of its type."""

    def read(self, query: str) -> pa.RecordBatchReader:
        """Run it."""


@dataclass(frozen=True)
class _Dialect:
    """What one database calls things."""

    name: str
    open: Callable[[str, Path], AbstractContextManager[_Session]]
    """Given its address, and the folder in which alone it may keep what it is at work on."""
    plain: str
    """Types that come as they are (a pattern)."""
    texts: str
    """Types of text among them, which come in an order of their own unless ``collate`` says otherwise."""
    whole: str
    """Types of exact whole numbers of at most 18 digits."""
    exact: str
    """Types of other exact numbers."""
    collate: str = ""
    to_whole: str = "CAST({0} AS BIGINT)"
    to_double: str = "CAST({0} AS DOUBLE)"
    text: str = "TEXT"

    def column(self, name: str, kind: str, *, is_id: bool) -> str:
        """What is read of a column."""
        if re.fullmatch(self.plain, kind):
            return _quoted(name)
        form = (
            self.to_double if re.fullmatch(self.exact, kind) and not is_id else f"CAST({{0}} AS {self.text})"
        )
        if re.fullmatch(self.whole, kind):
            form = self.to_whole
        return f"{form.format(_quoted(name))} AS {_quoted(name)}"

    def select(self, query: str, types: Mapping[str, str], order: str | None) -> str:
        """The query that reads all columns of another one, in the order of one of them."""
        columns = ", ".join(self.column(name, kind, is_id=name == order) for name, kind in types.items())
        whole = f"SELECT {columns} FROM (\n{query}\n) AS t"  # noqa: S608 (the query is the holder's own)
        if order is None or order not in types:
            return whole
        key, kind = f"t.{_quoted(order)}", types[order]
        if not re.fullmatch(self.plain, kind):  # some types have no order
            return f"{whole} ORDER BY CAST({key} AS {self.text}){self.collate}"
        return f"{whole} ORDER BY {key}{self.collate if re.fullmatch(self.texts, kind) else ''}"


@dataclass(frozen=True)
class Database(Elsewhere):
    """A table of a database, or what a query makes of it.

    Args:
        uri: ``postgresql://…`` (as libpq reads it), ``duckdb:FILE`` or ``sqlite:FILE``; never a password.
        table: Its name, as the catalog has it; ``schema.table`` where needed.
        query: In place of a table, a query that gives one.

    Raises:
        ValueError: The address holds a password, or is of no database that is known; or not one of table and
            query is given.

    Guarantees: the query is run once, in a transaction that only reads and (PostgreSQL) sees one state of all
    tables. Passwords come from the environment (PGPASSWORD), a service file or a password file, and no
    message repeats them.

    Example:
        >>> str(Database("postgresql://db.example/operator", table="subscribers"))
        'PostgreSQL table subscribers'
        >>> Database("postgresql://ann:secret@db.example/operator", table="subscribers")
        Traceback (most recent call last):
        ValueError: the address (postgresql://…) holds a password or key, which others could see: leave it ...
    """

    uri: str
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        refuse_secrets(self.uri)
        if scheme_of(self.uri) not in DIALECTS:
            raise ValueError(
                "uri is the address of no database that is known: postgresql://…, duckdb:FILE or sqlite:FILE"
            )
        if not (self.table or self.query or "").strip() or None not in {self.table, self.query}:
            raise ValueError(
                "a database has many tables: name one with --table, or give a --query (in Python: "
                "Database(uri, table=…) or query=…), and not both"
            )

    def __str__(self) -> str:
        name = DIALECTS[scheme_of(self.uri)].name
        return f"{name} query" if self.table is None else f"{name} table {self.table}"

    @property
    def has_types(self) -> bool:
        """Whether its columns have types, so that no row changes how others are read."""
        return scheme_of(self.uri) != "sqlite"

    def spool(self, folder: Path, order: str | None, progress: Progress) -> Path:
        """See `Elsewhere`."""
        dialect = DIALECTS[scheme_of(self.uri)]
        failed = f"input {self} cannot be read"
        with explained(failed, *_errors()), dialect.open(self.uri, folder) as session:
            query = self._query()
            types = session.types(query)
            with explained(failed, *_errors(), among_rows=True):
                reader = session.read(dialect.select(query, types, order))
                return write_spool(folder / "table.parquet", reader.schema, reader, progress)

    def _query(self) -> str:
        if self.query is not None:
            return self.query.strip().removesuffix(";")
        parts = (self.table or "").split(".")
        return f"SELECT * FROM {'.'.join(map(_quoted, parts))}"  # noqa: S608 (names are quoted)


def is_database(text: str) -> bool:
    """Whether a text begins like the address of a database."""
    return ":" in text and scheme_of(text) in DIALECTS


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _errors() -> tuple[type[Exception], ...]:
    """What the drivers that are installed raise."""
    found: list[type[Exception]] = []
    for package in ("adbc_driver_manager", "duckdb"):
        try:
            found.append(__import__(package).Error)
        except ImportError:
            continue
    return tuple(found)


def _missing(package: str) -> TableError:
    return TableError(f"databases need {package}: install it with pip install 'targetdp[sql]'")


# PostgreSQL


class _Postgres:
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def types(self, query: str) -> dict[str, str]:
        return _once((field.name, _type_of(field)) for field in self._cursor.adbc_execute_schema(query))

    def read(self, query: str) -> pa.RecordBatchReader:
        self._cursor.execute(query)
        return self._cursor.fetch_record_batch()


def _type_of(field: pa.Field) -> str:
    """The server's name of a type; of exact numbers, whether they are whole and small."""
    about = field.metadata or {}
    kind = str(about[b"POSTGRESQL:type"].decode())
    if kind == "numeric" and (modifier := int(about.get(b"POSTGRESQL:typmod", -1))) >= _HEAD:
        digits, after = divmod(modifier - _HEAD, 1 << 16)
        return _WHOLE if after == 0 and digits <= _DIGITS else kind
    return kind


@contextmanager
def _postgres(uri: str, _: Path) -> Iterator[_Postgres]:
    try:
        import adbc_driver_postgresql.dbapi as driver  # noqa: PLC0415
    except ImportError as error:
        raise _missing("adbc-driver-postgresql") from error
    with driver.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield _Postgres(cursor)


# SQLite: any cell may have any type


class _Lite:
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def types(self, query: str) -> dict[str, str]:
        self._cursor.execute(f"EXPLAIN {query}")  # alone, it must be whole; in brackets, it must be one
        self._cursor.fetchall()
        self._cursor.execute(f"SELECT * FROM (\n{query}\n) LIMIT 0")  # noqa: S608
        return _once((name, "") for name in self._cursor.fetch_record_batch().schema.names)

    def read(self, query: str) -> pa.RecordBatchReader:
        self._cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(_LITE_BATCH)})
        self._cursor.execute(query)
        reader = self._cursor.fetch_record_batch()
        return pa.RecordBatchReader.from_batches(reader.schema, self._explained(reader))

    def _explained(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except OSError as error:
            wrong = re.search(r"Type mismatch in column (\d+): expected (\w+) but got ([\w/]+)", str(error))
            if wrong is None:
                raise
            name = reader.schema.names[int(wrong[1])]
            raise TableError(
                f"column {name!r} is {wrong[2]} at first and {wrong[3]} in later rows: give it one type in a "
                f"--query, such as CAST({_quoted(name)} AS REAL)"
            ) from error


@contextmanager
def _lite(uri: str, _: Path) -> Iterator[_Lite]:
    try:
        import adbc_driver_sqlite.dbapi as driver  # noqa: PLC0415
    except ImportError as error:
        raise _missing("adbc-driver-sqlite") from error
    file = _file(uri)
    with (
        driver.connect(f"file:{quote(str(file.absolute()))}?mode=ro") as connection,
        connection.cursor() as cursor,
    ):
        yield _Lite(cursor)


# DuckDB


class _Duck:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def types(self, query: str) -> dict[str, str]:
        if len(self._connection.extract_statements(query)) != 1:  # alone, it must be whole
            raise TableError("the query is several statements: give one")
        found = self._connection.execute(f"DESCRIBE SELECT * FROM (\n{query}\n)").fetchall()  # noqa: S608
        return _once((name, kind) for name, kind, *_ in found)

    def read(self, query: str) -> pa.RecordBatchReader:
        return self._connection.sql(query).to_arrow_reader(_LITE_BATCH)


@contextmanager
def _duck(uri: str, folder: Path) -> Iterator[_Duck]:
    try:
        import duckdb  # noqa: PLC0415
    except ImportError as error:
        raise _missing("duckdb") from error
    with duckdb.connect(str(_file(uri)), read_only=True) as connection:
        within = str(folder.absolute()).replace("'", "''")
        connection.execute(
            f"SET temp_directory = '{within}'"
        )  # else it sorts beside the file, for all to see
        connection.execute("SET enable_external_access = false")  # nor does the file read or write others
        connection.execute("SET lock_configuration = true")
        connection.execute("BEGIN TRANSACTION")
        yield _Duck(connection)


def _file(uri: str) -> Path:
    file = Path(uri.partition(":")[2])
    if not file.is_file():
        raise NoTableError(f"input {file} is no file of a database: check the name")
    return file


def _once(columns: Iterator[tuple[str, str]]) -> dict[str, str]:
    found = list(columns)
    if twice := check.twice([name for name, _ in found]):
        raise TableError(f"the query has two columns named {twice[0]!r}: rename one (AS)")
    return dict(found)


_POSTGRES = _Dialect(
    "PostgreSQL", _postgres, plain="bool|int[248]|float[48]|text|varchar|bpchar|date|timestamp|timestamptz",
    texts="text|varchar|bpchar", whole=_WHOLE, exact="numeric", collate=' COLLATE "C"',
    to_whole="CAST(NULLIF({0}, 'NaN') AS BIGINT)",
    to_double="CASE WHEN {0} = 'NaN' THEN 'NaN' WHEN {0} > 1.7976931348623157e308 THEN 'Infinity' "
    "WHEN {0} < -1.7976931348623157e308 THEN '-Infinity' WHEN abs({0}) < 5e-324 THEN 0 "
    "ELSE CAST({0} AS DOUBLE PRECISION) END",
)  # fmt: skip
DIALECTS = {
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
    "duckdb": _Dialect(
        "DuckDB", _duck, texts="",
        plain=r"BOOLEAN|U?(TINY|SMALL|BIG)INT|U?INTEGER|FLOAT|DOUBLE|VARCHAR|DATE|TIMESTAMP.*",
        whole=r"DECIMAL\((\d|1[0-8]),0\)", exact=r"DECIMAL.*|U?HUGEINT|BIGNUM", text="VARCHAR",
    ),
    "sqlite": _Dialect("SQLite", _lite, plain="", texts="", whole=" ", exact=" ", collate=" COLLATE BINARY"),
}  # fmt: skip
"""The databases that are read, by the first word of their addresses."""

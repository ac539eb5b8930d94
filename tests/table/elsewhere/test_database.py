"""DuckDB and SQLite, addresses, and what may never be in one."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.decisions import asks, with_cut
from support.release import command, make_desk, place_with, words
from targetdp._core import NotYetError, Silent
from targetdp.release import check_release, privatize
from targetdp.table import Database, TableError, on_disk, table_named
from targetdp.table._elsewhere._secrets import without_secrets


def lite(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


def read(uri: str, folder: Path, order: str | None = None, *, query: str | None = None) -> pa.Table:
    database = Database(uri, query=query) if query else Database(uri, table="people")
    folder.mkdir(exist_ok=True)
    return pq.read_table(database.spool(folder, order, Silent()))


def test_duckdb_gives_numbers_and_text_and_the_rest_as_text(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT (20000000000000000000 + 3 - i)::HUGEINT AS id, "
            "i::UTINYINT AS small, (i / 4)::DECIMAL(9, 2) AS exact, i > 1 AS yes, "
            "DATE '2026-02-03' AS day, [i] AS list, "
            "'a'::ENUM('a', 'b') AS level, '6f9619ff-8b86-d011-b42d-00c04fc964ff'::UUID AS who, "
            "TIMESTAMP '2026-02-03 04:05:06' AS moment FROM range(1, 3) AS r(i)"
        )
    table = read(f"duckdb:{tmp_path / 'people.duckdb'}", tmp_path / "spool", "id")
    assert table.to_pylist()[0] | {"day": None, "moment": None} == {
        "id": "20000000000000000001", "small": 2, "exact": 0.5, "yes": True, "day": None, "list": "[2]",
        "level": "a", "who": "6f9619ff-8b86-d011-b42d-00c04fc964ff", "moment": None,
    }  # fmt: skip
    assert [str(table.schema.field(name).type) for name in ("id", "small", "exact", "day", "moment")] == [
        "string", "uint8", "double", "date32[day]", "timestamp[us]",
    ]  # fmt: skip


def test_sqlite_gives_what_its_cells_hold(tmp_path: Path) -> None:
    path = lite(
        tmp_path / "odd name?#.db", "CREATE TABLE people (id TEXT COLLATE NOCASE, calls INTEGER, share REAL)",
        "INSERT INTO people VALUES ('b', 2, 0.5), ('B', 1, NULL), ('a', NULL, 2)",
    )  # fmt: skip
    table = read(f"sqlite:{path}", tmp_path / "spool", "id")
    assert table.to_pydict() == {"id": ["B", "a", "b"], "calls": [1, None, 2], "share": [None, 2.0, 0.5]}
    asked = read(
        f"sqlite:{path}", tmp_path / "asked", "id", query="SELECT id, calls * 0.5 AS half FROM people"
    )
    assert asked.to_pydict() == {"id": ["B", "a", "b"], "half": [0.5, None, 1.0]}


def test_a_column_of_sqlite_that_changes_its_type_is_named(tmp_path: Path) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70000)"
    path = lite(
        tmp_path / "people.db",
        f"CREATE TABLE people AS {many} "  # noqa: S608
        "SELECT i AS id, CASE WHEN i < 69999 THEN i ELSE 'n/a' END AS calls FROM n",
    )
    with pytest.raises(
        TableError, match=r"column 'calls' is INT64 at first and STRING/BINARY in later rows: .*CAST"
    ):
        read(f"sqlite:{path}", tmp_path / "spool", "id")
    cast = "SELECT id, CAST(calls AS REAL) AS calls FROM people"
    assert read(f"sqlite:{path}", tmp_path / "again", "id", query=cast).num_rows == 70_000


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_files_are_only_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "people.db"
    if kind == "sqlite":
        lite(path, "CREATE TABLE people (id TEXT)", "INSERT INTO people VALUES ('a')")
    else:
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE people AS SELECT 'a' AS id")
    before = path.read_bytes()
    for query in ("DELETE FROM people RETURNING *", "SELECT nowhere FROM people", "SELEC"):
        with pytest.raises(TableError, match="query cannot be read"):
            read(f"{kind}:{path}", tmp_path / "spool", query=query)
    with pytest.raises(TableError, match=r"absent.db is no file of a database: check the name"):
        read(f"{kind}:{tmp_path / 'absent.db'}", tmp_path / "spool")
    assert path.read_bytes() == before
    assert not (tmp_path / "absent.db").exists()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:sesame@db.example/operator",
        "postgres://ann:ses/ame@db.example/operator",
        "postgresql://db.example/operator?user=ann&password=sesame",
        "postgresql://db.example/operator?pass%77ord=sesame",
        "postgresql://db.example/operator?sslkey=k&sslpassword=sesame",
        "s3://KEY:sesame@bucket/people.parquet",
        "s3:/KEY:sesame@bucket/people.parquet",
        "postgres:/ann:sesame@db.example/operator",
        "s3://bucket/people.parquet?secret_key=sesame",
        "abfss://box@account/people.parquet?sas_token=sesame",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_repeated(tmp_path: Path, address: str) -> None:
    table = "people" if address.startswith("postgres") else None
    with pytest.raises(ValueError, match="holds a password or key, which others could see: leave") as caught:
        table_named(address, table=table)
    assert "same" not in str(caught.value)
    for given in (["init", address], ["privatize", address, "out.parquet"]):
        ran = command(*given, *(["--table", table] if table else []), "--json", cwd=tmp_path)
        assert ran.code == 2
        assert "same" not in ran.out + ran.err


@pytest.mark.parametrize(
    "address", ["postgresql://ann@db.example:5432/operator", "postgresql:///operator?service=x"]
)
def test_an_address_without_one_is_not(address: str) -> None:
    assert str(table_named(address, table="people")) == "PostgreSQL table people"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "a database has many tables: name one with --table, or give a --query"),
        ({"table": "a", "query": "SELECT 1"}, "and not both"),
        ({"query": "  "}, "name one with --table"),
    ],
)
def test_it_must_be_clear_which_table_is_meant(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table_named("sqlite:people.db", **given)


def test_a_table_is_named_for_databases_only() -> None:
    with pytest.raises(ValueError, match="--table and --query are for databases"):
        table_named("people.parquet", query="SELECT 1")
    with pytest.raises(ValueError, match="is the address of no database that is known"):
        Database("mysql://db.example/operator", table="people")


def test_messages_lose_what_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "x y")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "abc/def")
    said = OSError("x y was wrong; password='z z' host=h PASSWORD = q; abc/def; sslpassword=w&a=b")
    assert without_secrets(said) == "… was wrong; password=… host=h PASSWORD=… …; sslpassword=…&a=b"


def test_messages_name_the_table_and_not_its_copy(tmp_path: Path) -> None:
    path = lite(tmp_path / "people.db", "CREATE TABLE people (id TEXT)", "INSERT INTO people VALUES ('a')")
    with (
        pytest.raises(ValueError, match=r"^SQLite table people has no x in SQLite table people$"),
        on_disk(Database(f"sqlite:{path}", table="people"), tmp_path) as source,
    ):
        raise ValueError(f"{source} has no x in {source.files[0]}")


def test_duckdb_reads_and_writes_no_other_file_and_sorts_in_the_copys_folder(tmp_path: Path) -> None:
    path, other, spool = tmp_path / "people.db", tmp_path / "other.csv", tmp_path / "it's here"
    other.write_text("id\nsomebody else\n")
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT 'a' AS id")
        connection.execute(f"CREATE VIEW seen AS SELECT * FROM read_csv('{other}')")  # noqa: S608
    with pytest.raises(TableError, match="query cannot be read"):
        read(f"duckdb:{path}", spool, query="SELECT * FROM seen")
    asked = "SELECT current_setting('temp_directory') AS here"
    assert read(f"duckdb:{path}", tmp_path / "again", query=asked).to_pylist() == [
        {"here": str(tmp_path / "again")}
    ]
    assert read(f"duckdb:{path}", spool, query=asked).to_pylist() == [{"here": str(spool)}]


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'a' AS id; SELECT 'b' AS id",
        "SELECT 'a' AS id) AS t; SELECT * FROM (SELECT 'b' AS id",
        "SELECT 'a' AS id) AS t, (SELECT 'b' AS name",
    ],
)
def test_a_query_is_one_and_whole(tmp_path: Path, kind: str, query: str) -> None:
    path = tmp_path / "people.db"
    if kind == "sqlite":
        lite(path, "CREATE TABLE people (id TEXT)")
    else:
        duckdb.connect(str(path)).close()
    with pytest.raises(TableError, match=r"query cannot be read|the query is several statements"):
        read(f"{kind}:{path}", tmp_path / "spool", query=query)
    assert read(f"{kind}:{path}", tmp_path / "fine", query="SELECT 'a' AS id;").num_rows == 1


def test_an_error_does_not_repeat_what_somebodys_cell_holds(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT 'it''s so' AS id, 70123::BIGINT AS calls")
    for cell in ("id::DOUBLE", "calls::TINYINT", "id::DATE"):
        with pytest.raises(TableError, match=r"query cannot be read: .*Conver") as caught:
            read(f"duckdb:{path}", tmp_path / "spool", query=f"SELECT {cell} AS x FROM people")  # noqa: S608
        assert "70123" not in str(caught.value)
        assert "s so" not in str(caught.value)


def test_an_output_with_a_password_is_not_repeated_either(tmp_path: Path) -> None:
    place_with(tmp_path)
    ran = command(
        "privatize", "in.parquet", "s3:/KEY:sesame@bucket/x.parquet", "--B", "0.25", "--epsilon", "4",
        "--yes", cwd=tmp_path,
    )  # fmt: skip
    assert ran.code == 2
    assert "holds a password or key" in words(ran.err)
    assert "same" not in ran.out + ran.err


def test_what_is_not_there_yet_or_held_is_to_be_tried_again(tmp_path: Path) -> None:
    path = lite(tmp_path / "people.db", "CREATE TABLE people (id TEXT)", "INSERT INTO people VALUES ('a')")
    holds = (
        f"import sqlite3; c = sqlite3.connect({str(path)!r}, isolation_level=None); "
        "c.execute('BEGIN EXCLUSIVE'); print(flush=True); input()"
    )
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:  # locks are a process's own
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(NotYetError, match="locked"):
            read(f"sqlite:{path}", tmp_path / "spool")
        holder.communicate(b"\n")
    for uri in (f"duckdb:{tmp_path / 'absent.db'}", "postgresql://127.0.0.1:1/operator"):
        with pytest.raises(NotYetError, match="input"):
            read(uri, tmp_path / "spool")


def test_decisions_that_protect_any_row_are_not_made_of_columns_without_types(tmp_path: Path) -> None:
    """One person's text would change how all others' cells are read."""
    make_desk(tmp_path)
    path = lite(tmp_path / "people.db", "CREATE TABLE people (name, calls, texts, topups)")
    database = Database(f"sqlite:{path}", table="people")
    with pytest.raises(TableError, match=r"its columns have no types.* export it to Parquet or CSV"):
        check_release(database, desk=tmp_path / "desk", request=asks(with_cut(8.0)))
    with pytest.raises(TableError, match="its columns have no types"):
        privatize(database, tmp_path / "o.csv", desk=tmp_path / "desk", request=asks(with_cut(8.0)))

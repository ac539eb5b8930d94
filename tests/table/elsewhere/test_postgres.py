"""PostgreSQL: types, order, one transaction, and every way in which it can go wrong."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.postgres import Postgres, started
from targetdp._core import Silent
from targetdp.table import Database, TableError, on_disk, open_source

TYPED = """
CREATE TYPE mood AS ENUM ('sad', 'fine');
CREATE TABLE typed (
  id numeric(20, 0), small smallint, whole integer, large bigint, single real, double double precision,
  exact numeric(12, 2), odd numeric,
  round numeric(18, 0), yes boolean, day date, moment timestamp, somewhere timestamptz,
  who uuid, many integer[], doc jsonb, felt mood, word varchar(9), fixed char(3), bytes bytea, span interval,
  money money
);
INSERT INTO typed VALUES
  (20123456789012345678, 1, 2, 9007199254740993, 1.5, 0.1, 123.45, 'NaN',
   999999999999999999, true, '2026-02-03',
   '2026-02-03 04:05:06', '2026-02-03 04:05:06+01', '6f9619ff-8b86-d011-b42d-00c04fc964ff', '{1,2}',
   '{"a": 1}', 'fine', 'w', 'c', '\\x01', '1 day', 1.5);
INSERT INTO typed (id) VALUES (3)
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with started() as server:
        yield server


def read(database: Database, folder: Path, order: str | None = None) -> pa.Table:
    folder.mkdir()
    return pq.read_table(database.spool(folder, order, Silent()))


def test_each_type_comes_as_it_is_said(postgres: Postgres, tmp_path: Path) -> None:
    postgres.run("DROP TABLE IF EXISTS typed", "DROP TYPE IF EXISTS mood", *TYPED.split(";\n"))
    table = read(Database(postgres.uri, table="typed"), tmp_path / "spool", "id")
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {
        "id": "string", "small": "int16", "whole": "int32", "large": "int64", "single": "float",
        "double": "double", "exact": "double", "odd": "double", "round": "int64", "yes": "bool",
        "day": "date32[day]",
        "moment": "timestamp[us]", "somewhere": "timestamp[us, tz=UTC]", "who": "string", "many": "string",
        "doc": "string", "felt": "string", "word": "string", "fixed": "string", "bytes": "string",
        "span": "string", "money": "string",
    }  # fmt: skip
    first, second = table.to_pylist()
    assert first["id"] == "20123456789012345678", "no digit of an id is lost"
    assert (first["large"], first["exact"], first["yes"]) == (9007199254740993, 123.45, True)
    assert np.isnan(first["odd"])
    assert first["round"] == 999_999_999_999_999_999
    assert (first["who"], first["many"], first["doc"], first["felt"]) == (
        "6f9619ff-8b86-d011-b42d-00c04fc964ff", "{1,2}", '{"a": 1}', "fine",
    )  # fmt: skip
    assert set(second.values()) == {"3", None}


def test_rows_come_in_the_order_of_ids_bytes_whatever_order_the_table_has(
    postgres: Postgres, tmp_path: Path
) -> None:
    """Without it, a re-run could meet the same rows in another order, and would be refused."""
    ids = ["b", "A", "a", "é", "_", "10", "9", "B"]
    postgres.put("mixed", pa.table({"id": ids, "n": list(range(len(ids)))}))
    by_text = read(Database(postgres.uri, table="mixed"), tmp_path / "text", "id")
    assert by_text["id"].to_pylist() == sorted(ids, key=str.encode)
    by_number = read(Database(postgres.uri, table="mixed"), tmp_path / "number", "n")
    assert by_number["n"].to_pylist() == list(range(len(ids)))
    as_they_come = read(Database(postgres.uri, table="mixed"), tmp_path / "plain", "absent")
    assert sorted(as_they_come["id"].to_pylist()) == sorted(ids)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, n FROM mixed WHERE n > 2",
        "SELECT id, n FROM mixed WHERE n > 2;  \n",
        "SELECT id, n FROM mixed WHERE n > 2 -- the rest",
        "WITH part AS (SELECT * FROM mixed) SELECT id, n FROM part WHERE n > 2 ORDER BY n DESC",
    ],
)
def test_a_query_may_be_written_in_many_ways(postgres: Postgres, tmp_path: Path, query: str) -> None:
    postgres.put("mixed", pa.table({"id": list("abcdef"), "n": list(range(6))}))
    table = read(Database(postgres.uri, query=query), tmp_path / "spool", "id")
    assert table.to_pydict() == {"id": ["d", "e", "f"], "n": [3, 4, 5]}


def test_a_name_is_taken_as_it_is_written(postgres: Postgres, tmp_path: Path) -> None:
    name = '"My schema"."Odd ""name"'
    postgres.run(
        'CREATE SCHEMA IF NOT EXISTS "My schema"', f"DROP TABLE IF EXISTS {name}",
        f'CREATE TABLE {name} ("an ""id" text, "select" int)', f"INSERT INTO {name} VALUES ('x', 1)",  # noqa: S608
    )  # fmt: skip
    database = Database(postgres.uri, table='My schema.Odd "name')
    table = read(database, tmp_path / "spool", 'an "id')
    assert table.to_pydict() == {'an "id': ["x"], "select": [1]}


def test_no_rows_are_a_table_without_rows(postgres: Postgres, tmp_path: Path) -> None:
    database = Database(postgres.uri, query="SELECT 'a' AS id, 1 AS n WHERE false")
    table = read(database, tmp_path / "spool", "id")
    assert (table.num_rows, table.column_names) == (0, ["id", "n"])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM nowhere", 'relation "nowhere" does not exist'),
        ("SELEC 1", "syntax error"),
        ("SELECT 1; DROP TABLE mixed", "cannot insert multiple commands"),
        ("SELECT 1 AS a, 2 AS a", "the query has two columns named 'a': rename one"),
        ("SELECT nextval('counter') AS n", "cannot execute nextval.* in a read-only transaction"),
        ("SELECT 1 / (n - 3) AS x FROM generate_series(1, 5) AS s(n)", "division by zero"),
        ("SELECT ('p' || n)::int AS x FROM generate_series(1, 5) AS s(n)", "type integer: …"),
    ],
)
def test_what_the_server_refuses_is_a_sentence(
    postgres: Postgres, tmp_path: Path, query: str, message: str
) -> None:
    postgres.run("CREATE SEQUENCE IF NOT EXISTS counter")
    with pytest.raises(TableError, match=message), on_disk(Database(postgres.uri, query=query), tmp_path):
        pytest.fail("it was read")
    assert list(tmp_path.iterdir()) == []


def test_numbers_beyond_those_of_floating_point_are_no_refusal(postgres: Postgres, tmp_path: Path) -> None:
    """One person's number would bring it about, and a message would repeat it."""
    postgres.run(
        "DROP TABLE IF EXISTS beyond", "CREATE TABLE beyond (id int, x numeric, n numeric(18, 0))",
        "INSERT INTO beyond VALUES (1, 10::numeric ^ 400, 'NaN'), (2, -(10::numeric ^ 400), 5), "
        "(3, ('1e-400')::numeric, NULL), (4, 'NaN', 6), (5, NULL, 7), (6, 0.1, 8), (7, 'Infinity', 9)",
    )  # fmt: skip
    table = read(Database(postgres.uri, table="beyond"), tmp_path / "spool", "id")
    assert [str(x) for x in table["x"].to_pylist()] == ["inf", "-inf", "0.0", "nan", "None", "0.1", "inf"]
    assert table["n"].to_pylist() == [None, 5, None, 6, 7, 8, 9]


def test_an_error_does_not_repeat_what_somebodys_cell_holds(postgres: Postgres, tmp_path: Path) -> None:
    postgres.put("people", pa.table({"id": ['it\'s "so" 7'], "n": [70123]}))
    for cell in ("id::int", "n::smallint", "id::json", "(n || '-x')::date", "id::inet"):
        with pytest.raises(TableError, match="query cannot be read") as caught:
            Database(postgres.uri, query=f"SELECT {cell} AS x FROM people").spool(  # noqa: S608
                tmp_path, None, Silent()
            )
        assert "so" not in str(caught.value).split("read:")[1].replace("reason", "")
        assert "70123" not in str(caught.value)


def test_it_cannot_write(postgres: Postgres, tmp_path: Path) -> None:
    postgres.put("kept", pa.table({"id": ["a"]}))
    delete = "DELETE FROM kept RETURNING *"
    for query in (delete, f"WITH gone AS ({delete}) SELECT * FROM gone"):  # noqa: S608
        with pytest.raises(TableError), on_disk(Database(postgres.uri, query=query), tmp_path):
            pass
    assert postgres.ask("SELECT * FROM kept") == [{"id": "a"}]


def test_the_query_runs_once_and_its_copy_is_for_the_owner_alone(postgres: Postgres, tmp_path: Path) -> None:
    postgres.put("people", pa.table({"id": list("abc"), "n": [1, 2, 3]}))
    database = Database(postgres.uri, query="SELECT id, random() AS r FROM people")
    with on_disk(database, tmp_path, order="id") as source:
        (folder,) = tmp_path.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600]
        once, again = (
            pa.Table.from_batches(source.batches(["id", "r"], {}, 10)).to_pydict() for _ in range(2)
        )
        assert once == again
        assert str(source) == "PostgreSQL query"
    assert list(tmp_path.iterdir()) == []


class Deadly:
    """Ends a server when the first rows have come."""

    def __init__(self, server: Postgres) -> None:
        self._server, self.rows = server, 0

    def phase(self, name: str, rows: int | None) -> None:
        pass

    def advance(self, rows: int) -> None:
        if not self.rows:
            self._server.die()
        self.rows += rows


def test_a_server_that_dies_in_the_middle_gives_no_half_table(tmp_path: Path) -> None:
    with started() as server:
        server.run(
            "CREATE TABLE large AS SELECT n::text AS id, "  # noqa: S608
            + ", ".join(f"random() AS f{j}" for j in range(10))
            + " FROM generate_series(1, 600000) AS s(n)"
        )
        deadly = Deadly(server)
        with (
            pytest.raises(TableError, match="input PostgreSQL table large cannot be read"),
            on_disk(Database(server.uri, table="large"), tmp_path, progress=deadly),
        ):
            pytest.fail("it was read")
        assert 0 < deadly.rows < 600_000
    assert list(tmp_path.iterdir()) == []


def test_no_server_is_a_sentence_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "open sesame")
    with pytest.raises(TableError, match=r"cannot be read: .*No such file or directory") as caught:
        Database(f"postgresql:///postgres?host={tmp_path}", table="people").spool(tmp_path, None, Silent())
    assert "sesame" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_password_comes_from_the_environment_and_a_wrong_one_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started() as server:
        server.put("people", pa.table({"id": ["a"]}))
        server.run("ALTER USER tester PASSWORD 'open sesame'")
        rules = server.folder / "data" / "pg_hba.conf"
        rules.write_text("local all all scram-sha-256\n")
        monkeypatch.setenv("PGPASSWORD", "open sesame")
        server.process.send_signal(1)
        wrong: Any = None
        for _ in range(50):  # until the server has read its rules again
            monkeypatch.setenv("PGPASSWORD", "open barley")
            try:
                read(Database(server.uri, table="people"), tmp_path / f"wrong {_}")
            except TableError as error:
                wrong = error
                break
        assert "password authentication failed" in str(wrong)
        assert "barley" not in str(wrong)
        monkeypatch.setenv("PGPASSWORD", "open sesame")
        assert read(Database(server.uri, table="people"), tmp_path / "right").num_rows == 1
        monkeypatch.delenv("PGPASSWORD")
        service = tmp_path / "services"
        service.write_text(
            f"[operator]\nhost={server.folder}\nuser=tester\ndbname=postgres\npassword=open sesame\n"
        )
        monkeypatch.setenv("PGSERVICEFILE", str(service))
        by_service = Database("postgresql:///?service=operator", table="people")
        assert read(by_service, tmp_path / "service").num_rows == 1


def test_a_copy_is_a_table_like_any_other(postgres: Postgres, tmp_path: Path) -> None:
    postgres.put("people", pa.table({"id": list("cab"), "n": [3, 1, 2]}))
    path = Database(postgres.uri, table="people").spool(tmp_path, "id", Silent())
    source = open_source(path)
    assert (source.columns, source.count()) == (("id", "n"), 3)

"""Releases of what is in PostgreSQL: like those of the same rows in a file, also when something is killed."""

import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.faults import some
from support.postgres import Postgres, started
from support.release import (
    COMMAND,
    ENOUGH,
    certificate_of,
    cli,
    environment,
    place_with,
    read_back,
    request_of,
    table_of,
    words,
)
from support.staged import (
    drawn,
    keep,
    nothing_is_left_of_the_dead,
    place,
    put_back,
    release_that_is_there,
    room_for,
    states,
)
from support.zygote import Zygote
from targetdp.noise import fresh_keys
from targetdp.release import Desk, check_release, hand_over, privatize
from targetdp.table import Database


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with started() as server:
        yield server


def command_for(server: Postgres, *more: str) -> tuple[str, ...]:
    return (
        "privatize", server.uri, "out.parquet", "--table", "people", "--request", "request.toml", "--yes",
        *more,
    )  # fmt: skip


def spools(folder: Path) -> list[Path]:
    return [*folder.glob(".targetdp-spool*"), *(folder / "desk" / "drafts").glob(".targetdp-spool*")]


def released_by(table: Any, folder: Path, output: str) -> pa.Table:
    """A release whose noise follows from one key."""
    with mock.patch("targetdp.release._draws.fresh_keys", lambda n: [b"k" * 32] * n):
        privatize(
            table,
            folder / output,
            desk=folder / "desk",
            request=request_of(),
            new_people="the same, as a test",
        )
    return read_back(folder / output)


@pytest.mark.parametrize("scales", ["public", "private"])
def test_a_release_is_that_of_the_same_rows_in_a_file_to_the_last_bit(
    postgres: Postgres, tmp_path: Path, scales: str
) -> None:
    assert len(fresh_keys(1)[0]) == 32
    people = table_of(ENOUGH)
    ordered = people.take(pa.array(np.argsort(people["name"].to_numpy(zero_copy_only=False))))
    postgres.put("people", people)
    tables = []
    for name, table in (("file", tmp_path / "in.parquet"), ("database", Database(postgres.uri, "people"))):
        place_with(tmp_path / name, scales=scales)
        pq.write_table(ordered, tmp_path / "in.parquet")
        tables.append(released_by(table, tmp_path / name, "out.parquet"))
    assert tables[0].num_rows == ENOUGH
    assert tables[0].equals(tables[1])
    assert spools(tmp_path / "database") == []


def test_commands_take_a_database_wherever_they_take_a_table(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    postgres.put("people", table_of(8_000))
    of = (postgres.uri, "--table", "people")
    made = cli("init", *of, "--id", "name")
    assert made.code == 0, made.err
    assert f"targetdp privatize '{postgres.uri}' --table people OUTPUT" in words(made.err)
    listed = cli("columns", *of, "--names")
    assert listed.out.split() == ["name", "calls", "texts", "topups"]
    asked = ("--B", "0.25", "--epsilon", "4")
    looked = cli("privatize", *of, "--check", *asked)
    assert looked.code == 0, looked.err
    done = cli("privatize", *of, "out.parquet", "--yes", *asked, "--json")
    assert done.code == 0, done.err
    assert cli("verify", "out.parquet").code == 0
    others = cli(
        "scales", postgres.uri, "--query", "SELECT name || 'x' AS name, calls FROM people",
        "--features", "calls", "--source", "public", "--reason", "others", "--out", "scales.toml",
    )  # fmt: skip
    assert others.code == 0, others.err
    assert spools(tmp_path) == []
    said = done.out + "".join(p.read_text(errors="replace") for p in tmp_path.glob("out.parquet.*"))
    said += (tmp_path / "desk" / "log.jsonl").read_text()
    said += (tmp_path / "desk" / "ledger.db").read_bytes().decode("latin-1")
    assert str(postgres.folder) not in said, "where a table came from goes on no record"


def test_people_who_agreed_are_handed_over_from_a_database(postgres: Postgres, tmp_path: Path) -> None:
    agreed = {"to": "they signed", "columns": ["calls"], "at_most": 10}
    place_with(tmp_path, agreed=agreed)
    postgres.put("people", table_of())
    (tmp_path / "agreed.csv").write_text("name\n000003\n000007\n")
    given: list[Path | Database] = [tmp_path / "in.parquet", Database(postgres.uri, table="people")]
    handed = [
        hand_over(
            table, tmp_path / "agreed.csv", tmp_path / f"{k}.parquet", desk=tmp_path / "desk"
        ).agreement.rows
        for k, table in enumerate(given)
    ]
    assert handed == [2, 2]
    assert read_back(tmp_path / "0.parquet").equals(read_back(tmp_path / "1.parquet"))
    assert spools(tmp_path) == []


def test_what_is_wrong_is_said_as_of_a_file(postgres: Postgres, tmp_path: Path) -> None:
    place_with(tmp_path)
    people = table_of()
    postgres.put("people", pa.concat_tables([people, people.slice(0, 1)]))
    query = "SELECT name, calls, texts, 'a'::text AS topups FROM people"
    seen = check_release(Database(postgres.uri, query=query), desk=tmp_path / "desk", request=request_of())
    said = " ".join(f"{one.what} {one.remedy}" for one in seen.problems)
    assert "has duplicated values: 1 rows repeat an id" in said
    assert "topups  text" in said


def test_it_survives_kills_at_calls_that_touch_the_disk(
    postgres: Postgres, zygote: Zygote, tmp_path: Path
) -> None:
    """After each of them the table is written anew, in another order: the same command still finishes."""
    folder = place(tmp_path / "place", 100, limit=room_for(1))
    people = table_of(100)
    rng = np.random.default_rng(3)
    postgres.put("people", people)
    kept, run = keep(folder, tmp_path / "kept"), command_for(postgres)
    whole = zygote.run(folder, *run)
    assert whole.code == 0, whole.words
    outcomes, left = set(), 0
    for die_at in some(range(whole.calls), 30):
        put_back(folder, kept)
        ended = zygote.run(folder, *run, die_at=die_at)
        if not ended.killed:
            assert ended.code == 0, ended.words
        visible, begun = release_that_is_there(folder), drawn(folder)
        for spool in spools(folder):
            left += 1
            assert stat.S_IMODE(spool.stat().st_mode) == 0o700
            assert {stat.S_IMODE(path.stat().st_mode) for path in spool.iterdir()} <= {0o600}
        postgres.put("people", people.take(pa.array(rng.permutation(100))))
        again = zygote.run(folder, *run)
        there = release_that_is_there(folder)
        if visible is not None:
            assert (again.code, there) == (2, visible), again.words
            outcomes.add("published")
        else:
            assert again.code == 0, again.words
            assert not begun or begun == {there}, "what noise was drawn for is finished, and no other one"
            outcomes.add("finished" if begun else "begun anew")
        assert set(states(folder).values()) <= {"published", "voided"}
        nothing_is_left_of_the_dead(folder)
        if again.code == 0:
            assert spools(folder) == []
    assert outcomes == {"published", "finished", "begun anew"}
    assert left


def test_other_rows_do_not_get_the_noise_that_was_drawn(
    postgres: Postgres, zygote: Zygote, tmp_path: Path
) -> None:
    folder = place(tmp_path / "place", 100, limit=room_for(2))
    postgres.put("people", table_of(100))
    kept, run = keep(folder, tmp_path / "kept"), command_for(postgres)
    calls = zygote.run(folder, *run).calls
    for die_at in reversed(range(calls)):
        put_back(folder, kept)
        zygote.run(folder, *run, die_at=die_at)
        if (begun := drawn(folder)) and release_that_is_there(folder) is None:
            break
    postgres.run("UPDATE people SET calls = calls + 1 WHERE name = '000042'")
    refused = zygote.run(folder, *run)
    assert refused.code == 2
    assert "its noise was drawn for other rows" in words(refused.words)
    assert not (folder / "out.parquet").exists()
    assert begun <= states(folder).keys()
    assert spools(folder) == []


def test_killed_while_the_query_runs_nothing_is_charged_and_the_copy_goes(
    postgres: Postgres, tmp_path: Path
) -> None:
    place_with(tmp_path)
    postgres.put("people", table_of())
    slow = ("--query", "SELECT people.* FROM people, (SELECT pg_sleep(120)) AS s")
    run = ["privatize", postgres.uri, "out.parquet", "--B", "0.25", "--epsilon", "4", "--yes"]
    for end in (signal.SIGKILL, signal.SIGTERM):
        with subprocess.Popen(  # noqa: S603
            [*COMMAND, *run, *slow], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            wait_until(
                lambda: postgres.ask("SELECT 1 AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
            )
            assert [stat.S_IMODE(path.stat().st_mode) for path in spools(tmp_path)] == [0o700]
            process.send_signal(end)
            if end == signal.SIGTERM:  # the driver sees it when the server answers
                postgres.run(
                    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
                )
            process.communicate(timeout=60)
        assert len(spools(tmp_path)) == (end == signal.SIGKILL)
        postgres.run("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        with Desk.open(tmp_path / "desk").ledger() as ledger:
            assert ledger.history.releases == {}
    privatize(
        Database(postgres.uri, "people"),
        tmp_path / "out.parquet",
        desk=tmp_path / "desk",
        request=request_of(),
    )
    assert spools(tmp_path) == []
    assert certificate_of(tmp_path / "out.parquet").rows == 60


def test_a_copy_that_a_killed_run_left_goes_also_with_the_next_release_of_a_file(tmp_path: Path) -> None:
    place_with(tmp_path)
    left = tmp_path / "desk" / "drafts" / ".targetdp-spool.0123456789ab.new"
    left.mkdir(parents=True)
    (left / "table.parquet").write_bytes(b"rows")
    check_release(tmp_path / "in.parquet", desk=tmp_path / "desk", request=request_of())
    assert not left.exists()


def test_a_server_that_dies_ends_the_run_in_a_sentence_and_at_no_cost(tmp_path: Path) -> None:
    place_with(tmp_path)
    with started() as server:
        server.put("people", table_of())
        slow = "SELECT people.* FROM people, (SELECT pg_sleep(120)) AS s"
        run = [
            "privatize",
            server.uri,
            "out.parquet",
            "--query",
            slow,
            "--B",
            "0.25",
            "--epsilon",
            "4",
            "--yes",
        ]
        with subprocess.Popen(  # noqa: S603
            [*COMMAND, *run], cwd=tmp_path, env=environment(), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            wait_until(lambda: server.ask("SELECT 1 AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
            server.die()
            said = words(process.communicate(timeout=60)[0])
    assert process.returncode == 6
    assert "input PostgreSQL query cannot be read" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out.parquet").exists()
    assert spools(tmp_path) == []
    with Desk.open(tmp_path / "desk").ledger() as ledger:
        assert ledger.history.releases == {}


def wait_until(sees: Any) -> None:
    until = time.monotonic() + 60
    while not sees():
        assert time.monotonic() < until
        time.sleep(0.05)

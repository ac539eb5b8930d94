"""A PostgreSQL of the tests' own: Debian's, on a socket in a folder of its own, without a network."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as driver
import pyarrow as pa
import pytest

PROGRAMS = Path("/usr/lib/postgresql")
"""Where Debian has them, a folder for each version."""
PATIENCE = 60
"""Seconds until a server must have started."""


def programs() -> Path:
    """The newest version's; without one the test is skipped, or fails where it must not be."""
    found = sorted(PROGRAMS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        missing = f"no PostgreSQL in {PROGRAMS}: releases from a database server are not tested here"
        if os.environ.get("TARGETDP_REQUIRE_POSTGRES") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    return found[-1].parent


def as_postgres() -> list[str]:
    """Words before a command: it refuses to run as root, and then runs as Debian's user."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]


@dataclass
class Postgres:
    """A running server."""

    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def uri(self) -> str:
        return f"postgresql://tester@/postgres?host={self.folder}"

    def run(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own."""
        with driver.connect(self.uri, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def put(self, name: str, table: pa.Table) -> None:
        """Make a table of the database, in place of one with this name."""
        with driver.connect(self.uri) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name, table, mode="replace")
            connection.commit()

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query."""
        with driver.connect(self.uri) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            rows: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
            return rows

    def die(self) -> None:
        """End at once, and all its sessions with it."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(PATIENCE)


@contextmanager
def started() -> Iterator[Postgres]:
    """A new server, which goes with all it holds."""
    # The names of sockets are short.
    at, folder = programs(), Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    process = None
    try:
        if as_postgres():
            shutil.chown(folder, "postgres", "postgres")
        data = folder / "data"
        made = [
            *as_postgres(),
            str(at / "initdb"),
            "-D",
            str(data),
            "-U",
            "tester",
            "-A",
            "trust",
            "-N",
            "-E",
            "UTF8",
        ]
        subprocess.run(made, check=True, capture_output=True, timeout=PATIENCE)  # noqa: S603
        with (folder / "log").open("wb") as log:
            settings = ["listen_addresses=", "fsync=off", "shared_buffers=16MB", "max_connections=20"]
            process = subprocess.Popen(  # noqa: S603
                [
                    *as_postgres(), at / "postgres", "-D", data, "-k", folder,
                    *(word for one in settings for word in ("-c", one)),
                ],
                stdout=log, stderr=log,
            )  # fmt: skip
        server = Postgres(folder, process)
        _wait_for(server)
        yield server
    finally:
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGQUIT)
            process.wait(PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(server: Postgres) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            server.run("SELECT 1")
        except driver.OperationalError:
            words = (server.folder / "log").read_text(errors="replace")
            assert server.process.poll() is None, words
            assert time.monotonic() < until, words
            time.sleep(0.05)
        else:
            return

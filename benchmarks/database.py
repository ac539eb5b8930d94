"""A release from PostgreSQL against a copy of the query to a file and the same release from that file.

The plain copy is what a data engineer writes: ADBC's batches into pyarrow's Parquet writer, with no sync.
Both sides begin with a new desk. The server is Debian's, on this machine, on a socket of its own; where it is
not installed, nothing is measured. Wall time: the server works while the release does.
"""

import importlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as driver
import pyarrow.parquet as pq

from benchmarks.crowd import write_crowd
from benchmarks.release import new_desk, release, scratch, timed
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import Say, Times
from targetdp.table import Database

COPIED, DIRECT = "copy to Parquet, then release", "release from PostgreSQL"
MOST, FEATURES = 1.3, 10
QUERY = "SELECT * FROM crowd"
SERVERS = Path("/usr/lib/postgresql")


def measure(effort: Effort, say: Say) -> Section:
    """Both sides in turns."""
    n = 100_000 if effort.quick else 1_000_000
    name = f"{n:,} × {FEATURES} from PostgreSQL"
    table = new_table(
        "A release from PostgreSQL (wall time)", "rows × columns", COPIED, DIRECT, "ratio",
        caption="Copy: `SELECT *` by ADBC, batch by batch into a Parquet file. Release: at a new desk.",
    )  # fmt: skip
    if not any(SERVERS.glob("*/bin/initdb")):
        return Section([table], [Bar(f"release, {name}", None, MOST, "at most")], {})
    with _server() as server, scratch() as folder:
        say(f"{name}: writing the table")
        crowd = write_crowd(folder / "crowd.parquet", n, FEATURES)
        server.put("crowd", pq.read_table(crowd))
        server.run("VACUUM ANALYZE crowd")

        def copied() -> Callable[[Path], object]:
            desk, place = new_desk(crowd, FEATURES), folder / "copy.parquet"
            return lambda out: release(copy(server.uri, place), out, desk)

        def direct() -> Callable[[Path], object]:
            desk = new_desk(crowd, FEATURES)
            return lambda out: release(Database(server.uri, query=QUERY), out, desk)

        direct()(folder / "warm.parquet")
        times = Times(timed({COPIED: copied, DIRECT: direct}, folder, effort.rounds, say))
    ratio = times.ratio(DIRECT, COPIED)
    table.add_row(name, f"{times.best(COPIED):.2f} s", f"{times.best(DIRECT):.2f} s", str(ratio))
    bar = Bar(f"release, {name} / copy and release", ratio.best, MOST, "at most", not effort.quick)
    return Section([table], [bar], {name: {"seconds": times.rounds}})


def copy(uri: str, place: Path) -> Path:
    """What a query gives, as a Parquet file."""
    with driver.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        reader = cursor.fetch_record_batch()
        with pq.ParquetWriter(place, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    return place


def _server() -> AbstractContextManager[Any]:
    """The server that tests start, too."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    started: AbstractContextManager[Any] = importlib.import_module("support.postgres").started()
    return started

"""What tests of the Spark engine share: a session, frames of several partitions, and a desk."""

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import make_desk, new_policy
from targetdp.release import Desk, ReleaseRow


def skip_without_java() -> None:
    """Skip a module of tests where Spark cannot run, unless it must."""
    no_java = shutil.which("java") is None and "JAVA_HOME" not in os.environ
    if no_java and os.environ.get("TARGETDP_REQUIRE_SPARK") != "1":
        pytest.skip("no Java: the Spark engine is not tested here", allow_module_level=True)


@contextmanager
def session_for(module: ModuleType, events: Path) -> Iterator[Any]:
    """Two cores, tasks that may fail three times, and an event log to search; modules share a JVM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ["PYSPARK_PYTHON"] = sys.executable
        from pyspark import cloudpickle
        from pyspark.sql import SparkSession

        # Workers cannot import a module of tests.
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        session = (
            SparkSession.builder.master("local[2,4]")
            .config("spark.io.encryption.enabled", "true")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "FATAL")
            .config("spark.sql.shuffle.partitions", "3")
            .config("spark.default.parallelism", "3")
            # Quick to start, and quick tasks: the code of a short run is not worth the best compiler.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .config("spark.python.daemon.module", "support.spark_daemon")
            .config("spark.executorEnv.PYTHONPATH", str(Path(__file__).parents[1]))
            .config("spark.eventLog.enabled", "true")
            .config("spark.eventLog.compress", "false")
            .config("spark.eventLog.dir", events.as_uri())
            .getOrCreate()
        )
        yield session
        session.stop()


def frame_of(spark: Any, table: pa.Table, partitions: int = 3) -> Any:
    """A frame of several partitions, in no order."""
    folder = Path(str(spark.sparkContext.getConf().get("spark.eventLog.dir")).removeprefix("file://"))
    path = folder.parent / f"frame-{os.urandom(8).hex()}.parquet"
    pq.write_table(table, path)
    return spark.read.parquet(path.as_uri()).repartition(partitions)


def desk_in(folder: Path, **policy: Any) -> Path:
    """The desk of a folder, made or changed as the test says."""
    if (folder / "desk").exists():
        new_policy(folder / "desk", **policy)
    else:
        make_desk(folder, **policy)
    return folder / "desk"


def rows_of(folder: Path) -> list[ReleaseRow]:
    """The releases on record at the desk of a folder, whose ledger holds."""
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.verify() == []
        return list(ledger.history.releases.values())

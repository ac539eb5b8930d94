"""Which engine a table is for: a path, a source, a table in memory, or a Spark frame."""

from pathlib import Path
from typing import Any

from targetdp.release._certificate._contents import arrow_of
from targetdp.release._engine._base import Engine, engine_of
from targetdp.release._engine._local import LocalEngine, TableInMemory
from targetdp.table import Dialect, Source, open_source


def found_on_disk(table: Any, csv: Dialect) -> Any:
    """A table of files, opened; any other as it is. A CSV is read as it is declared to be written."""
    several = isinstance(table, list | tuple) and all(isinstance(one, str | Path) for one in table)
    if isinstance(table, str | Path) or several:
        return open_source(table, csv=csv, keep_words=True)
    return table


def open_table(table: Any, engine: str | None = None) -> Engine:
    """The engine for a table, by its name or by what the table is."""
    table = found_on_disk(table, Dialect())
    if isinstance(table, Source):
        return engine_of(engine or "local")(table)
    if type(table).__module__.startswith("pyspark."):
        if engine not in {None, "spark"}:
            raise ValueError(f"engine = {engine!r}: a Spark frame is privatized by Spark; leave it out")
        return engine_of("spark")(table)
    if engine not in {None, "local"}:
        raise ValueError(f"engine = {engine!r}: a table in memory is privatized where it is; leave it out")
    return LocalEngine(TableInMemory(arrow_of(table)[0]), "the frame")

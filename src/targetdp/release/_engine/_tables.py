"""Which engine a table is for: files, a table that is elsewhere, one in memory, or a Spark frame."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from targetdp._core import Progress
from targetdp.release._certificate._certificate import SUFFIX
from targetdp.release._certificate._contents import arrow_of
from targetdp.release._desk import Desk, find_desk
from targetdp.release._draws import made_drafts
from targetdp.release._engine._base import Engine, engine_of
from targetdp.release._engine._local import LocalEngine, TableInMemory
from targetdp.release._request import Request
from targetdp.table import Database, Elsewhere, Source, TableError, on_disk, open_source, table_given


def found_on_disk(table: Any, desk: Desk) -> Any:
    """A table of files, opened; any other as it is. A CSV is read as the desk declares it to be written."""
    given = table_given(table)
    several = isinstance(given, list | tuple) and all(isinstance(one, str | Path) for one in given)
    if isinstance(given, Path) or several:
        given = open_source(given, csv=desk.policy.csv, keep_words=True)
    if isinstance(given, Source):
        _refuse_releases(given)
    return given


def found_for(request: Request, table: Any, desk: Desk) -> Any:
    """As `found_on_disk`; refused is a table of which rows say how it is read, where no row may tell."""
    given = found_on_disk(table, desk)
    if request.classic and isinstance(given, Database) and not given.has_types:
        raise TableError(
            f"input {given}: its columns have no types, so how everybody's cells are read depends on rows, "
            "and decisions at B = 2 protect whatever is in a row: export it to Parquet or CSV, and take that"
        )
    return given


def _refuse_releases(source: Source) -> None:
    """Refuse what a folder, a pattern or several names take in beside people's rows."""
    named = {place for place in source.places if str(place) == source.name}
    inside = {
        folder
        for file in source.files
        for folder in file.parents
        if any(place in folder.parents for place in source.places)
    }
    for path in sorted({*source.places, *source.files, *inside} - named):
        if Path(f"{path}{SUFFIX}").is_file():
            raise TableError(
                f"input {path} is a release (its certificate lies beside it), and not a part of a table of "
                "people: move it elsewhere, or name the parts"
            )


@contextmanager
def opened_table(
    table: Any, desk: Desk, engine: str | None = None, progress: Progress | None = None
) -> Iterator[Engine]:
    """The engine for a table, by its name or by what the table is.

    What is elsewhere lies in the desk meanwhile, sorted by who people are: so a re-run meets the same rows in
    the same order, whatever the database makes of the query then.
    """
    given = found_on_disk(table, desk)
    if isinstance(given, Source | Elsewhere):
        with spooled(given, desk, progress) as source:
            yield engine_of(engine or "local")(source)
    elif type(given).__module__.startswith("pyspark."):
        if engine not in {None, "spark"}:
            raise ValueError(f"engine = {engine!r}: a Spark frame is privatized by Spark; leave it out")
        yield engine_of("spark")(given)
    elif engine not in {None, "local"}:
        raise ValueError(f"engine = {engine!r}: a table in memory is privatized where it is; leave it out")
    else:
        yield LocalEngine(TableInMemory(arrow_of(given)[0]), "the frame")


@contextmanager
def spooled(table: Source | Elsewhere, desk: Desk, progress: Progress | None = None) -> Iterator[Source]:
    """A table as files of this disk; what is elsewhere lies in the desk meanwhile, out of backups."""
    folder = made_drafts(desk.drafts) if isinstance(table, Elsewhere) else desk.drafts
    csv = desk.policy.csv
    with on_disk(table, folder, csv=csv, order=desk.policy.id.column, progress=progress) as source:
        if source.copied:
            _refuse_releases(source)
        yield source


def spool_folder() -> Path:
    """Where a copy of a table may lie for a command that needs no desk: in the nearest one, or here."""
    desk = find_desk(Path.cwd())
    return Path.cwd() if desk is None else made_drafts(desk / "drafts")

"""A program file and its table, read: outcomes, rows in the unit ball, folds, ready to be evaluated."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, Integers, Progress, Silent
from targetdp.normalization import ColumnScales, data_scales, normalize, read_scales
from targetdp.programs._aid import Aid
from targetdp.programs._base import Program
from targetdp.programs._folds import Folds
from targetdp.programs._lending import Lending, Loans
from targetdp.programs._settings import AidSettings, AnySettings, LendingSettings, read_program_file
from targetdp.table import Source, Tally, batch_rows, check_columns, ids_of, numbers_of, open_source

# What is wrong with a program's table, in one message: missing and infinite values, and what to do.


def must_be_whole(tally: Tally, settings: AnySettings) -> None:
    """Raise one error for everything that was found; row numbers count from 1, without a header."""
    if tally.counts:
        found = (_complaint(tally, key, settings) for key in sorted(tally.counts))
        raise ValueError("; ".join(found))


def _complaint(tally: Tally, key: tuple[str, str], settings: AnySettings) -> str:
    problem, column = key
    count, rows = tally.counts[key], ", ".join(str(row) for row in tally.first[key])
    where = f"(first in row {rows})"
    if problem == "missing" and column == settings.target:
        return (
            f"target {column!r} is missing in {count:,} row{'s' if count > 1 else ''} {where}: leave out "
            "people whose outcome is not known"
        )
    what = f"column {column!r} has {count:,} {problem} value{'s' if count > 1 else ''} {where}"
    if problem == "missing" and column in settings.features:
        return (
            f"{what}: declare a constant for them in the program file (impute), take the column out of the "
            "features, or leave these people out"
        )
    remedy = {
        "missing": "the program needs it of everybody; fill in what is true, or leave these people out",
        "missing or empty id": "every row needs an id; or leave id out of the program file",
    }
    return f"{what}: {remedy.get(problem, 'correct them, or leave these people out')}"


MISSING = "(missing)"
"""The group of people whose group is not known."""


@dataclass(frozen=True, eq=False)
class OpenProgram:
    """A program with its people: row i of ``rows`` is the i-th person of ``program`` and of ``ids``.

    ``rows`` are the features, scaled and brought into the unit ball by the file's rule; ``raw`` are those of
    the table. ``ids`` is None if the file names no id.
    """

    settings: AnySettings
    program: Program
    folds: Folds
    ids: pa.StringArray | None = field(repr=False)
    rows: Floats = field(repr=False)
    raw: Floats = field(repr=False)
    scales: ColumnScales


@dataclass(frozen=True)
class _Columns:
    ids: pa.StringArray | None
    numbers: dict[str, Floats]
    texts: dict[str, pa.StringArray]


def open_program(path: Path, *, progress: Progress | None = None) -> OpenProgram:
    """Read a program file and its table.

    Refuses, with the reason: columns that are not there, an id twice, missing or infinite values, a target
    that does not fit.
    """
    return opened(read_program_file(path), progress=progress)


def opened(settings: AnySettings, *, progress: Progress | None = None) -> OpenProgram:
    """Read the table of a program whose settings are at hand."""
    found = read_columns(settings, progress or Silent())
    raw = np.column_stack([found.numbers[name] for name in settings.features])
    given = None if settings.scales == "data" else Path(settings.scales)
    scales = data_scales(raw) if given is None else read_scales(given, settings.features)
    groups = {name: found.texts[name].to_pylist() for name in settings.groups}
    try:
        program = (
            aid_program(settings, found, groups)
            if isinstance(settings, AidSettings)
            else lending_program(settings, found, groups)
        )
    except ValueError as error:
        raise ValueError(f"table {settings.table}: {error}") from error
    return OpenProgram(
        settings=settings,
        program=program,
        folds=Folds(len(raw), settings.folds, settings.seed),
        ids=found.ids,
        rows=normalize(raw, scales, settings.rows).X,
        raw=raw,
        scales=scales,
    )


def aid_program(settings: AidSettings, found: _Columns, groups: dict[str, list[str]]) -> Aid:
    """The aid program of columns that were read."""
    return Aid(
        found.numbers[settings.target],
        settings.quota,
        settings.population,
        None if settings.weights is None else found.numbers[settings.weights],
        groups,
        settings.model(),
        settings.welfare_terms(),
        settings.quota_rule,
    )


def lending_program(settings: LendingSettings, found: _Columns, groups: dict[str, list[str]]) -> Lending:
    """The lending program of columns that were read."""
    name, value = settings.target, settings.repaid
    if isinstance(value, str):
        text = found.texts[name]
        values = pc.unique(text).to_pylist()
        repaid = np.asarray(pc.equal(text, value).to_numpy(zero_copy_only=False))
    else:
        values = np.unique(found.numbers[name]).tolist()
        repaid = found.numbers[name] == value
    if len(values) > 2 or value not in values:
        shown = ", ".join(map(repr, values[:5])) + (", …" if len(values) > 5 else "")
        raise ValueError(
            f"target {name!r} has the values {shown}: it must have two, one of them repaid = {value!r}; say "
            "which value means repaid"
        )
    return Lending(
        repaid.astype(np.float64), _loans(settings, found, len(repaid)), settings.threshold,
        settings.population, groups, settings.model(),
    )  # fmt: skip


def _loans(settings: LendingSettings, found: _Columns, count: int) -> Loans:
    terms = settings.loans
    amount = found.numbers[terms.amount] if isinstance(terms.amount, str) else np.full(count, terms.amount)
    revenue, interest = (
        found.numbers[given] if isinstance(given, str) else amount * given
        for given in (terms.revenue, terms.interest)
    )
    return Loans(amount, revenue, interest)


def read_columns(settings: AnySettings, progress: Progress) -> _Columns:
    """The columns that a program names, from its table; all that is wrong with them in one message."""
    source = open_source(settings.table)
    numbers, texts = _needed(settings)
    wanted = {
        "id": [] if settings.id is None else [settings.id],
        "features": settings.features,
        "target": [settings.target],
        "groups": settings.groups,
        "weights or loans": numbers,
    }
    check_columns(source.columns, f"table {settings.table}", **wanted)
    try:
        return _columns(source, settings, numbers, texts, progress)
    except ValueError as error:
        raise ValueError(f"table {settings.table}: {error}") from error


def _needed(settings: AnySettings) -> tuple[list[str], list[str]]:
    """Columns that are read as numbers, and those that are read as text."""
    texts, more = list(settings.groups), []
    if isinstance(settings, AidSettings):
        more = [settings.target, settings.weights]
    else:
        terms = settings.loans
        more = [given for given in (terms.amount, terms.revenue, terms.interest) if isinstance(given, str)]
        (texts if isinstance(settings.repaid, str) else more).append(settings.target)
    numbers = [*settings.features, *(name for name in more if name is not None)]
    return list(dict.fromkeys(numbers)), list(dict.fromkeys(texts))


def _columns(
    source: Source, settings: AnySettings, numbers: list[str], texts: list[str], progress: Progress
) -> _Columns:
    names = list(dict.fromkeys([*([] if settings.id is None else [settings.id]), *numbers, *texts]))
    progress.phase(f"reading {settings.table.name}", source.count())
    tally, seen = Tally(), 0
    ids: list[pa.StringArray] = []
    blocks: list[Floats] = []
    words: dict[str, list[pa.StringArray]] = {name: [] for name in texts}
    # A column that is wanted both as a number and as a group's name is read as a number.
    types = {name: pa.float64() for name in numbers}
    for batch in source.batches(names, types, batch_rows(len(names))):
        if settings.id is not None:
            ids.append(ids_of(batch.column(settings.id), settings.id, tally, seen))
        whole = _countable(batch, settings.target)
        blocks.append(numbers_of(whole, numbers, settings.constants(), tally, seen))
        if settings.target in texts and len(gaps := _gaps(batch.column(settings.target))):
            tally.add("missing", settings.target, gaps, seen)
        for name in texts:
            words[name].append(_text(batch.column(name), name))
        seen += batch.num_rows
        progress.advance(batch.num_rows)
    if not seen:
        raise ValueError("it has no rows: there is nobody to decide about")
    must_be_whole(tally, settings)
    together = pa.concat_arrays(ids) if ids else None
    if together is not None and (different := pc.count_distinct(together).as_py()) < seen:
        raise ValueError(f"{seen - different:,} rows have an id that occurs before: one row for each person")
    found = dict(zip(numbers, np.concatenate(blocks, axis=1), strict=True))
    return _Columns(together, found, {name: pa.concat_arrays(parts) for name, parts in words.items()})


def _countable(batch: pa.RecordBatch, target: str) -> pa.RecordBatch:
    """A target that is true or false, as 1 and 0."""
    place = batch.schema.get_field_index(target)
    column = batch.column(place)
    if not pa.types.is_boolean(column.type):
        return batch
    return batch.set_column(place, target, column.cast(pa.int8()))


def _gaps(column: pa.Array) -> Integers:
    """Where values are null, or empty text."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    blank = pc.equal(pc.utf8_trim_whitespace(column.cast(pa.string())), "")
    return np.flatnonzero(pc.fill_null(blank, True).to_numpy(zero_copy_only=False))


def _text(column: pa.Array, name: str) -> pa.StringArray:
    """Values as names of groups."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        text = pc.fill_null(column.cast(pa.string()), MISSING)
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"group column {name!r} has type {column.type}: give text or numbers") from error
    return pc.if_else(pc.equal(text, ""), MISSING, text)

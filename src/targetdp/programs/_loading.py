"""A program file and its table, read: outcomes, rows in the unit ball, folds, ready to be evaluated."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, Integers, Progress, Silent
from targetdp._files import read_toml
from targetdp.normalization import ColumnScales, data_scales, normalize, read_scales
from targetdp.programs._alike import AlikeGroups, alike_groups
from targetdp.programs._base import Program
from targetdp.programs._people import Folds
from targetdp.programs._settings import ProgramColumns, ProgramSettings, make_program_settings, must_say
from targetdp.table import Source, Tally, batch_rows, check_columns, ids_of, numbers_of, open_source

# The file


def read_program_file(
    path: Path, instead: Mapping[str, Any] | None = None, *, allow_code: bool = False
) -> ProgramSettings:
    """Read the settings of a program file, to try the program on its table.

    Args:
        path: The file (TOML); paths in it are relative to it.
        instead: Settings that take the place of the file's.
        allow_code: Whether the file may name an estimator of another package than scikit-learn and LightGBM:
            importing that runs its code. The file itself cannot allow it.

    Returns:
        The settings.

    Raises:
        ValueError: The file cannot be read, or something in it is missing or wrong; the message names every
            such field. Or its estimator would run code that was not allowed.

    Guarantees: without ``allow_code`` no code is imported but scikit-learn's and LightGBM's.

    Example:
        >>> import tempfile
        >>> from targetdp.programs import example_program
        >>> path = Path(tempfile.mkdtemp()) / "togo.toml"
        >>> _ = path.write_text(example_program("togo", Path("togo.csv")))
        >>> read_program_file(path, {"seed": 7}).seed
        7
    """
    return _read(path, instead or {}, allow_code=allow_code)


def read_decision_rule(path: Path) -> ProgramSettings:
    r"""Read what of a program file decides about people by released scores.

    That is its kind, target and quota, or threshold: the file needs neither a table nor features, and the
    estimator that it may name is neither checked nor imported, since scores have taken its place.

    Args:
        path: The file (TOML).

    Returns:
        Settings that `targetdp.targeting.read_labelled` takes, with our own estimator.

    Raises:
        ValueError: The file cannot be read, or something in it is wrong; the message names every such field.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "rule.toml"
        >>> _ = path.write_text('kind = "aid"\ntarget = "consumption"\nquota = 0.29\n')
        >>> read_decision_rule(path).target
        'consumption'
    """
    return _read(path, {}, whole=False)


def _read(path: Path, instead: Mapping[str, Any], **how: bool) -> ProgramSettings:
    given = read_toml(path, "program file") | dict(instead)
    if isinstance(given.get("table"), str):
        given["table"] = path.parent / given["table"]
    scales = given.get("scales")
    if isinstance(scales, str) and scales != "data":
        given["scales"] = str(path.parent / scales)
    try:
        return make_program_settings(given, **how)
    except ValueError as error:
        raise ValueError(f"program file {path}: {error}") from error


# What is wrong with a program's table, in one message: missing and infinite values, and what to do.


def _complaint(tally: Tally, key: tuple[str, str], settings: ProgramSettings) -> str:
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

    Args:
        settings: What the program file says.
        program: The program, with the outcomes of its people.
        folds: The plan of its cross-validation.
        ids: Everybody's id; None if the file names no id.
        rows: The features, scaled and brought into the unit ball by the file's rule.
        raw: The features as they are in the table.
        scales: Center and scale of each feature.

    Example:
        >>> opened = open_program(Path("aid.toml"))  # doctest: +SKIP
        >>> opened.program.evaluate(opened.rows, opened.folds).summary  # doctest: +SKIP
    """

    settings: ProgramSettings
    program: Program
    folds: Folds
    ids: pa.StringArray | None = field(repr=False)
    rows: Floats = field(repr=False)
    raw: Floats = field(repr=False)
    scales: ColumnScales


def open_program(path: Path, *, progress: Progress | None = None, allow_code: bool = False) -> OpenProgram:
    r"""Read a program file and its table.

    Args:
        path: The program file (TOML); the table's path in it is relative to the file.
        progress: Somebody to show how far the reading is.
        allow_code: Whether the file may name an estimator of another package than scikit-learn and LightGBM:
            importing that runs its code.

    Returns:
        The program with its people, rows in the unit ball and folds, ready to be evaluated.

    Raises:
        ValueError: The file is wrong, or would run code that was not allowed; columns are not there; an id is
            there twice; values are missing or infinite; the target does not fit. The message says what to do.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> people = "".join(f"{i},{i % 7}\n" for i in range(100))
        >>> _ = (folder / "people.csv").write_text(f"consumption,calls\n{people}")
        >>> _ = (folder / "aid.toml").write_text(
        ...     'kind = "aid"\ntable = "people.csv"\nsource = "synthetic"\nquota = 0.29\n'
        ...     'target = "consumption"\nfeatures = ["calls"]\n'
        ... )
        >>> opened = open_program(folder / "aid.toml")
        >>> opened.program.evaluate(opened.rows, opened.folds)["eligible"]
        29.0
    """
    return load_program(read_program_file(path, allow_code=allow_code), progress=progress)


def load_program(settings: ProgramSettings, *, progress: Progress | None = None) -> OpenProgram:
    """Read the table of a program whose settings are at hand.

    Args:
        settings: The program file's, from `read_program_file`.
        progress: Whom to tell how far reading is.

    Returns:
        The program with its people, rows in the unit ball and folds.

    Raises:
        ValueError: As for `open_program`.

    Example:
        >>> import tempfile
        >>> from targetdp.programs import example_program
        >>> from targetdp.populations import write
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = write("togo", folder / "togo.csv", rows=50)
        >>> _ = (folder / "togo.toml").write_text(example_program("togo", Path("togo.csv")))
        >>> load_program(read_program_file(folder / "togo.toml")).rows.shape
        (50, 10)
    """
    if settings.missing:
        raise ValueError(must_say(settings.missing))
    columns = read_columns(settings, progress or Silent())
    raw = np.column_stack([columns.numbers[name] for name in settings.features])
    if settings.scales == "data":
        scales = data_scales(raw)
    else:
        scales = read_scales(Path(settings.scales), settings.features)
    groups = {name: columns.texts[name].to_pylist() for name in settings.groups}
    try:
        program = settings.program(columns, groups)
    except ValueError as error:
        raise ValueError(f"table {settings.table}: {error}") from error
    folds, rows = Folds(len(raw), settings.folds, settings.seed), normalize(raw, scales, settings.rows).X
    return OpenProgram(settings, program, folds, columns.ids, rows, raw, scales)


def read_columns(settings: ProgramSettings, progress: Progress) -> ProgramColumns:
    """Read the columns that a program names from its table.

    Args:
        settings: The program file's.
        progress: Whom to tell how far reading is.

    Returns:
        Ids, numbers and texts.

    Raises:
        ValueError: Columns are not there, or values are missing or infinite: all of it in one message.

    Example:
        >>> import tempfile
        >>> from targetdp.programs import example_program
        >>> from targetdp.populations import write
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = write("togo", folder / "togo.csv", rows=5)
        >>> _ = (folder / "togo.toml").write_text(example_program("togo", Path("togo.csv")))
        >>> len(read_columns(read_program_file(folder / "togo.toml"), Silent()).ids)
        5
    """
    if settings.table is None:
        raise ValueError(must_say(settings.missing))
    source = open_source(settings.table)
    own_numbers, own_texts = settings.own_columns()
    numbers = list(dict.fromkeys([*settings.features, *own_numbers]))
    texts = list(dict.fromkeys([*settings.groups, *settings.survey_columns, *own_texts]))
    wanted = {
        "id": [] if settings.id is None else [settings.id],
        "features": settings.features,
        "target": [settings.target],
        "groups": settings.groups,
        "clusters and strata": settings.survey_columns,
        "weights or loans": numbers,
    }
    check_columns(source.columns, f"table {settings.table}", **wanted)
    try:
        progress.phase(f"reading {settings.table.name}", source.count())
        return _columns(source, settings, numbers, texts, progress)
    except ValueError as error:
        raise ValueError(f"table {settings.table}: {error}") from error


def _columns(
    source: Source, settings: ProgramSettings, numbers: list[str], texts: list[str], progress: Progress
) -> ProgramColumns:
    names = list(dict.fromkeys([*([] if settings.id is None else [settings.id]), *numbers, *texts]))
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
        if settings.target in texts and len(blank := _blank(batch.column(settings.target))):
            tally.add("missing", settings.target, blank, seen)
        for name in texts:
            words[name].append(_group_names(batch.column(name), name))
        seen += batch.num_rows
        progress.advance(batch.num_rows)
    if not seen:
        raise ValueError("it has no rows: there is nobody to decide about")
    if tally.counts:
        raise ValueError("; ".join(_complaint(tally, key, settings) for key in sorted(tally.counts)))
    together = pa.concat_arrays(ids) if ids else None
    if together is not None and (different := pc.count_distinct(together).as_py()) < seen:
        raise ValueError(f"{seen - different:,} rows have an id that occurs before: one row for each person")
    columns = dict(zip(numbers, np.concatenate(blocks, axis=1), strict=True))
    return ProgramColumns(together, columns, {name: pa.concat_arrays(parts) for name, parts in words.items()})


def _countable(batch: pa.RecordBatch, target: str) -> pa.RecordBatch:
    """A target that is true or false, as 1 and 0."""
    place = batch.schema.get_field_index(target)
    column = batch.column(place)
    if not pa.types.is_boolean(column.type):
        return batch
    return batch.set_column(place, target, column.cast(pa.int8()))


def _blank(column: pa.Array) -> Integers:
    """Where values are null, or empty text."""
    blank = pc.equal(pc.utf8_trim_whitespace(_decoded(column).cast(pa.string())), "")
    return np.flatnonzero(pc.fill_null(blank, True).to_numpy(zero_copy_only=False))


def _group_names(column: pa.Array, name: str) -> pa.StringArray:
    """Values as names of groups."""
    column = _decoded(column)
    try:
        text = pc.fill_null(column.cast(pa.string()), MISSING)
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"group column {name!r} has type {column.type}: give text or numbers") from error
    return pc.if_else(pc.equal(text, ""), MISSING, text)


def alike_in_table(table: Path, columns: Sequence[str], rows: int) -> list[AlikeGroups]:
    r"""Groups of a table whose names look alike, before any program is made of it.

    Args:
        table: A Parquet or CSV file, or a directory of such files.
        columns: Columns that divide its people into groups.
        rows: How many rows are looked at, at the least.

    Returns:
        Each set of names, with how many rows each has.

    Raises:
        ValueError: The table cannot be read, or a column has neither text nor numbers.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("sex\nF\nH\nFemme\nF\n")
        >>> [one.rows for one in alike_in_table(path, ["sex"], rows=1000)]
        [{'F': 2, 'Femme': 1}]
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in columns}
    batches = open_source(table).batches(list(columns), {}, batch_rows(len(columns))) if columns else ()
    for batch in batches:
        for name, counted in counts.items():
            values = _group_names(batch.column(name), name).value_counts().to_pylist()
            counted.update({one["values"]: one["counts"] for one in values})
        rows -= batch.num_rows
        if rows <= 0:
            break
    return [one for name, counted in counts.items() for one in alike_groups(name, counted)]


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

"""Spark's session, and tables of files as frames: the columns as the local engine reads them."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from targetdp.release._prepare import Recipe
from targetdp.table import Numerals, Source

try:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException, PythonException
    from pyspark.sql import DataFrame, SparkSession, functions
except ImportError as error:
    raise ImportError(
        f"the Spark engine cannot start ({error}): install it with pip install 'targetdp[spark]', and Java 17"
    ) from error

_ENCODINGS = {"cp1252": "ISO-8859-1", "latin-1": "ISO-8859-1"}
"""As Spark calls them; it has no cp1252, which is the other but for some signs."""

_SIGNS = {bytes([code]): bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)}
"""What these are in cp1252, where they are anything."""


def session() -> SparkSession:
    """The session that is active, or a quiet one on all cores of this machine.

    Edges: workers must run this interpreter, and Spark looks at PYSPARK_PYTHON only when it starts. What a
    task logs of its failure is in the exception too, so our own session keeps it off the screen.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        started = (
            SparkSession.builder.master("local[*]")
            .appName("targetdp")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "FATAL")
            .config("spark.driver.memory", "2g")
            .config("spark.io.encryption.enabled", "true")
            .getOrCreate()
        )
    except PySparkException as error:
        raise RuntimeError(
            f"Spark cannot start ({_reason(error)}): it needs Java 17, on the path or in JAVA_HOME"
        ) from error
    started.sparkContext.setLogLevel("FATAL")
    return started


def read(table: Source, recipe: Recipe) -> DataFrame:
    """A table of files as a frame, its columns as the local engine reads them.

    Edges: in a CSV, what is neither a number nor one of the usual words for a missing one is an error, and
    so is a line with another number of fields than the header. Each set of folders that give columns is a
    frame of its own: thousands of them take Spark long to plan.
    """
    alike: dict[tuple[str | None, ...], list[int]] = {}
    for number in range(len(table.files)):
        values = tuple(values[number] for values in table.folders.values())
        alike.setdefault(values, []).append(number)
    frames = [_read_files(table, recipe, numbers) for numbers in alike.values()]
    with explained():
        return reduce(DataFrame.unionByName, frames)


def _read_files(table: Source, recipe: Recipe, numbers: Sequence[int]) -> DataFrame:
    """Files of a table whose folders say the same, as a frame."""
    reader = session().read
    # Another file system may be the default, and Spark takes [1] in a name for a pattern.
    names = [f"file://{table.files[number].absolute()}" for number in numbers]
    paths = [re.sub(r"([\[\]{}*?\\])", r"\\\1", name) for name in names]
    with explained():
        frame = (
            reader.parquet(*paths) if table.format == "parquet" else _read_text(reader, paths, table, recipe)
        )
        strict = replace(table, keep_words=False)
        for name in table.folders:
            if name in recipe.columns:
                value = strict.given(name, numbers[0], recipe.types)
                kind = {"double": "double", "int64": "bigint"}.get(str(value.type), "string")
                frame = frame.withColumn(name, functions.lit(value.as_py()).cast(kind))
        return frame


def _read_text(reader: Any, paths: list[str], table: Source, recipe: Recipe) -> DataFrame:
    """CSV files as a frame: features as numbers, all else as text."""
    csv, inside = table.csv, [name for name in table.columns if name not in table.folders]
    if csv.encoding == "utf-16":
        raise ValueError(
            'Spark reads no CSV in utf-16: write it in UTF-8, as Parquet, or take engine = "local"'
        )
    schema = ", ".join(f"{quoted(name)} STRING" for name in inside)
    # Without pruning, lines are checked whole, whichever columns are asked for.
    text: DataFrame = reader.option("columnPruning", "false").csv(
        paths, schema=schema, header=True, mode="FAILFAST", sep=csv.separator, quote=csv.quote,
        escape=csv.quote or "\\", encoding=_ENCODINGS.get(csv.encoding, "UTF-8"),
    )  # fmt: skip
    if csv.encoding == "cp1252":
        these = "".join(code.decode("latin-1") for code, sign in _SIGNS.items() if sign)
        columns = [
            functions.translate(functions.col(quoted(name)), these, "".join(_SIGNS.values())).alias(name)
            for name in inside
        ]
        text = text.select(*columns)
    words = [name for name, kind in recipe.types.items() if kind == pa.string()]
    others = [
        functions.coalesce(functions.col(quoted(name)), functions.lit("")).alias(name)
        for name in (recipe.id, *words, *recipe.public) if name in inside
    ]  # fmt: skip
    numbers = (name for name in recipe.sources if name in inside and name not in words)
    features = [_number(name, csv.numerals) for name in numbers]
    return text.select(*others, *features)


def _number(name: str, numerals: Numerals) -> Any:
    """A column of text as numbers; the words that stand for a missing one are those of the local engine."""
    text = functions.col(quoted(name))
    refused = functions.raise_error(
        functions.concat(functions.lit(f"feature {name!r} is not a number everywhere: "), text)
    )
    plain = text
    if numerals != Numerals():
        plain = functions.when(text.rlike(numerals.pattern), text)
        if numerals.thousands:
            plain = functions.regexp_replace(plain, numerals.mark, "")
        if numerals.decimal != ".":
            plain = functions.regexp_replace(plain, numerals.decimal, ".")
    number = functions.coalesce(plain.try_cast("double"), refused)
    missing = text.isNull() | text.isin(pacsv.ConvertOptions().null_values)
    return functions.when(missing, None).otherwise(number).alias(name)


def quoted(name: str) -> str:
    """A name that is not to be parsed: dots belong to it."""
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def explained() -> Iterator[None]:
    """What went wrong in one line, the whole trace as its cause."""
    try:
        yield
    except PythonException as error:
        raise RuntimeError(f"a Spark task failed ({_reason(error)}): nothing was published") from error
    except (PySparkException, Py4JError) as error:
        raise ValueError(
            f"Spark cannot compute the table ({_reason(error)}): nothing was published"
        ) from error


def _reason(error: Exception) -> str:
    """The line that says why, out of the traces of two languages."""
    text = str(error)
    _, trace, python = text.rpartition("Traceback (most recent call last):")
    if trace:
        return next((line for line in python.splitlines() if line[:1].strip()), "no reason given")
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.+)$", text, re.MULTILINE)
    line = causes[-1] if causes else text.strip().splitlines()[0]
    return re.sub(r"^\[[A-Z0-9_.]+\] |\s*SQLSTATE: \w+.*$", "", line)

"""From columns of a table to what a model takes: by names and types first, then chunk by chunk."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats
from targetdp._files import did_you_mean
from targetdp.release._model._file import ModelFile, ModelInput
from targetdp.release._model._pipe import KINDS, MOST_CHUNK_BYTES, MOST_ROWS, MOST_TEXT

Marks = np.ndarray[tuple[int], np.dtype[np.bool_]]


def check_columns(model: ModelFile, columns: Sequence[str], schema: pa.Schema | None = None) -> None:
    """Whether a model takes these columns.

    Args:
        model: The model.
        columns: Names of the columns that it is given, in their order.
        schema: Of the table that they are in; None: names alone are compared.

    Raises:
        ValueError: It does not: everything that is in the way.
    """
    problems = _names(model, columns)
    if schema is not None and not problems:
        for name in columns:
            if schema.get_field_index(name) < 0:
                meant = did_you_mean(name, schema.names) or f"it has {', '.join(schema.names)}"
                problems.append(f"{name}  is not in the table, or twice: {meant}")
            else:
                problems += _type_problem(name, kind_of(model, name), schema.field(name).type)
    if problems:
        raise ValueError("the model does not take these columns:" + "".join(f"\n  {one}" for one in problems))


def _names(model: ModelFile, columns: Sequence[str]) -> list[str]:
    if len(set(columns)) != len(columns):
        return [f"{', '.join(columns)}  has a column twice: name each once"]
    if model.is_one_table:
        (one,) = model.inputs
        if one.width == len(columns):
            return []
        return [
            f"it takes {one.width} columns in one input, {len(columns)} are given ({', '.join(columns)}): "
            "name those that it was trained on, in their order"
        ]
    taken = {one.name for one in model.inputs}
    return [
        *(
            f"{name}  is an input of the model: add it to the columns"
            for name in sorted(taken - set(columns))
        ),
        *(f"{name}  is no input of the model: leave it away" for name in columns if name not in taken),
    ]


def kind_of(model: ModelFile, column: str) -> str:
    """The kind of number, or text, that a model takes a column as."""
    if model.is_one_table:
        return model.inputs[0].kind
    return next(one.kind for one in model.inputs if one.name == column)


def _type_problem(name: str, kind: str, type_: pa.DataType) -> list[str]:
    """What is in the way of a column's type."""
    is_ = pa.types
    if is_.is_dictionary(type_):
        type_ = type_.value_type
    if is_.is_temporal(type_):
        return [f"{name}  {type_}  is a date or time: give a column of numbers, such as days since a day"]
    text = is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_)
    number = is_.is_integer(type_) or is_.is_floating(type_) or is_.is_decimal(type_) or is_.is_boolean(type_)
    if kind == "string":
        return [] if text else [f"{name}  {type_}  the model takes text: convert it with a number for {name}"]
    if not number:
        why = "the model takes a number: convert it with one input for each column, text for this one"
        return [f"{name}  {type_}  {why if text else 'is neither a number nor text: no model takes it'}"]
    whole = is_.is_integer(type_) or is_.is_boolean(type_)
    if (kind == "int64" and not whole) or (kind == "bool" and not is_.is_boolean(type_)):
        return [f"{name}  {type_}  the model takes {kind}: convert it with float for {name}"]
    return []


def rows_in_chunk(model: ModelFile) -> int:
    """How many rows a chunk may have, whatever is in them."""
    width = sum(MOST_TEXT + 16 if one.kind == "string" else 8 * one.width for one in model.inputs)
    return max(1, min(MOST_ROWS, MOST_CHUNK_BYTES // (width + 16)))


def chunk_of(model: ModelFile, columns: Sequence[str], rows: pa.Table) -> bytes:
    """Rows as a confined process reads them: input by input, and at the end which rows have no answer."""
    skipped = np.zeros(rows.num_rows, dtype=np.bool_)
    if model.is_one_table:
        table = np.column_stack([_floats(rows.column(name)) for name in columns])
        with np.errstate(all="ignore"):
            return table.astype(KINDS[model.inputs[0].kind]).tobytes() + skipped.tobytes()
    parts = [_one_column(one, rows.column(one.name), skipped) for one in model.inputs]
    return b"".join([*parts, skipped.tobytes()])


def _one_column(one: ModelInput, column: pa.ChunkedArray, skipped: Marks) -> bytes:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if one.kind == "string":
        return _texts(column, skipped)
    if one.kind in {"int64", "bool"}:
        # A whole number has no value that means a gap: such a row has no answer.
        type_ = pa.int64() if one.kind == "int64" else pa.bool_()
        if pa.types.is_uint64(column.type):
            most = pa.scalar((1 << 63) - 1, pa.uint64())
            column = pc.if_else(pc.less_equal(column, most), column, None)
        column = pc.cast(column, type_)
        skipped |= _array(pc.is_null(column))
        filled = pc.fill_null(column, False if one.kind == "bool" else 0)
        return _array(filled).astype(KINDS[one.kind]).tobytes()
    with np.errstate(all="ignore"):
        return _floats(column).astype(KINDS[one.kind]).tobytes()


def _floats(column: pa.ChunkedArray) -> Floats:
    """Numbers, with NaN for gaps."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    # Large whole numbers become the nearest that there is.
    column = pc.cast(column, pa.float64(), safe=False)
    return np.asarray(_array(pc.fill_null(column, np.nan)), dtype=np.float64)


def _texts(column: pa.ChunkedArray, skipped: Marks) -> bytes:
    """Where each text ends, and all texts; a gap is an empty one."""
    text = pc.fill_null(column.cast(pa.large_string()).cast(pa.large_binary()), b"")
    too_long = pc.greater(pc.binary_length(text), MOST_TEXT)
    skipped |= _array(too_long)
    encoded = pc.if_else(too_long, b"", text).to_pylist()
    for place, one in enumerate(encoded):
        if not _is_text(one):
            skipped[place], encoded[place] = True, b""
    return np.cumsum([0, *map(len, encoded)], dtype="<i8").tobytes() + b"".join(encoded)


def _is_text(value: bytes) -> bool:
    """Whether it is UTF-8: files say so of their texts, and readers believe them."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _array(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(column.to_numpy())

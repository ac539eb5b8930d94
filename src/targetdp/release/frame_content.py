"""What a data frame holds, whatever kind of frame it is: a hash by which its certificate knows it."""

import hashlib
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from targetdp.release.certificate import Certificate


def frame_hash(table: pa.Table, id_column: str, released: Sequence[str]) -> str:
    """SHA-256 of names, ids and values: the same for equal frames of any kind.

    Of every column its name, then its values in order of rows: numbers as little-endian doubles, names and
    ids as UTF-8 behind their lengths (8 bytes). The values of columns that are not protected do not count.
    """
    digest = hashlib.sha256()
    for name in (id_column, *released):
        digest.update(_framed(name))
        column = table.column(name).combine_chunks()
        if name == id_column:
            for value in column.to_pylist():
                digest.update(_framed(str(value)))
        else:
            digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return digest.hexdigest()


def _framed(text: str) -> bytes:
    data = text.encode()
    return len(data).to_bytes(8, "little") + data


def is_certified(frame: Any, certificate: Certificate) -> bool:
    """Whether a frame has exactly the columns, ids and values that its certificate was made for."""
    table, _ = arrow_of(frame)
    if table.column_names != [certificate.id, *certificate.released, *certificate.not_protected]:
        return False
    return frame_hash(table, certificate.id, certificate.released) == certificate.output.sha256


def arrow_of(frame: Any) -> tuple[pa.Table, Any]:
    """The frame as a pyarrow table, and the way back."""
    if isinstance(frame, pa.Table):
        return frame, lambda table: table
    try:
        known = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"frame is a {type(frame).__name__}: give a pandas, polars or pyarrow table in memory, or use "
            "targetdp.release.spark for Spark"
        ) from error
    backend = known.implementation
    return known.to_arrow(), lambda table: nw.from_arrow(table, backend=backend).to_native()

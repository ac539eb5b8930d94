"""Large invented tables on disk: a string id like a phone number, and columns of phone use."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ID, FEATURE = "name", "feature_{}"


def write_crowd(path: Path, rows: int, features: int) -> Path:
    """A Parquet file of a crowd in no order, and beside it a scales file of the same name."""
    rng = np.random.default_rng(2026)
    names = [FEATURE.format(j) for j in range(features)]
    schema = pa.schema([(ID, pa.string()), *((name, pa.float64()) for name in names)])
    step = max(1_000, 2_500_000 // features)
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="snappy") as writer:
        for start in range(0, rows, step):
            count = min(step, rows - start)
            columns = [pa.array(rng.gamma(2.0, 50.0, count)) for _ in names]
            writer.write_table(pa.Table.from_arrays([_numbers(start, count), *columns], schema=schema))
    write_scales(path.with_suffix(".toml"), names)
    return path


def write_scales(path: Path, names: Sequence[str]) -> None:
    """A scales file for columns of phone use."""
    scales = "\n".join(f"{name} = {{ center = 100.0, scale = 150.0 }}" for name in names)
    path.write_text(f'source = "public"\nreason = "invented"\n[features]\n{scales}\n')


def _numbers(start: int, count: int) -> pa.Array:
    """Different ids in no order: multiples of an odd number modulo 2³², padded with zeros."""
    scattered = (np.arange(start, start + count, dtype=np.uint64) * 2_654_435_761) % 2**32
    return pc.utf8_lpad(pa.array(scattered).cast(pa.string()), width=11, padding="0")

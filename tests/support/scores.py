"""What tests of scores share: two tables at a desk, requests for scores, and a sample to learn from."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.release import make_desk, release, table_of, write_parquet
from targetdp.release import Released

WEIGHTS = {"calls": 1.0, "texts": 2.0, "topups": -1.0}
TWO = {"calls": (1.0, 1.0), "texts": (-1.0, 1.0), "topups": (0.0, -2.0)}
"""Two scores that tell no column by itself."""
EVERYBODY, SAMPLED = 120, 40


def two_tables(folder: Path, columns: Mapping[str, Any] | None = None, **policy: Any) -> pa.Table:
    """all.parquet and sampled.parquet, a part of it, and a desk for both."""
    everybody = table_of(EVERYBODY, **(columns or {}))
    write_parquet(folder / "all.parquet", everybody)
    write_parquet(folder / "sampled.parquet", everybody.slice(0, SAMPLED))
    make_desk(folder, **policy)
    return everybody


def release_sample(folder: Path, output: str = "sample.parquet", **given: Any) -> Released:
    """The private sample; ``given`` is that of `request_of`."""
    return release(folder, output, table="sampled.parquet", **given)


def release_scores(
    folder: Path,
    output: str = "scores.parquet",
    weights: Mapping[str, float | Sequence[float]] = WEIGHTS,
    *,
    table: str = "all.parquet",
    sample: Released | None = None,
    **given: Any,
) -> Released:
    """Scores of everybody or, beside a sample, of everybody else; ``given`` is that of `request_of`."""
    asked: dict[str, Any] = {"release": "scores", "weights": weights}
    if sample is not None:
        own = sample.certificate.release
        asked |= {"learned_from": own, "leave_out": (own,)}
    return release(folder, output, table=table, **asked | given)

"""What tests of scores share: weights files, and a sample to learn from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from support.release import FEATURES, settings, table_of, write_parquet, write_scales
from targetdp.release import Settings, privatize_file, weights_text
from targetdp.release._job import Released

WEIGHTS = (1.0, 2.0, -1.0)
TWO = ((1.0, -1.0, 0.0), (1.0, 1.0, -2.0))
"""Two scores that tell no column by itself."""
EVERYBODY, SAMPLED = 120, 40


def write_weights(
    path: Path,
    weights: Any = WEIGHTS,
    scores: Sequence[str] = ("score",),
    features: Sequence[str] = FEATURES,
    **learned: Any,
) -> Path:
    """A weights file; whatever is named is said of how they were learned."""
    path.write_text(
        weights_text(features, np.atleast_2d(weights), scores=scores, learned=learned), encoding="utf-8"
    )
    return path


def two_tables(folder: Path, **more: Any) -> pa.Table:
    """all.parquet and sampled.parquet, a part of it, with the scales for both."""
    everybody = table_of(EVERYBODY, **more)
    write_parquet(folder / "all.parquet", everybody)
    write_parquet(folder / "sampled.parquet", everybody.slice(0, SAMPLED))
    write_scales(folder / "scales.toml")
    return everybody


def release_sample(folder: Path, name: str = "sample.parquet", **given: Any) -> Released:
    """The private sample, and a weights file that was learned from it."""
    done = privatize_file(folder / "sampled.parquet", folder / name, in_folder(folder, **given))
    write_weights(folder / "weights.toml", release=done.certificate.release)
    return done


def release_scores(folder: Path, name: str = "scores.parquet", **given: Any) -> Released:
    """Scores of everybody, by the weights file of the folder."""
    asked: dict[str, Any] = {"weights": folder / "weights.toml"} | given
    return privatize_file(folder / "all.parquet", folder / name, in_folder(folder, **asked))


def in_folder(folder: Path, **given: Any) -> Settings:
    """Settings with the scales and the key of a folder."""
    own: dict[str, Any] = {
        "scales": str(folder / "scales.toml"), "key": folder / "key.pem", "delta": 1e-7,
    }  # fmt: skip
    return settings(**own | given)


def charged(folder: Path, part: str | None = None) -> dict[str, Any]:
    """Settings that charge the folder's ledger."""
    return {"ledger": folder / "ledger.db", "population": "people"} | ({} if part is None else {"part": part})

"""What tests of `targetdp learn` share: a private sample with its certificate, labels and program files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from support.release import CENTERS, FEATURES, SCALES, settings, write_csv, write_parquet, write_scales
from targetdp.release import privatize_file
from targetdp.release._job import Released

EVERYBODY, SAMPLED = 900, 400
LOANS = {"amount": "amount", "revenue": 0.3, "interest": 0.02}


def population(seed: int = 0) -> pa.Table:
    """People whose consumption and repayment follow their features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(CENTERS, SCALES, size=(EVERYBODY, 3))
    standing = ((X - CENTERS) / SCALES) @ [0.6, 0.3, -0.4] + 0.5 * rng.standard_normal(EVERYBODY)
    columns: dict[str, Any] = {"name": [f"{i:06d}" for i in rng.permutation(EVERYBODY)]}
    columns |= dict(zip(FEATURES, X.T, strict=True))
    columns |= {
        "consumption": np.exp(4 + standing),
        "repaid": (standing > -0.4).astype(np.int64),
        "amount": rng.integers(5, 50, EVERYBODY).astype(float),
    }
    return pa.table(columns)


def release_sample(folder: Path, name: str = "sample.parquet", **given: Any) -> Released:
    """all.parquet, sampled.parquet (a part of it), its release, labels.csv of the sample, and a program."""
    everybody = population()
    write_parquet(folder / "all.parquet", everybody.select(["name", *FEATURES]))
    sampled = everybody.slice(0, SAMPLED)
    write_parquet(folder / "sampled.parquet", sampled.select(["name", *FEATURES]))
    write_csv(folder / "labels.csv", labels(sampled))
    write_scales(folder / "scales.toml")
    write_program(folder)
    own: dict[str, Any] = {
        "scales": str(folder / "scales.toml"), "key": folder / "key.pem", "delta": 1e-5,
    }  # fmt: skip
    return privatize_file(folder / "sampled.parquet", folder / name, settings(**own | given))


def labels(people: pa.Table) -> pa.Table:
    return people.select(["name", "consumption", "repaid", "amount"])


def write_program(
    folder: Path, kind: str = "aid", name: str = "program.toml", *, loans: bool = True, **more: Any
) -> Path:
    """A program file without a table, as an official has it."""
    own = {"target": "consumption", "quota": 0.3} if kind == "aid" else {"target": "repaid", "currency": "$"}
    whole = {"kind": kind} | own | more
    lines = [f"{key} = {json.dumps(value)}" for key, value in whole.items()]
    if kind == "lending" and loans:
        lines += ["[loans]", *(f"{key} = {json.dumps(value)}" for key, value in LOANS.items())]
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path

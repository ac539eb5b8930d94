"""What tests of `targetdp learn` share: a private sample with its certificate, labels and program files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from support.release import CENTERS, FEATURES, SCALES, make_desk, release, write_csv, write_parquet
from targetdp.release import Desk, Released, translate_ids

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


def write_population(folder: Path, **policy: Any) -> Desk:
    """all.parquet, sampled.parquet (a part of it), labels.csv of the sample, a program, and a desk."""
    everybody = population()
    write_parquet(folder / "all.parquet", everybody.select(["name", *FEATURES]))
    sampled = everybody.slice(0, SAMPLED)
    write_parquet(folder / "sampled.parquet", sampled.select(["name", *FEATURES]))
    write_csv(folder / "labels.csv", labels(sampled))
    write_program(folder)
    return make_desk(folder, **policy)


def release_sample(folder: Path, name: str = "sample.parquet", **given: Any) -> Released:
    """The release of sampled.parquet; the first one makes everything else in the folder, too."""
    if not (folder / "desk").exists():
        write_population(folder)
    return release(folder, name, table="sampled.parquet", **{"delta": 1e-5} | given)


def labels(people: pa.Table) -> pa.Table:
    return people.select(["name", "consumption", "repaid", "amount"])


def write_ids(folder: Path, people: pa.Table, name: str = "ids.csv") -> Path:
    """The list of ids and pseudonyms that a data holder makes for some people (`targetdp ids`)."""
    asked = write_csv(folder / f"of_{name}", people.select(["name"]))
    return write_csv(folder / name, translate_ids(Desk.open(folder / "desk"), asked).table)


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

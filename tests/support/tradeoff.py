"""What tests of the trade-off share: a small invented program, in memory and as files, and a small grid."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_info

from targetdp._core import Floats, processors
from targetdp.normalization import data_scales, normalize
from targetdp.programs import Aid, Folds, Lending, Program, Source, loans_at_rates
from targetdp.tradeoff import Grid, Study, Sweep

PEOPLE, FEATURES = 150, ("calls", "texts", "topups", "contacts")
GRID = Grid(
    B=(0.25, 2.0), epsilon1=(3.0,), epsilon2=(0.5, 0.9), k=(100,), group_sizes=(2, 5),
    mechanisms=("projection", "least-noise"),
)  # fmt: skip
"""Status quo, 4 projections (2 of them equal to the others), 4 least-noise, 2 k-anonymous."""
TINY = Grid(
    B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), k=(100,), group_sizes=(2,),
    mechanisms=("projection", "least-noise", "score", "score-laplace"),
)  # fmt: skip
"""One cell of each kind that is quick to try."""
SIMULATIONS = 3
WITH_SCORES = Grid(
    B=(0.25, 2.0), epsilon1=(3.0,), epsilon2=(0.5,), group_sizes=(), mechanisms=("least-noise", "score")
)
"""Status quo, 2 least-noise, 2 of scores."""


def people(seed: int = 0, n: int = PEOPLE) -> tuple[Floats, Floats, list[str]]:
    """Features, consumption, and a group of each person."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal(n)
    X = means[:, None] * [0.6, 0.4, 0.7, 0.2] + rng.standard_normal((n, len(FEATURES)))
    consumption = np.exp(0.5 * means + 0.3 * rng.standard_normal(n))
    return X, consumption, ["north" if x > 0 else "south" for x in means]


def study(source: Source = "synthetic", *, lending: bool = False, seed: int = 0, **more: Any) -> Study:
    X, y, groups = people(seed)
    repaid = (y > np.median(y)).astype(np.float64)
    program: Program = (
        Lending(repaid, loans_at_rates(np.full(len(y), 10.0), revenue=0.3, interest=0.05))
        if lending
        else Aid(y, 0.3, population=15_000, groups={"region": groups})
    )
    rows = normalize(X, data_scales(X)).X
    return Study("small", source, FEATURES, rows, program, Folds(len(y)), **more)


def sweep(**given: Any) -> Sweep:
    whole: dict[str, Any] = {"grid": GRID, "simulations": SIMULATIONS} | given
    return Sweep(whole.pop("study", None) or study(), **whole)


def files(folder: Path, source: str = "synthetic", **more: Any) -> Path:
    """A program file with its table."""
    X, y, groups = people()
    columns: dict[str, Any] = {"id": [f"p{i}" for i in range(len(y))], "consumption": y, "region": groups}
    pq.write_table(pa.table(columns | dict(zip(FEATURES, X.T, strict=True))), folder / "people.parquet")
    given = {
        "kind": "aid", "table": "people.parquet", "source": source, "id": "id", "features": list(FEATURES),
        "target": "consumption", "quota": 0.3, "groups": ["region"], "population": 15_000.0,
        "simulations": SIMULATIONS, "seed": 5,
    } | more  # fmt: skip
    lines = [f"{name} = {json.dumps(value)}" for name, value in given.items()]
    grid = {
        name: list(getattr(GRID, name))
        for name in ("B", "epsilon1", "epsilon2", "k", "group_sizes", "mechanisms")
    }
    lines += ["[grid]", *(f"{name} = {json.dumps(values)}" for name, values in grid.items())]
    path = folder / "program.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def finished_bytes(folder: Path) -> dict[str, bytes]:
    """What must not depend on how a sweep was run."""
    return {name: (folder / name).read_bytes() for name in ("run.json", "results.parquet", "summary.parquet")}


def look(task: int) -> tuple[int, int, int, list[int]]:
    """Where a task runs, how many threads it may use, and how many linear algebra does."""
    algebra = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return task, os.getpid(), processors(), algebra

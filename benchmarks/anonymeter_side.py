"""Anonymeter's half of the attribute inference benchmark: run by `inference.py` in Anonymeter's environment.

Its nearest neighbor search compares each person with every released row by itself, so its time is a part
that is paid once and a part for each person. Both are measured: one person, and a sample.
"""

import json
import sys
import time
from typing import Any

import anonymeter.evaluators  # type: ignore[import-not-found]  # noqa: F401 (first: its imports are circular)
import numpy as np
import pandas as pd
from anonymeter.neighbors.mixed_types_kneighbors import (  # type: ignore[import-not-found]
    MixedTypeKNeighbors,
)


def main() -> None:
    """Read the tables named on the command line; write seconds and rows for each number of known columns."""
    tables = np.load(sys.argv[1])
    rounds = int(sys.argv[2])
    names = [f"c{column:02d}" for column in range(tables["people"].shape[1])]
    people = pd.DataFrame(tables["people"], columns=names)
    released = pd.DataFrame(tables["released"], columns=names)
    answers = {}
    for h in tables["known"].tolist():
        _search(people[:2], released, names[:h])  # compiles
        one = min(_search(people[:1], released, names[:h])[0] for _ in range(rounds))
        tries = [_search(people, released, names[:h]) for _ in range(rounds)]
        answers[h] = {"one": one, "sample": min(seconds for seconds, _ in tries), "rows": tries[0][1]}
    json.dump(answers, sys.stdout)


def _search(people: Any, released: Any, known: list[str]) -> tuple[float, list[int]]:
    start = time.process_time()
    search = MixedTypeKNeighbors(n_neighbors=1, n_jobs=1).fit(candidates=released[known])
    rows = search.kneighbors(queries=people[known])
    return time.process_time() - start, rows.ravel().tolist()


if __name__ == "__main__":
    main()

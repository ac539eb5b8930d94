"""Record Anonymeter's guesses and successes on small tables: run it where Anonymeter is installed.

For each table, known columns and secret: the released row that Anonymeter takes for each person (its nearest
neighbor search) and how many guesses it counts as right (its evaluator, `regression=True`), for people in the
release and outside it. Column names sort like column numbers, since Anonymeter adds up distances by name.
"""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from anonymeter.evaluators import InferenceEvaluator  # type: ignore[import-not-found]
from anonymeter.neighbors.mixed_types_kneighbors import MixedTypeKNeighbors  # type: ignore[import-not-found]

Case = tuple[Any, ...]


def cases() -> Iterator[tuple[str, Case]]:
    """People in the release, released rows, people outside; at least as many rows as people."""
    rng = np.random.default_rng(2022)
    yield "signs", tuple(rng.standard_normal((n, 5)) for n in (50, 60, 20))
    people = np.exp(rng.standard_normal((90, 10)) + rng.standard_normal((90, 1)))
    people = (people - people.mean(axis=0)) / people.std(axis=0)
    yield "release", (people[:65], people[:65] + 0.3 * rng.standard_normal((65, 10)), people[65:])
    yield "ties", tuple(rng.integers(-2, 3, (n, 4)) / 2 for n in (50, 60, 20))
    yield "duplicates", tuple(np.repeat(rng.standard_normal((n, 3)), 3, axis=0) for n in (8, 10, 4))
    constant = [rng.standard_normal((n, 5)) for n in (40, 40, 15)]
    for part in constant:
        part[:, 1] = 0.1
    constant[1][:, 3] = -2.0
    yield "constant columns", tuple(constant)
    zeros = [rng.gamma(1.0, 1.0, (n, 4)) * [1e6, 1.0, 1e-6, 1.0] for n in (40, 45, 15)]
    for part in zeros:
        part[rng.random(part.shape) < 0.3] = 0.0
    yield "zeros and scales", tuple(zeros)
    yield "two rows", tuple(rng.standard_normal((2, 3)) for _ in range(3))
    yield "one row", tuple(rng.standard_normal((1, 2)) for _ in range(3))
    yield "more columns than rows", tuple(rng.standard_normal((n, 12)) for n in (5, 6, 4))


def knowledge(columns: int, rng: Any) -> Iterator[tuple[list[int], int]]:
    """Each column as the secret: with all others known, with half of them, and with one."""
    for secret in range(columns):
        others = [column for column in range(columns) if column != secret]
        for h in sorted({columns - 1, -(-columns // 2), 1}):
            yield sorted(rng.choice(others, h, replace=False).tolist()), secret


def attack(people: Any, released: Any, known: list[str], secret: str) -> tuple[Any, int]:
    """The nearest released rows, and the number of guesses that count as right."""
    search = MixedTypeKNeighbors(n_neighbors=1, n_jobs=1).fit(candidates=released[known])
    rows = search.kneighbors(queries=people[known]).ravel()
    evaluator = InferenceEvaluator(
        ori=people, syn=released, aux_cols=known, secret=secret, regression=True, n_attacks=len(people)
    )
    return rows, int(evaluator.evaluate(n_jobs=1).results().n_success)


def main() -> None:
    """Write what this version of Anonymeter answers."""
    kept: dict[str, Any] = {}
    rng = np.random.default_rng(1729)
    for name, tables in cases():
        names = [f"c{column:02d}" for column in range(tables[0].shape[1])]
        frames = [pd.DataFrame(table, columns=names) for table in tables]
        tried = list(knowledge(len(names), rng))
        kept |= {
            f"{name}/{side}": table for side, table in zip(("in", "released", "out"), tables, strict=True)
        }
        kept[f"{name}/known"] = np.array([[c in known for c in range(len(names))] for known, _ in tried])
        kept[f"{name}/secret"] = np.array([secret for _, secret in tried])
        for side, people in (("in", frames[0]), ("out", frames[2])):
            found = [
                attack(people, frames[1], [names[column] for column in known], names[secret])
                for known, secret in tried
            ]
            kept[f"{name}/rows {side}"] = np.array([rows for rows, _ in found], dtype=np.int16)
            kept[f"{name}/right {side}"] = np.array([right for _, right in found])
    np.savez_compressed(Path(__file__).with_name(f"anonymeter-{version('anonymeter')}.npz"), **kept)


if __name__ == "__main__":
    main()

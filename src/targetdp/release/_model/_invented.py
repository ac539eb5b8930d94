"""A model on invented rows: whether it answers at all, and how long a row takes it.

This is the only place where a model is refused for what it does: the rows are nobody's.
"""

import time

import numpy as np
import pyarrow as pa

from targetdp._core import check
from targetdp.release._model._file import ModelFile
from targetdp.release._model._pipe import MOST_TEXT
from targetdp.release._model._runner import ModelRunner

ROWS = 1_024
COMPARISONS = 100
"""With nodes of trees that a microsecond is enough for."""
_TURNS = 5


def try_model(model: ModelFile, *, microseconds: int) -> float:
    """Run a model on invented rows.

    Args:
        model: From `read_model`.
        microseconds: How long a row may take, by the policy.

    Returns:
        How long a row may take, in microseconds: the best of several turns, as a busy machine is no fault of
        the model, and its longest paths besides.

    Raises:
        ValueError: It cannot be loaded, gives no answer to any of these rows, or takes too long.
    """
    check.integer("microseconds", microseconds, at_least=1)
    if model.comparisons > COMPARISONS * microseconds:
        raise ValueError(
            f"the model may compare one row {model.comparisons:,} times (trees, categories and texts), the "
            f"policy gives a row {microseconds:,} microseconds, enough for {COMPARISONS * microseconds:,}: "
            "limit depth or number of trees, and categories, or give a row more time in the policy"
        )
    rows = invented_rows(model, np.random.default_rng(0))
    times = []
    with ModelRunner(model, rows.column_names, jobs=1) as runner:
        for _ in range(_TURNS):
            begun = time.perf_counter()
            scores = runner.scores(rows)
            times.append((time.perf_counter() - begun) / rows.num_rows * 1e6)
    if np.isnan(scores).all():
        raise ValueError(
            f"the model gives no number for any of {rows.num_rows} invented rows: try it on rows of your own"
        )
    # As if its work on a row were never the most that it may be: so no row takes longer than this.
    took = float(min(times)) + model.comparisons / COMPARISONS
    if took > microseconds:
        raise ValueError(
            f"the model may take {took:,.0f} microseconds for a row, the policy gives {microseconds:,}: make "
            "the model smaller, or give a row more time in the policy"
        )
    return took


def invented_rows(model: ModelFile, rng: np.random.Generator) -> pa.Table:
    """Rows to try a model on: zeros, ones, large numbers, gaps, numbers of every size, short and long texts.

    Args:
        model: What they are for.
        rng: Where random numbers come from.
    """
    columns: dict[str, pa.Array] = {}
    for one in model.inputs:
        for place in range(one.width):
            columns[f"column {place + 1}" if model.is_one_table else one.name] = _column(one.kind, rng)
    return pa.table(columns)


def _column(kind: str, rng: np.random.Generator) -> pa.Array:
    """One column: rows of the same special value first, then each as chance has it."""
    if kind == "string":
        some = ["", "a", "b", "yes", "no", "0", "1", "ä", "x" * MOST_TEXT]
        return pa.array([*some, *rng.choice(some, ROWS - len(some)).tolist()])
    if kind == "bool":
        return pa.array(rng.random(ROWS) < 0.5)
    special = np.array([0, 1, -1, 1e6, -1e6, 1e30, -1e30, np.nan])
    scale = 10.0 ** rng.integers(-3, 6, ROWS)
    values = rng.normal(size=ROWS) * scale
    values[: len(special)] = special
    some_special = rng.random(ROWS) < 0.05
    values[some_special] = rng.choice(special, int(some_special.sum()))
    if kind == "int64":
        return pa.array(np.nan_to_num(np.clip(values, -1e15, 1e15)).astype(np.int64))
    return pa.array(values)

"""What simulations say together: means and intervals, and for attacks the worst over settings of the means.

Aggregation is the paper's: first the mean of each setting (a net size; a column and h) over simulations, then
the worst of them. Intervals are Student's, for the mean over simulations: they know how noise varies, not how
another sample of people would. An attack on a cell with a single simulation keeps its own interval, which is
about other people like these.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import stdtrit

from targetdp.attacks.protection import CONFIDENCE, Protection, Setting, worst, worst_of_means
from targetdp.tradeoff.figure import ATTACKS, DERIVED
from targetdp.tradeoff.grid import STATUS_QUO
from targetdp.tradeoff.results import with_cell, with_source
from targetdp.tradeoff.sweep import Sweep

WORST = "worst"
"""The setting of an attack's figure over all its settings: the paper's protection score."""

_SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("setting", pa.string()),
        ("simulations", pa.int32()),
        ("mean", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("change", pa.float64()),
        ("strongest", pa.string()),
    ]
)


@dataclass(frozen=True)
class Line:
    """One line of the summary. ``change`` is against the status quo, for figures of the program only.

    ``low`` and ``high`` are None where one simulation says nothing of how others would be; ``simulations``
    is 0 for what is derived. ``strongest`` names the setting that an attack's worst figure comes from.
    """

    metric: str
    setting: str
    simulations: int
    mean: float | None
    low: float | None = None
    high: float | None = None
    change: float | None = None
    strongest: str | None = None


Scores = dict[str, dict[str, list[tuple[float | None, float | None, float | None]]]]
"""By metric and setting: value and interval of each simulation."""


def summary(sweep: Sweep, figures: dict[str, pa.Table]) -> pa.Table:
    """One row for each cell, metric and setting, in the order of the grid."""
    lines = {cell.name: list(summarize(figures[cell.name])) for cell in sweep.cells}
    today = {(line.metric, line.setting): line.mean for line in lines[STATUS_QUO] if _is_program(line.metric)}
    tables = []
    for cell in sweep.cells:
        rows = [asdict(line) | {"change": _less(line.mean, today.get((line.metric, line.setting)))}
                for line in lines[cell.name]]  # fmt: skip
        tables.append(with_cell(cell, pa.Table.from_pylist(rows, schema=_SCHEMA)))
    return with_source(sweep, pa.concat_tables(tables).combine_chunks())


def summarize(figures: pa.Table) -> Iterator[Line]:
    """The lines of one cell."""
    for metric, settings in _gathered(figures).items():
        if metric in DERIVED:
            for setting, ((value, _, _),) in settings.items():
                yield Line(metric, setting, 0, value, value, value)
        elif metric in ATTACKS:
            yield from _attack_lines(metric, settings)
        else:
            for setting, scores in settings.items():
                values = np.array([math.nan if x is None else x for x, _, _ in scores])
                yield Line(metric, setting, len(values), *_mean(values))


def _attack_lines(metric: str, settings: dict[str, Any]) -> Iterator[Line]:
    protections = _protections(settings)
    together = worst_of_means(protections)
    for setting, found in together.settings.items():
        yield Line(metric, setting, len(protections), found.score, *found.interval)
    yield Line(
        metric, WORST, len(protections), together.score, *together.interval, strongest=together.strongest
    )


def _protections(settings: dict[str, Any]) -> list[Protection]:
    """What the attack handed back in each simulation."""
    each = zip(*settings.values(), strict=True)
    return [
        worst(
            {
                name: Setting(value, (low, high))
                for name, (value, low, high) in zip(settings, scores, strict=True)
            },
            "upper",
        )
        for scores in each
    ]


def _mean(values: np.ndarray[Any, Any]) -> tuple[float | None, float | None, float | None]:
    """Mean and interval; None where undefined: a metric that has no value in some simulation has no mean."""
    mean = float(values.mean())
    if not math.isfinite(mean):
        return (None if math.isnan(mean) else mean), None, None
    if len(values) == 1:
        return mean, None, None
    reach = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * float(values.std(ddof=1))
    return mean, mean - reach / math.sqrt(len(values)), mean + reach / math.sqrt(len(values))


def _gathered(figures: pa.Table) -> Scores:
    found: Scores = {}
    columns = (figures.column(name).to_pylist() for name in ("metric", "setting", "value", "low", "high"))
    for metric, setting, value, low, high in zip(*columns, strict=True):
        found.setdefault(metric, {}).setdefault(setting, []).append((value, low, high))
    return found


def _is_program(metric: str) -> bool:
    return metric not in {*ATTACKS, *DERIVED}


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before

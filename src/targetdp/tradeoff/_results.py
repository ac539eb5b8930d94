"""Tables of a sweep: a part for each unit, all figures in one tidy table, and where time went."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import ndtri, stdtrit

from targetdp._core import Floats
from targetdp.attacks import CONFIDENCE, Protection, Setting, worst, worst_of_means
from targetdp.tradeoff._intervals import RESAMPLED, Line, Reaches, Sampling
from targetdp.tradeoff._metrics import (
    ATTACKED,
    ATTACKS,
    DERIVED,
    GUESSING,
    INFERENCE,
    MOST_GUESSED,
    metric_of,
)
from targetdp.tradeoff._study import EVERYBODY
from targetdp.tradeoff._sweep import Sweep, Unit
from targetdp.tradeoff._technology import STATUS_QUO, Cell, Figure, Simulated

_SECONDS = b"targetdp.seconds"

_TEXT, _COUNT, _NUMBER = pa.string(), pa.int32(), pa.float64()

_SIMULATED = pa.schema(
    {"simulation": _COUNT, "metric": _TEXT, "setting": _TEXT}
    | dict.fromkeys(("value", "low", "high", "anyway"), _NUMBER)
    | {RESAMPLED: pa.list_(pa.float32())}
)
"""Of a part: a row for each figure of a simulation. In its first simulation a sum over people also has what
it adds up to in all simulations of the part, in each resample: no person is in it."""

_SUMMARIZED = pa.schema(
    {"metric": _TEXT, "setting": _TEXT, "simulations": _COUNT}
    | dict.fromkeys(("mean", "low", "high", "change"), _NUMBER)
    | {"strongest": _TEXT, "noise": _NUMBER, "anyway": _NUMBER, "right": _NUMBER}
)
"""Of the summary: a row for each `Line`."""

_TIMED = pa.schema(
    {"cell": _TEXT, "part": _TEXT, "simulations": _COUNT}
    | dict.fromkeys(("seconds", "seconds_per_simulation"), _NUMBER)
)

_OF_A_CELL = (
    {"cell": _TEXT, "mechanism": _TEXT}
    | dict.fromkeys(("B", "epsilon1", "epsilon2", "epsilon", "delta"), _NUMBER)
    | {"k": pa.int64(), "parts": _COUNT, "group_size": _COUNT, "rows": _TEXT, "same_as": _TEXT}
)
"""How every table says which cell a row is about; null where a parameter does not apply."""


def part_of(unit: Unit, simulated: Sequence[Simulated]) -> pa.Table:
    """A unit's figures as a table; its seconds go into the metadata, since they differ from run to run."""
    rows = [
        (number, figure)
        for number, one in zip(range(unit.begin, unit.end), simulated, strict=True) for figure in one.figures
    ]  # fmt: skip
    seconds = _total(one.seconds for one in simulated)
    resampled: dict[tuple[str, str], Floats] = {}
    for _, figure in rows:
        if figure.resampled is not None:
            name = figure.metric, figure.setting
            resampled[name] = resampled.get(name, 0.0) + figure.resampled
    table = _table([number for number, _ in rows], [figure for _, figure in rows], resampled)
    return table.replace_schema_metadata({_SECONDS: json.dumps(seconds).encode()})


def _total(seconds: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Seconds of each part of the work, added up."""
    total: dict[str, float] = {}
    for each in seconds:
        for name, spent in each.items():
            total[name] = total.get(name, 0.0) + spent
    return total


def derived(figures: Iterable[Figure]) -> pa.Table:
    """Figures that belong to a cell and not to a simulation of it."""
    known = list(figures)
    return _table([None] * len(known), known)


def figures_of(
    sweep: Sweep, parts: dict[str, list[pa.Table]], known: dict[str, pa.Table]
) -> dict[str, pa.Table]:
    """All figures of every cell: its simulations (or those of its equal), then what is derived."""
    return {
        cell.name: pa.concat_tables([*parts[cell.same_as or cell.name], known[cell.name]]).combine_chunks()
        for cell in sweep.cells
    }


def results(sweep: Sweep, figures: dict[str, pa.Table]) -> pa.Table:
    """The tidy table: one row for each cell, simulation, metric and setting, in the order of the grid.

    ``simulation`` is null for what is derived from the noise alone.
    """
    inner = ["low", "high", RESAMPLED]
    return _tidy(sweep, {name: table.drop_columns(inner) for name, table in figures.items()})


def _tidy(sweep: Sweep, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The tables of all cells as one.

    The last column says where the rows came from: metadata is lost where a table is exported.
    """
    whole = pa.concat_tables([with_cell(cell, tables[cell.name]) for cell in sweep.cells]).combine_chunks()
    source = pa.repeat(pa.scalar(sweep.study.source), whole.num_rows)
    return whole.append_column(pa.field("source", pa.string()), source)


def with_cell(cell: Cell, table: pa.Table) -> pa.Table:
    """A table whose first columns say which cell it is about."""
    given = asdict(cell) | {"cell": cell.name}
    columns = {
        name: pa.repeat(pa.scalar(given[name], kind), table.num_rows) for name, kind in _OF_A_CELL.items()
    }
    return pa.table(columns | dict(zip(table.column_names, table.columns, strict=True)))


def timing(sweep: Sweep, parts: dict[str, list[pa.Table]]) -> pa.Table:
    """Seconds that each part of the work took, for each cell that was computed."""
    rows: list[dict[str, Any]] = []
    for cell in sweep.cells:
        if cell.same_as is None:
            times = sweep.times(cell)
            spent = _total(
                json.loads((table.schema.metadata or {}).get(_SECONDS, b"{}")) for table in parts[cell.name]
            )
            rows += [
                {
                    "cell": cell.name, "part": name, "simulations": times, "seconds": seconds,
                    "seconds_per_simulation": seconds / times,
                }
                for name, seconds in spent.items()
            ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=_TIMED)


def _table(
    simulations: Sequence[int | None],
    figures: Sequence[Figure],
    resampled: Mapping[tuple[str, str], Floats] | None = None,
) -> pa.Table:
    """What is undefined is null; what is infinite stays so."""
    left = dict(resampled or {})  # each is taken by the first figure of its name
    numbers = {
        name: [None if math.isnan(x := getattr(figure, name)) else x for figure in figures]
        for name in ("value", "low", "high", "anyway")
    }
    words = {name: [getattr(figure, name) for figure in figures] for name in ("metric", "setting")}
    sums = {RESAMPLED: [left.pop((figure.metric, figure.setting), None) for figure in figures]}
    return pa.table({"simulation": list(simulations)} | words | numbers | sums, schema=_SIMULATED)


# What simulations say together: means and intervals, and for attacks the worst over settings of the means.
#
# Aggregation is the paper's: first the mean of each setting (a net size; a column and h) over simulations,
# then the worst of them. Intervals of attacks are Student's, for the mean over simulations; an attack on a
# cell with a single simulation keeps its own, which is about other people like these. Intervals of the
# program's figures know noise and sampling (`_intervals.py`).

_DOUBT = (1 - CONFIDENCE) / 2
"""On each side of an interval."""

WORST = "worst"
"""The setting of an attack's figure over all its settings: the paper's protection score."""


_Score = tuple[float | None, float | None, float | None]
Scores = dict[str, dict[str, list[_Score]]]
"""By metric and setting: value and interval of each simulation."""


def summary(sweep: Sweep, figures: dict[str, pa.Table]) -> pa.Table:
    """One row for each cell, metric and setting, in the order of the grid."""
    sampling = Sampling.of(sweep, figures[STATUS_QUO])
    lines = {
        name: list(summarize(table, sampling.reaches(table, is_today=name == STATUS_QUO)))
        for name, table in figures.items()
    }
    for own in lines.values():
        own.extend(sampling.worst_groups(own))
    today = {(line.metric, line.setting): line.mean for line in lines[STATUS_QUO] if _is_program(line.metric)}
    tables = {}
    for name, own in lines.items():
        changes = [_less(line.mean, today.get((line.metric, line.setting))) for line in own]
        rows = [asdict(line) | {"change": change} for line, change in zip(own, changes, strict=True)]
        tables[name] = pa.Table.from_pylist(rows, schema=_SUMMARIZED)
    return _tidy(sweep, tables)


def summarize(figures: pa.Table, reaches: Reaches | None = None) -> Iterator[Line]:
    """The lines of one cell; ``reaches`` are half-widths of intervals that know sampling, where there are."""
    guesses = _guesses(figures)
    for line in _lines(_gathered(figures), reaches or {}):
        attack, _, setting = (line.strongest or "").partition(": ") if line.metric == INFERENCE else (
            line.metric, "", line.strongest or line.setting
        )  # fmt: skip
        anyway, right = guesses.get((attack, setting), (None, None))
        yield replace(line, anyway=anyway, right=right)
    if guesses:
        most = max(right for _, right in guesses.values())
        yield Line(MOST_GUESSED, EVERYBODY, len(set(figures["simulation"].to_pylist())), most)


def _lines(gathered: Scores, reaches: Reaches) -> Iterator[Line]:
    for metric, settings in gathered.items():
        if metric in DERIVED:
            for setting, ((value, _, _),) in settings.items():
                yield Line(metric, setting, 0, value, value, value)
        elif metric in ATTACKS:
            yield from _attack_lines(metric, settings)
        else:
            for setting, scores in settings.items():
                values = np.array([math.nan if x is None else x for x, _, _ in scores])
                reach = reaches.get((metric, setting))
                noise = _noise(values)
                ends = _mean(values, noise if reach is None else reach, metric_of(metric).between)
                yield Line(metric, setting, len(values), *ends, noise=noise)
    if any(attack in gathered for attack in GUESSING):
        yield _worst_guess({attack: gathered[attack] for attack in GUESSING if attack in gathered})


def _worst_guess(attacks: Mapping[str, Mapping[str, Any]]) -> Line:
    """The worst of all attacks that guess hidden values, over all their settings at once.

    Each attack shared the doubt among its own settings only: intervals are widened to what all share.
    """
    number = sum(map(len, attacks.values()))
    settings = {
        f"{attack}: {name}": [_widened(score, ndtri(1 - _DOUBT / number) / ndtri(1 - _DOUBT / len(own)))
                              for score in scores]
        for attack, own in attacks.items() for name, scores in own.items()
    }  # fmt: skip
    (line,) = (one for one in _attack_lines(INFERENCE, settings) if one.setting == WORST)
    return line


def _widened(score: _Score, factor: float) -> _Score:
    value, low, high = score
    if value is None or low is None or high is None or not math.isfinite(value):
        return score
    return value, value - (value - low) * factor, value + (high - value) * factor


def _attack_lines(metric: str, settings: dict[str, Any]) -> Iterator[Line]:
    protections = _protections(settings)
    together = worst_of_means(protections)
    for name, setting in together.settings.items():
        yield Line(metric, name, len(protections), setting.score, *setting.interval)
    yield Line(
        metric, WORST, len(protections), together.score, *together.interval, strongest=together.strongest
    )


def _protections(settings: dict[str, Any]) -> list[Protection]:
    """What the attack handed back in each simulation."""
    simulations = zip(*settings.values(), strict=True)
    return [
        worst({name: Setting(score, tuple(interval)) for name, (score, *interval) in scores}, "upper")
        for scores in (zip(settings, each, strict=True) for each in simulations)
    ]


def _mean(
    values: Floats, reach: float | None, between: tuple[float, float] | None
) -> tuple[float | None, float | None, float | None]:
    """Mean and interval; None where undefined: a metric that has no value in some simulation has no mean.

    A share stays between 0 and 1; where too little is known of it (an infinite reach), that is its interval.
    Of other figures there is none then.
    """
    mean = float(values.mean())
    if not math.isfinite(mean):
        return (None if math.isnan(mean) else mean), None, None
    if reach is None or (between is None and not math.isfinite(reach)):
        return mean, None, None
    low, high = between or (-math.inf, math.inf)
    return mean, max(low, mean - reach), min(high, mean + reach)


def _noise(values: Floats) -> float | None:
    """Half of Student's interval for the mean over simulations; a single one knows none."""
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    return float(stdtrit(len(values) - 1, 1 - _DOUBT) * values.std(ddof=1) / math.sqrt(len(values)))


def _gathered(figures: pa.Table) -> Scores:
    scores: Scores = {}
    columns = (figures.column(name).to_pylist() for name in ("metric", "setting", "value", "low", "high"))
    for metric, setting, value, low, high in zip(*columns, strict=True):
        scores.setdefault(metric, {}).setdefault(setting, []).append((value, low, high))
    return scores


def _guesses(figures: pa.Table) -> dict[tuple[str, str], tuple[float, float]]:
    """How often guesses at hidden values are right without the release, and with it: means over simulations.

    A score is how often guesses fail, relative to guesses without; capped at 1 it errs to more right ones.
    """
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    columns = (figures.column(name).to_pylist() for name in ("metric", "setting", "value", "anyway"))
    for metric, setting, value, anyway in zip(*columns, strict=True):
        if anyway is not None and value is not None:
            found.setdefault((metric, setting), []).append((anyway, 1 - value * (1 - anyway)))
    return {
        place: (float(np.mean([a for a, _ in each])), float(np.mean([right for _, right in each])))
        for place, each in found.items()
    }


def _is_program(metric: str) -> bool:
    return metric not in {*ATTACKED, *DERIVED}


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before

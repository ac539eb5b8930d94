"""Intervals of a program's figures: how they would vary with other noise and with another sample of people.

Every simulation hands back its sums over people in each resample of them (`targetdp.programs.Resamples`),
and a sweep keeps their means over simulations: enough to compute every count, sum of money and rate again in
each resample, for a release and for the status quo, and nothing about any one person.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from targetdp._core import Floats
from targetdp.attacks import CONFIDENCE
from targetdp.programs import Result, half_widths, one_person
from targetdp.tradeoff._metrics import FEW_WANTED
from targetdp.tradeoff._study import EVERYBODY, Study
from targetdp.tradeoff._sweep import Sweep, generator

RESAMPLED = "resampled"
"""The column of sums in each resample."""

WORST_GROUP_RATE, WORST_GROUP_RISE = "worst_group_rate", "worst_group_rise"
"""Of the people whom the program is for, the share that is missed in the group where it is largest; and the
largest rise of that share against the status quo in any group."""

FEWEST_WANTED = 30
"""A group with fewer people whom the program is for says too little to be called the worst."""

Reaches = Mapping[tuple[str, str], float]
"""Half of an interval's width, by metric and setting."""


@dataclass(frozen=True)
class Line:
    """One line of the summary. ``change`` is against the status quo, for figures of the program only.

    ``low`` and ``high`` are None where one simulation says nothing of how others would be; ``simulations``
    is 0 for what is derived. ``strongest`` names the setting that an attack's worst figure comes from.
    ``noise`` is how far the mean over simulations may be off by chance: half of an interval of noise alone,
    by which settings are compared that meet the same people. ``anyway`` is how often the guesses of an attack
    on hidden values are right without the release, ``right`` how often with it.
    """

    metric: str
    setting: str
    simulations: int
    mean: float | None
    low: float | None = None
    high: float | None = None
    change: float | None = None
    strongest: str | None = None
    noise: float | None = None
    anyway: float | None = None
    right: float | None = None


@dataclass(frozen=True, eq=False)
class Sampling:
    """The status quo of a sweep in each resample: what all cells are compared with."""

    study: Study
    status_quo: Result = field(repr=False)
    wanted: Floats = field(repr=False)
    population: Floats = field(repr=False)
    today: Mapping[str, Floats] = field(repr=False)

    @classmethod
    def of(cls, sweep: Sweep, figures: pa.Table) -> "Sampling":
        """Of a sweep, and the figures of its status quo."""
        study = sweep.study
        result = study.run(study.X, generator(sweep.seed, sweep.cells[0], 0, "program"))
        resamples = study.resamples
        alone = cls(study, result, resamples.wanted(result), resamples.population(), {})
        return cls(study, result, alone.wanted, alone.population, alone._figures(figures))

    def _figures(self, figures: pa.Table) -> dict[str, Floats]:
        """Every figure that follows from sums over people, in each resample (rows), by group (columns)."""
        known = figures.filter(figures[RESAMPLED].is_valid())
        rows = zip(*(known[name].to_pylist() for name in ("metric", "setting")), strict=True)
        places = {setting: place for place, setting in enumerate(self.study.settings)}
        simulations = max(1, len(set(figures["simulation"].drop_null().to_pylist())))
        sums: dict[str, Floats] = {}
        for (metric, setting), values in zip(rows, known[RESAMPLED], strict=True):
            total = sums.setdefault(metric, np.zeros_like(self.population))
            total[:, places[setting]] += values.values.to_numpy() / simulations
        return sums | self.status_quo.rates(sums, self.wanted, self.population) if sums else {}

    def reaches(self, figures: pa.Table, *, is_today: bool = False) -> Reaches:
        """Half-widths of a cell's intervals, of noise and sampling together; infinite where little is known.

        The status quo does not differ from itself: of that there is no interval.
        """
        resampled = self._figures(figures)
        if resampled and not is_today:
            resampled |= self.status_quo.compare(self.today, resampled)
        values = self._simulated(figures, resampled)
        widths = self._one_person()
        reaches: dict[tuple[str, str], float] = {}
        for metric, figure in resampled.items():
            widened = widths.get(metric.removeprefix("extra_"), 0.0)
            half = half_widths(
                self.study.resamples, figure, 1 - CONFIDENCE, noise=values[metric], one_person=widened
            )
            reaches |= {(metric, at): float(r) for at, r in zip(self.study.settings, half, strict=True)}
        return reaches

    def _simulated(self, figures: pa.Table, metrics: Iterable[str]) -> dict[str, Floats]:
        """For each of these metrics its value in each simulation (rows), by group (columns)."""
        values: dict[str, list[float]] = {metric: [] for metric in metrics}
        columns = (figures[name].to_pylist() for name in ("metric", "value"))
        for metric, value in zip(*columns, strict=True):
            if metric in values:
                values[metric].append(np.nan if value is None else value)
        return {name: np.reshape(each, (-1, len(self.study.settings))) for name, each in values.items()}

    def _one_person(self) -> dict[str, Floats]:
        """By what squares intervals are widened: one person who is decided about otherwise."""
        rate = self.study.program.objective.rate
        squares = one_person(self.status_quo, [self.status_quo])
        if rate is not None:
            wanted = np.maximum(self.wanted.mean(axis=0), 1e-9)
            squares[rate.metric] = squares[rate.part] / np.square(wanted)
        return squares

    def worst_groups(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The rate of the group that is hit the hardest, and the largest rise, for a cell with these lines.

        The ends of the interval are the largest over all groups: groups of a column share the error rate, so
        that the worst of them is covered, too.
        """
        rate, result = self.study.program.objective.rate, self.status_quo
        if rate is None or result.wanted is None:
            return
        many = result.people.groups.sums(result.wanted.astype(np.float64))
        groups = {
            name for name, wanted in zip(self.study.settings, many, strict=True) if wanted >= FEWEST_WANTED
        }
        for name, wanted in zip(self.study.settings, many, strict=True):
            if name not in groups | {EVERYBODY}:
                yield Line(FEW_WANTED, name, 0, float(wanted))
        lines = [one for one in lines if one.setting in groups - {EVERYBODY} and one.mean is not None]
        for metric, figure in ((WORST_GROUP_RATE, rate.metric), (WORST_GROUP_RISE, f"extra_{rate.metric}")):
            own = [one for one in lines if one.metric == figure]
            if own:
                worst = max(own, key=lambda one: one.mean or 0.0)
                low, high = (
                    max(1.0 if (end := getattr(one, name)) is None else end for one in own)
                    for name in ("low", "high")
                )
                yield Line(metric, EVERYBODY, worst.simulations, worst.mean, low, high, None, worst.setting)

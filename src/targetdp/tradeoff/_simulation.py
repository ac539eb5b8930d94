"""What a simulation of a cell is given, and what it hands back: numbers with names, and how long it took."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from targetdp.attacks import Protection
from targetdp.mechanisms import Mechanism
from targetdp.programs import Result
from targetdp.tradeoff._study import Study

if TYPE_CHECKING:
    from targetdp.tradeoff._technology import Cell

Use = Literal["release", "program", "holdout", "working set", "attack", "scores", "informed"]
"""What randomness is for: each use has a generator of its own, so that none can shift another's draws."""

ATTACKS = ("singling_out", "attribute_inference", "informed_inference")
"""Run in every simulation: a score for each of their settings. The last one needs noise of a known law."""

DERIVED = ("distinguishing", "exact_epsilon", "crowd")
"""Known without a simulation, once for each cell: from the noise, or (the crowd within B) from the rows."""

EVERYBODY = ""
"""The setting of a program's figure about everybody; a group is ``column=group``."""


@dataclass(frozen=True)
class Figure:
    """One number of one simulation. An attack's has an interval, about other people like these."""

    metric: str
    setting: str
    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Simulated:
    """All figures of one simulation, and how many seconds each part of it took."""

    figures: tuple[Figure, ...]
    seconds: dict[str, float] = field(compare=False)


@dataclass(frozen=True, eq=False)
class Trial:
    """What one simulation of a cell is given.

    ``mechanism`` is the cell's own, built for the study's columns; ``status_quo`` what the program achieves
    without privacy; ``draws`` how often known columns are drawn; ``rng`` gives the generator for each use.
    """

    study: Study
    cell: "Cell"
    mechanism: Mechanism | None
    status_quo: Result
    draws: int
    rng: Callable[[Use], np.random.Generator] = field(repr=False)


def program_figures(result: Result, status_quo: Result) -> Iterator[Figure]:
    """Every figure of a program's result, about everybody and each group."""
    groups = result.people.groups
    settings = [EVERYBODY] + [
        f"{column}={label}"
        for column, labels in zip(groups.columns, groups.labels, strict=True) for label in labels
    ]  # fmt: skip
    yield Figure("ties", EVERYBODY, float(result.ties))
    for metric, values in (dict(result.figures) | result.against(status_quo)).items():
        for setting, value in zip(settings, values.tolist(), strict=True):
            yield Figure(metric, setting, value)


def attack_figures(attack: str, protection: Protection) -> Iterator[Figure]:
    """The score of each of an attack's settings."""
    for name, setting in protection.settings.items():
        yield Figure(attack, name, setting.score, *setting.interval)


@contextmanager
def timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Add what this takes to a part's seconds."""
    begin = time.perf_counter()
    yield
    seconds[part] = seconds.get(part, 0.0) + time.perf_counter() - begin

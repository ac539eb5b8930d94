"""Technologies: the ways to release something about people that a sweep compares. Each declares itself.

A technology is a class in one file. It says which cells a grid has of it, what they promise, how one
simulation of a cell is run and attacked, what it is called, and what a request for it says. Rows, with noise
or without any, are in `_rows.py`, a score in `_score.py`. There is no list to keep in step: `technologies`
finds them all.
"""

import hashlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import isabstract
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from targetdp._core import Floats, check, import_all
from targetdp.attacks import Protection, distinguishing
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import Decision, Mechanism, NoiseMechanism
from targetdp.normalization import RowRule
from targetdp.programs import Program, Result
from targetdp.tradeoff._metrics import GUESSING
from targetdp.tradeoff._study import EVERYBODY, Study

if TYPE_CHECKING:
    from targetdp.tradeoff._sweep import Grid

Use = Literal["release", "program", "holdout", "working set", "attack", "scores", "insider"]
"""What randomness is for: each use has a generator of its own, so that none can shift another's draws. Their
order must stay: seeds hang on it."""

_FARTHEST = 2.0
"""No two rows of the unit ball are farther apart."""


Randomness: TypeAlias = NoiseMechanism | Decision
"""What stands between somebody's row and what is released of it: noise, or the draw of an answer."""


@dataclass(frozen=True)
class Figure:
    """One number of one simulation.

    An attack's has an interval, about other people like these; where hidden values are guessed, ``anyway``
    is how often they are right without the release (an insider's), or outside it (a stranger's). A sum over
    people has its value in every resample of them (`targetdp.programs.Resamples`).
    """

    metric: str
    setting: str
    value: float
    low: float = math.nan
    high: float = math.nan
    anyway: float = math.nan
    resampled: Floats | None = field(default=None, compare=False, repr=False)


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


def program_figures(result: Result, trial: Trial) -> Iterator[Figure]:
    """Every figure of a program's result, about everybody and each group."""
    resampled = trial.study.resamples.sums(result)
    yield Figure("ties", EVERYBODY, float(result.ties))
    for metric, values in (dict(result.figures) | result.against(trial.status_quo)).items():
        for place, setting in enumerate(trial.study.settings):
            sums = resampled[metric][:, place] if metric in resampled else None
            yield Figure(metric, setting, float(values[place]), resampled=sums)


def attack_figures(attack: str, protection: Protection, who: str = "") -> Iterator[Figure]:
    """The score of each of an attack's settings; ``who`` says whom they are about, if not everybody."""
    failed = protection.detail.get("p_control") or protection.detail.get("p_holdout") or {}
    failed = failed if attack in GUESSING else {}
    for name, setting in protection.settings.items():
        anyway = 1 - failed[name] if name in failed else math.nan
        yield Figure(attack, f"{who}: {name}" if who else name, setting.score, *setting.interval, anyway)


@contextmanager
def timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Add what this takes to a part's seconds."""
    begin = time.perf_counter()
    yield
    seconds[part] = seconds.get(part, 0.0) + time.perf_counter() - begin


NO_REQUEST = "no request can ask for it"
NOT_CLIPPED = "its rows are not clipped, as those of a release are"
"""Why nothing can be released like a cell; of the second kind nothing is promised, either."""

STATUS_QUO = "status quo"
"""The technology that all others are compared with."""

_FEW_DRAWS = 5


@dataclass(frozen=True)
class Cell:
    """One release of the grid; what does not apply to its technology is None.

    Args:
        name: What results and pages call it; no two cells of a grid share one.
        mechanism: The name of its technology.
        B: The distance within which people are hidden from each other.
        epsilon1: ε₁ of the projection.
        epsilon2: ε₂ of the projection.
        epsilon: The total ε.
        delta: The total δ.
        k: Dimensions of the projection.
        parts: How many random parts the projection is made in.
        group_size: Of k-anonymity.
        rows: How its rows came into the unit ball; nothing can be promised where they are not clipped.
        same_as: An earlier cell that is equal in distribution: its simulations are this one's too.

    Example:
        >>> cell = Cell("mine", "gaussian", B=0.25, epsilon=4.0, delta=1e-5)
        >>> cell.guarantee
        Guarantee(B=0.25, epsilon=4.0, delta=1e-05)
    """

    name: str
    mechanism: str
    B: float | None = None
    epsilon1: float | None = None
    epsilon2: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    k: int | None = None
    parts: int | None = None
    group_size: int | None = None
    rows: RowRule = "clip"
    same_as: str | None = None

    @property
    def technology(self) -> "Technology":
        """What it is a cell of."""
        return technology_named(self.mechanism)

    @property
    def is_random(self) -> bool:
        """Whether another simulation would give another table."""
        return self.technology.is_random

    @property
    def guarantee(self) -> Guarantee | None:
        """What a release of this cell promises; None for the status quo, k-anonymity and unclipped rows."""
        return None if self.epsilon is None or self.rows != "clip" else self.calibrated_to

    @property
    def calibrated_to(self) -> Guarantee:
        """What its noise is for: a promise, if the rows are clipped."""
        return Guarantee(given(self.B), given(self.epsilon), given(self.delta))

    @property
    def promise(self) -> Guarantee | None:
        """What a release by the cell's own request promises; None without a guarantee."""
        return self.technology.promise(self)

    @property
    def why_not(self) -> str | None:
        """Why no request can ask for a release like this cell, if none can."""
        return self.technology.why_not(self) if self.rows == "clip" else NOT_CLIPPED

    @property
    def experiment(self) -> str:
        """What decides the distribution of its tables: cells that share this are equal in distribution."""
        return self.technology.experiment(self)

    @property
    def key(self) -> int:
        """A number for its seeds: it depends on the experiment only, not on the rest of the grid."""
        return int.from_bytes(hashlib.sha256(self.experiment.encode()).digest()[:8], "big")

    def build(self, dimensions: int) -> Mechanism | None:
        """The mechanism that privatizes so many columns; None where rows are released as they are."""
        return self.technology.build(self, dimensions)

    def noises(self, dimensions: int) -> tuple[Randomness, ...]:
        """Every noise that somebody's row may get in a release of this cell; none without a guarantee."""
        return self.technology.noises(self, dimensions)


def given(value: Any) -> Any:
    """A parameter that a cell must have."""
    if value is None:
        raise ValueError("this cell lacks a parameter of its mechanism: take cells from Grid.cells")
    return value


class Technology(ABC):
    """One way to release something about people, as a sweep tries it.

    A subclass is known by its ``name`` as soon as its file is imported. It must say which `cells` a grid has
    of it, what they `build`, and how to `simulate` one; the rest has defaults, which promise nothing.

    Attributes:
        name: What grids, program files and cells call it.
        label: What people call it on a page and in a figure.
        form: The kind of release, in a word or two: technologies that share it share a line in a chart.
        goes_out: What goes out about each person, in words.
        told_apart: Which two people the best guess is about, if not any two that are so far apart.
        explanation: A sentence or two for the page's glossary; none if empty.
        is_random: Whether another simulation would give another table.
        is_release: Whether anything is released; the status quo is none.
        in_every_grid: Whether it is compared in every sweep; others are, if `Grid.mechanisms` names them.
        in_quick_looks: Whether a quick look has it where nobody names what is compared; others take too long.
        about_attacks: Whom attacks on it were on, if not on everybody; ``about_figure`` the same in short.
        sample_first: Whether a request for it is about a labelled sample only, and another one follows.
        request_mechanism: The mechanism that a request for it names; empty if none can ask for it.
        remedy: What to do about a cell that no request can ask for.
        condition: What must be true before anybody could ask for it, where a program cannot know that.

    Example:
        >>> from targetdp.tradeoff import technologies
        >>> technologies()["score"].label
        'score'
    """

    name: str
    label: str
    form: str = "rows"
    goes_out: str = "all columns, with noise"
    told_apart: str = ""
    explanation: str = ""
    is_random: bool = True
    is_release: bool = True
    in_every_grid: bool = False
    in_quick_looks: bool = True
    about_attacks: str = ""
    about_figure: str = ""
    sample_first: bool = False
    request_mechanism: str = ""
    remedy: str = "choose another cell"
    condition: str = ""

    kinds: ClassVar[dict[str, "type[Technology]"]] = {}
    """Every technology that was declared, by the name of its class."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Technology.kinds[cls.__name__] = cls

    @classmethod
    def each(cls) -> Iterable["Technology"]:
        """The technologies of this class: one, unless it stands for several names."""
        return (cls(),)

    # What is compared

    @abstractmethod
    def cells(self, grid: "Grid", people: int) -> list[Cell]:
        """Its cells in a grid, for a table of so many people, in an order that stays."""

    def experiment(self, cell: Cell) -> str:
        """What decides the distribution of a cell's tables. Seeds hang on it: it must stay as it is."""
        return (
            f"{self.name} B={cell.B!r} epsilon={cell.epsilon!r} delta={cell.delta!r} "
            f"group_size={cell.group_size}"
        )

    def check_program(self, program: Program) -> None:  # noqa: B027 (most are made for any program)
        """Raise a TypeError if it is not made for such a program."""

    # What is promised

    @abstractmethod
    def build(self, cell: Cell, dimensions: int) -> Mechanism | None:
        """The mechanism that privatizes so many columns; None where rows are released as they are."""

    def noises(self, cell: Cell, dimensions: int) -> tuple[Randomness, ...]:
        """Every noise that somebody's row may get; none where nothing is promised."""
        return ()

    def promise(self, cell: Cell) -> Guarantee | None:
        """What a release by the cell's own request promises."""
        return cell.guarantee

    def fewest_numbers(self, dimensions: int) -> int:
        """How many numbers are released of a person, at the fewest."""
        return dimensions

    # How it is tried

    @abstractmethod
    def simulate(self, trial: Trial) -> Simulated:
        """One simulation of a cell: what the program makes of the release, and what attackers do."""

    def draws(self, simulations: int) -> int:
        """How often attribute inference draws its known columns in a simulation, if others have so many.

        Once, as the paper does; where there is one simulation only, a few times.
        """
        return 1 if self.is_random else min(_FEW_DRAWS, simulations)

    def distinguishing(self, cell: Cell, dimensions: int) -> dict[str, float]:
        """Distinguishing protection from the noise alone, by formula or by whom it is about."""
        return {"exact": distinguishing(self.build(cell, dimensions), dimensions).score}

    def derive(self, cell: Cell, dimensions: int) -> tuple[Figure, ...]:
        """What the noise alone tells of a cell.

        Distinguishing protection, the true ε at its B and δ, and how often the best guess of any attacker is
        right, at distance B and at distance 2: the worst over the noises that people get. Without a guarantee
        (the status quo, k-anonymity, rows that are not clipped) protection is 0 by every formula, ε infinite,
        and the best guess always right.
        """
        scores = self.distinguishing(cell, dimensions)
        promise, noises = cell.guarantee, self.noises(cell, dimensions)
        epsilon, guess, guess_at_2 = math.inf, 1.0, 1.0
        if promise is None:
            scores = dict.fromkeys(scores, 0.0)
        elif noises:
            near = [noise.loss_between(promise.B, dimensions) for noise in noises]
            far = [noise.loss_between(_FARTHEST, dimensions) for noise in noises]
            epsilon = max(loss.epsilon(promise.delta) for loss in near)
            guess, guess_at_2 = (max(loss.best_guess() for loss in losses) for losses in (near, far))
        return (
            *(Figure("distinguishing", setting, score) for setting, score in scores.items()),
            Figure("exact_epsilon", "", epsilon),
            Figure("best_guess", "", guess),
            Figure("best_guess_at_2", "", guess_at_2),
        )

    # How it is released

    def why_not(self, cell: Cell) -> str | None:
        """Why no request can ask for a release like this cell, if none can."""
        return NO_REQUEST

    def request_comments(self, cell: Cell) -> tuple[str, ...]:
        """What a request for a cell says beside what it asks for, a line each."""
        return ()

    def steps(self, cell: Cell) -> tuple[str, ...]:
        """Who does what once a request for a cell is written: its numbered comments, or the first."""
        comments = self.request_comments(cell)
        return tuple(line.partition(". ")[2] for line in comments if line[:1].isdigit()) or comments[:1]


def technologies() -> dict[str, Technology]:
    """Every technology that a sweep can compare, by its name.

    Returns:
        Those of this package, one for each noise mechanism that is known, and whatever was declared since.

    Example:
        >>> print(*(name for name, one in technologies().items() if one.in_every_grid), sep=", ")
        status quo, mondrian
    """
    import_all("targetdp.tradeoff")
    # In the order of their definition: a class for one mechanism comes behind the one for any of them.
    kinds = (kind for kind in Technology.kinds.values() if not isabstract(kind))
    return {one.name: one for kind in kinds for one in kind.each()}


def technology_named(name: str) -> Technology:
    """The technology of a name.

    Args:
        name: As grids, program files and cells have it.

    Returns:
        The technology.

    Raises:
        ValueError: No technology has that name; the message lists all.

    Example:
        >>> technology_named("mondrian").label
        'k-anonymity'
    """
    known = technologies()
    return known[check.choice("mechanism", name, known)]

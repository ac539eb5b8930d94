"""What every program is: from features to a finished result in people and money.

A kind of program is one file that declares itself with `named`. What other rooms need to know of it, it says
itself: what it is for (`Objective`) and, if it can decide by released scores (`ScoredProgram`), how.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from targetdp._core import Floats, Integers, check, import_all
from targetdp.programs._measures import Truths
from targetdp.programs._people import Folds, People
from targetdp.programs._result import Result

Task: TypeAlias = Literal["regression", "classification"]
"""Whether outcomes are numbers, or 1 and 0."""

ExpectedShares: TypeAlias = Callable[[], tuple[Floats, Floats]]
"""Computes shares of low and of high people at each step of scores."""


class Model(Protocol):
    """A way to predict an outcome from features.

    Example:
        >>> from targetdp.programs import Ridge
        >>> model: Model = Ridge(alpha=2.0)
        >>> model.record()
        {'estimator': 'ridge', 'alpha': 2.0}
    """

    def predict(self, X: Floats, y: Floats, folds: Folds, weights: Floats | None = None) -> Floats:
        """Each person's score by a model that was fitted without her part."""

    def record(self) -> dict[str, object]:
        """Plain data: what it is and its settings."""


@dataclass(frozen=True)
class Objective:
    """The figure that a kind of program is for, and how people speak of it.

    Args:
        metric: A metric of its results.
        best: Which of its values is best.
        drawn: The figure of `Result.against` that pages draw and limit in its place, if any.
        axis: What stands beside the axis of a chart; by default the metric's name.
        limit: What stands beside a limit that somebody sets; by default the metric's name.
        subject: How a sentence about it begins; by default with the metric's name.
        noun: What a figure counts, in the caption of a chart: ``"poor people left out"``.
        people: Whom it counts and what happens to them, such as ``("poor people", "missed")``; None if it
            does not count people.
        money: Figures that are sums of money; the first stands beside the metric in tables.
        by_group: Figures that say who bears the cost, each with its heading; the first is drawn.
        rate: Of the people whom the program is for, the share that it misses; None if it is for nobody.
        payer: Who pays for what privacy costs: ``"the program"``.
        today: A sentence on the program as it is, with figures of the status quo in braces.

    Example:
        >>> Objective("accuracy", "largest").drawn is None
        True
    """

    metric: str
    best: Literal["smallest", "largest"]
    drawn: str | None = None
    axis: str | None = None
    limit: str | None = None
    subject: str | None = None
    noun: str | None = None
    people: tuple[str, str] | None = None
    money: tuple[str, ...] = ()
    by_group: tuple[tuple[str, str], ...] = ()
    rate: "MissedRate | None" = None
    payer: str = "the program"
    today: str = "The program decides about {population} people."

    @property
    def is_money(self) -> bool:
        """Whether its metric is a sum of money."""
        return self.metric in self.money

    def value_of(self, figures: Mapping[str, float]) -> float:
        """How good figures are by what the program is for: the higher the better.

        Args:
            figures: Metrics by name; where the program's own is not among them, its accuracy counts.

        Returns:
            A number to compare with that of other figures of the same program.

        Example:
            >>> Objective("missed", "smallest").value_of({"missed": 3.0, "accuracy": 0.9})
            -3.0
        """
        if self.metric not in figures:
            return figures["accuracy"]
        return figures[self.metric] if self.best == "largest" else -figures[self.metric]


@dataclass(frozen=True)
class MissedRate:
    """Of the people whom a program is for, the share that it misses.

    Args:
        metric: The figure.
        part: The count of people who are missed, one of the result's ``parts``.
        words: What happens to them: ``"of the poor are missed"``.

    Example:
        >>> program_kinds()["aid"].objective.rate.words
        'of the poor are missed'
    """

    metric: str
    part: str
    words: str


class Program(ABC):
    """A way to decide about people from their features, and what came of it.

    A program holds the outcomes of its people. Features come in the same order of people, original or
    private, and are treated in exactly the same way. ``chance`` is the accuracy of deciding without
    looking at anyone's features. ``objective`` is what the program is for.

    Example:
        >>> from targetdp.programs import Aid
        >>> program: Program = Aid([1.0, 2.0, 3.0, 4.0], quota=0.25)
        >>> program.evaluate([[1.0], [2.0], [3.0], [4.0]], Folds(4, k=2))["eligible"]
        1.0
    """

    kind: ClassVar[str]
    objective: ClassVar[Objective] = Objective("accuracy", "largest")
    people: People
    model: Model
    chance: float

    @property
    def comparison_only(self) -> str | None:
        """Why no real program could decide like this, if none could."""
        return None

    @property
    @abstractmethod
    def outcomes(self) -> Floats:
        """What is predicted."""

    @abstractmethod
    def judge(
        self, scores: Any, rng: np.random.Generator | None = None, folds: Folds | None = None
    ) -> Result:
        """The result of deciding by given scores; ``rng`` draws among people who are tied.

        ``folds`` says who was predicted together, for programs that decide fold by fold.
        """

    def evaluate(self, X: Any, folds: Folds, rng: np.random.Generator | None = None) -> Result:
        """Predict everyone's outcome from X by cross-validation, decide, and count what came of it."""
        rows = check.table(X)
        check.instance("folds", folds, Folds)
        check.generator(rng)
        for name, count in (("X", len(rows)), ("folds", folds.people)):
            if count != self.people.count:
                raise ValueError(
                    f"{name} has {count:,} people: the program's outcomes are of {self.people.count:,}, in "
                    "the same order"
                )
        scores = self.model.predict(rows, self.outcomes, folds, self.people.fit_weights)
        return self.judge(scores, rng, folds)


@dataclass(frozen=True)
class DecisionWords:
    """What people read about decisions by released scores.

    Args:
        given: What the chosen get, in one word: ``"loan"``.
        article: The same in a sentence: ``"a loan"``.
        outcome: A sentence with ``{right}`` and ``{missed}``, numbers of people.
        counts: What figures of a population are: ``"Counts"``, or ``"Counts and money"``.
        blind: What decides without looking at anyone: ``"A lottery"``.
    """

    given: str
    article: str
    outcome: str
    counts: str
    blind: str


class ScoredProgram(Program):
    """A program that can also decide by released scores: what `targetdp.targeting` asks it.

    People are *low* (poor, or not repaying) or *high*, and a released score says how likely they are either.
    ``task`` says how weights for a score are learned.

    Example:
        >>> from targetdp.programs import Aid
        >>> program: ScoredProgram = Aid([1.0, 2.0, 3.0, 4.0], quota=0.25)
        >>> program.choose(np.array([0.2, 0.9, 0.1, 0.3]), np.random.default_rng(0)).tolist()
        [False, True, False, False]
    """

    task: ClassVar[Task]
    words: ClassVar[DecisionWords]
    chosen_are: ClassVar[Literal["below", "above"]]
    """On which side of a cut through predicted outcomes those are who are chosen."""

    @property
    @abstractmethod
    def share_chosen(self) -> float | None:
        """The share of people who are chosen; None where all are who are likely enough to be high."""

    @property
    @abstractmethod
    def lowest_odds(self) -> float | None:
        """The log-odds to be high from which on people are chosen; None where there are so many places."""

    @abstractmethod
    def figures_by_chance(self, chosen: Floats, weights: Floats) -> dict[str, float]:
        """The metrics of `expected_figures`, where each of its people is chosen with this chance.

        ``weights`` say what share of all each of them is.
        """

    @abstractmethod
    def part(self, places: Integers, population: float) -> "ScoredProgram":
        """The same program for some of its people, who stand for a population of this size.

        A quota holds once among them, whatever the program's rule: they are decided about together.
        """

    @abstractmethod
    def line(self) -> float | None:
        """The outcome at or below which people are low; None where outcomes are 1 and 0."""

    @abstractmethod
    def as_scores(self, chances: Floats) -> Floats:
        """Chances (to be poor, to repay) as `judge` takes scores."""

    @abstractmethod
    def choose(self, chances: Floats, rng: np.random.Generator) -> Truths:
        """Who of any number of people is chosen by these chances; ``rng`` draws among people who are tied."""

    @abstractmethod
    def high(self, weights: Floats | None = None) -> Truths:
        """Who of its people is high, also where each counts ``weights``, which add up to 1."""

    @abstractmethod
    def errors(self, low: Floats, high: Floats, expected: ExpectedShares) -> tuple[float, float]:
        """Shares of people who are decided about wrongly: low ones taken for high ones, then the opposite.

        ``low`` and ``high`` are shares of people at each step of released scores, and ``expected`` computes
        what whoever decides takes these to be.
        """

    @abstractmethod
    def expected_figures(
        self, high: Truths, weights: Floats, let_in: float, left_out: float
    ) -> dict[str, float]:
        """Metrics of the population where `errors` has found these shares.

        ``high`` says who of its people is high, ``weights`` what share of all each of them is.
        """


_PROGRAMS: dict[str, type[Program]] = {}

DECLARING = r"^@(?:named|settings_of)\("
"""How a file of this room declares a kind of program, or its program file."""

_Kind = TypeVar("_Kind", bound=type[Program])


def named(kind: str) -> Callable[[_Kind], _Kind]:
    """Declare a kind of program: from then on pages and commands find it by this name.

    Args:
        kind: What files and commands call it.

    Returns:
        A decorator for a subclass of `Program`; it sets ``kind``.

    Example:
        >>> program_kinds()["lending"].objective.metric
        'profit'
    """

    def declare(program: _Kind) -> _Kind:
        program.kind = kind
        _PROGRAMS[kind] = program
        return program

    return declare


def program_kinds() -> Mapping[str, type[Program]]:
    """Every kind of program by its name.

    Example:
        >>> list(program_kinds())
        ['aid', 'lending']
    """
    import_all("targetdp.programs", DECLARING)
    return dict(sorted(_PROGRAMS.items()))


def objective_of(run: Mapping[str, Any]) -> Objective:
    """What the program of a finished sweep is for; kinds that are not known here have no words of their own.

    Args:
        run: Plain data with ``kind`` and ``objective`` (its metric, and which value is best).

    Returns:
        Metric, words and figures by group.

    Example:
        >>> objective_of({"kind": "lending"}).metric
        'profit'
    """
    kinds = program_kinds()
    if run.get("kind") in kinds:
        return kinds[run["kind"]].objective
    return Objective(run["objective"]["metric"], run["objective"]["best"])

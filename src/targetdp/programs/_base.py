"""What every program is: from features to a finished result in people and money."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from targetdp._core import Floats, Integers, check
from targetdp.programs._folds import Folds
from targetdp.programs._people import People
from targetdp.programs._ranking import Truths


class Model(Protocol):
    """A way to predict an outcome from features."""

    def predict(self, X: Floats, y: Floats, folds: Folds, weights: Floats | None = None) -> Floats:
        """Each person's score by a model that was fitted without her part."""

    def record(self) -> dict[str, object]:
        """Plain data: what it is and its settings."""


@dataclass(frozen=True, eq=False)
class Part:
    """What each person adds to a count of people or a sum of money.

    ``effect`` is what choosing her adds, compared with not choosing her.
    """

    values: Floats
    effect: Floats


@dataclass(frozen=True, eq=False)
class Result(ABC):
    """What a program did with one table of features: who was chosen, and every figure about it.

    ``figures`` has for every metric the value of everybody and of each group, in the order of
    ``people.groups``; what is undefined (a share of nobody) is NaN. ``parts`` are those figures that are sums
    over people, so that two results can be compared person by person. ``ties`` is the number of people among
    whom the last places were drawn; ``near`` are the people next to the cut, None where everyone is decided
    about alone. ``headline`` is the part that a comparison speaks of, ``counted`` its
    name in words.
    """

    headline: ClassVar[str]
    counted: ClassVar[str]

    people: People = field(repr=False)
    scores: Floats = field(repr=False)
    decisions: Truths = field(repr=False)
    ties: int
    near: Integers | None = field(repr=False)
    figures: Mapping[str, Floats] = field(repr=False)
    parts: Mapping[str, Part] = field(repr=False)

    @property
    def metrics(self) -> dict[str, float]:
        """Every metric, for everybody."""
        return {name: float(values[0]) for name, values in self.figures.items()}

    @property
    def by_group(self) -> dict[str, dict[str, dict[str, float]]]:
        """Every metric by group column and group."""
        table = [
            dict(zip(self.figures, row, strict=True))
            for row in np.stack(list(self.figures.values()), 1).tolist()
        ]
        return self.people.groups.nested(table)

    def __getitem__(self, metric: str) -> float:
        return float(self.figures[check.choice("metric", metric, self.figures)][0])

    @property
    @abstractmethod
    def summary(self) -> str:
        """One sentence for people."""

    @abstractmethod
    def against(self, status_quo: "Result") -> dict[str, Floats]:
        """Figures that need the status quo beside them, for everybody and each group."""

    def record(self) -> dict[str, Any]:
        """Plain data, ready for JSON: what is undefined comes as null. No person is in it."""
        record: dict[str, Any] = plain(
            {"summary": self.summary, "ties": self.ties, "metrics": self.metrics, "groups": self.by_group}
        )
        return record


class Program(ABC):
    """A way to decide about people from their features, and what came of it.

    A program holds the outcomes of its people. Features come in the same order of people, original or
    private, and are treated in exactly the same way. ``chance`` is the accuracy of deciding without
    looking at anyone's features.
    """

    kind: ClassVar[str]
    people: People
    model: Model
    chance: float

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
        weights = self.people.weights if self.people.weighted else None
        return self.judge(self.model.predict(rows, self.outcomes, folds, weights), rng, folds)


def ones(chosen: Truths) -> Floats:
    """1 for each of some people, 0 for the others."""
    return chosen.astype(np.float64)


def share(part: Floats, whole: Floats) -> Floats:
    """A part of a whole; NaN where there is no whole."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def plain(value: Any) -> Any:
    """Mappings, sequences and numbers as JSON has them; what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value

"""What a program hands back: who was chosen, every figure about it, and what each person adds to them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from targetdp._core import Floats, Integers, check
from targetdp.programs._measures import Truths
from targetdp.programs._people import People


@dataclass(frozen=True, eq=False)
class Contribution:
    """What each person adds to a count of people or a sum of money.

    Args:
        values: What she adds as she was decided about.
        effect: What choosing her adds, compared with not choosing her.

    Example:
        >>> visited = np.array([1.0, 0.0])
        >>> Contribution(visited, np.ones(2)).values.sum()
        np.float64(1.0)
    """

    values: Floats
    effect: Floats

    def times(self, price: float) -> "Contribution":
        """What she adds to a sum of money, if each that is counted costs so much."""
        return Contribution(self.values * price, self.effect * price)


@dataclass(frozen=True, eq=False)
class Result(ABC):
    """What a program did with one table of features: who was chosen, and every figure about it.

    Args:
        people: The people who were decided about.
        scores: What each of them was predicted.
        decisions: Who was chosen.
        ties: How many people there are among whom the last places were drawn.
        near: The people next to the cut; None where everyone is decided about alone.
        figures: For every metric the value of everybody and of each group, in the order of ``people.groups``;
            what is undefined (a share of nobody) is NaN.
        parts: Those figures that are sums over people, so that two results can be compared person by person.
        wanted: Whom the program is for (the poor; those who would repay), if it is for somebody.

    Example:
        >>> from targetdp.programs import Aid
        >>> result = Aid([1.0, 2.0, 3.0, 4.0], quota=0.25).judge([1.0, 2.0, 3.0, 4.0])
        >>> result.decisions.tolist(), result["accuracy"]
        ([True, False, False, False], 1.0)
    """

    people: People = field(repr=False)
    scores: Floats = field(repr=False)
    decisions: Truths = field(repr=False)
    ties: int
    near: Integers | None = field(repr=False)
    figures: Mapping[str, Floats] = field(repr=False)
    parts: Mapping[str, Contribution] = field(repr=False)
    wanted: Truths | None = field(default=None, kw_only=True, repr=False)

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

    def against(self, status_quo: "Result") -> dict[str, Floats]:
        """Figures that need the status quo beside them, for everybody and each group."""
        return self.compare(status_quo.figures, self.figures)

    @staticmethod
    def compare(before: Mapping[str, Floats], after: Mapping[str, Floats]) -> dict[str, Floats]:  # noqa: ARG004
        """What `against` says, from the figures of both; nothing, unless a kind has something to say."""
        return {}

    @staticmethod
    def rates(parts: Mapping[str, Floats], wanted: Floats, population: Floats) -> dict[str, Floats]:  # noqa: ARG004
        """Figures that follow from sums over people; none unless a kind has some.

        Args:
            parts: Sums of the result's ``parts``, for everybody and each group.
            wanted: How many people there are whom the program is for.
            population: How many people there are.

        Returns:
            Each figure by its name, equal to that of ``figures``.
        """
        return {}

    def record(self) -> dict[str, Any]:
        """Plain data, ready for JSON: what is undefined comes as null. No person is in it."""
        record: dict[str, Any] = plain(
            {"summary": self.summary, "ties": self.ties, "metrics": self.metrics, "groups": self.by_group}
        )
        return record


def ones(chosen: Truths) -> Floats:
    """1 for each of some people, 0 for the others."""
    return chosen.astype(np.float64)


def share(part: Floats, whole: Floats) -> Floats:
    """A part of a whole; NaN where there is no whole."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def decision_figures(
    people: People, wanted: Floats, missed: Floats, wrong: Floats, *, called: tuple[str, str, str]
) -> dict[str, Floats]:
    """What can be said of every decision between yes and no, for everybody and each group.

    ``wanted`` is the weight of people whom the program is for, ``missed`` that of those among them who are
    not chosen, ``wrong`` that of others who are. ``called`` are the names of the first, of the chosen, and
    of the share that is missed.
    """
    everyone, each = people.totals, people.each
    right = np.maximum(wanted - missed, 0.0)
    return {
        "people": people.counts,
        "population": everyone * each,
        called[0]: wanted * each,
        called[1]: (right + wrong) * each,
        **decision_rates(everyone, wanted, missed, wrong, missed_rate=called[2]),
    }


def decision_rates(
    everyone: Floats, wanted: Floats, missed: Floats, wrong: Floats, *, missed_rate: str
) -> dict[str, Floats]:
    """Shares of people that follow from how many there are, are missed, and are chosen wrongly."""
    right = np.maximum(wanted - missed, 0.0)
    return {
        "accuracy": share(everyone - missed - wrong, everyone),
        "false_positive_rate": share(wrong, everyone - wanted),
        "precision": share(right, right + wrong),
        "recall": share(right, wanted),
        missed_rate: share(missed, wanted),
    }


def plain(value: Any) -> Any:
    """Mappings, sequences, numbers and records as JSON has them; what is not finite becomes null."""
    if hasattr(value, "record"):
        return plain(value.record())
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value

"""Kinds of scores that are fitted to people whose rows are known. Each is one file, and declares itself.

A kind is a subclass of `ScoreKind`; it fits a `FittedScore`, which can score any row, and can say in a
request what it is. Whatever is fitted is rounded, so that no cut, knot or weight has more digits than it
needs: a cut lies between people, and is somebody's own value only if that is a round number.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from targetdp._core import Floats, check, import_all
from targetdp.programs import Folds, ScoredProgram, Task
from targetdp.targeting._denoise import AS_GIVEN, scale_of

FEWEST_AGREED = 60
"""People with a label below whom nothing is fitted: each part of the cross-validation needs some."""

_FOLDS = 5
DIGITS = 4
"""Of a weight or of a curve's value: fewer tell less of labels, and change hardly anybody's place."""


class FittedScore(ABC):
    """A score of one row that was fitted to a sample.

    ``middle`` is what is left out of it, so that a prediction is the score and the middle.

    Example:
        >>> fitted = score_kinds()["linear"].fit(np.eye(3), np.arange(3.0), "regression", np.ones(3), seed=0)
        >>> list(fitted.asked(["calls", "texts", "topups"]))
        ['weights']
    """

    middle: float

    @abstractmethod
    def of_rows(self, X: Floats) -> Floats:
        """Scores of rows, in the units of the request; NaN where a row has a gap that it cannot deal with."""

    @abstractmethod
    def asked(self, features: Sequence[str]) -> dict[str, Any]:
        """The score as fields of a decision in a request."""

    def file(self) -> bytes | None:
        """The model's file, where the score is no list of numbers; None otherwise."""
        return None

    def of_size(self, size: int) -> "FittedScore":  # noqa: ARG002
        """The same fit, stopped earlier; see `ScoreKind.sizes`."""
        return self


class ScoreKind(ABC):
    """A way to fit a score.

    Attributes:
        name: What reports call it.
        any_B: Whether it moves by no more than rows do, so that it can be used below B = 2, too.
        request_field: What a decision in a request has it as: ``"weights"``, ``"additive"`` or ``"model"``.

    Example:
        >>> sorted(score_kinds())
        ['additive', 'boosted', 'linear']
    """

    name: ClassVar[str]
    any_B: ClassVar[bool]
    request_field: ClassVar[Literal["weights", "additive", "model"]]
    order: ClassVar[int]
    """Simpler ones first: of equally good ones the simplest is taken."""
    sizes: ClassVar[tuple[int, ...]] = (1,)
    """Sizes of a fit among which cross-validation chooses, where it can be stopped earlier."""

    kinds: ClassVar[dict[str, "ScoreKind"]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        ScoreKind.kinds[cls.name] = cls()

    @abstractmethod
    def fit(self, X: Floats, y: Floats, task: Task, weights: Floats, seed: int) -> FittedScore:
        """A score that predicts y; in classification the log-odds of 1.

        Args:
            X: Rows; NaN is a gap.
            y: What is predicted.
            task: Whether y are numbers, or 1 and 0.
            weights: What people count.
            seed: Of whatever is random.
        """

    def why_not(self) -> str | None:
        """Why it cannot be used here, if it cannot."""
        return None


DECLARING = r"^class \w+\(ScoreKind\)"
"""How a file declares a kind of score."""


def score_kinds() -> Mapping[str, ScoreKind]:
    """Every kind of score by its name, the simplest first.

    Returns:
        The kinds that declare themselves, each ready to fit.

    Example:
        >>> score_kinds()["boosted"].any_B
        False
    """
    import_all("targetdp.targeting", DECLARING)
    return dict(sorted(ScoreKind.kinds.items(), key=lambda one: one[1].order))


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """A score of one kind, fitted to a whole sample, and what it would say of people whom it has not seen.

    Args:
        kind: Its name.
        score: Fitted to everybody.
        own: Each person's score by a fit without her part of the sample, in the units of ``score``. Where
            these units begin, its ``middle``, and how long a fit may grow, follow from everybody.

    Example:
        >>> fit_scores(X, program, classic=True)[0].kind  # doctest: +SKIP
        'linear'
    """

    kind: str
    score: FittedScore = field(repr=False)
    own: Floats = field(repr=False)


def fit_scores(
    X: Any, program: ScoredProgram, *, classic: bool, kinds: Sequence[str] | None = None, seed: int = 0
) -> tuple[CrossFitted, ...]:
    """Fit every kind of score to people whose rows and labels are known, and cross-validate each.

    Args:
        X: Their rows, in the program's order; NaN is a gap. For B = 2 in the table's own units, below it
            scaled and clipped.
        program: What is decided about them, with their outcomes.
        classic: Whether any function of a row will do (B = 2), or only one that moves no more than rows do.
        kinds: Which ones; all that can be used unless given.
        seed: Of the parts of the cross-validation, and of whatever is random in a fit.

    Returns:
        The scores, the simplest kind first.

    Raises:
        ValueError: There are fewer than 60 people, shapes do not fit, all outcomes are the same, or no kind
            can be used.

    Does not guarantee: any privacy. Whoever sees a score can guess labels of the people it was fitted to:
    they must have agreed to that.

    Example:
        >>> from targetdp.programs import Aid
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(400, 2))
        >>> fits = fit_scores(X, Aid(np.exp(X[:, 0])), classic=True, kinds=["linear", "additive"])
        >>> tuple(one.kind for one in fits)
        ('linear', 'additive')
        >>> bool(np.corrcoef(fits[0].own, X[:, 0])[0, 1] > 0.99)
        True
    """
    rows = np.ascontiguousarray(np.asarray(X, dtype=np.float64))
    y = program.outcomes
    check.integer("people", len(y), at_least=FEWEST_AGREED, remedy="fewer labels tell nothing about others")
    if rows.ndim != 2 or len(rows) != len(y):
        raise ValueError(f"X has shape {rows.shape}: the program has {len(y):,} people, each needs a row")
    if np.isinf(rows).any():
        raise ValueError("X has a value that is infinite: give numbers, or NaN for a gap")
    if y.min() == y.max():
        raise ValueError(f"the outcome is {float(y[0])!r} for everybody: there is nothing to learn")
    scale = AS_GIVEN if program.task == "classification" else scale_of(y)
    target, weights = scale.of(y), program.people.weights
    known = score_kinds()
    wanted = known if kinds is None else [check.choice("kind", name, known) for name in kinds]
    usable = [known[name] for name in wanted if (classic or known[name].any_B) and not known[name].why_not()]
    if not usable:
        raise ValueError(f"kinds = {list(wanted)}: none of them can be used below B = 2, or here")
    folds = Folds(len(y), _FOLDS, seed)
    return tuple(_cross_fitted(kind, rows, target, program.task, weights, folds, seed) for kind in usable)


def _cross_fitted(
    kind: ScoreKind, X: Floats, y: Floats, task: Task, weights: Floats, folds: Folds, seed: int
) -> CrossFitted:
    """Fit to each part's others, and to everybody; all in the size whose predictions are best."""
    predicted = np.empty((len(kind.sizes), len(X)))
    for rest, part in folds:
        if y[rest].min() == y[rest].max():
            raise ValueError("a part of the sample has only people of one outcome: label more people")
        fitted = kind.fit(X[rest], y[rest], task, weights[rest], seed)
        for place, size in enumerate(kind.sizes):
            smaller = fitted.of_size(size)
            predicted[place, part] = smaller.of_rows(X[part]) + smaller.middle
    best = int(np.argmin(_losses(predicted, y, task) @ weights)) if len(kind.sizes) > 1 else 0
    whole = kind.fit(X, y, task, weights, seed).of_size(kind.sizes[best])
    return CrossFitted(kind.name, whole, predicted[best] - whole.middle)


def _losses(predicted: Floats, y: Floats, task: Task) -> Floats:
    return (
        np.logaddexp(0.0, (1 - 2 * y) * predicted) if task == "classification" else np.square(predicted - y)
    )


# Rounding.


def rounded(value: float, scale: float, digits: int = DIGITS) -> float:
    """A number with so many digits of a scale that matters: 0.123456 at scale 1 is 0.1235.

    Args:
        value: The number.
        scale: What one would notice; 0 leaves the number as it is.
        digits: How many digits of that are kept.

    Returns:
        The number, rounded.
    """
    if scale <= 0 or not np.isfinite(scale) or value == 0:
        return float(value)
    places = digits - 1 - int(np.floor(np.log10(scale)))
    return float(np.round(value, places)) if -300 < places < 300 else float(value)


def rounded_cuts(column: Floats, most: int, fewest: int) -> Floats:
    """Places that cut a column into parts of about equally many people, rounded to what lies between them.

    Args:
        column: Its values.
        most: How many places there are at most.
        fewest: People in each part, about; never fewer than half as many.

    Returns:
        Rising places, none of them with more digits than tell it from the next; none, if all are alike, or
        too few are not.

    Does not guarantee: that no place is a value of the column. A round number, such as a count, may be one.
    Edges: where few values are taken, the places are between them, but for values that too few people have.
    """
    values = np.unique(column[~np.isnan(column)])
    if len(values) < 2:
        return np.empty(0)
    middles = (values[1:] + values[:-1]) / 2
    if len(middles) > most:
        parts = max(2, min(most + 1, int((~np.isnan(column)).sum()) // max(fewest, 1)))
        at = np.nanquantile(column, np.linspace(0, 1, parts + 1)[1:-1])
        middles = middles[np.unique(np.clip(np.searchsorted(middles, at), 0, len(middles) - 1))]
    if len(middles) == 1:
        gaps = np.array([(values[-1] - values[0]) / 2])
    else:
        between = np.diff(middles)
        gaps = np.minimum(np.append(between, between[-1]), np.insert(between, 0, between[0]))
    found = [rounded(float(one), float(gap) / 2, 1) for one, gap in zip(middles, gaps, strict=True)]
    ranked = np.sort(column[~np.isnan(column)])
    below, kept = 0, []
    for cut in np.unique(np.array(found)):
        reached = int(np.searchsorted(ranked, cut, side="right"))
        if min(reached - below, len(ranked) - reached) >= fewest / 2:
            kept.append(float(cut))
            below = reached
    return np.array(kept)

"""Decisions learned from people who agreed to be used as they are: which score, and what to expect of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from targetdp._core import Floats, Integers
from targetdp.mechanisms import STEPS, Decision, DecisionLaw
from targetdp.programs import CONFIDENCE, ScoredProgram
from targetdp.release import AskedDecision, Question
from targetdp.targeting._expect import REDRAWN, Expectation, Expected, within_range
from targetdp.targeting._fit._kinds import CrossFitted
from targetdp.targeting._share import best_share

_KNOTS = 25
"""Cuts that a request says the expected share of yes for."""
_WORTH, _BY_CHANCE = 0.01, 0.5
"""Accuracy that another share of yes than the quota must bring in the sample to be asked for; and that times
√n, of n people: of hundreds of shares the best one looks better than it is by about a standard error."""
_REFITTED = 1.15
"""By how much wider intervals are, since a score is fitted to the very sample: that is not drawn again."""


@dataclass(frozen=True, eq=False)
class TriedDecision:
    """A question to everybody by one kind of score, and what to expect of the answers.

    Args:
        fitted: The score.
        asked: The question.
        law: The chances of answers.
        program: Of the people that the score was fitted to.
        steps: Their scores, each by a fit without her, in whole steps of the question.
        known_cut: Where the question itself names the cut; None where it is found on the way.

    Example:
        >>> try_decisions(fits, program, features, B=2, epsilon=4)[0].kind  # doctest: +SKIP
        'boosted'
    """

    fitted: CrossFitted
    asked: AskedDecision
    law: DecisionLaw
    program: ScoredProgram = field(repr=False)
    steps: Integers = field(repr=False)
    known_cut: int | None

    @property
    def kind(self) -> str:
        """The kind of score."""
        return self.fitted.kind

    @cached_property
    def figures(self) -> dict[str, float]:
        """What answers would achieve among the sample's people, each by a fit without her."""
        weights = self.program.people.weights
        return self._figures(weights / weights.sum())

    @property
    def value(self) -> float:
        """The program's own figure; the higher the better."""
        return self.program.objective.value_of(self.figures)

    def expect(
        self, rng: np.random.Generator, *, confidence: float = CONFIDENCE, redrawn: int = REDRAWN
    ) -> Expectation:
        """The figures with an interval for others like the sample's people, as many as these.

        Both are drawn again from the sample, the people that a figure is measured on and the others, who also
        get drawn answers: what comes true varies as well as what was measured. Of more people the interval
        holds more often than it says.

        Args:
            rng: Draws them.
            confidence: Of the interval.
            redrawn: How often.

        Returns:
            Each metric of the program.

        Does not guarantee: anything where the sample is not drawn from the people to be decided about, or for
        fewer people.
        """
        values = np.array(list(self.figures.values()))
        gaps = np.zeros((max(1, redrawn), len(values)))
        for gap in gaps[:redrawn]:
            ours, theirs = (self._resampled(rng) for _ in range(2))
            gap[:] = [*self._figures(theirs, rng).values()]
            gap -= [*self._figures(ours).values()]
        doubt = (1 - confidence) / 2
        gaps *= _REFITTED
        low, high = values + np.quantile(gaps, [doubt, 1 - doubt], axis=0)
        figures = {
            name: Expected(value, *within_range(name, min(value, a), max(value, b), self.program))
            for (name, value), a, b in zip(self.figures.items(), low.tolist(), high.tolist(), strict=True)
        }
        return Expectation(figures, confidence)

    def _resampled(self, rng: np.random.Generator) -> Floats:
        n = self.program.people.count
        counts = np.bincount(rng.integers(n, size=n), minlength=n) * self.program.people.weights
        return np.asarray(counts / counts.sum())

    def _figures(self, weights: Floats, rng: np.random.Generator | None = None) -> dict[str, float]:
        """The program's figures where people count so much; with answers that are drawn, if ``rng`` is."""
        cut = self._cut(weights) if self.known_cut is None else self.known_cut
        law = self.law
        cells = (
            np.where(self.steps <= cut, 0, -1) if law.cells is None else law.cells.of_steps(self.steps, cut)
        )
        yes = law.chance_of_yes(cells)
        if rng is not None:
            yes = (rng.random(len(yes)) < yes).astype(np.float64)
        chosen = after_lots(yes, weights, self.program.share_chosen)
        if rng is not None:
            chosen = (rng.random(len(yes)) < chosen).astype(np.float64)
        return self.program.figures_by_chance(chosen, weights)

    def _cut(self, weights: Floats) -> int:
        """The cut with the share that was asked for on its side of a yes."""
        reached = np.cumsum(weights[self._order])
        at = int(np.searchsorted(reached, (self.asked.share or 0.0) * (1 - 1e-9)))
        return int(self.steps[self._order[min(at, len(self._order) - 1)]])

    @cached_property
    def _order(self) -> Integers:
        return np.argsort(self.steps, kind="stable")


def after_lots(yes: Floats, weights: Floats, places: float | None) -> Floats:
    """The chance to be on a list of so many places, from everybody's chance of a yes.

    Lots are drawn among the yes if there are too many, and among the no if there are too few.

    Args:
        yes: Each person's chance.
        weights: What share of all each of them is.
        places: The share of people who get a place; None where everybody with a yes does.

    Returns:
        The chance of each.

    Example:
        >>> after_lots(np.array([1.0, 1.0, 0.0, 0.0]), np.full(4, 0.25), 0.25).tolist()
        [0.5, 0.5, 0.0, 0.0]
    """
    if places is None:
        return yes
    share = float(weights @ yes)
    if share >= places:
        return yes * (places / share)
    return np.asarray(yes + (1 - yes) * ((places - share) / (1 - share)))


def try_decisions(
    fits: Sequence[CrossFitted],
    program: ScoredProgram,
    features: Sequence[str],
    *,
    B: float,
    epsilon: float,
    name: str = "decision",
) -> tuple[TriedDecision, ...]:
    """What one bit of each person would do for a program, by each of some scores.

    Args:
        fits: From `fit_scores`.
        program: Of the people that scores were fitted to.
        features: Names of the columns.
        B: The distance that is hidden.
        epsilon: ε of each answer.
        name: Of the column of answers.

    Returns:
        A question for each score, the best one for the program's own figure first.

    Raises:
        ValueError: No score tells anything, or the question cannot be asked at this distance.

    Example:
        >>> from targetdp.programs import Aid
        >>> from targetdp.targeting import fit_scores
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(400, 2))
        >>> poor = Aid(np.exp(X[:, 0]), quota=0.3)
        >>> fits = fit_scores(X, poor, classic=True, kinds=["linear"])
        >>> best = try_decisions(fits, poor, ["calls", "texts"], B=2, epsilon=4)[0]
        >>> best.kind, best.asked.share, bool(0.95 < best.figures["accuracy"] < 1)
        ('linear', 0.3, True)
    """
    found, problems = [], []
    for one in fits:
        try:
            found.append(_tried(one, program, features, B, epsilon, name))
        except ValueError as error:
            problems.append(f"{one.kind}: {error}")
    if not found:
        raise ValueError("no score can be asked for:\n  " + "\n  ".join(problems))
    return tuple(sorted(found, key=lambda one: -one.value))


def _tried(
    fitted: CrossFitted, program: ScoredProgram, features: Sequence[str], B: float, epsilon: float, name: str
) -> TriedDecision:
    score = {"name": name, "yes": program.chosen_are} | fitted.score.asked(features)
    share, odds = program.share_chosen, program.lowest_odds
    if odds is not None:
        asked = AskedDecision.model_validate(score | {"cut": odds - fitted.score.middle})
    else:
        expected = expected_shares(fitted.own, program.chosen_are, program.people.weights)
        asked = AskedDecision.model_validate(score | {"share": share, "expected": expected})
    question = Question.of(asked, B)
    law = Decision(B=B, epsilon=epsilon, score=question.score).law()
    steps = question.placed(fitted.own)
    if share is not None:
        high = program.high()
        wanted = ~high if program.chosen_are == "below" else high
        best = best_share(np.minimum(steps, STEPS) / STEPS, wanted, law, quota=share)
        if best.accuracy > best.at_quota + max(_WORTH, _BY_CHANCE / math.sqrt(len(wanted))):
            asked = asked.model_copy(update={"share": round(best.share, 3)})
    rule = question.rule(law)
    return TriedDecision(fitted, asked, law, program, steps, rule if isinstance(rule, int) else None)


def expected_shares(scores: Floats, yes: str, weights: Floats) -> list[tuple[float, float]]:
    """Pairs of a cut and the share of people who would get a yes there; whoever has no score is a no.

    Args:
        scores: Of a sample, in the units of the request.
        yes: Whether scores below a cut are a yes, or those above.
        weights: What people count.

    Returns:
        Pairs with rising cuts, which are rounded.

    Raises:
        ValueError: All scores are the same.
    """
    known = ~np.isnan(scores)
    order = np.argsort(scores[known])
    ranked, counts = scores[known][order], weights[known][order]
    reached = np.cumsum(counts) / weights.sum()
    at = np.searchsorted(reached, np.linspace(0, reached[-1], _KNOTS) * (1 - 1e-12))
    spread = float(ranked[-1] - ranked[0])
    if not spread > 0:
        raise ValueError("the score is the same for everybody: the sample does not tell who should get a yes")
    places = 3 - int(np.floor(np.log10(spread)))
    cuts = np.unique(np.round(ranked[np.minimum(at, len(ranked) - 1)], places))
    below = np.interp(cuts, ranked, reached)
    if yes == "below":
        return [(float(cut), round(float(share), 4)) for cut, share in zip(cuts, below, strict=True)]
    above = float(reached[-1]) - below
    return [(float(cut), round(float(share), 4)) for cut, share in zip(cuts, above, strict=True)]

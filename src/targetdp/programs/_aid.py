"""Aid with a quota (the paper's program in Togo): the people who are predicted to be poorest get it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from targetdp._core import Floats, Integers, check
from targetdp.programs._base import (
    DecisionWords,
    ExpectedShares,
    MissedRate,
    Model,
    Objective,
    ScoredProgram,
    named,
)
from targetdp.programs._measures import (
    Truths,
    Welfare,
    at_or_below,
    highest,
    lowest,
    places,
    rank_agreement,
    settled,
)
from targetdp.programs._models._linear import Ridge
from targetdp.programs._people import Folds, People, groups_of, people_of, set_fields, values_of
from targetdp.programs._result import Contribution, Result, decision_figures, decision_rates, ones, share

QUOTA = 0.29
"""Of the paper: the budget of Togo's Novissi program."""
TOGO_ADULTS = 4_950_000
"""People of at least 15 years in Togo, as the paper estimates them."""

QuotaRule = Literal["once", "per fold"]
"""Whether the quota holds for all people together, or in each part of the cross-validation by itself."""

MOST_COST = 1e15  # of a transfer: what a population gets fits single precision, as resamples are kept

_COUNTS = ("people", "population", "poor", "eligible", "exclusion_errors", "inclusion_errors")
"""Metrics that add up over parts of the people; all others are shares and ranks."""

_CALLED = ("poor", "eligible", "exclusion_rate")
_COMPARED = ("exclusion_errors", "exclusion_rate", "eligible", "misspent")
"""Figures whose difference from the status quo is a figure, too."""
_PAID_TO = {"misspent": "inclusion_errors", "spent": "eligible"}  # sums of money: whose transfers they are


@dataclass(frozen=True, eq=False)
class AidResult(Result):
    """Who would get aid, and who would be left out.

    Metrics: ``people`` of the table; ``population`` that they stand for; ``poor`` and ``eligible`` among
    those; ``accuracy``; ``false_positive_rate`` (of those who are not poor, the share that gets aid);
    ``precision`` (of those who get it, the share that is poor); ``recall`` (of the poor, the share that gets
    it) and ``exclusion_rate`` (the share that does not); ``auc`` (the chance that a poor person is predicted
    to consume less than another); ``spearman`` (of predicted with actual consumption); ``exclusion_errors``
    (poor people without aid) and ``inclusion_errors`` (others with it); and, if it was asked for,
    ``welfare``: the gain in utility as a share of what giving the same aid to the poorest would gain (a group
    may get more than that, at the cost of others). Where it is known what a transfer costs, ``spent`` is what
    all of them cost, and ``misspent`` what those cost that go to people who are not poor.

    Args:
        people: As in every `Result`.
        scores: Predicted consumption.
        decisions: Who gets aid.
        ties: How many people were tied for the last places.
        near: The people next to the cut.
        figures: The metrics above, for everybody and each group.
        parts: What each person adds to those that are counts.
        quota: The share of people who get aid.
        chance: The accuracy of a lottery with this quota.
        wanted: Who is poor.

    Example:
        >>> result = Aid([1.0, 2.0, 3.0, 4.0], quota=0.25).judge([1.5, 1.0, 3.0, 4.0])
        >>> result.metrics["recall"], result.chance
        (0.0, 0.625)
    """

    quota: float
    chance: float

    @property
    def summary(self) -> str:
        """One sentence for people."""
        poor, out = self["poor"], self["exclusion_errors"]
        of = f" ({out / poor:.0%})" if poor > 0 else ""
        drawn = f"; {self.ties:,} were tied for the last places, which were drawn" if self.ties else ""
        return (
            f"Aid for {self['eligible']:,.0f} people: of {poor:,.0f} poor people {out:,.0f}{of} are left out "
            f"and {self['inclusion_errors']:,.0f} others get it (accuracy {self['accuracy']:.3f}, chance is "
            f"{self.chance:.3f}{drawn})."
        )

    @staticmethod
    def compare(before: Mapping[str, Floats], after: Mapping[str, Floats]) -> dict[str, Floats]:
        """``extra_exclusion_errors``, ``extra_exclusion_rate`` and so on: beyond today's."""
        return {f"extra_{name}": after[name] - before[name] for name in _COMPARED if name in after}

    @staticmethod
    def rates(parts: Mapping[str, Floats], wanted: Floats, population: Floats) -> dict[str, Floats]:
        """Accuracy, recall, and who is left out or let in, as shares."""
        missed, wrong = parts["exclusion_errors"], parts["inclusion_errors"]
        return decision_rates(population, wanted, missed, wrong, missed_rate=_CALLED[2])


@dataclass(frozen=True, eq=False)
class _Poverty:
    """Who is poor among some people, and what aid for the poorest of them would do."""

    people: People
    poor: Truths
    weight: Floats
    ranks: Floats
    gains: Floats
    best_gains: Floats

    @classmethod
    def among(cls, people: People, consumption: Floats, gains: Floats, quota: float) -> "_Poverty":
        poor = at_or_below(consumption, quota, people)
        gains = gains * people.weights
        # Of people with equal consumption it does not matter who would be chosen by perfect targeting.
        best = lowest(consumption, np.argsort(consumption), quota, people, np.random.default_rng(0)).who
        return cls(
            people, poor, people.weight_of(poor), places(consumption, people), gains,
            people.groups.sums(gains * best),
        )  # fmt: skip

    def figures(self, scores: Floats, order: Any, eligible: Truths) -> dict[str, Floats]:
        """Every metric of giving aid to the eligible, for everybody and each group."""
        people, poor = self.people, self.poor
        left_out, let_in = people.weight_of(poor & ~eligible), people.weight_of(eligible & ~poor)
        richer_first, spearman = rank_agreement(scores, order, poor, self.ranks, people)
        return decision_figures(people, self.weight, left_out, let_in, called=_CALLED) | {
            "auc": 1 - richer_first,
            "spearman": spearman,
            "exclusion_errors": left_out * people.each,
            "inclusion_errors": let_in * people.each,
            "welfare": share(people.groups.sums(self.gains * eligible), self.best_gains),
        }


@named("aid")
@dataclass(frozen=True, eq=False)
class Aid(ScoredProgram):
    """Aid for the share ``quota`` of people who are predicted to be poorest.

    Consumption is predicted by cross-validation. Eligible are exactly round(quota·n) people, those with the
    lowest predictions; poor are those whose true ``consumption`` is at or below that of the round(quota·n)-th
    poorest. As many get aid as are poor, so precision = recall, exclusion errors = inclusion errors, and
    accuracy = 1 − 2q(1 − recall): a loss of one point of accuracy is half a point of people left out.
    ``chance`` is the accuracy of a lottery with the same quota: 1 − p − q + 2pq, p of the people being poor.

    Args:
        consumption: What each person consumes, or whatever else says who is poor: the lower, the poorer.
        quota: The share of people who get aid, between 0 and 1.
        population: How many people the table stands for; by default its own.
        weights: How many people each one stands for, relative to the others (a survey's weights): they count
            in the fit, in the quota and in every metric.
        groups: Columns by which every figure is also given, each with a value for every person.
        model: What predicts consumption.
        welfare: Adds social welfare to the metrics.
        quota_rule: ``"once"``, or ``"per fold"``: then each part of the cross-validation has its own poverty
            line and quota, as in the code that the paper's authors published. Counts are summed over the
            parts, shares and ranks are means over them. It is for comparisons with that code: a program has
            one budget, not five.
        clusters: Whom the survey drew together, a value for every person: intervals know it.
        strata: Within which it drew them, a value for every person.
        cost: What one transfer costs, in one currency; adds ``spent`` and ``misspent`` to the metrics.

    Raises:
        ValueError: A number is outside its range, or columns are of different lengths.

    Edges: people tied in consumption at the poverty line are all poor, so there may be more of them than
    places. Metrics of a share of nobody are NaN.

    Example:
        >>> program = Aid([1.0, 2.0, 3.0, 4.0], quota=0.25)
        >>> program.judge([1.5, 1.0, 3.0, 4.0])["exclusion_errors"]
        1.0
        >>> rows = np.random.default_rng(0).normal(size=(200, 3))
        >>> program = Aid(rows @ [1.0, 0.5, 0.0])
        >>> program.evaluate(rows, Folds(200))["accuracy"]
        1.0
    """

    objective = Objective(
        "exclusion_errors", "smallest", drawn="extra_exclusion_errors", people=("poor people", "missed"),
        noun="poor people left out",
        axis="more poor people missed than today", limit="At most so many more poor people missed",
        by_group=(
            ("extra_exclusion_errors", "more poor people missed"), ("extra_eligible", "people who get aid"),
        ),
        rate=MissedRate("exclusion_rate", "exclusion_errors", "of the poor are missed"),
        today="The program gives aid to {eligible} people, as many as are poor, and misses {exclusion_rate} "
        "of the poor today.",
        money=("misspent", "extra_misspent", "spent"),
    )  # fmt: skip
    task = "regression"
    chosen_are = "below"
    words = DecisionWords(
        given="aid", article="aid", counts="Counts", blind="A lottery",
        outcome="{right:,.0f} of them are poor, and {missed:,.0f} poor people get none",
    )  # fmt: skip

    consumption: Floats = field(repr=False)
    quota: float = QUOTA
    population: float | None = None
    weights: Floats | None = field(default=None, repr=False)
    groups: Mapping[str, Sequence[Any]] | None = field(default=None, repr=False)
    model: Model = field(default_factory=Ridge)
    welfare: Welfare | None = None
    quota_rule: QuotaRule = "once"
    clusters: Sequence[Any] | None = field(default=None, repr=False)
    strata: Sequence[Any] | None = field(default=None, repr=False)
    cost: float | None = None
    people: People = field(init=False, repr=False)
    poor: Truths = field(init=False, repr=False)
    chance: float = field(init=False)
    _gains: Floats = field(init=False, repr=False)
    _poverty: _Poverty = field(init=False, repr=False)

    def __post_init__(self) -> None:
        y = values_of("consumption", self.consumption)
        quota = check.number("quota", self.quota, above=0, below=1, remedy="the share of people who get aid")
        check.choice("quota_rule", self.quota_rule, get_args(QuotaRule))
        people = people_of(
            len(y), groups=self.groups, weights=self.weights, population=self.population,
            clusters=self.clusters, strata=self.strata,
        )  # fmt: skip
        gains = np.zeros(len(y)) if self.welfare is None else self.welfare.gains(y)
        poverty = _Poverty.among(people, y, gains, quota)
        p = float(poverty.weight[0] / people.totals[0])
        set_fields(
            self,
            consumption=y,
            quota=quota,
            cost=None if self.cost is None else check.number("cost", self.cost, above=0, at_most=MOST_COST),
            population=None if self.population is None else people.population,
            people=people,
            poor=poverty.poor,
            chance=1 - p - quota + 2 * p * quota,
            _gains=gains,
            _poverty=poverty,
        )

    @property
    def outcomes(self) -> Floats:
        """Consumption."""
        return self.consumption

    def judge(
        self, scores: Any, rng: np.random.Generator | None = None, folds: Folds | None = None
    ) -> AidResult:
        """The result of giving aid to those with the lowest scores (predicted consumption).

        ``folds`` are needed only where the quota holds per fold.
        """
        people = self.people
        scores = settled(values_of("scores", scores, people.count))
        rng = check.generator(rng) or np.random.default_rng()
        poor, eligible = np.zeros(people.count, dtype=np.bool_), np.zeros(people.count, dtype=np.bool_)
        ties, near_each, figures_each = 0, [], []
        for members, among in self._decided_together(folds):
            theirs = scores[members]
            order = np.argsort(theirs)
            chosen = lowest(theirs, order, self.quota, among.people, rng)
            poor[members], eligible[members] = among.poor, chosen.who
            ties += chosen.ties
            near_each.append(members[chosen.near])
            figures_each.append(among.figures(theirs, order, chosen.who))
        near, figures = np.concatenate(near_each), _together(figures_each)
        if self.welfare is None:
            del figures["welfare"]
        out, wrong = poor & ~eligible, eligible & ~poor
        parts = {
            "eligible": Contribution(ones(eligible), np.ones(people.count)),
            "exclusion_errors": Contribution(ones(out), -ones(poor)),
            "inclusion_errors": Contribution(ones(wrong), ones(~poor)),
        }
        if self.cost is not None:
            figures |= {money: figures[count] * self.cost for money, count in _PAID_TO.items()}
            parts |= {money: parts[count].times(self.cost) for money, count in _PAID_TO.items()}
        return AidResult(
            people, scores, eligible, ties, near, figures, parts, self.quota, self.chance, wanted=poor
        )

    @property
    def comparison_only(self) -> str | None:
        """A budget has no folds."""
        return None if self.quota_rule == "once" else "quota_rule = 'per fold', and a budget has no folds"

    def _decided_together(self, folds: Folds | None) -> list[tuple[Integers, _Poverty]]:
        """Everybody or, with a quota for each fold, the people of one after the other."""
        if self.quota_rule == "once":
            return [(np.arange(self.people.count), self._poverty)]
        check.instance("folds", folds, Folds)
        assert folds is not None  # noqa: S101 (just checked; mypy does not see it)
        if folds.people != self.people.count:
            raise ValueError(f"folds has {folds.people:,} people: the program has {self.people.count:,}")
        smallest = min(end - begin for begin, end in folds.ranges())
        if round(self.quota * smallest) == 0:
            raise ValueError(
                f"quota = {self.quota!r} of a fold of {smallest} people is nobody: use fewer folds"
            )
        y, gains = self.consumption, self._gains
        return [
            (fold, _Poverty.among(self.people.subset(fold), y[fold], gains[fold], self.quota))
            for _, fold in folds
        ]

    def part(self, places: Integers, population: float) -> "Aid":
        """Aid for some of its people, with the same quota; it holds once among them."""
        return Aid(
            self.consumption[places], self.quota, population,
            None if self.weights is None else np.asarray(self.weights)[places],
            groups_of(self.groups, places), self.model, self.welfare, cost=self.cost,
        )  # fmt: skip

    def line(self) -> float:
        """The highest consumption among the poor: whoever is at or below it is poor."""
        if not self.poor.any():
            raise ValueError(
                f"quota = {self.quota!r} of {self.people.count:,} labelled people is nobody: label more"
            )
        return float(self.consumption[self.poor].max())

    def as_scores(self, chances: Floats) -> Floats:
        """The lowest scores get aid: those with the highest chances to be poor."""
        return 1 - chances

    def choose(self, chances: Floats, rng: np.random.Generator) -> Truths:
        """The quota's share of people, those with the highest chances to be poor."""
        return highest(chances, round(self.quota * len(chances)), rng)

    def high(self, weights: Floats | None = None) -> Truths:
        """Who is not poor. Where people count otherwise, the quota's line is another one."""
        if weights is None:
            return ~self.poor
        order = np.argsort(self.consumption, kind="stable")
        at = int(np.searchsorted(np.cumsum(weights[order]), self.quota * (1 - 1e-9)))
        return np.asarray(self.consumption > self.consumption[order[min(at, len(order) - 1)]])

    def errors(self, low: Floats, high: Floats, expected: ExpectedShares) -> tuple[float, float]:  # noqa: ARG002
        """Poor people above the step of scores at which the quota is reached, and others below it."""
        both = high + low
        reached = np.cumsum(both)
        at = min(int(np.searchsorted(reached, self.quota)), len(reached) - 1)
        # Of those at the step of the cut, a part gets aid.
        part = min(max((self.quota - (reached[at] - both[at])) / max(both[at], 1e-300), 0.0), 1.0)
        helped = float(low[:at].sum() + part * low[at])
        return max(0.0, float(low.sum()) - helped), float(high[:at].sum() + part * high[at])

    @property
    def share_chosen(self) -> float:
        """The quota."""
        return self.quota

    @property
    def lowest_odds(self) -> None:
        """None: there are so many places."""
        return

    def figures_by_chance(self, chosen: Floats, weights: Floats) -> dict[str, float]:
        """``accuracy``, ``recall`` and ``exclusion_errors``."""
        high = self.high(weights)
        missed, wrong = weights * ~high * (1 - chosen), weights * high * chosen
        return self.expected_figures(high, weights, float(missed.sum()), float(wrong.sum()))

    def expected_figures(
        self, high: Truths, weights: Floats, let_in: float, left_out: float
    ) -> dict[str, float]:
        """``accuracy``, ``recall`` and ``exclusion_errors``."""
        poor = 1 - float(weights[high].sum())
        return {
            "accuracy": 1 - let_in - left_out,
            "recall": 1 - let_in / poor if poor > 0 else math.nan,
            "exclusion_errors": let_in * self.people.population,
        }


def _together(figures: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    """Figures of people who were decided about apart: counts are added up, of all others the mean is taken.

    Parts in which a share is undefined are left out of it; it is NaN where it is so in all.
    """
    together = {}
    for name in figures[0]:
        each = np.stack([part[name] for part in figures])
        known = np.isfinite(each)
        total = np.where(known, each, 0.0).sum(axis=0)
        together[name] = each.sum(axis=0) if name in _COUNTS else share(total, ones(known).sum(axis=0))
    return together

"""Lending (the paper's program in Nigeria): a loan for those who are predicted to repay."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from targetdp.programs._measures import Truths, places, rank_agreement, settled
from targetdp.programs._models._linear import Logistic
from targetdp.programs._people import Folds, People, groups_of, people_of, set_fields, values_of
from targetdp.programs._result import Contribution, Result, decision_figures, decision_rates, ones, share


@dataclass(frozen=True, eq=False)
class Loans:
    """The money at stake in each application, in one currency; `loans_at_rates` takes rates instead.

    Args:
        amount: l that is asked for.
        revenue: r that the lender makes if it is repaid.
        interest: i that the amount would have earned elsewhere.

    Raises:
        ValueError: An amount of money is below 0, or there are not as many of each.

    Example:
        >>> Loans([100.0, 200.0], [15.0, 30.0], [2.0, 4.0]).revenue
        array([15., 30.])
    """

    amount: Floats
    revenue: Floats
    interest: Floats

    def __post_init__(self) -> None:
        amount = values_of("amount", self.amount)
        for name, values in (("amount", amount), ("revenue", self.revenue), ("interest", self.interest)):
            checked = values_of(name, values, len(amount))
            if not (checked >= 0).all():
                at = int(np.argmin(checked))
                raise ValueError(
                    f"{name}[{at}] = {float(checked[at])!r} is below 0: amounts of money are 0 or more"
                )
            set_fields(self, **{name: checked})

    def of(self, places: Integers) -> "Loans":
        """The loans of some of the people."""
        return Loans(self.amount[places], self.revenue[places], self.interest[places])


def loans_at_rates(amount: Any, *, revenue: Any, interest: Any) -> Loans:
    """Loans whose revenue and interest are rates of the amount.

    Args:
        amount: What each applicant asks for.
        revenue: What the lender makes if it is repaid: one rate of the amount (0.15 is 15%), or an amount
            of money for each applicant.
        interest: What the amount would have earned elsewhere: a rate, or an amount for each.

    Returns:
        The loans.

    Raises:
        ValueError: A rate or an amount is below 0, or there are not as many of each.

    Example:
        >>> loans_at_rates([100.0, 200.0], revenue=0.15, interest=[2.0, 3.0]).revenue
        array([15., 30.])
    """
    lent = values_of("amount", amount)

    def money(name: str, given: Any) -> Any:
        if np.ndim(given) > 0:
            return given
        return lent * check.number(f"{name} rate", given, at_least=0, remedy="0.15 is 15% of the amount")

    return Loans(lent, money("revenue", revenue), money("interest", interest))


_CALLED = ("low_risk", "approvals", "refusal_rate")
_COMPARED = ("profit", "refusal_rate", "approvals")
"""Figures whose difference from the status quo is a figure, too."""


class LendingResult(Result):
    """Who would get a loan, and what the lender would make.

    Metrics: ``people`` of the table; ``population`` that they stand for; ``low_risk`` among those (they would
    repay); ``approvals``; ``accuracy``; ``false_positive_rate`` (of those who would not repay, the share that
    gets a loan); ``precision`` (of those who get one, the share that repays); ``recall`` (of those who would
    repay, the share that gets one) and ``refusal_rate`` (the share that does not); ``auc``;
    ``wrong_approvals`` and ``wrong_refusals``; ``lent``; ``profit`` as in the paper; ``cash``, the same
    without what was only missed (no interest, no lost revenue); and ``break_even_revenue``, the revenue for
    each unit of amount from which on there would be a profit, NaN if there is none: where as much revenue is
    turned away as is let in, no revenue is enough.

    Example:
        >>> program = Lending([1, 0], loans_at_rates([100.0, 100.0], revenue=0.2, interest=0.02))
        >>> program.judge([0.9, 0.4]).metrics["profit"]
        20.0
    """

    @property
    def summary(self) -> str:
        """One sentence for people."""
        even = self["break_even_revenue"]
        needs = f"breaks even at a revenue of {even:.1%}"
        if np.isnan(even):
            needs = "no revenue would make a profit"
        return (
            f"Loans for {self['approvals']:,.0f} of {self['population']:,.0f} applicants: "
            f"{self['wrong_approvals']:,.0f} of them do not repay, and {self['wrong_refusals']:,.0f} who "
            f"would repay get none (accuracy {self['accuracy']:.3f}); profit {self['profit']:,.0f}, {needs}."
        )

    @staticmethod
    def compare(before: Mapping[str, Floats], after: Mapping[str, Floats]) -> dict[str, Floats]:
        """``extra_profit``, ``extra_refusal_rate``, ``extra_approvals``, ``relative_profit`` (1: the same).

        That is NaN where the status quo's is 0 or less: a share of a loss, or of nothing, says nothing.
        """
        extra = {f"extra_{name}": after[name] - before[name] for name in _COMPARED}
        return extra | {"relative_profit": share(after["profit"], before["profit"])}

    @staticmethod
    def rates(parts: Mapping[str, Floats], wanted: Floats, population: Floats) -> dict[str, Floats]:
        """Accuracy, recall, and who is refused or let in wrongly, as shares."""
        missed, wrong = parts["wrong_refusals"], parts["wrong_approvals"]
        return decision_rates(population, wanted, missed, wrong, missed_rate=_CALLED[2])


@named("lending")
@dataclass(frozen=True, eq=False)
class Lending(ScoredProgram):
    """Loans for those whose predicted chance to repay is above ``threshold``.

    The profit of an applicant with amount l, revenue r and interest i is, as in the paper,

    1. 0, if she is refused and would not have repaid;
    2. r, if she gets the loan and repays;
    3. −(l + i), if she gets it and does not repay;
    4. −r, if she is refused and would have repaid.

    Case 4 counts revenue that was only missed; ``cash`` leaves it out. ``chance`` is the accuracy of the same
    answer for everybody, the better of the two.

    Args:
        repaid: 1 for people who repaid, or would have, 0 for the others.
        loans: What is at stake; None if it is not known. Then people can be chosen by their chances, and
            nothing is said of money.
        threshold: A loan is given above this chance to repay, between 0 and 1.
        population: How many people the table stands for; by default its own.
        groups: Columns by which every figure is also given, each with a value for every person.
        model: What predicts who repays.
        clusters: Whom a survey drew together, a value for every person: intervals know it.
        strata: Within which it drew them, a value for every person.

    Raises:
        ValueError: ``repaid`` has other values, a number is outside its range, or there are not as many loans
            as people.

    Example:
        >>> program = Lending([1, 1, 0], loans_at_rates([100.0] * 3, revenue=0.2, interest=0.02))
        >>> result = program.judge([0.9, 0.4, 0.6])
        >>> result["profit"], result["cash"]
        (-102.0, -80.0)
    """

    objective = Objective(
        "profit", "largest", subject="The lender's profit",
        money=("profit", "extra_profit", "cash", "lent"),
        by_group=(("extra_profit", "change of profit"), ("extra_approvals", "loans")),
        rate=MissedRate("refusal_rate", "wrong_refusals", "of those who would repay are refused"),
        payer="the lender",
        today="The lender decides about {population} people, lends to {approvals} of them today, and makes "
        "{profit}.",
    )  # fmt: skip
    task = "classification"
    chosen_are = "above"
    words = DecisionWords(
        given="loan", article="a loan", counts="Counts and money", blind="The same answer for everybody",
        outcome="{right:,.0f} of them repay, and {missed:,.0f} who would repay get none",
    )  # fmt: skip

    repaid: Floats = field(repr=False)
    loans: Loans | None = field(repr=False)
    threshold: float = 0.5
    population: float | None = None
    groups: Mapping[str, Sequence[Any]] | None = field(default=None, repr=False)
    model: Model = field(default_factory=Logistic)
    clusters: Sequence[Any] | None = field(default=None, repr=False)
    strata: Sequence[Any] | None = field(default=None, repr=False)
    people: People = field(init=False, repr=False)
    low_risk: Truths = field(init=False, repr=False)
    chance: float = field(init=False)
    _good_weight: Floats = field(init=False, repr=False)
    _ranks: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        y = values_of("repaid", self.repaid)
        if not ((y == 0) | (y == 1)).all():
            other = float(y[(y != 0) & (y != 1)][0])
            raise ValueError(
                f"repaid has the value {other!r}: give 1 for people who repaid, 0 for the others"
            )
        if self.loans is not None:
            check.instance("loans", self.loans, Loans)
            if len(self.loans.amount) != len(y):
                raise ValueError(
                    f"loans has {len(self.loans.amount):,} entries: repaid has {len(y):,} people"
                )
        people = people_of(
            len(y), groups=self.groups, population=self.population, clusters=self.clusters, strata=self.strata
        )
        weight = people.weight_of(y == 1)
        good = float(weight[0] / people.count)
        set_fields(
            self,
            repaid=y,
            threshold=check.number("threshold", self.threshold, above=0, below=1),
            population=None if self.population is None else people.population,
            people=people,
            low_risk=y == 1,
            chance=max(good, 1 - good),
            _good_weight=weight,
            _ranks=places(y, people),
        )

    @property
    def outcomes(self) -> Floats:
        """Whether a loan was repaid."""
        return self.repaid

    @property
    def money(self) -> Loans:
        """What is at stake, where it is known."""
        if self.loans is None:
            raise ValueError(
                "loans = None: a profit needs amount, revenue and interest of each loan; give them as Loans, "
                "or as [loans] in a program file"
            )
        return self.loans

    def judge(
        self,
        scores: Any,
        rng: np.random.Generator | None = None,
        folds: Folds | None = None,  # noqa: ARG002 (everybody is held against one threshold)
    ) -> LendingResult:
        """The result of lending to those whose score (chance to repay) is above the threshold.

        Neither ``rng`` nor ``folds`` is needed: everybody is held against one threshold, and someone exactly
        at it is refused. ``ties`` counts those people.
        """
        check.generator(rng)
        people, good, loans = self.people, self.low_risk, self.money
        scores = settled(values_of("scores", scores, people.count))
        approved = scores > self.threshold
        bad_loan, missed = approved & ~good, ~approved & good
        # Each applicant's profit, by the four cases, and what of it is cash.
        earned = loans.revenue * (approved & good)
        profit = earned - (loans.amount + loans.interest) * bad_loan - loans.revenue * missed
        cash = earned - loans.amount * bad_loan
        wrong, refused = people.weight_of(bad_loan), people.weight_of(missed)
        auc, _ = rank_agreement(scores, np.argsort(scores), good, self._ranks, people)
        sums, each = people.groups.sums, people.each
        figures = decision_figures(people, self._good_weight, refused, wrong, called=_CALLED) | {
            "auc": auc,
            "wrong_approvals": wrong * each,
            "wrong_refusals": refused * each,
            "lent": sums(loans.amount * approved) * each,
            "profit": sums(profit) * each,
            "cash": sums(cash) * each,
            "break_even_revenue": self._break_even(approved),
        }
        at_stake = np.where(good, 2 * loans.revenue, -loans.amount - loans.interest)
        parts = {
            "approvals": Contribution(ones(approved), np.ones(people.count)),
            "wrong_approvals": Contribution(ones(bad_loan), ones(~good)),
            "wrong_refusals": Contribution(ones(missed), -ones(good)),
            "lent": Contribution(loans.amount * approved, loans.amount),
            "profit": Contribution(profit, at_stake),
            "cash": Contribution(cash, np.where(good, loans.revenue, -loans.amount)),
        }
        ties = int((scores == self.threshold).sum())
        return LendingResult(people, scores, approved, ties, None, figures, parts, wanted=good)

    def part(self, places: Integers, population: float) -> "Lending":
        """Loans for some of its people, with the same threshold."""
        loans = None if self.loans is None else self.loans.of(places)
        return Lending(
            self.repaid[places], loans, self.threshold, population, groups_of(self.groups, places), self.model
        )

    def line(self) -> None:
        """None: people repay or do not."""
        return

    def as_scores(self, chances: Floats) -> Floats:
        """A score is a chance to repay."""
        return chances

    def choose(self, chances: Floats, rng: np.random.Generator) -> Truths:  # noqa: ARG002
        """All with a chance to repay above the threshold."""
        return np.asarray(chances > self.threshold)

    def high(self, weights: Floats | None = None) -> Truths:  # noqa: ARG002
        """Who repays."""
        return self.low_risk

    def errors(self, low: Floats, high: Floats, expected: ExpectedShares) -> tuple[float, float]:
        """Loans that are not repaid, and people who would repay and get none.

        Whoever lends reads chances off what is expected, whatever the truth is.
        """
        bad, good = expected()
        lent = good > self.threshold * (good + bad)
        return float(low[lent].sum()), float(high[~lent].sum())

    @property
    def share_chosen(self) -> None:
        """None: whoever is likely enough to repay gets a loan."""
        return

    @property
    def lowest_odds(self) -> float:
        """The threshold as log-odds."""
        return math.log(self.threshold / (1 - self.threshold))

    def figures_by_chance(self, chosen: Floats, weights: Floats) -> dict[str, float]:
        """``accuracy``, ``wrong_approvals``, ``wrong_refusals`` and, if loans are known, ``profit``."""
        good = self.low_risk
        wrong, missed = weights * ~good * chosen, weights * good * (1 - chosen)
        figures = self.expected_figures(good, weights, float(wrong.sum()), float(missed.sum()))
        if self.loans is None:
            return figures
        loans = self.loans
        lent = np.where(good, loans.revenue, -loans.amount - loans.interest)
        refused = np.where(good, -loans.revenue, 0.0)
        profit = float((weights * (chosen * lent + (1 - chosen) * refused)).sum())
        return figures | {"profit": profit * self.people.population}

    def expected_figures(
        self, high: Truths, weights: Floats, let_in: float, left_out: float
    ) -> dict[str, float]:
        """``accuracy``, ``wrong_approvals``, ``wrong_refusals`` and, if loans are known, ``profit``."""
        population = self.people.population
        figures = {
            "accuracy": 1 - let_in - left_out,
            "wrong_approvals": let_in * population,
            "wrong_refusals": left_out * population,
        }
        if self.loans is None:
            return figures
        loans = self.loans
        good, bad = np.where(high, weights, 0.0), np.where(high, 0.0, weights)
        # Money of the mean person of a kind: whoever is decided about wrongly need not be that one.
        revenue = float((good * loans.revenue).sum())
        lost = float((bad * (loans.amount + loans.interest)).sum()) / max(float(bad.sum()), 1e-300)
        missed = 2 * revenue * left_out / max(float(good.sum()), 1e-300)
        return figures | {"profit": (revenue - missed - lost * let_in) * population}

    def _break_even(self, approved: Truths) -> Floats:
        """If every revenue were t times what it is, the profit would be 0 at this t; in revenue per amount.

        t·(Σ revenue let in − Σ revenue turned away) = Σ (amount + interest) not repaid. Where nobody's loan
        has any revenue, there is nothing to multiply: then t is a rate of the amount, the same for all. So it
        is the limit of ever smaller rates, which all have the same t·(revenue per amount).
        """
        sums, loans, good = self.people.groups.sums, self.money, self.low_risk
        revenue = loans.revenue if loans.revenue.any() else loans.amount
        gained = sums(revenue * good * np.where(approved, 1.0, -1.0))
        lost = sums((loans.amount + loans.interest) * (approved & ~good))
        return share(lost, gained) * share(sums(revenue), sums(loans.amount))

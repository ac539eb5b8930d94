"""Aid with a quota (the paper's program in Togo): the people who are predicted to be poorest get it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from targetdp import check
from targetdp.programs.base import Model, Part, Program, Result, ones, share
from targetdp.programs.people import People, people_of, values_of
from targetdp.programs.ranking import Truths, at_or_below, lowest, places, rank_agreement, settled
from targetdp.programs.ridge import Ridge
from targetdp.typing import Floats

QUOTA = 0.29
"""Of the paper: the budget of Togo's Novissi program."""
TOGO_ADULTS = 4_950_000
"""People of at least 15 years in Togo, as the paper estimates them."""


@dataclass(frozen=True)
class Welfare:
    """How much good a transfer does: constant relative risk aversion (CRRA).

    Someone who consumes c has utility u(c) = c^(1−ρ)/(1−ρ), or ln c for ρ = 1. Everyone who is eligible
    gets ``transfer``, in the units of consumption. ρ (``aversion``) says how fast an additional unit loses
    its value to richer people: at ρ = 3, common in studies of targeting, it is worth 8 times less to someone
    with twice the consumption; at ρ = 0 it is worth the same to all.
    """

    transfer: float
    aversion: float = 3.0

    def __post_init__(self) -> None:
        transfer = check.number("transfer", self.transfer, above=0, remedy="in the units of consumption")
        aversion = check.number("aversion", self.aversion, at_least=0, at_most=20)
        object.__setattr__(self, "transfer", transfer)
        object.__setattr__(self, "aversion", aversion)

    def gains(self, consumption: Floats) -> Floats:
        """u(c + transfer) − u(c) of each person."""
        if not (consumption > 0).all():
            raise ValueError(
                f"consumption has {int((consumption <= 0).sum()):,} values that are not above 0: CRRA "
                "utility needs positive consumption; leave welfare out, or correct them"
            )
        power = 1 - self.aversion
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond all floats is refused below
            ratio = self.transfer / consumption
            far = math.log(self.transfer) - np.log(consumption)  # ln(1 + ratio), where ratio is no float
            grown = np.where(np.isinf(ratio), far, np.log1p(ratio))
            # In units of the poorest person's: c^(1−ρ) alone may be larger than any float.
            size = np.exp(power * (np.log(consumption) - math.log(consumption.min())))
            gains = grown if power == 0 else size * np.expm1(power * grown) / power
            countable = np.isfinite(gains.max() * len(gains) ** 2)  # weighted sums stay finite, too
        if not countable:
            raise ValueError(
                f"transfer = {self.transfer!r} is too large for aversion = {self.aversion!r}: with such "
                "consumption the gain in utility is larger than any number here; give what one person gets, "
                "in the units of consumption"
            )
        return np.asarray(gains)


@dataclass(frozen=True, eq=False)
class AidResult(Result):
    """Who would get aid, and who would be left out.

    Metrics: ``people`` of the table; ``population`` that they stand for; ``poor`` and ``eligible`` among
    those; ``accuracy``; ``false_positive_rate`` (of those who are not poor, the share that gets aid);
    ``precision`` (of those who get it, the share that is poor); ``recall`` (of the poor, the share that gets
    it); ``auc`` (the chance that a poor person is predicted to consume less than another); ``spearman`` (of
    predicted with actual consumption); ``exclusion_errors`` (poor people without aid) and
    ``inclusion_errors`` (others with it); and, if it was asked for, ``welfare``: the gain in utility as a
    share of what giving the same aid to the poorest would gain (a group may get more than that, at the cost
    of others).
    """

    headline: ClassVar[str] = "exclusion_errors"
    counted: ClassVar[str] = "poor people who are left out"

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

    def against(self, status_quo: Result) -> dict[str, Floats]:
        """``extra_exclusion_errors``: poor people who are left out beyond those of the status quo."""
        before, after = status_quo.figures["exclusion_errors"], self.figures["exclusion_errors"]
        return {"extra_exclusion_errors": np.asarray(after - before)}


@dataclass(frozen=True, eq=False)
class Aid(Program):
    """Aid for the share ``quota`` of people who are predicted to be poorest.

    Consumption is predicted by cross-validation. Eligible are exactly round(quota·n) people, those with the
    lowest predictions; poor are those whose true ``consumption`` is at or below that of the round(quota·n)-th
    poorest. As many get aid as are poor, so precision = recall, exclusion errors = inclusion errors, and
    accuracy = 1 − 2q(1 − recall): a loss of one point of accuracy is half a point of people left out.

    ``population`` is how many people the table stands for, ``weights`` how many each person does, relative to
    the others (a survey's weights; they count in the fit, in the quota and in every metric).

    ``chance`` is the accuracy of a lottery with the same quota: 1 − p − q + 2pq, p of the people being poor.

    Edges: people tied in consumption at the poverty line are all poor, so there may be more of them than
    places. Metrics of a share of nobody are NaN.
    """

    kind: ClassVar[str] = "aid"

    consumption: Floats = field(repr=False)
    quota: float = QUOTA
    population: float | None = None
    weights: Floats | None = field(default=None, repr=False)
    groups: Mapping[str, Sequence[Any]] | None = field(default=None, repr=False)
    model: Model = field(default_factory=Ridge)
    welfare: Welfare | None = None
    people: People = field(init=False, repr=False)
    poor: Truths = field(init=False, repr=False)
    chance: float = field(init=False)
    _poor_weight: Floats = field(init=False, repr=False)
    _ranks: Floats = field(init=False, repr=False)
    _gains: Floats | None = field(init=False, repr=False)
    _best_gains: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        y = values_of("consumption", self.consumption)
        quota = check.number("quota", self.quota, above=0, below=1, remedy="the share of people who get aid")
        people = people_of(len(y), groups=self.groups, weights=self.weights, population=self.population)
        poor = at_or_below(y, quota, people)
        weight = people.weight_of(poor)
        p = float(weight[0] / people.totals[0])
        gains = np.zeros(len(y)) if self.welfare is None else self.welfare.gains(y) * people.weights
        # Of people with equal consumption it does not matter who would be chosen by perfect targeting.
        best = lowest(y, np.argsort(y), quota, people, np.random.default_rng(0)).who
        fields = {
            "consumption": y,
            "quota": quota,
            "population": None if self.population is None else people.population,
            "people": people,
            "poor": poor,
            "chance": 1 - p - quota + 2 * p * quota,
            "_poor_weight": weight,
            "_ranks": places(y, people),
            "_gains": None if self.welfare is None else gains,
            "_best_gains": people.groups.sums(gains * best),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def outcomes(self) -> Floats:
        """Consumption."""
        return self.consumption

    def judge(self, scores: Any, rng: np.random.Generator | None = None) -> AidResult:
        """The result of giving aid to those with the lowest scores (predicted consumption)."""
        people, poor = self.people, self.poor
        scores = settled(values_of("scores", scores, people.count))
        rng = check.generator(rng) or np.random.default_rng()
        order = np.argsort(scores)
        chosen = lowest(scores, order, self.quota, people, rng)
        eligible = chosen.who
        out, wrong = poor & ~eligible, eligible & ~poor
        everyone, are_poor, each = people.totals, self._poor_weight, people.each
        left_out, let_in = people.weight_of(out), people.weight_of(wrong)
        helped = np.maximum(are_poor - left_out, 0.0)
        others_first, spearman = rank_agreement(scores, order, poor, self._ranks, people)
        figures = {
            "people": people.counts,
            "population": everyone * each,
            "poor": are_poor * each,
            "eligible": (helped + let_in) * each,
            "accuracy": share(everyone - left_out - let_in, everyone),
            "false_positive_rate": share(let_in, everyone - are_poor),
            "precision": share(helped, helped + let_in),
            "recall": share(helped, are_poor),
            "auc": 1 - others_first,
            "spearman": spearman,
            "exclusion_errors": left_out * each,
            "inclusion_errors": let_in * each,
        }
        if self._gains is not None:
            gained = people.groups.sums(self._gains * eligible)
            figures["welfare"] = share(gained, self._best_gains)
        parts = {
            "eligible": Part(ones(eligible), np.ones(people.count)),
            "exclusion_errors": Part(ones(out), -ones(poor)),
            "inclusion_errors": Part(ones(wrong), ones(~poor)),
        }
        return AidResult(
            people=people,
            scores=scores,
            decisions=eligible,
            ties=chosen.ties,
            near=chosen.near,
            figures=figures,
            parts=parts,
            quota=self.quota,
            chance=self.chance,
        )

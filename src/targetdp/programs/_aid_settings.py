"""A program file for aid: its own fields, and what of a table it could use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field

from targetdp._files import toml_value
from targetdp.programs._aid import MOST_COST, QUOTA, Aid, QuotaRule
from targetdp.programs._measures import Truths, Welfare, highest
from targetdp.programs._proposal import Guess, ProgramTerms, target_named
from targetdp.programs._settings import (
    Currency,
    Name,
    PlainWords,
    ProgramColumns,
    ProgramSection,
    ProgramSettings,
    Share,
    settings_of,
)
from targetdp.table import TableProfile, first_named


class WelfareTerms(ProgramSection):
    """CRRA utility, for the social welfare of a transfer."""

    transfer: Annotated[float, Field(gt=0)] = Field(description="what someone gets, in units of the target")
    aversion: Annotated[float, Field(ge=0, le=20)] = Field(3.0, description="ρ: how much poverty weighs")


class TransferTerms(ProgramSection):
    """What aid costs whoever gives it, for figures in money."""

    cost: Annotated[float, Field(gt=0, le=MOST_COST)] = Field(description="what one transfer costs")
    currency: Currency = Field(description="of the cost, as people write it: $, NGN, €")


@settings_of(Aid)
class AidSettings(ProgramSettings):
    """Aid for the share of people who are predicted to be poorest."""

    model_config = ConfigDict(title="targetdp aid program")
    task = Aid.task
    given = Aid.words.given

    kind: Literal["aid"]
    quota: Share = Field(description="the share of people who get aid")
    quota_rule: QuotaRule = Field(
        "once",
        description="once: one quota for all people; per fold: one in each part of the cross-validation, as "
        "the paper's authors do",
    )
    estimator: Name = Field(
        "ridge", description="ridge, or the path of a regressor of scikit-learn or LightGBM"
    )
    weights: Name | None = Field(None, description="the column of survey weights")
    counted: PlainWords = Field("people", description="what a row is, in the plural: people, households")
    transfer: TransferTerms | None = Field(
        None, description="adds what aid costs, and what of it goes to people who are not poor"
    )
    welfare: WelfareTerms | None = Field(None, description="adds social welfare to the metrics")

    @property
    def unit(self) -> str:
        """What the program's figures are counted in."""
        return self.counted

    @property
    def money(self) -> str | None:
        """The currency of a transfer's cost."""
        return None if self.transfer is None else self.transfer.currency

    def _not_features(self) -> list[str]:
        return [] if self.weights is None else [self.weights]

    def own_columns(self) -> tuple[list[str], list[str]]:
        """The target and, if they are named, survey weights, as numbers."""
        return [self.target, *self._not_features()], []

    def choose(self, yes: Truths, rng: np.random.Generator) -> Truths:
        """Exactly the quota: lots among the yes if there are too many, among the no if there are too few."""
        return highest(yes.astype(np.float64), round(self.quota * len(yes)), rng)

    def program(self, columns: ProgramColumns, groups: Mapping[str, Sequence[str]]) -> Aid:
        """The aid program of columns that were read."""
        y, model = columns.numbers[self.target], self.model()
        weights = None if self.weights is None else columns.numbers[self.weights]
        welfare = None if self.welfare is None else Welfare(self.welfare.transfer, self.welfare.aversion)
        return Aid(
            y, self.quota, self.population, weights, groups, model, welfare, self.quota_rule,
            **self.survey_design(columns), cost=None if self.transfer is None else self.transfer.cost,
        )  # fmt: skip


_TARGETS = ("y", "target", "consumption", "expenditure", "income", "wealth", "welfare")
_WEIGHTS = ("weight", "weights", "hhweight", "survey_weight")


@dataclass(frozen=True)
class AidGuess(Guess, kind="aid"):
    """A column of survey weights, if there is one."""

    estimators: ClassVar[tuple[str, str]] = ("ridge", "sklearn.ensemble.GradientBoostingRegressor")

    weights: str | None = None

    @classmethod
    def target(cls, profile: TableProfile) -> str:
        """A number that is not the same for everybody."""
        wanted = [column for column in profile.numbers() if column.different > 1]
        return target_named(_TARGETS, wanted, "consumption, or whatever says who is poor", profile)

    @classmethod
    def of(cls, profile: TableProfile, *_: object) -> "AidGuess":
        """Look for weights by their name."""
        return cls(first_named(_WEIGHTS, profile.numbers()))

    @property
    def columns(self) -> dict[str, str]:
        """Survey weights are no feature."""
        return {} if self.weights is None else {self.weights: "survey weights"}

    def lines(self, target: str, terms: ProgramTerms) -> list[str]:  # noqa: ARG002
        """Quota and weights."""
        if terms.quota is None:
            quota = terms.line("quota", QUOTA, "the paper's; put yours")
        else:
            quota = terms.line("quota", terms.quota)
        weights = [] if self.weights is None else [terms.line("weights", self.weights, "survey weights")]
        return [quota, *weights, '# counted = "households"  # what a row is; default: people']

    def tables(self, terms: ProgramTerms) -> list[str]:
        """What a transfer costs and welfare, to be asked for."""
        currency = toml_value(terms.currency or "…")
        return [
            "",
            "# [transfer]  # adds what aid costs, and what of it goes to people who are not poor",
            "# cost = 1.0  # of one transfer",
            f"# currency = {currency}  # as people write it, such as $ or NGN",
            "",
            "# [welfare]  # adds social welfare (CRRA utility) to the metrics",
            "# transfer = 1.0  # what an eligible person gets, in units of the target",
            "# aversion = 3.0",
        ]

"""A program file for lending: its own fields, and what of a table it could use: money, and who repaid."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow.compute as pc
from pydantic import ConfigDict, Field

from targetdp._core import Floats
from targetdp._files import toml_value
from targetdp.programs._lending import Lending, Loans, loans_at_rates
from targetdp.programs._proposal import Guess, ProgramTerms, target_named, whole, words_of
from targetdp.programs._settings import (
    Currency,
    Name,
    ProgramColumns,
    ProgramSection,
    ProgramSettings,
    Share,
    settings_of,
)
from targetdp.table import Column, TableProfile, first_named

_Money = Name | Annotated[float, Field(ge=0, allow_inf_nan=False)]


class LoanTerms(ProgramSection):
    """What is at stake in a loan: columns of the table, or rates of the amount."""

    amount: _Money = Field(description="l: the column of amounts, or one amount for all")
    revenue: _Money = Field(description="r, if the loan is repaid: a column, or a rate of the amount")
    interest: _Money = Field(description="i that the amount earns elsewhere: a column, or a rate of it")


@settings_of(Lending)
class LendingSettings(ProgramSettings):
    """Loans for those who are predicted to repay."""

    model_config = ConfigDict(title="targetdp lending program")
    task = Lending.task
    given = Lending.words.given
    evaluated_with = (*ProgramSettings.evaluated_with, "loans", "currency")
    together = (("loans", "currency"),)

    kind: Literal["lending"]
    loans: LoanTerms | None = Field(
        None, description="what is at stake; needed with a table, and for a profit to be expected of scores"
    )
    repaid: int | float | str = Field(1, description="the value of the target that means: repaid")
    threshold: Share = Field(0.5, description="a loan is given above this predicted chance to repay")
    estimator: Name = Field(
        "logistic", description="logistic, or the path of a classifier of scikit-learn or LightGBM"
    )

    currency: Currency | None = Field(
        None, description="of amounts and profit, as people write it: $, NGN, €; needed with loans"
    )

    @property
    def unit(self) -> str:
        """What the program's figures are counted in: money, where it is known."""
        return self.currency or super().unit

    @property
    def money(self) -> str | None:
        """The currency of the loans."""
        return self.currency

    def _not_features(self) -> list[str]:
        """An amount is asked for before the decision; what it earns hangs on it."""
        return [] if self.loans is None else _columns(self.loans.revenue, self.loans.interest)

    def own_columns(self) -> tuple[list[str], list[str]]:
        """Columns of money as numbers, and the target as what the value that means repaid is."""
        loans = self.loans
        money = [] if loans is None else _columns(loans.amount, loans.revenue, loans.interest)
        return (money, [self.target]) if isinstance(self.repaid, str) else ([*money, self.target], [])

    def program(self, columns: ProgramColumns, groups: Mapping[str, Sequence[str]]) -> Lending:
        """The lending program of columns that were read."""
        name, value = self.target, self.repaid
        if isinstance(value, str):
            text = columns.texts[name]
            values = pc.unique(text).to_pylist()
            repaid = np.asarray(pc.equal(text, value).to_numpy(zero_copy_only=False))
        else:
            values = np.unique(columns.numbers[name]).tolist()
            repaid = columns.numbers[name] == value
        if len(values) > 2 or value not in values:
            shown = ", ".join(map(repr, values[:5])) + (", …" if len(values) > 5 else "")
            raise ValueError(
                f"target {name!r} has the values {shown}: it must have two, one of them repaid = {value!r}; "
                "say which value means repaid"
            )
        return Lending(
            repaid.astype(np.float64), self._loans(columns.numbers, len(repaid)), self.threshold,
            self.population, groups, self.model(), **self.survey_design(columns),
        )  # fmt: skip

    def _loans(self, numbers: Mapping[str, Floats], count: int) -> Loans | None:
        if self.loans is None:
            return None
        amount, revenue, interest = (
            numbers[given] if isinstance(given, str) else given
            for given in (self.loans.amount, self.loans.revenue, self.loans.interest)
        )
        amounts = np.full(count, amount) if isinstance(amount, float) else amount
        return loans_at_rates(amounts, revenue=revenue, interest=interest)


def _columns(*money: str | float) -> list[str]:
    """Those that are columns, each once; the others are rates."""
    return list(dict.fromkeys(given for given in money if isinstance(given, str)))


# What `program init` guesses: amounts, revenue and interest, and which value means repaid.

_TARGETS = (
    "y", "target", "repaid", "repayment", "paid", "low_risk", "good", "good_risk", "creditworthy",
    "no_default", "status", "default", "defaulted", "delinquent", "delinquency", "arrears", "in_arrears",
    "not_repaid", "unpaid", "bad", "bad_risk", "high_risk",
)  # fmt: skip
_AMOUNTS = ("amount", "loan_amount", "loan", "principal", "credit_amount")

_REVENUES = ("revenue", "revenues", "loan_revenue", "revenue_amount")
_INTERESTS = ("interest", "loan_interest", "interest_amount")

_RATES, _AMOUNTS_REACH = 1.0, 100.0
"""A column that stays below the first is of rates, not of money, where amounts reach the second."""

REVENUE, INTEREST = 0.15, 0.02
"""Where nobody said otherwise; of these the paper prints only the quota."""

_KNOWN_AFTERWARDS = {
    "revenue", "revenues", "interest", "profit", "profits", "loss", "losses", "margin", "fee", "fees",
    "penalty", "penalties", "paid", "unpaid", "repaid", "repayment", "repayments", "recovered", "collected",
    "arrears", "overdue", "default", "defaulted", "delinquent", "delinquency", "chargeoff", "writeoff",
}  # fmt: skip
"""Words that tell how a loan ended."""

_REPAID = {
    "repaid", "repay", "repays", "repayment", "paid", "good", "performing", "creditworthy", "solvent",
    "settled", "success", "successful", "ok",
}  # fmt: skip
_NOT_REPAID = {
    "default", "defaults", "defaulted", "defaulter", "bad", "delinquent", "delinquency", "arrears", "late",
    "overdue", "nonpayment", "npl", "loss", "off", "chargeoff", "writeoff", "missed", "failed", "failure",
    "insolvent", "bankrupt",
}  # fmt: skip
_RISK = {"risk", "risky"}
_NEGATIONS = {"no", "not", "non", "never", "without", "low"}
_NEGATING_PREFIXES = ("non", "not", "no", "un")


@dataclass(frozen=True)
class LendingGuess(Guess, kind="lending"):
    """Columns and rates of loans; ``reasons`` say why a column that looked so was not taken.

    ``revenue`` and ``interest`` are a column or a rate; None if nothing is known of them. ``repaid`` is the
    value of the target that means so.
    """

    estimators: ClassVar[tuple[str, str]] = ("logistic", "sklearn.ensemble.GradientBoostingClassifier")

    amount: str
    revenue: float | str | None
    interest: float | str | None
    reasons: dict[str, str] = field(default_factory=dict)
    repaid: float | str = 1
    repaid_is_guessed: bool = False

    @classmethod
    def target(cls, profile: TableProfile) -> str:
        """A column of two values."""
        wanted = [column for column in profile.columns if column.different in {1, 2} and not column.missing]
        return target_named(_TARGETS, wanted, "repayment, two values", profile)

    @classmethod
    def of(
        cls,
        profile: TableProfile,
        target: str,
        taken: Collection[str | None],
        given: Mapping[str, str | None],
    ) -> "LendingGuess":
        """Find the money of a table: ``amount``, ``revenue``, ``interest``; and who ``repaid``."""
        money = given.get("amount") or first_named(_AMOUNTS, profile.numbers())
        if money is None:
            raise ValueError(
                f"amount could not be guessed: say which column has the loans (--amount); {profile.shown}"
            )
        terms: dict[str, float | str | None] = {}
        reasons: dict[str, str] = {}
        for what, likely in (("revenue", _REVENUES), ("interest", _INTERESTS)):
            if (stated := given.get(what)) is not None:
                terms[what] = _column_or_rate(what, stated, profile)
                continue
            free = [column for column in profile.numbers() if column.name not in {money, *taken}]
            terms[what] = name = first_named(likely, free)
            if name is not None and (reason := _why_not(profile[name], profile[money])) is not None:
                terms[what], reasons[name] = None, reason
        stated = given.get("repaid")
        repaid = _repaid(profile, target, stated)
        return cls(money, terms["revenue"], terms["interest"], reasons, repaid, stated is None)

    @property
    def columns(self) -> dict[str, str]:
        """What each of its columns is."""
        named = {"amount": self.amount, "revenue": self.revenue, "interest": self.interest}
        return {name: f"the {what}" for what, name in named.items() if isinstance(name, str)}

    def doubtful(self, names: Collection[str]) -> dict[str, str]:
        """Columns whose name says how a loan ended, and those that look like money and are none."""
        why = "by its name it is known only after the decision, or hangs on it"
        return dict.fromkeys(filter(is_known_afterwards, names), why) | self.reasons

    def lines(self, target: str, terms: ProgramTerms) -> list[str]:
        """Who repaid, the threshold, the currency."""
        repaid = self.repaid if isinstance(self.repaid, str) else whole(self.repaid)
        guessed = f" (a guess, from the name {toml_value(target)})" if self.repaid_is_guessed else ""
        if terms.currency is None:
            raise ValueError(
                "currency is not in the table: say what its money is in (--currency), such as $ or NGN"
            )
        return [
            terms.line("repaid", repaid, f"the value of the target that means: repaid{guessed}"),
            "threshold = 0.5  # a loan is given above this predicted chance to repay",
            terms.line("currency", terms.currency, "of amounts and profit"),
        ]

    def tables(self, terms: ProgramTerms) -> list[str]:
        """The loans."""
        lines = ["", "[loans]  # columns, or rates of the amount", terms.line("amount", self.amount)]
        for name, given, assumed, meaning in (
            ("revenue", self.revenue, REVENUE, "what the lender makes if the loan is repaid"),
            ("interest", self.interest, INTEREST, "what the amount would earn elsewhere"),
        ):
            comment = ""
            if given is None:
                comment = f"AN ASSUMPTION, {meaning}: the paper prints none; put yours"
            elif isinstance(given, str):
                comment = f"a column of money: {meaning}"
            lines.append(terms.line(name, assumed if given is None else given, comment))
        return lines


def _repaid(profile: TableProfile, target: str, given: str | None) -> float | str:
    """Which value of the target means that a loan was repaid."""
    column = profile[target]
    if given is not None:
        if column.kind == "yes-or-no" and given.lower() in {"true", "false"}:
            return given.lower()
        if column.is_number and not math.isfinite(_number(given)):
            raise ValueError(
                f"repaid = {given!r} is no finite number: target {target!r} has numbers; give one"
            )
        return _number(given) if column.is_number else given
    ask = "say which value means that a loan was repaid (--repaid)"
    if not column.is_number:
        raise ValueError(f"target {target!r} is text: {ask}")
    if not {column.lowest, column.highest} <= {0.0, 1.0}:
        raise ValueError(f"target {target!r} has other values than 0 and 1: {ask}")
    good = one_means_repaid(target)
    if good is None:
        raise ValueError(f"target {target!r}: its name does not tell what a 1 means; {ask}")
    return 1 if good else 0


def _column_or_rate(what: str, given: str, profile: TableProfile) -> float | str:
    if given in profile.names():
        if not profile[given].is_number:
            raise ValueError(f"{what} = {given!r} is a column of text: give one of money, or a rate")
        return given
    rate = _number(given)
    if not (math.isfinite(rate) and rate >= 0):
        raise ValueError(
            f"{what} = {given!r} is neither a column nor a rate of 0 or more: 0.15 is 15% of the amount; "
            f"{profile.shown}"
        )
    return rate


def _why_not(column: Column, amounts: Column) -> str | None:
    """Why a column that is named like money is none that a lender earns; None if it may be."""
    if (column.lowest or 0.0) < 0:
        return "has values below 0, which no revenue or interest has"
    if (column.highest or 0.0) <= _RATES and (amounts.highest or 0.0) >= _AMOUNTS_REACH:
        return "looks like rates, not like money: multiply it by the amount to use it"
    return None


def _number(given: str) -> float:
    """A number that somebody wrote; NaN if it is none."""
    try:
        return float(given)
    except ValueError:
        return math.nan


def is_known_afterwards(name: str) -> bool:
    """Whether a name has a word such as revenue in it."""
    return any(word in _KNOWN_AFTERWARDS for word in words_of(name))


def one_means_repaid(name: str) -> bool | None:
    """Whether a 1 under this name means that a loan was repaid; None if the name does not say.

    ``no_default``, ``low_risk`` and ``repaid`` do, ``default``, ``delinquent`` and ``unpaid`` mean the
    opposite, and ``status`` or ``paid_late`` may mean anything.
    """
    words = words_of(name)
    verdicts = {_verdict(words, place) for place in range(len(words))} - {None}
    if not verdicts:  # risk says something only where nothing else does: a good risk is a good one
        verdicts = {_negated(words, place) for place, word in enumerate(words) if word in _RISK}
    return verdicts.pop() if len(verdicts) == 1 else None


def _verdict(words: list[str], place: int) -> bool | None:
    """What one word says of repayment, together with every "no" before it."""
    word, turned = words[place], _negated(words, place)
    for prefix in _NEGATING_PREFIXES:
        rest = word.removeprefix(prefix)
        if rest != word and rest in _REPAID | _NOT_REPAID:
            word, turned = rest, not turned
            break
    if word in _REPAID:
        return not turned
    return turned if word in _NOT_REPAID else None


def _negated(words: list[str], place: int) -> bool:
    return sum(word in _NEGATIONS for word in words[:place]) % 2 == 1

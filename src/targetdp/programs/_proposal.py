"""What of a table a program could use: guesses from names and values, for a person to correct."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from targetdp.programs._column_names import is_known_afterwards, is_of_codes, one_means_repaid
from targetdp.table import Column, TableProfile, check_columns, first_named

# Loans: amounts, revenue and interest, and which value means: repaid.

_AMOUNTS = ("amount", "loan_amount", "loan", "principal", "credit_amount")


_MONEY = {
    "revenue": ("revenue", "revenues", "loan_revenue", "revenue_amount"),
    "interest": ("interest", "loan_interest", "interest_amount"),
}


_RATES, _AMOUNTS_REACH = 1.0, 100.0
"""A column that stays below the first is of rates, not of money, where amounts reach the second."""


@dataclass(frozen=True)
class LoanGuess:
    """Columns and rates of a lending program; ``reasons`` say why a column that looked so was not taken.

    ``revenue`` and ``interest`` are a column or a rate; None if nothing is known of them.
    """

    amount: str
    revenue: float | str | None
    interest: float | str | None
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, str]:
        """What each of its columns is."""
        named = {"amount": self.amount, "revenue": self.revenue, "interest": self.interest}
        return {name: f"the {what}" for what, name in named.items() if isinstance(name, str)}


def guess_loans(
    look: TableProfile,
    taken: Collection[str | None],
    *,
    amount: str | None,
    revenue: str | None,
    interest: str | None,
) -> LoanGuess:
    """Find the money of a table. ``taken`` are columns that have another part to play.

    ``revenue`` and ``interest``, if given, are the name of a column or a rate of the amount.
    """
    money = amount or first_named(_AMOUNTS, look.numbers())
    if money is None:
        raise ValueError(
            f"amount could not be guessed: say which column has the loans (--amount); {look.shown}"
        )
    terms: dict[str, float | str | None] = {}
    reasons: dict[str, str] = {}
    for what, given in (("revenue", revenue), ("interest", interest)):
        if given is not None:
            terms[what] = _given(what, given, look)
            continue
        free = [column for column in look.numbers() if column.name not in {money, *taken}]
        found = first_named(_MONEY[what], free)
        why = None if found is None else _why_not(look[found], look[money])
        terms[what] = found if why is None else None
        if found is not None and why is not None:
            reasons[found] = why
    return LoanGuess(money, terms["revenue"], terms["interest"], reasons)


def guess_repaid(look: TableProfile, target: str, given: str | None) -> float | str:
    """Which value of the target means that a loan was repaid."""
    column = look[target]
    if given is not None:
        return _number(given, target) if column.is_number else given
    ask = "say which value means that a loan was repaid (--repaid)"
    if not column.is_number:
        raise ValueError(f"target {target!r} is text: {ask}")
    if not {column.lowest, column.highest} <= {0.0, 1.0}:
        raise ValueError(f"target {target!r} has other values than 0 and 1: {ask}")
    good = one_means_repaid(target)
    if good is None:
        raise ValueError(f"target {target!r}: its name does not tell what a 1 means; {ask}")
    return 1 if good else 0


def _given(what: str, given: str, look: TableProfile) -> float | str:
    if given in look.names():
        if not look[given].is_number:
            raise ValueError(f"{what} = {given!r} is a column of text: give one of money, or a rate")
        return given
    try:
        rate = float(given)
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate >= 0):
        raise ValueError(
            f"{what} = {given!r} is neither a column nor a rate of 0 or more: 0.15 is 15% of the amount; "
            f"{look.shown}"
        )
    return rate


def _why_not(column: Column, amounts: Column) -> str | None:
    """Why a column that is named like money is none that a lender earns; None if it may be."""
    lowest, highest, most = (
        0.0 if value is None else value for value in (column.lowest, column.highest, amounts.highest)
    )
    if lowest < 0:
        return "has values below 0, which no revenue or interest has"
    if highest <= _RATES and most >= _AMOUNTS_REACH:
        return "looks like rates, not like money: multiply it by the amount to use it"
    return None


def _number(given: str, target: str) -> float:
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"repaid = {given!r} is no finite number: target {target!r} has numbers; give one")
    return value


# The whole proposal.

_IDS = ("id", "name", "person", "person_id", "subscriber", "subscriber_id", "phone", "hhid", "household_id")
_TARGETS = {
    "aid": ("y", "target", "consumption", "expenditure", "income", "wealth", "welfare"),
    "lending": (
        "y", "target", "repaid", "repayment", "paid", "low_risk", "good", "good_risk", "creditworthy",
        "no_default", "status", "default", "defaulted", "delinquent", "delinquency", "arrears", "in_arrears",
        "not_repaid", "unpaid", "bad", "bad_risk", "high_risk",
    ),
}  # fmt: skip
_WEIGHTS = ("weight", "weights", "hhweight", "survey_weight")
_GROUPS = ("sex", "gender", "region", "district", "prefecture", "urban", "rural", "age_group", "ethnicity")
_GROUP_MARK = "g_"
_MOST_GROUP_VALUES = 20
_MOST_LEVELS = 10
"""Up to so many whole numbers may be levels, whatever their name; more under the name of a code are codes."""


@dataclass(frozen=True)
class Proposal:
    """A program that a table could serve, and what was left out of it, with the reason.

    ``loans`` and ``repaid`` are a lending program's.
    """

    kind: str
    id: str | None
    target: str
    features: tuple[str, ...]
    groups: tuple[str, ...]
    left_out: dict[str, str]
    weights: str | None = None
    loans: LoanGuess | None = None
    repaid: float | str = 1
    repaid_is_guessed: bool = False


def propose(
    look: TableProfile,
    kind: str,
    *,
    id_column: str | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    amount: str | None = None,
    revenue: str | None = None,
    interest: str | None = None,
    repaid: str | None = None,
) -> Proposal:
    """Choose the columns that were not given. What cannot be guessed must be given.

    ``revenue`` and ``interest`` are the name of a column, or a rate of the amount.
    """
    single = {"id": id_column, "target": target, "amount": amount}
    given = {key: [name] for key, name in single.items() if name is not None}
    check_columns(look.names(), "the table", features=features or (), groups=groups or (), **given)
    name = id_column or _id(look)
    outcome = target or _target(look, kind)
    weights = first_named(_WEIGHTS, look.numbers()) if kind == "aid" else None
    loans = None
    if kind == "lending":
        busy = {name, outcome, *(features or ())}
        loans = guess_loans(look, busy, amount=amount, revenue=revenue, interest=interest)
    parts = ((name, "the id"), (outcome, "the target"), (weights, "survey weights"))
    taken = {column: part for column, part in parts if column is not None}
    if loans is not None:
        taken |= loans.columns
    chosen = tuple(groups) if groups is not None else _groups(look, set(taken))
    marked = [name for name in chosen if groups is not None or name.lower().startswith(_GROUP_MARK)]
    taken |= dict.fromkeys(marked, "a group")
    if loans is not None:
        why = "by its name it is known only after the decision, or hangs on it"
        taken = dict.fromkeys(filter(is_known_afterwards, look.names()), why) | loans.reasons | taken
    kept, left_out = (tuple(features), {}) if features is not None else _features(look, taken)
    return Proposal(
        kind=kind,
        id=name,
        target=outcome,
        features=kept,
        groups=chosen,
        left_out=left_out,
        weights=weights,
        loans=loans,
        repaid=guess_repaid(look, outcome, repaid) if kind == "lending" else 1,
        repaid_is_guessed=repaid is None,
    )


def _id(look: TableProfile) -> str | None:
    """A column that is different in every row; of numbers only one that is named like an id."""
    unique = [c for c in look.columns if c.different == look.rows and c.kind in {"text", "whole"}]
    named = [c for c in unique if c.name.lower() in _IDS or c.name.lower().endswith("_id")]
    return next((c.name for c in [*named, *(c for c in unique if c.kind == "text")]), None)


def _target(look: TableProfile, kind: str) -> str:
    wanted = (
        [c for c in look.numbers() if c.different > 1]
        if kind == "aid"
        else [c for c in look.columns if c.different in {1, 2} and not c.missing]
    )
    found = first_named(_TARGETS[kind], wanted)
    if found is None:
        what = "consumption, or whatever says who is poor" if kind == "aid" else "repayment, two values"
        raise ValueError(f"target could not be guessed: say which column has {what} (--target); {look.shown}")
    return found


def _groups(look: TableProfile, taken: set[str]) -> tuple[str, ...]:
    """Columns that are marked as groups; if none is, those of few values that are text or named like one."""
    free = [
        column for column in look.columns
        if column.name not in taken and column.different > 1 and "=" not in column.name
    ]  # fmt: skip
    marked = [column.name for column in free if column.name.lower().startswith(_GROUP_MARK)]
    few = [column for column in free if column.different <= _MOST_GROUP_VALUES]
    likely = [column.name for column in few if column.kind == "text" or column.name.lower() in _GROUPS]
    return tuple(marked or likely)


def _features(look: TableProfile, taken: dict[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    kept, left_out = [], {}
    for column in look.columns:
        if column.name in taken:
            left_out[column.name] = taken[column.name]
        elif not column.is_number:
            left_out[column.name] = "not a number: encode it to use it"
        elif _is_code(column):
            left_out[column.name] = "by its name its numbers are codes, not amounts: add it if they are not"
        elif column.missing:
            left_out[column.name] = "has missing values: declare a constant (impute) to use it"
        elif column.different < 2:
            left_out[column.name] = "the same in every row"
        else:
            kept.append(column.name)
    if not kept:
        raise ValueError(
            f"features could not be guessed: no column is left; say which (--features); {look.shown}"
        )
    return tuple(kept), left_out


def _is_code(column: Column) -> bool:
    return column.kind == "whole" and column.different > _MOST_LEVELS and is_of_codes(column.name)

"""What a table tells of its loans: amounts, revenue and interest, and which value means: repaid."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from targetdp.programs.look import Column, Look, first_named
from targetdp.programs.names import one_means_repaid

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
    look: Look,
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


def guess_repaid(look: Look, target: str, given: str | None) -> float | str:
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


def _given(what: str, given: str, look: Look) -> float | str:
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

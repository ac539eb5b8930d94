"""What of a table a program could use: guesses from names and values, for a person to correct."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from targetdp.programs.look import Column, Look
from targetdp.release.columns import check_columns

_IDS = ("id", "name", "person", "person_id", "subscriber", "subscriber_id", "phone", "hhid", "household_id")
_TARGETS = {
    "aid": ("y", "target", "consumption", "expenditure", "income", "wealth", "welfare"),
    "lending": ("y", "target", "repaid", "repayment", "low_risk", "good", "status", "default", "defaulted"),
}
_AMOUNTS = ("amount", "loan_amount", "loan", "principal", "credit_amount")
_WEIGHTS = ("weight", "weights", "hhweight", "survey_weight")
_GROUPS = ("sex", "gender", "region", "district", "prefecture", "urban", "rural", "age_group", "ethnicity")
_KNOWN_AFTERWARDS = {
    "revenue", "revenues", "interest", "profit", "profits", "loss", "losses", "margin", "fee", "fees",
    "penalty", "penalties", "paid", "repaid", "repayment", "repayments", "recovered", "collected", "arrears",
    "overdue", "default", "defaulted",
}  # fmt: skip
"""Words in names of columns that tell how a loan ended."""
_GROUP_MARK = "g_"
_MEANS_NOT_REPAID = ("default", "bad", "late", "risk")
_MOST_GROUP_VALUES = 20


@dataclass(frozen=True)
class Proposal:
    """A program that a table could serve, and what was left out of it, with the reason."""

    kind: str
    id: str | None
    target: str
    features: tuple[str, ...]
    groups: tuple[str, ...]
    left_out: dict[str, str]
    weights: str | None = None
    amount: str | None = None
    repaid: float | str = 1


def propose(
    look: Look,
    kind: str,
    *,
    id_column: str | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    amount: str | None = None,
    repaid: str | None = None,
) -> Proposal:
    """Choose the columns that were not given. What cannot be guessed must be given."""
    single = {"id": id_column, "target": target, "amount": amount}
    given = {key: [name] for key, name in single.items() if name is not None}
    check_columns(look.names(), "the table", features=features or (), groups=groups or (), **given)
    name = id_column or _id(look)
    outcome = target or _target(look, kind)
    weights = _named(_WEIGHTS, _numbers(look)) if kind == "aid" else None
    money = (amount or _amount(look)) if kind == "lending" else None
    chosen = tuple(groups) if groups is not None else _groups(look, {name, outcome, money})
    taken = {name: "the id", outcome: "the target", weights: "survey weights", money: "the amount"}
    marked = [name for name in chosen if groups is not None or name.lower().startswith(_GROUP_MARK)]
    taken |= dict.fromkeys(marked, "a group")
    taken.pop(None, None)
    if kind == "lending":
        why = "by its name it is known only after the decision, or hangs on it"
        for other in filter(_is_known_afterwards, look.names()):
            taken.setdefault(other, why)
    kept, left_out = _features(look, {str(key): why for key, why in taken.items()})
    return Proposal(
        kind=kind,
        id=name,
        target=outcome,
        features=tuple(features) if features is not None else kept,
        groups=chosen,
        left_out={} if features is not None else left_out,
        weights=weights,
        amount=money,
        repaid=_repaid(look, outcome, repaid) if kind == "lending" else 1,
    )


def _id(look: Look) -> str | None:
    """A column that is different in every row; of numbers only one that is named like an id."""
    unique = [c for c in look.columns if c.different == look.rows and c.kind in {"text", "whole"}]
    named = [c for c in unique if c.name.lower() in _IDS or c.name.lower().endswith("_id")]
    return next((c.name for c in [*named, *(c for c in unique if c.kind == "text")]), None)


def _target(look: Look, kind: str) -> str:
    wanted = (
        [c for c in _numbers(look) if c.different > 1]
        if kind == "aid"
        else [c for c in look.columns if c.different in {1, 2} and not c.missing]
    )
    found = _named(_TARGETS[kind], wanted)
    if found is None:
        what = "consumption, or whatever says who is poor" if kind == "aid" else "repayment, two values"
        raise ValueError(f"target could not be guessed: say which column has {what} (--target); {_has(look)}")
    return found


def _amount(look: Look) -> str:
    found = _named(_AMOUNTS, _numbers(look))
    if found is None:
        raise ValueError(
            f"amount could not be guessed: say which column has the loans (--amount); {_has(look)}"
        )
    return found


def _groups(look: Look, taken: set[str | None]) -> tuple[str, ...]:
    """Columns that are marked as groups; if none is, those of few values that are text or named like one."""
    free = [
        column for column in look.columns
        if column.name not in taken and column.different > 1 and "=" not in column.name
    ]  # fmt: skip
    marked = [column.name for column in free if column.name.lower().startswith(_GROUP_MARK)]
    few = [column for column in free if column.different <= _MOST_GROUP_VALUES]
    likely = [column.name for column in few if column.kind == "text" or column.name.lower() in _GROUPS]
    return tuple(marked or likely)


def _features(look: Look, taken: dict[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    kept, left_out = [], {}
    for column in look.columns:
        if column.name in taken:
            left_out[column.name] = taken[column.name]
        elif not column.is_number:
            left_out[column.name] = "not a number: encode it to use it"
        elif column.missing:
            left_out[column.name] = "has missing values: declare a constant (impute) to use it"
        elif column.different < 2:
            left_out[column.name] = "the same in every row"
        else:
            kept.append(column.name)
    if not kept:
        raise ValueError(
            f"features could not be guessed: no column is left; say which (--features); {_has(look)}"
        )
    return tuple(kept), left_out


def _is_known_afterwards(name: str) -> bool:
    """Whether a name has a word such as revenue in it: net_revenue, InterestPaid."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return any(word.lower() in _KNOWN_AFTERWARDS for word in words)


def _repaid(look: Look, target: str, given: str | None) -> float | str:
    """Which value of the target means that a loan was repaid."""
    column = look[target]
    if given is not None:
        return _number(given, target) if column.is_number else given
    if not column.is_number:
        raise ValueError(
            f"target {target!r} is text: say which of its values means that a loan was repaid (--repaid)"
        )
    name = target.lower()
    return 0 if "low" not in name and any(word in name for word in _MEANS_NOT_REPAID) else 1


def _number(given: str, target: str) -> float:
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"repaid = {given!r} is no finite number: target {target!r} has numbers; give one")
    return value


def _numbers(look: Look) -> list[Column]:
    return [column for column in look.columns if column.is_number and not column.missing]


def _named(names: Sequence[str], columns: Sequence[Column]) -> str | None:
    """The first of some columns by a list of usual names, whatever their case."""
    found = {column.name.lower(): column.name for column in reversed(columns)}
    return next((found[name] for name in names if name in found), None)


def _has(look: Look) -> str:
    shown = ", ".join(look.names()[:12]) + (", …" if len(look.columns) > 12 else "")
    return f"the table has {shown}"

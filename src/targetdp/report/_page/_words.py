"""What settings and protections are called on a page."""

import math
from collections.abc import Mapping
from typing import Any

from targetdp._core import exact, up
from targetdp.tradeoff import CLASSIC, promise_of, technologies, technology_named

# Numbers for people: thousands separated, no more digits than mean something, rounded to the safe side.

MONEY = {"$", "€", "£", "¥", "₦"}
"""Signs that stand before an amount; other currencies stand behind it."""


def about(value: float) -> str:
    """A count or an amount with three digits that mean something: 29,929 is "29,900"."""
    if value == 0 or not math.isfinite(value):
        return f"{value:,.0f}"
    if abs(value) < 100:
        return f"{value:.3g}" if abs(value) >= 1e-4 else f"{value:.1e}"
    digits = max(0, math.floor(math.log10(abs(value))) - 2)
    return f"{round(value / 10**digits) * 10**digits:,.0f}"


def people(value: float) -> str:
    """A number of people, as `about` has it; nobody is cut in parts, but for the few of a small table."""
    return about(round(value)) if abs(value) >= 10 and math.isfinite(value) else about(value)


def whole(value: float) -> str:
    """All digits before the point."""
    return f"{value:,.0f}".replace("-0", "0") if abs(value) < 0.5 else f"{value:,.0f}"


def money(value: float, unit: str) -> str:
    """An amount in its currency, with a proper minus sign."""
    sign, amount = ("−" if value < 0 else ""), about(abs(value))
    return f"{sign}{unit}{amount}" if unit in MONEY else f"{sign}{amount} {unit}"


def of_100(share: float) -> str:
    """Protection as people of 100, rounded down; finer where a hundred is too coarse to tell it from all."""
    for of in (100, 1_000, 10_000):
        if share < 1 - 1 / of:
            return f"{math.floor(share * of + 1e-9):,} of {of:,}"
    return "100 of 100" if share >= 1 else "9,999 of 10,000"


def safe_share(share: float) -> str:
    """Protection from 0 to 1 with three digits, rounded down."""
    return f"{math.floor(share * 1000 + 1e-9) / 1000:.3f}"


PROTECTIONS = {
    "singling_out": "Not singled out",
    "attribute_inference": "Hidden values not guessed",
    "distinguishing": "Not told apart",
}
"""Headings of the three protections."""

EXPLAINED = {
    "singling_out": (
        "The share of people whom an attacker with the released table could not pick out as the only one in "
        "a box drawn around a row. Measured by attacks: a cleverer attacker may do better."
    ),
    "attribute_inference": (
        "How often guesses at a hidden value failed for people in the table, compared with people outside "
        "it: 1 means that being in the table gave nothing away. Measured by attacks: a cleverer attacker "
        "may do better."
    ),
    "distinguishing": (
        "How little the release tells, on average, about which of two rows a person has, if they are as "
        "different as can be, even to an attacker who knows everybody else's rows. Derived, not measured: no "
        "attacker can do better on average."
    ),
}


def label(cell: Mapping[str, Any]) -> str:
    """A setting's name on the page, with the ε that its release promises."""
    kind = technology_named(cell["mechanism"]).label
    if cell["group_size"] is not None:
        return f"{kind}, groups of {cell['group_size']}"
    if cell["B"] is None:
        return kind
    classic = " (classic differential privacy)" if cell["B"] == CLASSIC else ""
    promise = promise_of(cell)
    assert promise is not None  # noqa: S101 (whatever has a B has one)
    return f"{kind}, B = {exact(promise.B)}, ε = {up(promise.epsilon, 6)}{classic}"


# Words of the page, explained once.

_GLOSSARY = {
    "B": "How similar two rows must be for the guarantee to cover the difference between them. Rows are "
    "scaled so that no two are farther apart than 2: B = 2 covers any two (classic differential privacy), "
    "B = 0.25 only rows that are much alike.",
    "ε (epsilon)": "How hard rows within B are to tell apart: the smaller, the harder. It belongs to its B.",
    "δ (delta)": "A small addition to what ε allows: the smaller, the better. It is not the chance that "
    "something goes wrong; the best guess has both ε and δ in it.",
    "Exact ε": "What the noise really keeps at a given distance, computed and not estimated.",
    "Best guess": "An attacker knows everybody else's rows, and that a person's row is one of two, equally "
    "likely: the largest chance, with any method, of being right about which. A coin is right half of "
    "the time.",
    "Status quo, today": "The program on the table as it is, without privacy.",
    "Protection": "From 0 (none) to 1 (safe), for one kind of attack.",
    "Not singled out": "The share of people whom the attack could not pick out of the released table.",
    "Exclusion errors": "Poor people who should get aid and do not.",
    "γ (gamma)": "For every possible table, how often a decision made on the private table agrees with the "
    "one made on the original table, at the least. Not the program's accuracy.",
    "95% interval": "If the noise were drawn again many times, 95 of 100 such intervals would hold the true "
    "mean. It does not speak of other people.",
}


def glossary() -> dict[str, str]:
    """Words of the page, explained once; what the technologies are behind the status quo."""
    explained = {
        one.label[:1].upper() + one.label[1:]: one.explanation
        for one in technologies().values() if one.explanation
    }  # fmt: skip
    before = list(_GLOSSARY).index("Status quo, today") + 1
    items = list(_GLOSSARY.items())
    return dict(items[:before]) | explained | dict(items[before:])

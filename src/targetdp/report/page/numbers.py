"""Numbers for people: thousands separated, no more digits than mean something, rounded to the safe side."""

import math

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

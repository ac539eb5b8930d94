"""Numbers about privacy, printed to the safe side: ε, δ and an adversary's success up, protection down."""

import math


def up(value: float, digits: int = 3) -> str:
    """So many digits, never less than the value; what is within 1e-9 of a shorter number is that number."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    place = math.floor(math.log10(abs(value))) - digits + 1
    # Work in whole units of the last digit, so that 0.25 stays 0.25.
    return f"{math.ceil(value / 10.0**place - 1e-9) * 10.0**place:.{digits}g}"


def percent_up(share: float) -> str:
    """A probability in percent with one digit, never less than it is."""
    return f"{min(100.0, math.ceil(share * 1000 - 1e-9) / 10):.1f}%"


def down(share: float, digits: int = 3) -> str:
    """Protection with so many decimals, never more than it is."""
    return f"{math.floor(share * 10**digits + 1e-9) / 10**digits:.{digits}f}"


def exact(value: float) -> str:
    """A number that somebody chose, such as B: rounding it either way would claim another."""
    return f"{value:.12g}"

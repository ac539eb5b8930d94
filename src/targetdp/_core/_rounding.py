"""Numbers about privacy, printed to the safe side: ε, δ and an adversary's success up, protection down."""

import math


def up(value: float, digits: int = 3) -> str:
    """Print a number about privacy with few digits, never less than it is.

    Args:
        value: Such as ε or δ. What is within 1e-9 of a shorter number is that number.
        digits: Significant digits.

    Returns:
        The number as text.

    Example:
        >>> up(1.2341), up(0.25)
        ('1.24', '0.25')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    place = math.floor(math.log10(abs(value))) - digits + 1
    # Work in whole units of the last digit, so that 0.25 stays 0.25.
    return f"{math.ceil(value / 10.0**place - 1e-9) * 10.0**place:.{digits}g}"


def percent_up(share: float) -> str:
    """Print a probability in percent with one digit, never less than it is.

    Args:
        share: From 0 to 1.

    Returns:
        Such as ``"12.4%"``, at most ``"100.0%"``.

    Example:
        >>> percent_up(0.1231)
        '12.4%'
    """
    return f"{min(100.0, math.ceil(share * 1000 - 1e-9) / 10):.1f}%"


def down(share: float, digits: int = 3) -> str:
    """Print a protection with few decimals, never more than it is.

    Args:
        share: From 0 to 1.
        digits: Decimals.

    Returns:
        The number as text.

    Example:
        >>> down(0.9999)
        '0.999'
    """
    return f"{math.floor(share * 10**digits + 1e-9) / 10**digits:.{digits}f}"


def exact(value: float) -> str:
    """Print a number that somebody chose, such as B: rounding it either way would claim another.

    Args:
        value: The number.

    Returns:
        All its digits.

    Example:
        >>> exact(0.075)
        '0.075'
    """
    short = f"{value:.12g}"
    return short if float(short) == value else repr(float(value))

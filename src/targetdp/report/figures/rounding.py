"""Numbers as they are printed in a figure. What a guarantee says is rounded to the safe side only."""

import math

_IS = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
_STEPS = ((1e9, "G"), (1e6, "M"), (1e3, "K"))


def short(value: float, *, signed: bool = False) -> str:
    """Three digits, with K for thousands and M for millions: 196K, −18.4K, +1.25M."""
    size, unit = abs(value), ""
    for step, letter in _STEPS:
        if size >= step * 0.9995:  # what rounds to 1.00K is not 1,000
            size, unit = size / step, letter
            break
    digits = f"{size:.0f}" if not unit or size >= 99.95 else f"{size:.1f}" if size >= 9.995 else f"{size:.2f}"
    sign = "" if float(digits) == 0 else "−" if value < 0 else "+" if signed else ""
    return f"{sign}{digits}{unit}"


def whole(value: float) -> str:
    """A count or a sum with thousands separators."""
    return f"{value:,.0f}".replace("-", "−")


def epsilon_words(epsilon: float) -> str:
    """Rounded up: ε = 3.9999."""
    return f"ε{_IS}{math.ceil(epsilon * 1e4 - 1e-6) / 1e4:,.10g}" if math.isfinite(epsilon) else "no finite ε"


def delta_words(delta: float) -> str:
    """Rounded up: δ = 1/4,202, or a decimal where δ is large."""
    if delta <= 0:
        return f"δ{_IS}0"
    if delta < 0.1:
        # The quotient of a float may fall short of the whole number it stands for.
        return f"δ{_IS}1/{math.floor(1 / delta * (1 + 1e-12)):,}"
    return f"δ{_IS}{math.ceil(delta * 1000 - 1e-9) / 1000:.3f}"

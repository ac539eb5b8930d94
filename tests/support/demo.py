"""The demonstration's comparison, drawn once in a process: its table is tested, and so is the one in docs."""

from functools import cache

from examples.tour.comparison import Line, compare


@cache
def compared() -> tuple[Line, ...]:
    """All lines, each a mean of all simulations."""
    return tuple(compare())

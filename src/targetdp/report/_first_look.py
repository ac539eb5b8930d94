"""What pages and figures of a quick look say of themselves."""

from collections.abc import Sequence


def quick_look(reasons: Sequence[str]) -> str:
    """One sentence for the top of a page or figure.

    Args:
        reasons: Why the sweep is a quick look, as its record has them.

    Returns:
        The sentence.

    Example:
        >>> quick_look(["3 simulations", "these people are invented"])
        'Quick look, nothing to decide by: 3 simulations; these people are invented.'
    """
    return f"Quick look, nothing to decide by: {'; '.join(reasons)}."
